"""A revision of relayc in a process of its own interpreter: the program that `bench revisions` runs.

The program may run in another environment, with another revision of relayc or none: it imports nothing from this package, and uses only
public names of relayc that all revisions have. relayc.bench.worker is the other end.

Requests are (method, arguments) of a `Caller`; answers are (True, value) or (False, message of the error).
"""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

SECONDS = 0.3
"""Time of the calls of one round where their number is not given."""
MOST_RUNS = 300
FEWEST_RUNS = 3


def clock_of(threads: int) -> Callable[[], float]:
    """The clock for calls on some threads: CPU time of a single thread, which other processes do not change, else elapsed time."""
    return time.thread_time if threads == 1 else time.perf_counter


class Caller:
    """What a program does on request: calls that are prepared, such as those of a model."""

    def __init__(self) -> None:
        self._call: Callable[[], Any] | None = None
        self._clock = time.perf_counter

    def outputs(self) -> list[np.ndarray]:
        """The outputs of one call."""
        assert self._call is not None
        found = self._call()
        return [np.asarray(value) for value in (found if isinstance(found, (tuple, list)) else (found,))]

    def measure(self, runs: int | None) -> list[float]:
        """Seconds of each of `runs` calls (None: as many as fit in SECONDS), after two calls that are not counted: they wake the threads
        and reload the caches after another process."""
        assert self._call is not None
        self._call()
        estimate = self._timed()
        if runs is None:
            runs = min(MOST_RUNS, max(FEWEST_RUNS, int(SECONDS / max(estimate, 1e-9))))
        return [self._timed() for _ in range(runs)]

    def _timed(self) -> float:
        assert self._call is not None
        start = self._clock()
        self._call()
        return self._clock() - start


class Peer(Caller):
    """Calls of a model that this relayc compiles."""

    def start(self) -> dict[str, Any]:
        """Imports relayc; returns its version and folder, and the Python version."""
        import relayc

        # Much of the compiler is imported where a model is first compiled, which no measured compilation is to pay for: a model is refused
        # only after that.
        with contextlib.suppress(Exception):
            relayc.compile(b"no model", cache=False)
        return {"version": relayc.__version__, "package": relayc.__path__[0], "python": sys.version.split()[0]}

    def load(
        self, model: str, inputs: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int]], threads: int, precision: str
    ) -> dict[str, Any]:
        """Compiles a model for calls on inputs, by name; returns the seconds and the facts from relayc."""
        import relayc

        relayc.set_num_threads(threads)
        started = time.perf_counter()
        target = relayc.Target("cpu", num_threads=threads)
        module = relayc.compile(model, target=target, shapes=shapes or None, cache=False, precision=precision)
        seconds = time.perf_counter() - started
        main, arguments = module["main"], [inputs[name] for name in module.input_names]
        self._call = lambda: main(*arguments)
        return {
            "load_seconds": seconds,
            "stages": dict(module.stats),
            "kernels": len(module.kernels),
            "steps": len(module.step_kernels),
            "precision": module.precision,
            "threads": relayc.num_threads(),
        }


def serve(peer: Caller) -> None:
    """The process: answers requests until the socket is closed whose file descriptor is the last argument."""
    with Connection(int(sys.argv[-1])) as connection, contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            method, arguments = connection.recv()
            try:
                answer = True, getattr(peer, method)(**arguments)
            except Exception as error:  # whatever an engine raises becomes its result
                answer = False, " ".join(f"{type(error).__name__}: {error}".split())[:500]
            connection.send(answer)


if __name__ == "__main__":
    serve(Peer())
