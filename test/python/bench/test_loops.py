"""`bench loops`: its models, and the command on one of them."""

import numpy as np
import onnx
import pytest

import relayc
from relayc.bench import __main__ as command
from relayc.bench.loops import loop_model, loop_names


@pytest.mark.parametrize("name", loop_names())
def test_models_are_valid(name):
    onnx.checker.check_model(loop_model(name))


def test_what_a_loop_with_scan_outputs_gives():
    x = np.arange(4, dtype=np.float32)
    y, rows = relayc.compile(loop_model("scan output"))["main"](np.array(5), x)
    assert np.array_equal(rows, np.outer(np.arange(2, 7), x)) and np.array_equal(y, rows[-1])


def test_the_command(capsys, monkeypatch):
    monkeypatch.setattr("relayc.bench.loops.ROUNDS", (3,))
    assert command.main(["loops", "--loops", "trip count", "--engines", "relayc", "--threads", "1", "--rounds", "1", "--runs", "1"]) == 0
    assert "trip count" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["loops", "--loops", "no loop"])
