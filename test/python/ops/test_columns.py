"""Numerics of blocks of images: nn.col2im against its definition, nn.max_pool_indices against ONNX Runtime."""

import numpy as np
import pytest
from oracle import onnx_run, values
from support import run, run_each

IMAGES = {
    "line": ((11,), (3,), {"strides": (2,), "padding": (1, 1)}),
    "image": ((7, 6), (3, 2), {}),
    "strides and dilation": ((9, 8), (2, 3), {"strides": (2, 1), "dilation": (3, 2)}),
    "padding": ((5, 7), (3, 3), {"strides": (3, 2), "padding": (1, 2, 0, 1)}),
    "volume": ((4, 5, 3), (2, 2, 2), {"strides": (1, 2, 1), "padding": (0, 1, 0, 0, 0, 1)}),
}


def blocks_of(image, block, strides, dilation, padding):
    n = len(image)
    spans = [(k - 1) * r + 1 for k, r in zip(block, dilation, strict=True)]
    return [(image[i] + padding[i] + padding[n + i] - spans[i]) // strides[i] + 1 for i in range(n)]


def put_together(data, image, block, strides, dilation, padding):
    n = len(image)
    found = np.zeros((*data.shape[:2], *image), data.dtype)
    for place in np.ndindex(*block):
        for which in np.ndindex(*data.shape[2 + n :]):
            at = [b * s + p * r - padding[i] for i, (b, s, p, r) in enumerate(zip(which, strides, place, dilation, strict=True))]
            if all(0 <= a < size for a, size in zip(at, image, strict=True)):
                found[(slice(None), slice(None), *at)] += data[(slice(None), slice(None), *place, *which)]
    return found


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_col2im(case, dtype):
    image, block, attrs = IMAGES[case]
    n = len(image)
    full = {"strides": (1,) * n, "dilation": (1,) * n, "padding": (0,) * (2 * n), **attrs}
    data = values((2, 3, *block, *blocks_of(image, block, **full)), dtype)
    expected = put_together(data, image, block, **full)
    np.testing.assert_allclose(run("nn.col2im", data, image_shape=image, **attrs), expected, rtol=1e-5, atol=1e-6)


WINDOWS = {
    "overlapping": ((2, 3, 9, 8), {"pool_size": (3, 3), "strides": (2, 1), "padding": (1, 1, 0, 1)}),
    "dilation": ((1, 2, 9, 10), {"pool_size": (2, 3), "dilation": (2, 3)}),
    "ceil_mode": ((1, 2, 7, 8), {"pool_size": (2, 3), "strides": (2, 2), "ceil_mode": True}),
    "line": ((2, 3, 11), {"pool_size": (4,), "strides": (3,), "padding": (1, 2)}),
    "volume": ((1, 2, 5, 4, 6), {"pool_size": (2, 2, 3), "strides": (2, 1, 2)}),
}
NAMES = {"pool_size": "kernel_shape", "dilation": "dilations", "padding": "pads"}


@pytest.mark.parametrize("case", WINDOWS)
def test_positions_of_maxima_agree_with_onnx_runtime(case):
    shape, attrs = WINDOWS[case]
    # Of few values, so that many are equal: the first one counts.
    x, layout = np.round(values(shape)), {3: "NCW", 4: "NCHW", 5: "NCDHW"}[len(shape)]
    options = {NAMES.get(k, k): int(v) if isinstance(v, bool) else v for k, v in attrs.items()}
    largest, rows = onnx_run("MaxPool", x, outputs=2, **options)
    calls = [("nn.max_pool_indices", {**attrs, "layout": layout, "column_major": m}) for m in (False, True)]
    found = run_each(calls, x, largest)
    np.testing.assert_array_equal(found[0], rows)
    np.testing.assert_array_equal(found[1], onnx_run("MaxPool", x, outputs=2, storage_order=1, **options)[1])


def test_a_window_of_the_lowest_values_has_a_position_in_data():
    x = np.full((1, 1, 3, 3), -np.inf, np.float32)
    found = run("nn.max_pool_indices", x, x[..., :2, :2], pool_size=(2, 2), padding=(1, 1, 0, 0), strides=(2, 2))
    np.testing.assert_array_equal(found, [[[[0, 1], [3, 4]]]])
