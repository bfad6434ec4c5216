"""Transposed convolutions between DequantizeLinear and QuantizeLinear: products of bytes, whose results are ONNX Runtime's bit for bit, as
scales are powers of two, of which sums in float32 are exact. Its optimizer is off: it rounds biases to whole steps."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayc

FORMS = {
    "kernel of the strides": dict(x=(1, 16, 9, 8), w=(16, 12, 2, 2), strides=[2, 2]),
    "padded, with a bias": dict(x=(2, 20, 7, 9), w=(20, 18, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1], bias=True),
    "odd kernel, output padding": dict(
        x=(1, 17, 6, 7), w=(17, 16, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1], bias=True
    ),
    "stride 1": dict(x=(1, 24, 11, 10), w=(24, 16, 3, 3), pads=[1, 1, 1, 1], bias=True),
    "phases without taps": dict(x=(1, 16, 5, 6), w=(16, 16, 2, 1), strides=[3, 2]),
    "phases without taps, with a bias": dict(x=(1, 16, 5, 6), w=(16, 16, 2, 1), strides=[3, 2], bias=True),
    "groups": dict(x=(1, 16, 9, 8), w=(16, 8, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1], group=2, per_tensor=True, bias=True),
    "weights with a zero point": dict(x=(1, 17, 6, 7), w=(17, 16, 3, 3), strides=[2, 2], weight_zero=5),
    "line": dict(x=(1, 16, 33), w=(16, 12, 5), strides=[3], pads=[1, 2], bias=True),
    "volume": dict(x=(1, 8, 4, 5, 3), w=(8, 16, 2, 3, 2), strides=[2, 1, 2]),
    "dilated": dict(x=(1, 16, 6, 7), w=(16, 12, 3, 3), dilations=[2, 2]),
    "beyond 1024": dict(x=(1, 16, 37, 33), w=(16, 5, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1], bias=True),
}
MOVED_FIRST = ("phases without taps", "phases without taps, with a bias", "dilated")
"""The forms whose results are not quantised by the kernel of a plain convolution."""


def model(x, w, bias=False, per_tensor=False, limits=False, symbolic=False, zero=120, weight_zero=0, **attrs) -> onnx.ModelProto:
    rng = np.random.default_rng(len(x) + w[-1])
    channels = w[1] * attrs.get("group", 1)
    scales = np.float32(0.25) if per_tensor else (2.0 ** -rng.integers(1, 4, w[1])).astype(np.float32)
    constants = {
        "w": rng.integers(-120, 121, w).astype(np.int8),
        "w_scale": scales,
        "w_zero": np.full(scales.shape, weight_zero, np.int8),
        "x_scale": np.float32(0.125),
        "x_zero": np.uint8(zero),
        "y_scale": np.float32(8),
        "y_zero": np.uint8(99),
        "b": (rng.integers(-9000, 9000, channels) / 32).astype(np.float32),  # of whole steps for some channels only
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "x_scale", "x_zero"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["wf"], axis=1),
        helper.make_node("ConvTranspose", ["xf", "wf", *(["b"] if bias else [])], ["yf"], **attrs),
        *([helper.make_node("Relu", ["yf"], ["r"])] if limits else []),
        helper.make_node("QuantizeLinear", ["r" if limits else "yf", "y_scale", "y_zero"], ["y"]),
    ]
    shape = [x[0], x[1], *(f"d{i}" for i in range(len(x) - 2))] if symbolic else x
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, shape)
    result = helper.make_tensor_value_info("y", TensorProto.UINT8, None)
    graph = helper.make_graph(nodes, "g", [given], [result], [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def check(made: onnx.ModelProto, shape) -> relayc.Module:
    x = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, {"x": x})
    module = relayc.compile(made)
    assert np.unique(expected).size > 20  # not all at a limit
    np.testing.assert_array_equal(module.run({"x": x})["y"], expected)
    return module


@pytest.mark.parametrize("name", FORMS)
def test_a_form(name):
    form = FORMS[name]
    module = check(model(**form), form["x"])
    kernels = [k.name for k in module.kernels if "conv" in k.name]
    quantised = any("clip_cast" in kernel and "transpose" not in kernel for kernel in kernels)
    assert quantised == (name not in MOVED_FIRST), kernels


def test_limits_and_a_zero_point_of_0():
    form = FORMS["padded, with a bias"]
    check(model(**form, limits=True), form["x"])
    check(model(**form, zero=0), form["x"])


def test_symbolic_sizes():
    form = FORMS["padded, with a bias"]
    made = model(**form, symbolic=True)
    for size in ((1, 2), (7, 9), (33, 40)):
        check(made, (*form["x"][:2], *size))
