"""Compute rules of sorting, line by line and stable: a bottom-up merge sort of indices, O(n log n); for a few of many, an insertion."""

from collections.abc import Callable
from dataclasses import dataclass

from relayc.dialects.mlir import arith, ir, math
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te import scalar
from relayc.pipelines.te.core import Value, compute, empty, extract, index_constant, operand_type, reshape, result_type
from relayc.pipelines.te.literal import INDEX_DTYPE, index_of, integer_of
from relayc.pipelines.te.loops import along, insert, loop, nest, when
from relayc.symbolic import Size, guess, maximum

_ORDER = "int64"
"""dtype of the indices while they are sorted."""


_FEW = 32
"""Up to so many elements of a line at least four times as long are found by insertion: most elements then cost one comparison."""


@dataclass(frozen=True)
class _Sorting:
    """What is sorted: lines of a tensor [outer, size, inner] of `dtype`; `descending` turns the order around."""

    lines: Value
    size: Size
    dtype: str
    descending: bool

    def before(self, b: Value, a: Value) -> Value:
        """i1: whether b comes strictly before a. NaN is the largest value; equals keep their order."""
        decided = scalar.compare("gt" if self.descending else "lt", b, a, self.dtype)
        if not scalar.is_float(self.dtype):
            return decided
        first, last = (b, a) if self.descending else (a, b)
        first_nan, last_nan = (scalar.compare("ne", v, v, self.dtype) for v in (first, last))
        return arith.OrIOp(decided, _and(first_nan, _not(last_nan))).result

    def key(self, line: list[Value], index: Value) -> Value:
        """Element `index` (of dtype _ORDER) of a line, given by its (outer, inner) indices."""
        return extract(self.lines, [line[0], index_of(index, _ORDER), line[1]])


_Element = Callable[[_Sorting, list[Value], Value], Value]
"""An element of the result, from the line's (outer, inner) indices and the index in the line that is sorted there."""


def _and(a: Value, b: Value) -> Value:
    return arith.AndIOp(a, b).result


def _not(flag: Value) -> Value:
    one = arith.ConstantOp(flag.type, ir.IntegerAttr.get(flag.type, 1)).result
    return arith.XOrIOp(flag, one).result


def _less(a: Value, b: Value) -> Value:
    return scalar.compare("lt", a, b, INDEX_DTYPE)


def _min(a: Value, b: Value) -> Value:
    return arith.MinSIOp(a, b).result


def _add(a: Value, b: Value) -> Value:
    return arith.AddIOp(a, b).result


def _merge(s: _Sorting, line: list[Value], work: Value, rows: tuple[Value, Value], start: Value, width: Value) -> Value:
    """Merges two runs of `width` indices from `start` on, clamped to the line, from one row of `work` into the other."""
    source, target = rows
    one, last = index_constant(1), index_constant(s.size - 1)
    middle = _min(_add(start, width), index_constant(s.size))
    end = _min(_add(middle, width), index_constant(s.size))

    def step(k: Value, work: Value, i: Value, j: Value) -> list[Value]:
        # A position past its run is read at the end of the line instead, and not used.
        first, second = (extract(work, [source, _min(at, last)]) for at in (i, j))
        sooner = s.before(s.key(line, second), s.key(line, first))
        take_second = _and(_less(j, end), arith.OrIOp(_not(_less(i, middle)), sooner).result)
        work = insert(scalar.select(take_second, second, first), work, [target, k])
        return [work, scalar.select(take_second, i, _add(i, one)), scalar.select(take_second, _add(j, one), j)]

    return loop(start, end, one, [work, start, middle], step)[0]


def _sort_line(s: _Sorting, line: list[Value], work: Value) -> tuple[Value, Value]:
    """Sorts the indices of a line in the two rows of `work`; gives it and the row that holds them in the end."""
    zero, one, size = (index_constant(n) for n in (0, 1, s.size))
    work = loop(zero, size, one, [work], lambda i, work: [insert(integer_of(i, _ORDER), work, [zero, i])])[0]

    def double(p: Value, work: Value) -> list[Value]:
        width = arith.ShLIOp(one, p).result
        source = _and(p, one)
        rows = source, arith.XOrIOp(source, one).result
        pair = arith.ShLIOp(width, one).result
        return loop(zero, size, pair, [work], lambda start, work: [_merge(s, line, work, rows, start, width)])

    if isinstance(s.size, int):
        count = (s.size - 1).bit_length()
        return loop(zero, index_constant(count), one, [work], double)[0], index_constant(count % 2)
    passes = _passes(s.size)
    return loop(zero, passes, one, [work], double)[0], _and(passes, one)


def _passes(size: Size) -> Value:
    """Passes of a merge sort: ceil(log2(size)), 0 for a size of 0."""
    last = integer_of(index_constant(maximum(size - 1, 0)), _ORDER)
    zeros = math.CountLeadingZerosOp(last).result
    return index_of(scalar.subtract(scalar.constant(scalar.bits(_ORDER), _ORDER), zeros, _ORDER), _ORDER)


def _select_line(s: _Sorting, line: list[Value], work: Value, count: Size) -> Value:
    """Leaves in the row of `work` the indices of the first `count` elements of a line in their order."""
    zero, one = index_constant(0), index_constant(1)
    entries = index_constant(count)
    # Entries that are not filled yet are compared, without effect on the result, so they must be valid indices.
    work = loop(zero, entries, one, [work], lambda p, work: [insert(integer_of(zero, _ORDER), work, [zero, p])])[0]

    def put(i: Value, work: Value) -> list[Value]:
        def shift(p: Value, work: Value, moving: Value, shifting: Value) -> list[Value]:
            here = extract(work, [zero, p])
            free = _not(_less(p, i))
            shifting = arith.OrIOp(arith.OrIOp(shifting, free).result, s.before(s.key(line, moving), s.key(line, here))).result
            work = insert(scalar.select(shifting, moving, here), work, [zero, p])
            return [work, scalar.select(shifting, here, moving), shifting]

        not_yet = scalar.to_flag(scalar.constant(0, "bool"))
        return loop(zero, entries, one, [work, integer_of(i, _ORDER), not_yet], shift)[:1]

    def consider(i: Value, work: Value) -> list[Value]:
        worst = extract(work, [zero, index_constant(count - 1)])
        better = s.before(s.key(line, integer_of(i, _ORDER)), s.key(line, worst))
        return when(arith.OrIOp(_less(i, entries), better).result, [work], lambda work: put(i, work))

    return loop(zero, index_constant(s.size), one, [work], consider)[0]


def _sorted(op: Op, data: Value, count: Size, outputs: list[tuple[TensorType, _Element]]) -> list[Value]:
    """The first `count` elements of each sorted line; `outputs` say type and element of each result."""
    source = operand_type(op)
    if source.num_elements == 0:
        return [empty(type_) for type_, _ in outputs]
    outer, size, inner = along(source.sizes, normalize_axis(op.axis, source.rank))
    s = _Sorting(reshape(data, (outer, size, inner)), size, source.dtype, not op.is_ascend)
    results = [empty(type_.with_shape((outer, count, inner))) for type_, _ in outputs]
    few = guess(count) <= _FEW and 4 * guess(count) <= guess(size)

    def sort_line(line: list[Value], *carried: Value) -> list[Value]:
        if few:
            work, row = _select_line(s, line, carried[-1], count), index_constant(0)
        else:
            work, row = _sort_line(s, line, carried[-1])

        def write(k: Value, *results: Value) -> list[Value]:
            at = extract(work, [row, k])
            return [insert(element(s, line, at), into, [line[0], k, line[1]]) for (_, element), into in zip(outputs, results, strict=True)]

        begin, end, step = (index_constant(n) for n in (0, count, 1))
        return [*loop(begin, end, step, carried[:-1], write), work]

    work_type = TensorType((1, count) if few else (2, size), _ORDER)
    found = nest((outer, inner), [*results, empty(work_type)], sort_line)
    return [reshape(value, type_.sizes) for value, (type_, _) in zip(found, outputs, strict=False)]


def _value(s: _Sorting, line: list[Value], at: Value) -> Value:
    return s.key(line, at)


def _index(dtype: str) -> _Element:
    return lambda s, line, at: scalar.convert(at, _ORDER, dtype)


@compute("sort")
def sort(op: Op, data: Value) -> Value:
    out = result_type(op)
    return _sorted(op, data, out.sizes[normalize_axis(op.axis, out.rank)], [(out, _value)])[0]


@compute("argsort")
def argsort(op: Op, data: Value) -> Value:
    out = result_type(op)
    return _sorted(op, data, out.sizes[normalize_axis(op.axis, out.rank)], [(out, _index(out.dtype))])[0]


@compute("topk")
def topk(op: Op, data: Value) -> list[Value]:
    types = [result_type(op, i) for i in range(len(op.operation.results))]
    by_type: dict[str, list[_Element]] = {"both": [_value, _index(op.dtype)], "values": [_value], "indices": [_index(op.dtype)]}
    count = types[0].sizes[normalize_axis(op.axis, types[0].rank)]
    return _sorted(op, data, count, list(zip(types, by_type[op.ret_type], strict=True)))
