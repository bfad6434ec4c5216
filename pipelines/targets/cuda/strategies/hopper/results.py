"""The epilogue of a product: elementwise operators on the sums, several elements at a time, and stores along the result."""

from dataclasses import dataclass
from typing import Protocol

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, linearize, reshape
from relayc.pipelines.targets.cuda.strategies.product.problem import Direction, Point, Problem, digits, direction_of
from relayc.pipelines.targets.cuda.strategies.product.shared import load
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size


@dataclass(frozen=True)
class Matrix:
    """Which of the matrices of sums: the number of the split and of the batch, and the point of the loops of the batch."""

    split: Index
    batch: Index
    point: Point


class Destination(Protocol):
    """Where sums go.

    Attributes:
      direction: how they are stored together.
    """

    @property
    def direction(self) -> Direction: ...

    def store(self, sums: ir.Value, row: Index, column: Index, matrix: Matrix) -> None:
        """Stores sums that are neighbours in the direction, the first of them at a row and a column of a matrix."""


class Results:
    """The kernel's result: the epilogue is computed from the sums and stored."""

    def __init__(self, problem: Problem, evaluator: Evaluator, output: ir.Value) -> None:
        self.problem, self.evaluator, self.output = problem, evaluator, output
        self.direction = direction_of(problem)

    def store(self, sums: ir.Value, row: Index, column: Index, matrix: Matrix) -> None:
        lanes = sums.type.shape[0] if emit.is_vector(sums) else 1
        with self.evaluator.along(lanes):
            self._store(sums, row, column, matrix.point)

    def _store(self, sums: ir.Value, row: Index, column: Index, batch: Point) -> None:
        c, evaluator = self.problem.contraction, self.evaluator
        point = {**batch, **digits(row, c.rows)}
        lane = evaluator.lane_index
        line = c.column if self.direction.along_columns else c.rows[-1].var
        point[c.column] = column
        point[line] = point[line] + lane
        indices = c.output_at(point)
        with evaluator.given(c.node, evaluator.with_init(sums, c.structured.inits[0], indices)):
            value = evaluator.at(c.root, self._root_point(indices))
            evaluator.store(value, self.output, linearize(indices, c.node.shape))

    def _root_point(self, indices: list[Index]) -> list[Index]:
        c = self.problem.contraction
        if c.merged is not None:
            return c.root_point(indices)
        return reshape(indices, c.node.shape, c.root.shape, self.evaluator.quotient_and_rest)


def load_run(buffer: ir.Value, first: Index, lanes: int, stride: Size) -> ir.Value:
    """Elements of a flat buffer that are `stride` apart: neighbours, aligned, in pieces of CHUNK_BYTES bytes."""
    at_once = min(lanes, CHUNK_BYTES * 8 // buffer.type.element_type.width) if stride == 1 else 1
    pieces = [load(buffer, emit.materialize(first + stride * i), at_once) for i in range(0, lanes, at_once)]
    if len(pieces) == 1:
        return pieces[0]
    return vectors.from_elements(pieces if at_once == 1 else [vectors.extract(piece, i) for piece in pieces for i in range(at_once)])
