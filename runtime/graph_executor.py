"""TVM's graph executor: a program as a graph whose nodes are called in order, with inputs that are set and outputs that are read.

    executor = GraphExecutor(module)
    executor.set_input("image", image)
    executor.run()
    scores = executor.get_output(0).numpy()

It works from TVM's three artefacts alone: `create(graph_json, lib, device)`, then `load_params`. A call of the module's own function does
the same in compiled code, and checks what it is given.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm_ffi

from relayc.nearest import nearest
from relayc.runtime.artifact import TensorSpec, aligned_empty, numpy_dtype
from relayc.runtime.device import Device
from relayc.runtime.exceptions import reraise_original
from relayc.runtime.graph import NOP, Entry, Graph, parse_graph
from relayc.runtime.imports import Library
from relayc.runtime.module import Module
from relayc.runtime.params import load_param_dict
from relayc.runtime.registry import get_global_func
from relayc.runtime.tensor import Tensor, as_array, to_tensor
from relayc.runtime.threads import Team
from relayc.runtime.timing import BenchmarkResult, evaluator, timed


def _given(key: int | str | None, value: Any, others: Mapping[str, Any]) -> dict[int | str, Any]:
    """The values that a call sets, by name or number."""
    found: dict[int | str, Any] = {} if key is None else {key: value}
    return found | dict(others)


def create(graph_json_str: str, libmod: Any, device: Device | str = "cpu") -> "GraphExecutor":
    """An executor of a graph.

    Args:
      graph_json_str: TVM's graph JSON, as `Module.graph_json` gives it.
      libmod: has the functions of its nodes: `Module.lib`, a Module, or a tvm_ffi.Module. Of the first two, the parameters are set.
      device: that of the host.

    Raises:
      ValueError: no such graph, or a function that is neither in `libmod` nor a global packed function.
    """
    made = GraphExecutor.__new__(GraphExecutor)
    made._set_up(parse_graph(graph_json_str), libmod, Device(device), Team())
    if isinstance(libmod, (Library, Module)):
        made._share(libmod.params)
    return made


class GraphExecutor:
    """Runs the graph of a program node by node, on memory of its own.

    Its arguments are the program's inputs and then its parameters, which are there from the start where it is made of a module. Methods
    have TVM's names and meanings. An executor is for one thread at a time.

    Attributes:
      graph: what it runs.
      device: where.
    """

    def __init__(
        self,
        module: Module,
        function: str | None = None,
        sizes: Mapping[str, int] | None = None,
        device: Device | str | None = None,
    ) -> None:
        """
        Args:
          module: a compiled module. The executor shares its parameters.
          function: a program of the module; by default `main`.
          sizes: the values of its symbols, for a program that has some: the executor is for these sizes.
          device: that of the module.

        Raises:
          KeyError, ValueError: as `Module.graph`; another device.
        """
        self._set_up(module.graph(function, sizes), module, module.device, Team(module.num_threads))
        self._check_device("graph executor", device)
        self._share(module.params)

    def _share(self, params: Mapping[str, np.ndarray]) -> None:
        for name in [name for name in self._numbers if name in params]:
            self._bind(self._numbers[name], params[name])
            self._params.add(name)

    def _set_up(self, graph: Graph, lib: Any, device: Device, team: Team) -> None:
        self.graph, self.device, self._lib, self._team = graph, device, lib, team
        self._numbers = {graph.nodes[node].name: number for number, node in enumerate(graph.arguments)}
        self._params: set[str] = set()
        self._own: set[int] = set()  # storages of arguments that are not shared
        outside = {graph.entry((node, 0)).storage for node in graph.arguments}
        self._memory = {storage: aligned_empty(size) for storage, size in graph.storage_bytes.items() if storage not in outside}
        called = [number for number, node in enumerate(graph.nodes) if node.op != "null" and node.function != NOP]
        self._functions = {number: self._find(graph.nodes[number].function) for number in called}
        self._calls: dict[int, list[Any]] = {}

    def _find(self, name: str) -> tvm_ffi.Function:
        try:
            found = self._lib.get_function(name, True)
            return getattr(found, "packed", found)
        except (KeyError, AttributeError):
            found = get_global_func(name, allow_missing=True)
        if found is None:
            raise ValueError(f"graph: expected the function {name!r} in the library or among global functions, found none")
        return found

    # ---- memory

    def _array(self, entry: Entry) -> np.ndarray:
        return np.ndarray(entry.shape, numpy_dtype(entry.dtype), self._memory[entry.storage], entry.offset)

    def _argument(self, number: int) -> Entry:
        """The tensor of argument `number`."""
        return self.graph.entry((self.graph.arguments[number], 0))

    def _bind(self, number: int, array: np.ndarray) -> None:
        """Lets argument `number` be the memory of an array of somebody else, which is not written."""
        storage = self._argument(number).storage
        self._own.discard(storage)
        self._bind_storage(storage, array)

    def _bind_storage(self, storage: int, array: np.ndarray) -> None:
        self._memory[storage] = array.reshape(-1).view(np.uint8)
        for node in list(self._calls):
            places = (*self.graph.nodes[node].inputs, *((node, i) for i in range(len(self.graph.nodes[node].outputs))))
            if any(self.graph.entry(place).storage == storage for place in places):
                del self._calls[node]

    def _number(self, key: int | str) -> int:
        if isinstance(key, str):
            if key not in self._numbers:
                raise KeyError(f"no input {key!r}; there are {', '.join(self._numbers)}{nearest(key, self._numbers)}")
            return self._numbers[key]
        if not 0 <= key < len(self.graph.arguments):
            raise KeyError(f"no input {key}; there are {len(self.graph.arguments)}")
        return key

    def _checked(self, number: int, value: Any) -> np.ndarray:
        name = self.graph.nodes[self.graph.arguments[number]].name
        return self._fitting(f"input {name!r}", self._argument(number), value)

    def _integers(self, number: int, value: Any) -> Any:
        """A value in the dtype of an argument, if both are integers and all elements fit; otherwise the value unchanged."""
        dtype = numpy_dtype(self._argument(number).dtype)
        if not isinstance(value, np.ndarray) or value.dtype == dtype or {value.dtype.kind, dtype.kind} - set("iu"):
            return value
        found = value.astype(dtype)
        return found if np.array_equal(found, value) else value

    def _fitting(self, where: str, entry: Entry, value: Any) -> np.ndarray:
        spec = entry.spec
        try:
            array = value.numpy() if isinstance(value, Tensor) and value.device.kind != "cpu" else as_array(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}: expected {spec}, {error}") from error
        if array.dtype != numpy_dtype(entry.dtype):
            raise TypeError(f"{where}: expected {spec}, found {TensorSpec('', array.shape, array.dtype.name)}")
        if array.shape != entry.shape:
            raise ValueError(f"{where}: expected {spec}, found {TensorSpec('', array.shape, array.dtype.name)}")
        return array

    # ---- arguments

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Sets an input or parameter, by name or number, and others by name. Values are copied; integers may be of another dtype.

        Raises:
          KeyError: there is no such input.
          TypeError, ValueError: another dtype or shape.
        """
        for name, array in _given(key, value, params).items():
            number = self._number(name)
            array = self._checked(number, self._integers(number, array))
            entry = self._argument(number)
            if entry.storage not in self._own:
                self._bind_storage(entry.storage, aligned_empty(array.nbytes))
                self._own.add(entry.storage)
            self._array(entry)[...] = array

    def set_input_zero_copy(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """As `set_input`, but the executor reads the memory of the value itself in every run, which must stay as it is meanwhile.

        Raises:
          KeyError, TypeError, ValueError: as `set_input`; a value that is not contiguous.
        """
        for name, array in _given(key, value, params).items():
            number = self._number(name)
            array = self._contiguous(f"input {name!r}", self._checked(number, array))
            self._bind(number, array)

    def set_output_zero_copy(self, key: int | str, value: Any) -> None:
        """Lets runs write an output, by number or name, into the memory of an array.

        Raises:
          KeyError: there is no such output.
          TypeError, ValueError: another dtype or shape, or an array that is not contiguous or may not be written.
        """
        entry = self.graph.entry(self._head(key))
        array = self._contiguous(f"output {key!r}", self._fitting(f"output {key!r}", entry, value))
        if not array.flags.writeable:
            raise ValueError(f"output {key!r}: expected an array that may be written, found one that may not")
        self._bind_storage(entry.storage, array)

    @staticmethod
    def _contiguous(where: str, array: np.ndarray) -> np.ndarray:
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise ValueError(f"{where}: expected a contiguous aligned array, found one with strides {array.strides}")
        return array

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Sets parameters from what `save_param_dict` gave.

        Raises:
          ValueError: not the contents of a safetensors file.
          KeyError, TypeError, ValueError: as `set_input`.
        """
        params = load_param_dict(params_bytes)
        self.set_input(None, None, **params)
        self._params |= set(params)

    def share_params(self, other: "GraphExecutor", params_bytes: bytes | bytearray) -> None:
        """Reads parameters from the memory of another executor; `params_bytes` (see `save_param_dict`) says which, by their names.

        Raises:
          ValueError: not the contents of a safetensors file, or a parameter that the other one has not got.
          KeyError: there is no such parameter here or there.
        """
        for name in load_param_dict(params_bytes):
            number, theirs = self._number(name), other._number(name)
            entry = other._argument(theirs)
            if entry.storage not in other._memory:
                raise ValueError(f"share_params: expected the parameter {name!r} in the other executor, found it not set")
            self._bind(number, self._checked(number, other._array(entry)))
            self._params.add(name)

    def get_num_inputs(self) -> int:
        """How many arguments there are: inputs and parameters."""
        return len(self.graph.arguments)

    def get_num_outputs(self) -> int:
        """How many outputs the program has."""
        return len(self.graph.heads)

    def get_input_index(self, name: str) -> int:
        """The number of an input; -1 if the name is unknown."""
        return self._numbers.get(name, -1)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs that are no parameters, by name."""
        entries = {name: self._argument(i) for name, i in self._numbers.items() if name not in self._params}
        return {name: entry.shape for name, entry in entries.items()}, {name: entry.dtype for name, entry in entries.items()}

    def get_output_index(self, name: str) -> int:
        """The number of an output; -1 if the name is unknown."""
        names = list(self.graph.output_names)
        return names.index(name) if name in names else -1

    def get_output_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the outputs, by name."""
        entries = dict(zip(self.graph.output_names, map(self.graph.entry, self.graph.heads), strict=False))
        return {name: entry.shape for name, entry in entries.items()}, {name: entry.dtype for name, entry in entries.items()}

    def get_input(self, index: int | str, out: Any = None) -> Any:
        """An input, by number or name: a tensor that shares the executor's memory, or `out`, if given, into which the input is copied.

        Raises:
          KeyError: there is no such input.
          ValueError: the input has not been set.
        """
        place = (self.graph.arguments[self._number(index)], 0)
        if self.graph.entry(place).storage not in self._memory:
            raise ValueError(f"input {index!r}: expected it to be set, found that it is not")
        return self._given(place, out)

    def get_output(self, index: int | str, out: Any = None) -> Any:
        """An output of the last run, by number or name: a tensor that shares the executor's memory, which the next run overwrites, or
        `out`, if given, into which the output is copied.

        Raises KeyError if there is no such output.
        """
        return self._given(self._head(index), out)

    def _head(self, key: int | str) -> tuple[int, int]:
        names = self.graph.output_names
        if isinstance(key, str) and key in names:
            key = names.index(key)
        if isinstance(key, str) or not 0 <= key < len(self.graph.heads):
            raise KeyError(f"no output {key!r}; there are {', '.join(names) or len(self.graph.heads)}{nearest(key, names)}")
        return self.graph.heads[key]

    def _given(self, place: tuple[int, int], out: Any) -> Any:
        array = self._array(self.graph.entry(place))
        if out is None:
            return Tensor(to_tensor(array))
        if isinstance(out, Tensor):
            out.copy_from(array)
        else:
            self._fitting("out", self.graph.entry(place), out)[...] = array
        return out

    # ---- runs

    def run(self, **input_dict: Any) -> None:
        """Runs the graph, after setting inputs by name.

        Raises:
          KeyError, TypeError, ValueError: as `set_input`; an input that has not been set. What packed functions raise arrives as it is.
        """
        self.set_input(None, None, **input_dict)
        self._check_set()
        self._run_nodes(list(self._functions))

    def _check_set(self) -> None:
        missing = [name for name, i in self._numbers.items() if self._argument(i).storage not in self._memory]
        if missing:
            raise ValueError(f"run: expected all inputs and parameters to be set, found none for {', '.join(missing)}")

    def _run_nodes(self, nodes: Sequence[int], around: Callable[[int, Callable[[], None]], None] | None = None) -> None:
        """Calls nodes in order; `around`, if given, is called with each node and the function that calls it."""
        try:
            with self._team:
                for number in nodes:
                    arguments = self._arguments(number)
                    if around is None:
                        self._functions[number](*arguments)
                    else:
                        function = self._functions[number]
                        around(number, lambda f=function, a=arguments: f(*a))  # type: ignore[misc] # values of this round
        except BaseException as error:
            reraise_original(error)
            raise

    def _arguments(self, number: int) -> list[Any]:
        """The arguments of a node's function."""
        if number not in self._calls:
            node = self.graph.nodes[number]
            entries = [*(self.graph.entry(place) for place in node.inputs), *node.outputs]
            self._calls[number] = [*(to_tensor(self._array(entry)) for entry in entries), *node.sizes]
        return self._calls[number]

    def benchmark(
        self,
        device: Device | str | None = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        end_to_end: bool = False,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Times runs.

        Args:
          device: that of the executor.
          func_name: "run".
          repeat: how many times are taken.
          number: of how many runs each is the mean.
          min_repeat_ms: how long these runs take together at least: more are made.
          end_to_end: whether the time of a run is with that of setting the inputs `kwargs` and copying the outputs.
          cooldown_interval_ms: a rest after every `repeats_to_cooldown` of the times.
          kwargs: inputs by name.

        Raises:
          KeyError, TypeError, ValueError: as `run`; another device or function than there is.
        """
        self._check_device("benchmark", device)
        if func_name != "run":
            raise ValueError(f"benchmark: expected the function 'run', found {func_name!r}")
        self.run(**kwargs)

        def whole() -> None:
            self.run(**kwargs)
            for i in range(self.get_num_outputs()):
                self.get_output(i).numpy()

        return timed(whole if end_to_end else self.run, number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown)

    def time_evaluator(self, func_name: str, dev: Device | str | None = None, **options: Any) -> Callable[..., BenchmarkResult]:
        """Makes a function that times a method by its name, such as "run", on the arguments that the function is given.

        Args:
          dev: that of the executor.
          options: those of `Module.time_evaluator`.

        Raises:
          KeyError: there is no such method.
          ValueError: another device.
        """
        self._check_device("time_evaluator", dev)
        return evaluator(self[func_name], **options)

    @property
    def module(self) -> "GraphExecutor":
        """The executor itself, by the name under which TVM's wrapper has its functions: `m.module["run"]`, `m.module.time_evaluator`."""
        return self

    def _check_device(self, where: str, device: Device | str | None) -> None:
        if device is not None and Device(device) != self.device:
            raise ValueError(f"{where}: expected the device {self.device}, found {device}")

    def __getitem__(self, key: str) -> Any:
        """A method by its TVM name: `executor["set_input"]`. Raises KeyError if there is none."""
        found = None if key.startswith("_") else getattr(self, key, None)
        if not callable(found):
            raise KeyError(f"no function {key!r} of a graph executor")
        return found

    def __repr__(self) -> str:
        return f"<relayc graph executor of {len(self._functions)} calls, on {self.device}>"


class GraphModule(GraphExecutor):
    """An executor under the name of TVM's wrapper: `GraphModule(relay.build(...)["default"](device))`, or `GraphModule(module)` of a
    compiled or loaded module. It shares the state of the executor that it is made of."""

    def __init__(self, module: "GraphExecutor | Module") -> None:
        """Raises KeyError and ValueError as `GraphExecutor`; TypeError for what is neither an executor nor a module."""
        if not isinstance(module, (GraphExecutor, Module)):
            raise TypeError(f"GraphModule: expected an executor or a module, found {type(module).__name__}")
        self.__dict__ = (module if isinstance(module, GraphExecutor) else GraphExecutor(module)).__dict__
