"""Compute rules of sorting: a bottom-up merge sort of indices, stable and O(n log n), line by line."""

from collections.abc import Callable
from dataclasses import dataclass

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.base import Op, normalize_axis
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te import scalar
from relayc.pipelines.te.core import Value, compute, empty, extract, index_constant, operand_type, reshape, result_type
from relayc.pipelines.te.literal import INDEX_DTYPE, index_of, integer_of
from relayc.pipelines.te.loops import along, insert, loop, nest

_ORDER = "int64"
"""dtype of the indices while they are sorted."""


@dataclass(frozen=True)
class _Sorting:
    """What is sorted: lines of a tensor [outer, size, inner] of `dtype`; `descending` turns the order around."""

    lines: Value
    size: int
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

    def key(self, o: Value, r: Value, order: Value, at: Value) -> Value:
        """The element that entry `at` of `order` points to, in line (o, r)."""
        return extract(self.lines, [o, index_of(extract(order, [at]), _ORDER), r])


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


def _merge(s: _Sorting, o: Value, r: Value, order: Value, merged: Value, start: Value, width: Value) -> Value:
    """Merges order[start : start + width] and order[start + width : start + 2 * width], clamped to the line, into `merged`."""
    size, one = index_constant(s.size), index_constant(1)
    middle = _min(_add(start, width), size)
    end = _min(_add(middle, width), size)
    last = index_constant(s.size - 1)

    def step(k: Value, merged: Value, i: Value, j: Value) -> list[Value]:
        # A position past its run is read at the end of the line instead, and not used.
        a, b = s.key(o, r, order, _min(i, last)), s.key(o, r, order, _min(j, last))
        take_b = _and(_less(j, end), arith.OrIOp(_not(_less(i, middle)), s.before(b, a)).result)
        taken = extract(order, [_min(scalar.select(take_b, j, i), last)])
        return [insert(taken, merged, [k]), scalar.select(take_b, i, _add(i, one)), scalar.select(take_b, _add(j, one), j)]

    return loop(start, end, one, [merged, start, middle], step)[0]


def _sort_line(s: _Sorting, o: Value, r: Value, order: Value, scratch: Value) -> tuple[Value, Value]:
    """Leaves in `order` the indices that sort line (o, r)."""
    zero, one, size = (index_constant(n) for n in (0, 1, s.size))
    order = loop(zero, size, one, [order], lambda i, order: [insert(integer_of(i, _ORDER), order, [i])])[0]

    def double(p: Value, order: Value, scratch: Value) -> list[Value]:
        width = arith.ShLIOp(one, p).result
        pair = arith.ShLIOp(width, one).result
        scratch = loop(zero, size, pair, [scratch], lambda start, scratch: [_merge(s, o, r, order, scratch, start, width)])[0]
        order = loop(zero, size, one, [order], lambda i, order: [insert(extract(scratch, [i]), order, [i])])[0]
        return [order, scratch]

    passes = index_constant((s.size - 1).bit_length())
    order, scratch = loop(zero, passes, one, [order, scratch], double)
    return order, scratch


def _sorted(
    op: Op, data: Value, count: int, outputs: list[tuple[TensorType, Callable[[_Sorting, list[Value], Value], Value]]]
) -> list[Value]:
    """The first `count` elements of each sorted line; `outputs` say type and element of each result."""
    source = operand_type(op)
    axis = normalize_axis(op.axis, source.rank)
    outer, size, inner = along(source.shape, axis)
    s = _Sorting(reshape(data, (outer, size, inner)), size, source.dtype, not op.is_ascend)
    results = [empty(type_.with_shape((outer, count, inner))) for type_, _ in outputs]
    work = [empty(TensorType((size,), _ORDER)) for _ in range(2)]

    def line(indices: list[Value], *carried: Value) -> list[Value]:
        o, r = indices
        order, scratch = _sort_line(s, o, r, *carried[-2:])

        def write(k: Value, *results: Value) -> list[Value]:
            at = extract(order, [k])
            return [insert(element(s, [o, r], at), into, [o, k, r]) for (_, element), into in zip(outputs, results, strict=True)]

        bounds = [index_constant(n) for n in (0, count, 1)]
        return [*loop(*bounds, carried[:-2], write), order, scratch]

    found = nest((outer, inner), [*results, *work], line)
    return [reshape(value, type_.shape) for value, (type_, _) in zip(found, outputs, strict=False)]


def _value(s: _Sorting, line: list[Value], at: Value) -> Value:
    return extract(s.lines, [line[0], index_of(at, _ORDER), line[1]])


def _index(dtype: str) -> _Element:
    return lambda s, line, at: scalar.convert(at, _ORDER, dtype)


@compute("sort")
def sort(op: Op, data: Value) -> Value:
    out = result_type(op)
    return _sorted(op, data, out.shape[normalize_axis(op.axis, out.rank)], [(out, _value)])[0]


@compute("argsort")
def argsort(op: Op, data: Value) -> Value:
    out = result_type(op)
    return _sorted(op, data, out.shape[normalize_axis(op.axis, out.rank)], [(out, _index(out.dtype))])[0]


@compute("topk")
def topk(op: Op, data: Value) -> list[Value]:
    types = [result_type(op, i) for i in range(len(op.operation.results))]
    elements = {"both": [_value, _index(op.dtype)], "values": [_value], "indices": [_index(op.dtype)]}[op.ret_type]
    count = types[0].shape[normalize_axis(op.axis, types[0].rank)]
    return _sorted(op, data, count, list(zip(types, elements, strict=True)))
