"""What `from_onnx` makes of models: signature, names, weights, folded shapes, functions, branches."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import branches, model_of, relu, weighted

import relayc
from relayc.frontend.converter import constant, emit
from relayc.frontend.onnx import OnnxError, converter, from_onnx, supported_operators, wire
from relayc.frontend.onnx.converters import CONVERTERS


def operations(mod):
    return list(mod.main.regions[0].blocks[0].operations)


def names_of(mod):
    return [op.operation.name for op in operations(mod)]


def built(mod):
    """Operators of the program, without constants and the return."""
    return [name.removeprefix("relay.") for name in names_of(mod) if name not in ("relay.constant", "func.return")]


def result_type(mod):
    return str(operations(mod)[-1].operation.operands[0].type)


def argument_names(mod):
    return [a["relay.name"].value for a in mod.main.attributes["arg_attrs"]]


# ---- signature ------------------------------------------------------------------------------------------------------------------------


def test_arguments_and_results_carry_the_names_of_the_model():
    mod = from_onnx(model_of([relu()], {"x": [2, 3]}))
    assert argument_names(mod) == ["x"]
    assert [a["relay.name"].value for a in mod.main.attributes["res_attrs"]] == ["y"]


def test_operations_carry_the_name_of_their_node():
    mod = from_onnx(model_of([relu(), helper.make_node("Abs", ["y"], ["z"])], {"x": [2]}, ["z"]))
    assert [str(op.operation.location) for op in operations(mod)[:2]] == ['loc("act")', 'loc("Abs#1")']


def test_shapes_fix_symbols_wherever_they_are_used():
    add = helper.make_node("Add", ["x", "b"], ["y"])
    mod = from_onnx(model_of([add], {"x": ["n", 4], "b": ["n", 1]}), shapes={"x": [3, 4]})
    assert result_type(mod) == "tensor<3x4xf32>"


def test_dtypes_change_the_argument_and_cast_it_on_entry():
    mod = from_onnx(model_of([relu()], {"x": [2]}), dtypes={"x": "uint8"})
    assert built(mod) == ["cast", "nn_relu"]
    assert str(mod.main.regions[0].blocks[0].arguments[0].type) == "tensor<2xui8>"


def test_an_input_with_an_initializer_is_a_constant():
    add = helper.make_node("Add", ["x", "w"], ["y"])
    mod = from_onnx(model_of([add], {"x": [2], "w": [2]}, initializers={"w": np.ones(2, np.float32)}))
    assert argument_names(mod) == ["x"]


def test_progress_is_reported_up_to_the_number_of_nodes():
    seen = []
    from_onnx(model_of([relu()], {"x": [2]}), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 1), (1, 1)]


# ---- weights --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["proto", "bytes", "path", "str"])
def test_weights_arrive_unchanged_from_every_form_of_a_model(form, tmp_path):
    model, w = weighted()
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    given = {"proto": model, "bytes": path.read_bytes(), "path": path, "str": str(path)}[form]
    mod = from_onnx(given)
    np.testing.assert_array_equal(mod.params["w"], w)


def test_weights_of_bytes_are_not_copied():
    model, _ = weighted(1024)
    # The start of the data in the message depends on the lengths before it: aligned for one of four names.
    for name in ("w", "ww", "www", "wwww"):
        model.graph.initializer[0].name = model.graph.node[0].input[1] = name
        data = model.SerializeToString()
        array = from_onnx(data).params[name]
        if np.shares_memory(array, np.frombuffer(data, np.uint8)):
            return
    pytest.fail("no weight is a view of the bytes it came in")


def test_external_data_is_read_from_beside_the_model(tmp_path):
    model, w = weighted()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    np.testing.assert_array_equal(from_onnx(tmp_path / "m.onnx").params["w"], w)


def test_unfrozen_initializers_become_named_arguments():
    model, w = weighted()
    mod = from_onnx(model, freeze_params=False)
    assert argument_names(mod) == ["x", "w"]
    np.testing.assert_array_equal(mod.params["w"], w)
    assert mod.module.operation.verify()


def test_unfrozen_shapes_are_still_known_at_import():
    reshape = helper.make_node("Reshape", ["x", "s"], ["y"])
    mod = from_onnx(model_of([reshape], {"x": [2, 3]}, initializers={"s": np.array([6])}), freeze_params=False)
    assert argument_names(mod) == ["x"]
    assert result_type(mod) == "tensor<6xf32>"


# ---- shapes computed in the graph -----------------------------------------------------------------------------------------------------


def test_a_shape_computed_from_a_shape_is_folded_at_import():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    initializers = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    mod = from_onnx(model_of(nodes, {"x": [2, 3, 4]}, initializers=initializers))
    assert built(mod) == ["reshape"]
    assert result_type(mod) == "tensor<2x12xf32>"


def test_a_constant_output_is_a_constant():
    mod = from_onnx(model_of([helper.make_node("Shape", ["x"], ["y"])], {"x": [2, 3]}))
    assert names_of(mod) == ["relay.constant", "func.return"]


def test_positions_of_a_known_tensor_are_known():
    nodes = [helper.make_node("NonZero", ["mask"], ["p"]), helper.make_node("Cast", ["p"], ["y"], to=1)]
    mod = from_onnx(model_of(nodes, {"x": [2]}, initializers={"mask": np.array([[0, 1], [1, 0]])}))
    assert result_type(mod) == "tensor<2x2xf32>"


SIGMOIDS = ("Sigmoid", "Tanh", "Softsign", "Erf")
FUNCTIONS = ("Softmax", "LogSoftmax", "ReduceLogSumExp", "Softplus", "Exp", "Elu", "Selu", "Mish", "Gelu", *SIGMOIDS)


def test_functions_of_known_numbers_that_are_far_apart():
    x = np.float32([-1e4, -200, -100, -20.5, -3, -1e-8, 0, 1e-8, 0.3, 3, 20.5, 88, 100, 200, 1e4])
    nodes = [helper.make_node(name, ["x"], [name]) for name in FUNCTIONS]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in FUNCTIONS]
    given = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [x.size])], outputs)
    known = helper.make_graph(nodes, "g", [], outputs, [numpy_helper.from_array(x, "x")])
    given, known = (helper.make_model(g, opset_imports=[helper.make_opsetid("", 20)], ir_version=9) for g in (given, known))
    right = onnxruntime.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    for name, found, wanted in zip(FUNCTIONS, relayc.compile(known, cache=False)["main"](), right, strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-7, err_msg=name)  # its Sigmoid is 0 below -18


# ---- semantics that changed between operator sets -------------------------------------------------------------------------------------


def test_softmax_before_13_works_on_rows_of_a_matrix():
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    assert built(from_onnx(model_of([node], {"x": [2, 3, 4]}, opset=11))) == ["reshape", "nn_softmax", "reshape"]
    assert built(from_onnx(model_of([node], {"x": [2, 3, 4]}, opset=13))) == ["nn_softmax"]


def test_squeeze_takes_axes_as_attribute_and_as_input():
    old = helper.make_node("Squeeze", ["x"], ["y"], axes=[1])
    new = helper.make_node("Squeeze", ["x", "axes"], ["y"])
    assert result_type(from_onnx(model_of([old], {"x": [2, 1, 3]}, opset=11))) == "tensor<2x3xf32>"
    assert result_type(from_onnx(model_of([new], {"x": [2, 1, 3]}, initializers={"axes": np.array([1])}))) == "tensor<2x3xf32>"


def test_padding_by_wrapping_is_along_the_padded_axes_alone():
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap")
    mod = from_onnx(model_of([node], {"x": [0, 5]}, initializers={"pads": np.array([0, 1, 0, 2])}))
    assert result_type(mod) == "tensor<0x8xf32>" and built(mod) == ["take"]


# ---- functions and branches -----------------------------------------------------------------------------------------------------------


def test_a_model_local_function_is_inlined_with_its_attributes():
    body = [
        helper.make_node("LeakyRelu", ["a"], ["t"], name="leak"),
        helper.make_node("Neg", ["t"], ["b"], name="neg"),
    ]
    reference = body[0].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    function = helper.make_function("own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 20)], ["slope"])
    node = helper.make_node("F", ["x"], ["y"], name="call", domain="own", slope=0.5)
    model = model_of([node], {"x": [2]}, functions=[function])
    model.opset_import.append(helper.make_opsetid("own", 1))
    mod = from_onnx(model)
    assert built(mod) == ["nn_leaky_relu", "negative"]
    assert operations(mod)[0].alpha == 0.5
    assert str(operations(mod)[0].operation.location) == 'loc("call/leak")'


def test_a_model_local_function_goes_before_the_mapping_of_its_name():
    function = helper.make_function(
        "com.microsoft", "Gelu", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    model = model_of([helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")], {"x": [2]}, functions=[function])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert built(from_onnx(model)) == ["negative"]


@pytest.mark.parametrize("name", ["DynamicQuantizeLinear", "NegativeLogLikelihoodLoss", "RotaryEmbedding"])
def test_operators_without_a_mapping_go_through_their_function_body(name):
    rows = {row.name: row.through for row in supported_operators() if row.domain == ""}
    assert rows[name] == "function"


def test_a_function_body_that_depends_on_the_types_is_expanded():
    # An output that the mapping does not give.
    node = helper.make_node("Attention", ["q", "k", "v"], ["y", "", "", "scores"], name="attention")
    mod = from_onnx(model_of([node], {"q": [1, 2, 4, 8], "k": [1, 2, 6, 8], "v": [1, 2, 6, 8]}, opset=23))
    assert result_type(mod) == "tensor<1x2x4x8xf32>"
    assert {"nn_batch_matmul", "nn_softmax"} <= set(built(mod))


def test_attention_is_one_operator():
    node = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "k1", "v1"], q_num_heads=4, kv_num_heads=2, is_causal=1)
    past = {"pk": [1, 2, 5, 8], "pv": [1, 2, 5, 8]}
    mod = from_onnx(model_of([node], {"q": [1, 3, 32], "k": [1, 3, 16], "v": [1, 3, 16], **past}, opset=23))
    (attention,) = [op for op in operations(mod) if op.operation.name == "relay.nn_attention"]
    assert (attention.is_causal, attention.causal_offset, attention.query_layout, attention.key_layout) == (True, 5, "BSHD", "BHSD")
    assert result_type(mod) == "tensor<1x3x32xf32>"


@pytest.mark.parametrize(("p", "powers"), [(1, []), (2, ["sqrt"]), (3, ["power", "power"])])
def test_norms_take_powers_where_they_need_them(p, powers):
    norm = helper.make_node("GlobalLpPool", ["x"], ["y"], p=p)
    found = built(from_onnx(model_of([norm], {"x": [1, 2, 4]})))
    assert [name for name in found if name in ("sqrt", "power")] == powers


@pytest.mark.parametrize(("condition", "operator"), [(True, "exp"), (False, "log")])
def test_a_branch_with_a_known_condition_is_taken_at_import(condition, operator):
    assert built(from_onnx(branches(condition))) == [operator]


def test_a_converter_from_outside_is_used_for_its_domain():
    @converter(domain="test.outside", since=2)
    def Double(x, *more, times=2.0):
        return emit("multiply", more[-1] if more else x, constant(times, x.dtype))

    node = helper.make_node("Double", ["x", "x"], ["y"], name="twice", domain="test.outside")
    model = model_of([node], {"x": [2]})
    model.opset_import.append(helper.make_opsetid("test.outside", 2))
    try:
        mod = from_onnx(model)
    finally:
        del CONVERTERS["test.outside", "Double"]
    assert built(mod) == ["multiply"]
    assert {str(op.operation.location) for op in operations(mod)[:2]} == {'loc("twice")'}


def test_own_converters_of_a_domain_come_before_those_from_outside():
    code = """
from relayc.frontend.onnx.converters import converter, find_converter
@converter("Gelu", domain="com.microsoft")
def other(x):
    return x
print(find_converter("com.microsoft", "Gelu", 1).function.__module__)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("relayc.frontend.onnx.contrib")


@pytest.mark.parametrize(("zero", "is_one"), [([[3]], True), ([3], True), ([3, 4, 5, 6], True), ([[3, 4, 5, 6]], False)])
def test_a_product_of_integers_is_one_operator_where_zero_points_are_of_columns(zero, is_one):
    nodes = [helper.make_node("MatMulInteger", ["a", "b", "", "zero"], ["y"])]
    mod = from_onnx(
        model_of(nodes, {"a": (TensorProto.UINT8, [2, 3]), "b": (TensorProto.UINT8, [3, 4])}, initializers={"zero": np.uint8(zero)})
    )
    assert ("qnn_matmul" in built(mod)) == is_one


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, (1 << 14) - 1, 1 << 14, (1 << 63) - 1, -1])
def test_numbers_in_a_file_are_those_of_protobuf(value):
    text = onnx.OperatorSetIdProto(version=value).SerializeToString()[1:]  # behind the number of the field
    value %= 1 << 64
    assert wire._encode_varint(value) == text and wire._varint(text + b"?", 0, len(text)) == (value, len(text))


@pytest.mark.parametrize("text", [b"", b"\x80", b"\x80" * 10 + b"\x01"])
def test_numbers_in_a_file_that_have_no_end(text):
    with pytest.raises(OnnxError, match="the file is truncated or not an ONNX model"):
        wire._varint(text, 0, len(text))


@pytest.mark.parametrize("more", [0, 1])
def test_weights_of_more_than_a_limit_stay_in_the_file(more):
    model = model_of([relu()], {"x": [2]}, initializers={"w": np.zeros(wire._KEPT_BYTES + more, np.int8)})
    assert list(wire.split(model.SerializeToString())[1]) == ["w"] * more


@pytest.mark.parametrize(
    ("opset", "shape", "count", "found"), [(16, [2, 3], 3, "nn_prelu"), (6, [2, 3], 3, "nn_prelu"), (6, [3], 3, "where")]
)
def test_slopes_for_each_channel(opset, shape, count, found):
    model = model_of([helper.make_node("PRelu", ["x", "s"], ["y"])], {"x": shape, "s": [count]}, opset=opset)
    assert built(from_onnx(model))[-1] == found


def test_all_axes_may_be_dropped_that_the_program_says():
    model = model_of([helper.make_node("Squeeze", ["x", "a"], ["y"])], {"x": [1, 1], "a": (TensorProto.INT64, [2])})
    assert result_type(from_onnx(model)) == "tensor<f32>"


def test_an_axis_without_elements_stays_beside_one_that_is_resized():
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"])
    assert result_type(from_onnx(model_of([node], {"x": [0, 3]}, initializers={"scales": np.float32([1, 2])}))) == "tensor<0x6xf32>"


@pytest.mark.parametrize(
    ("opset", "count", "fits"), [(18, 2, True), (20, 2, True), (20, 4, False), (21, 2, False), (21, 4, True), (22, 4, True)]
)
def test_scales_of_a_group_norm_are_of_groups_or_channels(opset, count, fits):
    node = helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=2)
    model = model_of([node], {"x": [1, 4, 3], "s": [count]}, opset=opset)
    if fits:
        assert result_type(from_onnx(model)) == "tensor<1x4x3xf32>"
    else:
        with pytest.raises(OnnxError, match="expected"):
            from_onnx(model)


@pytest.mark.parametrize(("opset", "aligned"), [(10, "false"), (15, "false"), (16, "true"), (22, "true")])
def test_where_regions_begin_by_default(opset, aligned):
    inputs = {"x": [1, 2, 4, 4], "r": [3, 4], "b": (TensorProto.INT64, [3])}
    mod = from_onnx(model_of([helper.make_node("RoiAlign", ["x", "r", "b"], ["y"])], inputs, opset=opset))
    assert f"aligned = {aligned}" in str(mod)


@pytest.mark.parametrize(("opset", "count", "trains"), [(6, 5, True), (7, 5, True), (7, 2, True), (13, 5, True), (14, 3, False)])
def test_more_outputs_of_a_batch_norm_say_that_it_trains(opset, count, trains):
    outputs = ["y", "mean", "var", "m", "v"][:count]
    node = helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], outputs)
    model = model_of([node], {"x": [2, 4, 3], "s": [4]}, outputs=outputs, opset=opset)
    if trains:
        assert "variance" in built(from_onnx(model))
    else:
        with pytest.raises(OnnxError, match="attribute training_mode: expected 1 beside more than one output, found 0"):
            from_onnx(model)


@pytest.mark.parametrize(("dtype", "most"), [("int8", 1 << 20), ("float32", 1 << 18)])
@pytest.mark.parametrize("more", [0, 1])
def test_results_of_at_most_a_mebibyte_are_known(dtype, most, more):
    initializers = {"one": np.ones(1, dtype), "shape": np.array([most + more])}
    assert built(from_onnx(model_of([helper.make_node("Expand", ["one", "shape"], ["y"])], {}, initializers=initializers))) == (
        ["broadcast_to"] * more
    )


@pytest.mark.parametrize("more", [0, 1])
def test_results_of_at_most_64_kibibytes_are_known(more):
    initializers = {"x": np.ones((1 << 16) + more, np.int8)}
    assert built(from_onnx(model_of([helper.make_node("Neg", ["x"], ["y"])], {}, initializers=initializers))) == ["negative"] * more


@pytest.mark.parametrize(
    ("shape", "start", "step", "known"),
    [([3], -3, -1, True), ([3], -4, -1, False), ([3], -4, 1, True), ([2, 5], -2, -1, True), ([2, 5], -3, -1, False)],
)
def test_slices_from_before_the_first_element_backwards_are_left_to_the_program(shape, start, step, known):
    parts = {"x": np.arange(np.prod(shape)).reshape(shape)}
    parts |= {name: np.array([value]) for name, value in (("starts", start), ("ends", 9 * step), ("axes", 0), ("steps", step))}
    assert (built(from_onnx(model_of([helper.make_node("Slice", list(parts), ["y"])], {}, initializers=parts))) == []) == known


@pytest.mark.parametrize(
    ("inputs", "node"),
    [
        ("float[2, 3] x, float[2, 3] w", "y = Gemm<transB = 1>(x, w)"),
        ("float[2, 3] x, float[2, 3] w", "y = Gemm<transA = 1>(x, w)"),
        ("float[2, 3] x", "y = ReduceSum(x)"),
        ("float[2, 3] x", "y = ReduceMax(x)"),
        ("float[2, 3] x", "y = ArgMax(x)"),
        ("float[2, 3] x", "y = ArgMin(x)"),
        ("float[2, 3] x, int64 a = {1}", "y = CumSum(x, a)"),
        ("float[2, 3] x, int64 a = {1}", "y = CumProd(x, a)"),
        ("float[2, 3] x, int64[1] k = {2}", "y, i = TopK(x, k)"),
        ("float[2, 3] x, int64 k = {1}", "y = Trilu(x, k)"),
        ("float[2, 3] x, int64[2] s = {0, 3}", "y = Reshape(x, s)"),
        ("float[2, 3] x", "y = IsInf(x)"),
        ("float[2, 3] x", "y = Cast<to = 17>(x)"),
        ("float[2, 3] x, float8e4m3fn t", "y = CastLike(x, t)"),
        ("int32[2, 3] x, int32[3] w", "y = Mod(x, w)"),
        ("float[1, 3, 4] x, float[3] a, float[3] b, float[3] c, float[3] d", "y = BatchNormalization(x, a, b, c, d)"),
        ("float[1, 3, 4] x", "y = AveragePool<kernel_shape = [2], pads = [1, 1]>(x)"),
        ("float[1, 3, 4] x", "y = MaxPool<kernel_shape = [2], strides = [2]>(x)"),
        ("float[1, 2, 3, 4] x", "y = Attention(x, x, x)"),
        ("float[1, 1, 4, 4] x, float[1, 2, 2, 2] g", "y = GridSample(x, g)"),
        ("float[1, 2, 3] t, int64[4] s = {1, 1, 4, 4}", "y = AffineGrid(t, s)"),
        ("float[2, 8, 1] x", "y = DFT(x)"),
        ("float[1, 16, 1] x, int64 s = {4}, float[8] w", "y = STFT(x, s, w)"),
        ("float[3] x, float s", "y = QuantizeLinear<output_dtype = 17>(x, s)"),
        ("float[3, 2, 4] x, float[1, 8, 4] w, float[1, 8, 2] r", "y = LSTM<hidden_size = 2>(x, w, r)"),
        ("float[3, 2, 4] x, float[1, 6, 4] w, float[1, 6, 2] r", "y = GRU<hidden_size = 2>(x, w, r)"),
        ("float[2, 3] x, float[3] w", "y = LayerNormalization(x, w)"),
        ("float[2, 3] x", "y = LpNormalization(x)"),
        ("float[2, 3] x", "y = SplitToSequence(x)"),
        ("float[1, 1, 4, 4] x, float[4] s = {1, 1, 0.5, 0.5}", 'y = Resize<mode = "linear">(x, , s)'),
        ("float[4] x", "y = Unique(x)"),
        ("float[2, 3] x", "s = SequenceConstruct(x, x)\n y = ConcatFromSequence<axis = 0>(s)"),
        ("string[n] x", 'y = StringNormalizer<stopwords = ["a"]>(x)'),
        ("17: float[2, 8, 1] x", "y = DFT(x)"),
        ("17: float[2, 3] x", "y = ReduceMax(x)"),
        ("10: float[2, 3] x, int64[1] k = {2}", "y, i = TopK(x, k)"),
        ("8: float[1, 3, 4] x, float[3] a, float[3] b, float[3] c, float[3] d", "y = BatchNormalization(x, a, b, c, d)"),
        ("6: float[1, 3, 4] x, float[3] a, float[3] b, float[3] c, float[3] d", "y, m, v, s, t = BatchNormalization(x, a, b, c, d)"),
        ("6: float[2, 3] x", "y, m = Dropout(x)"),
        ("6: float[2, 3] x", "y = Add(x, x)"),
        ("6: float[2, 3] x", "y = Pow(x, x)"),
        ("6: float[2, 3] x, float[3, 4] w, float[2, 4] c", "y = Gemm(x, w, c)"),
    ],
)
def test_numbers_and_flags_left_out_are_those_of_the_specification(inputs, node):
    opset, _, inputs = inputs.rpartition(": ")
    text = f'<ir_version: 10, opset_import: ["" : {opset or 26}]> main ({inputs}) => (y) {{ {node} }}'
    model, stated = onnx.parser.parse_model(text), onnx.parser.parse_model(text)
    node = stated.graph.node[-1]
    given = {a.name for a in node.attribute}
    defaults = [a.default_value for a in onnx.defs.get_schema(node.op_type, int(opset or 26)).attributes.values()]
    node.attribute.extend(a for a in defaults if a.type == a.INT and a.name not in given)
    assert len(node.attribute) > len(given)
    assert str(from_onnx(model)) == str(from_onnx(stated))


# ---- models ---------------------------------------------------------------------------------------------------------------------------

LIGHT = sorted((Path(onnx.__path__[0]) / "backend/test/data/light").glob("*.onnx"))
EXPORTED = sorted((Path(__file__).parents[2] / "models").glob("*.onnx"))


@pytest.mark.parametrize("path", [*LIGHT, *EXPORTED], ids=lambda p: p.stem)
def test_models_import_and_verify(path):
    model = onnx.load(path, load_external_data=False)
    initializers = {t.name for t in model.graph.initializer}
    shapes = {i.name: [d.dim_value or 8 for d in i.type.tensor_type.shape.dim] for i in model.graph.input if i.name not in initializers}
    mod = from_onnx(path, shapes=shapes)
    assert mod.module.operation.verify()


def test_a_model_with_unfrozen_weights_computes_what_the_frozen_one_does():
    model, w = weighted()
    x = np.random.default_rng(1).standard_normal((1, 64), np.float32)
    frozen = relayc.compile(model)["main"](x)
    unfrozen = relayc.compile(from_onnx(model, freeze_params=False))["main"](x, w)
    np.testing.assert_allclose(frozen, x @ w, rtol=1e-4, atol=1e-5)  # a sum of 64 products in another order
    np.testing.assert_allclose(unfrozen, x @ w, rtol=1e-4, atol=1e-5)
