"""How many threads compiled functions use: the OpenMP runtime that they call, and its number of threads."""

import ctypes
import ctypes.util
import functools
import importlib.metadata
import numbers
import threading

_FILES = ("libiomp5.so", "libiomp5.dylib", "libiomp5md.dll")
_OTHERS = ("iomp5", "omp")
_MOST_THREADS = 1 << 15
"""What libiomp5 can start."""


@functools.cache
def openmp_library() -> str:
    """Path of the OpenMP runtime: the one of the intel-openmp package, else an LLVM libomp of the system.

    Raises:
      OSError: there is none.
    """
    try:
        files = importlib.metadata.files("intel-openmp") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in _FILES:
            return str(file.locate().resolve())  # type: ignore[attr-defined] # a Path: the package is installed in a folder
    for name in _OTHERS:
        if path := ctypes.util.find_library(name):
            return path
    raise OSError("no OpenMP runtime found: install intel-openmp (x86-64) or LLVM's libomp")


@functools.cache
def _runtime() -> ctypes.CDLL:
    return ctypes.CDLL(openmp_library())


class _State(threading.local):
    applied: int | None = None


_requested: int | None = None
_state = _State()


def checked_threads(count: int) -> int:
    """`count` as it is.

    Raises:
      TypeError: it is not an integer.
      ValueError: it is less than 1, or more than OpenMP can start.
    """
    if not isinstance(count, numbers.Integral) or isinstance(count, bool):
        raise TypeError(f"expected a number of threads, found {count!r}")
    if not 1 <= count <= _MOST_THREADS:
        raise ValueError(f"expected 1 to {_MOST_THREADS} threads, found {count}")
    return int(count)


def set_num_threads(count: int) -> None:
    """Sets how many threads a call of a compiled function uses, for calls from every thread of the process.

    Raises:
      TypeError, ValueError: see `checked_threads`.
    """
    global _requested
    _requested = checked_threads(count)


def num_threads() -> int:
    """How many threads a call of a compiled function uses: what was set, else the OpenMP runtime's default (OMP_NUM_THREADS, cores)."""
    return _requested if _requested is not None else _runtime().omp_get_max_threads()


def apply_num_threads() -> None:
    """Makes the number that was set hold for the calling thread: OpenMP keeps it for each thread that opens parallel regions."""
    if _requested != _state.applied and _requested is not None:
        _runtime().omp_set_num_threads(_requested)
        _state.applied = _requested
