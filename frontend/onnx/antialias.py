"""Resize with antialiasing (operator set 18): when an axis shrinks, the filter is stretched so that every element of the input counts.

An axis at a time, the result is a product with a matrix of weights that is known at import.
"""

from collections.abc import Callable

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import cast, in_float32, transpose


def _linear(distance: np.ndarray, _: float) -> np.ndarray:
    return np.clip(1 - distance, 0, 1)


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys' cubic convolution kernel with the coefficient `a`."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


_FILTERS: dict[str, tuple[Callable[[np.ndarray, float], np.ndarray], int]] = {"linear": (_linear, 1), "cubic": (_cubic, 2)}
"""Filter by method, and half its width on the grid of the input."""


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
    raise OnnxError(f"attribute coordinate_transformation_mode: expected one that takes antialias, found {mode!r}")


def weights(method: str, mode: str, size: int, out: int, scale: float, cubic_alpha: float, exclude_outside: bool) -> np.ndarray:
    """Weights [out, size] of the elements of an axis for those of the resized one."""
    kernel, half = _FILTERS[method]
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


def resize_axis(x: Tensor, axis: int, matrix: np.ndarray) -> Tensor:
    """x with `axis` multiplied by weights [out, size]."""
    order = [i for i in range(x.rank) if i != axis] + [axis]
    last = transpose(x, order)
    product = in_float32(last, lambda y: emit("nn.matmul", y, constant(matrix.T, y.dtype)))
    return cast(transpose(product, [order.index(i) for i in range(x.rank)]), x.dtype)
