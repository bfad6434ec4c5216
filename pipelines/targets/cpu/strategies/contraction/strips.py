"""Rows whose number depends on the call, with padding at their ends: padded copies of the ends.

Tiles between the ends read the rows in place. Tiles at an end read a strip: a step-by-step copy of the data for a few tiles, with zeros for
the padding. A strip is small compared to the work on it, its tiles need no predicates, and short rows are one strip.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import Point, steps_of
from relayc.pipelines.targets.cpu.strategies.contraction.tile import cycles
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.te.read.graph import Node, NotStructured
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, bounds, ceil_div, maximum, minimum

MOST_UNROLLED = 4
"""Vectors that are copied one after the other; more are a loop."""
NEAR_BEST = 1.05
"""Cycles of a row of the lowest tile, as a ratio of those of the best one."""
KINDS = 3
"""Heights of the tiles of a strip; each has code of its own."""

FIRST = Var(0, 0, name="first")
"""Key of the first row of a strip in a point."""


@dataclass(frozen=True)
class EqualTiles:
    """Tiles of one height of a strip: how many."""

    height: int
    count: ir.Value


@dataclass(frozen=True)
class Strip:
    """The rows of one end.

    Attributes:
      first: its first row.
      rows: their number.
      tiles: cover the rows; a tile that would exceed the last row starts early.
    """

    first: Index
    rows: ir.Value
    tiles: tuple[EqualTiles, ...]


class RowCover:
    """Which tiles cover rows: some in a strip at each end, and `count` whole ones of `height` from row `first` on between them.

    Tiles of a strip are as even as they can be, of heights from `low` to `high`: of most numbers of rows they are no more than were there
    tiles of any height. What the function computes of the number of rows is emitted here, once.
    """

    def __init__(self, contraction: Contraction, height: int, vectors: int) -> None:
        self.height, self._rows = height, contraction.row_extent
        best = min(cycles(n, vectors) / n for n in range(1, height + 1))
        near = next(n for n in range(1, height + 1) if cycles(n, vectors) / n <= best * NEAR_BEST)
        self.low = max(1, min(near, height - KINDS + 1))
        self.high = min(self.low + KINDS - 1, height)
        touched = _touched(contraction)
        before = max(1, ceil_div(touched[0], self.low))
        least = next(n for n in itertools.count(sum(touched)) if all(self._serves(r, before, touched[1]) for r in range(n, n + height)))
        self.most_rows = least + height - 1
        number = emit.index_constant
        whole = emit.arith("divui", emit.larger(number(self._rows - least), 0), number(height))
        left = emit.arith("subi", number(self._rows), emit.arith("muli", whole, number(height)))
        tiles = emit.arith("ceildivui", left, number(self.high))
        base = emit.arith("divui", left, emit.larger(tiles, 1))
        # Too few rows for even tiles are in tiles of the least height, which overlap, or one by one.
        is_even = emit.compare("uge", base, number(self.low))
        taller = emit.select(is_even, emit.arith("subi", left, emit.arith("muli", tiles, base)), number(0))
        base = emit.larger(base, self.low)
        fits = emit.compare("uge", left, number(self.low))
        self.count, self.has_whole = whole, emit.compare("ne", whole, number(0))
        # The strip before the whole tiles, if there are any, has tiles of one height.
        taken = emit.select(self.has_whole, number(before), number(0))
        takes_taller = emit.compare("uge", taller, taken)
        above = emit.arith("addi", base, number(1))
        first_height = emit.select(takes_taller, above, base)
        first_rows = emit.arith("muli", taken, first_height)
        left_taller = emit.arith("subi", taller, emit.select(takes_taller, taken, number(0)))
        left_lower = emit.arith("subi", emit.arith("subi", tiles, taller), emit.select(takes_taller, number(0), taken))
        left_lower = emit.select(fits, left_lower, number(0))
        second = emit.arith("addi", first_rows, emit.arith("muli", whole, number(height)))
        self.first = self._row(first_rows)
        self._ends = [(number(0), second), (first_rows, emit.arith("subi", number(self._rows), second))]
        self._tiles: list[tuple[int, ir.Value, ir.Value]] = []
        for h in range(self.high, self.low - 1, -1):

            def some(size: ir.Value, count: ir.Value, h: int = h) -> ir.Value:
                return emit.select(emit.compare("eq", size, number(h)), count, number(0))

            self._tiles.append((h, some(first_height, taken), emit.arith("addi", some(above, left_taller), some(base, left_lower))))
        if self.low > 1:
            self._tiles.append((1, number(0), emit.select(fits, number(0), left)))

    def _serves(self, rows: int, before: int, behind: int) -> bool:
        """Whether tiles that cover rows can be split: `before` of one height, and others of `behind` rows at least."""
        tiles = ceil_div(rows, self.high)
        if tiles <= before or rows // tiles < self.low:
            return False
        base, taller = divmod(rows, tiles)
        height, others = (base + 1, taller) if taller >= before else (base, tiles - taller)
        return others >= before and rows - before * height >= behind

    def _row(self, value: ir.Value) -> Index:
        return Index.of(Var(0, 1 << 40, value, name="row"))

    @contextmanager
    def strips(self, evaluator: Evaluator) -> Iterator[Strip]:
        """A loop over the strips that there are."""
        begin = emit.select(self.has_whole, emit.index_constant(0), emit.index_constant(1))
        with nest.loop(begin, 2, evaluator, below=2, name="strip") as number:
            yield self._strip(number)

    @contextmanager
    def parts(self, evaluator: Evaluator) -> Iterator[tuple[Strip, ir.Value, Index, ir.Value]]:
        """A loop over the strips that there are and the whole tiles between them. Gives a strip, whether the part is that and not a whole
        tile, the first row of the part, and how many rows it has."""
        one = emit.index_constant(1)
        begin, last = emit.select(self.has_whole, emit.index_constant(0), one), emit.arith("addi", self.count, one)
        with nest.loop(begin, emit.arith("addi", last, one), evaluator, below=1 << 40, name="part") as part:
            strip, number = self._strip(part), emit.materialize(part)
            is_strip = emit.arith("ori", *(emit.compare("eq", number, end) for end in (emit.index_constant(0), last)))
            tile = emit.materialize(self.first + (part - 1) * self.height)
            first = emit.select(is_strip, emit.materialize(strip.first), tile)
            yield strip, is_strip, self._row(first), emit.select(is_strip, strip.rows, emit.index_constant(self.height))

    def _strip(self, number: Index) -> Strip:
        """The first strip if a number is 0, otherwise the last one."""
        is_first = emit.compare("eq", emit.materialize(number), emit.index_constant(0))
        first, rows = (emit.select(is_first, a, b) for a, b in self._ends)
        tiles = tuple(EqualTiles(height, emit.select(is_first, a, b)) for height, a, b in self._tiles)
        return Strip(self._row(first), rows, tiles)


def _touched(contraction: Contraction) -> tuple[int, int]:
    """Rows at the beginning and at the end that a padding touches, at most."""
    first: Size = 0
    end: Size = contraction.row_extent
    var = contraction.rows[-1].var
    for index, extent in contraction.a.checks:
        c = index.coefficient(var)
        if c == 0:
            continue
        low, high = (index + Index(0, {var: -c})).bounds()
        first, end = maximum(first, ceil_div(-low, c)), minimum(end, (extent - 1 - high) // c + 1)
    most = bounds(first)[1], bounds(contraction.row_extent - end)[1]
    if max(most) > 64:
        raise NotStructured("a padding of many rows")
    return most


class StripCopy:
    """The strip that tiles of a thread read: the buffer, how A is read there, and what fills it.

    Attributes:
      contraction: the one of the kernel with A in the strip.
    """

    def __init__(self, contraction: Contraction, most_rows: int, lanes: int, has_masks: bool, evaluator: Evaluator) -> None:
        self.c, self.lanes, self.evaluator = contraction, lanes, evaluator
        self.row = contraction.rows[-1].var
        moving = [d for d, index in enumerate(contraction.a.indices) if index.coefficient(self.row) != 0]
        # A filter of one column has no loop over its columns.
        taps = {v for d in moving for v in contraction.a.indices[d].terms if v.extent != 1} - {self.row}
        if len(moving) != 1 or len(taps) > 1 or not taps <= set(contraction.reduction):
            raise NotStructured("rows that move along several dimensions")
        self.dimension, self.tap = moving[0], next(iter(taps), None)
        index = contraction.a.indices[self.dimension]
        self.stride, self.dilation = int(index.coefficient(self.row)), int(index.coefficient(self.tap))
        if self.stride < 1 or self.dilation < 0:
            raise NotStructured("rows or taps that go backwards")
        self.reach = self.dilation * (int(self.tap.high) if self.tap is not None else 0)
        # Merged loops have no padding: merged rows read existing elements beyond the end of this dimension, up to the last row.
        is_merged = len(contraction.rows[-1].members) > 1
        self.extent = contraction.row_extent * self.stride if is_merged else contraction.a.node.shape[self.dimension]
        positions = (most_rows - 1) * self.stride + self.reach + 1
        # Neighbours in memory are neighbours in the strip; whole vectors of them are stored.
        self.along_rows = has_masks and contraction.a.offset.coefficient(self.row) == self.stride
        if self.along_rows:
            positions = ceil_div(positions, lanes) * lanes
        steps = [v for v in contraction.reduction if v is not self.tap]
        place = len(steps) if self.along_rows else contraction.reduction.index(self.tap) if self.tap is not None else 0
        self.order: list[Var | None] = [*steps[:place], None, *steps[place:]]  # None marks positions
        self.pitch: dict[Var | None, int] = {}
        size = 1
        for v in reversed(self.order):
            self.pitch[v] = size
            size *= positions if v is None else int(v.extent)
        self.node = Node("arg", (size,), contraction.a.node.element)
        offset = Index(0, {v: pitch for v, pitch in self.pitch.items() if v is not None})
        offset += Index(0, {self.row: self.stride * self.pitch[None], FIRST: -self.stride * self.pitch[None]})
        if self.tap is not None:
            offset += Index(0, {self.tap: self.dilation * self.pitch[None]})
        checks = [(i, extent) for i, extent in contraction.a.checks if i.coefficient(self.row) == 0]
        self.contraction = replace(contraction, a=replace(contraction.a, node=self.node, indices=[offset], checks=checks))

    def allocate(self) -> None:
        """The buffer, at the ambient insertion point."""
        self.evaluator.bind(self.node, local_buffer(int(self.node.shape[0]), self.node.element))

    def fill(self, strip: Strip, point: Point) -> None:
        """Copies the data that the rows of a strip read."""
        base = self.c.a.indices[self.dimension].at({self.row: strip.first})
        rows = emit.arith("subi", strip.rows, emit.index_constant(1))
        used = emit.arith("addi", emit.arith("muli", rows, emit.index_constant(self.stride)), emit.index_constant(self.reach + 1))
        low = emit.larger(emit.arith("minsi", emit.materialize(base * -1), used), 0)
        high = emit.arith("maxsi", emit.arith("minsi", emit.materialize(base * -1 + self.extent), used), low)
        ends, point = (low, high, used), {**point, self.row: strip.first}
        if self.along_rows:
            self._fill_vectors(base, ends, point)
            return
        place = self.order.index(None)
        outer, inner = ([v for v in some if v is not None] for some in (self.order[:place], self.order[place + 1 :]))
        with self._each_step(outer, point, Index()) as (steps, at):
            self._fill_positions(inner, base, ends, steps, at)

    def _fill_positions(self, inner: Sequence[Var], base: Index, ends: tuple[ir.Value, ...], point: Point, at: Index) -> None:
        """The positions of the outer steps one by one: all inner steps of those inside, zeros for others."""
        low, high, used = ends
        with nest.loop(0, used, self.evaluator, below=1 << 40, name="position") as position:
            number, here = emit.materialize(position), at + position * self.pitch[None]
            is_inside = emit.arith("andi", emit.compare("sge", number, low), emit.compare("slt", number, high))
            copied = lambda: self._fill_steps(inner, base + position, point, here)  # noqa: E731
            nest.when(is_inside, self.evaluator, copied, lambda: self._fill_steps(inner, None, point, here))

    def _fill_steps(self, order: Sequence[Var], position: Index | None, point: Point, at: Index) -> None:
        """All steps of the reduction for a position: copied, or zeros if the position is None. There may be no steps."""
        if not order:
            self._copy(None, position, point, at, Index(), 1)
            return
        *outer, last = order
        variables = [Var(0, v.high, name=v.name) for v in outer]
        with nest.serial(variables, self.evaluator):
            point = {**point, **{v: Index.of(var) for v, var in zip(outer, variables, strict=True)}}
            at += Index(0, {var: self.pitch[v] for v, var in zip(outer, variables, strict=True)})
            extent, lanes = int(last.extent), self.lanes if position is None or self.c.a.offset.coefficient(last) == 1 else 1
            whole = extent // lanes if extent // lanes > MOST_UNROLLED else 0
            if whole:
                with nest.loop(0, whole * lanes, self.evaluator, step=lanes, name="k") as var:
                    self._copy(last, position, point, at, var, lanes)
            for start, width in vectors.pieces(extent - whole * lanes, lanes):
                with self.evaluator.scope():
                    self._copy(last, position, point, at, Index(whole * lanes + start), width)

    def _copy(self, last: Var | None, position: Index | None, point: Point, at: Index, step: Index, lanes: int) -> None:
        with self.evaluator.along(lanes) as lane:
            point = point if last is None else {**point, last: step + lane}
            value = emit.zero(self.node.element) if position is None else self._element(point, position)
            self.evaluator.store(value, self.evaluator.buffers[self.node], at + step + lane)

    def _fill_vectors(self, base: Index, ends: tuple[ir.Value, ...], point: Point) -> None:
        """Vectors of positions, which are neighbours in memory; a mask says which are inside."""
        low, high, used = ends
        with nest.loop(0, used, self.evaluator, step=self.lanes, below=1 << 40, name="position") as position:
            until, before = (emit.first_lanes(emit.arith("subi", end, emit.materialize(position)), self.lanes) for end in (high, low))
            mask = emit.arith("andi", until, emit.arith("xori", before, emit.number(1, before.type)))
            steps = [v for v in self.order if v is not None]
            with self._each_step(steps, point, position) as (inner, at):
                self._copy_vector(mask, base + position, inner, at)

    @contextmanager
    def _each_step(self, steps: Sequence[Var], point: Point, at: Index) -> Iterator[tuple[Point, Index]]:
        """Loops over the steps of the reduction whose rows are inside, which yield their point and their place in the strip."""
        with ExitStack() as loops:
            for v in steps:
                low, high = steps_of(self.contraction, v, point)
                step = loops.enter_context(nest.loop(low, high, self.evaluator, below=v.extent, name=v.name))
                point, at = {**point, v: step}, at + step * self.pitch[v]
            yield point, at

    def _copy_vector(self, mask: ir.Value, position: Index, point: Point, at: Index) -> None:
        with self.evaluator.lanes(self.lanes, mask) as lane:
            found = self._element(point, position + lane)
        with self.evaluator.lanes(self.lanes) as lane:
            value = emit.select(mask, found, emit.zero(found.type))
            self.evaluator.store(value, self.evaluator.buffers[self.node], at + lane)

    def _element(self, point: Point, position: Index) -> ir.Value:
        """The element(s) of A at a position along the rows."""
        indices = [position if d == self.dimension else index.at(point) for d, index in enumerate(self.c.a.indices)]
        return self.evaluator.at(self.c.a.node, indices)
