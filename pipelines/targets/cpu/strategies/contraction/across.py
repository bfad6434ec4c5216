"""The epilogue of sums that wait in memory, where neighbours in memory are neighbours along the rows: images with their channels outermost.

Blocks of as many rows as a vector has lanes are transposed. The rows of a column are then one vector, of which a mask leaves out what lies
behind the last row: loads and stores are whole vectors, and tiles of all heights and panels of all widths share one code.
"""

from collections.abc import Callable

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import COLUMN, Microkernel, Point, Sums
from relayc.pipelines.targets.cpu.strategies.contraction.plan import Plan
from relayc.pipelines.targets.cpu.strategies.contraction.tile import RegisterTile
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import local_buffer


def stores_across(contraction: Contraction) -> bool:
    """Whether the result has neighbours along the rows of a contraction next to each other, and not those along its columns."""
    c = contraction
    return bool(c.rows) and c.store_stride(c.column) != 1 and c.store_stride(c.rows[-1].var) == 1


def finishes_across(plan: Plan) -> bool:
    """Whether `AcrossRows` can finish a contraction: only a call knows its number of rows, and the target has masks for its elements."""
    c = plan.contraction
    if isinstance(c.row_extent, int) or not isinstance(c.column_extent, int):
        return False
    return len(c.columns) == 1 and stores_across(c) and plan.has_masks(c.node)


def tiles_of_blocks(tile: RegisterTile, most: int) -> int:
    """How many tiles, at most `most`, have rows that fill blocks best; among equals the fewest, whose sums are closest."""

    def left(tiles: int) -> float:
        rows = tiles * tile.rows
        return round(-rows % tile.lanes / rows, 2)

    return min(range(1, most + 1), key=left)


class AcrossRows:
    """The epilogue across rows whose sums are in memory. Created where the buffers of a thread are allocated.

    Attributes:
      block: holds the columns of a transposed block for a loop over a variable number of columns; None if the last vector of columns is
        full, and columns are finished in registers.
    """

    def __init__(self, micro: Microkernel, sums: Sums, is_costly: bool) -> None:
        self.micro, self.sums, self.lanes = micro, sums, micro.tile.lanes
        is_whole = micro.c.column_extent % self.lanes == 0
        self.block = None if is_whole and not is_costly else local_buffer(self.lanes * self.lanes, sums.element)

    def finish(self, low: ir.Value, end: ir.Value, place: Callable[[Index], Index], point: Point) -> None:
        """Emits the epilogue of the rows from `low` up to `end` for the columns of a panel, from `point[COLUMN]` on.

        Args:
          place: where the sums of a row begin, as a function of the row.
        """
        c, lanes, evaluator = self.micro.c, self.lanes, self.micro.evaluator
        last = emit.arith("subi", end, emit.index_constant(1))
        extent = c.row_extent
        columns = emit.materialize(emit.at_most(point[COLUMN] * -1 + c.column_extent, self.micro.tile.width))
        with nest.loop(low, end, evaluator, step=lanes, below=extent, name="rows") as first:
            mask = emit.first_lanes(emit.arith("subi", end, emit.materialize(first)), lanes)
            rows = [emit.arith("minsi", emit.materialize(first + i), last) for i in range(lanes)]
            places = [place(Index.of(Var.below(extent, row, name="row"))) for row in rows]
            at = {**point, c.rows[-1].var: first}
            with nest.loop(0, columns, evaluator, step=lanes, below=c.column_extent, name="start") as start:
                sums = vectors.transpose([vectors.load(self.sums.buffer, place + start, lanes) for place in places])
                if self.block is None:
                    for k, column in enumerate(sums):
                        self._finish_column(column, start + k, at, mask)
                    return
                for k, column in enumerate(sums):
                    vectors.store(column, self.block, Index(k * lanes))
                left = emit.arith("minsi", emit.arith("subi", columns, emit.materialize(start)), emit.index_constant(lanes))
                with nest.loop(0, left, evaluator, below=lanes, name="column") as number:
                    column = vectors.load(self.block, number * lanes, lanes)
                    self._finish_column(column, start + number, at, mask)

    def _finish_column(self, sums: ir.Value, column: Index, point: Point, mask: ir.Value) -> None:
        """The epilogue of the sums of a column of the panel for the rows from that of `point` on."""
        c, evaluator = self.micro.c, self.micro.evaluator
        row = c.rows[-1].var
        # A separate variable marks the column as a column of the result, because an epilogue may decompose the index.
        value = emit.materialize(point[COLUMN] + column)
        place = c.column_point(Index.of(Var.below(c.column_extent, value, name="column")))
        with evaluator.lanes(self.lanes, mask) as lane:
            at = c.output_at({**point, row: point[row] + lane, **place})
            evaluator.remember(c.node, at, sums)
            value = evaluator.at(c.root, c.root_point(at))
            evaluator.store(value, self.micro.output, linearize(at, c.node.shape))
