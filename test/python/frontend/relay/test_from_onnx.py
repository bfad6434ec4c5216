"""ONNX models as programs of the Relay language, through their text, against the results that ONNX's own cases state."""

import re
import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx_models import model_of

from relayc import IRModule, relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.raising import raised

# One of each kind whose sizes the program computes, and operators of every family.
CASES = [
    "test_affine_grid_2d",
    "test_center_crop_pad_crop",
    "test_constant_pad",
    "test_reflect_pad",
    "test_cumsum_2d_negative_axis",
    "test_expand_dim_changed",
    "test_loop11",
    "test_onehot_without_axis",
    "test_range_int32_type_negative_delta_expanded",
    "test_reshape_allowzero_reordered",
    "test_reshape_zero_and_negative_dim",
    "test_slice_neg_steps",
    "test_slice_start_out_of_bounds",
    "test_tile",
    "test_top_k",
    "test_unique_length_1",
    "test_unsqueeze_negative_axes",
    "test_squeeze",
    "test_constantofshape_float_ones",
    "test_compress_0",
    "test_nonzero_example",
    "test_if",
    "test_scan9_sum",
    "test_conv_with_strides_and_asymmetric_padding",
    "test_convtranspose_pads",
    "test_gemm_all_attributes",
    "test_layer_normalization_4d_axis2",
    "test_lstm_with_peepholes",
    "test_gru_seq_length",
    "test_attention_4d",
    "test_attention_3d_gqa",
    "test_einsum_batch_matmul",
    "test_maxpool_2d_ceil",
    "test_averagepool_2d_pads_count_include_pad",
    "test_batchnorm_epsilon",
    "test_softmax_axis_1",
    "test_gathernd_example_int32",
    "test_split_equal_parts_2d",
    "test_scatter_elements_with_negative_indices",
    "test_qlinearmatmul_2D_uint8_float32",
    "test_dynamicquantizelinear",
    "test_where_example",
    "test_instancenorm_epsilon",
    "test_resize_upsample_scales_linear",
    "test_depthtospace_crd_mode_example",
    "test_tril",
]


@cache
def _cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None) if case.model is not None}


def _run(mod: relay.IRModule, arrays: list[Any]) -> list[np.ndarray]:
    found = relay.create_executor("vm", mod).evaluate()(*arrays)
    return [np.asarray(part) for part in (found if isinstance(found, (list, tuple)) else [found])]


@pytest.mark.parametrize("name", CASES)
def test_a_case_through_text(name: str) -> None:
    case = _cases()[name]
    mod, params = relay.frontend.from_onnx(case.model)
    assert params == {}
    again = relay.parse(mod.astext())
    inputs, expected = case.data_sets[0]
    for found, wanted in zip(_run(again, list(inputs)), expected, strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=case.rtol, atol=max(case.atol, 1e-7))


def _network() -> onnx.ModelProto:
    """A product with weights, for any number of rows, whose rows are put in pairs by a size that the program computes."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Shape", ["r"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Div", ["rows", "two"], ["half"]),
        helper.make_node("Concat", ["half", "minus", "three"], ["new"], axis=0),
        helper.make_node("Reshape", ["r", "new"], ["y"]),
    ]
    weights = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")
    numbers = {"zero": [0], "two": [2], "minus": [-1], "three": [3]}
    initializers = [numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "pairs",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(weights, "w"), *initializers],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
    )


@pytest.mark.parametrize("rows", [2, 6, 1030])
def test_dimensions_keep_their_names(rows: int) -> None:
    model = _network()
    mod, _ = relay.frontend.from_onnx(model)
    assert str(mod["main"].params[0].checked_type.shape[0]) == "n"
    x = np.random.default_rng(rows).standard_normal((rows, 5)).astype("float32")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = _run(relay.parse(mod.astext()), [x])
    assert found.shape == (rows // 2, 2, 3)
    np.testing.assert_allclose(found, session.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_parameters_that_stay_arguments() -> None:
    model = _network()
    mod, params = relay.frontend.from_onnx(model, shape={"x": (4, 5)}, dtype="float32", freeze_params=False)
    assert [p.name_hint for p in mod["main"].params] == ["x", "w"] and list(params) == ["w"]
    x = np.random.default_rng(1).standard_normal((4, 5)).astype("float32")
    executor = relay.build(mod, target="llvm", params=params)["default"]("cpu")
    executor.set_input("x", x)
    executor.run()
    expected = np.maximum(x @ params["w"].numpy(), 0).reshape(2, 2, 3)
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_what_relay_has_no_operator_for_is_named() -> None:
    with pytest.raises(RelayError, match=r"cast: expected attributes of the Relay language, found saturate"):
        relay.frontend.from_onnx(_cases()["test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FN"].model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func private @f(tensor<2xf32>) -> tensor<2xf32>", "@f: expected a function with a body, found a packed one"),
        (
            "func.func @f(%x: tensor<2xf32>) { %0 = math.exp %x : tensor<2xf32> return }",
            "math.exp: expected an operator of the relay dialect",
        ),
        (
            "func.func @f(%x: tensor<2xf32>) { bufferization.dealloc_tensor %x : tensor<2xf32> return }",
            "bufferization.dealloc_tensor: .* found one without a result",
        ),
        ('memref.global "private" @x : memref<2xf32>', "expected functions of the relay stage, found memref.global"),
        ('func.func @f(%x: tensor<2xf32>) attributes {relay.stage = "te"} { return }', "expected functions of the relay stage, found func"),
    ],
)
def test_what_is_no_program_of_the_language(text: str, message: str) -> None:
    with pytest.raises(RelayError, match=message):
        raised(IRModule.parse(text))


def test_operands_of_any_number_follow_those_before() -> None:
    x, mask = "tensor<1x2x3x4xf32>", "tensor<3x3xi1>"
    mod = raised(
        IRModule.parse(f"""
        func.func @main(%q: {x}, %k: {x}, %v: {x}, %m: {mask}) -> {x} {{
          %0 = "relay.nn_attention"(%q, %k, %v, %m) {{scale = 0.5 : f64}} : ({x}, {x}, {x}, {mask}) -> {x}
          return %0 : {x}
        }}""")
    )
    call, (*params, mask) = mod["main"].body, mod["main"].params
    assert list(call.args[:3]) == params and list(call.args[3].fields) == [mask]


def test_sizes_as_data_keep_their_type() -> None:
    text = """
    func.func @main(%x: tensor<?xf32, ["n"]>) -> (tensor<1xi32>, tensor<1xi64>) {
      %0 = "relay.sizes"() {values = ["2*n"], dtype = "int32"} : () -> tensor<1xi32>
      %1 = "relay.sizes"() {values = ["2*n"]} : () -> tensor<1xi64>
      return %0, %1 : tensor<1xi32>, tensor<1xi64>
    }"""
    mod = relay.transform.InferType()(relay.parse(raised(IRModule.parse(text)).astext()))
    assert [part.dtype for part in mod["main"].ret_type.fields] == ["int32", "int64"]


def test_numbers_up_to_a_size() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["rows"], end=1),
        helper.make_node("Squeeze", ["rows"], ["n"]),
        helper.make_node("Range", ["zero", "n", "two"], ["y"]),
    ]
    numbers = {"zero": np.array(0), "two": np.array(2)}
    mod, _ = relay.frontend.from_onnx(model_of(nodes, {"x": ["n", 2]}, initializers=numbers))
    for rows in (1, 4, 5):
        (found,) = _run(relay.parse(mod.astext()), [np.zeros((rows, 2), np.float32)])
        np.testing.assert_array_equal(found, np.arange(0, rows, 2))


def test_a_result_is_a_size_of_a_parameter() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["rows"], end=1), helper.make_node("Mul", ["rows", "two"], ["y"])]
    mod, _ = relay.frontend.from_onnx(model_of(nodes, {"x": ["n", 5]}, initializers={"two": np.array([2])}))
    assert "shape_of(%x" in str(mod["main"])


@pytest.mark.parametrize("rows", [[], [[0, 3, 0, 1, 5], [0, 2], [0, 0, 0]]], ids=["text", "results"])
def test_sizes_of_places_that_the_program_counts(rows: list[list[float]]) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Reshape", ["places", "minus"], ["y"]),
        helper.make_node("Shape", ["y"], ["count"]),
        helper.make_node("Div", ["count", "two"], ["half"]),
        helper.make_node("Expand", ["zero", "half"], ["z"]),
        helper.make_node("Shape", ["w"], ["m"]),
        helper.make_node("Div", ["count", "m"], ["parts"]),
        helper.make_node("Expand", ["zero", "parts"], ["v"]),
    ]
    numbers = {"minus": np.array([-1]), "two": np.array([2]), "zero": np.array(0)}
    mod, _ = relay.frontend.from_onnx(model_of(nodes, {"x": ["n"], "w": ["m"]}, ["y", "z", "v"], initializers=numbers))
    again = relay.parse(mod.astext())
    assert "newshape=[-1]" in str(again) and "floor_divide" in str(again)
    assert re.search(r"maximum\(%\d+, 1i64", str(again))  # no division by 0
    for x in rows:
        y, z, v = _run(again, [np.array(x, np.float32), np.zeros(1, np.float32)])
        np.testing.assert_array_equal(y, np.flatnonzero(x))
        assert (*z.shape, *v.shape) == (np.count_nonzero(x) // 2, np.count_nonzero(x))
