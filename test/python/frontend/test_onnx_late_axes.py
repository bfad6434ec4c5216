"""Axes, bounds and factors that are inputs of the model: the results of numpy, and errors for what is none, when the program runs."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import model_of

import relayc
from relayc.frontend.onnx import OnnxError, from_onnx

X = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)


def compiled(op_type: str, count: int | str, symbolic: bool = False, **attributes: object) -> relayc.Module:
    """One node of data and axes."""
    node = helper.make_node(op_type, ["x", "axes"], ["y"], **attributes)
    shape = ["a", "b", "c"] if symbolic else [3, 4, 5]
    return relayc.compile(model_of([node], {"x": shape, "axes": (TensorProto.INT64, [count])}))


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_reduction_runs_along_any_axes(symbolic):
    main = compiled("ReduceSum", 2, symbolic, keepdims=0)["main"]
    for axes in ((0, 1), (2, 0), (-1, -2)):
        np.testing.assert_allclose(main(X, np.array(axes)), X.sum(axes), rtol=1e-5, atol=1e-6)


def test_a_reduction_runs_along_any_number_of_axes():
    main = compiled("ReduceMax", "n")["main"]
    for axes in ((0,), (2, 1), (0, 1, 2), ()):
        np.testing.assert_array_equal(main(X, np.array(axes, np.int64)), X.max(axes or None, keepdims=True))


@pytest.mark.parametrize("axes", [(0, 3), (1, 1), (0, -4), (1, -2)])
def test_axes_out_of_range_and_repeated_ones_are_errors(axes):
    with pytest.raises(ValueError, match="expected 0 or more, found -1"):
        compiled("ReduceSum", 2, keepdims=0)["main"](X, np.array(axes))


def test_unsqueeze_and_squeeze_put_axes_anywhere():
    unsqueeze = compiled("Unsqueeze", 2)["main"]
    node = helper.make_node("Squeeze", ["x", "axes"], ["y"])
    squeeze = relayc.compile(model_of([node], {"x": ["a", "b", "c", "d", "e"], "axes": (TensorProto.INT64, [2])}))["main"]
    for axes in ((0, 4), (1, 2), (-1, 0)):
        wide = np.expand_dims(X, axes)
        np.testing.assert_array_equal(unsqueeze(X, np.array(axes)), wide)
        np.testing.assert_array_equal(squeeze(wide, np.array(axes)), X)
    with pytest.raises(ValueError, match="expected 0 or more, found -1"):
        squeeze(X[None, None], np.array([0, 2]))


def test_slices_along_any_axes():
    int64 = (TensorProto.INT64, [2])
    node = helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["y"])
    main = relayc.compile(model_of([node], {"x": [3, 4, 5], "starts": int64, "ends": int64, "axes": int64}))["main"]
    np.testing.assert_array_equal(main(X, np.array([1, -3]), np.array([9, -1]), np.array([0, 2])), X[1:, :, -3:-1])
    np.testing.assert_array_equal(main(X, np.array([1, 0]), np.array([3, 1]), np.array([-2, 0])), X[:1, 1:3])
    with pytest.raises(ValueError, match="found -1"):
        main(X, np.array([1, 0]), np.array([3, 1]), np.array([1, 1]))


def test_a_running_sum_along_any_axis():
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], reverse=1)
    main = relayc.compile(model_of([node], {"x": [3, 4, 5], "axis": (TensorProto.INT64, [])}))["main"]
    for axis in range(-3, 3):
        expected = np.flip(np.cumsum(np.flip(X, axis), axis), axis)
        np.testing.assert_allclose(main(X, np.array(axis)), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="expected 0 or more, found -1"):
        main(X, np.array(3))


def test_a_signal_of_which_an_input_says_the_axis_has_parts():
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"])
    with pytest.raises(OnnxError, match=r"expected a signal whose last dimension is 1 or 2, found \[3, 4, 5\]"):
        from_onnx(model_of([node], {"x": [3, 4, 5], "axis": (TensorProto.INT64, [])}, opset=20))


def test_resizing_by_factors_that_are_an_input():
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear", axes=[1, 2])
    model = model_of([node], {"x": ["n", "h", "w"], "scales": (TensorProto.FLOAT, [2])})
    main = relayc.compile(model)["main"]
    for scales in ((2.0, 0.6), (0.5, 1.0)):
        known = onnx.ModelProto()
        known.CopyFrom(model)
        del known.graph.input[1:]
        known.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(scales), "scales"))
        expected = relayc.compile(known, shapes={"x": X.shape})["main"](X)
        np.testing.assert_allclose(main(X, np.float32(scales)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_by_factors_of_open_sizes(mode, dtype):
    """Against ONNX Runtime, which rounds bytes of 22 bits where relayc has 15: they may be one apart. It computes positions in float32."""
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode, antialias=1, exclude_outside=1)
    element = TensorProto.FLOAT if dtype == "float32" else TensorProto.UINT8
    model = model_of([node], {"x": (element, [1, 1, "h", "w"]), "scales": (TensorProto.FLOAT, [4])})
    del model.graph.input[1:]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1, 1, 0.5, 1.25]), "scales"))
    module, session = relayc.compile(model), onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for h, w in ((8, 12), (9, 5), (1, 3), (1040, 17)):
        x = (np.random.default_rng(0).random((1, 1, h, w)) * 255).astype(dtype)
        (expected,), found = session.run(None, {"x": x}), module["main"](x)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found.astype("float64"), expected, rtol=0, atol=1 if dtype == "uint8" else 255 * 5e-5)


@pytest.mark.parametrize("size", ["n", 4])
@pytest.mark.parametrize("step", [-1, -2])
def test_a_slice_backwards_ends_before_the_first_element_where_the_program_says_so(size, step):
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 21]> main (int64[{size}] x, int64[1] end) => (int64[] y, int64[] z) {{
            start = Constant <value_ints = [9]> ()
            axis = Constant <value_ints = [0]> ()
            step = Constant <value_ints = [{step}]> ()
            size = Abs (end)
            back = Neg (size)
            y = Slice (x, start, end, axis, step)
            z = Slice (x, start, back, axis, step)
        }}"""
    )
    main = relayc.compile(model)["main"]
    for n in (4,) if size == 4 else (0, 1, 7):
        x = np.arange(n)
        for end in (0, 1, -1, -n, -n - 1, -(2**40), 2**63 - 1):
            y, z = main(x, np.array([end]))
            np.testing.assert_array_equal(y, x[9:end:step])
            np.testing.assert_array_equal(z, x[9 : -abs(end) : step])
