"""`bench int8`: the command on a product, and on a model quantised in both ways."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relayc.bench import __main__ as command
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.driver.lowering import tir_to_llvm
from relayc.pipelines.targets.cpu import peak
from relayc.pipelines.targets.cpu.strategies.bf16.integers import dots_of
from relayc.pipelines.targets.cpu.target import CpuTarget

COMMON = ["--threads", "1", "--rounds", "1", "--runs", "1", "--engines", "relayc,ort"]


@pytest.fixture(autouse=True)
def _peak(monkeypatch):
    """The peak takes seconds to measure."""
    monkeypatch.setattr(command, "measure_integer_peak", lambda threads: 100.0)


def test_the_peak_is_of_the_instructions_that_kernels_use():
    target = CpuTarget("cpu", num_threads=1)
    dots = dots_of(target)
    if dots is None:
        pytest.skip("needs AVX2")
    assembly = tir_to_llvm(IRModule.parse(peak.integer_peak_text(1, dots, 4)))
    name = "vpdpbusd" if dots.fused else "pmadd"
    assert str(assembly).count(name) == 4
    assert peak.measure_integer_peak(1, seconds=0, fewest_calls=1) > 0


def test_a_cpu_without_such_instructions_has_no_peak(monkeypatch):
    monkeypatch.setattr(peak, "dots_of", lambda target: None)
    with pytest.raises(ValueError, match="int8: expected a CPU with AVX2 or VNNI"):
        peak.measure_integer_peak(1, seconds=0, fewest_calls=1)


def test_products(capsys):
    assert command.main(["int8", "--models", "", "--sizes", "5x7x9,8x6-4k3s1", *COMMON]) == 0
    shown = capsys.readouterr().out
    assert "8x6-4k3s1" in shown and "failed" not in shown
    assert command.main(["int8", "--models", "", "--sizes", "lstm2x1x4-8", *COMMON]) == 1


def test_models(capsys, tmp_path):
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> perceptron (float[4, 24] x) => (float[4, 5] y) '
        "{ h = MatMul (x, a)  r = Relu (h)  y = MatMul (r, b) }"
    )
    rng = np.random.default_rng(0)
    weights = {"a": rng.standard_normal((24, 16), np.float32), "b": rng.standard_normal((16, 5), np.float32)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, tmp_path / "perceptron.onnx")
    assert command.main(["int8", "--sizes", "", "--models", str(tmp_path / "perceptron.onnx"), *COMMON]) == 0
    shown = capsys.readouterr().out
    assert {"static", "dynamic", "relayc", "float"} <= set(shown.split())
