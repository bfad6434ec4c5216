"""Scratch memory of calls: arenas that are kept from one call to the next."""

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import ALIGNMENT, LARGE_PAGE, aligned_empty
from relayc.runtime.free_memory import MOST_SPARE_BYTES, FreeMemory
from relayc.runtime.tensor import to_tensor

_SPARE = 15
"""Growth of an arena in calls: how many times its first size an arena may reach if arenas of other calls may be larger."""


class ArenaPool:
    """Scratch memory for calls of programs: an arena belongs to one call at a time, and is kept for the next.

    The pool holds as many arenas as there are concurrent calls. Kept arenas grow to the size of the largest call; memory that a burst of
    calls needed is freed later (see FreeMemory).

    Attributes:
      params: the parameter blob of calls that begin from now on.
      empty: the arena of calls that need no memory, which all of them share.
    """

    def __init__(self, params: np.ndarray, grows: bool = False) -> None:
        """
        Args:
          grows: whether a call may need a larger arena than another one. Arenas have room to spare then: larger calls find the pages that
            smaller ones have touched.
        """
        self.params = to_tensor(params)
        self.empty = self._new(0)
        self._grows = grows
        self._free: FreeMemory[tuple[tvm_ffi.Tensor, np.ndarray]] = FreeMemory()

    def acquire(self, num_bytes: int) -> tuple[tvm_ffi.Tensor, np.ndarray]:
        """An arena of at least that size as a tensor and as an array; to be given back with `release`."""
        found, room = self._free.take(num_bytes)
        if found is not None:
            return found
        if self._grows:
            room += min(_SPARE * room, MOST_SPARE_BYTES)
        return self._new(room)

    @staticmethod
    def _new(room: int) -> tuple[tvm_ffi.Tensor, np.ndarray]:
        arena = aligned_empty(room, LARGE_PAGE if room > LARGE_PAGE else ALIGNMENT)
        return to_tensor(arena), arena

    def release(self, arena: tuple[tvm_ffi.Tensor, np.ndarray]) -> None:
        self._free.give(arena, arena[1].nbytes)

    def set_params(self, params: np.ndarray) -> None:
        """Sets the parameter blob of calls that begin from now on."""
        self.params = to_tensor(params)
