"""Whole models with precision="bf16": as close to f32 as ONNX Runtime comes with rounded operands; what is reported; the cache."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import weighted

import relayc
from relayc.tools import cli
from relayc.tools.inputs import random_inputs
from relayc.tools.reference import BF16_SPREAD, run_onnxruntime, spread

FOLDER = Path(__file__).parents[2] / "models"
PLAIN = relayc.Target("cpu", mcpu="x86-64-v3")  # has no instructions for bf16
FORCED = {"relay.ToMixedPrecision.force": True}


def with_rounded_operands(path):
    """The model with both operands of every product and convolution rounded to bf16 before it is computed in f32."""
    model = onnx.load(path)
    nodes = []
    for i, node in enumerate(model.graph.node):
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            for k in (0, 1):
                narrow, wide = f"narrow_{i}_{k}", f"wide_{i}_{k}"
                nodes.append(helper.make_node("Cast", [node.input[k]], [narrow], to=onnx.TensorProto.BFLOAT16))
                nodes.append(helper.make_node("Cast", [narrow], [wide], to=onnx.TensorProto.FLOAT))
                node.input[k] = wide
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


@pytest.mark.parametrize("name", ["vit", "mobilenet_v2", "resnet50", "whisper_encoder"])
def test_a_model_is_as_exact_as_rounded_operands_allow(name):
    path = FOLDER / f"{name}.onnx"
    with relayc.PassContext(config=FORCED):
        module = relayc.compile(path, precision="bf16")
    assert module.precision == "bf16"
    inputs = random_inputs(module.inputs, 0)
    exact, rounded = run_onnxruntime(path, inputs), run_onnxruntime(with_rounded_operands(path), inputs)
    for output, found in module.run(inputs).items():
        assert found.dtype == np.float32
        # What is added to a product is rounded too where it comes from memory: up to twice as many roundings. Which way they go is chance.
        assert spread(found, exact[output]) < min(BF16_SPREAD, 3 * spread(rounded[output], exact[output]))


@pytest.fixture
def model():
    return weighted()[0]


def test_f32_is_computed_and_reported_where_the_target_has_no_bf16(model):
    module = relayc.compile(model, target=PLAIN, precision="bf16")
    assert module.precision == "f32"
    if not module.lacking:
        x = np.ones((1, 64), np.float32)
        np.testing.assert_array_equal(module["main"](x), relayc.compile(model, target=PLAIN)["main"](x))


def test_bf16_is_computed_where_the_target_has_it(model):
    assert relayc.compile(model, target=relayc.Target("cpu", mcpu="sapphirerapids"), precision="bf16").precision == "bf16"


@pytest.mark.parametrize("name", ["resnet50", "vit"])
def test_models_are_compiled_to_tiles_where_the_target_has_them(name, capfd):
    module = relayc.compile(FOLDER / f"{name}.onnx", target=relayc.Target("cpu", mcpu="sapphirerapids"), precision="bf16")
    assert "tdpbf16ps" in module.assembly() and "vcvtneps2bf16" in module.assembly()
    assert capfd.readouterr().err == ""  # LLVM goes on when it runs out of tile registers


def test_an_unknown_precision_is_an_error(model):
    with pytest.raises(ValueError, match="precision: expected one of f32, bf16, f16, tf32, found 'fp8'"):
        relayc.compile(model, precision="fp8")


def test_weights_are_converted_once(model):
    target = relayc.Target("cpu", mcpu="sapphirerapids")
    narrow, wide = (relayc.compile(model, target=target, precision=precision)._artifact.params.nbytes for precision in ("bf16", "f32"))
    assert narrow < 0.6 * wide


def test_precisions_are_apart_in_the_cache(model, tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("relayc.pipelines.driver.compile_cache._sources_are_loaded", lambda: True)
    with relayc.PassContext(config=FORCED):
        for precision in ("f32", "bf16"):
            relayc.compile(model, precision=precision)
        for precision in ("f32", "bf16"):
            module = relayc.compile(model, precision=precision)
            assert list(module.stats) == ["cache"] and module.precision == precision


@pytest.mark.parametrize("command", ["run", "inspect"])
def test_the_commands_say_what_was_computed_in(model, command, tmp_path, capsys):
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    assert cli.main([command, str(path), "--precision", "bf16", "--target", "cpu -mcpu=x86-64"]) == 0
    assert "precision f32: the target has no instructions for bf16" in capsys.readouterr().out


def test_run_checks_bf16_against_f32(model, tmp_path, capsys):
    path = tmp_path / "model.onnx"
    model.ir_version = 10  # what ONNX Runtime knows
    onnx.save(model, path)
    with relayc.PassContext(config=FORCED):
        assert cli.main(["run", str(path), "--precision", "bf16", "--check"]) == 0
    out = capsys.readouterr().out
    assert "precision bf16" in out and "agrees with ONNX Runtime" in out
