"""The tunable numbers of a product by warp groups: its tile, and the resources of a multiprocessor that the tile needs."""

from dataclasses import dataclass

from relayc.pipelines.targets.cuda.architectures import REGISTERS, WARP
from relayc.pipelines.targets.cuda.strategies.hopper import instructions as hopper
from relayc.pipelines.tir.gpu.bulk_copies import LINE_BYTES

BRINGER_REGISTERS, GROUP_REGISTERS = 40, 232
"""Registers of a thread of the copying group, and of the two other groups, which get the registers it releases (PTX ISA, setmaxnreg)."""
_OTHER_REGISTERS = 70
"""Of a thread beside its sums, with some to spare: ptxas takes 29 to 51."""
STRIP = 32
"""Columns of the sums that a warp stores at a time."""
STRIP_PITCH = STRIP + 4
STRIP_ROWS = 16
"""Rows of a warp in the sums of its group."""
_SECTION_BYTES = 1024
"""What buffers in shared memory begin at multiples of."""


@dataclass(frozen=True)
class GroupTile:
    """Tunable numbers.

    Attributes:
      rows: of the tile of a block, 64 for each group that multiplies.
      columns: of it, a multiple of STRIP up to 256.
      stages: of the ring.
      splits: parts of the depth that are tiles of their own; a second launch adds them.
    """

    rows: int
    columns: int
    stages: int
    splits: int = 1

    @property
    def groups(self) -> int:
        """Groups that multiply."""
        return self.rows // hopper.ROWS

    @property
    def moves_registers(self) -> bool:
        """Whether the multiplying groups need more registers than a thread has at launch; the copying group then releases some."""
        return self.columns // 2 + _OTHER_REGISTERS > REGISTERS // self.threads

    @property
    def threads(self) -> int:
        return (self.groups + 1) * hopper.GROUP_THREADS

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.columns) * LINE_BYTES

    @property
    def shared_bytes(self) -> int:
        """Of the ring, the strips and the barriers."""
        strips = self.strip_elements * 4
        return self.stage_bytes * self.stages + -(-strips // _SECTION_BYTES) * _SECTION_BYTES + _SECTION_BYTES

    @property
    def strip_elements(self) -> int:
        return self.groups * (hopper.GROUP_THREADS // WARP) * STRIP_ROWS * STRIP_PITCH
