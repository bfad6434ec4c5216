"""What `from_onnx` says of models that it cannot import: one OnnxError that names the place."""

import os
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import model_of, relu, weighted

from relayc.frontend import sizes
from relayc.frontend.onnx import OnnxError, converter, from_onnx, functions
from relayc.frontend.onnx.converters import CONVERTERS
from relayc.frontend.onnx.model import external_files
from relayc.symbolic import Undecided


def message(model, **arguments):
    with pytest.raises(OnnxError) as caught:
        from_onnx(model, **arguments)
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, OnnxError)
    return str(caught.value)


# ---- files ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"\x08" + b"\x80" * 10 + b"\0", b"\x08" + b"\x80" * 11, b"\x08\x80"])
def test_a_number_of_more_than_64_bits_is_an_error(data):
    assert message(data) == "model: the file is truncated or not an ONNX model"


def test_a_field_of_another_type_than_the_graph_is_unknown():
    data = weighted(8)[0].SerializeToString()
    assert str(from_onnx(b"\x38\x01" + data)) == str(from_onnx(data))  # a number of the field of the graph


def test_a_missing_file_is_named(tmp_path):
    assert "nowhere.onnx: No such file" in message(tmp_path / "nowhere.onnx")


def test_a_directory_is_not_a_model(tmp_path):
    assert "directory" in message(tmp_path)


def test_a_fifo_is_no_model(tmp_path):
    os.mkfifo(tmp_path / "model.onnx")
    assert message(tmp_path / "model.onnx") == f"{tmp_path / 'model.onnx'}: expected a regular file"


def test_an_empty_file_is_named(tmp_path):
    path = tmp_path / "empty.onnx"
    path.touch()
    assert message(path) == f"{path}: the file is empty"


def test_every_truncation_of_a_file_is_one_error():
    data = weighted(32)[0].SerializeToString()
    for length in [*range(0, 200), *range(200, len(data), 97)]:
        message(data[:length])


def test_corrupt_bytes_never_escape_as_another_error():
    data = bytearray(weighted(8)[0].SerializeToString())
    rng = np.random.default_rng(0)
    for position in rng.permutation(len(data))[:300]:
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        try:
            from_onnx(bytes(damaged))
        except OnnxError:
            continue


def test_text_is_not_a_model(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_text("This is not a model, but it is long enough to look like one.\n" * 20)
    assert str(path) in message(path)


def test_a_graph_without_operator_sets_is_invalid():
    model = model_of([relu()], {"x": [2]})
    del model.opset_import[:]
    for version in (model.ir_version, 3):
        model.ir_version = version
        assert "expected an operator set version, found none" in message(model)
    for version in (2, 1):  # which know but one
        model.ir_version = version
        assert from_onnx(model) is not None
    model.ir_version = 0
    assert "expected an IR version, found 0" in message(model)


@pytest.mark.parametrize("opset", [-1, 1000])
def test_operator_sets_outside_the_range_are_named(opset):
    assert f"found {opset}" in message(model_of([relu()], {"x": [2]}, opset=opset))


def test_missing_external_data_names_initializer_and_file(tmp_path):
    onnx.save(weighted()[0], tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").unlink()
    assert "initializer w: external data 'm.data': no such file" in message(tmp_path / "m.onnx")


def test_external_data_that_is_too_short_is_an_error(tmp_path):
    onnx.save(weighted()[0], tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").write_bytes(b"short")
    assert "found a file of 5 bytes" in message(tmp_path / "m.onnx")


@pytest.mark.parametrize(("location", "expected"), [("../m.data", "expected a file inside"), ("m\0data", "expected the name of a file")])
def test_external_data_that_is_no_file_of_the_directory_is_refused(location, expected, tmp_path):
    (tmp_path / "inside").mkdir()
    model = weighted()[0]
    onnx.save(model, tmp_path / "inside/m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    model = onnx.load(tmp_path / "inside/m.onnx", load_external_data=False)
    next(e for e in model.graph.initializer[0].external_data if e.key == "location").value = location
    (tmp_path / "inside/m.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "inside/m.data").rename(tmp_path / "m.data")
    assert f"external data {location!r}: {expected}" in message(tmp_path / "inside/m.onnx")


def test_an_initializer_of_the_wrong_size_is_an_error():
    model = weighted()[0]
    model.graph.initializer[0].dims[1] = 63
    assert "initializer w: expected 16128 bytes for float32[64, 63], found 16384" in message(model)


# ---- inputs ---------------------------------------------------------------------------------------------------------------------------


def test_an_input_of_unknown_rank_needs_a_shape():
    found = message(model_of([relu()], {"x": None, "z": None}))
    assert "expected inputs with a number of dimensions, found input x (any shape); input z (any shape)" in found
    assert 'shapes={"x": [...]}' in found


@pytest.mark.parametrize("shape", [[2], [2, 4], [2, -3]])
def test_a_shape_that_contradicts_the_model_is_an_error(shape):
    assert "input x: expected" in message(model_of([relu()], {"x": ["n", 3]}), shapes={"x": shape})


def test_a_symbol_with_two_sizes_is_an_error():
    add = helper.make_node("Add", ["x", "z"], ["y"])
    found = message(model_of([add], {"x": ["n"], "z": ["n"]}), shapes={"x": [2], "z": [3]})
    assert "input z: expected n = 2 as in another input, found 3" in found


def test_a_shape_for_an_unknown_input_is_an_error():
    assert "expected names of inputs (x), found z" in message(model_of([relu()], {"x": [2]}), shapes={"z": [2]})


@pytest.mark.parametrize("shapes", [[2], {"x": 2}, {"x": "2"}, {"x": [float("nan")]}, {"x": ["a b"]}, {"x": ["-1"]}])
def test_shapes_of_other_forms(shapes):
    assert message(model_of([relu()], {"x": ["n"]}), shapes=shapes).startswith("shapes: ")


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ({"m": 2}, "dims: expected names of dimensions (n, past, seq), found m"),
        ({"n": -1}, "dims: n: expected a size of 0 to"),
        ({"n": (5, 2)}, "dims: n: expected a size of 0 to"),
        ({"n": 2.5}, "dims: n: expected a size of 0 to"),
        ({"n": True}, "dims: n: expected a size of 0 to"),
        ([4], "dims: expected a mapping of names of dimensions, found [4]"),
    ],
)
def test_sizes_of_dimensions_that_are_wrong(dims, expected):
    assert expected in message(model_of([relu()], {"x": ["n", "past + seq"], "p": ["past"], "s": ["seq"]}), dims=dims)


@pytest.mark.parametrize(
    ("shapes", "dims", "expected"),
    [
        ({"x": [2, 3]}, {"n": 3}, "dims: n: expected 2, as shapes has it, found 3"),
        ({"x": [2, 3]}, {"n": (3, 8)}, "dims: n: expected 2, as shapes has it, found (3, 8)"),
        ({"x": [2, 7], "p": [4]}, {"seq": 2}, "shapes: input x: expected past + seq = 6, found 7"),
        ({"x": [2, 7], "p": [9]}, {}, "shapes: input x: expected a size past + seq, found 7, which no seq gives"),
        ({"p": ["seq - 8"]}, {"seq": 4}, "input p: shape: expected dimensions of 0 or more, found [-4]"),
    ],
)
def test_shapes_and_sizes_that_contradict_each_other(shapes, dims, expected):
    model = model_of([relu()], {"x": ["n", "past + seq"], "p": ["past"], "s": ["seq"]})
    assert expected in message(model, shapes=shapes, dims=dims)


def test_a_size_that_is_no_multiple_of_its_symbol_is_not_solved():
    mod = from_onnx(model_of([relu()], {"x": ["n*n + n"], "p": ["n"]}), shapes={"x": [6]})
    assert '(%arg0: tensor<6xf32> {relay.name = "x"}, %arg1: tensor<?xf32, ["n"]>' in str(mod)


def test_an_input_of_an_unknown_type_is_an_error():
    assert "input x: expected an element type among" in message(model_of([relu()], {"x": (TensorProto.COMPLEX64, [2])}))


# ---- nodes ----------------------------------------------------------------------------------------------------------------------------


def test_every_unsupported_operator_is_listed_once_with_its_first_node():
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"], name="first"),
        helper.make_node("Mystery", ["x"], ["b"], name="second"),
        helper.make_node("Frobnicate", ["x"], ["y"], domain="own"),
    ]
    model = model_of(nodes, {"x": [2]}, opset=13)
    model.opset_import.append(helper.make_opsetid("own", 3))
    found = message(model)
    assert "2 operator(s)" in found
    assert "Mystery (opset 13), first in node 'first'" in found
    assert "own.Frobnicate (opset 3), first in node 'Frobnicate#2'" in found


def test_unsupported_operators_of_every_overload_of_a_function_are_listed():
    imports = [helper.make_opsetid("", 20)]
    bodies = {"first": "Mystery", "second": "Frobnicate"}
    functions = [
        helper.make_function("own", "F", ["a"], ["b"], [helper.make_node(op_type, ["a"], ["b"])], imports, overload=overload)
        for overload, op_type in bodies.items()
    ]
    nodes = [
        helper.make_node("F", [given], [made], domain="own", overload=o) for given, made, o in (("x", "m", "first"), ("m", "y", "second"))
    ]
    model = model_of(nodes, {"x": [2]}, functions=functions)
    model.opset_import.append(helper.make_opsetid("own", 1))
    found = message(model)
    assert all(f"{op_type} (opset 20)" in found for op_type in bodies.values())


def test_a_number_of_dimensions_that_depends_on_an_input_names_node_and_input():
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="flatten")
    found = message(model_of([node], {"x": [2, 3], "s": (TensorProto.INT64, ["rank"])}))
    assert "node 'flatten' (Reshape, opset 20): input shape: expected as many elements as is known at import" in found


def test_axes_of_which_not_even_the_number_is_known_name_node_and_input():
    node = helper.make_node("Squeeze", ["x", "s"], ["y"], name="flatten")
    found = message(model_of([node], {"x": [2, 3], "s": (TensorProto.INT64, ["n"])}))
    assert "node 'flatten' (Squeeze, opset 20): input axes: expected as many axes as is known at import, found n" in found


def test_a_body_of_other_inputs_is_an_error():
    body = helper.make_graph([], "body", [], [onnx.ValueInfoProto(name="x")])
    found = message(model_of([helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)], {"x": [2, 3]}))
    assert "subgraph 'body': expected 1 inputs, found 0" in found


def test_types_that_do_not_fit_name_the_node():
    node = helper.make_node("Add", ["x", "z"], ["y"], name="sum")
    found = message(model_of([node], {"x": [2, 3], "z": [4]}))
    assert "node 'sum' (Add, opset 20)" in found


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (helper.make_node("Relu", ["x"], ["y"], slope=1.0), "expected attributes among none, found slope"),
        (helper.make_node("Concat", ["x"], ["y"]), "expected attribute axis, found none"),
        (helper.make_node("Elu", ["x"], ["y"], alpha="big"), "attribute alpha: expected float, found str"),
        (helper.make_node("Relu", ["x", "x"], ["y"]), "expected at most 1 input(s)"),
        (helper.make_node("Add", ["x"], ["y"]), "expected input b, found none"),
        (helper.make_node("Relu", ["x"], ["y", "z"]), "expected at most 1 output(s), found 2 in use"),
    ],
    ids=["attribute", "missing attribute", "attribute type", "inputs", "missing input", "outputs"],
)
def test_a_node_that_breaks_its_signature_is_an_error(node, expected):
    assert expected in message(model_of([node], {"x": [2]}))


def test_products_of_scalars_are_refused():
    found = message(model_of([helper.make_node("MatMul", ["x", "z"], ["y"])], {"x": [2, 2], "z": []}))
    assert "expected inputs of rank 1 or more, found [2, 2] and []" in found


def test_frames_are_of_signals_of_three_axes():
    node = helper.make_node("STFT", ["x", "step", "window"], ["y"])
    initializers = {"step": np.array(2), "window": np.ones(4, np.float32)}
    assert "input signal: expected [batch, length, 1 or 2], found [2, 3, 8, 1]" in message(
        model_of([node], {"x": [2, 3, 8, 1]}, initializers=initializers)
    )


def test_strides_have_a_limit():
    def pool(stride):
        return model_of([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[stride])], {"x": [1, 1, 4]})

    from_onnx(pool(2**31 - 1))
    assert "attribute strides: expected values of at most 2147483647, found [2147483648]" in message(pool(2**31))


def test_an_attribute_without_a_type_is_an_error():
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)
    node.attribute[0].type = onnx.AttributeProto.UNDEFINED
    assert "attribute keepdims: expected 0 or 1, found None" in message(model_of([node], {"x": [2]}))


def test_a_node_that_reads_a_value_nobody_makes_is_invalid():
    assert "inputs of node Abs#0 (Abs) that an earlier node makes, found ghost" in message(
        model_of([helper.make_node("Abs", ["ghost"], ["y"])], {"x": [2]})
    )


def test_a_value_made_twice_is_invalid():
    assert "found y" in message(model_of([relu(), relu()], {"x": [2]}))


# ---- arguments ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"dims": "n"}, "dims: expected a mapping of names of dimensions, found 'n'"),
        ({"dims": {"n": 2, "n (": 3}}, "dims: expected names of dimensions"),
        ({"dims": {"my size": 2, "my_size": 3}}, "dims: my_size: expected one size, found 2 and 3"),
        ({"dtypes": "uint8"}, "dtypes: expected a mapping of names of inputs, found 'uint8'"),
        ({"dtypes": {"x": "int7"}}, "dtypes: input x: expected one of"),
        ({"dtypes": {"s": "uint8"}}, "dtypes: input s: expected a tensor, found seq(float32)"),
        ({"dtypes": {"z": "uint8"}}, "dtypes: expected names of inputs"),
    ],
)
def test_arguments_that_do_not_fit_the_inputs(arguments, expected):
    model = model_of([relu()], {"x": ["n", "my size"]})
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"]))
    model.graph.input.append(helper.make_value_info("s", sequence))
    assert expected in message(model, **arguments)


def test_a_model_of_another_type_is_an_error():
    with pytest.raises(TypeError, match=r"model: expected a path, bytes or onnx\.ModelProto, found int"):
        from_onnx(3)


# ---- sizes ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([2**40, 2**40], f"input x: shape: expected at most {2**47} bytes, found {2**82}"),
        ([2**63 - 1], f"input x: shape: expected at most {2**47} bytes"),
        ([2, -3], "input x: shape: expected dimensions of 0 or more, found [2, -3]"),
    ],
)
def test_what_no_memory_can_hold_is_an_error(shape, expected):
    assert expected in message(model_of([relu()], {"x": shape}))


def test_a_result_that_no_memory_can_hold_names_the_node():
    tile = helper.make_node("Tile", ["x", "n"], ["y"], name="many")
    found = message(model_of([tile], {"x": [2]}, initializers={"n": np.array([2**60])}))
    assert "node 'many' (Tile" in found and f"expected at most {2**47} bytes" in found


def test_a_constant_of_an_absurd_size_is_not_made():
    shape, length = np.array([2**34]), np.array(2**40)
    filled = helper.make_node("ConstantOfShape", ["n"], ["y"], name="filled")
    assert "node 'filled'" in message(model_of([filled], {}, initializers={"n": shape}))
    counted = helper.make_node("Range", ["zero", "n", "one"], ["y"], name="counted")
    numbers = {"zero": np.array(0), "n": length, "one": np.array(1)}
    assert "node 'counted'" in message(model_of([counted], {}, initializers=numbers))


@pytest.mark.parametrize("limit", [np.inf, np.nan])
def test_a_range_without_an_end_is_an_error(limit):
    numbers = {name: np.float32(value) for name, value in (("zero", 0), ("n", limit), ("one", 1))}
    node = helper.make_node("Range", ["zero", "n", "one"], ["y"])
    assert "expected finite numbers, found start 0.0, limit" in message(model_of([node], {}, initializers=numbers))


# ---- attributes and data --------------------------------------------------------------------------------------------------------------


def test_a_flag_is_0_or_1():
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=2)
    assert "attribute keepdims: expected 0 or 1, found 2" in message(model_of([node], {"x": [2]}))


@pytest.mark.parametrize("offset", ["-1", "nonsense", str(10**18), str(10**19)])
def test_an_offset_of_external_data_is_a_number_of_bytes(offset, tmp_path):
    onnx.save(weighted()[0], tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    next(e for e in model.graph.initializer[0].external_data if e.key == "offset").value = offset
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    wanted = f"expected bytes {offset} to" if offset == str(10**18) else f"offset: expected a number of bytes, found '{offset}'"
    assert f"external data 'm.data': {wanted}" in message(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"data_type": TensorProto.STRING}, "initializer w: expected strings in the model, found external data"),
        ({"dims": [3]}, "external data 'm.data': expected 12 bytes for float32[3], found length 16"),
        ({"dims": [2**60]}, f"initializer w: shape: expected at most {2**47} bytes"),
    ],
)
def test_external_data_of_another_type_is_an_error(fields, expected, tmp_path):
    np.arange(4, dtype=np.float32).tofile(tmp_path / "m.data")
    tensor = TensorProto(name="w", **{"dims": [4], "data_type": TensorProto.FLOAT, "data_location": TensorProto.EXTERNAL} | fields)
    tensor.external_data.add(key="location", value="m.data")
    tensor.external_data.add(key="length", value="16")
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], {})
    model.graph.initializer.append(tensor)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert expected in message(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (weighted(8)[0].SerializeToString()[:-9], "m.onnx: byte 2: a field that reaches past the end"),
        (b"\x72\x02\xff\xff", "m.onnx: the file is truncated or not an ONNX model"),
        (b"", "m.onnx: the file is empty"),
    ],
)
def test_the_external_files_of_what_is_no_model(data, expected, tmp_path):
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(OnnxError, match=expected):
        external_files(tmp_path / "m.onnx")


def test_external_data_of_an_attribute_is_looked_for_beside_the_model(tmp_path, monkeypatch):
    np.arange(4, dtype=np.float32).tofile(tmp_path / "c.data")
    tensor = TensorProto(dims=[4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="c.data")
    model = model_of([helper.make_node("Constant", [], ["c"], value=tensor), helper.make_node("Add", ["x", "c"], ["y"])], {"x": [4]})
    monkeypatch.chdir(tmp_path)
    assert "attribute value: external data 'c.data': expected a model given by its path" in message(model)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    from_onnx(tmp_path / "m.onnx")


def test_a_reference_to_an_attribute_outside_of_a_function_is_an_error():
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)
    node.attribute[0].ref_attr_name = "kept"
    assert "attribute keepdims: expected a value, as the node is not in a function's body" in message(model_of([node], {"x": [2]}))


def test_inputs_of_different_ranks_are_not_joined():
    node = helper.make_node("Concat", ["x", "z"], ["y"], axis=1)
    found = message(model_of([node], {"x": [2, 3], "z": [2]}))
    assert "differ in the size of axis 1 alone, found tensor<2x3xf32>, tensor<2xf32>" in found


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (KeyError("nothing"), OnnxError, "the converter failed with KeyError: 'nothing'"),
        (MemoryError("none"), MemoryError, "none"),
        (Undecided("n > 2"), OnnxError, "expected sizes of which more is known, found an open question: n > 2"),
    ],
)
def test_a_fault_of_a_converter_names_the_node(fault, kind, text):
    @converter("Faulty", domain="test")
    def faulty(x):
        raise fault

    try:
        node = helper.make_node("Faulty", ["x"], ["y"], domain="test", name="here")
        model = model_of([node], {"x": [2]})
        model.opset_import.append(helper.make_opsetid("test", 1))
        with pytest.raises(kind, match=rf"node 'here' \(test.Faulty, opset 1\): {text}") as caught:
            from_onnx(model)
        assert isinstance(caught.value.__cause__, KeyError) == isinstance(fault, KeyError)
    finally:
        del CONVERTERS["test", "Faulty"]


def test_a_number_that_the_element_type_does_not_have_is_an_error():
    node = helper.make_node("Shrink", ["x"], ["y"], lambd=1.0)
    assert "expected a number of type uint32, found -1" in message(model_of([node], {"x": (TensorProto.UINT32, [2])}))


@pytest.mark.parametrize(("weights", "offset"), [([1, 1, 2], [1, 8, 2, 2]), ([1, 1, 2, 2], [1, 8, 2])])
def test_operands_of_a_deformed_convolution_have_the_rank_of_the_image(weights, offset):
    node = helper.make_node("DeformConv", ["x", "w", "offset"], ["y"])
    found = message(model_of([node], {"x": [1, 1, 3, 3], "w": weights, "offset": offset}))
    assert f"inputs W and offset: expected rank 4 as X has, found {weights} and {offset}" in found


# ---- calls of functions ---------------------------------------------------------------------------------------------------------------


def calling(functions, **attributes):
    """y = F0(x), where a function consists of the nodes that its operators say, one after the other; calls have attributes."""
    made = []
    for name, operators in functions.items():
        names = ["a", *(f"t{i}" for i in range(len(operators) - 1)), "b"]
        nodes = [
            helper.make_node(op, [names[i]], [names[i + 1]], **({"domain": "own"} | attributes if op in functions else {}))
            for i, op in enumerate(operators)
        ]
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
        made.append(helper.make_function("own", name, ["a"], ["b"], nodes, opsets))
    model = model_of([helper.make_node("F0", ["x"], ["y"], domain="own")], {"x": [2]}, functions=made)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def test_functions_that_call_each_other_twice_are_an_error_at_once():
    model = calling({**{f"F{i}": [f"F{i + 1}"] * 2 for i in range(40)}, "F40": ["Neg"]})
    assert message(model) == "model: function 'F23': expected at most 100000 nodes with all calls of functions expanded, found 131072"


def test_a_function_that_calls_itself_is_an_error():
    found = message(calling({"F0": ["Neg", "F1"], "F1": ["F0"]}))
    assert found == "model: function 'F0': expected functions that do not call themselves, found one that does"


def test_functions_call_each_other_a_hundred_deep():
    assert from_onnx(calling({**{f"F{i}": [f"F{i + 1}"] for i in range(99)}, "F99": ["Neg"]}))
    for attributes in ({}, {"alpha": 1}):
        found = message(calling({**{f"F{i}": [f"F{i + 1}"] for i in range(2000)}, "F2000": ["Neg"]}, **attributes))
        assert found.endswith("expected at most 100 calls of functions in one another, found more")


def test_nodes_of_functions_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(functions, "MOST_NODES", 4)
    assert from_onnx(calling({"F0": ["Neg", "F1", "F1"], "F1": ["Neg"]} | {"F2": ["Neg"] * 9}))
    assert "function 'F0': expected at most 4 nodes" in message(calling({"F0": ["Neg"] * 5}))
    model = calling({"F0": ["Neg"] * 4})
    assert from_onnx(model)
    model.graph.node.append(helper.make_node("Neg", ["y"], ["z"]))
    assert "graph: expected at most 4 nodes with all calls of functions expanded, found 5" in message(model)


def test_functions_of_one_name_in_two_domains_are_both_looked_into():
    opsets = [helper.make_opsetid("", 20)]
    known = helper.make_function("first", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opsets)
    unknown = helper.make_function("second", "F", ["a"], ["b"], [helper.make_node("Mystery", ["a"], ["b"], name="inner")], opsets)
    nodes = [helper.make_node("F", ["x"], ["h"], domain="first"), helper.make_node("F", ["h"], ["y"], domain="second", name="outer")]
    model = model_of(nodes, {"x": [2]}, functions=[known, unknown])
    model.opset_import.extend([helper.make_opsetid("first", 1), helper.make_opsetid("second", 1)])
    assert "Mystery (opset 20), first in node 'outer/inner'" in message(model)


def test_a_node_that_its_schema_has_no_body_for(monkeypatch):
    def refuse(*arguments):
        raise ValueError("rank 9")

    schema = SimpleNamespace(
        function_opset_versions=[],
        context_dependent_function_opset_versions=[1],
        get_context_dependent_function_with_opset_version=refuse,
    )
    monkeypatch.setattr(functions, "_schema", lambda domain, name, opset: schema)
    with pytest.raises(OnnxError, match="expected a node for which the operator's schema gives a function body, found another: rank 9"):
        functions.schema_function(helper.make_node("Own", ["x"], ["y"]), "", 20, [None])


def test_splits_that_are_none():
    model = model_of([helper.make_node("Split", ["x"], [])], {"x": [4]}, outputs=["x"])
    assert "node 'Split#0' (Split, opset 20): expected an output, found none" in message(model)
    node = helper.make_node("Split", ["x", "sizes"], ["y", "z"])
    model = model_of([node], {}, initializers={"x": np.arange(6), "sizes": np.array([2, 3])})
    assert "split: expected sizes that add up to 6, found [2, 3]" in message(model)
    assert from_onnx(model_of([node], {"x": [6]}, initializers={"sizes": np.array([0, 6])}))
    assert "split: expected sizes that add up to 6, found [7, -1]" in message(
        model_of([node], {"x": [6]}, initializers={"sizes": np.array([7, -1])})
    )


@pytest.mark.parametrize("number", [1.5, np.inf])
def test_a_count_of_copies_is_a_whole_number(number):
    parts = {"tiles": np.float32(number), "axis": np.float32(0)}
    model = model_of([helper.make_node("Tile", ["x", *parts], ["y"])], {"x": [2]}, initializers=parts, opset=5)
    assert f"input tiles: expected a whole number, found {number}" in message(model)


def test_more_sizes_than_a_limit_are_an_error(monkeypatch):
    monkeypatch.setattr(sizes, "MOST_SIZES", 3)
    for count, fits in ((3, True), (4, False)):
        model = model_of([helper.make_node("ConstantOfShape", ["s"], ["y"])], {"s": (TensorProto.INT64, [count])})
        if fits:
            assert from_onnx(model)
        else:
            assert "input input: expected at most 3 elements, found tensor<4xi64>" in message(model)
