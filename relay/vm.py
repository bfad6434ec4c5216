"""`relay.vm`: programs for Relay's virtual machine. Functions on tensors are compiled; others run by runtime.control."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relayc.frontend.relay.ast import Constant, Expr, Function, NDArray, RelayModule, Var, bind, free_vars
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.builder import leaves
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.passes.unused import named_functions, remove_unused_functions
from relayc.frontend.relay.text import parse_module
from relayc.relay.build import Params, as_module
from relayc.relay.executor import python_function
from relayc.relay.kernel import tensor
from relayc.relay.transform import FoldConstant
from relayc.runtime.device import Device
from relayc.runtime.graph_executor import BenchmarkResult, timed


class Executable:
    """A program that a VirtualMachine runs. Each function is compiled when it is called first; main at once.

    Large constants may be kept apart from what `save` and `export_library` write: they are bound late, by name.

    Attributes:
      module: the program, with types; constants that are bound late are free variables.
    """

    def __init__(self, module: RelayModule, target: Any, late: Sequence[str] = ()) -> None:
        self.module, self._target, self._late = module, target, set(late)
        self._functions: dict[str, Callable[..., Any]] = {}
        if "main" in module and not late:
            self.function("main")

    @property
    def globals(self) -> list[str]:
        """The names of its functions."""
        return [var.name_hint for var in self.module.functions]

    @property
    def mod(self) -> "Executable":
        """Itself: Relay's name of the exported object."""
        return self

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A method by name. Raises KeyError."""
        if name not in ("load_late_bound_consts", "load_late_bound_consts_from_map"):
            raise KeyError(f"no function {name!r} of a program")
        return getattr(self, name)

    def typed(self, name: str) -> Function:
        """A function as an expression. Raises KeyError if the program has no function of the name."""
        return self.module[name]

    def function(self, name: str) -> Callable[..., Any]:
        """A function on arrays and other values, in order or by name.

        Raises KeyError if the program has none of the name, RuntimeError before its constants are bound.
        """
        if self._late:
            raise RuntimeError(
                f"expected constants that are bound (load_late_bound_consts), found none for {', '.join(sorted(self._late))}"
            )
        if name not in self._functions:
            function = self.typed(name)
            program = remove_unused_functions(self.module, named_functions(function))
            program["main"] = function
            self._functions[name] = python_function(program, self._target)
        return self._functions[name]

    # ---- programs in files

    def save(self) -> tuple[bytearray, "Executable"]:
        """The program as bytes for `load_exec`, its text and target; and what Relay has a library for, itself: `load_exec` compiles."""
        target = None if self._target is None else str(self._target)
        return bytearray(json.dumps([self.module.astext(), target, sorted(self._late)]).encode()), self

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Any = None) -> "Executable":
        """A program that `save` has given as bytes; no library is needed. Raises ValueError for other bytes."""
        text, target, late = json.loads(bytes(bytecode))
        return Executable(infer_module(parse_module(text)), target, late)

    def export_library(self, path: str | os.PathLike[str], fcompile: Any = None, options: Any = None) -> None:
        """Writes what `save` gives to a file. No C is compiled: Relay's compiler and its flags are not looked at."""
        Path(path).write_bytes(self.save()[0])

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Executable":
        """The program of a file that `export_library` has written. Raises OSError, ValueError."""
        return Executable.load_exec(Path(path).read_bytes())

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        """Takes the constants of at least so many bytes out of the program: they are bound late. Gives them by name."""
        nodes = dict.fromkeys(node for function in self.module.functions.values() for node in post_order(function))
        large = [node for node in nodes if isinstance(node, Constant) and node.data.nbytes >= byte_limit]
        names = [f"const_{len(self._late) + i}" for i in range(len(large))]
        variables = {node: Var(name, node.type) for node, name in zip(large, names, strict=True)}
        self._bind(variables)
        self._late |= set(names)
        return {name: node.data for name, node in zip(names, large, strict=True)}

    def _bind(self, values: Mapping[Any, Expr]) -> None:
        # Of a function's body: `bind` of a function would make free variables parameters.
        functions: dict[Any, Any] = {var: f.replace(body=bind(f.body, values)) for var, f in self.module.functions.items()}
        self.module = infer_module(RelayModule(functions, self.module.type_definitions, self.module.attrs))
        self._functions = {}

    def load_late_bound_consts_from_map(self, consts: Mapping[str, Any]) -> None:
        """Binds constants by name. Raises KeyError if one is missing."""
        variables = [var for function in self.module.functions.values() for var in free_vars(function) if var.name_hint in self._late]
        self._bind({var: Constant(tensor(consts[var.name_hint], None)) for var in variables})
        self._late = set()

    def move_late_bound_consts(self, path: str | os.PathLike[str], byte_limit: int) -> None:
        """Moves the constants of at least so many bytes to a file (numpy's .npz)."""
        with open(path, "wb") as file:
            np.savez(file, **self.get_late_bound_consts(byte_limit))  # type: ignore[arg-type] # arrays by name

    def load_late_bound_consts(self, path: str | os.PathLike[str]) -> None:
        """Binds the constants of a file that `move_late_bound_consts` has written. Raises OSError, KeyError."""
        with np.load(path) as found:
            self.load_late_bound_consts_from_map(dict(found))


class VMCompiler:
    """Compiles a program in steps; `compile` takes all of them."""

    def __init__(self) -> None:
        self._params: Params = {}
        self._found: Executable | None = None

    def set_params(self, params: Params) -> None:
        """Sets arrays that take the place of parameters of main, by name."""
        self._params = params

    def get_params(self) -> Params:
        """These arrays."""
        return self._params

    def optimize(
        self, mod: RelayModule, target: Any = None, target_host: Any = None, params: Params | None = None
    ) -> tuple[RelayModule, Params]:
        """The program with its parameters and types, and with what depends on constants alone evaluated; and its parameters."""
        if params:
            self.set_params(params)
        return FoldConstant()(infer_module(as_module(mod, self._params))), self._params

    def lower(self, mod: RelayModule, target: Any = None, target_host: Any = None) -> None:
        """Compiles a program. Raises as `relayc.compile`."""
        self._found = Executable(infer_module(as_module(mod, self._params)), target)

    def codegen(self) -> None:
        """Does nothing: `lower` generates machine code."""

    def get_exec(self) -> Executable:
        """The compiled program. Raises RuntimeError before `lower`."""
        if self._found is None:
            raise RuntimeError("get_exec: expected a program that has been lowered, found none")
        return self._found


def compile(mod: RelayModule, target: Any = None, target_host: Any = None, params: Params | None = None) -> Executable:
    """A program for a VirtualMachine.

    Args:
      target: as in `relay.build`.
      target_host: Relay's parameter; the host is this machine.
      params: arrays that take the place of parameters of main, by name.

    Raises as `relayc.compile`.
    """
    return Executable(infer_module(as_module(mod, params)), target)


class VirtualMachine:
    """Runs the functions of a program.

    Args:
      exe: the program.
      device: where it runs, or several of which the first counts; checked for being one.
      memory_cfg: Relay's choice of an allocator, which is not looked at.
    """

    def __init__(self, exe: Executable, device: Any = None, memory_cfg: Any = None) -> None:
        for each in device if isinstance(device, (list, tuple)) else [device] if device is not None else []:
            Device(each)
        self._exe = exe
        self._inputs: dict[str, dict[int, Any]] = {}
        self._outputs: Any = None

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The position of a parameter of a function; -1 if the name is unknown."""
        names = [param.name_hint for param in self._exe.typed(func_name).params]
        return names.index(input_name) if input_name in names else -1

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets all arguments of later calls of a function, in order or by name. Raises TypeError if their number or names are wrong."""
        found = dict(enumerate(args)) | {self._place(func_name, name): value for name, value in kwargs.items()}
        count = len(self._exe.typed(func_name).params)
        if sorted(found) != list(range(count)) or len(args) + len(kwargs) != count:
            raise TypeError(f"{func_name}: expected {count} argument(s), found {len(args) + len(kwargs)}")
        self._inputs[func_name] = found

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets one argument: `set_one_input("main", "x", value)`, by its place, or `x=value`. Raises TypeError for anything else."""
        if len(args) + 2 * len(kwargs) != 2:
            raise TypeError(f"{func_name}: expected one argument with its name or place, found {len(args)} values and {len(kwargs)} names")
        key, value = args if args else next(iter(kwargs.items()))
        self._inputs.setdefault(func_name, {})[self._place(func_name, key) if isinstance(key, str) else int(key)] = value

    def _place(self, func_name: str, name: str) -> int:
        found = self.get_input_index(name, func_name)
        if found < 0:
            names = ", ".join(param.name_hint for param in self._exe.typed(func_name).params)
            raise TypeError(f"{func_name}: expected an argument out of {names}, found {name!r}")
        return found

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """The result of a function, on these arguments or those that have been set."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        given = self._inputs.get(func_name, {})
        return self._exe.function(func_name)(*(given[i] for i in sorted(given)))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The result of main."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Calls a function; `get_outputs` then returns its results."""
        self._outputs = self.invoke(func_name, *args, **kwargs)

    def invoke_with_outputs(self, func_name: str, input_args: Any, output_args: Sequence[Any]) -> None:
        """Calls a function and writes its results to arrays. Raises ValueError if their number or shapes do not fit."""
        found = _tensors(self.invoke(func_name, **input_args))
        for out, value in zip(output_args, found, strict=True):
            out[...] = value

    def get_outputs(self) -> list[NDArray]:
        """The tensors that the last `invoke_stateful` gave."""
        return _tensors(self._outputs)

    def benchmark(
        self,
        device: Any,
        *args: Any,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        end_to_end: bool = False,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """The time that calls of a function take: seconds per call, `repeat` means of `number` calls. Arguments are on the host."""
        self.set_input(func_name, *args, **kwargs)
        return timed(lambda: self.invoke_stateful(func_name), number, repeat, min_repeat_ms or 0.0)


def _tensors(value: Any) -> list[NDArray]:
    """The tensors in a result."""
    return [tensor(leaf, None) for leaf in leaves(value)]
