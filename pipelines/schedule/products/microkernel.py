"""The innermost code of contractions: a tile of the output held in registers across the reduction loops.

A tile is a few rows by a few vectors of columns; its accumulators are loop-carried values of the reduction loops. Each step loads the
vectors of B and, for each row, broadcasts one element of A. After the reduction the epilogue is evaluated on the accumulators, and the
tile is stored once. What lies around the tiles is the business of `nest`.

Paddings cost nothing: outer reduction loops get bounds that depend on the row, and at the ends of a row tiles leave out what lies outside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.schedule import emit
from relayc.pipelines.schedule.evaluate import Evaluator
from relayc.pipelines.schedule.graph import NotStructured
from relayc.pipelines.schedule.index import Index, Var, linearize
from relayc.pipelines.schedule.products.contraction import Contraction, Operand
from relayc.pipelines.schedule.products.tile import CACHE_LINE, Tile

Value = ir.Value
Accumulators = dict[tuple[int, int], Value]  # by (row, column vector)
Point = dict[Var, Index]
Columns = list[tuple[int, int]]  # (start, lanes) of the vectors of a tile

COLUMN = Var(0, 0, name="column")
"""Key of the first column of a panel in a point."""
TILE = Var(0, 0, name="tile")
"""Key of the number of a row tile in a point, where A is packed."""


@dataclass(frozen=True)
class Ahead:
    """What the steps of a tile ask the memory for: step k of the reduction for the cache lines of `pitch` elements of a buffer from
    `first` + k * `pitch` on, to come to the cache of a level."""

    buffer: Value
    first: Index
    pitch: int
    level: int


class Microkernel:
    """Emits tiles of a contraction.

    Attributes:
      output: flat buffer of the kernel's result.
      panel: where B is read from: a buffer that holds the columns of a panel step by step, `tile.width` a step, and its first element in
        it; None where B is read in place.
      packed_rows: a buffer that holds A tile by tile, the rows of a tile side by side for each step; None where A is read in place.
      steps: bounds of reduction loops that do not run over their whole extent.
      on_inner_loop: emits what is to be done beside each run of the innermost reduction loop, at the point of the first row.
      ahead: what the steps ask the memory for; None for nothing.
    """

    def __init__(self, contraction: Contraction, tile: Tile, evaluator: Evaluator, output: Value) -> None:
        self.c, self.tile, self.evaluator, self.output = contraction, tile, evaluator, output
        self.panel: tuple[Value, Index] | None = None
        self.packed_rows: Value | None = None
        self.steps: dict[Var, tuple[Value, Value]] = {}
        self.on_inner_loop: Callable[[Point], None] | None = None
        self.ahead: Ahead | None = None

    def tile_code(self, var: Var | None, start: Index, size: int, columns: Columns, point: Point, edge: bool = False) -> None:
        """One tile from `start` along the row variable: accumulators, reduction, epilogue and store.

        `edge` says that a padding bounds the rows of this tile.
        """
        points = rows_from(var, start, size, point)
        accumulators = self.initial(points, columns)
        accumulators = self.reduce(list(self.c.reduction), points, columns, accumulators, var if edge else None)
        self.finish(points, columns, accumulators, var)

    def initial(self, points: Sequence[dict], columns: Columns) -> Accumulators:
        init = self.c.structured.inits[0]
        result = {}
        for j, (start, lanes) in enumerate(columns):
            with self.evaluator.lanes(lanes) as lane:
                for i, point in enumerate(points):
                    value = self.evaluator.at(init, self.output_point(point, start, lane) if init.shape else [])
                    result[i, j] = emit.broadcast(value, lanes) if lanes > 1 else value
        return result

    def reduce(self, loops: list[Var], points, columns, accumulators: Accumulators, edge: Var | None) -> Accumulators:
        """The reduction loops; `edge` is the row variable where rows of the tile may lie outside for some steps of a checked loop."""
        if not loops:
            return self.step(points, columns, accumulators)
        var, *rest = loops
        if not rest and self.on_inner_loop is not None:
            self.on_inner_loop(points[0])
        checks = [(index, extent) for index, extent in self.c.a.checks if index.coefficient(var)]
        if edge is not None and any(index.coefficient(edge) for index, _ in checks):
            return self.unrolled(var, rest, checks, points, columns, accumulators, edge)
        low, high = self.steps.get(var, (0, var.high + 1))
        for index, extent in checks:
            if not self.is_inside(index, extent, points[0], edge):
                low, high = self.bounds(index, extent, var, points[0])
        loop = Var(0, var.high, name=var.name)
        keys = list(accumulators)
        with emit.for_loop(low, high, 1, loop, [accumulators[k] for k in keys]) as op, self.evaluator.scope():
            inner = [{**p, var: Index.of(loop)} for p in points]
            found = self.reduce(rest, inner, columns, dict(zip(keys, op.inner_iter_args, strict=True)), edge)
            emit.yield_values([found[k] for k in keys])
        return dict(zip(keys, op.results, strict=True))

    def is_inside(self, index: Index, extent: int, point: Point, edge: Var | None) -> bool:
        """Whether a checked index stays within its dimension at this row, for every step of the loop it depends on."""
        low, high = index.at({**{v: Index.of(v) for v in index.terms}, **point}).bounds()
        return (low >= 0 and high < extent) or any(self.row_variable(v) for v in index.terms)

    def row_variable(self, var: Var) -> bool:
        # Interior tiles were chosen so that checks along the innermost row loop hold.
        return bool(self.c.rows) and var is self.c.rows[-1][0][-1]

    def bounds(self, index: Index, extent: int, var: Var, point: Point) -> tuple[Value, Value]:
        """First and one-past-last step of `var` for which 0 <= index < extent."""
        c = index.coefficient(var)
        rest = (index - Index(0, {var: c})).at(point)
        type_ = ir.IndexType.get()

        def steps(limit: Index) -> Value:  # ceil(limit / |c|)
            value = emit.materialize(limit)
            return value if abs(c) == 1 else emit.create("arith.ceildivsi", [type_], [value, emit.index_constant(abs(c))])

        first, end = (rest * -1, rest * -1 + extent) if c > 0 else (rest - (extent - 1), rest + 1)
        low = emit.create("arith.maxsi", [type_], [steps(first), emit.index_constant(0)])
        high = emit.create("arith.minsi", [type_], [steps(end), emit.index_constant(var.high + 1)])
        return low, high

    def unrolled(self, var: Var, rest, checks, points, columns, accumulators: Accumulators, edge: Var) -> Accumulators:
        """A checked loop at the end of a row: each step for the rows of the tile that are inside."""
        for position in range(var.high + 1):
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
            chosen = {(n, j): accumulators[i, j] for n, (i, _) in enumerate(inside) for j in range(len(columns))}
            found = self.reduce(rest, [at for _, at in inside], columns, chosen, edge)
            accumulators = {**accumulators, **{(i, j): found[n, j] for n, (i, _) in enumerate(inside) for j in range(len(columns))}}
        return accumulators

    # ---- the innermost step

    def step(self, points, columns, accumulators: Accumulators) -> Accumulators:
        """Multiply-adds of one reduction step."""
        c = self.c
        result = {}
        with self.evaluator.scope():
            self.prefetch(points[0])
            vectors = [self.load_b(points[0], start, lanes) for start, lanes in columns]
            for i in range(len(points)):
                scalar = self.cast(self.load_a(points, i), c.a.casts)
                for j, (_, lanes) in enumerate(columns):
                    factor = emit.broadcast(scalar, lanes) if lanes > 1 else scalar
                    result[i, j] = emit.multiply_add(factor, vectors[j], accumulators[i, j])
        return result

    def load_a(self, points: Sequence[Point], row: int) -> Value:
        """The element of A for a row of a tile, which takes its rows as `points` say."""
        c = self.c
        if self.packed_rows is None:
            return self.element(c.a, points[row])
        offset = tile_offset(c, self.tile, points[0]) + c.step(points[0]) * self.tile.rows + row
        return self.evaluator.load_from(self.packed_rows, c.a.node.element, offset)

    def load_b(self, point: Point, start: int, lanes: int) -> Value:
        """A vector of B: `lanes` columns from column `start` of the panel."""
        c = self.c
        with self.evaluator.lanes(lanes) as lane:
            along = Index.of(lane) if lanes > 1 else Index()
            if self.panel is None:
                at = {**point, **c.column_point(point[COLUMN] + start + along)}
                value = self.element(c.b, at)
            else:
                buffer, first = self.panel
                value = self.evaluator.load_from(buffer, c.b.node.element, first + c.step(point) * self.tile.width + start + along)
            return self.cast(value, c.b.casts)

    def prefetch(self, point: Point) -> None:
        """What a step asks the memory for."""
        if self.ahead is None:
            return
        buffer, element = self.ahead.buffer, self.c.b.node.element
        start = self.ahead.first + self.c.step(point) * self.ahead.pitch
        start = emit.at_most(start, buffer.type.shape[0] - 1)
        for line in range(0, self.ahead.pitch, CACHE_LINE * 8 // element.width):
            emit.prefetch(buffer, start + line, self.ahead.level)

    def cast(self, value: Value, casts: Sequence[tuple[str, ir.Type]]) -> Value:
        for name, type_ in casts:
            wide = emit.vector_of(value.type.shape[0], type_) if emit.is_vector(value) else type_
            value = emit.create(name, [wide], [value])
        return value

    # ---- epilogue

    def finish(self, points, columns, accumulators: Accumulators, var: Var | None) -> None:
        c = self.c
        stride = c.store_stride(c.column)
        row_stride = c.store_stride(var) if var is not None else 0
        for j, (start, lanes) in enumerate(columns):
            with self.evaluator.lanes(lanes) as lane:
                offsets, values = [], []
                for i, point in enumerate(points):
                    at = self.output_point(point, start, lane)
                    self.evaluator.remember(c.node, at, accumulators[i, j])
                    offset = linearize(at, c.node.shape)
                    values.append(self.evaluator.at(c.root, c.root_point(at)))
                    offsets.append(offset)
                if lanes > 1 and stride != 1 and row_stride == 1 and len(points) > 1:
                    store_across(values, self.output, offsets[0] - Index(0, {lane: stride}), stride, lanes)
                else:
                    for value, offset in zip(values, offsets, strict=True):
                        self.evaluator.store(value, self.output, offset)

    def output_point(self, point: Point, start: int, lane: Var) -> list[Index]:
        c = self.c
        at = {**point, **c.column_point(point[COLUMN] + start + (Index.of(lane) if self.evaluator.width > 1 else Index()))}
        dims = c.structured.output_dims(c.node.position)
        return [Index() if d is None else at.get(c.variables[d], Index()) for d in dims]

    def element(self, operand: Operand, point: Point) -> Value:
        """The element(s) of an operand, where it lies, at a point; loops without an index there are at 0."""
        return self.evaluator.at(operand.node, [index.at(point) for index in operand.indices])


def column_vectors(count: int, lanes: int) -> Columns:
    """(start, lanes) of the vectors that cover `count` columns: whole ones, then halves of halves."""
    found, start = [], 0
    while start < count:
        while lanes > count - start:
            lanes //= 2
        found.append((start, lanes))
        start += lanes
    return found


def rows_from(var: Var | None, start: Index, size: int, point: Point) -> list[Point]:
    """Points of `size` rows from `start` along a row variable."""
    return [{**point, **({var: start + r} if var is not None else {})} for r in range(size)]


def tile_offset(contraction: Contraction, tile: Tile, point: Point) -> Index:
    """Where a row tile begins in a packed A: tiles one after the other, batch by batch."""
    offset = Index()
    for v in contraction.batch:
        offset = offset * (v.high + 1) + point.get(v, Index())
    count = -(-contraction.rows[-1][1] // tile.rows)
    return (offset * count + point[TILE]) * (tile.rows * contraction.depth)


def store_across(rows: Sequence[Value], buffer: Value, base: Index, stride: int, lanes: int) -> None:
    """Stores vectors so that the values of a lane, `stride` elements after those of the lane before, are neighbours in memory."""
    for first in range(0, len(rows), lanes):
        group = [emit.broadcast(v, lanes) for v in rows[first : first + lanes]]
        columns = emit.transpose(group + [group[-1]] * (lanes - len(group)))
        for k, column in enumerate(columns):
            for begin, width in column_vectors(len(group), lanes):
                part = column
                if width < lanes:
                    type_ = emit.vector_of(width, column.type.element_type)
                    mask = {"mask": ir.DenseI64ArrayAttr.get(list(range(begin, begin + width)))}
                    part = emit.create("vector.shuffle", [type_], [column, column], mask)
                offset = base + k * stride + first + begin
                emit.create("vector.store", [], [part, buffer, emit.materialize(offset)])
