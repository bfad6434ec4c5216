"""`relay.create_executor`: evaluates expressions and functions of a program."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from relayc.dialects.relay.errors import NeedsControl, RelayError
from relayc.frontend.relay.ast import Any as AnySize
from relayc.frontend.relay.ast import Expr, Function, GlobalVar, RelayModule, TensorType, TupleType, Type, as_expr, bind, const, ndarray
from relayc.frontend.relay.ast.functor import rewritten
from relayc.frontend.relay.ast.types import leaves
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.lowering import lower
from relayc.frontend.relay.op.lowered_calls import direct_calls
from relayc.frontend.relay.passes.basic import with_types
from relayc.frontend.relay.passes.unused import named_functions, remove_unused_functions
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.control.program import is_native
from relayc.pipelines.control.steps import ControlProgram
from relayc.relay.build import Params, as_module, compiled, target_of
from relayc.relay.kernel import argument, kernel_compiler, on_structures, taken, tensor
from relayc.relay.names import GlobalVarSupply
from relayc.runtime.control import Machine, NoClause
from relayc.runtime.device import Device

KINDS = ("graph", "vm", "aot", "debug", "interpreter")
"""Relay's kinds of executors. All run compiled code; of programs with data types, the last two take the steps of control one by one."""


class Executor:
    """Evaluates expressions and functions in a module.

    Attributes:
      mod: the module.
    """

    def __init__(self, mod: RelayModule | None, target: Any, params: Params | None, interprets: bool) -> None:
        self.mod = mod or RelayModule()
        self._target, self._params, self._interprets = target, params, interprets

    def evaluate(self, expr: Any = None, binds: Mapping[Any, Any] | None = None) -> Any:
        """The value of an expression; of a function, a Python function on arrays, numbers and tuples of them.

        Args:
          expr: what to evaluate; by default main.
          binds: expressions, or arrays, for free variables.

        Returns:
          Arrays (`.numpy()` gives plain ones); a list of values for a tuple; a ConstructorValue or RefValue (runtime.values) for a data
          type or a reference. Arguments are converted to the types of the parameters.

        Raises:
          RelayError, ValueError, TypeError: as `relayc.compile`.
        """
        if isinstance(expr, GlobalVar):
            expr = self.mod[expr]
        if expr is None:
            expr = self.mod["main"]
        found = as_expr(expr)
        if binds:
            found = bind(found, {var: value if isinstance(value, Expr) else const(value) for var, value in binds.items()})
        module = remove_unused_functions(self.mod, named_functions(found))
        if "main" in module and module["main"] is not found:
            module, found = _without_main(module, found)
        module["main"] = found
        function = python_function(as_module(module, self._params), self._target, self._interprets)
        return function if isinstance(found, Function) else function()


def _without_main(module: RelayModule, expr: Expr) -> tuple[RelayModule, Expr]:
    """A module and an expression in which the function main has another name."""
    name = GlobalVarSupply(module).fresh_global("main")

    def renamed(of: Expr) -> Any:
        return rewritten(of, lambda _, new: name if isinstance(new, GlobalVar) and new.name_hint == "main" else new)

    functions = {name if var.name_hint == "main" else var: renamed(function) for var, function in module.functions.items()}
    return RelayModule(functions, module.type_definitions, module.attrs), renamed(expr)


def create_executor(
    kind: str = "debug",
    mod: RelayModule | None = None,
    device: Any = None,
    target: Any = None,
    params: Params | None = None,
) -> Executor:
    """An executor of a module.

    Args:
      kind: Relay's name of the way to run: "graph", "vm", "aot" or "debug".
      mod: has the functions that are evaluated, and those that they call.
      device: where to run; checked for being one.
      target: what to compile for, as in `relay.build`.
      params: arrays that take the place of parameters of main, by name.

    Raises:
      ValueError: no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"create_executor: expected one of {', '.join(KINDS)}, found {kind!r}")
    if device is not None:
        Device(device)
    return Executor(mod, target, params, kind in ("debug", "interpreter"))


def python_function(module: RelayModule, target: Any, interprets: bool = False) -> Callable[..., Any]:
    """The function main of a module as one on Python's values.

    Where dimensions of parameters are not known, and the program is not right for all sizes, or takes sizes for equal that a call has
    different (one of them may be 1), it is compiled for the sizes of the call.

    Args:
      interprets: whether control that is no function of the dialect is taken step by step, and not compiled.
    """
    params = module["main"].params
    names, is_open = [param.name_hint for param in params], any(_has_unknown_sizes(param.type_annotation) for param in params)
    run: Callable[..., Any] | None = None
    try:
        run = _runnable(module, target, interprets)
    except RelayError:
        if not is_open:
            raise

    @functools.lru_cache(maxsize=64)
    def of_types(types: tuple[Type | None, ...]) -> Callable[..., Any]:
        return _runnable(with_types(module, types), target, interprets)

    def attempt(given: list[Any]) -> Any:
        if run is not None:
            try:
                return run(*given)
            except NoClause:
                raise
            except ValueError:
                if not is_open:
                    raise
        types = tuple(_of_call(param.type_annotation, value) for param, value in zip(params, given, strict=True))
        return of_types(types)(*given)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs)]
        if len(given) != len(names) or len(args) + len(kwargs) != len(names):
            raise TypeError(f"main: expected {len(names)} argument(s) ({', '.join(names)}), found {len(args) + len(kwargs)}")
        try:
            return attempt(given)
        except NoClause as error:
            raise RelayError(str(error)) from None

    return call


def _has_unknown_sizes(type_: Type | None) -> bool:
    return any(isinstance(d, AnySize) for leaf in leaves(type_) if isinstance(leaf, TensorType) for d in leaf.shape)


def _of_call(type_: Type | None, value: Any) -> Type | None:
    """A type with unknown sizes taken from a value. Raises ValueError for a value of another rank."""
    if type_ is None or not _has_unknown_sizes(type_):
        return type_
    if isinstance(type_, TupleType):
        return TupleType([_of_call(field, part) for field, part in zip(type_.fields, value, strict=True)])
    assert isinstance(type_, TensorType)
    shape = tensor(value, None).shape
    if len(shape) != len(type_.shape):
        raise ValueError(f"expected {type_}, found an array of shape {shape}")
    return TensorType([n if isinstance(d, AnySize) else d for d, n in zip(type_.shape, shape, strict=True)], type_.dtype)


def _runnable(module: RelayModule, target: Any, interprets: bool) -> Callable[..., Any]:
    typed = infer_module(direct_calls(module))
    try:
        lowered = lower(typed)
    except NeedsControl:
        return _controlled(typed, target, interprets)
    return on_structures(compiled(lowered, target)["main"], typed["main"])


def _controlled(typed: RelayModule, target: Any, interprets: bool) -> Callable[..., Any]:
    if not interprets and is_native(typed["main"]) and find_backend(target_of(target).kind).makes_control:
        constructors = {var.name_hint: data.constructors for var, data in typed.type_definitions.items()}
        function = compiled(typed, target).native(constructors, array=ndarray, tensor=argument).function("main")

        def call(*args: Any) -> Any:
            found = function(*args)
            return list(found) if isinstance(found, tuple) else found

        return call
    program = ControlProgram(typed, ["main"], kernel_compiler(target))
    machine, types = Machine(program.functions), [param.type_annotation for param in typed["main"].params]
    return lambda *args: machine.run(0, [taken(value, type_) for value, type_ in zip(args, types, strict=True)])
