"""An engine in a separate process that is called at changing sizes."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from relayc.bench.engines import Call
from relayc.bench.worker import Server, timed

CACHES_BYTES = 1 << 26
"""More than the caches of a core hold."""
WARMING = 2
"""Calls at the last size before the first one at a new size, which wake the threads."""


class SizedServer(Server):
    """A server whose inputs can change after the model is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self._dims: dict[str, tuple[int | str, ...]] = {}
        self._buffers: dict[str, np.ndarray] = {}

    def bind(self, inputs: dict[str, np.ndarray]) -> int | None:
        """Takes inputs for the next calls; gives the bytes of the arena that they need."""
        assert self.loaded is not None
        self._call = self.loaded.bind(inputs)
        return self.loaded.arena_bytes(inputs)

    def first_calls(self, inputs: dict[str, np.ndarray], count: int) -> list[float]:
        """Takes inputs as `bind` does, and returns the seconds of the first calls on them, after calls on the previous inputs."""
        assert self.loaded is not None and self._call is not None
        for _ in range(WARMING):
            self._call()
        self._call = self.loaded.bind(inputs)
        return [timed(self._call) for _ in range(count)]

    def prepare(self, dims: dict[str, tuple[int | str, ...]], inputs: dict[str, np.ndarray]) -> None:
        """Takes the dimensions of each input, and flat inputs of which each call gets as much as it needs."""
        self._dims, self._buffers = dims, inputs

    def calls(self, sizes: Sequence[dict[str, int]], callers: int = 1) -> tuple[float, list[float]]:
        """Calls the model at each of some sizes, from several threads that share them; returns the seconds of all calls, and of each.

        Before each call of a single caller other memory is read, so that the contents of the caches do not depend on the previous call.
        """
        seconds = [0.0] * len(sizes)
        other = np.ones(CACHES_BYTES // 8) if callers == 1 else np.zeros(0)

        def run(first: int) -> None:
            for i in range(first, len(sizes), callers):
                call = self._call_at(sizes[i])
                other.sum()
                seconds[i] = timed(call)

        start = time.perf_counter()
        if callers == 1:
            run(0)
            return sum(seconds), seconds
        with ThreadPoolExecutor(callers) as pool:
            list(pool.map(run, range(callers)))
        return time.perf_counter() - start, seconds

    def _call_at(self, sizes: dict[str, int]) -> Call:
        assert self.loaded is not None
        inputs = {}
        for name, dims in self._dims.items():
            shape = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in dims)
            buffer = self._buffers[name]
            if name in sizes:
                inputs[name] = np.full(shape, sizes[name], buffer.dtype)
            else:
                inputs[name] = buffer[: int(np.prod(shape))].reshape(shape)
        return self.loaded.bind(inputs)
