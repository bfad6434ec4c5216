"""The innermost code of contractions: a tile of the output held in registers across the reduction loops.

A tile is a few rows by a few vectors of columns; its accumulators are loop-carried values of the reduction loops. Each step loads the
vectors of B and, for each row, broadcasts one element of A. After the reduction the epilogue is evaluated on the accumulators, and the
tile is stored once. What lies around the tiles is the business of `nest`.

Paddings cost nothing: outer reduction loops get bounds that depend on the row, and at the ends of a row tiles leave out what lies outside.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.contraction.tile import RegisterTile, sets_of_sums
from relayc.pipelines.te.read.contraction import Contraction, ProductOperand
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.buffers import LINE, prefetch
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, guess

Accumulators = dict[tuple[int, int], ir.Value]  # by (row, column vector)
Point = dict[Var, Index]
Columns = list[tuple[int, int]]  # (start, lanes) of the vectors of a tile
Steps = Mapping[Var, tuple[ir.Value, ir.Value]]  # bounds of reduction loops that do not run over their whole extent
Checks = Sequence[tuple[Index, Size]]  # indices that a padding bounds, with their extents

COLUMN = Var(0, 0, name="column")
"""Key of the first column of a panel in a point."""
LEFT = Var(0, 0, name="left")
"""Key of the number of columns that are there from the first column of a panel on in a point, where it may not be a whole vector."""
TILE = Var(0, 0, name="tile")
"""Key of the number of a row tile in a point, where A is packed."""

SHORT = 32
"""Steps below which the innermost loop is not worth several sums an element."""


@dataclass(frozen=True)
class Panel:
    """The columns of a panel of B in a buffer, step by step, as many elements a step as a tile has columns.

    Attributes:
      start: where the first step is, or would be.
    """

    buffer: ir.Value
    start: Index


@dataclass(frozen=True)
class Ahead:
    """What the steps of a tile ask the memory for: step k of the reduction for the cache lines of `pitch` elements of a buffer from
    `first` + k * `pitch` on, to come to the cache of a level; with a `share`, from `first` + k * `share` on, which is in the buffer.

    Attributes:
      parts: where that is their own panel, in how many parts they may read it at once instead. A core reads ahead in each of them by
        itself, which takes no instructions, and all of them together come faster than one.
    """

    buffer: ir.Value
    first: Index
    pitch: int
    level: int
    share: ir.Value | None = None
    parts: int = 1


@dataclass(frozen=True)
class Sweep:
    """How tiles go over the reduction.

    Attributes:
      columns: vectors of the tile.
      panel: where B is read from; None if it lies.
      steps: bounds of reduction loops that do not run over their whole extent.
      multiple: what the number of steps between such bounds is a multiple of.
      on_inner_loop: emits what is to be done beside each run of the innermost reduction loop, at the point of the first row.
      ahead: what the steps ask the memory for; None for nothing.
    """

    columns: Columns
    panel: Panel | None = None
    steps: Steps = field(default_factory=dict)
    multiple: int = 1
    on_inner_loop: Callable[[Point], None] | None = None
    ahead: Ahead | None = None


@dataclass(frozen=True)
class RowCopy:
    """A copy of A: `at(points, row)` is the position of the element for a row of a tile, whose rows are at `points`; None if it is read
    from A itself."""

    buffer: ir.Value
    at: Callable[[Sequence[Point], int], Index | None]


class Microkernel:
    """Emits tiles of a contraction to a flat buffer. Without a `copy` A is read where it lies."""

    def __init__(
        self, contraction: Contraction, tile: RegisterTile, evaluator: Evaluator, output: ir.Value, copy: RowCopy | None = None
    ) -> None:
        self.c, self.tile, self.evaluator, self.output, self.copy = contraction, tile, evaluator, output, copy

    def tile_code(self, var: Var | None, points: Sequence[Point], sweep: Sweep, edge: bool = False) -> None:
        """One tile of rows along the row variable: accumulators, reduction, epilogue and store.

        `edge` says that a padding bounds the rows of this tile.
        """
        accumulators = self.reduce(points, sweep, self.initial(points, sweep.columns), var if edge else None)
        self.finish(points, sweep.columns, accumulators, var)

    def initial(self, points: Sequence[Point], columns: Columns) -> Accumulators:
        """The initial values of the sums of rows."""
        init = self.c.structured.inits[0]
        result = {}
        for j, (start, lanes) in enumerate(columns):
            with along_columns(self.evaluator, points[0], start, lanes) as lane:
                for i, point in enumerate(points):
                    value = self.evaluator.at(init, self.output_at(point, lane + start) if init.shape else [])
                    result[i, j] = emit.broadcast(value, lanes)
        return result

    def reduce(self, points: Sequence[Point], sweep: Sweep, accumulators: Accumulators, edge: Var | None = None) -> Accumulators:
        """The reduction loops; `edge` is the row variable where rows of the tile may lie outside for some steps of a checked loop."""
        return self._reduce(self.c.reduction, points, sweep, accumulators, edge)

    def _reduce(
        self, loops: Sequence[Var], points: Sequence[Point], sweep: Sweep, accumulators: Accumulators, edge: Var | None
    ) -> Accumulators:
        if not loops:
            return self._step(points, sweep, accumulators)
        var, *rest = loops
        if not rest and sweep.on_inner_loop is not None:
            sweep.on_inner_loop(points[0])
        checks = [(index, extent) for index, extent in self.c.a.checks if index.coefficient(var)]
        if edge is not None and any(index.coefficient(edge) for index, _ in checks):
            return self._unrolled(var, rest, checks, points, sweep, accumulators, edge)
        low, high = sweep.steps[var] if var in sweep.steps else steps_of(self.c, var, points[0])
        sets = 1 if rest else self._sets(var, accumulators)
        if sets > 1:
            return self._in_sets(var, low, high, sets, points, sweep, accumulators)
        with self._each_step(var, low, high, 1, points, accumulators) as (inner, sums, loop):
            found = self._reduce(rest, inner, sweep, sums, edge)
            emit.yield_values([found[k] for k in accumulators])
        return dict(zip(accumulators, loop.results, strict=True))

    @contextmanager
    def _each_step(
        self, var: Var, low: ir.Value | Size, high: ir.Value | Size, step: int, points: Sequence[Point], sums: Accumulators
    ) -> Iterator[tuple[list[Point], Accumulators, emit.Serial]]:
        """A loop over steps of the reduction that carries sums; what is emitted inside ends in `yield_values`."""
        loop = Var(0, var.high, step=step, name=var.name)
        with emit.for_loop(low, high, step, loop, list(sums.values())) as op, self.evaluator.scope():
            yield [{**p, var: Index.of(loop)} for p in points], dict(zip(sums, op.inner_iter_args, strict=True)), op

    def _sets(self, var: Var, accumulators: Accumulators) -> int:
        """How many sums each element has."""
        if not isinstance(self.c.node.element, ir.FloatType) or guess(var.extent) < SHORT:
            return 1
        return sets_of_sums(len(accumulators))

    def _in_sets(
        self,
        var: Var,
        low: ir.Value | Size,
        high: ir.Value | Size,
        sets: int,
        points: Sequence[Point],
        sweep: Sweep,
        accumulators: Accumulators,
    ) -> Accumulators:
        """The innermost loop with several sums per element, of which a step updates one; the sums are combined after the loop. The
        remaining steps follow.

        Steps alternate between the sums, or each sum has a part of the steps.
        """
        end: ir.Value | Size
        if isinstance(low, int) and isinstance(high, int):
            end = high - (high - low) % sets
        elif sweep.multiple % sets == 0:
            end = high
        else:
            low, high = (b if isinstance(b, ir.Value) else emit.index_constant(b) for b in (low, high))
            left = emit.arith("remui", emit.arith("subi", high, low), emit.index_constant(sets))
            end = emit.arith("subi", high, left)
        until, step, starts = end, sets, [Index(n) for n in range(sets)]
        if sweep.ahead is not None and sweep.ahead.parts >= sets:
            until, starts = self._parts(var, low, end, sets)
            step = 1
            sweep = replace(sweep, ahead=None)
        rows = len(points)
        # The sums of a set are those of rows of their own, as far as loops carry them.
        carried = {(n * rows + i, j): v if n == 0 else emit.zero(v.type) for n in range(sets) for (i, j), v in accumulators.items()}
        with self._each_step(var, low, until, step, points, carried) as (inner, sums, loop):
            found: Accumulators = {}
            for n, start in enumerate(starts):
                at = [{**p, var: p[var] + start} for p in inner]
                added = self._step(at, sweep, {(i, j): sums[n * rows + i, j] for i, j in accumulators})
                found |= {(n * rows + i, j): value for (i, j), value in added.items()}
            emit.yield_values([found[k] for k in carried])
        given = dict(zip(carried, loop.results, strict=True))
        total = {key: given[key] for key in accumulators}
        for n in range(1, sets):
            total = {(i, j): emit.arith("addf", value, given[n * rows + i, j]) for (i, j), value in total.items()}
        if end is high or (isinstance(end, int) and end == high):
            return total
        with self._each_step(var, end, high, 1, points, total) as (inner, sums, rest):
            found = self._step(inner, sweep, sums)
            emit.yield_values([found[k] for k in total])
        return dict(zip(total, rest.results, strict=True))

    def _parts(self, var: Var, low: ir.Value | Size, end: ir.Value | Size, count: int) -> tuple[ir.Value | Size, list[Index]]:
        """The end of a loop over `count` parts of the steps from `low` to `end` at once, and where each part begins."""
        if isinstance(low, int) and isinstance(end, int):
            length = (end - low) // count
            return low + length, [Index(n * length) for n in range(count)]
        first, last = (b if isinstance(b, ir.Value) else emit.index_constant(b) for b in (low, end))
        of_part = emit.arith("divui", emit.arith("subi", last, first), emit.index_constant(count))
        starts = [emit.arith("muli", of_part, emit.index_constant(n)) for n in range(1, count)]
        return emit.arith("addi", first, of_part), [Index(), *(Index.of(Var(0, var.high, value, name="part")) for value in starts)]

    def _unrolled(
        self,
        var: Var,
        rest: Sequence[Var],
        checks: Checks,
        points: Sequence[Point],
        sweep: Sweep,
        accumulators: Accumulators,
        edge: Var,
    ) -> Accumulators:
        """A checked loop at the end of a row: each step for the rows of the tile that are inside."""
        columns = range(len(sweep.columns))
        for position in range(var.extent):
            inside = []
            for i, p in enumerate(points):
                at = {**p, var: Index(position)}
                values = [(index.at(at), extent) for index, extent in checks]
                if any(not v.is_constant for v, _ in values):
                    raise NotStructured("a padding that depends on two row loops")
                if all(0 <= v.const < extent for v, extent in values):
                    inside.append((i, at))
            if not inside:
                continue
            chosen = {(n, j): accumulators[i, j] for n, (i, _) in enumerate(inside) for j in columns}
            found = self._reduce(rest, [at for _, at in inside], sweep, chosen, edge)
            accumulators = {**accumulators, **{(i, j): found[n, j] for n, (i, _) in enumerate(inside) for j in columns}}
        return accumulators

    # ---- the innermost step

    def _step(self, points: Sequence[Point], sweep: Sweep, accumulators: Accumulators) -> Accumulators:
        """Multiply-adds of one reduction step."""
        result = {}
        with self.evaluator.scope():
            self._prefetch(points[0], sweep.ahead)
            right = [self._load_b(points[0], sweep.panel, start, lanes) for start, lanes in sweep.columns]
            for i in range(len(points)):
                scalar = emit.convert(self._load_a(points, i), self.c.a.casts)
                left = {lanes: emit.broadcast(scalar, lanes) for lanes in dict.fromkeys(lanes for _, lanes in sweep.columns)}
                for j, (_, lanes) in enumerate(sweep.columns):
                    result[i, j] = emit.multiply_add(left[lanes], right[j], accumulators[i, j])
        return result

    def _prefetch(self, point: Point, ahead: Ahead | None) -> None:
        """The prefetches of a step."""
        if ahead is None:
            return
        step, size = self.c.step(point), ahead.buffer.type.shape[0]
        if ahead.share is not None:
            along = emit.arith("muli", emit.materialize(step), ahead.share)
            start = self.evaluator.opaque(emit.arith("addi", emit.materialize(ahead.first), along), 0, size - ahead.pitch)
        else:
            start = emit.at_most(ahead.first + step * ahead.pitch, size - 1)
        for line in range(0, ahead.pitch, LINE * 8 // self.c.b.node.element.width):
            prefetch(ahead.buffer, start + line, ahead.level)

    def _load_a(self, points: Sequence[Point], row: int) -> ir.Value:
        """The element of A for a row of a tile, which takes its rows as `points` say."""
        offset = self.copy.at(points, row) if self.copy is not None else None
        if self.copy is None or offset is None:
            return element(self.c.a, points[row], self.evaluator)
        return self.evaluator.load_from(self.copy.buffer, self.c.a.node.element, offset)

    def _load_b(self, point: Point, panel: Panel | None, start: int, lanes: int) -> ir.Value:
        """A vector of B: `lanes` columns from column `start` of the panel."""
        c = self.c
        if panel is None:
            with along_columns(self.evaluator, point, start, lanes) as lane:
                value = element(c.b, {**point, **c.column_point(point[COLUMN] + start + lane)}, self.evaluator)
                return emit.convert(value, c.b.casts)
        with self.evaluator.along(lanes) as lane:
            at = panel.start + c.step(point) * self.tile.width + start + lane
            return emit.convert(self.evaluator.load_from(panel.buffer, c.b.node.element, at), c.b.casts)

    # ---- epilogue

    def finish(self, points: Sequence[Point], columns: Columns, accumulators: Accumulators, var: Var | None) -> None:
        """Evaluates the epilogue on the sums of rows, `var` being the row variable, and stores the results."""
        c = self.c
        stride = c.store_stride(c.column)
        row_stride = c.store_stride(var) if var is not None else 0
        for j, (start, lanes) in enumerate(columns):
            with along_columns(self.evaluator, points[0], start, lanes) as lane:
                offsets, values = [], []
                for i, point in enumerate(points):
                    at = self.output_at(point, lane + start)
                    self.evaluator.remember(c.node, at, accumulators[i, j])
                    offset = linearize(at, c.node.shape)
                    values.append(self.evaluator.at(c.root, c.root_point(at)))
                    offsets.append(offset)
                if lanes > 1 and stride != 1 and row_stride == 1 and len(points) > 1:
                    vectors.store_across(values, self.output, offsets[0] - lane * stride, stride, lanes)
                else:
                    for value, offset in zip(values, offsets, strict=True):
                        self.evaluator.store(value, self.output, offset)

    def output_at(self, point: Point, column: Index) -> list[Index]:
        """Indices of the result at a column of the panel."""
        return self.c.output_at({**point, **self.c.column_point(point[COLUMN] + column)})


@dataclass(frozen=True)
class Sums:
    """Sums that wait in memory: `pitch` elements a row."""

    buffer: ir.Value
    pitch: int
    element: ir.Type

    def load(self, rows: int, columns: Columns, place: Index, evaluator: Evaluator) -> Accumulators:
        """The sums of a tile whose first row is at element `place`."""
        found = {}
        for j, (start, lanes) in enumerate(columns):
            with evaluator.along(lanes) as lane:
                for i in range(rows):
                    found[i, j] = evaluator.load_from(self.buffer, self.element, place + i * self.pitch + start + lane)
        return found

    def store(self, sums: Accumulators, columns: Columns, place: Index, evaluator: Evaluator) -> None:
        """Stores the sums of a tile, its first row at element `place`."""
        for (i, j), value in sums.items():
            start, lanes = columns[j]
            with evaluator.along(lanes) as lane:
                evaluator.store(value, self.buffer, place + i * self.pitch + start + lane)


def element(operand: ProductOperand, point: Point, evaluator: Evaluator) -> ir.Value:
    """The element(s) of an operand, in place, at a point; loops without an index there are at 0."""
    return evaluator.at(operand.node, [index.at(point) for index in operand.indices])


@contextmanager
def along_columns(evaluator: Evaluator, point: Point, start: int, lanes: int) -> Iterator[Index]:
    """A scope with the lanes of a vector of a panel, from its column `start` on; only those that are there are read and written."""
    left = point.get(LEFT)
    if left is None or (left.is_constant and isinstance(left.const, int) and left.const >= start + lanes):
        with evaluator.along(lanes) as lane:
            yield lane
        return
    mask = evaluator.once(("columns", left.key, start, lanes), lambda: emit.first_lanes(emit.materialize(left - start), lanes))
    with evaluator.lanes(lanes, mask) as var:
        yield Index.of(var)


def steps_of(contraction: Contraction, var: Var, point: Point) -> tuple["ir.Value | int", "ir.Value | int"]:
    """First and one-past-last step of a reduction loop for which no index that a padding bounds leaves its dimension at a row.

    Tiles were chosen so that checks along the innermost row loop hold.
    """
    c, low, high = contraction, 0, var.extent
    for index, extent in c.a.checks:
        if not index.coefficient(var) or (c.rows and c.rows[-1].var in index.terms):
            continue
        if not index.at({**{v: Index.of(v) for v in index.terms}, **point}).is_within(0, extent - 1):
            low, high = _bounds(index, extent, var, point)
    return low, high


def _bounds(index: Index, extent: Size, var: Var, point: Point) -> tuple[ir.Value, ir.Value]:
    """First and one-past-last step of `var` for which 0 <= index < extent."""
    c = index.coefficient(var)
    rest = (index - Index(0, {var: c})).at(point)
    first, end = (rest * -1, rest * -1 + extent) if c > 0 else (rest - (extent - 1), rest + 1)
    return emit.steps_inside(first, end, abs(int(c)), var.extent)


def rows_from(var: Var | None, start: Index, size: int, point: Point) -> list[Point]:
    """Points of `size` rows from `start` along a row variable."""
    return [{**point, **({var: start + r} if var is not None else {})} for r in range(size)]
