"""One engine in a separate process: loads a model, then answers requests over a pipe and sleeps in between.

A process per engine keeps thread pools, allocators and libraries of the engines apart, and makes the memory of an engine measurable.
Requests are (method, arguments) of `Server`; answers are (True, value) or (False, message of the error).
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from relayc.bench.engines import ENGINES, Call, Job, Loaded

SECONDS = 0.3
"""Time of the calls of one round where their number is not given."""
MOST_RUNS = 300
FEWEST_RUNS = 3

_SETTLED, _PAUSE, _PATIENCE, _BLIND_PAUSE = 1e-3, 0.03, 3.0, 0.3
"""A process is idle when it takes less than _SETTLED seconds of CPU time in _PAUSE seconds. The wait is at most _PATIENCE seconds, and
_BLIND_PAUSE if the system does not report CPU time."""


class EngineError(Exception):
    """An engine cannot load or run a model; the message is the reason in one line."""


class Failing(Protocol):
    """A result with the error why it has no numbers."""

    error: str | None


@contextmanager
def errors_of(result: Failing) -> Iterator[None]:
    """Records an error of an engine inside the context in its result."""
    try:
        yield
    except EngineError as error:
        result.error = str(error)


def memory() -> dict[str, int]:
    """Bytes of this process that are resident: now, of that not backed by files, and at most so far."""
    try:
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        names = {"resident": "VmRSS", "anonymous": "RssAnon", "peak": "VmHWM"}
        return {name: int(status[key].split()[0]) * 1024 for name, key in names.items()}
    except (OSError, KeyError):
        # Not the first choice on Linux: there ru_maxrss of a new process starts with the value of its parent.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return {"resident": peak, "anonymous": peak, "peak": peak}


class Server:
    """What the process does on request."""

    def __init__(self) -> None:
        self.loaded: Loaded | None = None
        self.call: Call | None = None

    def load(self, job: Job) -> dict[str, Any]:
        """Imports the engine, loads the model; gives the seconds of both, the memory after it and the engine's facts."""
        engine = ENGINES[job.engine]
        started = time.perf_counter()
        _import(job.engine)
        imported, base = time.perf_counter(), memory()["resident"]
        self.loaded = engine.load(job)
        self.call = self.loaded.bind(job.inputs)
        seconds = time.perf_counter() - imported
        return {
            "version": engine.version,
            "import_seconds": imported - started,
            "load_seconds": seconds,
            "imported_memory": base,
            "memory": memory(),
            **self.loaded.facts,
        }

    def outputs(self) -> list[np.ndarray]:
        """The outputs of one call."""
        assert self.call is not None
        return [np.array(value) for value in self.call()]

    def measure(self, runs: int | None) -> list[float]:
        """Seconds of each of `runs` calls (as many as fit in SECONDS by default), after calls that are not counted: they wake the
        threads and reload the caches after another engine."""
        call = self.call
        assert call is not None
        call()
        estimate = timed(call)
        if runs is None:
            runs = min(MOST_RUNS, max(FEWEST_RUNS, int(SECONDS / max(estimate, 1e-9))))
        return [timed(call) for _ in range(runs)]

    def memory(self) -> dict[str, int]:
        return memory()


def _import(engine: str) -> None:
    """Imports the packages of an engine, so that the time to load a model does not include the imports."""
    if engine == "relayc":
        import relayc.frontend.onnx
        import relayc.pipelines.driver.build  # noqa: F401 (imported for the time it takes)
    else:
        __import__(ENGINES[engine].module)


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def serve(connection: Connection, kind: type[Server]) -> None:
    """The process: answers requests until the pipe is closed."""
    server = kind()
    while True:
        try:
            method, arguments = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer = (True, getattr(server, method)(*arguments))
        except Exception as error:  # whatever an engine raises becomes its result
            answer = (False, " ".join(f"{type(error).__name__}: {error}".split())[:500])
        connection.send(answer)


_Process = TypeVar("_Process", bound="EngineProcess")


class EngineProcess:
    """A process that runs one engine on one model; a context manager that ends it.

    Raises:
      EngineError: a request failed, or the process has died.
    """

    server: type[Server] = Server
    """What runs in the process; its `load` takes the job."""

    def __init__(self, job: Any) -> None:
        self.job = job
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self.server), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self: _Process) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def load(self) -> dict[str, Any]:
        return self._request("load", self.job)

    def outputs(self) -> list[np.ndarray]:
        return self._request("outputs")

    def measure(self, runs: int | None) -> list[float]:
        return self._request("measure", runs)

    def memory(self) -> dict[str, int]:
        return self._request("memory")

    def _request(self, method: str, *arguments: Any) -> Any:
        try:
            self._connection.send((method, arguments))
            succeeded, value = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=5)
            raise EngineError(f"the process ended with code {self._process.exitcode}") from None
        settle(self._process.pid)
        if not succeeded:
            raise EngineError(value)
        return value


def settle(pid: int | None) -> None:
    """Waits until a process is idle: thread pools spin for a while after a call, and would take the cores from who is measured next."""
    deadline = time.monotonic() + _PATIENCE
    before = _cpu_seconds(pid)
    while before is not None and time.monotonic() < deadline:
        time.sleep(_PAUSE)
        now = _cpu_seconds(pid)
        if now is not None and now - before < _SETTLED:
            return
        before = now
    if before is None:
        time.sleep(_BLIND_PAUSE)


def _cpu_seconds(pid: int | None) -> float | None:
    """CPU time of the threads of a process; None if the system does not report it."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return total / 1e9
