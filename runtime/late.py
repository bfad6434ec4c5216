"""Outputs of sizes that a program finds out while it runs: it gives their memory, and the sizes."""

import ctypes
import weakref
from collections.abc import Mapping, Sequence

import numpy as np

from relayc.runtime.artifact import ProgramInfo, numpy_dtype

_FREE = ctypes.CDLL(None).free
_FREE.argtypes, _FREE.restype = [ctypes.c_void_p], None


class Late:
    """The late outputs of a program.

    Attributes:
      positions: which outputs they are.
    """

    def __init__(self, program: ProgramInfo) -> None:
        self.positions = program.late
        self._specs = [program.outputs[i] for i in program.late]
        self._defined = program.defined

    def place(self) -> np.ndarray:
        """Where a call writes the addresses of the outputs and the sizes that it found out."""
        return np.zeros(len(self._specs) + len(self._defined), np.int64)

    def results(self, others: Sequence[np.ndarray], place: np.ndarray, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """All outputs of a call in order: those that it has given, which are freed when nobody holds them any more, among the others."""
        addresses, found = place[: len(self._specs)].tolist(), place[len(self._specs) :].tolist()
        sizes = {**sizes, **dict(zip(self._defined, found, strict=True))}
        results = list(others)
        for position, spec, address in zip(self.positions, self._specs, addresses, strict=True):
            dtype, shape = numpy_dtype(spec.dtype), spec.at(sizes)
            num_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            memory = (ctypes.c_uint8 * num_bytes).from_address(address)
            weakref.finalize(memory, _FREE, address)
            results.insert(position, np.ndarray(shape, dtype, memoryview(memory)) if num_bytes else np.empty(shape, dtype))
        return results
