"""How many threads compiled functions use: the OpenMP runtime that they call, and a share of the cores for each call.

Every thread that calls a compiled function leads a team of OpenMP threads of its own. A call alone gets as many threads as were asked for;
calls that run at the same time share the cores: a call that begins as one of k gets the k-th part of them, at least one. Results do not
depend on it: kernels divide their work into tiles that are the same for every number of threads.
"""

import _thread
import contextlib
import ctypes
import ctypes.util
import functools
import importlib.metadata
import numbers
import os
import threading

_FILES = ("libiomp5.so", "libiomp5.dylib", "libiomp5md.dll")
_OTHERS = ("iomp5", "omp")
_MOST_THREADS = 1 << 12
"""More than any machine has processors: libiomp5 takes 32768, and systems do not start as many."""

_BLOCK_MILLISECONDS = 1
"""How long a thread of a team waits for more work by spinning before it sleeps, where the environment does not say. OpenMP's default of
200 ms takes the core from whoever runs between two calls; between two kernels of a call it is microseconds."""
_WAITING_VARIABLES = ("KMP_BLOCKTIME", "KMP_LIBRARY", "OMP_WAIT_POLICY")
_TORCH = "libtorch_cpu.so"
_PAUSE_SOFT = 1
"""omp_pause_soft: OpenMP keeps its settings."""
_COUNT_VARIABLE = "RELAYC_NUM_THREADS"


def usable_cpus() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def loaded_library(name: str) -> str | None:
    """Path of a shared library loaded in this process; None if it is not loaded, or the system does not report it."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            return next((line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.rstrip("\n").endswith(f"/{name}")), None)
    except OSError:
        return None


@functools.cache
def openmp_library() -> str:
    """Path of the OpenMP runtime: one that is already loaded, otherwise the one of the intel-openmp package, otherwise a system LLVM
    libomp.

    Raises:
      OSError: there is none.
    """
    if path := loaded_library(_FILES[0]):
        return path  # two of them in one process refuse to work
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
    raise OSError("no OpenMP runtime found: install intel-openmp or LLVM's libomp")


@functools.cache
def _runtime() -> ctypes.CDLL:
    return ctypes.CDLL(openmp_library())


@functools.cache
def _torchs_runtime() -> ctypes.CDLL | None:
    """The OpenMP runtime of torch if it is not relayc's and can pause its threads; otherwise None."""
    path = loaded_library(_TORCH)
    # The search for a symbol includes the libraries that torch's library is linked with.
    library = None if path is None else ctypes.CDLL(path)
    is_other = hasattr(library, "omp_pause_resource_all") and not hasattr(library, "kmp_set_blocktime")
    return library if is_other else None


def pause_torch() -> None:
    """Ends torch's worker threads of the calling thread; torch starts new workers when it needs them.

    A compiled call between operators of torch needs the cores on which idle workers of GNU's OpenMP spin for milliseconds. Ending and
    restarting the workers takes 110 us on an Intel CPU with two cores; without workers this function takes 0.3 us.
    """
    runtime = _torchs_runtime()
    if runtime is not None:
        runtime.omp_pause_resource_all(_PAUSE_SOFT)


@functools.cache
def _default() -> int:
    """RELAYC_NUM_THREADS, otherwise OpenMP's initial setting: OMP_NUM_THREADS, or all cores."""
    text = os.environ.get(_COUNT_VARIABLE, "")
    if not text:
        return startable_threads(_runtime().omp_get_max_threads())
    try:
        return startable_threads(int(text))
    except ValueError as error:
        raise ValueError(f"{_COUNT_VARIABLE}: expected a number of threads, 1 to {_MOST_THREADS}, found {text!r}: {error}") from None


class _Caller(threading.local):
    """The settings of parallel regions opened by this thread; None if nothing was set."""

    count: int | None = None


_requested: int | None = None
_caller = _Caller()
_running: list[None] = []
"""An element for each call that runs now: appending and popping are atomic, so no lock is needed."""


def _after_fork() -> None:
    # The child process has only this thread, and an OpenMP runtime that starts anew.
    global _caller
    _caller = _Caller()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def checked_threads(count: int) -> int:
    """A number of threads that a target plans for, as it is: it may be of another machine.

    Raises:
      TypeError: it is not an integer.
      ValueError: it is less than 1, or more than any machine has processors.
    """
    if not isinstance(count, numbers.Integral) or isinstance(count, bool):
        raise TypeError(f"expected a number of threads, found {count!r}")
    if not 1 <= count <= _MOST_THREADS:
        raise ValueError(f"expected 1 to {_MOST_THREADS} threads, found {count}")
    return int(count)


def startable_threads(count: int) -> int:
    """A number of threads that calls are to run on, as it is.

    Raises:
      TypeError, ValueError: see `checked_threads`.
      ValueError: the system does not let this process start as many.
    """
    count = checked_threads(count)
    if count > usable_cpus() and (most := _startable(count)) < count:
        raise ValueError(f"expected at most {most} threads, as many as the system lets this process start, found {count}")
    return count


@functools.cache
def _startable(count: int) -> int:
    """How many threads the system starts, `count` at most: OpenMP ends the process where it gets fewer than it wants. Limits of users,
    control groups, memory maps and memory all play a part, so they are started: 0.2 ms each."""
    gate, done, started = threading.Lock(), threading.Semaphore(0), 0

    def wait() -> None:
        with gate:
            done.release()

    with gate, contextlib.suppress(RuntimeError):
        for _ in range(count):
            _thread.start_new_thread(wait, ())
            started += 1
    for _ in range(started):
        done.acquire()
    return started


def set_num_threads(count: int) -> None:
    """Sets how many threads a call of a compiled function uses, for calls from every thread of the process.

    Calls that run at the same time get less: together no more than there are cores, as long as each has one.

    Raises:
      TypeError: `count` is not an integer.
      ValueError: it is less than 1, or more than any machine has, or than the system lets this process start.
    """
    global _requested
    _requested = startable_threads(count)


def num_threads() -> int:
    """How many threads a call of a compiled function uses: what was set, else RELAYC_NUM_THREADS, OMP_NUM_THREADS or all cores.

    Raises:
      ValueError: RELAYC_NUM_THREADS is no number of threads.
    """
    return _requested if _requested is not None else _default()


class Team:
    """A context in which the calling thread runs compiled code; entering it returns the number of its threads. It may be entered many
    times, also from several threads at once.

    Attributes:
      count: number of threads if no other call runs; None for `num_threads()`.
    """

    __slots__ = ("count",)

    def __init__(self, count: int | None = None) -> None:
        self.count = count

    def __enter__(self) -> int:
        return self.enter()

    def __exit__(self, *_: object) -> None:
        self.leave()

    def enter(self) -> int:
        """Enters the context without the cost of a `with` statement; `leave` exits it."""
        wanted = self.count or _requested or _default()
        _running.append(None)
        sharing = len(_running)
        if sharing > 1:
            wanted = max(1, min(wanted, max(wanted, usable_cpus()) // sharing))
        if wanted != _caller.count:
            _apply(wanted)
        return wanted

    def leave(self) -> None:
        if _running:  # empty if the process was forked during the call
            _running.pop()


class Within(Team):
    """The team of what is called by code that has entered a team: it has the threads of its caller."""

    __slots__ = ()

    def enter(self) -> int:
        """Nothing."""
        return 0

    def leave(self) -> None:
        """Nothing."""


def _apply(count: int) -> None:
    """Sets the number of threads for the calling thread: OpenMP keeps it for each thread that opens parallel regions."""
    if _caller.count is None and not any(os.environ.get(name) for name in _WAITING_VARIABLES):
        _runtime().kmp_set_blocktime(_BLOCK_MILLISECONDS)
    _runtime().omp_set_num_threads(count)
    _caller.count = count
