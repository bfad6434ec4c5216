"""The parameter blob: all parameters of a program in the layouts that kernels request, in one piece of memory."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np

from relayc.dialects.relay.base import RelayError
from relayc.pipelines.tir.strategy.packing import Packing, as_bits
from relayc.runtime.artifact import aligned_empty


@dataclass
class Parameter:
    """A parameter as kernels read it.

    Attributes:
      key: in the parameter table.
      offset, size: its bytes in the blob.
      array: its elements in te dtype; None if the table has none.
      shape: before packing.
      packing: None if it is not packed.
    """

    key: str
    offset: int
    size: int
    array: np.ndarray | None
    shape: tuple[int, ...]
    packing: Packing | None

    def write(self, blob: np.ndarray) -> None:
        """Packs the parameter into its place in the blob."""
        assert self.array is not None
        source = as_bits(self.array).reshape(self.shape)  # a transposed array stays a view
        out = blob[self.offset : self.offset + self.size].view(source.dtype)
        if self.packing is None:
            out.reshape(self.shape)[...] = source
        else:
            self.packing.pack(source, out.reshape(self.packing.shape))


class Blob:
    """The parameter blob, filled in the background by `threads` threads; `result` waits for it.

    Takes ownership of `parameters`: each array is released once it is written, so that weights are not in memory twice for longer than
    needed.

    Raises RelayError if a parameter has no array.
    """

    def __init__(self, parameters: Sequence[Parameter], num_bytes: int, pool: Executor, threads: int) -> None:
        missing = [p.key for p in parameters if p.array is None]
        if missing:
            raise RelayError(f"the parameter table: expected arrays for {', '.join(missing)}, found none")
        self._blob = aligned_empty(num_bytes)
        # Largest last, as it is taken first: no thread is left with a large one at the end.
        self._left = sorted(parameters, key=lambda p: p.size)
        self._workers: list[Future] = [pool.submit(self._work) for _ in range(min(threads, len(parameters)))]

    def _work(self) -> None:
        while True:
            try:
                parameter = self._left.pop()  # atomic
            except IndexError:
                return
            parameter.write(self._blob)

    def result(self) -> np.ndarray:
        """The blob, once it is complete."""
        for worker in self._workers:
            worker.result()
        return self._blob
