"""Compiled functions on values in the structure of the Relay language's types: arrays, and lists for tuples."""

from collections.abc import Callable
from typing import Any

import numpy as np

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.relay.ast import Function, NDArray, RelayModule, TensorType, TupleType, Type, ndarray
from relayc.frontend.relay.inference import infer_module
from relayc.relay.build import compiled


def compiled_function(module: RelayModule, target: Any) -> Callable[..., Any]:
    """The function main of a module, compiled. Raises as `relayc.compile`, and when it is called TypeError and ValueError."""
    typed = infer_module(module)
    return on_structures(compiled(typed, target)["main"], typed["main"])


def on_structures(function: Callable[..., Any], typed: Function) -> Callable[..., Any]:
    """A compiled function on values in the structure of a function's types."""
    types = [param.type_annotation for param in typed.params]

    def call(*args: Any) -> Any:
        found = function(*(array for value, type_ in zip(args, types, strict=True) for array in _flat(value, type_)))
        return _structured(typed.ret_type, list(found) if isinstance(found, tuple) else [found])

    return call


def tensor(value: Any, dtype: str | None) -> NDArray:
    """A number, an array, a constant or what has `numpy()` as an array of an element type; by default of its own."""
    return ndarray(getattr(value, "data", value) if not isinstance(value, np.ndarray) and hasattr(value, "checked_type_") else value, dtype)


def _flat(value: Any, type_: Type | None) -> list[np.ndarray]:
    if isinstance(type_, TupleType):
        return [array for part, field in zip(value, type_.fields, strict=True) for array in _flat(part, field)]
    assert isinstance(type_, TensorType)
    if type(value) is NDArray and value.dtype == DTYPES[type_.dtype]:
        return [value.view(np.ndarray)]
    return [tensor(value, type_.dtype).view(np.ndarray)]


def _structured(type_: Type | None, flat: list[Any]) -> Any:
    if isinstance(type_, TupleType):
        return [_structured(field, flat) for field in type_.fields]
    return ndarray(flat.pop(0))
