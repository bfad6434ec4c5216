"""The epilogue of sums that wait in memory, where neighbours in memory are neighbours along the rows: images with their channels outermost.

Blocks of as many rows as a vector has lanes are transposed. The rows of a column are then one vector, of which a mask leaves out what lies
behind the last row: loads and stores are whole vectors, and tiles of all heights and panels of all widths share one code.
"""

from collections.abc import Callable

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.contraction.microkernel import COLUMN, Microkernel, Point, Sums
from relayc.pipelines.kernel.contraction import Contraction
from relayc.pipelines.kernel.index import Index, Var, linearize
from relayc.pipelines.tir import emit, vectors
from relayc.pipelines.tir.buffers import local_buffer


def stores_across(contraction: Contraction) -> bool:
    """Whether the result has neighbours along the rows of a contraction next to each other, and not those along its columns."""
    c = contraction
    return bool(c.rows) and c.store_stride(c.column) != 1 and c.store_stride(c.rows[-1].var) == 1


def finishes_across(contraction: Contraction, mask_bits: int) -> bool:
    """Whether `AcrossRows` can finish a contraction: one whose number of rows only a call knows, on a target with masks for its elements
    (`Target.mask_bits`)."""
    c = contraction
    is_symbolic = not isinstance(c.row_extent, int) and isinstance(c.column_extent, int)
    return is_symbolic and len(c.columns) == 1 and stores_across(c) and 0 < mask_bits <= c.node.element.width


class AcrossRows:
    """Finishes rows whose sums wait in memory. Made where the buffers of a thread are: it has a block of its own there."""

    def __init__(self, micro: Microkernel, sums: Sums) -> None:
        self.micro, self.sums, self.lanes = micro, sums, micro.tile.lanes
        self.block = local_buffer(self.lanes * self.lanes, sums.element)

    def finish(self, low: ir.Value, end: ir.Value, place: Callable[[Index], Index], point: Point) -> None:
        """Emits the epilogue of the rows from `low` up to `end` for the columns of a panel, from `point[COLUMN]` on.

        Args:
          place: where the sums of a row begin, as a function of the row.
        """
        c, lanes, evaluator = self.micro.c, self.lanes, self.micro.evaluator
        last = emit.arith("subi", end, emit.index_constant(1))
        extent = c.row_extent
        first, start, column = (
            Var(0, high, name=name) for high, name in ((extent - 1, "rows"), (c.column_extent, "start"), (lanes - 1, "c"))
        )
        columns = emit.materialize(emit.at_most(point[COLUMN] * -1 + c.column_extent, self.micro.tile.width))
        with emit.for_loop(low, end, lanes, first), evaluator.scope():
            mask = emit.first_lanes(emit.arith("subi", end, first.value), lanes)
            rows = [emit.arith("minsi", emit.materialize(Index.of(first) + i), last) for i in range(lanes)]
            places = [place(Index.of(Var(0, extent - 1, row, name="row"))) for row in rows]
            with emit.for_loop(emit.index_constant(0), columns, lanes, start), evaluator.scope():
                self._transpose([at + start for at in places])
                left = emit.arith("minsi", emit.arith("subi", columns, start.value), emit.index_constant(lanes))
                with emit.for_loop(emit.index_constant(0), left, 1, column), evaluator.scope():
                    self._finish_column(Index.of(start) + column, column, {**point, c.rows[-1].var: Index.of(first)}, mask)

    def _transpose(self, places: list[Index]) -> None:
        """The sums of a vector of columns of the rows at `places` to the block, column by column."""
        rows = [vectors.load(self.sums.buffer, at, self.lanes) for at in places]
        for k, column in enumerate(vectors.transpose(rows)):
            vectors.store(column, self.block, Index(k * self.lanes))

    def _finish_column(self, column: Index, number: Var, point: Point, mask: ir.Value) -> None:
        """The epilogue of a column of the panel, which has a number in the block, for the rows from that of `point` on."""
        c, evaluator = self.micro.c, self.micro.evaluator
        row = c.rows[-1].var
        sums = vectors.load(self.block, Index(0, {number: self.lanes}), self.lanes)
        with evaluator.lanes(self.lanes, mask) as lane:
            at = self.micro.output_at({**point, row: point[row] + lane}, column)
            evaluator.remember(c.node, at, sums)
            value = evaluator.at(c.root, c.root_point(at))
            evaluator.store(value, self.micro.output, linearize(at, c.node.shape))
