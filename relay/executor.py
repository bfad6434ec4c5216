"""`relay.create_executor`: evaluates expressions and functions of a program."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.relay.ast import Function, GlobalVar, RelayModule, TensorType, TupleType, Type, as_expr, bind, ndarray
from relayc.frontend.relay.inference import infer_module
from relayc.relay.build import Params, as_module, compiled
from relayc.runtime.device import Device
from relayc.runtime.function import Function as Compiled

KINDS = ("graph", "vm", "aot", "debug", "interpreter")
"""Relay's kinds of executors; here all run the same code."""


class Executor:
    """Evaluates what is asked for, in a module.

    Attributes:
      mod: the module.
    """

    def __init__(self, mod: RelayModule | None, target: Any, params: Params | None) -> None:
        self.mod = mod or RelayModule()
        self._target, self._params = target, params

    def evaluate(self, expr: Any = None, binds: Mapping[Any, Any] | None = None) -> Any:
        """The value of an expression; of a function, a Python function on arrays, numbers and tuples of them.

        Args:
          expr: what to evaluate; by default main.
          binds: expressions for free variables.

        Returns:
          Arrays (`.numpy()` gives plain ones); a list of values for a tuple. Arguments are converted to the types of the parameters.

        Raises:
          RelayError, ValueError, TypeError: as `relayc.compile`.
        """
        if isinstance(expr, GlobalVar):
            expr = self.mod[expr]
        if expr is None:
            expr = self.mod["main"]
        found = as_expr(expr)
        if binds:
            found = bind(found, {var: as_expr(value) for var, value in binds.items()})
        module = self.mod.shallow_copy()
        module["main"] = found
        typed = infer_module(as_module(module, self._params))
        main = typed["main"]
        function = _python_function(compiled(typed, self._target)["main"], main)
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
    return Executor(mod, target, params)


def _python_function(compiled_main: Compiled, main: Function) -> Callable[..., Any]:
    """A compiled function on values in the structure of the function's types."""
    names = [param.name_hint for param in main.params]
    types = [param.type_annotation for param in main.params]

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs)]
        if len(given) != len(names) or len(args) + len(kwargs) != len(names):
            raise TypeError(f"main: expected {len(names)} argument(s) ({', '.join(names)}), found {len(args) + len(kwargs)}")
        flat = [array for value, type_ in zip(given, types, strict=True) for array in _flat(value, type_)]
        found = compiled_main(*flat)
        return _structured(main.ret_type, list(found) if isinstance(found, tuple) else [found])

    return call


def _flat(value: Any, type_: Type | None) -> list[np.ndarray]:
    if isinstance(type_, TupleType):
        return [array for part, field in zip(value, type_.fields, strict=True) for array in _flat(part, field)]
    assert isinstance(type_, TensorType)
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value, DTYPES[type_.dtype])]


def _structured(type_: Type | None, flat: list[Any]) -> Any:
    if isinstance(type_, TupleType):
        return [_structured(field, flat) for field in type_.fields]
    return ndarray(flat.pop(0))
