"""Any convolution, transposed convolution or pooling that is well-formed agrees with ONNX Runtime."""

import numpy as np
from accuracy import check_sums
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check_convolution, onnx_run, values
from support import run

# Each example is compiled; derandomized, so that a run tells the same as the one before.
few = settings(max_examples=6, deadline=None, derandomize=True)


def pairs(low: int, high: int):
    return st.tuples(*[st.integers(low, high)] * 2)


@st.composite
def windows(draw):
    """Spatial sizes, kernel, strides, dilation and padding such that at least one window fits and none lies in the padding alone."""
    kernel, strides, dilation = draw(pairs(1, 4)), draw(pairs(1, 3)), draw(pairs(1, 3))
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = tuple(span + draw(st.integers(0, 9)) for span in spans)
    pads = tuple(draw(st.integers(0, k - 1)) for k in (*kernel, *kernel))
    return size, kernel, {"strides": strides, "dilation": dilation, "padding": pads}


def onnx_attrs(attrs: dict) -> dict:
    return {"strides": attrs["strides"], "dilations": attrs["dilation"], "pads": attrs["padding"]}


@few
@given(windows(), st.integers(1, 2), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))
def test_any_convolution(window, batch, groups, channels, outputs):
    size, kernel, attrs = window
    x, w = values((batch, groups * channels, *size)), values((groups * outputs, channels, *kernel), seed=1)
    found = run("nn.conv2d", x, w, groups=groups, **attrs)
    check_convolution(found, "Conv", x, w, group=groups, **onnx_attrs(attrs))


@few
@given(windows(), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
def test_any_transposed_convolution(window, batch, groups, channels, outputs):
    size, kernel, attrs = window
    x, w = values((batch, groups * channels, *size)), values((groups * channels, outputs, *kernel), seed=1)
    found = run("nn.conv2d_transpose", x, w, groups=groups, **attrs)
    check_convolution(found, "ConvTranspose", x, w, group=groups, **onnx_attrs(attrs))


@few
@given(windows(), st.integers(1, 2), st.integers(1, 3), st.booleans(), st.booleans())
def test_any_pooling(window, batch, channels, ceil_mode, include_pad):
    size, kernel, attrs = window
    x = values((batch, channels, *size))
    common = {"kernel_shape": kernel, "ceil_mode": int(ceil_mode), **onnx_attrs(attrs)}
    largest = run("nn.max_pool2d", x, pool_size=kernel, ceil_mode=ceil_mode, **attrs)
    np.testing.assert_array_equal(largest, onnx_run("MaxPool", x, **common))
    mean = run("nn.avg_pool2d", x, pool_size=kernel, ceil_mode=ceil_mode, count_include_pad=include_pad, **attrs)
    expected, magnitude = (onnx_run("AveragePool", v, count_include_pad=int(include_pad), **common) for v in (x, np.abs(x)))
    check_sums(mean, expected, magnitude, kernel[0] * kernel[1])
