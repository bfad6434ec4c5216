"""A contraction as products of matrices: [batch, rows, depth] times [batch, depth, columns], each dimension of one or several loops."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read.access import Accesses, MergedLoop, collapse
from relayc.pipelines.te.read.contraction import Contraction, ProductOperand, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.strategy.scheduled import is_param
from relayc.symbolic import Size, exact, proves

Point = dict[Var, Index]


@dataclass(frozen=True)
class Problem:
    """The product that a kernel computes.

    Attributes:
      kernel, contraction: the kernel, and the contraction in it.
      reduction: the loops of the depth, outermost first, merged as far as A allows, and B unless it is packed.
    """

    kernel: Kernel
    contraction: Contraction
    reduction: list[MergedLoop]

    @property
    def batch(self) -> list[MergedLoop]:
        return [MergedLoop([v], v.extent) for v in self.contraction.batch]

    @property
    def batches(self) -> Size:
        return self.contraction.batches

    @property
    def rows(self) -> Size:
        return prod(loop.extent for loop in self.contraction.rows)

    @property
    def columns(self) -> Size:
        return self.contraction.column_extent

    @property
    def depth(self) -> Size:
        return self.contraction.depth

    @property
    def size(self) -> Size:
        """Elements of the result."""
        return self.batches * self.rows * self.columns

    @property
    def starts_at_zero(self) -> bool:
        """Whether the sums begin at 0."""
        (init,) = self.contraction.structured.inits
        return init.kind == "splat" and init.op.attributes["value"].value == 0

    @property
    def sums(self) -> ir.Type:
        """The element type of the sums."""
        return self.contraction.node.element

    @property
    def sum_bytes(self) -> int:
        return int(self.sums.width) // 8


def find(kernel: Kernel, fills: bool = False) -> list[Contraction]:
    """The roles in which a kernel is a product of matrices whose columns are one loop; the role whose result is contiguous along the
    columns is first. With `fills`, the padding of integers may have any value."""
    found = [c for c in match(kernel, fills=fills) if len(c.columns) == 1 and c.batches != 0]
    found = [c for c in found if not c.a.fill or isinstance(c.node.element, ir.IntegerType)]
    return sorted(found, key=lambda c: c.store_stride(c.column) != 1)


def problem_of(kernel: Kernel, contraction: Contraction) -> Problem:
    """The product that a contraction is, with its depth in an order in which its operands are read in runs."""
    c = contraction
    packs = can_pack(kernel, c.b)
    leading = c.a if not can_pack(kernel, c.a) else c.b
    ordered = sorted(c.reduction, key=lambda v: -_distance(leading.offset.coefficient(v)))
    offsets = [(o.node, o.offset) for o in (c.a, c.b) if o is not c.b or not packs]
    return Problem(kernel, c, collapse(ordered, Accesses(offsets, set(), list(c.a.checks))))


def _distance(stride: Size) -> int:
    return abs(stride) if isinstance(stride, int) else 1 << 40


def can_pack(kernel: Kernel, operand: ProductOperand) -> bool:
    """Whether an operand is a parameter whose layout may change: its sizes are numbers, and it has no padding."""
    node = operand.node
    return is_param(kernel, node) and not operand.checks and all(isinstance(d, int) for d in node.shape)


@dataclass(frozen=True)
class Direction:
    """How elements of the result are stored together.

    Attributes:
      along_columns: whether they are neighbours along the columns, else along the rows.
      lanes: how many, a power of two.
    """

    along_columns: bool
    lanes: int


def direction_of(problem: Problem) -> Direction:
    """The direction in which the result is contiguous, and the lanes, of 16 bytes or fewer, that divide all contiguous runs."""
    c = problem.contraction
    most = max(1, CHUNK_BYTES * 8 // max(8, c.root.element.width))
    by_rows = c.store_stride(c.column) != 1 and bool(c.rows) and c.store_stride(c.rows[-1].var) == 1
    line = c.rows[-1] if by_rows else c.columns[-1]
    if c.store_stride(line.var) != 1:
        return Direction(not by_rows, 1)
    offset = c.output_offset()
    others = [
        line.extent,
        offset.const,
        *(offset.coefficient(loop.var) for loop in (*problem.batch, *c.rows, *c.columns) if loop is not line),
    ]
    lanes = most
    while any(exact(other, lanes) is None for other in others):
        lanes //= 2
    return Direction(not by_rows, lanes)


def digits(number: Index, loops: Sequence[MergedLoop]) -> Point:
    """The point of nested loops that an iteration, counted over all of them, is at."""
    point: Point = {}
    for loop in reversed(loops[1:]):
        number, rest = divided(number, loop.extent)
        point |= loop.at(rest)
    return point | loops[0].at(number) if loops else point


def divided(number: Index, by: Size) -> tuple[Index, Index]:
    """Quotient and remainder of a nonnegative index by a size; emitted if they do not fold. A division by 0, for a tensor without elements,
    is a division by 1 instead, because a division by 0 terminates an emulated program."""
    split = number.split(by)
    if split is not None:
        return split
    value, divisor = emit.materialize(number), emit.index_constant(by)
    if not proves(lambda: by >= 1):
        divisor = emit.arith("maxui", divisor, emit.index_constant(1))
    high = number.bounds()[1]
    quotient = emit.arith("divui", value, divisor)
    rest = emit.arith("subi", value, emit.create("arith.muli", [quotient.type], [quotient, divisor], emit.no_overflow()))
    step = _step(Index(by, number.terms) + number.const)
    return Index.of(Var(0, high // by, quotient, name="quotient")), Index.of(Var.below(by, rest, step, name="rest"))


def hoisted(index: Index) -> Index:
    """An index that is computed here, once, for later uses."""
    if index.is_constant:
        return index
    low, high = index.bounds()
    return Index.of(Var(low, high, emit.materialize(index), _step(index), name="hoisted"))


def _step(index: Index) -> int:
    """The largest power of two, up to 16, that divides an index."""
    step = 16
    while any(exact(part, step) is None for part in (index.const, *(c * v.step for v, c in index.terms.items()))):
        step //= 2
    return step


def aligned(index: Index, most: Size, step: int) -> Index:
    """An index as one that is at most `most` and a multiple of `step`, which the caller knows."""
    if index.is_constant:
        return index
    return Index.of(Var(0, most, emit.materialize(index), step, name="aligned"))
