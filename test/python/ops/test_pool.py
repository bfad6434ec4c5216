"""Numerics of poolings, against ONNX Runtime and numpy."""

import numpy as np
import pytest
from accuracy import check_sums
from onnx import helper
from onnx_models import model_of
from oracle import onnx_run, values
from support import program, run, run_each

import relayc
from relayc.dialects.relay import build

WINDOWS = {
    "halving": ((1, 3, 8, 8), {"pool_size": (2, 2), "strides": (2, 2)}),
    "overlapping, padded": ((2, 5, 13, 11), {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1)}),
    "asymmetric padding": ((1, 3, 9, 10), {"pool_size": (3, 4), "strides": (1, 2), "padding": (0, 1, 2, 3)}),
    "ceil_mode": ((1, 3, 10, 13), {"pool_size": (3, 3), "strides": (2, 3), "ceil_mode": True}),
    "ceil_mode, padded": ((1, 3, 10, 13), {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1), "ceil_mode": True}),
    "ceil_mode, window in the padding": (
        (1, 2, 4, 4),
        {"pool_size": (2, 2), "strides": (3, 3), "padding": (1, 1, 1, 1), "ceil_mode": True},
    ),
    "dilation": ((1, 3, 12, 13), {"pool_size": (3, 2), "dilation": (2, 3), "padding": (1, 1, 2, 1)}),
    "dilation, ceil_mode": ((1, 2, 11, 9), {"pool_size": (2, 3), "strides": (2, 3), "dilation": (3, 2), "ceil_mode": True}),
    "large window": ((1, 2, 14, 14), {"pool_size": (14, 14)}),
    "taps that only see padding": ((1, 2, 3, 4), {"pool_size": (9, 11), "strides": (2, 3), "padding": (4, 5, 4, 5)}),
    "window far larger than the data, ceil_mode": ((1, 2, 3, 4), {"pool_size": (64, 80), "strides": (64, 80), "ceil_mode": True}),
    "line": ((2, 3, 17), {"pool_size": (4,), "strides": (3,), "padding": (1, 2), "ceil_mode": True}),
    "volume": ((1, 2, 7, 6, 5), {"pool_size": (2, 3, 2), "strides": (2, 2, 1), "padding": (1, 1, 0, 0, 1, 1)}),
}
NAMES = {"pool_size": "kernel_shape", "dilation": "dilations", "padding": "pads"}


def onnx_attrs(attrs: dict) -> dict:
    """The attributes of ONNX MaxPool and AveragePool that these of Relay stand for."""
    return {NAMES.get(k, k): int(v) if isinstance(v, bool) else v for k, v in attrs.items()}


@pytest.mark.parametrize("case", WINDOWS)
def test_poolings_agree_with_onnx_runtime(case):
    shape, attrs = WINDOWS[case]
    x, n = values(shape), len(shape) - 2
    calls = [
        (f"nn.max_pool{n}d", attrs),
        (f"nn.avg_pool{n}d", attrs),
        (f"nn.avg_pool{n}d", {**attrs, "count_include_pad": True}),
    ]
    largest, mean, mean_with_pad = run_each(calls, x)
    np.testing.assert_array_equal(largest, onnx_run("MaxPool", x, **onnx_attrs(attrs)))
    for i, found in enumerate((mean, mean_with_pad)):
        expected, magnitude = (onnx_run("AveragePool", v, count_include_pad=i, **onnx_attrs(attrs)) for v in (x, np.abs(x)))
        check_sums(found, expected, magnitude, min(int(np.prod(attrs["pool_size"])), x[0, 0].size))


def in_layout(x: np.ndarray, layout: str) -> np.ndarray:
    n, c, h, w = x.shape
    if layout == "NHWC":
        return np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    return np.ascontiguousarray(x.reshape(n, c // 4, 4, h, w).transpose(0, 1, 3, 4, 2))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW4c"])
def test_layouts_give_the_same_pooling(layout):
    x = values((1, 8, 9, 12))
    windowed = {"pool_size": (3, 2), "strides": (2, 2), "padding": (1, 0, 1, 1)}
    calls = [(f"nn.{kind}_pool2d", windowed) for kind in ("max", "avg")]
    calls += [(f"nn.global_{kind}_pool2d", {}) for kind in ("max", "avg")]
    calls += [(f"nn.adaptive_{kind}_pool2d", {"output_size": size}) for kind in ("max", "avg") for size in ((3, 4), (4, 5))]
    expected = run_each(calls, x)
    check_sums(expected[3], onnx_run("GlobalAveragePool", x), onnx_run("GlobalAveragePool", np.abs(x)), 108)
    found = run_each([(name, {**attrs, "layout": layout}) for name, attrs in calls], in_layout(x, layout))
    for (name, _), e, f in zip(calls, expected, found, strict=True):
        np.testing.assert_allclose(f, in_layout(e, layout), rtol=1e-5, atol=1e-6, err_msg=name)


def test_global_poolings_agree_with_onnx_runtime():
    x = values((2, 5, 7, 9))
    largest, mean = run_each([("nn.global_max_pool2d", {}), ("nn.global_avg_pool2d", {})], x)
    np.testing.assert_array_equal(largest, onnx_run("GlobalMaxPool", x))
    check_sums(mean, onnx_run("GlobalAveragePool", x), onnx_run("GlobalAveragePool", np.abs(x)), 63)


def adaptive(x: np.ndarray, sizes: tuple[int, ...], join) -> np.ndarray:
    """join over the windows floor(i * in / out) ... ceil((i + 1) * in / out), axis by axis from the last."""
    for axis in range(-len(sizes), 0):
        n, m = x.shape[axis], sizes[axis]
        pieces = [np.take(x, range(i * n // m, -(-(i + 1) * n // m)), axis) for i in range(m)]
        x = np.stack([join(p, axis) for p in pieces], axis)
    return x


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((1, 3, 10), (4,)),
        ((1, 3, 9, 12), (3, 4)),
        ((2, 3, 7, 10), (3, 4)),
        ((1, 3, 5, 6), (1, 1)),
        ((1, 2, 3, 5), (6, 7)),
        ((1, 2, 5, 6, 7), (2, 3, 4)),
    ],
)
def test_adaptive_poolings(shape, sizes):
    x, n = values(shape), len(sizes)
    largest, mean = run_each([(f"nn.adaptive_{kind}_pool{n}d", {"output_size": sizes}) for kind in ("max", "avg")], x)
    np.testing.assert_array_equal(largest, adaptive(x, sizes, np.max))
    # The mean over a box is the mean of means along each axis.
    np.testing.assert_allclose(mean, adaptive(x.astype("float64"), sizes, np.mean), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float64"])
def test_max_pool_of_every_type(dtype):
    x = values((1, 3, 6, 7), dtype)
    found = run("nn.max_pool2d", x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1))
    lowest = np.iinfo(dtype).min if np.dtype(dtype).kind in "iu" else -np.inf
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=lowest)
    expected = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2].max((-1, -2))
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, expected)


def test_max_pool_passes_nan_and_infinities_on():
    x = np.array([[[1.0, np.nan, 2.0, -np.inf, -np.inf, 3.0]]], "float32")
    np.testing.assert_array_equal(run("nn.max_pool1d", x, pool_size=(2,), strides=(2,)), [[[np.nan, 2.0, 3.0]]])
    np.testing.assert_array_equal(run("nn.max_pool1d", x[..., 3:5], pool_size=(2,)), [[[-np.inf]]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_averages_of_16_bit_floats_are_summed_in_f32(dtype):
    # 1,024 values near 1, or near -3: a 16-bit sum would lose them, the f32 one leaves the rounding of the result.
    x = ((1 + 0.1 * values((1, 2, 32, 32))) * np.array([1, -3]).reshape(1, 2, 1, 1)).astype(dtype)
    expected = x.astype("float64").mean((2, 3), keepdims=True)
    for found in run_each([("nn.global_avg_pool2d", {}), ("nn.avg_pool2d", {"pool_size": (32, 32)})], x):
        check_sums(found, expected, np.abs(expected), 1024)


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
def test_means_of_windows_whose_padding_depends_on_sizes(padding):
    """Beside numbers that padding must not count as: means of 1 to 6 values."""
    attrs = {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": padding}
    nodes = [helper.make_node("AveragePool", ["x"], [f"y{i}"], count_include_pad=i, **attrs) for i in (0, 1)]
    model = model_of(nodes, {"x": ["n", 2, "h", "w"]}, ["y0", "y1"], ir_version=10)
    module = relayc.compile(model, cache=False)
    for shape in ((1, 2, 4, 5), (2, 2, 7, 1), (1, 2, 1, 9)):
        x = values(shape) + 3
        for i, found in enumerate(module["main"](x)):
            np.testing.assert_allclose(found, onnx_run("AveragePool", x, count_include_pad=i, **attrs), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_windows_that_lie_in_the_padding(dtype):
    x = values((1, 2, 5), dtype, limit=100)
    window = {"pool_size": (2,), "strides": (2,), "padding": (4, 5)}
    largest, mean = run_each([("nn.max_pool1d", window), ("nn.avg_pool1d", window)], x)
    # Four before the data, five behind it: of windows of two, the first two and the last two have no element.
    lowest = np.iinfo(dtype).min if dtype == "int32" else np.finfo(dtype).min
    np.testing.assert_array_equal(largest[..., [0, 1, -2, -1]], np.full((1, 2, 4), lowest))
    np.testing.assert_array_equal(mean[..., [0, 1, -2, -1]], 0)
    pairs = x[..., :4].reshape(1, 2, 2, 2)
    np.testing.assert_array_equal(largest[..., 2:4], pairs.max(-1))


def test_one_window_lies_in_the_padding():
    x = values((1, 2, 5))
    # The first one, then the last one.
    paddings = ((2, 1), (1, 2))
    calls = [
        (name, {"pool_size": (2,), "strides": (2,), "padding": padding})
        for padding in paddings
        for name in ("nn.avg_pool1d", "nn.max_pool1d")
    ]
    calls.append(("nn.max_pool1d", {"pool_size": (2,), "strides": (9,), "padding": (2, 0)}))  # the only one
    before, largest_before, after, largest_after, alone = run_each(calls, x)
    np.testing.assert_array_equal(alone, np.full((1, 2, 1), np.finfo(np.float32).min))
    for first, last, outside in ((before, after, 0), (largest_before, largest_after, np.finfo(np.float32).min)):
        np.testing.assert_array_equal(first[..., [0, -1]], np.stack([np.full((1, 2), outside, "float32"), x[..., 4]], -1))
        np.testing.assert_array_equal(last[..., [0, -1]], np.stack([x[..., 0], np.full((1, 2), outside, "float32")], -1))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_means_of_integers_are_cut_off(dtype):
    x = values((2, 3, 6, 6), dtype, limit=20)
    window = {"pool_size": (3, 2), "strides": (3, 2)}
    calls = [("nn.avg_pool2d", window), ("nn.global_avg_pool2d", {}), ("nn.adaptive_avg_pool2d", {"output_size": (4, 4)})]
    pooled, whole, adaptive = run_each(calls, x)
    wide = x.astype("int64")

    def mean(part):
        return np.trunc(part.sum((-2, -1)) / (part.shape[-1] * part.shape[-2]))

    parts = wide.reshape(2, 3, 2, 3, 3, 2).transpose(0, 1, 2, 4, 3, 5)
    np.testing.assert_array_equal(pooled, mean(parts))
    np.testing.assert_array_equal(whole[..., 0, 0], mean(wide))
    edges = [(i * 6 // 4, -(-(i + 1) * 6 // 4)) for i in range(4)]
    expected = np.array([[mean(wide[..., a:b, c:d]) for c, d in edges] for a, b in edges]).transpose(2, 3, 0, 1)
    np.testing.assert_array_equal(adaptive, expected)
    assert pooled.dtype == x.dtype


@pytest.mark.parametrize(
    ("size", "padding", "dilation", "counts", "divides"),
    [(4, (0, 0), 1, False, False), (5, (0, 0), 1, False, False), (4, (1, 0), 1, True, False), (6, (1, 0), 2, True, True)],
)
def test_elements_of_windows_are_counted_where_their_number_differs(size, padding, dilation, counts, divides):
    window = {"pool_size": (2,), "strides": (2,), "padding": padding, "dilation": (dilation,)}
    mod = program(lambda x: [build("nn.avg_pool1d", x, **window)], [np.zeros((1, 1, size), np.float32)])
    text = str(relayc.compile(mod, stop_after="te"))
    assert ("linalg.index" in text, "arith.divui" in text) == (counts, divides)
