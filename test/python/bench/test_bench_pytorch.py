"""`bench torch` at a small scale."""

import pytest

pytest.importorskip("torch")

from relayc.bench import pytorch  # there is torch
from relayc.bench.__main__ import main
from relayc.bench.measure import Result


def test_engines_take_turns_and_agree():
    points = pytorch.measure_model("mlp", ["eager", "compile"], True, threads=1, rounds=2, runs=3)
    assert [point.engine for point in points] == ["eager", "compile"]
    assert all(point.error is None and [len(r) for r in point.rounds] == [3, 3] and point.facts["first"] > 0 for point in points)
    assert points[1].difference < 1e-6  # gradients of a mean, far below one
    assert (pytorch.torch_table([points], True).row_count, pytorch.first_table([points]).row_count) == (2, 1)


def test_what_fails_has_its_reason(monkeypatch):
    eager = Result("mlp", "eager", None, {"first": 0.1}, [[0.002]])
    failed = Result("mlp", "inductor", "RuntimeError: inductor needs a C++ compiler, found none")
    export = Result("mlp", "export", None, {"first": 1.0}, [[0.001]], difference=0.0)
    assert pytorch.ratio([eager, failed, export], "export", "inductor") is None
    table = pytorch.torch_table([[eager, failed, export]], False)
    assert [list(column.cells) for column in table.columns][2] == ["-", ""]


def test_an_engine_that_fails_leaves_the_others():
    failed, eager = pytorch.measure_model("scale", ["export", "eager"], True, threads=1, rounds=1)
    assert failed.error == "RuntimeError: an exported program does not train" and failed.seconds is None
    assert eager.error is not None  # nothing to train
    export, eager = pytorch.measure_model("scale", ["export", "eager"], False, threads=1, rounds=1)
    assert (export.error, eager.error, export.difference) == (None, None, 0) and len(export.rounds[0]) >= 3


def test_programs_are_not_kept_in_the_cache_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    points = pytorch.measure_model("scale", ["compile"], False, threads=1, rounds=1, runs=1)
    assert points[0].error is None
    assert not any(tmp_path.iterdir())


def test_a_missing_tvm_is_left_out_with_a_line(monkeypatch, capsys):
    monkeypatch.setattr(pytorch.importlib.util, "find_spec", lambda name: None)
    assert main(["torch", "--models", "scale", "--by", "eager", "tvm", "--rounds", "1", "--runs", "1"]) == 0
    output = capsys.readouterr().out
    assert "TVM is not installed" in output and "tvm, ms" not in output


def test_a_model_that_is_not_there(capsys):
    with pytest.raises(SystemExit):
        main(["torch", "--models", "resnet"])
    assert "invalid choice: 'resnet'" in capsys.readouterr().err
