"""A stable bottom-up merge sort of indices, O(n log n), and the order of values that sorting follows."""

from collections.abc import Callable

from relayc.dialects.mlir import arith, ir, math
from relayc.pipelines.te import scalar
from relayc.pipelines.te.core import Value, extract, index_constant
from relayc.pipelines.te.literal import INDEX_DTYPE, index_of, integer_of
from relayc.pipelines.te.loops import insert, loop
from relayc.symbolic import Size, maximum

ORDER = "int64"
"""dtype of the indices while they are sorted."""

Before = Callable[[Value, Value], Value]
"""i1: whether what index b (of dtype ORDER) stands for comes strictly before what index a stands for, from (b, a)."""


def both(a: Value, b: Value) -> Value:
    """i1: a and b."""
    return arith.AndIOp(a, b).result


def either(a: Value, b: Value) -> Value:
    """i1: a or b."""
    return arith.OrIOp(a, b).result


def negated(flag: Value) -> Value:
    """i1: not flag."""
    one = arith.ConstantOp(flag.type, ir.IntegerAttr.get(flag.type, 1)).result
    return arith.XOrIOp(flag, one).result


def less(a: Value, b: Value) -> Value:
    """i1: a < b, of two indices."""
    return scalar.compare("lt", a, b, INDEX_DTYPE)


def add(a: Value, b: Value) -> Value:
    """a + b, of two indices."""
    return arith.AddIOp(a, b).result


def comes_before(b: Value, a: Value, dtype: str, descending: bool = False) -> Value:
    """i1: whether the scalar b comes strictly before a. NaN is the largest value."""
    decided = scalar.compare("gt" if descending else "lt", b, a, dtype)
    if not scalar.is_float(dtype):
        return decided
    first, last = (b, a) if descending else (a, b)
    first_nan, last_nan = (scalar.compare("ne", v, v, dtype) for v in (first, last))
    return either(decided, both(first_nan, negated(last_nan)))


def merge_sort(work: Value, count: Size | Value, before: Before) -> tuple[Value, Value]:
    """Sorts the first `count` indices in row 0 of `work`, an ORDER tensor [2, count or more].

    Gives `work`, and the row that holds them in the end.
    """
    zero, one, size = index_constant(0), index_constant(1), _index(count)

    def double(p: Value, work: Value) -> list[Value]:
        width = arith.ShLIOp(one, p).result
        source = both(p, one)
        rows = source, arith.XOrIOp(source, one).result
        pair = arith.ShLIOp(width, one).result
        return loop(zero, size, pair, [work], lambda start, work: [_merge(before, count, work, rows, start, width)])

    if isinstance(count, int):
        passes = (count - 1).bit_length()
        return loop(zero, index_constant(passes), one, [work], double)[0], index_constant(passes % 2)
    needed = _passes(count)
    return loop(zero, needed, one, [work], double)[0], both(needed, one)


def _index(count: Size | Value) -> Value:
    return count if isinstance(count, ir.Value) else index_constant(count)


def _last(count: Size | Value) -> Value:
    return arith.SubIOp(count, index_constant(1)).result if isinstance(count, ir.Value) else index_constant(count - 1)


def _merge(before: Before, count: Size | Value, work: Value, rows: tuple[Value, Value], start: Value, width: Value) -> Value:
    """Merges two runs of `width` indices from `start` on, clamped to `count`, from one row of `work` into the other."""
    source, target = rows
    one, last = index_constant(1), _last(count)
    middle = arith.MinSIOp(add(start, width), _index(count)).result
    end = arith.MinSIOp(add(middle, width), _index(count)).result

    def step(k: Value, work: Value, i: Value, j: Value) -> list[Value]:
        # A position past its run is read at the end of the line instead, and not used.
        first, second = (extract(work, [source, arith.MinSIOp(at, last).result]) for at in (i, j))
        sooner = before(second, first)
        take_second = both(less(j, end), either(negated(less(i, middle)), sooner))
        work = insert(scalar.select(take_second, second, first), work, [target, k])
        return [work, scalar.select(take_second, i, add(i, one)), scalar.select(take_second, add(j, one), j)]

    return loop(start, end, one, [work, start, middle], step)[0]


def _passes(count: Size | Value) -> Value:
    """Passes of a merge sort: ceil(log2(count)), 0 for a count of 0."""
    least = arith.MaxSIOp(_last(count), index_constant(0)).result if isinstance(count, ir.Value) else index_constant(maximum(count - 1, 0))
    zeros = math.CountLeadingZerosOp(integer_of(least, ORDER)).result
    return index_of(scalar.subtract(scalar.constant(scalar.bits(ORDER), ORDER), zeros, ORDER), ORDER)
