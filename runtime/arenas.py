"""Scratch memory of calls: arenas that are kept from one call to the next."""

import time

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import ALIGNMENT, aligned_empty
from relayc.runtime.tensor import to_tensor

IDLE_SECONDS = 10.0
"""How long memory is kept while other memory is used."""
_MOST_SPARE_BYTES = 1 << 28
"""By how much memory may be larger than any call has asked for."""
_SPARE = 15
"""How many times an arena may outgrow its first call where the arenas of other calls may be larger."""
_LARGE_PAGE = 1 << 21
"""Bytes of the large pages that the system gives where it can, if they begin at a multiple of that."""


def room_for(num_bytes: int, known: int) -> int:
    """Bytes of new memory for a call that needs `num_bytes` where earlier ones had `known`, which is less.

    Sizes that grow by and by get new memory, whose pages cost time, seldom. What no call touches has no pages.
    """
    return max(num_bytes, known + min(known, _MOST_SPARE_BYTES))


class ArenaPool:
    """Scratch memory for calls of programs: an arena belongs to one call at a time, and is kept for the next.

    There are as many as calls at the same time; one that has not been needed for a while goes, so that a burst of calls does not take
    memory for ever.
    """

    def __init__(self, params: np.ndarray, grows: bool = False) -> None:
        """
        Args:
          grows: whether a call may need a larger arena than another one. Arenas have room to spare then: larger calls find the pages that
            smaller ones have touched.
        """
        self._params = to_tensor(params)
        self._grows = grows
        # Last used last, each with the time. What is done to the list is atomic: no lock.
        self._free: list[tuple[float, tuple[tvm_ffi.Tensor, np.ndarray]]] = []

    def acquire(self, num_bytes: int) -> tuple[tvm_ffi.Tensor, np.ndarray]:
        """An arena of at least that size as a tensor and as an array; to be given back with `release`.

        One that is too small goes: those that are kept come to be as large as the largest call.
        """
        known = 0
        try:
            found = self._free.pop()[1]
            if found[1].nbytes >= num_bytes:
                return found
            known = found[1].nbytes
            del found
        except IndexError:
            pass
        room = room_for(num_bytes, known)
        if self._grows:
            room += min(_SPARE * room, _MOST_SPARE_BYTES)
        arena = aligned_empty(room, _LARGE_PAGE if room > _LARGE_PAGE else ALIGNMENT)
        return to_tensor(arena), arena

    def release(self, arena: tuple[tvm_ffi.Tensor, np.ndarray]) -> None:
        now = time.monotonic()
        self._free.append((now, arena))
        for since, _ in self._free[:1]:
            if now - since > IDLE_SECONDS:
                del self._free[:1]

    @property
    def params(self) -> tvm_ffi.Tensor:
        return self._params

    def set_params(self, params: np.ndarray) -> None:
        """Gives calls that begin from now on another parameter blob."""
        self._params = to_tensor(params)
