"""Which tiles cover rows whose number only a call knows.

Most rows are in tiles of the full height, those that are left in one or two lower ones, at the cost of fewest cycles; the last tile starts
early rather than being shorter, so that every tile is inside. Which tiles these are depends on the rows beyond the last whole tile only
(or on their number, where they are fewer than a tile has), so their counts are looked up: two bits for each number in a constant.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit
from relayc.symbolic import Size, bounds

MOST_ROWS = 14
"""Rows of a tile where their number is not known: the counts for twice as many fit into 64 bits."""
LOWER = (1, 2, 3, 4, 8)
"""Heights of the tiles that cover what is left; each has code of its own."""
SLOT = Var(0, 0, name="slot")
"""Key of the slot at which a tile begins in a point."""
MOST_LEFT = 3
"""Tiles of a height among those that cover what is left."""


@dataclass(frozen=True)
class LowTiles:
    """Tiles of one height that cover what is left: how many, and the number of the row where the first begins."""

    height: int
    count: ir.Value
    first: Index


@dataclass(frozen=True)
class Cover:
    """The tiles of a call, by values that the kernel has computed at its start.

    Attributes:
      rows: their number.
      full: tiles of the full height.
      low: the others, higher ones first.
      slots: rows of all tiles, so that rows of the last one that are in the one before as well count twice.
      last: slot at which the last tile begins.
    """

    rows: Size
    height: int
    full: Index
    low: tuple[LowTiles, ...]
    slots: Index
    last: ir.Value

    def start(self, slot: Index, height: int) -> Index:
        """The row at which a tile begins, of the slot where it begins."""
        return emit.at_most(slot, self.rows - height)

    def row(self, slot: Index) -> Index:
        """The row in a slot."""
        value, excess = emit.materialize(slot), emit.materialize(self.slots - self.rows)
        behind = emit.compare("sge", value, self.last)
        found = emit.select(behind, emit.arith("subi", value, excess), value)
        return Index.of(Var(0, self.rows - 1, found, name="row"))


def heights(tile: int, rows: Size) -> tuple[int, ...]:
    """Heights of the tiles for `rows`, of which the first is the full one."""
    return (tile, *(n for n in reversed(LOWER) if n < tile)) if not isinstance(rows, int) else (tile,)


def cover(rows: Size, sizes: Sequence[int], cycles: Callable[[int], float]) -> Cover:
    """Emits what says how many tiles of which of `sizes` (the full height first) cover rows; `cycles` of a tile by its height."""
    height = sizes[0]
    counts = _counts(sizes, cycles)
    number = emit.index_constant(rows)
    whole = emit.arith("divui", number, emit.index_constant(height))
    left = emit.arith("remui", number, emit.index_constant(height))
    key = emit.select(emit.compare("ult", number, emit.index_constant(height)), left, emit.arith("addi", left, emit.index_constant(height)))
    shift = emit.arith("muli", key, emit.index_constant(2))

    def looked_up(size: int) -> ir.Value:
        bits = sum(found.get(size, 0) << 2 * at for at, found in enumerate(counts))
        return emit.arith("andi", emit.arith("shrui", emit.index_constant(bits), shift), emit.index_constant(3))

    most = bounds(rows)[1]

    def index(value: ir.Value, name: str) -> Index:
        return Index.of(Var(0, most, value, name=name))

    full = index(emit.arith("addi", whole, looked_up(height)), "full")
    slots, low = full * height, []
    last = emit.materialize((full - 1) * height)
    for size in sizes[1:]:
        count = looked_up(size)
        low.append(LowTiles(size, count, slots))
        behind = slots + index(count, "low") * size
        some = emit.compare("ne", count, emit.index_constant(0))
        last = emit.select(some, emit.materialize(behind - size), last)
        slots = behind
    return Cover(rows, height, full, tuple(low), index(emit.materialize(slots), "slots"), last)


def most_left(sizes: Sequence[int], cycles: Callable[[int], float]) -> int:
    """Rows of the lower tiles together, at most."""
    return max(sum(n * count for n, count in found.items() if n != sizes[0]) for found in _counts(sizes, cycles))


def _counts(sizes: Sequence[int], cycles: Callable[[int], float]) -> list[dict[int, int]]:
    """How many tiles of each height cover 0, 1, ... rows, fewer than a whole tile; then the same for as many rows after whole tiles, of
    which a tile of any height may take some again."""
    height = sizes[0]
    alone = [_best(rows, [n for n in sizes if n <= rows], cycles) for rows in range(height)]
    return alone + [_best(rows, sizes, cycles) for rows in range(height)]


def _best(rows: int, sizes: Sequence[int], cycles: Callable[[int], float]) -> dict[int, int]:
    """The tiles of fewest cycles that cover rows, by height."""
    found = [(0.0, {n: 0 for n in sizes})]
    for row in range(1, rows + 1):
        options = []
        for n in sizes:
            cost, counts = found[max(0, row - n)]
            if counts[n] < MOST_LEFT:
                options.append((cost + cycles(n), {**counts, n: counts[n] + 1}))
        found.append(min(options, key=lambda option: option[0]))
    return found[rows][1]
