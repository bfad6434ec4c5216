"""Packed functions by global name, shared with every tvm-ffi program of the process."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import tvm_ffi

from relayc.runtime.exceptions import keeping_exceptions
from relayc.runtime.tensor import borrowed

F = TypeVar("F", bound=Callable[..., Any])


@overload
def register_func(name: str, func: F, override: bool = ...) -> F: ...
@overload
def register_func(name: str, func: None = ..., override: bool = ...) -> Callable[[F], F]: ...


def register_func(name: str, func: F | None = None, override: bool = False) -> F | Callable[[F], F]:
    """Registers a Python function as a packed function under a global name, at once or as a decorator.

        @relayc.register_func("my.add_one")
        def add_one(x): ...

    Tensors on the CPU arrive as numpy arrays on their memory (elements of less than a byte as uint8, their bits), tensors on other
    devices as tvm_ffi.Tensor. A program passes destinations: it calls the function with its inputs and then its outputs, which the function
    writes (`y[...] = x + 1`); what the function returns is dropped, and inputs must not be written. Arrays that a program passes are valid
    during the call only: copy what is to be kept.

    An exception of the function arrives as it is, the same object, at who has called the program by `module["f"](...)`. Other callers get
    what tvm-ffi makes of the exception: one of the same class and message where tvm-ffi knows the class, else RuntimeError.

    Raises:
      ValueError: the name is taken and `override` is false.
    """

    def register(function: F) -> F:
        try:
            tvm_ffi.register_global_func(name, _packed(function), override=override)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"global function {name!r}: expected a free name or override=True, found it registered") from error
        return function

    return register if func is None else register(func)


def _packed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is registered for a Python function."""
    if isinstance(function, tvm_ffi.Function):
        return function
    return keeping_exceptions(lambda *arguments: function(*map(_received, arguments)))


def _received(value: Any) -> Any:
    # A tensor passed by a program does not own its memory; tvm-ffi would export it through a null pointer.
    return borrowed(value) if isinstance(value, tvm_ffi.Tensor) and value.device.type == "cpu" else value


@overload
def get_global_func(name: str) -> tvm_ffi.Function: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> tvm_ffi.Function | None: ...


def get_global_func(name: str, allow_missing: bool = False) -> tvm_ffi.Function | None:
    """The packed function registered under a global name, from Python or C++; None if it is missing and `allow_missing` is set.

    Raises:
      ValueError: there is none of this name.
    """
    function = tvm_ffi.get_global_func(name, allow_missing=True)
    if function is None and not allow_missing:
        raise ValueError(f"no global function is registered under {name!r}")
    return function


def register_host_func(name: str) -> Callable[[F], F]:
    """Decorator: as `register_func`, for functions of the runtime that take the tensors as they are, which is quicker."""

    def register(function: F) -> F:
        tvm_ffi.register_global_func(name, keeping_exceptions(function), override=True)
        return function

    return register
