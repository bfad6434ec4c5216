"""`bench torch` at a small scale."""

import pytest

pytest.importorskip("torch")

from relayc.bench import pytorch  # there is torch
from relayc.bench.__main__ import main


def test_engines_take_turns_and_agree():
    points = pytorch.measure_model("mlp", ["eager", "compile"], True, threads=1, rounds=2, runs=3)
    assert [point.engine for point in points] == ["eager", "compile"]
    assert all(point.error is None and [len(r) for r in point.rounds] == [3, 3] and point.first > 0 for point in points)
    assert points[1].difference < 1e-6  # gradients of a mean, far below one
    assert pytorch.torch_table(points, True).row_count == 2


def test_what_fails_has_its_reason(monkeypatch):
    point = pytorch.TorchPoint("mlp", "inductor", error="RuntimeError: inductor needs a C++ compiler, found none")
    others = [pytorch.TorchPoint("mlp", "eager", 0.1, [[0.002]]), pytorch.TorchPoint("mlp", "export", 1.0, [[0.001]], 0.0)]
    assert pytorch.ratio({p.engine: p for p in (point, *others)}, "export") is None
    table = pytorch.torch_table([others[0], point, others[1]], False)
    assert [list(column.cells) for column in table.columns][2] == ["-", ""]


def test_a_model_that_is_not_there(capsys):
    with pytest.raises(SystemExit):
        main(["torch", "--models", "resnet"])
    assert "invalid choice: 'resnet'" in capsys.readouterr().err
