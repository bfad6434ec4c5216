"""The tunable numbers of a product: the tiles of a block, a warp and a thread, and the number of tiles in flight."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BlockTile:
    """Powers of two.

    Attributes:
      rows, columns: of the result that a block computes.
      depth: steps of the depth of a stage.
      unit_rows, unit_columns: of the part that a unit of the block computes in registers: a warp on tensor cores, else a thread.
      stages: tiles of the operands that shared memory holds.
      splits: parts of the depth that different blocks sum; a second launch adds them.
    """

    rows: int
    columns: int
    depth: int
    unit_rows: int
    unit_columns: int
    stages: int
    splits: int = 1

    @property
    def units(self) -> int:
        return (self.rows // self.unit_rows) * (self.columns // self.unit_columns)
