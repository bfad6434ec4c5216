"""Convolutions with an epilogue, and with channels last."""

from collections.abc import Sequence

from typing_extensions import Unpack

from relayc.frontend.converter import Tensor
from relayc.frontend.onnx import pool
from relayc.frontend.onnx.contrib.activation import activated
from relayc.frontend.onnx.contrib.domain import microsoft
from relayc.frontend.onnx.conv import ConvAttributes, convolution, with_bias
from relayc.frontend.steps import add, transpose


def channels_second(x: Tensor) -> Tensor:
    """x [N, ..., C] as [N, C, ...]."""
    return transpose(x, (0, x.rank - 1, *range(1, x.rank - 1)))


def channels_last(x: Tensor) -> Tensor:
    """x [N, C, ...] as [N, ..., C]."""
    return transpose(x, (0, *range(2, x.rank), 1))


@microsoft()
def FusedConv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    z: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **window: Unpack[ConvAttributes],
) -> Tensor:
    """Conv, then + z, then the activation."""
    found = with_bias(convolution(x, w, **window), b)
    return activated(found if z is None else add(found, z), activation, activation_params)


@microsoft()
def NhwcConv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    **window: Unpack[ConvAttributes],
) -> Tensor:
    """Conv of x [N, ..., C]; the weights are [O, ..., I] then."""
    found = convolution(channels_second(x), channels_second(w), **window)
    return channels_last(with_bias(found, b))


@microsoft()
def NhwcFusedConv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    z: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **window: Unpack[ConvAttributes],
) -> Tensor:
    """FusedConv of x [N, ..., C]; the weights are [O, I, ...]."""
    found = channels_last(with_bias(convolution(channels_second(x), w, **window), b))
    return activated(found if z is None else add(found, z), activation, activation_params)


@microsoft()
def NhwcMaxPool(x: Tensor, **window: Unpack[pool.DilatedPoolAttributes]) -> Tensor:
    return channels_last(pool.MaxPool(channels_second(x), **window))
