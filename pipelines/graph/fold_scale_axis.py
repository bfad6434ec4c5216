"""FoldScaleAxis: a multiplication by a constant per channel, after or before a convolution or product, goes into its weights.

Backward: conv(x, w) * s -> conv(x, w * s), also through a constant bias: (conv(x, w) + b) * s -> conv(x, w * s) + b * s. Forward:
conv(x * s, w) -> conv(x, w * s). The scaled weights are written as operators on constants, for FoldConstant to compute.
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.binary import Add, Subtract
from relayc.dialects.relay.linear import Linear
from relayc.dialects.relay.names import build
from relayc.dialects.relay.scopes import size_attributes
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.reshapes import per_channel, reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

BACKWARD, FORWARD, RULES = Rules("BackwardFoldScaleAxis"), Rules("ForwardFoldScaleAxis"), Rules("FoldScaleAxis")

_CONSTANT_DEPTH = 8


def is_constant(value: ir.Value, depth: int = _CONSTANT_DEPTH) -> bool:
    """Whether a value is a constant, or made of constants by a few operators (as the rules here build them for FoldConstant)."""
    owner = value.owner
    if isinstance(owner, Constant) or not isinstance(owner, Op) or not owner.pure:
        return isinstance(owner, Constant)
    if depth == 0 or size_attributes(owner):
        return False
    return all(is_constant(v, depth - 1) for v in owner.operation.operands)


def _linear(value: ir.Value, rw: Rewriter) -> Linear | None:
    """The float convolution or product with constant weights that produces `value`, if nothing else uses it."""
    owner = value.owner
    if not isinstance(owner, Linear) or not rw.used_once(value):
        return None
    weight = owner.operation.operands[1]
    same = TensorType.of(weight).dtype == TensorType.of(value).dtype and TensorType.of(value).is_float
    return owner if same and is_constant(weight) and TensorType.of(value).is_known else None


def _scaled_weight(op: Linear, vector: ir.Value, of_result: bool) -> ir.Value:
    """The weight times a factor for each channel of the result (or of the data)."""
    weight = op.operation.operands[1]
    shape = TensorType.of(weight).static_shape
    if TensorType.of(vector).shape == (1,):
        return build("multiply", weight, vector)
    channels = op.weight_channels(of_result)
    axis, groups, other = channels.axis, channels.groups, channels.group_axis
    if groups == 1:
        return build("multiply", weight, _along(vector, axis, len(shape)))
    split = (*shape[:other], groups, shape[other] // groups, *shape[other + 1 :])
    inner = axis + (axis > other)
    factors = [1] * len(split)
    factors[other], factors[inner] = groups, shape[axis]
    by_group = reshape_to(vector, (groups, shape[axis]))
    if other > inner:
        by_group = build("transpose", by_group, axes=(1, 0))
    return reshape_to(build("multiply", reshape_to(weight, split), reshape_to(by_group, factors)), shape)


def _along(vector: ir.Value, axis: int, rank: int) -> ir.Value:
    n = TensorType.of(vector).static_shape[0]
    return reshape_to(vector, [n if i == axis else 1 for i in range(rank)])


def _with_weight(op: Op, data: ir.Value, weight: ir.Value) -> ir.Value:
    # Its location combines its own node of the model and the node of the multiplication.
    with ir.Location.fused([op.operation.location, ir.Location.current]):
        return build(op.relay_name, data, weight, **op.attrs())


def _scale_linear(op: Linear, scale: ir.Value) -> ir.Value | None:
    """`op` with its result multiplied by `scale`; None if `scale` is not a factor per channel."""
    result = TensorType.of(op.operation.results[0])
    axis = op.channel_axis(of_result=True)
    vector = None if axis is None else per_channel(scale, result.sizes, axis)
    return None if vector is None else _with_weight(op, op.operation.operands[0], _scaled_weight(op, vector, of_result=True))


def _operand_and_constant(op: Op) -> tuple[ir.Value, ir.Value] | None:
    """(operand, constant) of a commutative operator of which one operand is constant."""
    lhs, rhs = op.operation.operands
    if is_constant(rhs):
        return lhs, rhs
    return (rhs, lhs) if is_constant(lhs) else None


def _same_type(a: ir.Value, b: ir.Value) -> bool:
    return TensorType.of(a) == TensorType.of(b)


@BACKWARD.on("multiply")
def backward(op: Op, rw: Rewriter) -> Found:
    """linear(x, w) * s -> linear(x, w * s), through a constant bias between the two."""
    pair = _operand_and_constant(op)
    if pair is None or not _same_type(pair[0], op.result):
        return None
    value, scale = pair
    linear = _linear(value, rw)
    if linear is not None:
        return _scale_linear(linear, scale)
    biased = value.owner
    if not isinstance(biased, (Add, Subtract)) or not rw.used_once(value):
        return None
    inner, bias = biased.operation.operands
    linear = _linear(inner, rw)
    if linear is None or not is_constant(bias) or not _same_type(inner, value):
        return None
    scaled = _scale_linear(linear, scale)
    return None if scaled is None else build(biased.relay_name, scaled, build("multiply", bias, scale))


@BACKWARD.on("multiply")
def backward_through_relu(op: Op, rw: Rewriter) -> Found:
    """relu(linear(x, w)) * s -> relu(linear(x, w) * s) for positive factors, which the weights take; through a constant bias, too."""
    pair = _operand_and_constant(op)
    limited = rw.producer(pair[0], "nn_relu") if pair is not None and rw.used_once(pair[0]) else None
    if pair is None or limited is None or not _same_type(pair[0], op.result) or not rw.used_once(limited.data):
        return None
    factors, biased = rw.array(pair[1]), limited.data.owner
    if factors is None or not (factors > 0).all():
        return None
    is_biased = isinstance(biased, (Add, Subtract)) and is_constant(biased.operation.operands[1])
    linear = _linear(biased.operation.operands[0] if is_biased else limited.data, rw)
    axis = None if linear is None else linear.channel_axis(of_result=True)
    if axis is None or per_channel(pair[1], TensorType.of(op.result).sizes, axis) is None:
        return None
    return build("nn.relu", build("multiply", limited.data, pair[1]))


@BACKWARD.on("divide")
def backward_divide(op: Op, rw: Rewriter) -> Found:
    """linear(x, w) / s -> linear(x, w * (1 / s))."""
    value, divisor = op.operation.operands
    linear = _linear(value, rw)
    if linear is None or not is_constant(divisor) or not _same_type(value, op.result):
        return None
    one = build("divide", build("ones", shape=(), dtype=TensorType.of(divisor).dtype), divisor)
    return _scale_linear(linear, one)


RULES.include(BACKWARD)


@RULES.on("add", "multiply")
def merge_constants(op: Op, rw: Rewriter) -> Found:
    """(x + b) + c -> x + (b + c) and (x * b) * c -> x * (b * c), of floats."""
    name = type(op)._op_name
    pair = _operand_and_constant(op)
    inner = rw.producer(pair[0], name) if pair is not None and rw.used_once(pair[0]) else None
    before = _operand_and_constant(inner) if inner is not None else None
    if pair is None or inner is None or before is None or is_constant(before[0]):
        return None
    if not _float_chain(before[0], inner.result, op.result):
        return None
    return build(name, before[0], build(name, before[1], pair[1]))


@RULES.on("multiply")
def scale_past_bias(op: Op, rw: Rewriter) -> Found:
    """(x * a + b) * c -> x * (a * c) + b * c, of floats: one normalisation after another."""
    pair = _operand_and_constant(op)
    biased = rw.producer(pair[0], "add") if pair is not None and rw.used_once(pair[0]) else None
    inner = _operand_and_constant(biased) if biased is not None else None
    scaled = rw.producer(inner[0], "multiply") if inner is not None and rw.used_once(inner[0]) else None
    before = _operand_and_constant(scaled) if scaled is not None else None
    if pair is None or biased is None or inner is None or scaled is None or before is None:
        return None
    if not _float_chain(before[0], scaled.result, biased.result, op.result):
        return None
    scale = build("multiply", before[1], pair[1])
    return build("add", build("multiply", before[0], scale), build("multiply", inner[1], pair[1]))


def _float_chain(*values: ir.Value) -> bool:
    """Whether values are floats of one type."""
    first = TensorType.of(values[0])
    return first.is_float and first.is_known and all(TensorType.of(v) == first for v in values)


@FORWARD.on(Linear)
def forward(op: Linear, rw: Rewriter) -> Found:
    """linear(x * s, w) -> linear(x, w * s), if the product has no other use."""
    data, weight = op.operation.operands
    scaled = rw.producer(data, "multiply")
    if scaled is None or not rw.used_once(data) or not is_constant(weight) or not TensorType.of(weight).is_float:
        return None
    pair = _operand_and_constant(scaled)
    axis = op.channel_axis(of_result=False)
    if pair is None or axis is None or not _same_type(pair[0], data) or not TensorType.of(data).is_known:
        return None
    vector = per_channel(pair[1], TensorType.of(data).sizes, axis)
    return None if vector is None else _with_weight(op, pair[0], _scaled_weight(op, vector, of_result=False))


RULES.include(FORWARD)

SUMMARY = "Factors per channel go into the weights of the convolutions and products around them."
fold_scale_axis, forward_fold_scale_axis, backward_fold_scale_axis = (rules.as_pass(3, SUMMARY) for rules in (RULES, FORWARD, BACKWARD))
