"""Compute rules of activations: nn.relu, nn.leaky_relu, nn.prelu, nn.softmax, nn.log_softmax, nn.dropout."""

import math as pymath

from relayc.dialects.mlir import arith, math
from relayc.dialects.relay.base import Op
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, affine_map, compute, dim, elementwise, fill, identity, operand_type, parallel, result_type
from relayc.pipelines.te.rules.rows import Rows


@compute("nn_relu")
def relu(op: Op, data: Value) -> Value:
    dtype = result_type(op).dtype
    return elementwise(op, [data], lambda x: scalar.maximum(x, scalar.constant(0, dtype), dtype))


def _leaky(x: Value, alpha: Value, dtype: str) -> Value:
    """x where not negative, otherwise alpha * x (NaN stays NaN)."""
    positive = scalar.compare("ge", x, scalar.constant(0, dtype), dtype)
    return scalar.select(positive, x, scalar.multiply(alpha, x, dtype))


@compute("nn_leaky_relu")
def leaky_relu(op: Op, data: Value) -> Value:
    dtype = result_type(op).dtype
    return elementwise(op, [data], lambda x: _leaky(x, scalar.constant(op.alpha, dtype), dtype))


@compute("nn_prelu")
def prelu(op: Op, data: Value, alpha: Value) -> Value:
    out = result_type(op)
    maps = [identity(out.rank), affine_map(out.rank, [dim(op.axis % out.rank)])]
    return parallel(out, [data, alpha], lambda x, a: _leaky(x, a, out.dtype), maps)


def _rows(op: Op, data: Value) -> tuple[Rows, Value]:
    """The rows along the axis of a softmax, and the largest element of each."""
    type_ = operand_type(op)
    rows = Rows(type_, (op.axis % type_.rank,))
    return rows, rows.reduce(data, [], -pymath.inf, arith.maximumf)


def _exp_of_difference(x: Value, largest: Value) -> Value:
    return math.exp(arith.subf(x, largest))


@compute("nn_softmax")
def softmax(op: Op, data: Value) -> Value:
    rows, largest = _rows(op, data)
    powers = rows.each(data, [largest], _exp_of_difference, out=rows.wide)
    total = rows.sum(powers, dtype=rows.wide)
    quotients = Rows(rows.type.with_dtype(rows.wide), rows.axes)
    return quotients.each(powers, [total], arith.divf, out=rows.type.dtype)


@compute("nn_log_softmax")
def log_softmax(op: Op, data: Value) -> Value:
    rows, largest = _rows(op, data)
    total = rows.sum(data, [largest], _exp_of_difference)
    shift = rows.each_row([largest, total], lambda m, s: arith.addf(m, math.log(s)))
    return rows.each(data, [shift], arith.subf)


@compute("nn_dropout")
def dropout(op: Op, data: Value) -> list[Value]:
    return [elementwise(op, [data], lambda x: x), fill(result_type(op, 1), 1)]
