"""Operands in shared memory: the boxes by which copies bring the tile of a stage, and the descriptors by which products read it.

A tile along the depth has a line of LINE_BYTES for each row of A or column of B ("K-major"). A tile across it, of 16-bit elements, has
blocks of 64 rows or columns, in which each step of the depth is a line ("MN-major").
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cuda.strategies.hopper import instructions as hopper
from relayc.pipelines.targets.cuda.strategies.product.operands import Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory, added
from relayc.pipelines.tir.gpu import bulk_copies as bulk
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.gpu.tensor_maps import TensorMap
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div, proves


def is_for_maps(problem: Problem, way: Way) -> bool:
    """Whether an operand is a tensor [batch, line, depth] or [batch, depth, line] whose lines begin at multiples of 16 bytes."""
    if len(problem.batch) > 1 or not proves(lambda: problem.depth >= 1):
        return False
    if way.packing is not None:
        return True
    if way.copied != CHUNK_BYTES or way.operand.checks or len(way.loops) > 1 or len(problem.reduction) > 1:
        return False
    offset = way.operand.offset
    strides = [offset.coefficient(loop.var) for loop in (*way.loops, *problem.batch, *problem.reduction)]
    return all(proves(lambda s=stride: s >= 1) for stride in strides)  # type: ignore[misc]


@dataclass(frozen=True)
class TileOperand(ABC):
    """An operand of a product by warp groups, in shared memory.

    Attributes:
      way: how it is copied from memory.
      lines: rows or columns of the tile of a block, a multiple of 64 if the lines run across the depth.
      start: offset of the tile in a stage, in bytes.
    """

    problem: Problem
    way: Way
    lines: int
    start: int

    @property
    def depth(self) -> int:
        """Elements of a line, steps of the depth of a stage."""
        return bulk.LINE_BYTES // self.way.element_bytes

    @property
    @abstractmethod
    def turns(self) -> Size:
        """Stages of the whole depth."""

    @abstractmethod
    def tensor_map(self, evaluator: Evaluator) -> ir.Value:
        """The map of the operand, made by the host."""

    @abstractmethod
    def place(self, line: Index, batch: Index) -> list[ir.Value]:
        """What copies have to know of the row or column, and the batch, at which a tile of the result begins (i32)."""

    @abstractmethod
    def bring(
        self, ring: SharedMemory, stage: ir.Value, tensor_map: ir.Value, place: Sequence[ir.Value], turn: Index, barrier: ir.Value
    ) -> None:
        """Starts the copies of a turn.

        Args:
          stage: offset of the stage in the ring (index); tensor_map: address of the map; place: see `place`.
          barrier: the barrier that counts the bytes.
        """

    @property
    def block_bytes(self) -> int:
        """Of 64 rows or columns across the depth."""
        return self.depth * bulk.LINE_BYTES

    def descriptor(self, stage: ir.Value, first: Index | None = None) -> ir.Value:
        """Of the tile in a stage that begins at an address (index), or of its lines from `first` on, a multiple of 64."""
        # 64 lines along the depth have as many bytes as a block of 64 across it.
        begin = added(stage, self.start)
        if first is not None:
            begin = added(begin, emit.materialize(first * bulk.LINE_BYTES))
        return hopper.descriptor(begin, 0 if self.way.along_depth else self.block_bytes)

    def step(self, descriptor: ir.Value, steps: int) -> ir.Value:
        """The descriptor of the tile some steps further along the depth."""
        return hopper.moved(descriptor, steps * (self.way.element_bytes if self.way.along_depth else bulk.LINE_BYTES))


@dataclass(frozen=True)
class MatrixOperand(TileOperand):
    """A matrix of a batch. Its map has the dimensions depth, line and batch, or across the depth line, depth and batch."""

    @property
    def turns(self) -> Size:
        return ceil_div(self.problem.depth, self.depth)

    def tensor_map(self, evaluator: Evaluator) -> ir.Value:
        p, way = self.problem, self.way
        operand = way.operand
        # A loop of one step has no stride; any one of whole chunks does.
        chunk = CHUNK_BYTES // way.element_bytes
        any_stride: Size = ceil_div(p.depth if way.along_depth else way.extent, chunk) * chunk
        offset: Size
        line: Size
        if way.packing is not None:
            offset, line, batch = 0, way.pitch, way.extent * way.pitch
        else:
            loop = p.reduction[0] if not way.along_depth else way.loops[0] if way.loops else None
            offset = operand.offset.const
            line = operand.offset.coefficient(loop.var) if loop is not None else any_stride
            batch = operand.offset.coefficient(p.batch[0].var) if p.batch else any_stride
        # Across the depth there are as many rows or columns in a line as steps in one along it.
        sizes, box = ((p.depth, way.extent), self.lines) if way.along_depth else ((way.extent, p.depth), self.depth)
        numbers = [emit.index_constant(n) for n in (offset, *sizes, p.batches, line, batch)]
        return TensorMap(way.element, evaluator.memory(operand.node), numbers[0], numbers[1:4], numbers[4:], (self.depth, box, 1)).emit()

    def place(self, line: Index, batch: Index) -> list[ir.Value]:
        return [bulk.as_coordinate(line), bulk.as_coordinate(batch)]

    def bring(
        self, ring: SharedMemory, stage: ir.Value, tensor_map: ir.Value, place: Sequence[ir.Value], turn: Index, barrier: ir.Value
    ) -> None:
        line, batch = place
        depth = bulk.as_coordinate(turn * self.depth)
        if self.way.along_depth:
            bulk.copy_box(ring.pointer(added(stage, self.start)), tensor_map, [depth, line, batch], barrier)
            return
        for block in range(self.lines // self.depth):
            to = ring.pointer(added(stage, self.start + block * self.block_bytes))
            first = emit.arith("addi", line, bulk.i32(block * self.depth)) if block else line
            bulk.copy_box(to, tensor_map, [first, depth, batch], barrier)
