"""Python exceptions through compiled code: the caller of a program gets the exception that a function called by the program raised.

tvm-ffi carries an error through code of other languages as a kind and a message, of which it makes a new exception: of a class that is
registered for the kind, else RuntimeError. Arguments, attributes, cause and frames of the exception are lost on the way. So a function
that programs call leaves its exception with the thread, and the caller of the program, in the same thread, takes the exception back where
the error that arrives is the one that stands for the exception.
"""

import threading
from collections.abc import Callable
from typing import Any

import tvm_ffi

# Raised by compiled code; tvm-ffi does not know this class.
tvm_ffi.register_error("RecursionError", RecursionError)


class _Raised(threading.local):
    """The exception that a function called by a program raised last in this thread, until a caller takes it."""

    exception: BaseException | None = None


_raised = _Raised()


def keeping_exceptions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function of positional arguments so that `reraise_original` finds its exceptions."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as exception:
            if not hasattr(exception, "__tvm_ffi_error__"):
                exception.__tvm_ffi_error__ = _error(exception)  # type: ignore[attr-defined] # any exception takes attributes
            _raised.exception = exception
            raise

    return call


def _error(exception: BaseException) -> tvm_ffi.core.Error:
    """The tvm-ffi error of an exception. (tvm-ffi uses the error in the attribute `__tvm_ffi_error__`, if there is one.)"""
    error = tvm_ffi.convert(exception)
    try:
        error.py_error()
    except Exception:  # not an Exception, which is converted to no error, or of a registered class that a message is not enough for
        return tvm_ffi.core.Error("RuntimeError", str(exception), "")
    return error


def reraise_original(error: BaseException) -> None:
    """Raises the exception that `error`, raised by a call of a packed function, represents; returns if `error` is itself the original."""
    exception, carried = _raised.exception, getattr(error, "__tvm_ffi_error__", None)
    if exception is None or carried is None or not carried.same_as(exception.__tvm_ffi_error__):  # type: ignore[attr-defined] # as set above
        return
    _raised.exception = None
    context = exception.__context__
    try:
        raise exception
    finally:
        exception.__context__ = context  # not `error`, which the caller is handling
        del exception, error  # which would refer to their own frames
