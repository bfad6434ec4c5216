"""How an operand is copied to shared memory: the offsets of its elements, the direction of the copies, and whether it is packed before."""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem, can_pack
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.te.read.contraction import ProductOperand
from relayc.pipelines.te.read.graph import memory_of
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.symbolic import Size, ceil_div, exact


@dataclass(frozen=True)
class Way:
    """How an operand is copied.

    Attributes:
      operand: the operand; loops: the loops of its lines (the rows of A, the columns of B); extent: the number of lines.
      element: the element type in shared memory.
      along_depth: whether a line of shared memory runs along the depth; otherwise it runs along rows or columns.
      copied: bytes of an asynchronous copy; 0 if elements go through registers.
      is_packed: whether the operand is passed in another layout, whose lines are contiguous.
      packing: the layout of a padded operand: lines of the depth, padded with zeros to `pitch` elements.
    """

    operand: ProductOperand
    loops: Sequence[MergedLoop]
    extent: Size
    element: ir.Type
    along_depth: bool
    copied: int
    is_packed: bool = False
    packing: Packing | None = None
    pitch: int = 0

    @property
    def element_bytes(self) -> int:
        return self.element.width // 8

    @property
    def run(self) -> int:
        """Elements of an asynchronous copy."""
        return self.copied // self.element_bytes

    def is_read_by_lines(self, problem: Problem) -> bool:
        """Whether elements go through registers, and neighbouring threads read neighbouring lines, as these follow each other in memory."""
        offset, inner = self.operand.offset, problem.reduction[-1].var
        return not self.copied and bool(self.loops) and offset.coefficient(inner) != 1 and offset.coefficient(self.loops[-1].var) == 1

    def lies_in_runs(self, problem: Problem) -> bool:
        """Whether the steps of a chunk of shared memory follow each other in memory."""
        inner, count = problem.reduction[-1], CHUNK_BYTES // self.element_bytes
        is_run = memory_of(self.operand.node) is not None and self.operand.offset.coefficient(inner.var) == 1
        return is_run and exact(inner.extent, count) is not None


def way_of(
    problem: Problem, operand: ProductOperand, element: ir.Type, is_asynchronous: bool, takes_lines: bool, pads: bool = False
) -> Way:
    """Chooses the way with the widest copies. A parameter without copies of CHUNK_BYTES is packed, along the depth unless only its lines
    have wider copies.

    Args:
      element: the element type in shared memory.
      is_asynchronous: whether the target has asynchronous copies from memory to shared memory.
      takes_lines: whether tiles may run along rows or columns.
      pads: whether a packed parameter is padded to whole chunks.
    """
    c = problem.contraction
    is_a = operand is c.a
    loops, extent = (c.rows, problem.rows) if is_a else (c.columns, problem.columns)
    in_memory = memory_of(operand.node) is not None and operand.node.element == element
    found = [_widest(problem, operand, element, loops, d) if in_memory and is_asynchronous else 0 for d in (True, False)]
    along, across = found if takes_lines else (found[0], 0)
    if max(along, across) < CHUNK_BYTES and is_asynchronous and operand.node.element == element and can_pack(problem.kernel, operand):
        if pads:
            return _packed(problem, operand, loops, extent, element)
        packed_along, packed_across = _whole(problem.depth, element), _whole(extent, element) if takes_lines else 0
        if (widest := max(packed_along, packed_across)) > max(along, across):
            return Way(operand, loops, extent, element, packed_along >= packed_across, widest, is_packed=True)
    return Way(operand, loops, extent, element, along >= across, max(along, across))


def _whole(extent: Size, element: ir.Type) -> int:
    """Bytes of the widest copies into which a contiguous line of elements divides; 0 for none."""
    sizes = (CHUNK_BYTES, CHUNK_BYTES // 2, CHUNK_BYTES // 4)
    return next((size for size in sizes if size * 8 >= element.width and exact(extent, size * 8 // element.width) is not None), 0)


def _widest(problem: Problem, operand: ProductOperand, element: ir.Type, loops: Sequence[MergedLoop], along_depth: bool) -> int:
    """Bytes of the widest copies of an operand in memory in a direction; 0 if it cannot be copied in this direction."""
    every = [*problem.batch, *loops, *problem.reduction]
    line = problem.reduction[-1] if along_depth else loops[-1] if loops else None
    if line is None or operand.offset.coefficient(line.var) != 1:
        return 0
    is_checked = any(line.var in index.terms for index, _ in operand.checks) if along_depth else bool(operand.checks)
    others = [operand.offset.const, line.extent, *(operand.offset.coefficient(loop.var) for loop in every if loop is not line)]
    for size in (CHUNK_BYTES, CHUNK_BYTES // 2, CHUNK_BYTES // 4):
        count = size * 8 // element.width
        if count == 1 and along_depth:
            return size
        if count >= 1 and not is_checked and all(exact(other, count) is not None for other in others):
            return size
    return 0


def _packed(problem: Problem, operand: ProductOperand, loops: Sequence[MergedLoop], extent: Size, element: ir.Type) -> Way:
    """A parameter as [batch..., line, depth], the depth completed to whole chunks."""
    reduction = [v for loop in problem.reduction for v in loop.members]
    lines = [v for loop in loops for v in loop.members]
    pitch = int(ceil_div(problem.depth, CHUNK_BYTES * 8 // element.width)) * (CHUNK_BYTES * 8 // element.width)
    every = [(v, v.extent) for v in (*problem.contraction.batch, *lines, *reduction)]
    batch = problem.contraction.batch
    shape = (*(v.extent for v in batch), *(v.extent for v in lines), pitch)
    packing = Packing.reading("lines", operand.node.shape, operand.indices, every, shape, lines=len(batch) + len(lines))
    return Way(operand, loops, extent, element, True, CHUNK_BYTES, True, packing, pitch)
