"""The plan of a product: its tile, how operands are copied to shared memory, and which instruction sums products."""

from dataclasses import dataclass

from relayc.pipelines.targets.cuda.strategies.product.operands import Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedTile
from relayc.pipelines.targets.cuda.strategies.product.tensor_cores import TensorCores
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.symbolic import Size, ceil_div

PAD_BYTES = 32
"""Between rows of strips: with them rows of pairs of sums that are stored together are in different banks."""


@dataclass(frozen=True)
class Plan:
    """How a product is run.

    Attributes:
      tiles: in shared memory, of A and B; ways: how they come there.
      sums: how products are summed.
    """

    problem: Problem
    tile: BlockTile
    ways: tuple[Way, Way]
    tiles: tuple[SharedTile, SharedTile]
    sums: TensorCores

    @property
    def starts(self) -> tuple[int, int]:
        """Where the tiles are in a stage, in bytes."""
        return 0, self.tiles[0].size

    @property
    def stage_bytes(self) -> int:
        return sum(tile.size for tile in self.tiles)

    @property
    def strip_pitch(self) -> int:
        """Elements from one row of a strip to the next."""
        return self.tile.columns + PAD_BYTES // self.problem.sum_bytes

    @property
    def shared_bytes(self) -> int:
        """Of a block: stages, and strips after them."""
        return max(self.stage_bytes * self.tile.stages, self.sums.strip_rows * self.strip_pitch * self.problem.sum_bytes)

    @property
    def grid(self) -> tuple[Size, Size]:
        """Tiles along rows and columns."""
        return ceil_div(self.problem.rows, self.tile.rows), ceil_div(self.problem.columns, self.tile.columns)

    @property
    def turns(self) -> Size:
        """Stages of the whole depth."""
        return ceil_div(self.problem.depth, self.tile.depth)

    def packings(self) -> dict[int, Packing]:
        """Of the kernel's arguments, by position."""
        return {way.operand.node.position: way.packing for way in self.ways if way.packing is not None}
