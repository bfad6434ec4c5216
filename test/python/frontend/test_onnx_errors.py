"""What `from_onnx` says of models that it cannot import: one OnnxError that names the place."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import model_of, relu, weighted

from relayc.frontend.onnx import OnnxError, from_onnx


def message(model, **arguments):
    with pytest.raises(OnnxError) as caught:
        from_onnx(model, **arguments)
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, OnnxError)
    return str(caught.value)


# ---- files ----------------------------------------------------------------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path):
    assert "nowhere.onnx: No such file" in message(tmp_path / "nowhere.onnx")


def test_a_directory_is_not_a_model(tmp_path):
    assert "directory" in message(tmp_path)


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
    assert "expected an operator set version, found none" in message(model)


@pytest.mark.parametrize("opset", [6, 1000])
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


def test_external_data_outside_the_directory_is_refused(tmp_path):
    (tmp_path / "inside").mkdir()
    model = weighted()[0]
    onnx.save(model, tmp_path / "inside/m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    model = onnx.load(tmp_path / "inside/m.onnx", load_external_data=False)
    next(e for e in model.graph.initializer[0].external_data if e.key == "location").value = "../m.data"
    (tmp_path / "inside/m.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "inside/m.data").rename(tmp_path / "m.data")
    assert "expected a file inside" in message(tmp_path / "inside/m.onnx")


def test_an_initializer_of_the_wrong_size_is_an_error():
    model = weighted()[0]
    model.graph.initializer[0].dims[1] = 63
    assert "initializer w: expected 16128 bytes for float32[64, 63], found 16384" in message(model)


# ---- inputs ---------------------------------------------------------------------------------------------------------------------------


def test_a_symbolic_dimension_without_a_size_names_input_and_dimension():
    found = message(model_of([relu()], {"x": ["batch", 3]}))
    assert "input x, dimension 0 (batch)" in found
    assert 'shapes={"x": [...]}' in found


def test_all_dimensions_without_a_size_are_named_at_once():
    found = message(model_of([relu()], {"x": ["batch", "length"], "z": [None]}))
    assert "input x, dimension 0 (batch), 1 (length); input z, dimension 0" in found


@pytest.mark.parametrize("shape", [[2], [2, 4], [2, -3]])
def test_a_shape_that_contradicts_the_model_is_an_error(shape):
    assert "input x: expected" in message(model_of([relu()], {"x": ["n", 3]}), shapes={"x": shape})


def test_a_symbol_with_two_sizes_is_an_error():
    add = helper.make_node("Add", ["x", "z"], ["y"])
    found = message(model_of([add], {"x": ["n"], "z": ["n"]}), shapes={"x": [2], "z": [3]})
    assert "input z: expected n = 2 as in another input, found 3" in found


def test_a_shape_for_an_unknown_input_is_an_error():
    assert "expected names of inputs (x), found z" in message(model_of([relu()], {"x": [2]}), shapes={"z": [2]})


@pytest.mark.parametrize("shapes", [[2], {"x": 2}, {"x": "2"}, {"x": [float("nan")]}])
def test_shapes_of_other_forms(shapes):
    assert message(model_of([relu()], {"x": ["n"]}), shapes=shapes).startswith("shapes: ")


def test_an_input_of_an_unknown_type_is_an_error():
    assert "input x: expected an element type among" in message(model_of([relu()], {"x": (TensorProto.STRING, [2])}))


# ---- nodes ----------------------------------------------------------------------------------------------------------------------------


def test_every_unsupported_operator_is_listed_once_with_its_first_node():
    nodes = [
        helper.make_node("Det", ["x"], ["a"], name="first"),
        helper.make_node("Det", ["x"], ["b"], name="second"),
        helper.make_node("Frobnicate", ["x"], ["y"], domain="own"),
    ]
    model = model_of(nodes, {"x": [2]}, opset=13)
    model.opset_import.append(helper.make_opsetid("own", 3))
    found = message(model)
    assert "2 operator(s)" in found
    assert "Det (opset 13), first in node 'first'" in found
    assert "own.Frobnicate (opset 3), first in node 'Frobnicate#2'" in found


def test_a_scan_is_refused():
    body = helper.make_graph([], "body", [], [onnx.ValueInfoProto(name="x")])
    found = message(model_of([helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)], {"x": [2, 3]}))
    assert "Scan (opset 20)" in found


def test_a_shape_that_depends_on_an_input_names_node_and_input():
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="flatten")
    found = message(model_of([node], {"x": [2, 3], "s": (TensorProto.INT64, [1])}))
    assert "node 'flatten' (Reshape, opset 20): input shape: expected a value known at import, found 's'" in found


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


def test_a_node_that_reads_a_value_nobody_makes_is_invalid():
    assert "inputs of node Abs#0 (Abs) that an earlier node makes, found ghost" in message(
        model_of([helper.make_node("Abs", ["ghost"], ["y"])], {"x": [2]})
    )


def test_a_value_made_twice_is_invalid():
    assert "found y" in message(model_of([relu(), relu()], {"x": [2]}))
