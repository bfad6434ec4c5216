"""Normalisations, which are kept whole."""

from math import prod
from typing import Any

import numpy as np

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.common.reductions import mean_and_variance
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import add, cast, filled, multiply, reshape, subtract
from relayc.symbolic import Size


def _vector(x: Tensor | None, shape: tuple[Size, ...], value: float, dtype: str) -> Tensor:
    """A scale or bias as a vector: of one value where there is none."""
    return filled((prod(shape),), value, dtype) if x is None else cast(reshape(x, (prod(shape),)), dtype)


@aten("layer_norm")
def layer_norm(input: Tensor, normalized_shape: tuple[Size, ...], weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    rows = reshape(input, (*input.shape[: input.rank - len(normalized_shape)], prod(normalized_shape)))
    gamma, beta = _vector(weight, normalized_shape, 1, input.dtype), _vector(bias, normalized_shape, 0, input.dtype)
    return reshape(emit("nn.layer_norm", rows, gamma, beta, axis=-1, epsilon=eps), input.shape)


@aten("native_layer_norm")
def native_layer_norm(
    input: Tensor, normalized_shape: tuple[Size, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Any, ...]:
    found = layer_norm(input, normalized_shape, weight, bias, eps)
    if not (node().used(1) or node().used(2)):
        return found, None, None
    axes = tuple(range(input.rank - len(normalized_shape), input.rank))
    mean, variance = mean_and_variance(cast(input, node().dtype[1]), axes)
    return found, mean, emit("rsqrt", add(variance, eps))


@aten("rms_norm", "_fused_rms_norm")
def rms_norm(input: Tensor, normalized_shape: tuple[Size, ...], weight: Tensor | None, eps: float | None) -> Any:
    rows = reshape(input, (*input.shape[: input.rank - len(normalized_shape)], prod(normalized_shape)))
    epsilon = float(np.finfo(DTYPES[input.dtype]).eps) if eps is None and input.dtype != "bfloat16" else 2**-7 if eps is None else eps
    gamma = _vector(weight, normalized_shape, 1, input.dtype)
    found = reshape(emit("nn.rms_norm", rows, gamma, axis=-1, epsilon=epsilon), input.shape)
    if not isinstance(node().dtype, tuple):
        return found
    if not node().used(1):
        return found, None
    wide = cast(rows, node().dtype[1])
    square = emit("mean", emit("multiply", wide, wide), axis=(-1,))
    return found, reshape(emit("rsqrt", add(square, epsilon)), node().shape[1])


@aten("group_norm", "native_group_norm", group="num_groups")
def group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, num_groups: int) -> Any:
    many = isinstance(node().dtype, tuple)
    channels = (input.shape[1],)
    gamma, beta = _vector(weight, channels, 1, input.dtype), _vector(bias, channels, 0, input.dtype)
    found = emit("nn.group_norm", input, gamma, beta, num_groups=num_groups, axis=1, epsilon=eps)
    if not many or not (node().used(1) or node().used(2)):
        return (found, None, None) if many else found
    shape = (input.shape[0], num_groups)
    rows = reshape(cast(input, node().dtype[1]), (*shape, prod(input.shape[1:]) // num_groups))
    mean, variance = (reshape(t, shape) for t in mean_and_variance(rows, (2,)))
    return found, mean, emit("rsqrt", add(variance, eps))


@aten("instance_norm")
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    eps: float,
) -> Tensor:
    if not use_input_stats:
        return _by_channel(input, weight, bias, running_mean, running_var, eps)
    channels = (input.shape[1],)
    gamma, beta = _vector(weight, channels, 1, input.dtype), _vector(bias, channels, 0, input.dtype)
    return emit("nn.instance_norm", input, gamma, beta, axis=1, epsilon=eps)


def _by_channel(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Any, variance: Any, eps: float) -> Tensor:
    """Torch refuses to export inference without statistics."""
    channels, wide = (input.shape[1],), mean.dtype
    gamma, beta = _vector(weight, channels, 1, wide), _vector(bias, channels, 0, wide)
    found = emit("nn.batch_norm", cast(input, wide), gamma, beta, mean, variance, axis=1, epsilon=eps)[0]
    return cast(found, input.dtype)


@aten("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def batch_norm_in_inference(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, eps: float
) -> tuple[Any, ...]:
    found = _by_channel(input, weight, bias, running_mean, running_var, eps)
    return (found, *(filled((0,), 0, dtype) for dtype in node().dtype[1:]))


@aten("_native_batch_norm_legit", "_native_batch_norm_legit_functional", "native_batch_norm", "_batch_norm_with_update_functional")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    momentum: float,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    training: bool = True,
) -> tuple[Any, ...]:
    """In training by the statistics of the batch: result, mean, 1 / deviation, and the new running statistics where torch wants them."""
    # What cuDNN reserves for the derivative is empty.
    reserved = [filled((0,), 0, "uint8")] if "with_update" in node().operator else []
    if not training:
        found = _by_channel(input, weight, bias, running_mean, running_var, eps)
        kept = [filled((0,), 0, dtype) for dtype in node().dtype[1:3]]
        return (found, *kept, *reserved, running_mean, running_var)[: len(node().dtype)]
    axes = tuple(a for a in range(input.rank) if a != 1)
    channels = (input.shape[1],)
    mean, variance = (reshape(t, channels) for t in mean_and_variance(input, axes))
    found = _by_channel(input, weight, bias, mean, variance, eps)
    results = [found, mean, emit("rsqrt", add(variance, eps)), *reserved]
    count: Size = prod(input.shape[a] for a in axes)
    if running_mean is not None and running_var is not None:
        number = cast(size_tensor(count), variance.dtype)
        unbiased = emit("multiply", variance, emit("divide", number, subtract(number, 1.0)))
        results += [
            add(multiply(old, 1 - momentum), multiply(new, momentum)) for old, new in ((running_mean, mean), (running_var, unbiased))
        ]
    return tuple(results[: len(node().dtype)])
