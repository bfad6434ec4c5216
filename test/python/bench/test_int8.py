"""`bench int8`: the command on a product, and on a model quantised in both ways."""

from pathlib import Path

import pytest

import relayc
from relayc.bench import __main__ as command

MODELS = Path(relayc.__path__[0]) / "test" / "models"
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


def test_models(capsys):
    assert command.main(["int8", "--sizes", "", "--models", str(MODELS / "mlp_mixer.onnx"), *COMMON]) == 0
    shown = capsys.readouterr().out
    assert {"static", "dynamic", "relayc", "float"} <= set(shown.split())
