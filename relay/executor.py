"""`relay.create_executor`: evaluates expressions and functions of a program."""

from collections.abc import Callable, Mapping
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import Expr, Function, GlobalVar, RelayModule, as_expr, bind, const
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.lowering import NeedsControl
from relayc.relay.build import Params, as_module, compiled
from relayc.relay.control import ControlProgram, reachable, taken
from relayc.relay.kernel import on_structures
from relayc.relay.native import NativeProgram, is_native
from relayc.runtime.control import Machine, NoClause
from relayc.runtime.device import Device

KINDS = ("graph", "vm", "aot", "debug", "interpreter")
"""Relay's kinds of executors. All run compiled code; of programs with data types, the last two take the steps of control one by one."""


class Executor:
    """Evaluates what is asked for, in a module.

    Attributes:
      mod: the module.
    """

    def __init__(self, mod: RelayModule | None, target: Any, params: Params | None, interprets: bool = False) -> None:
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
        module = reachable(self.mod, [found])
        module["main"] = found
        function = python_function(as_module(module, self._params), self._target, self._interprets)
        return function if isinstance(found, Function) else function()


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

    Args:
      interprets: whether control that is no function of the dialect is taken step by step, and not compiled.
    """
    typed = infer_module(module)
    main = typed["main"]
    try:
        run = on_structures(compiled(typed, target)["main"], main)
    except NeedsControl:
        run = _controlled(typed, target, interprets)
    names = [param.name_hint for param in main.params]

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs)]
        if len(given) != len(names) or len(args) + len(kwargs) != len(names):
            raise TypeError(f"main: expected {len(names)} argument(s) ({', '.join(names)}), found {len(args) + len(kwargs)}")
        try:
            return run(*given)
        except NoClause as error:
            raise RelayError(str(error)) from None

    return call


def _controlled(typed: RelayModule, target: Any, interprets: bool) -> Callable[..., Any]:
    program = ControlProgram(typed, target)
    if not interprets and is_native(typed):
        return NativeProgram(program)
    machine, types = Machine(program.functions), [param.type_annotation for param in typed["main"].params]
    return lambda *args: machine.run(0, [taken(value, type_) for value, type_ in zip(args, types, strict=True)])
