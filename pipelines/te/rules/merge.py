"""A stable bottom-up merge sort of indices, O(n log n)."""

from collections.abc import Callable

from relayc.dialects.mlir import arith, math
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, extract, index_constant
from relayc.pipelines.te.rules.literal import index_of, integer_of, less
from relayc.pipelines.te.rules.loops import insert, loop
from relayc.pipelines.te.rules.scalar import both, either, negated
from relayc.symbolic import Size, maximum

ORDER = "int64"
"""dtype of the indices while they are sorted."""

Before = Callable[[Value, Value], Value]
"""i1: whether the entry of index b (of dtype ORDER) comes strictly before the entry of index a, from (b, a)."""


def merge_sort(work: Value, count: Size, before: Before) -> tuple[Value, Value]:
    """Sorts the first `count` indices in row 0 of `work`, an ORDER tensor [2, count or more].

    Returns `work`, and the row that holds the sorted indices.
    """
    zero, one, size = (index_constant(n) for n in (0, 1, count))

    def double(p: Value, work: Value) -> list[Value]:
        width = arith.shli(one, p)
        source = both(p, one)
        rows = source, arith.xori(source, one)
        pair = arith.shli(width, one)
        return loop(zero, size, pair, [work], lambda start, work: [_merge(before, count, work, rows, start, width)])

    if isinstance(count, int):
        passes = (count - 1).bit_length()
        return loop(zero, index_constant(passes), one, [work], double)[0], index_constant(passes % 2)
    needed = _passes(count)
    return loop(zero, needed, one, [work], double)[0], both(needed, one)


def _merge(before: Before, count: Size, work: Value, rows: tuple[Value, Value], start: Value, width: Value) -> Value:
    """Merges two runs of `width` indices from `start` on, clipped to `count`, from one row of `work` into the other."""
    source, target = rows
    one, last = index_constant(1), index_constant(count - 1)
    middle = arith.minsi(arith.addi(start, width), index_constant(count))
    end = arith.minsi(arith.addi(middle, width), index_constant(count))

    def step(k: Value, work: Value, i: Value, j: Value) -> list[Value]:
        # A position beyond its run is read at the end of the line instead, and not used.
        first, second = (extract(work, [source, arith.minsi(at, last)]) for at in (i, j))
        sooner = before(second, first)
        take_second = both(less(j, end), either(negated(less(i, middle)), sooner))
        work = insert(scalar.select(take_second, second, first), work, [target, k])
        return [work, scalar.select(take_second, i, arith.addi(i, one)), scalar.select(take_second, arith.addi(j, one), j)]

    return loop(start, end, one, [work, start, middle], step)[0]


def _passes(count: Size) -> Value:
    """Passes of a merge sort: ceil(log2(count)), 0 for a count of 0."""
    zeros = math.ctlz(integer_of(index_constant(maximum(count - 1, 0)), ORDER))
    return index_of(scalar.subtract(scalar.constant(scalar.bits(ORDER), ORDER), zeros, ORDER), ORDER)
