"""Maps as inputs of a model, against ONNX Runtime, which takes those to float32 from Python."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relayc
from relayc.frontend.onnx import OnnxError
from relayc.pipelines.driver import compile_cache
from relayc.tools.inputs import random_inputs, tensors_of

DOMAIN = "ai.onnx.ml"
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64, "string": TensorProto.STRING}
WORDS = {"b": 1.5, "a": -2.0, "not known": 7.0}
POSITIONS = {4: 1.5, 0: -3.25, 2: 1e10}


FLOATS, INTEGERS = (helper.make_tensor_type_proto(dtype, []) for dtype in (TensorProto.FLOAT, TensorProto.INT32))


def map_type(keys, values):
    return helper.make_map_type_proto(TYPES[keys], helper.make_tensor_type_proto(TYPES[values], []))


def model_of(keys, values, op_type, wrap=None, **attrs):
    """One node on a map; `wrap` is what stands around the type of the input."""
    type_ = map_type(keys, values) if wrap is None else wrap(map_type(keys, values))
    node = helper.make_node(op_type, ["x"], ["y"], domain=DOMAIN, **attrs)
    graph = helper.make_graph([node], "maps", [onnx.ValueInfoProto(name="x", type=type_)], [onnx.ValueInfoProto(name="y")])
    return model_from(graph)


def of_type(type_):
    """The identity of a value of a type."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return helper.make_graph([node], "maps", [onnx.ValueInfoProto(name="x", type=type_)], [onnx.ValueInfoProto(name="y")])


def model_from(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 3)], ir_version=9)


def same(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def agree(model, given):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    module = relayc.compile(model)
    same(module["main"](given), session.run(None, {"x": given})[0])
    return module


def test_vectors_of_words():
    vocabulary = ["c", "b", "a", "b"]
    module = agree(model_of("string", "float32", "DictVectorizer", string_vocabulary=vocabulary), WORDS)
    assert str(module.inputs[0]) == "map(string, float32)"
    same(module["main"]({}), np.zeros((1, 4), np.float32))
    same(module.run({"x": {"a": np.float64(0.1), "c": np.int32(3)}})["y"], np.array([[3, 0, 0.1, 0]], np.float32))


def test_vectors_of_numbers():
    agree(model_of("int64", "float32", "DictVectorizer", int64_vocabulary=[2, -9, 0]), POSITIONS | {np.int64(-9): 2})


@pytest.mark.parametrize(
    ("keys", "values", "given", "expected"),
    [
        ("string", "int64", {"p": 2**62, "q": -1}, np.array([[0, 2**62]])),
        ("int64", "float64", {8: 0.1, 1: 5}, np.array([[0, 0.1]])),
        ("int64", "string", {8: "there"}, np.array([["", "there"]], object)),
        ("string", "string", {"p": "r", "r": "p"}, np.array([["p", "r"]], object)),
    ],
)
def test_vectors_of_other_values(keys, values, given, expected):
    vocabulary = {"string_vocabulary": ["r", "p"]} if keys == "string" else {"int64_vocabulary": [7, 8]}
    same(relayc.compile(model_of(keys, values, "DictVectorizer", **vocabulary))["main"](given), expected)


@pytest.mark.parametrize("cast_to", ["TO_FLOAT", "TO_INT64"])
def test_casts(cast_to):
    module = agree(model_of("int64", "float32", "CastMap", cast_to=cast_to), POSITIONS | {-1: 0.5})
    assert module["main"]({}).shape == (1, 0)
    module = agree(model_of("int64", "float32", "CastMap", cast_to=cast_to, map_form="SPARSE", max_map=6), POSITIONS)
    assert module["main"]({}).tolist() == [[0] * 6]


def test_casts_from_and_to_strings():
    texts = {3: "2.5", 0: "-7"}
    for form, expected in (("DENSE", [[-7, 2.5]]), ("SPARSE", [[-7, 0, 0, 2.5]])):
        options = {"map_form": form, "max_map": 4}
        to_float = relayc.compile(model_of("int64", "string", "CastMap", cast_to="TO_FLOAT", **options))
        same(to_float["main"](texts), np.array(expected, np.float32))
        to_string = relayc.compile(model_of("int64", "float32", "CastMap", cast_to="TO_STRING", **options))
        same(to_string["main"]({0: -7, 3: 2.5}), np.array([[f"{v:g}" for v in expected[0]]], object))
    kept = relayc.compile(model_of("int64", "string", "CastMap", cast_to="TO_STRING"))
    same(kept["main"](texts), np.array([["-7", "2.5"]], object))


@pytest.mark.parametrize(("key", "size"), [(-1, 5), (5, 5), (1, 1)])
def test_keys_that_are_no_positions(key, size):
    module = relayc.compile(model_of("int64", "float32", "CastMap", map_form="SPARSE", max_map=size))
    with pytest.raises(IndexError, match=rf"CastMap.*expected keys of a map in \[0, {size - 1}\], found {key}"):
        module["main"]({key: 1.0, 0: 1.0})


@pytest.mark.parametrize(
    ("keys", "values", "given", "kind", "found"),
    [
        ("string", "float32", [("a", 1.0)], TypeError, "found a value of type list"),
        ("string", "float32", {1: 1.0}, TypeError, "found a key 1 of type int"),
        ("string", "float32", {"a": "x"}, TypeError, "found a value 'x' of type str"),
        ("string", "float32", {"a": True}, TypeError, "found a value True of type bool"),
        ("string", "int64", {"a": 1.0}, TypeError, "found a value 1.0 of type float"),
        ("string", "string", {"a": None}, TypeError, "found a value None of type NoneType"),
        ("int64", "float32", {"a": 1.0}, TypeError, "found a key 'a' of type str"),
        ("int64", "float32", {2**63: 1.0}, ValueError, "found a key that int64 does not have"),
    ],
)
def test_arguments_that_do_not_fit(keys, values, given, kind, found):
    vocabulary = {"string_vocabulary": ["a"]} if keys == "string" else {"int64_vocabulary": [1]}
    module = relayc.compile(model_of(keys, values, "DictVectorizer", **vocabulary))
    with pytest.raises(kind, match=rf"'x'.*map\({keys}, {values}\).*{found}"):
        module["main"](given)


def test_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setattr(compile_cache, "_sources_are_loaded", lambda: True)  # also while someone edits them
    modules = [relayc.compile(model_of("int64", "string", "CastMap", cast_to="TO_INT64")) for _ in range(2)]
    assert ["cache" in module.stats for module in modules] == [False, True]
    for module in modules:
        same(module["main"]({9: "3", -2: "8"}), np.array([[8, 3]]))


def test_random_maps():
    for keys, values, attrs in (
        ("string", "float32", {"string_vocabulary": ["1"]}),
        ("int64", "string", {"int64_vocabulary": [1]}),
    ):
        module = relayc.compile(model_of(keys, values, "DictVectorizer", **attrs))
        given = random_inputs(module.inputs)
        assert len(given["x"]) == 2
        assert module.run(given)["y"].shape == (1, 1)


def test_a_map_that_is_a_result():
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "maps",
        [onnx.ValueInfoProto(name="x", type=map_type("string", "int64"))],
        [onnx.ValueInfoProto(name="y", type=map_type("string", "int64"))],
    )
    module = relayc.compile(model_from(graph))
    found = module.run({"x": {"a": 3, "b": 4}})
    assert found == {"y": {"a": 3, "b": 4}}
    assert {name: int(array) for name, array in tensors_of(found).items()} == {"y.a": 3, "y.b": 4}


def branches(make):
    """A model that takes a branch of If, in which `make` says what a node makes of the map x."""
    inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, []), onnx.ValueInfoProto(name="x", type=map_type("int64", "float32"))]
    bodies = [helper.make_graph([make(name)], name, [], [onnx.ValueInfoProto(name=name)]) for name in ("p", "q")]
    node = helper.make_node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1])
    return model_from(helper.make_graph([node], "maps", inputs, [onnx.ValueInfoProto(name="y")]))


def test_branches_that_use_a_map():
    module = relayc.compile(branches(lambda name: helper.make_node("CastMap", ["x"], [name], domain=DOMAIN)))
    for condition in (True, False):
        same(module["main"](np.array(condition), {2: 5.0, 1: 3.0}), np.array([[3, 5]], np.float32))


MAP = r"map\(int64, float32\)"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (branches(lambda name: helper.make_node("Identity", ["x"], [name])), f"expected a tensor, a sequence or .* found {MAP}"),
        (model_of("int64", "float32", "CastMap", helper.make_sequence_type_proto), "input x: .*found sequence of map"),
        (model_of("int64", "float32", "CastMap", helper.make_optional_type_proto), f"input x: .*found {MAP}"),
        (
            model_from(of_type(helper.make_map_type_proto(TensorProto.INT64, helper.make_sequence_type_proto(FLOATS)))),
            "input x: expected a map of single values, found one of sequence",
        ),
        (
            model_from(of_type(helper.make_map_type_proto(TensorProto.INT32, FLOATS))),
            r"input x: expected a map from int64 or string to one of float32, float64, int64, string, found map\(int32, float32\)",
        ),
        (model_from(of_type(helper.make_map_type_proto(TensorProto.INT64, INTEGERS))), r"found map\(int64, int32\)"),
        (model_of("string", "float32", "CastMap"), r"input X: expected a map from int64, found map\(string"),
        (model_of("int64", "float32", "DictVectorizer", string_vocabulary=["a"]), f"input X: expected a map from string, found {MAP}"),
        (model_of("int64", "float32", "DictVectorizer"), "int64_vocabulary or string_vocabulary"),
        (model_of("int64", "float32", "CastMap", map_form="OTHER"), "map_form: expected DENSE or SPARSE"),
        (model_of("int64", "float32", "CastMap", cast_to="TO_BOOL"), "cast_to: expected one of"),
        (model_of("int64", "float32", "CastMap", map_form="SPARSE", max_map=0), "max_map: expected 1 or more"),
        (model_of("int64", "float32", "Scaler", scale=[1.0], offset=[0.0]), f"expected inputs that are tensors, found {MAP}"),
    ],
)
def test_models_that_are_refused(model, message):
    with pytest.raises(OnnxError, match=message):
        relayc.compile(model)


def test_a_loop_that_carries_a_map():
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Identity", ["m"], ["o"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            onnx.ValueInfoProto(name="m", type=map_type("int64", "float32")),
        ],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []), onnx.ValueInfoProto(name="o", type=map_type("int64", "float32"))],
    )
    inputs = [helper.make_tensor_value_info("n", TensorProto.INT64, []), onnx.ValueInfoProto(name="x", type=map_type("int64", "float32"))]
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    with pytest.raises(OnnxError, match=f"expected a tensor, a sequence or an optional value, found {MAP}"):
        relayc.compile(model_from(helper.make_graph([loop], "maps", inputs, [onnx.ValueInfoProto(name="y")])))
