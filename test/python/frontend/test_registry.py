"""Frontends: which one takes a model, what is said of models that none takes, and one from outside the package."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import relayc
from relayc.dialects.relay import IRModule, TensorType
from relayc.frontend.converter import ModelBuilder, Tensor, at_node, constant, emit, ints, known
from relayc.frontend.registry import FRONTENDS, accepted, find_frontend
from relayc.frontend.steps import multiply, reshape
from relayc.symbolic import Range, bounds, symbol

MODEL = '<ir_version: 8, opset_import: ["" : 18]> main (float[2, 3] x) => (float[2, 3] y) { y = Relu (x) }'
DOUBLED = {
    "inputs": {"x": [2, 3]},
    "nodes": [
        {"name": "twice", "op": "scale", "by": 2, "inputs": ["x"]},
        {"name": "flat", "op": "view", "shape": [6], "inputs": ["twice"]},
        {"name": "act", "op": "nn.relu", "inputs": ["flat"]},
    ],
    "output": "act",
}


class Graph(dict):
    """A model of the toy format in Python."""


def from_toy(model, *, shapes=None, progress=None) -> IRModule:
    """Imports a toy model: JSON with inputs, nodes and an output."""
    where = "graph" if isinstance(model, Graph) else str(model)
    graph = model if isinstance(model, Graph) else json.loads(Path(model).read_text())
    types = {name: TensorType(tuple((shapes or {}).get(name, shape)), "float32") for name, shape in graph["inputs"].items()}
    with ModelBuilder(types, "toy") as builder:
        values: dict[str, Tensor] = dict(builder.inputs)
        for done, node in enumerate(graph["nodes"]):
            if progress is not None:
                progress(done, len(graph["nodes"]))
            with at_node(f"{where}: node {node['name']!r} ({node['op']})", node["name"]):
                inputs = [values[name] for name in node["inputs"]]
                if node["op"] == "scale":
                    found = multiply(inputs[0], node["by"])
                elif node["op"] == "view":
                    found = reshape(inputs[0], ints(constant(node["shape"], "int64"), "shape"))
                elif node["op"] == "repeat":
                    found = emit("repeat", inputs[0], repeats=int(known(inputs[1], "repeats")), axis=0)
                else:
                    found = emit(node["op"], *inputs)
            values[node["name"]] = found
        return builder.finish([("y", values[graph["output"]])])


@pytest.fixture
def toy() -> Iterator[None]:
    relayc.register_frontend("toy", suffixes=(".toy",), types=(Graph,))(from_toy)
    yield
    relayc.remove_frontend("toy")


@pytest.fixture
def toy_file(tmp_path) -> Path:
    path = tmp_path / "doubled.toy"
    path.write_text(json.dumps(DOUBLED))
    return path


def x() -> np.ndarray:
    return np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_a_format_from_outside_compiles_from_its_files_and_its_objects(toy, toy_file):
    expected = np.maximum(2 * x(), 0).reshape(6)
    for model in (toy_file, str(toy_file), Graph(DOUBLED)):
        module = relayc.compile(model)
        assert [*module.input_names, *module.output_names] == ["x", "y"]
        np.testing.assert_array_equal(module["main"](x()), expected)


def test_a_frontend_is_given_shapes_and_tells_how_far_it_is(toy, toy_file):
    seen = []
    mod = relayc.import_model(toy_file, shapes={"x": [3, 2]}, progress=lambda done, total: seen.append((done, total)))
    assert [str(a.type) for a in mod.main.regions[0].blocks[0].arguments] == ["tensor<3x2xf32>"]
    assert seen == [(0, 3), (1, 3), (2, 3)]


def test_operations_and_errors_name_the_node_they_come_from(toy):
    mod = relayc.import_model(Graph(DOUBLED))
    first = mod.main.regions[0].blocks[0].operations
    assert [str(op.location) for op in first][:-1] == ['loc("twice")', 'loc("twice")', 'loc("flat")', 'loc("act")']
    wrong = {"name": "sum", "op": "add", "inputs": ["x"]}
    with pytest.raises(relayc.ModelError, match=r"graph: node 'sum' \(add\): relay\.add .*expected 2 operand"):
        relayc.import_model(Graph(DOUBLED, nodes=[wrong], output="sum"))
    wrong = {"name": "view", "op": "view", "shape": [4], "inputs": ["x"]}
    with pytest.raises(relayc.ModelError, match=r"graph: node 'view' \(view\): expected a shape of 6 elements"):
        relayc.import_model(Graph(DOUBLED, nodes=[wrong], output="view"))
    wrong = {"name": "more", "op": "repeat", "inputs": ["x", "x"]}
    with pytest.raises(relayc.ModelError, match=r"node 'more' \(repeat\): input repeats: expected a value known at import, found 'x'"):
        relayc.import_model(Graph(DOUBLED, nodes=[wrong], output="more"))


def test_the_model_that_is_built_is_the_inner_one_until_that_ends():
    with ModelBuilder({}) as outer:
        with ModelBuilder({}) as inner:
            assert ModelBuilder.current() is inner
        assert ModelBuilder.current() is outer


def test_names_of_sizes():
    """The same for equal sizes; of a name is known what is known of the size, which is no less than 0."""
    with ModelBuilder({"x": TensorType((symbol("n"),), "float32")}, ranges={"n": Range(0, 9)}) as builder:
        (n,) = builder.inputs["x"].shape
        more, fewer = builder.named(n + 1), builder.named(n - 3)
        assert builder.named(n + 1) == more != fewer
        assert bounds(more) == (1, 10) and bounds(fewer) == (0, 6)


def test_the_command_line_takes_what_frontends_take(toy, toy_file, capsys):
    from relayc.tools import cli

    assert cli.main(["run", str(toy_file)]) == 0
    assert "output y: float32[6]" in capsys.readouterr().out
    assert cli.main(["run", "model.txt"]) == 1
    assert (
        "expected a path that ends in .onnx or .relay or .mlir or .pt2 or .stablehlo or .jax or .keras or .toy, " in capsys.readouterr().err
    )


SUFFIXES = r"a path that ends in \.onnx or \.relay or \.mlir or \.pt2 or \.stablehlo or \.jax or \.keras"


@pytest.mark.parametrize("name", ["model", "model.txt", "", "model.onnx.bak"])
def test_a_path_that_no_frontend_takes_is_one_error_that_lists_what_is_taken(name):
    taken = rf"{SUFFIXES}, bytes, .*onnx\.ModelProto, .*torch\.ExportedProgram, jax\.Exported or keras\.Model"
    with pytest.raises(ValueError, match=f"model: expected {taken}, found the"):
        relayc.compile(name)


@pytest.mark.parametrize("model", [None, 3, object(), [b"x"], np.zeros(3)])
def test_an_object_that_no_frontend_takes_is_one_error_that_lists_what_is_taken(model):
    taken = rf"{SUFFIXES}, bytes, .*relayc\.RelayModule, relayc\.Function, torch\.ExportedProgram, jax\.Exported or keras\.Model"
    expected = f"model: expected {taken}, found {type(model).__name__}"
    with pytest.raises(TypeError, match=expected):
        relayc.compile(model)


def test_what_a_frontend_adds_is_listed(toy):
    assert accepted().startswith(
        "a path that ends in .onnx or .relay or .mlir or .pt2 or .stablehlo or .jax or .keras or .toy, bytes, "
    ) and accepted().endswith(" or Graph")


def test_every_form_of_a_model_is_taken(tmp_path):
    proto = onnx.parser.parse_model(MODEL)
    path = tmp_path / "Model.ONNX"  # suffixes are compared in lower case
    onnx.save(proto, path)
    program = relayc.Program()

    @program.function(x=TensorType((2, 3), "float32"))
    def main(x):
        return program.op.nn.relu(x)

    for model in (proto, proto.SerializeToString(), bytearray(proto.SerializeToString()), path, program, program.module()):
        np.testing.assert_array_equal(relayc.compile(model)["main"](x()), np.maximum(x(), 0))


def test_shapes_for_a_program_with_types_are_refused():
    mod = relayc.import_model(onnx.parser.parse_model(MODEL))
    assert relayc.import_model(mod) is mod
    with pytest.raises(ValueError, match="shapes: expected none for a program of the relay stage, whose inputs have types, found x"):
        relayc.compile(mod, shapes={"x": [2, 3]})


def test_the_frontend_of_a_subclass_is_that_of_the_nearest_class(toy):
    class Special(Graph):
        pass

    class Own(Special):
        pass

    relayc.register_frontend("own", types=(Special,))(lambda model, *, shapes, progress: from_toy(Graph(DOUBLED)))
    try:
        assert [find_frontend(model).name for model in (Graph(), Special(), Own())] == ["toy", "own", "own"]
    finally:
        relayc.remove_frontend("own")


def test_a_frontend_that_gives_no_module_is_named():
    relayc.register_frontend("odd", suffixes=(".odd",))(lambda model, *, shapes, progress: 3)
    try:
        with pytest.raises(TypeError, match="frontend odd: expected it to give an IRModule, found int"):
            relayc.compile("model.odd")
    finally:
        relayc.remove_frontend("odd")


def test_a_frontend_must_take_something():
    with pytest.raises(ValueError, match="expected suffixes of files or types of models, found neither"):
        relayc.register_frontend("none")
    with pytest.raises(ValueError, match="expected suffixes in lower case that begin with a dot, found 'toy'"):
        relayc.register_frontend("toy", suffixes=("toy",))
    with pytest.raises(ValueError, match="remove_frontend: expected one of onnx, relay, pytorch, stablehlo, keras, found 'toy'"):
        relayc.remove_frontend("toy")


def test_asking_which_frontend_takes_a_model_imports_neither_mlir_nor_onnx():
    code = (
        "import sys, relayc.frontend as f, relayc.frontend.registry as r; r.find_frontend('m.onnx'); r.find_frontend(b'');"
        "print([n for n in ('onnx', 'torch', 'jax', 'keras', 'torch_mlir', 'relayc.dialects.relay') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_programs_are_not_kept_while_there_is_a_frontend_from_outside(toy, toy_file, tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    relayc.compile(toy_file)
    assert not list((tmp_path / "cache").rglob("*"))
    assert [frontend.name for frontend in FRONTENDS] == ["onnx", "relay", "pytorch", "stablehlo", "keras", "toy"]
