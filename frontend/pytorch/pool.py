"""Poolings."""

from math import prod
from typing import Any

import numpy as np

from relayc.frontend.common.padding import pad
from relayc.frontend.common.windows import SPATIAL_LAYOUTS
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.pytorch.convolution import each
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import add, broadcast_to, cast, divide, multiply, reshape, strided_slice, subtract, transpose
from relayc.symbolic import Size, ceil_div


def _batched(x: Tensor, n: int) -> Tensor:
    """x with a batch, which torch allows to leave out."""
    return reshape(x, (1, *x.shape)) if x.rank == n + 1 else x


def spatial_axes() -> int:
    """The number of spatial axes that the operator's name says."""
    digits = [c for c in node().operator if c.isdigit()]
    return int(digits[0])


def _window(n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> dict[str, Any]:
    kernel = each(kernel_size, n)
    return {
        "pool_size": kernel,
        "strides": each(stride, n) if stride not in ((), None) else kernel,
        "padding": each(padding, n) * 2,
        "dilation": each(dilation, n),
        "ceil_mode": ceil_mode,
        "layout": SPATIAL_LAYOUTS[n],
    }


@aten(*(f"max_pool{n}d{form}" for n in (1, 2, 3) for form in ("", "_with_indices")))
def max_pool(self: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    n = spatial_axes()
    x, window = _batched(self, n), _window(n, kernel_size, stride, padding, dilation, ceil_mode)
    found = emit(f"nn.max_pool{n}d", x, **window)
    if not isinstance(node().dtype, tuple):
        return reshape(found, node().sizes)
    indices = None
    if node().used(1):
        # They count in the whole tensor; torch's count in a channel.
        places = emit("nn.max_pool_indices", x, found, **window)
        indices = reshape(emit("floor_mod", places, cast(size_tensor(prod(x.shape[2:])), places.dtype)), node().shape[1])
    return reshape(found, node().shape[0]), indices


@aten("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any = None,
    sizes: tuple[Size, ...] | None = None,
) -> Tensor:
    """`sizes`: of the result, by default the node's."""
    sizes = sizes or node().sizes
    n = spatial_axes()
    x, window = _batched(self, n), _window(n, kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override is not None:
        # The padding of whole windows, so that a mean is their sum up to a factor.
        x, window["padding"] = pad(x, _whole_windows(x, window, sizes[-n:]), None, "constant", range(2, n + 2)), (0,) * (2 * n)
        found = emit(f"nn.avg_pool{n}d", x, **window)
        found = multiply(found, prod(window["pool_size"]) / divisor_override)
    else:
        found = emit(f"nn.avg_pool{n}d", x, **window, count_include_pad=count_include_pad)
    return reshape(found, sizes)


def _whole_windows(x: Tensor, window: dict[str, Any], counts: tuple[Size, ...]) -> list[Size]:
    """The padding, all begins then all ends, with which every window of a result of these sizes is whole."""
    begins, ends = window["padding"][: len(counts)], []
    for size, count, k, s, p in zip(x.shape[2:], counts, window["pool_size"], window["strides"], begins, strict=True):
        ends.append((count - 1) * s + k - size - p)
    return [*begins, *ends]


# ---- adaptive poolings ------------------------------------------------------------------------------------------------------------------

_NAMES = [f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)]


@aten(*_NAMES, "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_pool(self: Tensor, output_size: Any) -> Any:
    n, is_max = spatial_axes(), "max" in node().operator
    x = _batched(self, n)
    wanted = node().shape[0] if is_max else node().sizes
    size = each(output_size, n)
    if all(o == 1 for o in size) and not is_max:
        return reshape(emit("mean", x, axis=tuple(range(2, x.rank))), wanted)
    found = emit(f"nn.adaptive_{'max' if is_max else 'avg'}_pool{n}d", x, output_size=wanted[-n:], layout=SPATIAL_LAYOUTS[n])
    if not is_max:
        return reshape(found, wanted)
    indices = _adaptive_indices(x, wanted[-n:], node().shape[1]) if node().used(1) else None
    return reshape(found, wanted), indices


def adaptive_windows(size: Size, parts: Size) -> tuple[Tensor, Tensor]:
    """int64[parts] each: where the windows of an adaptive pooling begin, and end, along an axis of `size` elements."""
    whole, count, i = size_tensor(size), size_tensor(parts), positions(parts)
    ends = emit("floor_divide", add(multiply(add(i, 1), whole), subtract(count, 1)), count)
    return emit("floor_divide", multiply(i, whole), count), ends


def _adaptive_indices(x: Tensor, size: tuple[Size, ...], shape: tuple[Size, ...]) -> Tensor:
    """Where in a channel the largest element of each window is: of each place a window of the widest extent, which ends at the own one."""
    n, places = len(size), constant(np.zeros([1] * (2 * len(size))), "int64")
    for i, (d, o) in enumerate(zip(x.shape[2:], size, strict=True)):
        begins, ends = adaptive_windows(d, o)
        widest = ceil_div(d, o) + 1
        # The last place again, where a window is not as wide: it is no larger than itself.
        at = emit("minimum", add(reshape(begins, (o, 1)), reshape(positions(widest), (1, widest))), reshape(subtract(ends, 1), (o, 1)))
        x = emit("take", x, at, axis=2 + 2 * i, mode="clip")
        along = reshape(at, [o if j == i else widest if j == n + i else 1 for j in range(2 * n)])
        places = add(multiply(places, size_tensor(d)), along)
    # [batch, channels, o1, k1, o2, k2, ...] to [batch, channels, o1, o2, ..., all places of a window]
    x = transpose(x, [0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2)])
    rows = reshape(x, (*x.shape[: 2 + n], prod(x.shape[2 + n :])))
    first = emit("argmax", rows, axis=(rows.rank - 1,), keepdims=True)
    table = broadcast_to(reshape(places, (1, 1, *places.shape[:n], rows.shape[-1])), rows.shape)
    return reshape(emit("gather", table, cast(first, "int64"), axis=rows.rank - 1, in_bounds=True), shape)


@aten("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(self: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor) -> tuple[Tensor, Tensor]:
    """Windows of one size whose begins a random number of each axis decides, for each channel."""
    n, x = spatial_axes(), _batched(self, spatial_axes())
    rows, extents, out, kernel = prod(x.shape[:2]), x.shape[2:], each(output_size, n), each(kernel_size, n)
    samples = reshape(random_samples, (rows, n))
    places = constant(0, "int64")
    for i in range(n):
        # In two dimensions the first number is of the last axis, in three of the first.
        number = n - 1 - i if n == 2 else i
        sample = strided_slice(samples, (number,), (number + 1,), (1,), (1,))
        step = divide(cast(size_tensor(extents[i] - kernel[i]), x.dtype), float(max(out[i] - 1, 1)))
        offset = emit("trunc", multiply(sample, step))
        begins = subtract(emit("trunc", multiply(add(sample, constant(np.arange(out[i] - 1)[None], x.dtype)), step)), offset)
        last = broadcast_to(reshape(size_tensor(extents[i] - kernel[i]), (1, 1)), (rows, 1))
        begins = emit("concatenate", cast(begins, "int64"), last, axis=1)
        along = reshape(begins, [rows, *(out[i] if j == i else 1 for j in range(2 * n))])
        taps = constant(np.arange(kernel[i]).reshape([1, *(kernel[i] if j == n + i else 1 for j in range(2 * n))]), "int64")
        places = add(multiply(places, size_tensor(extents[i])), add(along, taps))
    windows = (rows, prod(out), prod(kernel))
    flat = reshape(
        emit("gather", reshape(x, (rows, prod(extents))), reshape(places, (rows, windows[1] * windows[2])), axis=1, in_bounds=True), windows
    )
    first = cast(emit("argmax", flat, axis=(2,), keepdims=True), "int64")
    values, indices = (emit("gather", t, first, axis=2, in_bounds=True) for t in (flat, reshape(places, windows)))
    return reshape(values, node().shape[0]), reshape(indices, node().shape[1])
