"""The demonstration, with a small network in place of ResNet-50."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import onnx
import pytest

from relayc.runtime import timing
from relayc.tools import demo

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
small (float[1, 500] x) => (float[1, 2] y)
{
  w = ConstantOfShape <value: tensor = float[1] {0.5}> (shape)
  y = MatMul (x, w)
}
"""


@pytest.mark.parametrize(
    ("has_onnxruntime", "error", "code", "check"),
    [
        (True, 0, 0, "agrees with ONNX Runtime, random weights and input: largest difference 0"),
        (False, 0, 0, "agrees with the output stored in the onnx package: largest difference 0"),
        (False, 3, 1, "DIFFERS from the output stored in the onnx package: largest difference 3"),
    ],
)
def test_the_demonstration_checks_and_times_a_network(has_onnxruntime, error, code, check, tmp_path, monkeypatch, capsys):
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([500, 2]), "shape"))
    onnx.save(model, tmp_path / "light.onnx")
    x = np.arange(500, dtype=np.float32)[None] / 512
    given = {
        "random_light": {"resnet50": model}.get,
        "light_path": {"resnet50": tmp_path / "light.onnx"}.get,
        "stored_case": {"resnet50": (x, np.full((1, 2), 0.5 * x.sum() + error, np.float32))}.get,
        "random_inputs": lambda inputs: {inputs[0].name: x},
        "REPEAT": 3,
        "num_threads": lambda: 7,
    }
    if not has_onnxruntime:
        given["run_onnxruntime"] = Mock(side_effect=ModuleNotFoundError)
    for name, value in given.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=Mock(side_effect=[0, 0.75, 1, 1.5, 2, 2.25])))
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    assert demo.main() == code and not (tmp_path / "cache").exists()  # the seconds are those of a compilation
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "ResNet-50: 1 kernel calls a run, 1 different kernels"
    # 500 x 2 products with their sums in half a second.
    assert lines[-2:] == ["latency  500.00 ms on 7 threads, 4.0 kFLOP/s (median of 3)", f"check    {check}"]
