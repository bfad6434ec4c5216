"""Chooses the tile of a product by warp groups: the fewest cycles by a model of the device, whose numbers are estimates, not measurements.

Copies and products overlap: the slower of the two gives the time of a turn. (Products of one group or two read their operands from shared
memory in less time than copies bring them there.) Nothing overlaps the end of a tile, whose sums go through shared memory before the next
products begin; only its stores overlap the next products.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from relayc.pipelines.targets.cuda.strategies.hopper.instructions import ROWS
from relayc.pipelines.targets.cuda.strategies.hopper.tile import STRIP, GroupTile
from relayc.pipelines.targets.cuda.strategies.product.choice import (
    BESIDE,
    DELAY,
    FEWEST_TURNS,
    LATENCY,
    LAUNCH,
    MOST_SPLITS,
    SHARED_BYTES,
    SPLIT_BYTES,
    Sizes,
)
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.tir.gpu.bulk_copies import LINE_BYTES
from relayc.symbolic import ceil_div

MOST_COLUMNS, LEAST_COLUMNS = 256, 64
"""Of a tile."""
MOST_STAGES = 6
RATE = 2048
"""Multiply-adds of 16-bit floats a cycle of a multiprocessor: 989 TFLOP/s of an H100 SXM, by 132 multiprocessors at 1.83 GHz."""
CACHE_BYTES = 5120
"""Bytes a cycle that all multiprocessors together read of the cache of the device, or write to it; one has PORT_BYTES at most."""
PORT_BYTES = 64
END = 600
"""Cycles at the end of a tile in addition to the cycles for its bytes: the last products, and barriers."""


@dataclass(frozen=True)
class Product:
    """What is multiplied.

    Attributes:
      sizes: of the matrices.
      element_bytes: of an element of the operands.
      unit: columns of a tile are a multiple of.
      splits: whether parts of the depth may be tiles of their own.
      taps: how often an element of A in memory is read in a row, about: the taps of a convolution.
    """

    sizes: Sizes
    element_bytes: int
    unit: int = STRIP
    splits: bool = True
    taps: int = 1

    @property
    def turns(self) -> int:
        """Stages of the whole depth."""
        return ceil_div(self.sizes.depth, LINE_BYTES // self.element_bytes)

    @property
    def multiply_adds(self) -> int:
        """A cycle of a multiprocessor."""
        return RATE * 2 // self.element_bytes

    def tiles(self, tile: GroupTile) -> int:
        s = self.sizes
        return ceil_div(s.rows, tile.rows) * ceil_div(s.columns, tile.columns) * s.batches * tile.splits

    def cycles(self, tile: GroupTile, target: CudaTarget) -> float:
        """About how long the kernel takes, of which the memory of the device may be the bound."""
        tiles, blocks = self.tiles(tile), target.num_multiprocessors
        busy = ceil_div(tiles, blocks) * self._tile_cycles(tile, max(1, min(tiles, blocks)))
        memory = (self._operand_bytes + self._results * self.sizes.result_bytes) / (SPLIT_BYTES * blocks)
        # A second launch reads the sums of splits, which the first one wrote.
        sums = LAUNCH + self._results * 4 * (tile.splits + 1) / (SPLIT_BYTES * blocks) if tile.splits > 1 else 0
        return LATENCY + max(busy, memory) + BESIDE * min(busy, memory) + sums

    @property
    def _results(self) -> int:
        """Elements of the result."""
        return self.sizes.rows * self.sizes.columns * self.sizes.batches

    @property
    def _operand_bytes(self) -> float:
        """Of the operands in the memory of the device."""
        s = self.sizes
        return (s.rows / self.taps + s.columns) * s.depth * s.batches * self.element_bytes

    def _tile_cycles(self, tile: GroupTile, active: int) -> float:
        """Of one tile, while so many multiprocessors are active."""
        turns, elements = ceil_div(self.turns, tile.splits), tile.rows * tile.columns
        products = elements * (LINE_BYTES // self.element_bytes) / self.multiply_adds
        turn = max(products, DELAY / (tile.stages - 1))
        stored = elements * (4 if tile.splits > 1 else self.sizes.result_bytes)
        copies = (tile.stage_bytes * turns + stored) / min(PORT_BYTES, CACHE_BYTES / active)
        # Sums are written to strips of shared memory and read from there.
        return max(turn * turns, copies) + END + 2 * 4 * elements / SHARED_BYTES

    def share(self, tile: GroupTile, target: CudaTarget) -> float:
        """The time that tensor cores need for the products alone, relative to the time of the tile."""
        least = self._results * self.sizes.depth / (self.multiply_adds * target.num_multiprocessors)
        return least / self.cycles(tile, target)

    def best(self, target: CudaTarget) -> GroupTile:
        """The tile with the fewest cycles; among equals, with fewer splits, then with fewer columns."""
        return min(self._candidates(target), key=lambda tile: (self.cycles(tile, target), tile.splits, tile.columns))

    def _candidates(self, target: CudaTarget) -> Iterator[GroupTile]:
        for rows in (ROWS, 2 * ROWS):
            for columns in range(LEAST_COLUMNS, MOST_COLUMNS + 1, self.unit):
                tile = staged(GroupTile(rows, columns, MOST_STAGES), target)
                yield from (replace(tile, splits=splits) for splits in self._splits())

    def _splits(self) -> Iterable[int]:
        """Numbers of splits none of which is empty or too short."""
        if not self.splits:
            return [1]
        most = max(1, min(MOST_SPLITS, self.turns // FEWEST_TURNS))
        return sorted({self.whole(splits) for splits in range(1, most + 1)})

    def whole(self, splits: int) -> int:
        """The nearest number of splits none of which is empty."""
        if not self.splits:
            return 1
        return ceil_div(self.turns, ceil_div(self.turns, max(1, min(splits, MOST_SPLITS, self.turns))))

    def fitted(self, tile: GroupTile, target: CudaTarget) -> GroupTile:
        """The nearest tile that there is."""
        columns = min(MOST_COLUMNS, max(self.unit, tile.columns // self.unit * self.unit))
        rows = ROWS if tile.rows < 2 * ROWS else 2 * ROWS
        return staged(replace(tile, rows=rows, columns=columns, splits=self.whole(tile.splits)), target)

    def values(self) -> dict[str, Callable[[GroupTile], Iterable[int]]]:
        """Sensible numbers of a tile."""
        return {
            "rows": lambda tile: (ROWS, 2 * ROWS),
            "columns": lambda tile: range(LEAST_COLUMNS, MOST_COLUMNS + 1, self.unit),
            "stages": lambda tile: range(2, MOST_STAGES + 1),
            "splits": lambda tile: self._splits(),
        }


def staged(tile: GroupTile, target: CudaTarget) -> GroupTile:
    """The tile with as many of the wanted stages as fit in shared memory."""
    stages = max(2, min(tile.stages, MOST_STAGES))
    while stages > 2 and replace(tile, stages=stages).shared_bytes > target.shared_bytes:
        stages -= 1
    return replace(tile, stages=stages)
