"""Memory of results that is used again when nobody holds the result any more.

Pages that are new to a process are expensive: the system clears each one when it is first written, which takes several times as long as a
kernel takes to write it. The C library gives large memory back to the system and gets it anew, so that a program which returns a cache of
megabytes at every call would pay that at every call.

Results lie beside each other in large pages. In small pages, a result that is in no cache costs a walk through the page tables for each
4 KB, as nobody has read these for a while: writing 256 KB then takes 40 to 200 us instead of 20 to 40 (measured in a virtual machine).
"""

from typing import Any

import numpy as np

from relayc.runtime.artifact import ALIGNMENT, LARGE_PAGE, aligned_array, aligned_empty
from relayc.runtime.free_memory import FreeMemory
from relayc.runtime.shapes import Made

LEAST_BYTES = 1 << 17
"""From which size on memory is kept: the C library keeps smaller memory itself."""
_MOST_BYTES = 1 << 28
"""Up to which size."""
_MOST_KEPT = 4
"""How many pieces of memory are kept for a result."""
_SLAB_BYTES = 1 << 22
"""Memory for several results. numpy asks the system for large pages from this size on."""


class _Lease:
    """What all arrays in some memory refer to, directly or not: with the last of them, the memory is free.

    Attributes:
      __array_interface__: the memory, as numpy describes it.
    """

    __slots__ = ("__array_interface__", "_free", "_memory")

    def __init__(self, memory: np.ndarray, free: FreeMemory[np.ndarray]) -> None:
        self.__array_interface__: dict[str, Any] = memory.__array_interface__
        self._memory, self._free = memory, free

    def __del__(self) -> None:
        # May run at any time in any thread.
        self._free.give(self._memory, self._memory.nbytes)


class ResultMemory:
    """Memory for one result of a function.

    A result reuses the memory of an earlier result that is no longer referenced, as an array, a view or a tensor of another framework;
    otherwise new memory is allocated. As with arenas, memory that is too small or was not needed for a while is freed.
    """

    def __init__(self) -> None:
        self._free: FreeMemory[np.ndarray] = FreeMemory(_MOST_KEPT)

    def array(self, made: Made) -> np.ndarray:
        """An uninitialised array that begins at a multiple of ALIGNMENT."""
        shape, dtype, num_bytes = made
        if not LEAST_BYTES <= num_bytes <= _MOST_BYTES:
            return aligned_array(shape, dtype, num_bytes)
        found, room = self._free.take(num_bytes)
        memory = _new_memory(room) if found is None else found
        return np.ndarray(shape, dtype, np.asarray(_Lease(memory, self._free)))


_rests: list[np.ndarray] = []
"""What is left of slabs. Operations on the list are atomic: a rest belongs to one thread while memory is cut from it."""


def _new_memory(num_bytes: int) -> np.ndarray:
    """Uninitialised memory in large pages: a part of a slab, which is freed with the last of its parts, or memory of its own."""
    if num_bytes > _SLAB_BYTES - LARGE_PAGE:
        return aligned_empty(num_bytes, LARGE_PAGE)
    try:
        rest = _rests.pop()
    except IndexError:
        rest = aligned_empty(0)
    if rest.nbytes < num_bytes:
        rest = aligned_empty(_SLAB_BYTES, LARGE_PAGE)
    end = num_bytes + -num_bytes % ALIGNMENT
    _rests.append(rest[end:])
    return rest[:num_bytes]
