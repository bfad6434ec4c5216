"""The copy of A tile by tile, in the order in which tiles read it."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.contraction.microkernel import TILE, Point, element, rows_from, tile_offset
from relayc.pipelines.cpu.schedule.contraction.plan import Plan
from relayc.pipelines.kernel.contraction import Contraction
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit, nest, vectors
from relayc.pipelines.tir.evaluator import Evaluator


def pack_rows(plan: Plan, evaluator: Evaluator, point: Point, out: ir.Value) -> None:
    """Copies the rows of tile `point[TILE]`; contiguous rows by transposing blocks in registers."""
    c, tile = plan.contraction, plan.tile
    start = emit.at_most(point[TILE] * tile.rows, plan.rows - tile.rows)
    points = [_split_row(c, evaluator, p) for p in rows_from(c.rows[-1].var, start, tile.rows, point)]
    *outer, last = c.reduction
    base = tile_offset(c, tile, points[0])
    variables = [Var(0, v.high, name=v.name) for v in outer]
    with nest.serial(variables, evaluator):
        steps = {v: Index.of(var) for v, var in zip(outer, variables, strict=True)}
        _pack_steps(c, evaluator, [{**p, **steps} for p in points], last, tile.lanes, base, out)


def _split_row(contraction: Contraction, evaluator: Evaluator, point: Point) -> Point:
    """A point whose row is split among the loops in which A walks its rows."""
    loops = contraction.row_loops
    if not loops:
        return point
    rest, found = point[loops[-1]], dict(point)
    for v in reversed(loops[1:]):
        found[v] = evaluator.divide(rest, v.extent, "remainder")
        rest = evaluator.divide(rest, v.extent, "quotient")
    return {**found, loops[0]: rest}


def _pack_steps(c: Contraction, evaluator: Evaluator, points: Sequence[Point], last: Var, lanes: int, base: Index, out: ir.Value) -> None:
    """Copies what rows hold along the innermost reduction loop: whole vectors as far as they go, then one by one."""
    whole = last.extent // lanes * lanes if c.a.offset.coefficient(last) == 1 else 0

    def read(point: Point, at: Index) -> ir.Value:
        return element(c.a, {**point, last: at}, evaluator)

    if whole:
        var = Var(0, whole - lanes, step=lanes, name="k")
        with emit.for_loop(0, whole, lanes, var), evaluator.lanes(lanes) as lane:
            rows = [read(p, Index.of(var) + lane) for p in points]
            place = base + c.step({**points[0], last: Index.of(var)}) * len(points)
            vectors.store_across(rows, out, place, len(points), lanes)
    if whole <= last.high:
        var = Var(whole, last.high, name="k")
        with emit.for_loop(whole, last.extent, 1, var), evaluator.scope():
            for i, p in enumerate(points):
                place = base + c.step({**p, last: Index.of(var)}) * len(points) + i
                evaluator.store(read(p, Index.of(var)), out, place)
