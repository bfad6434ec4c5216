"""Compute rules of tensors made from attributes or from a shape."""

from collections.abc import Sequence

from relayc.dialects.mlir import arith
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, compute, fill, gather, index_constant, operand_type, parallel, result_type
from relayc.pipelines.te.rules.literal import integer_of, number
from relayc.symbolic import Dim, Size


@compute("full")
def full(op: Op, fill_value: Value) -> Value:
    source, out = operand_type(op).dtype, result_type(op)
    return parallel(out, [fill_value], lambda x: scalar.convert(x, source, out.dtype))


_FILLED = {"zeros": 0, "ones": 1}


@compute(*_FILLED)
def filled(op: Op) -> Value:
    return fill(result_type(op), _FILLED[type(op)._op_name])


@compute("arange")
def arange(op: Op) -> Value:
    """start + i * step, in int64 or float64: repeated addition would accumulate rounding errors."""
    out = result_type(op)
    whole = all(isinstance(v, Dim) or float(v).is_integer() for v in (op.start, op.step))
    dtype = "int64" if whole and not out.is_float else "float64"

    def value(v: float | Size) -> Value:
        return number(v, dtype) if isinstance(v, Dim) else scalar.constant(v, dtype)

    def body(indices: list[Value]) -> Value:
        steps = scalar.multiply(integer_of(indices[0], dtype), value(op.step), dtype)
        return scalar.convert(scalar.add(value(op.start), steps, dtype), dtype, out.dtype)

    return gather(out, body)


@compute("shape_of")
def shape_of(op: Op, data: Value) -> Value:
    return _vector(result_type(op), operand_type(op).sizes)


@compute("sizes")
def sizes_of(op: Op) -> Value:
    return _vector(result_type(op), op.values)


def _vector(out: TensorType, sizes: Sequence[Size]) -> Value:
    """A vector of sizes."""

    def body(indices: list[Value]) -> Value:
        value = scalar.constant(0, out.dtype)
        for i, size in enumerate(sizes):
            here = arith.cmpi(arith.CmpIPredicate.eq, indices[0], index_constant(i))
            value = scalar.select(here, number(size, out.dtype), value)
        return value

    return gather(out, body)
