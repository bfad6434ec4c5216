"""FakeQuantizationToInteger: operators between qnn.dequantize and qnn.quantize become operators on integers (Relay's pass of that name).

- A convolution or product of two dequantised tensors, the weight constant, becomes qnn.conv2d (qnn.dense, ...), whose sums of 32 bits are
  dequantised: the scales move behind the product. Weights have to fit in s8 without their zero point, as symmetric ones do, except for
  convolutions without groups.
- So does a product of matrices of any two dequantised tensors, where each has one scale.
- A transposed convolution becomes a plain one of all phases first (see ConvTransposeToConv), its bias included.
- A bias joins the sums where it is a whole number of steps, as quantised biases are.
- What is dequantised and quantised again becomes qnn.requantize, and the sum of two dequantised tensors, quantised, qnn.add. The limits of
  relu and clip become those of the integers.
- Functions and means of one dequantised tensor, quantised, become qnn.sigmoid and the like.
- An operator that only moves elements, or takes the largest, works on the integers.

Sums are exact, so a result is that of QLinearConv: it is rounded once, where the unfused operators round more often. QnnCanonicalize says
what the operators compute.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.conv import Conv
from relayc.dialects.relay.dense import BatchMatmul, Dense, Matmul
from relayc.dialects.relay.images import ImageOp
from relayc.dialects.relay.linear import Linear
from relayc.dialects.relay.names import build
from relayc.dialects.relay.pool import AvgPool, MaxPool
from relayc.dialects.relay.qnn import FUNCTIONS, Dequantize, Quantize
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.transform import Concatenate, Pad, Reshape, StridedSlice, Transpose, permutation
from relayc.dialects.relay.types import BYTES, TensorType, is_bytes
from relayc.dialects.relay.window import extent
from relayc.pipelines.graph.conv_transpose_to_conv import CONV_TRANSPOSES, as_convolution, phase_weights
from relayc.pipelines.graph.fold_scale_axis import is_constant
from relayc.pipelines.graph.qnn_canonicalize import centred_weights, known
from relayc.pipelines.graph.reshapes import reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.symbolic import proves

RULES = Rules("FakeQuantizationToInteger")

PRODUCTS = (Conv, Dense, Matmul)
"""Operators on data and weights."""
SHUFFLES = (Reshape, Transpose, StridedSlice)
"""Operators that put the phases of a transposed convolution in their places: the sums of phases are quantised before."""
WHOLE = 1e-6
"""Relative error of a quantised bias in f32: its number of steps and the step are each rounded to 24 bits."""
MOST_STEPS = 1 << 30
"""Of a bias, so that there is room for the sum."""

_type = TensorType.of


def _dequantised(value: ir.Value) -> Dequantize | None:
    """What gives a value, where that is a dequantisation to float32."""
    owner = value.owner
    return owner if isinstance(owner, Dequantize) and owner.out_dtype == "float32" else None


def _is_one(*values: ir.Value) -> bool:
    return all(_type(value).num_elements == 1 for value in values)


def _equal(a: ir.Value, b: ir.Value, rw: Rewriter) -> bool:
    """Whether two scales or zero points are the same, as is known."""
    if a == b:
        return True
    x, y = known(a, rw), known(b, rw)
    return x is not None and y is not None and x.size == y.size == 1 and x.item() == y.item()


def _are_equal(a: Sequence[ir.Value], b: Sequence[ir.Value], rw: Rewriter) -> bool:
    """Whether scale and zero point of two tensors are the same, as is known."""
    return all(_equal(x, y, rw) for x, y in zip(a, b, strict=True))


def _has_steps_of(op: Dequantize, end: Quantize, rw: Rewriter) -> bool:
    """Whether equal numbers stand for equal values before and after, as is known: numbers of the type that is quantised to."""
    same = _are_equal((op.input_scale, op.input_zero_point), (end.output_scale, end.output_zero_point), rw)
    rank = _type(op.data).rank
    is_along = _is_one(end.output_scale, end.output_zero_point) or op.axis % rank == end.axis % rank
    return same and is_along and _type(op.data).dtype == end.out_dtype


# ---- products -------------------------------------------------------------------------------------------------------------------------


@RULES.on(*PRODUCTS)
def product(op: Linear, rw: Rewriter) -> Found:
    """A product of dequantised bytes and constant weights -> the product of the integers, dequantised."""
    data, weight = _of_bytes(op.operation.operands[0]), _dequantised(op.operation.operands[1])
    axis, channel = op.channel_axis(of_result=True), op.weight_channels(of_result=True).axis
    result = _type(op.operation.results[0])
    if data is None or weight is None or axis is None or result.dtype != "float32" or not result.is_known:
        return None
    has_padding = isinstance(op, Conv) and any(op.padding)
    if (has_padding and known(data.input_zero_point, rw) is None) or not _is_by_channel(weight, channel, rw):
        return None
    fits = centred_weights(weight.data, weight.input_zero_point, channel, rw) is not None
    if not fits and not (isinstance(op, Conv) and op.groups == 1 and is_bytes(weight.data) and is_constant(weight.data)):
        return None
    attrs = {name: value for name, value in op.attrs().items() if name != "pad_value"}
    parameters = data.input_zero_point, weight.input_zero_point, data.input_scale, weight.input_scale
    flat = [reshape_to(v, (_type(v).num_elements,)) if _type(v).rank else v for v in parameters]
    total = build(f"q{op.relay_name}", data.data, weight.data, *flat, **{**attrs, "out_dtype": "int32"})
    steps = build("multiply", flat[3], reshape_to(data.input_scale, ()))
    return build("qnn.dequantize", total, steps, _none(rw), axis=axis)


@RULES.on(Dense, Matmul, BatchMatmul)
def product_of_two(op: Op, rw: Rewriter) -> Found:
    """A product of two dequantised tensors of bytes, each of one scale -> the product of the integers, dequantised."""
    result = _type(op.operation.results[0])
    a, b = map(_of_bytes, op.operation.operands)
    if a is None or b is None or result.dtype != "float32" or not result.is_known:
        return None
    zeros, scales = (a.input_zero_point, b.input_zero_point), (a.input_scale, b.input_scale)
    numbers = [reshape_to(v, ()) for v in (*zeros, *scales)]
    total = build(f"q{op.relay_name}", a.data, b.data, *numbers, **{**op.attrs(), "out_dtype": "int32"})
    return build("qnn.dequantize", total, build("multiply", *numbers[2:]), _none(rw))


@RULES.on(*CONV_TRANSPOSES)
def transposed(op: Op, rw: Rewriter) -> Found:
    """A transposed convolution of dequantised bytes and constant weights -> a plain one. With a bias the sum is what becomes it."""
    return None if _bias_after(op, rw) is not None else _of_phases(op, None, rw)


@RULES.on("add")
def transposed_bias(op: Op, rw: Rewriter) -> Found:
    """The same with its bias, a constant for each channel."""
    inner: Any = op.lhs.owner
    if not isinstance(inner, Op) or inner.operation.name.removeprefix("relay.") not in CONV_TRANSPOSES:
        return None
    bias = _bias_after(inner, rw)
    return _of_phases(inner, bias, rw) if bias is not None else None


def _bias_after(op: Op, rw: Rewriter) -> np.ndarray | None:
    """The constant that is added to each channel of a transposed convolution, which nothing else uses."""
    result = op.operation.results[0]
    user: Any = next(rw.users(result), None)
    if not rw.used_once(result) or not isinstance(user, Op) or user.relay_name != "add" or user.lhs != result:
        return None
    found, channels = known(user.rhs, rw), _type(result).sizes[1]
    return found.reshape(-1) if found is not None and found.shape == (channels, *(1,) * (_type(result).rank - 2)) else None


def _of_phases(op: Op, bias: np.ndarray | None, rw: Rewriter) -> Found:
    data, weight = _of_bytes(op.data), _dequantised(op.weight)
    if data is None or weight is None:
        return None
    if op.kernel_layout[:2] != "IO" or not _is_by_channel(weight, 1, rw):
        return None
    scale, array = known(weight.input_scale, rw), centred_weights(weight.data, weight.input_zero_point, 1, rw)
    if scale is None or array is None:
        return None
    if op.groups > 1 and scale.size > 1:
        return None  # scales would be those of the channels of one group
    parameters, integers = (scale, np.zeros((), np.int8)), rw.mod.constant(array)

    def repeated(values: np.ndarray, phases: list[int]) -> np.ndarray:
        return np.repeat(values, math.prod(phases)) if values.size > 1 else values.reshape(())

    def weights(taps: list[int], phases: list[int]) -> ir.Value:
        found = phase_weights(integers, op.groups, taps, phases, rw)
        return build("qnn.dequantize", found, *(rw.mod.constant(repeated(v, phases)) for v in parameters), axis=0)

    def biases(phases: list[int]) -> ir.Value | None:
        return None if bias is None else rw.mod.constant(repeated(bias, phases).reshape(-1, *(1,) * op.spatial_rank))

    return as_convolution(op, weights, rw, biases)


def _of_bytes(value: ir.Value) -> Dequantize | None:
    """What dequantises bytes of one scale to a value; None where nothing does."""
    found = _dequantised(value)
    is_found = found is not None and is_bytes(found.data) and _is_one(found.input_scale, found.input_zero_point)
    return found if is_found else None


def _is_by_channel(weight: Dequantize, channel: int, rw: Rewriter) -> bool:
    """Whether weights have one known scale, or one for each channel, and such zero points."""
    parameters = [v for v in (weight.input_scale, weight.input_zero_point) if not _is_one(v)]
    is_along = all(_type(v).rank == 1 and weight.axis % _type(weight.data).rank == channel for v in parameters)
    return is_along and all(known(v, rw) is not None for v in (weight.input_scale, weight.input_zero_point))


def _none(rw: Rewriter) -> ir.Value:
    return rw.mod.constant(np.zeros((), np.int32))


# ---- what follows them ----------------------------------------------------------------------------------------------------------------


def _sum_of(value: ir.Value, rw: Rewriter) -> Dequantize | None:
    """The dequantisation of integers by constants that gives a value which is used once."""
    op = _dequantised(value)
    return op if op is not None and is_constant(op.input_scale) and rw.used_once(value) else None


@RULES.on("add")
def bias(op: Op, rw: Rewriter) -> Found:
    """dequantize(sum) + bias -> dequantize(sum + n), where the bias is n steps, for whole numbers n."""
    scaled, found = _sum_of(op.lhs, rw), known(op.rhs, rw)
    if scaled is None or found is None or _type(scaled.data).dtype != "int32" or _type(scaled.data).sizes != _type(op.result).sizes:
        return None
    factor, zero = known(scaled.input_scale, rw), known(scaled.input_zero_point, rw)
    if factor is None or factor.ndim > 1 or zero is None or zero.any():
        return None
    rank = _type(op.result).rank
    step = factor.astype(np.float64).reshape([-1 if i == scaled.axis % rank else 1 for i in range(rank)])
    wide = np.asarray(found, np.float64)
    with np.errstate(all="ignore"):
        steps = np.rint(wide / step)
        is_whole = np.abs(steps * step - wide) <= WHOLE * np.abs(wide)
    if not (np.isfinite(steps) & (np.abs(steps) < MOST_STEPS) & is_whole).all():
        return None
    # Without the leading dimensions of 1, which are those of the step.
    steps = steps.reshape(steps.shape[next((i for i, d in enumerate(steps.shape) if d != 1), steps.ndim) :])
    total = build("add", scaled.data, rw.mod.constant(steps.astype(np.int32)))
    return build("qnn.dequantize", total, scaled.input_scale, scaled.input_zero_point, **scaled.attrs())


@RULES.on(Quantize)
def requantise(op: Quantize, rw: Rewriter) -> Found:
    """quantize(f(dequantize(x))) -> an operator on the integers."""
    if op.rounding != "TONEVEN" or _type(op.data).dtype != "float32" or isinstance(op.data.owner, ir.Block) or op.out_dtype not in BYTES:
        return None
    last: Any = op.data.owner
    if isinstance(last, Dequantize) and _has_steps_of(last, op, rw):
        return last.data
    if not isinstance(last, Op) or isinstance(last, Constant):
        return None
    if isinstance(last, Pad):
        return _padded(last, op, rw)
    if isinstance(last, Concatenate):
        return _joined(last, op, rw)
    if last.relay_name in (*FUNCTIONS, "nn.softmax", "nn.leaky_relu", "nn.avg_pool2d"):
        return _function(last, op)
    limits = {"nn.relu": (0.0, None)}.get(last.relay_name, (last.a_min, last.a_max) if last.relay_name == "clip" else None)
    if limits is not None and not (rw.used_once(op.data) and _is_one(op.output_scale, op.output_zero_point)):
        return None
    found = _of_sums(op.data if limits is None else last.data, op, rw)
    return found if found is None or limits is None else _limited(found, limits, op, rw)


def _of_sums(value: ir.Value, op: Quantize, rw: Rewriter) -> ir.Value | None:
    """What quantises a value, which is dequantised or the sum of two that are, by a constant scale."""
    scale = known(op.output_scale, rw)
    if scale is None or not (scale > 0).all():
        return None
    ways = {"rounding": "TONEVEN", "compute_dtype": "float32", "out_dtype": op.out_dtype}
    target = op.output_scale, op.output_zero_point
    one = _sum_of(value, rw)
    if one is not None and _has_steps_of(one, op, rw):
        return one.data
    if one is not None and (_is_one(*target) or one.axis == op.axis):
        return build("qnn.requantize", one.data, one.input_scale, one.input_zero_point, *target, axis=one.axis, **ways)
    both = value.owner
    if isinstance(both, SHUFFLES) and rw.used_once(value) and _is_one(*target):
        moved, *rest = both.operation.operands
        found, last = _of_sums(moved, op, rw), moved.owner
        if found is None and isinstance(last, Op) and last.relay_name == "add" and _sum_of(last.lhs, rw) is not None:
            found = build("qnn.quantize", moved, *target, rounding=op.rounding, out_dtype=op.out_dtype)  # with a bias of no whole steps
        return None if found is None else build(both.relay_name, found, *rest, **both.attrs())
    if not isinstance(both, Op) or both.relay_name != "add" or not rw.used_once(value) or not _is_one(*target):
        return None
    a, b = map(_dequantised, both.operation.operands)
    if a is None or b is None or not all(is_constant(v.input_scale) and _type(v.data).sizes == _type(value).sizes for v in (a, b)):
        return None
    sides = a.input_scale, a.input_zero_point, b.input_scale, b.input_zero_point
    return build("qnn.add", a.data, b.data, *sides, *target, lhs_axis=a.axis, rhs_axis=b.axis, **ways)


def _limited(value: ir.Value, limits: tuple[float | None, float | None], op: Quantize, rw: Rewriter) -> ir.Value | None:
    """Integers limited as the real numbers are: rounding keeps the order, so that the limits are the rounded ones."""
    byte = np.iinfo(op.out_dtype)
    low, high = (end if v is None else _steps(v, op, rw) for v, end in zip(limits, (byte.min, byte.max), strict=True))
    if low is None or high is None:
        return None
    return value if (low, high) == (byte.min, byte.max) else build("clip", value, a_min=float(low), a_max=float(high))


def _steps(value: float, op: Quantize, rw: Rewriter) -> int | None:
    """The integer that a number is quantised to by one scale; None where the scale or the zero point is not known."""
    scale, zero = known(op.output_scale, rw), known(op.output_zero_point, rw)
    if scale is None or zero is None:
        return None
    byte = np.iinfo(op.out_dtype)
    return int(np.clip(np.rint(np.float32(value) / scale.astype(np.float32).item()) + zero.item(), byte.min, byte.max))


def _function(last: Op, op: Quantize) -> ir.Value | None:
    """A function of one dequantised tensor on its integers."""
    source = _dequantised(last.operation.operands[0])
    if source is None or _type(source.data).dtype != op.out_dtype or not _is_one(source.input_scale, source.input_zero_point):
        return None
    if not _is_one(op.output_scale, op.output_zero_point):
        return None
    operands = source.data, source.input_scale, source.input_zero_point, op.output_scale, op.output_zero_point
    name, ways = last.relay_name.removeprefix("nn."), {} if isinstance(last, AvgPool) else {"rounding": op.rounding}
    return build(f"qnn.{name}", *operands, **ways, **last.attrs())


# ---- movement -------------------------------------------------------------------------------------------------------------------------


@RULES.where(lambda operator: operator.is_view or issubclass(operator, (MaxPool, Concatenate, StridedSlice, Transpose, ImageOp)))
def move(op: Op, rw: Rewriter) -> Found:
    """move(dequantize(x)) -> dequantize(move(x)) of bytes, so that readers of the elements find the integers. Sums of 32 bits are viewed
    only, where nothing else reads them."""
    values, rest = list(op.operation.operands), []
    if not isinstance(op, Concatenate):
        values, rest = values[:1], values[1:]
    sources = [found for found in map(_dequantised, values) if found is not None]
    if len(sources) < len(values) or len(op.operation.results) != 1:
        return None
    if isinstance(op, ImageOp) and not isinstance(op, MaxPool) and not _takes_the_nearest(op):
        return None
    first, *others = sources
    scale = known(first.input_scale, rw) if isinstance(op, MaxPool) else None
    if scale is not None and not (scale > 0).all():
        return None  # the largest number would be that of the least integer
    if isinstance(op, MaxPool) and not _has_elements(op):
        return None  # the maximum of an empty window is -inf, which no byte stands for
    is_shared = op.is_view and not rw.used_once(values[0])
    if is_shared and not any(isinstance(user, (*PRODUCTS, BatchMatmul, Quantize)) for user in rw.users(op.result)):
        return None  # a view of floats that are computed anyway costs nothing
    is_viewed_sum = op.is_view and not is_shared and _type(first.data).dtype == "int32"
    if not (is_viewed_sum or is_bytes(first.data)) or not all(_is_alike(first, other, rw) for other in others):
        return None
    numbers, axis = [first.input_scale, first.input_zero_point], -1
    if _is_one(*numbers):
        numbers = [reshape_to(v, ()) for v in numbers]
    elif isinstance(op, Transpose) and all(_type(v).rank <= 1 for v in numbers):
        rank = _type(op.result).rank
        axis = permutation(op.axes, rank).index(first.axis % rank)
    else:
        return None
    moved = build(op.relay_name, *[source.data for source in sources], *rest, **op.attrs())
    return build("qnn.dequantize", moved, *numbers, **{**first.attrs(), "axis": axis})


def _has_elements(op: MaxPool) -> bool:
    """Whether each window has an element. A window may lie in the padding; a dilated window may reach over a short axis."""
    g = op.geometry()
    sizes = g.layout.logical(_type(op.data).shape)

    def has(axis: str, count: int, dilation: int, pads: tuple[int, int]) -> bool:
        span, size = extent(count, dilation), sizes[axis]
        if dilation == 1 and sum(pads) < span:
            return True  # as a window fits, there is an element beside the padding
        return max(pads) < span and size is not None and proves(lambda: size >= dilation)

    return all(map(has, g.spatial, g.pool_size, g.dilation, g.pads))


def _is_alike(a: Dequantize, b: Dequantize, rw: Rewriter) -> bool:
    """Whether equal integers of two dequantisations stand for equal values, as is known."""
    same = _are_equal((a.input_scale, a.input_zero_point), (b.input_scale, b.input_zero_point), rw)
    return same and _type(a.data).dtype == _type(b.data).dtype


def _takes_the_nearest(op: Op) -> bool:
    """Whether an operator resizes images by the nearest element, and puts nothing around them."""
    attrs = op.attrs()
    is_inside = attrs.get("coordinate_transformation_mode") != "tf_crop_and_resize" and not attrs.get("out_dtype")
    return attrs.get("method") == "nearest_neighbor" and is_inside


@RULES.on("nn_relu")
def relu(op: Op, rw: Rewriter) -> Found:
    """relu(dequantize(x)) -> dequantize(x, at least the zero point)."""
    source = _of_bytes(op.data)
    if source is None or all(isinstance(user, Quantize) for user in rw.users(op.result)):
        return None  # a quantisation limits its integers itself
    scale, zero, byte = known(source.input_scale, rw), known(source.input_zero_point, rw), np.iinfo(_type(source.data).dtype)
    if scale is None or zero is None or not (scale > 0).all() or zero.item() > byte.max:
        return None
    if zero.item() <= byte.min:
        return op.data
    limited = build("clip", source.data, a_min=float(zero.item()), a_max=float(byte.max))
    return build("qnn.dequantize", limited, source.input_scale, source.input_zero_point, **source.attrs())


def _padded(last: Pad, op: Quantize, rw: Rewriter) -> ir.Value | None:
    """quantize(pad(dequantize(x))) as pad(x) with one scale and zero point."""
    source, value = _dequantised(last.data), rw.scalar(last.pad_value)
    if source is None or value is None or not _is_one(op.output_scale, op.output_zero_point) or not _has_steps_of(source, op, rw):
        return None
    steps = _steps(value, op, rw)
    if steps is None:
        return None
    return build("nn.pad", source.data, rw.mod.constant(np.array(steps, op.out_dtype)), **last.attrs())


def _joined(last: Concatenate, op: Quantize, rw: Rewriter) -> ir.Value | None:
    """Dequantised tensors of other scales than the result's, one after the other: each is brought to its scale."""
    sources = [source for source in map(_dequantised, last.data) if source is not None and is_bytes(source.data)]
    numbers = [(source.input_scale, source.input_zero_point) for source in sources]
    if len(sources) < len(last.data) or not all(_is_one(*pair) for pair in (*numbers, (op.output_scale, op.output_zero_point))):
        return None
    target, ways = (op.output_scale, op.output_zero_point), {"rounding": op.rounding, "compute_dtype": "float32", "out_dtype": op.out_dtype}
    parts = [
        source.data if _has_steps_of(source, op, rw) else build("qnn.requantize", source.data, *pair, *target, **ways)
        for source, pair in zip(sources, numbers, strict=True)
    ]
    return build("concatenate", *parts, axis=last.axis)


fake_quantization_to_integer = RULES.as_pass(
    2, "Operators on dequantised tensors become operators on integers, with the scales behind them."
)
