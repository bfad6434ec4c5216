"""How tiles read rows of A that do not lie as they want them: from a copy in their order, or from where a table says that each begins.

Rows of a convolution are pixels of the result, line after line. Where a line is short, or only a call knows how long it is, tiles of one
line leave rows unused; tiles over the ends of lines do not, but their rows are at no regular distance in A. What is read is a copy with its
padding around it, so that no row asks what is inside (Dukhan's indirection buffer, The Indirect Convolution Algorithm, 2019, has an entry
for each tap instead).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import TILE, Point, RowCopy, element
from relayc.pipelines.targets.cpu.strategies.contraction.plan import Plan
from relayc.pipelines.targets.cpu.strategies.contraction.tile import RegisterTile
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div


def pack_rows(plan: Plan, evaluator: Evaluator, rows: Sequence[Point], out: ir.Value) -> None:
    """Copies the rows of a tile, side by side for each step; contiguous rows by transposing blocks in registers."""
    c, tile = plan.contraction, plan.tile
    base = tile_offset(c, tile, rows[0])
    with _each_outer_step(c, evaluator, rows) as points:
        _pack_steps(c, evaluator, points, c.reduction[-1], tile.lanes, base, out)


def row_copy(plan: Plan, buffer: ir.Value) -> RowCopy:
    """How tiles read the copy, or a parameter stored in its layout: lower tiles only if it has full rows."""
    c, tile = plan.contraction, plan.tile

    def in_tile(points: Sequence[Point], row: int) -> Index | None:
        if TILE not in points[0]:
            return None
        return tile_offset(c, tile, points[0]) + c.step(points[0]) * tile.rows + row

    def in_row(points: Sequence[Point], row: int) -> Index:
        return copied_at(plan, points[row])

    return RowCopy(buffer, in_row if plan.copies_whole_rows else in_tile)


def tile_offset(contraction: Contraction, tile: RegisterTile, point: Point) -> Index:
    """Where a row tile begins in a copy tile by tile: one after the other, batch by batch."""
    count = ceil_div(contraction.rows[-1].extent, tile.rows)
    return (contraction.batch_at(point) * count + point[TILE]) * (tile.rows * contraction.depth)


def copy_row(plan: Plan, evaluator: Evaluator, row: Point, out: ir.Value) -> None:
    """Copies a row as a whole, to the position given by `copied_at`."""
    c, last = plan.contraction, plan.contraction.reduction[-1]
    with _each_outer_step(c, evaluator, [row]) as (point,):
        base = copied_at(plan, {**row, **{v: point[v] for v in c.reduction[:-1]}})

        def some(lanes: int, low: Size, high: Size) -> None:
            with nest.loop(low, high, evaluator, step=lanes, below=last.extent, name="k") as var, evaluator.along(lanes) as lane:
                evaluator.store(element(c.a, {**point, last: var + lane}, evaluator), out, base + var + lane)

        whole = last.extent // plan.tile.lanes * plan.tile.lanes
        some(plan.tile.lanes, 0, whole)
        if whole != last.extent:
            some(1, whole, last.extent)


def copied_at(plan: Plan, point: Point) -> Index:
    """Where the element of A for a point is in a copy of whole rows."""
    c = plan.contraction
    return (c.batch_at(point) * plan.rows + point[c.rows[-1].var]) * plan.row_pitch + c.step(point)


@contextmanager
def _each_outer_step(c: Contraction, evaluator: Evaluator, rows: Sequence[Point]) -> Iterator[list[Point]]:
    """Loops over the steps of all reduction loops but the innermost, which yield the points of rows."""
    points = [_split_row(c, evaluator, row) for row in rows]
    variables = [Var(0, v.high, name=v.name) for v in c.reduction[:-1]]
    with nest.serial(variables, evaluator):
        steps = {v: Index.of(var) for v, var in zip(c.reduction, variables, strict=False)}
        yield [{**p, **steps} for p in points]


def _split_row(contraction: Contraction, evaluator: Evaluator, point: Point) -> Point:
    """A point whose row is split among the row loops of A."""
    loops = contraction.row_loops
    if not loops:
        return point
    rest, found = point[loops[-1]], dict(point)
    for v in reversed(loops[1:]):
        found[v] = evaluator.divide(rest, v.extent, "remainder")
        rest = evaluator.divide(rest, v.extent, "quotient")
    return {**found, loops[0]: rest}


def _pack_steps(c: Contraction, evaluator: Evaluator, points: Sequence[Point], last: Var, lanes: int, base: Index, out: ir.Value) -> None:
    """Copies rows along the innermost reduction loop: full vectors first, then single elements."""
    whole: Size = last.extent // lanes * lanes if c.a.offset.coefficient(last) == 1 else 0

    def read(point: Point, at: Index) -> ir.Value:
        return element(c.a, {**point, last: at}, evaluator)

    if whole != 0:
        with nest.loop(0, whole, evaluator, step=lanes, below=last.extent, name="k") as var, evaluator.lanes(lanes) as lane:
            rows = [read(p, var + lane) for p in points]
            place = base + c.step({**points[0], last: var}) * len(points)
            vectors.store_across(rows, out, place, len(points), lanes)
    if whole != last.extent:
        with nest.loop(whole, last.extent, evaluator, name="k") as var:
            for i, p in enumerate(points):
                place = base + c.step({**p, last: var}) * len(points) + i
                evaluator.store(read(p, var), out, place)


# ---- rows of a table

PLACE = Var(0, 0, name="place")
"""The key, in a point, of the start of its row."""


def write_place(c: Contraction, evaluator: Evaluator, point: Point, table: ir.Value) -> None:
    """Writes the start of a row: the contribution of the row loops of A to the offset of an element."""
    loops = c.row_loops
    place = Index(0, {v: c.a.offset.coefficient(v) for v in loops}).at(point)
    value = emit.create("arith.index_cast", [table.type.element_type], [emit.materialize(place)])
    evaluator.store(value, table, linearize([point[v] for v in loops], [v.extent for v in loops]))


def with_place(c: Contraction, evaluator: Evaluator, point: Point, table: ir.Value) -> Point:
    """A point extended by the start of its row."""
    found = evaluator.load_from(table, table.type.element_type, point[c.rows[-1].var])
    return {**point, PLACE: evaluator.opaque(emit.create("arith.index_cast", [ir.IndexType.get()], [found]))}


def rows_of_table(c: Contraction, buffer: ir.Value) -> RowCopy:
    """How tiles read A, which lies in a buffer, at points that have a place."""
    loops = c.row_loops
    rest = Index(c.a.offset.const, {v: n for v, n in c.a.offset.terms.items() if v not in loops})

    def at(points: Sequence[Point], row: int) -> Index:
        return rest.at(points[row]) + points[row][PLACE]

    return RowCopy(buffer, at)
