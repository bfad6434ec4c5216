"""Compute rules of stable sorting along lines: a merge sort of indices; insertion for a few of many elements."""

from dataclasses import dataclass

from relayc.dialects.mlir import arith
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.read.sorting import INDICES, VALUES, mark_sort
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, compute, empty, extract, index_constant, operand_type, reshape, result_type
from relayc.pipelines.te.rules.literal import index_of, integer_of, less
from relayc.pipelines.te.rules.loops import along, insert, loop, nest, repeat_while, when
from relayc.pipelines.te.rules.merge import ORDER, Before, merge_sort
from relayc.pipelines.te.rules.scalar import both, comes_before, either, negated
from relayc.symbolic import Size, guess

_FEW = 32
"""Limit for the insertion of the first elements of a line at least four times as long: most elements then cost one comparison."""


@dataclass(frozen=True)
class _Sorting:
    """The input of a sort: lines of a tensor [outer, size, inner] of `dtype`; `descending` reverses the order."""

    lines: Value
    size: Size
    dtype: str
    descending: bool

    def key(self, line: list[Value], index: Value) -> Value:
        """Element `index` (of dtype ORDER) of a line, given by its (outer, inner) indices."""
        return extract(self.lines, [line[0], index_of(index, ORDER), line[1]])

    def before(self, line: list[Value]) -> Before:
        """The order of a line's elements."""
        return lambda b, a: comes_before(self.key(line, b), self.key(line, a), self.dtype, self.descending)


@dataclass(frozen=True)
class _Result:
    """A result of a sort: VALUES or INDICES, and its type."""

    kind: str
    type: TensorType

    def element(self, s: _Sorting, line: list[Value], at: Value) -> Value:
        """An element of the result, given the line's (outer, inner) indices and the sorted index in the line."""
        return s.key(line, at) if self.kind == VALUES else scalar.convert(at, ORDER, self.type.dtype)


def _numbered(work: Value, size: Size) -> Value:
    """`work` with 0, 1, ..., size - 1 in its first row."""
    zero, one, end = (index_constant(n) for n in (0, 1, size))
    return loop(zero, end, one, [work], lambda i, work: [insert(integer_of(i, ORDER), work, [zero, i])])[0]


def _select_line(s: _Sorting, line: list[Value], work: Value, count: Size) -> Value:
    """Stores the sorted indices of the first `count` elements of a line in the row of `work`."""
    zero, one = index_constant(0), index_constant(1)
    entries, before = index_constant(count), s.before(line)
    # Entries not yet filled are compared, without effect on the result, so they must be valid indices.
    work = loop(zero, entries, one, [work], lambda p, work: [insert(integer_of(zero, ORDER), work, [zero, p])])[0]

    def put(i: Value, work: Value) -> list[Value]:
        def shift(p: Value, work: Value, moving: Value, shifting: Value) -> list[Value]:
            here = extract(work, [zero, p])
            free = negated(less(p, i))
            shifting = either(either(shifting, free), before(moving, here))
            work = insert(scalar.select(shifting, moving, here), work, [zero, p])
            return [work, scalar.select(shifting, here, moving), shifting]

        not_yet = scalar.to_flag(scalar.constant(0, "bool"))
        return loop(zero, entries, one, [work, integer_of(i, ORDER), not_yet], shift)[:1]

    def consider(i: Value, work: Value) -> list[Value]:
        worst = extract(work, [zero, index_constant(count - 1)])
        better = before(integer_of(i, ORDER), worst)
        return when(either(less(i, entries), better), [work], lambda work: put(i, work))

    return loop(zero, index_constant(s.size), one, [work], consider)[0]


def _sorted(op: Op, data: Value, *outputs: _Result) -> list[Value]:
    """The first elements of each sorted line, as many as the results have."""
    source = operand_type(op)
    if source.num_elements == 0:
        return [empty(output.type) for output in outputs]
    count = outputs[0].type.sizes[normalize_axis(op.axis, source.rank)]
    outer, size, inner = along(source.sizes, normalize_axis(op.axis, source.rank))
    s = _Sorting(reshape(data, (outer, size, inner)), size, source.dtype, not op.is_ascend)
    results = [empty(output.type.with_shape((outer, count, inner))) for output in outputs]
    few = guess(count) <= _FEW and 4 * guess(count) <= guess(size)

    def sort_line(line: list[Value], *carried: Value) -> list[Value]:
        if few:
            work, row = _select_line(s, line, carried[-1], count), index_constant(0)
        else:
            work, row = merge_sort(_numbered(carried[-1], size), size, s.before(line))

        def write(k: Value, *results: Value) -> list[Value]:
            at = extract(work, [row, k])
            return [insert(output.element(s, line, at), into, [line[0], k, line[1]]) for output, into in zip(outputs, results, strict=True)]

        begin, end, step = (index_constant(n) for n in (0, count, 1))
        return [*loop(begin, end, step, carried[:-1], write), work]

    work_type = TensorType((1, count) if few else (2, size), ORDER)
    found = nest((outer, inner), [*results, empty(work_type)], sort_line)
    mark_sort(found[0], source.dtype, [output.kind for output in outputs], descending=s.descending)
    return [reshape(value, output.type.sizes) for value, output in zip(found, outputs, strict=False)]


@compute("sort", "argsort", "topk")
def sort(op: Op, data: Value) -> list[Value]:
    wanted = {"sort": "values", "argsort": "indices"}.get(type(op)._op_name) or op.ret_type
    kinds = {"both": [VALUES, INDICES], "values": [VALUES], "indices": [INDICES]}[wanted]
    return _sorted(op, data, *[_Result(kind, result_type(op, i)) for i, kind in enumerate(kinds)])


@compute("argsort_rows")
def argsort_rows(op: Op, data: Value) -> Value:
    source, out = operand_type(op), result_type(op)
    if out.num_elements == 0:
        return empty(out)
    rows, columns = source.sizes
    zero, one, end = (index_constant(n) for n in (0, 1, columns))

    def before(b: Value, a: Value) -> Value:
        """Decided by the first column in which the rows differ."""

        def compare(column: Value, *_: Value) -> list[Value]:
            x, y = (extract(data, [index_of(row, ORDER), column]) for row in (b, a))
            smaller, larger = comes_before(x, y, source.dtype), comes_before(y, x, source.dtype)
            return [arith.addi(column, one), smaller, negated(either(smaller, larger))]

        no = scalar.to_flag(scalar.constant(0, "bool"))
        return repeat_while([zero, no, negated(no)], lambda column, _, same: both(less(column, end), same), compare)[1]

    def sort_all(_: list[Value], result: Value, work: Value) -> list[Value]:
        work, row = merge_sort(_numbered(work, rows), rows, before)

        def write(k: Value, result: Value) -> list[Value]:
            return [insert(scalar.convert(extract(work, [row, k]), ORDER, out.dtype), result, [k])]

        return [*loop(zero, index_constant(rows), one, [result], write), work]

    # One loop of one iteration, so that the whole sort is in one operation.
    found = nest((1,), [empty(out), empty(TensorType((2, rows), ORDER))], sort_all)
    mark_sort(found[0], source.dtype, [INDICES], of_rows=True)
    return found[0]
