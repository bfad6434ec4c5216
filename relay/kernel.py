"""Compiled functions on values in the structure of the Relay language's types: arrays, and lists for tuples."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm_ffi

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.relay.ast import Constant, Function, FuncType, NDArray, RelayModule, TensorType, TupleType, Type, ndarray
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.ast.types import structured
from relayc.frontend.relay.inference import infer_module
from relayc.pipelines.control.steps import KernelKey
from relayc.relay.build import compiled
from relayc.runtime.native import word_of
from relayc.runtime.native_info import ValueType
from relayc.runtime.tensor import as_array
from relayc.runtime.values import Closure, ConstructorValue, RefValue, with_results

_KEPT_BYTES = 4096
"""Of constants: kernels with larger ones go with their programs."""


def compiled_function(module: RelayModule, target: Any) -> Callable[..., Any]:
    """The function main of a module, compiled. Raises as `relayc.compile`, and when it is called TypeError and ValueError."""
    typed = infer_module(module)
    return on_structures(compiled(typed, target)["main"], typed["main"])


@functools.lru_cache(maxsize=1024)
def _kernel(key: KernelKey, target: str | None) -> Callable[..., Any]:
    return compiled_function(key.module, target)


def kernel_compiler(target: Any) -> Callable[[KernelKey], Callable[..., Any]]:
    """What compiles kernels of control for a target, each once for all programs that have it."""

    def compile_(key: KernelKey) -> Callable[..., Any]:
        large = any(isinstance(node, Constant) and node.data.nbytes > _KEPT_BYTES for node in post_order(key.module["main"]))
        return compiled_function(key.module, target) if large else _kernel(key, target)

    return compile_


def on_structures(function: Callable[..., Any], typed: Function) -> Callable[..., Any]:
    """A compiled function on values in the structure of a function's types."""
    types = [param.type_annotation for param in typed.params]

    def call(*args: Any) -> Any:
        found = function(*(array for value, type_ in zip(args, types, strict=True) for array in _flat(value, type_)))
        return structured(typed.ret_type, map(ndarray, found if isinstance(found, tuple) else (found,)))

    return call


def tensor(value: Any, dtype: str | None) -> NDArray:
    """A number, an array, a constant or what has `numpy()` as an array of an element type; by default of its own."""
    if isinstance(value, tvm_ffi.Tensor):
        value = as_array(value)
    return ndarray(getattr(value, "data", value) if hasattr(value, "checked_type_") else value, dtype)


def _flat(value: Any, type_: Type | None) -> list[np.ndarray]:
    if isinstance(type_, TupleType):
        return [array for part, field in zip(value, type_.fields, strict=True) for array in _flat(part, field)]
    assert isinstance(type_, TensorType)
    if type(value) is NDArray and value.dtype == DTYPES[type_.dtype]:
        return [value.view(np.ndarray)]
    return [tensor(value, type_.dtype).view(np.ndarray)]


def taken(value: Any, type_: Type | None) -> Any:
    """An argument converted for a machine: numbers and arrays become arrays, with the element type of the type if it specifies one."""
    if isinstance(type_, TensorType):
        return tensor(value, type_.dtype)
    if isinstance(type_, FuncType):
        if not callable(value):
            raise TypeError(f"expected {type_}, found a value of type {type(value).__name__}")
        if isinstance(value, Closure):
            return value
        checked = with_results(value, lambda found: taken(found, type_.ret_type), type_)
        is_packed = isinstance(value, tvm_ffi.Function)
        return (lambda *args: checked(*(word_of(a) if isinstance(a, np.ndarray) else a for a in args))) if is_packed else checked
    if isinstance(value, (list, tuple)):
        fields = type_.fields if isinstance(type_, TupleType) else [None] * len(value)
        return [taken(part, field) for part, field in zip(value, fields, strict=True)]
    return value if isinstance(value, (ConstructorValue, RefValue)) else tensor(value, None)


def argument(value: Any, type_: ValueType) -> np.ndarray:
    """An argument of a tensor type as a native function takes it."""
    return tensor(value, type_.name).view(np.ndarray)
