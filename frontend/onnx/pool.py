"""Poolings: MaxPool, AveragePool, LpPool and their global forms."""

from collections.abc import Sequence
from math import prod
from typing import Any

from typing_extensions import Required, TypedDict, Unpack

from relayc.dialects.relay.window import windows
from relayc.frontend.common.reductions import lowest
from relayc.frontend.common.windows import SPATIAL_LAYOUTS, padded, per_axis, spatial_rank, window_padding
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import binary, filled, in_float32, multiply
from relayc.symbolic import maximum


class PoolAttributes(TypedDict, total=False):
    """The attributes of a pooling's window."""

    auto_pad: str
    ceil_mode: bool
    kernel_shape: Required[Sequence[int]]
    pads: Sequence[int]
    strides: Sequence[int]


class DilatedPoolAttributes(PoolAttributes, total=False):
    """The attributes of a pooling's window whose elements may be apart."""

    dilations: Sequence[int]


def _window(
    x: Tensor,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: bool = False,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The attributes of a Relay pooling, by those of an ONNX one."""
    n = spatial_rank(x)
    kernel, stride = per_axis(kernel_shape, n, "kernel_shape"), per_axis(strides, n, "strides")
    dilation = per_axis(dilations, n, "dilations")
    return {
        "pool_size": kernel,
        "strides": stride,
        "dilation": dilation,
        "padding": window_padding(auto_pad, pads, x.shape[2:], kernel, stride, dilation),
        "layout": SPATIAL_LAYOUTS[n],
        # With auto_pad the padding says the output's size (rounded up for SAME, down for VALID), and there is nothing left to round.
        "ceil_mode": ceil_mode and auto_pad == "NOTSET",
    }


@converter(foldable=False)  # the reference implementation takes NaN for padding
def MaxPool(x: Tensor, *, storage_order: int = 0, **attributes: Unpack[DilatedPoolAttributes]) -> Tensor | tuple[Tensor, ...]:
    window = _window(x, **attributes)
    data, window["padding"] = padded(x, window["padding"], lowest(x.dtype))
    found = emit(f"nn.max_pool{spatial_rank(x)}d", data, **window)
    if not current().wants(1):
        return found
    if data is not x:
        raise OnnxError(
            f"attribute auto_pad: expected padding of known size beside the output Indices, found {attributes['auto_pad']} of {x.type}"
        )
    return found, emit("nn.max_pool_indices", x, found, **window, column_major=storage_order == 1)


def _average(x: Tensor, window: dict[str, object], count_include_pad: bool) -> Tensor:
    return emit(f"nn.avg_pool{spatial_rank(x)}d", x, **window, count_include_pad=count_include_pad)


@converter(foldable=False)  # the reference implementation takes NaN for padding
def AveragePool(x: Tensor, *, count_include_pad: bool = False, **attributes: Unpack[DilatedPoolAttributes]) -> Tensor:
    window = _window(x, **attributes)
    padding = window["padding"]
    data, window["padding"] = padded(x, padding)
    if data is x or count_include_pad:
        return _average(data, window, count_include_pad)
    # x is padded to full windows; the remaining factor is the fraction of each window that is not padding.
    ones, _ = padded(filled((1, 1, *x.shape[2:]), 1, x.dtype), padding)
    return emit("divide", _average(data, window, True), _average(ones, window, True))


@converter("LpPool")
def LpPool_1(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    kernel_shape: Sequence[int] | None = None,
    p: float = 2.0,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """p may be a fraction; without a kernel the window is the whole image."""
    if kernel_shape is None:
        return GlobalLpPool_1(x, p=p)
    return _lp_pool(x, _window(x, auto_pad=auto_pad, kernel_shape=kernel_shape, pads=pads, strides=strides), p)


@converter(since=2, foldable=False)  # the reference implementation takes NaN for padding
def LpPool(x: Tensor, *, p: int = 2, **attributes: Unpack[DilatedPoolAttributes]) -> Tensor:
    return _lp_pool(x, _window(x, **attributes), p)


def _lp_pool(x: Tensor, window: dict[str, Any], p: float) -> Tensor:
    """The p-norm of each window: a mean over whole windows is their sum up to a factor."""
    if window["ceil_mode"]:
        window = _padded_to_whole_windows(x, window)
    x, window["padding"] = padded(x, window["padding"])
    return _root(multiply(_average(_power(x, p), window, True), float(prod(window["pool_size"]))), p)


def _padded_to_whole_windows(x: Tensor, window: dict[str, Any]) -> dict[str, Any]:
    """The padding with which every window that ceil_mode starts is whole, so that a mean has the same divisor everywhere."""
    kernel, stride, dilation, pads = (tuple(window[k]) for k in ("pool_size", "strides", "dilation", "padding"))
    n = len(kernel)
    ends = list(pads)
    for i, (size, k, s, r) in enumerate(zip(x.shape[2:], kernel, stride, dilation, strict=True)):
        count = windows(size, k, s, r, (pads[i], pads[n + i]), True, f"{i}")
        assert count is not None  # of a known size
        ends[n + i] += maximum((count - 1) * s + (k - 1) * r + 1 - size - pads[i] - pads[n + i], 0)
    return {**window, "padding": tuple(ends), "ceil_mode": False}


def _power(x: Tensor, p: float) -> Tensor:
    magnitude = emit("abs", x)
    return magnitude if p == 1 else multiply(x, x) if p == 2 else binary("power", magnitude, float(p))


def _root(x: Tensor, p: float) -> Tensor:
    return x if p == 1 else emit("sqrt", x) if p == 2 else binary("power", x, 1.0 / p)


def _spatial_axes(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.rank))


@converter()
def GlobalAveragePool(x: Tensor) -> Tensor:
    return emit("nn.global_avg_pool2d", x) if x.rank == 4 else emit("mean", x, axis=_spatial_axes(x), keepdims=True)


@converter()
def GlobalMaxPool(x: Tensor) -> Tensor:
    return emit("nn.global_max_pool2d", x) if x.rank == 4 else emit("max", x, axis=_spatial_axes(x), keepdims=True)


@converter("GlobalLpPool")
def GlobalLpPool_1(x: Tensor, *, p: float = 2.0) -> Tensor:
    return in_float32(x, lambda y: _root(emit("sum", _power(y, p), axis=_spatial_axes(y), keepdims=True), p))


@converter(since=2)
def GlobalLpPool(x: Tensor, *, p: int = 2) -> Tensor:
    return GlobalLpPool_1(x, p=p)
