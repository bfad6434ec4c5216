"""Memory that nobody uses at the moment, kept for the next who asks for some."""

import time
from typing import Generic, TypeVar

MOST_SPARE_BYTES = 1 << 28
"""By how much memory may be larger than anybody has asked for."""
_IDLE_SECONDS = 10.0
"""How long memory is kept while other memory is used."""

Memory = TypeVar("Memory")


class FreeMemory(Generic[Memory]):
    """A free list of memory: last in, first out. Memory that was not needed for a while, or is too small, is freed.

    Any thread may take and return memory at any time: operations on the list are atomic, so no thread waits for a lock.
    """

    def __init__(self, most: int | None = None) -> None:
        """
        Args:
          most: maximum number of kept pieces; None for no limit.
        """
        self._most = most
        self._pieces: list[tuple[float, int, Memory]] = []
        """Given back last last, each with the time and its bytes."""

    def __len__(self) -> int:
        return len(self._pieces)

    def take(self, num_bytes: int) -> tuple[Memory | None, int]:
        """Memory of at least `num_bytes` bytes, and its size; if there is none, None and the size to allocate.

        The size to allocate is larger than requested if the previous memory was too small: growing sizes then seldom need new memory, whose
        pages cost time. Pages that are never touched use no memory.
        """
        try:
            _, found_bytes, found = self._pieces.pop()
        except IndexError:
            return None, num_bytes
        if found_bytes >= num_bytes:
            return found, found_bytes
        return None, max(num_bytes, found_bytes + min(found_bytes, MOST_SPARE_BYTES))

    def give(self, memory: Memory, num_bytes: int) -> None:
        """Returns memory to the list."""
        now, pieces = time.monotonic(), self._pieces
        if self._most is None or len(pieces) < self._most:
            pieces.append((now, num_bytes, memory))
        for since, *_ in pieces[:1]:
            if now - since > _IDLE_SECONDS:
                del pieces[:1]
