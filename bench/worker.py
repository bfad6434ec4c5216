"""One engine in a separate process: loads a model, then answers requests and sleeps in between.

A process per engine keeps thread pools, allocators and libraries of the engines apart, and makes the memory of an engine measurable.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from relayc.bench.engines import ENGINES, Loaded
from relayc.bench.peer import Caller
from relayc.processes import ChildProcess, ProcessEnded, program_of

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


class Server(Caller):
    """An engine in a process of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: Loaded | None = None

    def load(self, job: Any) -> dict[str, Any]:
        """Imports the engine, loads the model; gives the seconds of both, the memory after it and the engine's facts."""
        engine = ENGINES[job.engine]
        started = time.perf_counter()
        _import(job.engine)
        imported, base = time.perf_counter(), memory()["resident"]
        self.loaded = engine.load(job)
        self._call = self.loaded.bind(job.inputs)
        seconds = time.perf_counter() - imported
        return {
            "version": engine.version,
            "import_seconds": imported - started,
            "load_seconds": seconds,
            "imported_memory": base,
            "memory": memory(),
            **self.loaded.facts,
        }

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


class Served(ChildProcess):
    """A process whose program is a Caller.

    Raises:
      EngineError: a request failed, or the process has died.
    """

    def request(self, method: str, **arguments: Any) -> Any:
        """What a method of the program returns."""
        try:
            succeeded, value = self.ask((method, arguments))
        except ProcessEnded as error:
            raise EngineError(str(error)) from None
        settle(self._process.pid)
        if not succeeded:
            raise EngineError(value)
        return value

    def outputs(self) -> list[np.ndarray]:
        """The outputs of one call."""
        return self.request("outputs")

    def measure(self, runs: int | None) -> list[float]:
        """Seconds of each of `runs` calls; see `Caller.measure`."""
        return self.request("measure", runs=runs)


class EngineProcess(Served):
    """A process that runs one engine on one model; a context manager that ends it.

    Args:
      job: what `load` of the server takes.
      server: what runs in the process, and answers requests.
    """

    def __init__(self, job: Any, server: type[Server] = Server) -> None:
        name = server.__name__
        super().__init__(program_of(f"from {server.__module__} import {name}; from relayc.bench.peer import serve; serve({name}())"))
        self.job = job

    def load(self) -> dict[str, Any]:
        return self.request("load", job=self.job)

    def memory(self) -> dict[str, int]:
        return self.request("memory")


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
