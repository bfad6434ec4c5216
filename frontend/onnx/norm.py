"""Normalisations."""

from collections.abc import Sequence
from math import prod
from typing import Literal

from relayc.frontend.common.reductions import mean_and_variance
from relayc.frontend.converter import Tensor, assume, axis_of, emit
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import add, binary, broadcast_to, cast, divide, filled, in_float32, in_parts, multiply, reshape, subtract
from relayc.symbolic import Size


@converter(since=7)
def BatchNormalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: bool = True,
    training_mode: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """From operator set 7 to 13 it is training where more than one output is wanted."""
    training = training_mode or (7 <= current().opset < 14 and any(current().wants(i) for i in range(1, 5)))
    if not training and any(current().wants(i) for i in range(1, 5)):
        raise OnnxError("attribute training_mode: expected 1 beside more than one output, found 0")
    if x.rank == 0:
        raise OnnxError("input X: expected a batch, found a scalar")
    by_element = not spatial and x.rank > 2 and scale.rank > 1
    if by_element and training:
        raise OnnxError("attribute spatial: expected statistics for each channel (1) in training, found 0")
    # From operator set 15 on the parameters may have a wider type than the data.
    wide = mean.dtype
    data, parameters = cast(x, wide), [cast(t, wide) for t in (scale, bias, mean, var)]
    if by_element:
        return cast(_by_element(data, parameters, epsilon), x.dtype)
    if x.rank == 1:
        data = reshape(data, (x.shape[0], 1))
    kept: list[Tensor] = []
    if training:
        gamma, beta, *before = parameters
        axes = tuple(a for a in range(data.rank) if a != 1)
        of_batch = [reshape(t, (data.shape[1],)) for t in mean_and_variance(data, axes)]
        running = [add(multiply(old, momentum), multiply(new, 1 - momentum)) for old, new in zip(before, of_batch, strict=True)]
        kept = [cast(t, mean.dtype) for t in (*running, *of_batch)]  # before operator set 14 those of the batch too
        parameters = [gamma, beta, *of_batch]
    found = emit("nn.batch_norm", data, *parameters, axis=1, epsilon=epsilon)[0]
    result = cast(reshape(found, x.shape), x.dtype)
    return (result, *kept) if kept else result


@converter("BatchNormalization")
def BatchNormalization_1(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    is_test: bool = False,
    momentum: float = 0.9,
    spatial: bool = True,
) -> Tensor | tuple[Tensor, ...]:
    """Trains unless `is_test` is set."""
    found: Tensor | tuple[Tensor, ...] = BatchNormalization(
        x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum, spatial=spatial, training_mode=not is_test
    )
    return found


def _by_element(x: Tensor, parameters: Sequence[Tensor], epsilon: float) -> Tensor:
    """Batch normalisation with statistics for each element of an entry of the batch, not for each channel."""
    scale, bias, mean, var = (assume(t, x.shape[1:]) for t in parameters)
    deviation = emit("sqrt", add(var, epsilon))
    return add(multiply(divide(subtract(x, mean), deviation), scale), bias)


@converter()
def InstanceNormalization(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    return emit("nn.instance_norm", x, scale, bias, axis=1, epsilon=epsilon)


@converter(since=18)
def GroupNormalization(x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1) -> Tensor:
    """Operator set 18 has one scale and bias per group, 21 one per channel."""
    if x.rank < 2:
        raise OnnxError(f"input X: expected a batch and channels, found {list(x.shape)}")
    if current().opset < 21:
        x = in_parts(x, 1, num_groups)
        scale, bias = (_per_channel(assume(t, (num_groups,)), x.shape[1] // num_groups) for t in (scale, bias))
    return emit("nn.group_norm", x, scale, bias, num_groups=num_groups, axis=1, epsilon=epsilon)


def _per_channel(x: Tensor, channels: Size) -> Tensor:
    """A number for each group of so many channels as one for each channel."""
    (groups,) = x.shape
    return reshape(broadcast_to(reshape(x, (groups, 1)), (groups, channels)), (groups * channels,))


def _flat(x: Tensor, shape: tuple[Size, ...]) -> Tensor:
    """A scale or bias that broadcasts to `shape`, as one vector."""
    return reshape(broadcast_to(x, shape), (prod(shape),))


def _fitting(x: Tensor, *vectors: Tensor) -> Tensor:
    """x, with its last dimensions set to the dimensions of scale and bias where these are numbers other than 1: they broadcast to x."""
    shape = list(x.shape)
    for vector in vectors:
        for i in range(1, min(vector.rank, x.rank) + 1):
            if isinstance(vector.shape[-i], int) and vector.shape[-i] != 1 and not isinstance(shape[-i], int):
                shape[-i] = vector.shape[-i]
    return assume(x, shape)


@converter(since=17)
def LayerNormalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor | tuple[Tensor, ...]:
    axis = axis_of(axis, x.rank)
    x = _fitting(x, scale, *([bias] if bias else []))
    normalised = x.shape[axis:]
    rows = reshape(x, (*x.shape[:axis], prod(normalised)))
    bias = bias or filled(normalised, 0, x.dtype)
    found = emit("nn.layer_norm", rows, _flat(scale, normalised), _flat(bias, normalised), axis=-1, epsilon=epsilon)
    result = reshape(found, x.shape)
    if not (current().wants(1) or current().wants(2)):
        return result
    wide = cast(x, "float32") if stash_type == 1 else x
    mean, variance = mean_and_variance(wide, tuple(range(axis, x.rank)))
    return result, mean, emit("rsqrt", add(variance, epsilon))


@converter(since=23)
def RMSNormalization(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Tensor:
    axis = axis_of(axis, x.rank)
    x = _fitting(x, scale)
    normalised = x.shape[axis:]
    if scale.rank > len(normalised):
        raise OnnxError(f"input scale: expected a shape that broadcasts to {list(normalised)}, found {list(scale.shape)}")
    rows = reshape(x, (*x.shape[:axis], prod(normalised)))
    return reshape(emit("nn.rms_norm", rows, _flat(scale, normalised), axis=-1, epsilon=epsilon), x.shape)


@converter()
def LRN(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    return emit("nn.lrn", x, size=size, axis=1, alpha=alpha, beta=beta, bias=bias)


@converter(foldable=False)  # the reference implementation forgets that a norm is one of magnitudes
def LpNormalization(x: Tensor, *, axis: int = -1, p: Literal[1, 2] = 2) -> Tensor:
    axes = (axis_of(axis, x.rank),)

    def compute(y: Tensor) -> Tensor:
        squares = multiply(y, y) if p == 2 else emit("abs", y)
        total = emit("sum", squares, axis=axes, keepdims=True)
        norm = emit("sqrt", total) if p == 2 else total
        # A row of zeros stays one: 0 / 1.
        return emit("divide", y, emit("where", binary("equal", norm, 0.0), filled((), 1, y.dtype), norm))

    return in_float32(x, compute)


@converter(since=9)
def MeanVarianceNormalization(x: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    axes = tuple(axis_of(a, x.rank, "axes") for a in axes)

    def compute(y: Tensor) -> Tensor:
        mean, variance = mean_and_variance(y, axes)
        return emit("divide", subtract(y, mean), add(emit("sqrt", variance), 1e-9))

    return in_float32(x, compute)
