"""Compute rules of normalisations: nn.batch_norm, nn.layer_norm, nn.rms_norm, nn.instance_norm, nn.group_norm, nn.l2_normalize, nn.lrn."""

from collections.abc import Sequence

from relayc.dialects.mlir import arith, ir, math
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    empty,
    fill,
    identity,
    operand_type,
    parallel,
    reduction,
    result_type,
)
from relayc.pipelines.te.rules.rows import Rows
from relayc.pipelines.te.rules.window import merge, pad, split

Vectors = Sequence[tuple[Value, Sequence[ir.AffineExpr]]]


def _square(x: Value) -> Value:
    return arith.mulf(x, x)


def _inverse_root(rows: Rows, squares: Value, epsilon: float) -> Value:
    """1 / sqrt(mean + epsilon) of each row, from its sum of squares."""

    def body(s: Value) -> Value:
        return math.rsqrt(arith.addf(rows.mean(s), rows.constant(epsilon)))

    return rows.each_row([squares], body)


def _affine(op: Op, gamma: Value, beta: Value, *at: ir.AffineExpr) -> tuple[Vectors, bool, bool]:
    """The vectors of a normalization, read at `at`: (vectors, whether gamma is one, whether beta is)."""
    vectors = [(gamma, at)] * op.scale + [(beta, at)] * op.center
    return vectors, op.scale, op.center


def _normalize(rows: Rows, data: Value, epsilon: float, vectors: Vectors, scale: bool, center: bool) -> Value:
    """(x - mean) / sqrt(variance + epsilon) with the statistics of each row, then times gamma, plus beta where given."""
    mean = rows.each_row([rows.sum(data)], rows.mean)
    squares = rows.sum(data, [mean], lambda x, m: _square(arith.subf(x, m)))
    inverse = _inverse_root(rows, squares, epsilon)

    def body(x: Value, m: Value, r: Value, *of_vectors: Value) -> Value:
        x, rest = arith.mulf(arith.subf(x, m), r), list(of_vectors)
        if scale:
            x = arith.mulf(x, rest.pop(0))
        return arith.addf(x, rest.pop(0)) if center else x

    return rows.each(data, [mean, inverse], body, vectors)


@compute("nn_layer_norm", "nn_instance_norm")
def normalized(op: Op, data: Value, gamma: Value, beta: Value) -> Value:
    """The rows are along the axis of the vectors; in an instance norm along all other axes but the batch."""
    type_ = operand_type(op)
    axis = op.axis % type_.rank
    others = tuple(i for i in range(1, type_.rank) if i != axis)
    rows = Rows(type_, (axis,) if type(op)._op_name == "nn_layer_norm" else others)
    return _normalize(rows, data, op.epsilon, *_affine(op, gamma, beta, dim(axis)))


@compute("nn_group_norm")
def group_norm(op: Op, data: Value, gamma: Value, beta: Value) -> Value:
    """The channels are split into [group, channel of the group]."""
    type_ = operand_type(op)
    axis = op.axis % type_.rank
    size = type_.sizes[axis] // op.num_groups
    parts = [[op.num_groups, size] if i == axis else [n] for i, n in enumerate(type_.sizes)]
    if isinstance(size, int):
        at = [dim(axis) * size + dim(axis + 1)]
    else:  # the vectors are split like the channels
        gamma, beta = (split(v, [[op.num_groups, size]]) for v in (gamma, beta))
        at = [dim(axis), dim(axis + 1)]
    grouped = type_.with_shape(n for part in parts for n in part)
    rows = Rows(grouped, tuple(i for i in range(1, grouped.rank) if i != axis))
    found = _normalize(rows, split(data, parts), op.epsilon, *_affine(op, gamma, beta, *at))
    return merge(found, [len(part) for part in parts])


@compute("nn_rms_norm")
def rms_norm(op: Op, data: Value, gamma: Value) -> Value:
    type_ = operand_type(op)
    axis = op.axis % type_.rank
    rows = Rows(type_, (axis,))
    inverse = _inverse_root(rows, rows.sum(data, element=_square), op.epsilon)
    return rows.each(data, [inverse], lambda x, r, g: arith.mulf(arith.mulf(x, r), g), [(gamma, [dim(axis)])])


@compute("nn_l2_normalize")
def l2_normalize(op: Op, data: Value) -> Value:
    type_ = operand_type(op)
    rows = Rows(type_, tuple(a % type_.rank for a in op.axis))
    squares = rows.sum(data, element=_square)
    norm = rows.each_row([squares], lambda s: math.sqrt(arith.maximumf(s, rows.constant(op.eps))))
    return rows.each(data, [norm], arith.divf)


@compute("nn_batch_norm")
def batch_norm(op: Op, data: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> list[Value]:
    type_ = operand_type(op)
    rows, at = Rows(type_, ()), [dim(op.axis % type_.rank)]
    vectors, scale, center = _affine(op, gamma, beta, *at)

    def body(x: Value, m: Value, v: Value, *of_vectors: Value) -> Value:
        factor, rest = math.rsqrt(arith.addf(v, rows.constant(op.epsilon))), list(of_vectors)
        if scale:
            factor = arith.mulf(factor, rest.pop(0))
        x = arith.mulf(arith.subf(x, m), factor)
        return arith.addf(x, rest.pop(0)) if center else x

    normalized = rows.each(data, [], body, [(mean, at), (var, at), *vectors])
    return [normalized, *(parallel(result_type(op, i), [v], lambda x: x) for i, v in ((1, mean), (2, var)))]


def _root_power(x: Value, exponent: float, dtype: str) -> Value:
    """x**exponent for x >= 0; by square roots for 1/2 and 3/4 (used by networks), several times as fast as in general."""
    if exponent not in (0.5, 0.75):
        return math.powf(x, scalar.constant(exponent, dtype))
    root = math.sqrt(x)
    return root if exponent == 0.5 else arith.mulf(root, math.sqrt(root))


@compute("nn_lrn")
def lrn(op: Op, data: Value) -> Value:
    """Sums squares in a window along the axis, then data / (bias + alpha / size * sum)^beta."""
    type_ = operand_type(op)
    rank, axis, wide = type_.rank, op.axis % type_.rank, accumulator(type_.dtype)
    before = (op.size - 1) // 2
    low, high = [0] * rank, [0] * rank
    low[axis], high[axis] = before, op.size - 1 - before
    padded = pad(data, low, high, 0.0, type_.dtype)
    # The window operand only gives the extent of the window loop.
    window = empty(TensorType((op.size,), wide))
    at = [dim(i) + dim(rank) if i == axis else dim(i) for i in range(rank)]
    maps = [affine_map(rank + 1, at), affine_map(rank + 1, [dim(rank)])]
    result_map = affine_map(rank + 1, [dim(i) for i in range(rank)])

    def accumulate(x: Value, _: Value, acc: Value) -> Value:
        return arith.addf(_square(scalar.convert(x, type_.dtype, wide)), acc)

    squares = reduction([padded, window], maps, fill(type_.with_dtype(wide), 0.0), result_map, accumulate)

    def body(x: Value, s: Value) -> Value:
        base = arith.addf(scalar.constant(op.bias, wide), arith.mulf(s, scalar.constant(op.alpha / op.size, wide)))
        power = _root_power(base, op.beta, wide)
        return scalar.convert(arith.divf(scalar.convert(x, type_.dtype, wide), power), wide, type_.dtype)

    return parallel(type_, [data, squares], body, [identity(rank)] * 2)
