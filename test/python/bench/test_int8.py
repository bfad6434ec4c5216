"""`bench int8`: the command on a product, and on a model quantised in both ways."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relayc.bench import __main__ as command

COMMON = ["--threads", "1", "--rounds", "1", "--runs", "1", "--engines", "relayc,ort"]


@pytest.fixture(autouse=True)
def _peak(monkeypatch):
    """CPUs without VNNI have no peak to measure."""
    monkeypatch.setattr(command, "measure_integer_peak", lambda threads: 100.0)


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
