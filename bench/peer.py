"""A revision of relayc in a process of its own interpreter: the program that `bench revisions` runs, and the files of exchanged arrays.

The program may run in another environment, with another revision of relayc or none: it imports nothing from this package, and uses only
public names of relayc that all revisions have. relayc.bench.peer_process is the other end.

Requests arrive on stdin and answers are written to stdout, each a line of JSON: {"method": ..., "arguments": {...}} of `Peer`, and
{"value": ...} or {"error": ...}. Output of libraries goes to stderr.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def save_arrays(path: "str | os.PathLike[str]", arrays: Sequence[np.ndarray]) -> list[str]:
    """Writes arrays as an .npz file and returns the names of their dtypes; arrays of dtypes that numpy lacks (bfloat16) are written as
    their bits."""
    stored = [a if np.dtype(a.dtype.str) == a.dtype else a.view(f"u{a.dtype.itemsize}") for a in arrays]
    with Path(path).open("wb") as file:
        np.savez(file, *stored)
    return [a.dtype.name for a in arrays]


def load_arrays(path: "str | os.PathLike[str]", dtypes: Sequence[str]) -> list[np.ndarray]:
    """Arrays that `save_arrays` has written; relayc must be imported, with the dtypes that numpy lacks."""
    with np.load(path, allow_pickle=False) as file:
        return [file[f"arr_{i}"].view(np.dtype(name)) for i, name in enumerate(dtypes)]


def clock_of(threads: int) -> Callable[[], float]:
    """The clock for calls on some threads: CPU time of a single thread, which other processes do not change, else elapsed time."""
    return time.thread_time if threads == 1 else time.perf_counter


class Peer:
    """What the program does on request."""

    def __init__(self) -> None:
        self._call: Callable[[], Any] | None = None
        self._clock = time.perf_counter

    def start(self) -> dict[str, Any]:
        """Imports relayc; returns its version and folder, and the Python version."""
        import relayc

        # Much of the compiler is imported where a model is first compiled, which no measured compilation is to pay for: a model is refused
        # only after that.
        with contextlib.suppress(Exception):
            relayc.compile(b"no model", cache=False)
        return {"version": relayc.__version__, "package": relayc.__path__[0], "python": sys.version.split()[0]}

    def load(
        self,
        model: str,
        inputs: str,
        names: Sequence[str],
        dtypes: Sequence[str],
        shapes: Mapping[str, Sequence[int]],
        threads: int,
        precision: str,
    ) -> dict[str, Any]:
        """Compiles a model for calls on inputs from a file of `save_arrays`, by name; returns the seconds and the facts from relayc."""
        import relayc

        arrays = dict(zip(names, load_arrays(inputs, dtypes), strict=True))
        relayc.set_num_threads(threads)
        started = time.perf_counter()
        target = relayc.Target("cpu", num_threads=threads)
        module = relayc.compile(model, target=target, shapes=shapes or None, cache=False, precision=precision)
        seconds = time.perf_counter() - started
        main, arguments = module["main"], [arrays[name] for name in module.input_names]
        self._call = lambda: main(*arguments)
        return {
            "load_seconds": seconds,
            "stages": dict(module.stats),
            "kernels": len(module.kernels),
            "steps": len(module.step_kernels),
            "precision": module.precision,
            "threads": relayc.num_threads(),
        }

    def outputs(self, path: str) -> list[str]:
        """Writes the outputs of one call with `save_arrays`."""
        assert self._call is not None
        found = self._call()
        return save_arrays(path, [np.asarray(value) for value in (found if isinstance(found, tuple) else (found,))])

    def measure(self, runs: int | None, seconds: float, fewest: int, most: int) -> list[float]:
        """Seconds of each of `runs` calls (None: as many as fit in `seconds`, `fewest` to `most`), after two calls that are not counted:
        they wake the threads and reload the caches after the other revision."""
        assert self._call is not None
        self._call()
        estimate = self._timed()
        if runs is None:
            runs = min(most, max(fewest, int(seconds / max(estimate, 1e-9))))
        return [self._timed() for _ in range(runs)]

    def _timed(self) -> float:
        assert self._call is not None
        start = self._clock()
        self._call()
        return self._clock() - start


def serve(peer: Peer) -> None:
    """Answers requests until stdin ends."""
    # Separate descriptors, so that no output, of Python or of libraries, mixes with the answers.
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for line in requests:
        request = json.loads(line)
        try:
            answer = {"value": getattr(peer, request["method"])(**request["arguments"])}
        except Exception as error:  # whatever a revision raises becomes its result
            answer = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    try:
        serve(Peer())
    except KeyboardInterrupt:
        sys.exit(130)
