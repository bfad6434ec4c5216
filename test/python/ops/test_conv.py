"""Numerics of convolutions and transposed convolutions, against ONNX Runtime."""

import numpy as np
import pytest
from accuracy import check_sums
from contractions import convolve
from oracle import check_convolution, onnx_run, values
from support import run, run_each
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.dialects.relay import build

CONVOLUTIONS = {
    "unit": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "pointwise": ((2, 5, 7, 6), (9, 5, 1, 1), {}),
    "pointwise stride": ((1, 16, 9, 9), (8, 16, 1, 1), {"strides": (2, 2)}),
    "same padding": ((1, 3, 11, 13), (8, 3, 3, 3), {"padding": (1, 1, 1, 1)}),
    "asymmetric padding": ((1, 4, 6, 7), (5, 4, 3, 2), {"padding": (0, 2, 1, 3)}),
    "stem": ((1, 3, 32, 33), (16, 3, 7, 7), {"strides": (2, 2), "padding": (3, 3, 3, 3)}),
    "uneven strides": ((2, 3, 10, 17), (4, 3, 2, 5), {"strides": (3, 2), "padding": (1, 2, 1, 2)}),
    "dilation": ((1, 4, 15, 12), (6, 4, 3, 3), {"dilation": (2, 3), "padding": (2, 3, 2, 3)}),
    "grouped": ((1, 12, 8, 9), (8, 3, 3, 3), {"groups": 4, "padding": (1, 1, 1, 1)}),
    "grouped, one output each": ((1, 12, 5, 5), (4, 3, 3, 3), {"groups": 4}),
    "depthwise": ((1, 19, 9, 10), (19, 1, 3, 3), {"groups": 19, "strides": (2, 2), "padding": (1, 1, 1, 1)}),
    "depthwise, multiplier": ((1, 6, 9, 10), (18, 1, 5, 3), {"groups": 6, "dilation": (1, 2)}),
    "whole image": ((3, 8, 6, 6), (10, 8, 6, 6), {}),
    "many channels": ((1, 70, 7, 7), (67, 70, 3, 3), {"padding": (1, 1, 1, 1)}),
    "line": ((1, 4, 33), (6, 4, 5), {"strides": (2,), "padding": (2, 1)}),
    "line, dilation and groups": ((2, 6, 20), (9, 2, 3), {"groups": 3, "dilation": (4,)}),
    "line, depthwise": ((2, 5, 20), (5, 1, 4), {"groups": 5, "padding": (3, 0)}),
    "volume": ((1, 3, 6, 7, 8), (4, 3, 3, 2, 3), {"strides": (2, 1, 1), "padding": (1, 0, 1, 1, 1, 1)}),
    "volume, groups": ((1, 4, 5, 5, 6), (6, 2, 3, 3, 1), {"groups": 2, "dilation": (2, 1, 1)}),
    "volume, depthwise": ((1, 4, 5, 5, 6), (4, 1, 2, 2, 2), {"groups": 4}),
}


def onnx_attrs(attrs: dict) -> dict:
    """The attributes of ONNX Conv that these of Relay stand for."""
    names = {"strides": "strides", "dilation": "dilations", "groups": "group", "padding": "pads", "output_padding": "output_padding"}
    return {names[k]: v for k, v in attrs.items()}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution_agrees_with_onnx_runtime(case):
    x_shape, w_shape, attrs = CONVOLUTIONS[case]
    x, w = values(x_shape), values(w_shape, seed=1)
    found = run(f"nn.conv{x.ndim - 2}d", x, w, **attrs)
    check_convolution(found, "Conv", x, w, **onnx_attrs(attrs))


LAYOUTS = [("NHWC", "HWIO"), ("NHWC", "OHWI"), ("NHWC", "OIHW"), ("NCHW", "HWIO"), ("HWNC", "IHWO")]


def moved(array: np.ndarray, source: str, target: str) -> np.ndarray:
    """`array` with its axes, named by `source`, in the order of `target`."""
    return np.ascontiguousarray(array.transpose([source.index(a) for a in target]))


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_layouts_give_the_same_convolution(groups):
    x, w = values((2, 6, 9, 8)), values((6, 6 // groups, 3, 3), seed=1)
    attrs = {"groups": groups, "strides": (2, 1), "padding": (1, 0, 1, 2)}
    for data_layout, kernel_layout in LAYOUTS:
        arrays = moved(x, "NCHW", data_layout), moved(w, "OIHW", kernel_layout)
        found = run("nn.conv2d", *arrays, data_layout=data_layout, kernel_layout=kernel_layout, **attrs)
        check_convolution(moved(found, data_layout, "NCHW"), "Conv", x, w, **onnx_attrs(attrs))


def blocked(x: np.ndarray, block: int) -> np.ndarray:
    """NCHW -> NCHW{block}c."""
    n, c, h, w = x.shape
    return np.ascontiguousarray(x.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2))


def unblocked(x: np.ndarray) -> np.ndarray:
    """NCHW{b}c -> NCHW."""
    n, c, h, w, block = x.shape
    return x.transpose(0, 1, 4, 2, 3).reshape(n, c * block, h, w)


@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "block", "out_block"), [(16, 32, 1, 8, 16), (16, 16, 16, 8, 8), (32, 16, 2, 16, 8)]
)
def test_blocked_channels_give_the_same_convolution(channels, outputs, groups, block, out_block):
    x, w = values((1, channels, 9, 7)), values((outputs, channels // groups, 3, 3), seed=1)
    attrs = {"groups": groups, "padding": (1, 1, 1, 1), "strides": (2, 2)}
    found = run("nn.conv2d", blocked(x, block), w, data_layout=f"NCHW{block}c", out_layout=f"NCHW{out_block}c", **attrs)
    check_convolution(unblocked(found), "Conv", x, w, **onnx_attrs(attrs))


def test_groups_of_any_number_of_channels():
    body = lambda x, w: [build("nn.conv2d", x, w, groups=2)]  # noqa: E731 (an argument, not a definition)
    module = relayc.compile(symbolic_program(body, [tensor("float32[n, 6, 5, 7]"), tensor("float32[2*c, 3, 2, 3]")]))
    for channels in (1, 5):
        x, w = values((2, 6, 5, 7)), values((2 * channels, 3, 2, 3), seed=1)
        check_convolution(module["main"](x, w), "Conv", x, w, group=2)


def test_blocked_result_of_unblocked_data():
    x, w = values((1, 3, 9, 7)), values((16, 3, 3, 3), seed=1)
    found = run("nn.conv2d", x, w, out_layout="NCHW16c")
    check_convolution(unblocked(found), "Conv", x, w)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_float_types(dtype):
    x, w = (values(s, "float64", seed).astype(dtype) for seed, s in enumerate([(1, 8, 9, 9), (5, 8, 3, 3)]))
    found = run("nn.conv2d", x, w, padding=(1, 1, 1, 1))
    assert found.dtype == x.dtype
    wide, window = [v.astype("float64") for v in (x, w)], ((1, 1), (1, 1), (1, 1, 1, 1), 1)
    check_sums(found, convolve(*wide, *window), convolve(*map(np.abs, wide), *window), 72)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("groups", [1, 4])
def test_integers_accumulate_in_int32(dtype, groups):
    x, w = values((1, 4, 7, 7), dtype, limit=None), values((4, 4 // groups, 3, 3), dtype, seed=1, limit=None)
    found = run("nn.conv2d", x, w, groups=groups, out_dtype="int32")
    # Sums below 2^24 are exact in f32.
    expected = onnx_run("Conv", x.astype("float32"), w.astype("float32"), group=groups).astype("int32")
    np.testing.assert_array_equal(found, expected)


TRANSPOSED = {
    "unit stride": ((1, 3, 5, 6), (3, 4, 3, 3), {}),
    "stride equals kernel": ((1, 4, 5, 6), (4, 3, 2, 2), {"strides": (2, 2)}),
    "overlap": ((1, 4, 5, 6), (4, 3, 4, 4), {"strides": (2, 2), "padding": (1, 1, 1, 1)}),
    "kernel not a multiple": ((2, 3, 4, 5), (3, 5, 3, 3), {"strides": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}),
    "stride beyond kernel": ((1, 2, 4, 3), (2, 2, 2, 2), {"strides": (3, 4), "output_padding": (2, 1)}),
    "asymmetric": ((1, 2, 5, 6), (2, 3, 5, 4), {"strides": (3, 2), "padding": (0, 3, 2, 1)}),
    "padding beyond the first stride": ((1, 2, 6, 6), (2, 3, 5, 5), {"strides": (2, 2), "padding": (4, 3, 4, 3)}),
    "dilation": ((1, 2, 5, 6), (2, 3, 3, 2), {"dilation": (2, 3), "padding": (1, 0, 2, 1)}),
    "stride and dilation": ((1, 2, 5, 6), (2, 3, 3, 2), {"strides": (2, 3), "dilation": (3, 2)}),
    "one tap": ((2, 3, 5, 4), (3, 4, 1, 1), {"strides": (2, 3), "output_padding": (1, 0)}),
    "one tap along one axis": ((1, 3, 5, 4), (3, 4, 3, 1), {"strides": (2, 3), "padding": (1, 0, 0, 0), "output_padding": (1, 2)}),
    "channels of several vectors": ((2, 40, 9, 7), (40, 70, 3, 3), {"strides": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}),
    "groups": ((1, 6, 5, 4), (6, 2, 3, 3), {"groups": 3, "strides": (2, 1)}),
    "depthwise": ((1, 6, 5, 4), (6, 1, 4, 4), {"groups": 6, "strides": (2, 2), "padding": (1, 1, 1, 1)}),
    "line": ((2, 3, 7), (3, 4, 5), {"strides": (3,), "padding": (1, 2), "output_padding": (2,)}),
    "volume": ((1, 2, 3, 4, 3), (2, 3, 2, 3, 3), {"strides": (2, 1, 2), "padding": (0, 1, 1, 0, 1, 0)}),
}


@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolution_agrees_with_onnx_runtime(case):
    x_shape, w_shape, attrs = TRANSPOSED[case]
    x, w = values(x_shape), values(w_shape, seed=1)
    found = run(f"nn.conv{x.ndim - 2}d_transpose", x, w, **attrs)
    check_convolution(found, "ConvTranspose", x, w, **onnx_attrs(attrs))


def test_transposed_convolution_of_other_layouts():
    x, w = values((1, 4, 5, 6)), values((4, 3, 3, 3), seed=1)
    attrs = {"strides": (2, 2), "padding": (1, 1, 1, 1)}
    found = run(
        "nn.conv2d_transpose", moved(x, "NCHW", "NHWC"), moved(w, "IOHW", "HWOI"), data_layout="NHWC", kernel_layout="HWOI", **attrs
    )
    check_convolution(moved(found, "NHWC", "NCHW"), "ConvTranspose", x, w, **onnx_attrs(attrs))


def test_padding_may_be_given_in_short_forms():
    x, w = values((1, 2, 6, 6)), values((3, 2, 3, 3), seed=1)
    forms = [(1, 2, 1, 2), (1, 2)]
    long, short = run_each([("nn.conv2d", {"padding": p}) for p in forms], x, w)
    np.testing.assert_array_equal(long, short)
    check_convolution(short, "Conv", x, w, pads=forms[0])
