"""Outputs whose sizes a program computes while it runs: the program returns their memory and sizes."""

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
        """The array to which a call writes the addresses of late outputs and the computed sizes."""
        return np.zeros(len(self._specs) + len(self._defined), np.int64)

    def results(self, others: Sequence[np.ndarray], place: np.ndarray, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """All outputs of a call in order, the late ones among `others`; late outputs are freed when they are no longer referenced."""
        return self.among(others, place, sizes, _array_at)

    def among(
        self, others: Sequence[Any], place: np.ndarray, sizes: Mapping[str, int], made: Callable[[int, tuple[int, ...], str], Any]
    ) -> list[Any]:
        """As `results`; `made` creates the tensor from an address, a shape and a dtype."""
        addresses, found = place[: len(self._specs)].tolist(), place[len(self._specs) :].tolist()
        sizes = {**sizes, **dict(zip(self._defined, found, strict=True))}
        results = list(others)
        for position, spec, address in zip(self.positions, self._specs, addresses, strict=True):
            results.insert(position, made(address, spec.at(sizes), spec.dtype))
        return results


def _array_at(address: int, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The array at an address of the C library's heap, which is freed with it."""
    dtype = numpy_dtype(name)
    num_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = (ctypes.c_uint8 * num_bytes).from_address(address)
    weakref.finalize(memory, _FREE, address)
    return np.ndarray(shape, dtype, memoryview(memory)) if num_bytes else np.empty(shape, dtype)
