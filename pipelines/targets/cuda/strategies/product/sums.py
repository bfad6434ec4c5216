"""Sums of a block in registers: the common part of the ways to multiply."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory, SharedTile
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile

Values = Sequence[ir.Value]


class Sums(ABC):
    """The sums of a block's tile, spread over the registers of its threads.

    `prepare` computes the addresses that a thread reads. `step` adds the products of a stage. At the end the sums go to shared memory in
    strips of rows, and are stored from there.

    Attributes:
      threads: of a block.
      strips, strip_rows: the number of strips, and of rows in each.
    """

    threads: int
    strips: int
    strip_rows: int

    def __init__(self, tile: BlockTile, element: ir.Type) -> None:
        self.tile, self.element = tile, element

    @abstractmethod
    def prepare(self, thread: Var, shared: SharedMemory, tiles: Sequence[SharedTile], starts: Sequence[int]) -> None:
        """Called at the start of a block with the tiles of A and B and their offsets in a stage."""

    @abstractmethod
    def begin(self) -> list[ir.Value]:
        """The sums before the first step."""

    @abstractmethod
    def step(self, stage: ir.Value, sums: Values) -> list[ir.Value]:
        """The sums with the products of a stage, which begins at a byte of shared memory."""

    @abstractmethod
    def row_of(self, strip: int, row: Index) -> Index:
        """The row of the tile that a row of a strip is."""

    @abstractmethod
    def stage(self, strip: int, sums: Values, buffer: ir.Value, pitch: int) -> None:
        """Stores a strip to a buffer, whose rows are `pitch` elements apart."""
