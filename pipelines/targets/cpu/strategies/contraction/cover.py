"""Which tiles cover rows whose number only a call knows.

Most rows are in tiles of the full height, those that are left in lower ones, at the cost of fewest cycles; the last tile starts early
rather than being shorter. Where there are fewer rows than a lower tile has, its last rows are the last row again and again: so few heights
are enough, each of which is code of its own. Where the rows of a tile are stored together there must not be more of them than there are.

Which tiles these are depends on the rows beyond the last whole tile only (or on their number, where they are fewer than a tile has), so
their counts are looked up: two bits for each number in a constant.
"""

import itertools
from dataclasses import dataclass
from functools import cache

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import Point
from relayc.pipelines.targets.cpu.strategies.contraction.tile import NO_WAITS, RegisterTile, cycles, sets_of_sums
from relayc.symbolic import Size, bounds, maximum, proves

LIMIT, FAR_LIMIT, LOOP_LIMIT = 1.5, 1.25, 1.1
"""Cycles for any number of rows, in those that tiles of any height would take: heights are as few as that allows. The second is for weights
that come from far, which few rows often meet; the last for kernels in loops of a program: they have few rows, mostly, and take all its
time."""
SLOT = Var(0, 0, name="slot")
"""Key of the slot at which a tile begins in a point."""
MOST_LEFT = 3
"""Maximum number of tiles of one height that cover the remainder."""


@dataclass(frozen=True)
class Heights:
    """Heights of tiles, the full one first, and what they are chosen for.

    Attributes:
      vectors: of columns of a tile.
      repeats: whether a tile may have more rows than there are.
      waits: cycles that a step of the first tile of a panel takes at least, until what it reads of the panel is there, with 1, 2, ... sums
        an element.
    """

    sizes: tuple[int, ...]
    vectors: int
    repeats: bool
    waits: tuple[float, ...] = NO_WAITS

    def counts(self) -> list[dict[int, int]]:
        """How many tiles of each height cover 0, 1, ... rows, fewer than a whole tile; then the same for as many rows after whole tiles,
        of which a tile of any height may take some again."""
        rows = range(self.sizes[0])
        return [self._best(n, alone)[1] for alone in (True, False) for n in rows]

    @property
    def most_left(self) -> int:
        """Rows of the lower tiles together, at most."""
        return max(sum(n * count for n, count in found.items() if n != self.sizes[0]) for found in self.counts())

    def cost(self, rows: int) -> float:
        """Cycles of a step of the tiles that cover rows, fewer than a whole tile."""
        return self._best(rows, True)[0]

    def _cycles(self, height: int, is_first: bool = False) -> float:
        sets = sets_of_sums(height * self.vectors)
        return cycles(height, self.vectors, sets, self.waits[sets - 1] if is_first else 0.0)

    def _best(self, rows: int, alone: bool) -> tuple[float, dict[int, int]]:
        """The tiles of fewest cycles that cover rows, and their cycles; where they are alone, the first of them waits. The full tile, in
        which most of the time goes, repeats no row: its rows are at regular distances then."""
        sizes = [n for n in self.sizes if n <= rows or (self.repeats and n != self.sizes[0]) or not alone]
        found = [(0.0, {n: 0 for n in sizes})]
        for row in range(1, rows + 1):
            options = []
            for n in sizes:
                cost, counts = found[max(0, row - n)]
                if counts.get(n, MOST_LEFT) < MOST_LEFT:
                    options.append((cost + self._cycles(n), {**counts, n: counts[n] + 1}))
            found.append(min(options, key=lambda option: option[0], default=(float("inf"), {})))
        if not alone or not rows:
            return found[rows]
        single = [(self._cycles(n), {n: 1}) for n in sizes if n >= rows]
        return min(((cycles + self._waits(counts), counts) for cycles, counts in (found[rows], *single)), key=lambda option: option[0])

    def _waits(self, counts: dict[int, int]) -> float:
        """Cycles that tiles wait in a step: the first, of the highest ones, for what the others then find close by."""
        first = max((n for n, count in counts.items() if count), default=self.sizes[0])
        return self._cycles(first, True) - self._cycles(first)

    @property
    def code(self) -> int:
        """How much code the lower tiles are: vectors that a step loads, broadcasts, multiplies and adds, for each set of sums."""
        return sum(sets_of_sums(n * self.vectors) * n * (self.vectors + 2) for n in self.sizes[1:])


@cache
def heights(tile: RegisterTile, repeats: bool, limit: float, waits: tuple[float, ...] = NO_WAITS) -> Heights:
    """Heights of the tiles for a number of rows that only a call knows, of a full one; `limit` as LIMIT says, `waits` as in Heights."""
    every = Heights(tuple(range(tile.rows, 0, -1)), tile.vectors, repeats, waits)
    costs = [every.cost(rows) for rows in range(tile.rows)]
    for count in range(tile.rows):
        lower = itertools.combinations(range(tile.rows - 1, 0, -1), count)
        possible = sorted((Heights((tile.rows, *some), tile.vectors, repeats, waits) for some in lower), key=lambda h: h.code)
        for _, alike in itertools.groupby(possible, lambda h: h.code):
            found = [h for h in alike if all(h.cost(rows) <= limit * cost for rows, cost in enumerate(costs))]
            if found:
                return min(found, key=lambda h: sum(map(h.cost, range(tile.rows))))
    return every


@dataclass(frozen=True)
class LowTiles:
    """Tiles of one height that cover the remainder: their number, and the first row."""

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
      slots: rows of all tiles, so that rows of which there are several count as often.
      last: slot at which the last tile begins.
      steps: how far rows of a lower tile are behind its first one: 0, 1, ..., and not behind the last row.
      excess: how far slots of the last tile are behind their rows: not, where it is the only one.
    """

    rows: Size
    height: int
    full: Index
    low: tuple[LowTiles, ...]
    slots: Index
    last: ir.Value
    steps: tuple[Index, ...]
    excess: ir.Value

    def start(self, slot: Index, height: int) -> Index:
        """The first row of a tile, from the slot where it begins."""
        start = emit.at_most(slot, self.rows - height)
        if height == self.height or proves(lambda: self.rows >= height) or not start.terms:
            return start
        return Index.of(Var(0, maximum(self.rows - height, 0), emit.larger(emit.materialize(start), 0), name="start"))

    def points(self, var: Var | None, start: Index, height: int, point: Point) -> list[Point]:
        """Points of the rows of a tile along a row variable."""
        steps = self.steps[:height] if height < self.height else [Index(n) for n in range(height)]
        return [{**point, **({var: self._row_at(start, step)} if var is not None else {})} for step in steps]

    def _row_at(self, start: Index, step: Index) -> Index:
        if step.is_constant:
            return start + step
        return self._row(emit.arith("addi", emit.materialize(start), emit.materialize(step)))

    def _row(self, value: ir.Value) -> Index:
        return Index.of(Var.below(self.rows, value, name="row"))

    def slot(self, row: Index) -> Index:
        """The slot of a row."""
        value = emit.materialize(row)
        behind = emit.compare("sge", value, self.last)
        return Index.of(Var(0, self.slots.bounds()[1], emit.select(behind, emit.arith("addi", value, self.excess), value), name="slot"))


def cover(rows: Size, heights: Heights) -> Cover:
    """Emits the computation of the number of tiles of each height that cover the rows."""
    sizes, counts = heights.sizes, heights.counts()
    height = sizes[0]
    number = emit.index_constant(rows)
    whole = emit.arith("divui", number, emit.index_constant(height))
    left = emit.arith("remui", number, emit.index_constant(height))
    key = left
    if counts[:height] != counts[height:]:
        few = emit.compare("ult", number, emit.index_constant(height))
        key = emit.select(few, left, emit.arith("addi", left, emit.index_constant(height)))
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
        slots = index(emit.materialize(behind), "slots")
    steps = (Index(), *(_step(rows, n) if heights.repeats else Index(n) for n in range(1, max(sizes[1:], default=1))))
    only = emit.compare("eq", last, emit.index_constant(0))
    excess = emit.select(only, emit.index_constant(0), emit.materialize(slots - rows))
    return Cover(rows, height, full, tuple(low), slots, last, steps, excess)


def _step(rows: Size, count: int) -> Index:
    """`count` rows further, but not after the last row."""
    if proves(lambda: rows > count):
        return Index(count)
    return Index.of(Var(0, count, emit.smaller(emit.index_constant(count), rows - 1), name="step"))
