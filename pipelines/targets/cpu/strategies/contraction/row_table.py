"""Rows of A that the result walks as one though A does not: a table says where each begins.

Rows of a convolution are pixels of the result, line after line. Where a line is short, or only a call knows how long it is, tiles of one
line leave rows unused; tiles over the ends of lines do not, but their rows are at no regular distance in A. What is read is a copy with its
padding around it, so that no row asks what is inside (Dukhan's indirection buffer, The Indirect Convolution Algorithm, 2019, has an entry
for each tap instead).
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import Point, RowCopy
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.values.evaluator import Evaluator

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
