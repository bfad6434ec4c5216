"""Resampling with antialiasing: when an axis shrinks, the filter is stretched so that every element of the input counts.

An axis at a time, the result is a product with a matrix of weights that is known at import.
"""

from collections.abc import Callable
from math import prod

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.steps import add, binary, cast, divide, like, multiply, reshape, transpose


def _linear(distance: np.ndarray, _: float) -> np.ndarray:
    return np.clip(1 - distance, 0, 1)


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys' cubic convolution kernel with the coefficient `a`."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def _lanczos(distance: np.ndarray, _: float) -> np.ndarray:
    return np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0.0)


_FILTERS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {"linear": _linear, "cubic": _cubic, "lanczos": _lanczos}
HALF_WIDTHS = {"linear": 1, "cubic": 2, "lanczos": 3}
"""Half the width of a method's filter on the grid of the input."""


def positions(mode: str, size: int, out: int, scale: float) -> np.ndarray:
    """The position in an axis of `size` elements of each of `out` elements, by coordinate_transformation_mode."""
    x = np.arange(out, dtype=np.float64)
    exact = scale * size
    if mode == "align_corners":
        return x * (size - 1) / (exact - 1) if exact != 1 else x * 0
    if mode == "asymmetric":
        return x / scale
    if mode == "pytorch_half_pixel" and exact == 1:
        return x * 0 - 0.5
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (x + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - out / exact) + (x + 0.5) / scale - 0.5
    raise ModelError(f"attribute coordinate_transformation_mode: expected one that takes antialias, found {mode!r}")


def weights(method: str, mode: str, size: int, out: int, scale: float, cubic_alpha: float, exclude_outside: bool) -> np.ndarray:
    """Weights [out, size] of the elements of an axis for those of the resized one."""
    kernel, half = _FILTERS[method], HALF_WIDTHS[method]
    stretch = min(scale, 1.0)
    at = positions(mode, size, out, scale)[:, None]
    base = np.ceil(at) - 1  # the position left of `at`, also if `at` is a whole number
    start = int(np.floor(-half / stretch)) + 1
    taps = base + np.arange(start, 2 - start)
    found = kernel(np.abs(taps - at) * stretch, cubic_alpha)
    if exclude_outside:
        found = np.where((taps < 0) | (taps >= size), 0, found)
    found /= found.sum(axis=1, keepdims=True)
    matrix = np.zeros((out, size))
    rows = np.broadcast_to(np.arange(out)[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, size - 1).astype(np.int64)), found)
    return matrix


def product_along(x: Tensor, axis: int, shares: Tensor) -> Tensor:
    """x with `axis` multiplied by weights, floats [out, size]: integers rounded towards 0, but bytes to the nearest."""
    order = [i for i in range(x.rank) if i != axis] + [axis]
    last = transpose(x, order)
    rows = reshape(last, (prod(last.shape[:-1]), last.shape[-1]))
    if x.dtype == "uint8":
        product = _product_of_bytes(rows, shares)
    else:
        wide = rows if x.dtype == "float64" else cast(rows, "float32")
        product = cast(emit("nn.matmul", wide, cast(shares, wide.dtype), transpose_b=True), x.dtype)
    return transpose(reshape(product, (*last.shape[:-1], shares.shape[0])), [order.index(i) for i in range(x.rank)])


def _product_of_bytes(rows: Tensor, shares: Tensor) -> Tensor:
    """uint8[n, size] by weights, in integers as in torch: weights are rounded to multiples of the power of two with which they just fit
    into 16 bits."""
    largest = emit("max", shares, axis=(0, 1))
    bits = cast(binary("minimum", emit("floor", emit("log2", divide(like(2**15 - 0.5, largest), largest))), 22.0), "int32")
    one = emit("left_shift", constant(1, "int32"), bits)
    whole = cast(emit("floor", add(multiply(emit("abs", shares), cast(one, shares.dtype)), 0.5)), "int32")
    whole = emit("where", binary("less", shares, 0.0), emit("negative", whole), whole)
    product = emit("nn.matmul", cast(rows, "int32"), whole, transpose_b=True)
    half = emit("right_shift", one, constant(1, "int32"))
    return cast(emit("clip", emit("right_shift", emit("add", product, half), bits), a_min=0, a_max=255), "uint8")
