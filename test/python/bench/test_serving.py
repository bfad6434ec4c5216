"""`bench serve`: the command on one small model."""

import json

import onnx
import pytest
from served import affine

from relayc.bench import __main__ as command


def test_the_command(tmp_path, capsys):
    onnx.save(affine(1), tmp_path / "affine.onnx")
    options = ["--callers", "4", "--requests", "8", "--rounds", "1", "--threads", "1", "--json", str(tmp_path / "out.json")]
    assert command.main(["serve", "--models", str(tmp_path / "affine.onnx"), *options]) == 0
    printed = capsys.readouterr().out
    assert "affine" in printed and "8 requests a round, 1 rounds" in printed
    results = json.loads((tmp_path / "out.json").read_text())["results"]
    assert [result["engine"] for result in results] == ["relayc", "ort"]
    assert all(result["requests"] == 8 and result["rate"] > 0 and result["p99"] >= result["p50"] > 0 for result in results)
    with pytest.raises(SystemExit):
        command.main(["serve", "--requests", "many"])
