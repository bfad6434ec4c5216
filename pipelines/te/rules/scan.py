"""Compute rules of running sums and products: a sequential loop along each line."""

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.shapes import normalize_axis
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, compute, empty, extract, index_constant, operand_type, reshape, result_type
from relayc.pipelines.te.rules.loops import along, insert, loop, nest

_SCANS = {"cumsum": (0, scalar.add), "cumprod": (1, scalar.multiply)}
"""Initial value and combination of each operator."""


@compute(*_SCANS)
def scan(op: Op, data: Value) -> Value:
    init, combine = _SCANS[type(op)._op_name]
    source, out = operand_type(op), result_type(op)
    if out.num_elements == 0:
        return empty(out)
    dtype = accumulator(out.dtype)
    outer, size, inner = along(out.sizes, 0 if op.axis is None else normalize_axis(op.axis, source.rank))
    lines = reshape(data, (outer, size, inner))

    def line(indices: list[Value], result: Value) -> list[Value]:
        o, r = indices

        def step(i: Value, result: Value, before: Value) -> list[Value]:
            x = scalar.convert(extract(lines, [o, i, r]), source.dtype, dtype)
            after = combine(before, x, dtype)
            stored = scalar.convert(before if op.exclusive else after, dtype, out.dtype)
            return [insert(stored, result, [o, i, r]), after]

        begin, end, one = (index_constant(n) for n in (0, size, 1))
        return loop(begin, end, one, [result, scalar.constant(init, dtype)], step)[:1]

    return reshape(nest((outer, inner), [empty(out.with_shape((outer, size, inner)))], line)[0], out.sizes)
