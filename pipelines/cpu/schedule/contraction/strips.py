"""Rows whose number only a call knows, and that a padding touches at their ends: copies of the ends, with what pads them.

Tiles between the ends read where the rows lie. Those at an end read a strip: what the rows of a few tiles reach, step by step, with zeros
where the padding is. A strip is small beside the work on it, its tiles need not know what is padding, and short rows are one strip.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.contraction.microkernel import Point, steps_of
from relayc.pipelines.cpu.schedule.contraction.tile import cycles
from relayc.pipelines.kernel.contraction import Contraction
from relayc.pipelines.kernel.graph import Node, NotStructured
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit, nest, vectors
from relayc.pipelines.tir.buffers import local_buffer
from relayc.pipelines.tir.evaluator import Evaluator
from relayc.symbolic import Size, bounds, ceil_div, maximum, minimum

MOST_UNROLLED = 4
"""Vectors that are copied one after the other; more are a loop."""
NEAR_BEST = 1.05
"""Cycles of a row of a low tile, as a ratio of those of the best tile, that are worth fewer kinds of tiles."""

FIRST = Var(0, 0, name="first")
"""Key of the first row of a strip in a point."""


@dataclass(frozen=True)
class Tiles:
    """Tiles of one height of a strip: how many."""

    height: int
    count: ir.Value


@dataclass(frozen=True)
class Strip:
    """The rows of one end.

    Attributes:
      first: its first row.
      rows: how many there are.
      tiles: what covers them; the last one of the second height starts early where they are fewer.
    """

    first: Index
    rows: ir.Value
    tiles: tuple[Tiles, ...]


class RowCover:
    """Which tiles cover rows: some in a strip at each end, and `count` whole ones of `height` from row `first` on between them.

    Tiles of a strip have two heights next to each other, of which any number of rows is the sum that is not very small. What the function
    computes of the number of rows is emitted here, once.
    """

    def __init__(self, contraction: Contraction, height: int, vectors: int) -> None:
        self.height, rows = height, contraction.row_extent
        best = min(cycles(n, vectors) / n for n in range(1, height + 1))
        near = next(n for n in range(1, height + 1) if cycles(n, vectors) / n <= best * NEAR_BEST)
        self.low = max(1, min(near, height - 1))
        self.high = min(self.low + 1, height)
        before, behind = (max(1, ceil_div(most, self.low)) for most in _touched(contraction))
        least = (before + behind) * self.high
        self.most_rows = least + height - 1
        number, low, high = emit.index_constant(rows), emit.index_constant(self.low), emit.index_constant(self.high)
        self.count = emit.arith("divui", emit.larger(emit.index_constant(rows - least), 0), emit.index_constant(height))
        self.has_whole = emit.compare("ne", self.count, emit.index_constant(0))
        whole = emit.arith("muli", self.count, emit.index_constant(height))
        left = emit.arith("subi", number, whole)
        tiles = emit.arith("ceildivui", left, high)
        highs = emit.larger(emit.arith("subi", left, emit.arith("muli", tiles, low)), 0)
        # Of the tiles of the ends the first are in the strip before the whole tiles, if there are any.
        no = emit.index_constant(0)
        highs_before = emit.select(self.has_whole, emit.smaller(highs, before), no)
        lows_before = emit.select(self.has_whole, emit.arith("subi", emit.index_constant(before), highs_before), no)
        rows_before = emit.arith("addi", emit.arith("muli", highs_before, high), emit.arith("muli", lows_before, low))
        second = emit.arith("addi", rows_before, whole)
        highs_behind = emit.arith("subi", highs, highs_before)
        lows_behind = emit.arith("subi", emit.arith("subi", tiles, highs), lows_before)
        fits = emit.compare("uge", number, low)
        self.first = self._row(rows_before)
        self._counts = [
            (no, second),
            (rows_before, emit.arith("subi", number, second)),
            (highs_before, highs_behind),
            (lows_before, emit.select(fits, lows_behind, no)),
            (no, emit.select(fits, no, number)),
        ]
        self._rows = rows

    def _row(self, value: ir.Value) -> Index:
        return Index.of(Var(0, 1 << 40, value, name="row"))

    @contextmanager
    def strips(self, evaluator: Evaluator) -> Iterator[Strip]:
        """A loop over the strips that there are."""
        var = Var(0, 1, name="strip")
        begin = emit.select(self.has_whole, emit.index_constant(0), emit.index_constant(1))
        with emit.for_loop(begin, emit.index_constant(2), 1, var), evaluator.scope():
            is_first = emit.compare("eq", var.value, emit.index_constant(0))
            first, rows, highs, lows, singles = (emit.select(is_first, a, b) for a, b in self._counts)
            tiles = [Tiles(self.low, lows)]
            if self.high > self.low:
                tiles.insert(0, Tiles(self.high, highs))
            if self.low > 1:
                tiles.append(Tiles(1, singles))
            yield Strip(self._row(first), rows, tuple(tiles))


def _touched(contraction: Contraction) -> tuple[int, int]:
    """Rows at the beginning and at the end that a padding touches, at most."""
    first: Size = 0
    end: Size = contraction.row_extent
    var = contraction.rows[-1].var
    for index, extent in contraction.a.checks:
        c = index.coefficient(var)
        if c == 0:
            continue
        if not isinstance(c, int) or c < 0:
            raise NotStructured("a padding along which rows go backwards")
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
        taps = {v for d in moving for v in contraction.a.indices[d].terms} - {self.row}
        if len(moving) != 1 or len(taps) > 1 or not taps <= set(contraction.reduction):
            raise NotStructured("rows that move along several dimensions")
        self.dimension, self.tap = moving[0], next(iter(taps), None)
        index = contraction.a.indices[self.dimension]
        self.stride, self.dilation = int(index.coefficient(self.row)), int(index.coefficient(self.tap)) if self.tap is not None else 0
        if self.stride < 1 or self.dilation < 0:
            raise NotStructured("rows or taps that go backwards")
        self.reach = self.dilation * (int(self.tap.high) if self.tap is not None else 0)
        self.extent = contraction.a.node.shape[self.dimension]
        positions = (most_rows - 1) * self.stride + self.reach + 1
        # Neighbours in memory are neighbours in the strip; whole vectors of them are stored.
        self.along_rows = has_masks and contraction.a.offset.coefficient(self.row) == self.stride
        if self.along_rows:
            positions = ceil_div(positions, lanes) * lanes
        steps = [v for v in contraction.reduction if v is not self.tap]
        place = len(steps) if self.along_rows else contraction.reduction.index(self.tap) if self.tap is not None else 0
        self.order: list[Var | None] = [*steps[:place], None, *steps[place:]]  # None stands for positions
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
        """Copies what the rows of a strip read."""
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
        self._each_step(outer, point, Index(), lambda steps, at: self._fill_positions(inner, base, ends, steps, at))

    def _fill_positions(self, inner: Sequence[Var], base: Index, ends: tuple[ir.Value, ...], point: Point, at: Index) -> None:
        """The positions of the outer steps one by one: all inner steps of those inside, zeros for others."""
        low, high, used = ends
        var = Var(0, 1 << 40, name="position")
        with emit.for_loop(emit.index_constant(0), used, 1, var), self.evaluator.scope():
            is_inside = emit.arith("andi", emit.compare("sge", var.value, low), emit.compare("slt", var.value, high))
            here = at + Index(0, {var: self.pitch[None]})
            copied = lambda: self._fill_steps(inner, base + var, point, here)  # noqa: E731
            nest.when(is_inside, self.evaluator, copied, lambda: self._fill_steps(inner, None, point, here))

    def _fill_steps(self, order: Sequence[Var], position: Index | None, point: Point, at: Index) -> None:
        """All steps of the reduction of a position: copied, or zeros where that is None."""
        *outer, last = order
        variables = [Var(0, v.high, name=v.name) for v in outer]
        with nest.serial(variables, self.evaluator):
            point = {**point, **{v: Index.of(var) for v, var in zip(outer, variables, strict=True)}}
            at += Index(0, {var: self.pitch[v] for v, var in zip(outer, variables, strict=True)})
            extent, lanes = int(last.extent), self.lanes if position is None or self.c.a.offset.coefficient(last) == 1 else 1
            whole = extent // lanes if extent // lanes > MOST_UNROLLED else 0
            if whole:
                var = Var(0, (whole - 1) * lanes, step=lanes, name="k")
                with emit.for_loop(0, whole * lanes, lanes, var), self.evaluator.scope():
                    self._copy(last, position, point, at, Index.of(var), lanes)
            for start, width in vectors.pieces(extent - whole * lanes, lanes):
                with self.evaluator.scope():
                    self._copy(last, position, point, at, Index(whole * lanes + start), width)

    def _copy(self, last: Var, position: Index | None, point: Point, at: Index, step: Index, lanes: int) -> None:
        with self.evaluator.along(lanes) as lane:
            value = emit.zero(self.node.element) if position is None else self._element({**point, last: step + lane}, position)
            self.evaluator.store(value, self.evaluator.buffers[self.node], at + step + lane)

    def _fill_vectors(self, base: Index, ends: tuple[ir.Value, ...], point: Point) -> None:
        """Vectors of positions, which are neighbours in memory; a mask says which are inside."""
        low, high, used = ends
        var = Var(0, 1 << 40, name="position")
        with emit.for_loop(emit.index_constant(0), used, self.lanes, var), self.evaluator.scope():
            until, before = (emit.first_lanes(emit.arith("subi", end, var.value), self.lanes) for end in (high, low))
            mask = emit.arith("andi", until, emit.arith("xori", before, emit.number(1, before.type)))
            steps = [v for v in self.order if v is not None]
            self._each_step(steps, point, Index(0, {var: 1}), lambda inner, at: self._copy_vector(mask, base + var, inner, at))

    def _each_step(self, steps: Sequence[Var], point: Point, at: Index, code: Callable[[Point, Index], None]) -> None:
        """`code(point, place in the strip)` for the steps of the reduction whose rows are inside."""
        if not steps:
            code(point, at)
            return
        v, *rest = steps
        var = Var(0, v.high, name=v.name)
        with emit.for_loop(*steps_of(self.contraction, v, point), 1, var), self.evaluator.scope():
            self._each_step(rest, {**point, v: Index.of(var)}, at + Index(0, {var: self.pitch[v]}), code)

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
