"""The memory of a block while it is emulated, and where what lies in it.

    0           shared memory: that of the kernel's attributions, then the dynamic one
    WINDOW      a record for each thread: fields that are FIELD bytes apart, 8 bytes for each thread
    BLOCK       the record of the block: words, then its barriers
    RESERVED    what instructions reserve

It begins at a multiple of WINDOW, so that the low bits of the address of shared memory are its offset, as they are on the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes

WINDOW = 1 << 18
"""The most shared memory that a block can have: bits of its addresses in descriptors of matrices."""
MOST_THREADS, WARP_LANES = 1024, 32
FIELD = 8 * MOST_THREADS

WAIT = WINDOW
"""What the thread waits for, and where: bits 0 to 5 are a state, bit 6 is ORDERS, bit 7 UNIFORM, the others are the number of a site."""
GROUP = WAIT + FIELD
"""With whom it waits: the lanes of its warp, as bits, or the number of a barrier. After an exchange: in which half each lane left its
values, as bits."""
HANDLE = GROUP + FIELD
"""Its coroutine."""
HALF = HANDLE + FIELD
"""In which half of its memory for exchanges it leaves its values next: 0 or 1."""

BLOCK = HALF + FIELD
BLOCK_ID, PROGRESS, QUEUE = BLOCK, BLOCK + 8, BLOCK + 16
"""The number of the block in the grid; whether a thread that polled went on; the queue of the block, 0 where it has none."""
EPOCH, FAILURES, CELLS, SHARED_BYTES = BLOCK + 24, BLOCK + 32, BLOCK + 40, BLOCK + 48
"""For the check for races: the epoch of the block, the record of the grid, the cells of bytes, and how many bytes have one."""
BARRIERS, BARRIER_COUNT = BLOCK + 64, 16
"""For each barrier: threads that have arrived, and threads expected."""
WARP_EPOCHS = BARRIERS + 16 * BARRIER_COUNT
RESERVED = WARP_EPOCHS + 8 * 32

READY, RETRY, BARRIER, WARP, POLL, DONE = range(6)
"""Thread states: ready; ready to poll its condition again; waiting at a barrier; waiting for lanes; polling; done."""
UNIFORM = 128
"""All threads that wait must do so at the same operation."""
ORDERS = 64
"""Orders memory accesses of lanes before a wait before their accesses after it."""
STATE_BITS, SITE_SHIFT = 63, 8
CELL_BYTES = 24

LINE = 64
BASE_ALIGNMENT = 1024
"""Of buffers in shared memory: what swizzled tiles ask for at most."""


@dataclass(frozen=True)
class ReservedMemory:
    """Memory that instructions reserve: `parts` parts of `each` bytes, of which the first `zero` are zero when a block begins."""

    offset: int
    each: int
    parts: int
    zero: int


class BlockMemory:
    """The layout of the block memory of a kernel.

    Attributes:
      shared: the offset of each attribution.
      dynamic: the start of dynamic shared memory.
      size: bytes of it all.
      regions: reserved by instructions.
    """

    def __init__(self, kernel: str, shared: Sequence[ir.MemRefType], threads: int) -> None:
        self.threads = threads
        self.shared: list[int] = []
        end = 0
        for type_ in shared:
            end = _up(end, BASE_ALIGNMENT if end else 1)
            self.shared.append(end)
            end += prod(type_.shape) * element_bytes(type_.element_type)
        self.dynamic = _up(end, BASE_ALIGNMENT)
        if end > WINDOW:
            raise ValueError(f"kernel {kernel}: expected at most {WINDOW} bytes of shared memory, found {end}")
        self.size = _up(RESERVED, LINE)
        self.regions: dict[str, ReservedMemory] = {}

    def reserve(self, name: str, bytes_: int, per: str, zero: int = 0) -> tuple[int, int]:
        """The offset of memory of a name, and the bytes from one of its parts to the next: it has one for each of `per`, a "block", "warp"
        or "thread". What has been reserved by this name already is given again.

        Args:
          zero: how many bytes of each part are zero when a block begins, a multiple of 8.
        """
        each = _up(bytes_, 8)
        if name not in self.regions:
            parts = {"block": 1, "warp": -(-self.threads // WARP_LANES), "thread": self.threads}[per]
            self.regions[name] = ReservedMemory(self.size, each, parts, zero)
            self.size = _up(self.size + parts * each, LINE)
        return self.regions[name].offset, each


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
