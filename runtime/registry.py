"""Packed functions by global name, shared with every tvm-ffi program of the process."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import tvm_ffi

F = TypeVar("F", bound=Callable[..., Any])


@overload
def register_func(name: str, func: F, override: bool = ...) -> F: ...
@overload
def register_func(name: str, func: None = ..., override: bool = ...) -> Callable[[F], F]: ...


def register_func(name: str, func: F | None = None, override: bool = False) -> F | Callable[[F], F]:
    """Registers a Python function as a packed function under a global name, at once or as a decorator.

        @relayc.register_func("my.add_one")
        def add_one(x): ...

    Tensors arrive as tvm_ffi.Tensor, which `numpy.from_dlpack` reads without a copy.

    Raises:
      ValueError: the name is taken and `override` is false.
    """

    def register(function: F) -> F:
        try:
            tvm_ffi.register_global_func(name, function, override=override)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"global function {name!r}: expected a free name or override=True, found it registered") from error
        return function

    return register if func is None else register(func)


@overload
def get_global_func(name: str) -> tvm_ffi.Function: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> tvm_ffi.Function | None: ...


def get_global_func(name: str, allow_missing: bool = False) -> tvm_ffi.Function | None:
    """The packed function registered under a global name, from Python or from C++; None where it is missing and that is allowed.

    Raises:
      ValueError: there is none of this name.
    """
    function = tvm_ffi.get_global_func(name, allow_missing=True)
    if function is None and not allow_missing:
        raise ValueError(f"no global function is registered under {name!r}")
    return function
