"""Memory of results that is used again when nobody holds the result any more.

Pages that are new to a process are expensive: the system clears each one when it is first written, which takes several times as long as a
kernel takes to write it. The C library gives large memory back to the system and gets it anew, so that a program which returns a cache of
megabytes at every call would pay that at every call.
"""

import time
from typing import Any

import numpy as np

from relayc.runtime.arenas import IDLE_SECONDS, room_for
from relayc.runtime.artifact import aligned_array, aligned_empty

_LEAST_BYTES = 1 << 17
"""From which size on memory is kept: the C library keeps smaller memory itself."""
_MOST_BYTES = 1 << 28
"""Up to which size."""
_MOST_KEPT = 4
"""How many pieces of memory are kept for a result."""

_Block = tuple[np.ndarray, dict[str, Any]]
"""Memory, and what it is in numpy's array interface."""


class _Lease:
    """What all arrays in the memory of a block refer to, directly or not: with the last of them, the block is free."""

    __slots__ = ("__array_interface__", "_block", "_free")

    def __init__(self, block: _Block, free: list[tuple[float, _Block]]) -> None:
        self.__array_interface__ = block[1]
        self._block, self._free = block, free

    def __del__(self) -> None:
        # May run at any time in any thread. What is done to the list is atomic: no lock.
        now, free = time.monotonic(), self._free
        if len(free) < _MOST_KEPT:
            free.append((now, self._block))
        for since, _ in free[:1]:
            if now - since > IDLE_SECONDS:
                del free[:1]


class ResultMemory:
    """Memory for one result of a function.

    A result has the memory of an earlier one that nobody holds any more, be it as an array, a view or a tensor of another framework; where
    there is none, new memory. As with arenas, memory that is too small goes, and what has not been needed for a while.
    """

    def __init__(self) -> None:
        self._free: list[tuple[float, _Block]] = []
        """Last used last, each with the time."""

    def array(self, shape: tuple[int, ...], dtype: np.dtype, num_bytes: int) -> np.ndarray:
        """An uninitialised array of `num_bytes` bytes that begins at a multiple of ALIGNMENT."""
        if not _LEAST_BYTES <= num_bytes <= _MOST_BYTES:
            return aligned_array(shape, dtype, num_bytes)
        block = self._block(num_bytes)
        return np.ndarray(shape, dtype, np.asarray(_Lease(block, self._free)))

    def _block(self, num_bytes: int) -> _Block:
        known = 0
        try:
            found = self._free.pop()[1]
            if found[0].nbytes >= num_bytes:
                return found
            known = found[0].nbytes
            del found
        except IndexError:
            pass
        memory = aligned_empty(room_for(num_bytes, known))
        return memory, {"version": 3, "data": (memory.ctypes.data, False), "shape": memory.shape, "typestr": "|u1"}
