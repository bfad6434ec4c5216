"""`bench metaschedule`: its kernels compute what numpy does, and the command with a stand-in for the process that has TVM."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relayc
from relayc import te
from relayc.bench import __main__ as command
from relayc.bench import metaschedule, peer
from relayc.bench.metaschedule import _found
from relayc.bench.metaschedule_kernels import KERNELS, attention, conv2d, depthwise, largest, product, softmax, solve, stencil
from relayc.bench.peer import Peer
from relayc.bench.peer_process import PeerProcess
from relayc.bench.worker import EngineError

SMALL = {
    "product": product(5, 17, 9),
    "conv2d": conv2d(5, 7),
    "depthwise": depthwise(4, 19),
    "softmax": softmax(3, 37),
    "attention": attention(2, 9, 5),
    "stencil": stencil(11, 3),
    "largest": largest(5, 33),
    "solve": solve(3, 5, 7),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_its_reference(name: str) -> None:
    kernel = SMALL[name]
    arrays = kernel.arrays(3)
    found = relayc.compile_kernel(te.create_prim_func(kernel.define(te)), num_threads=1)(*arrays)
    # Sums of at most 63 products of about 1 in f32, in another order.
    np.testing.assert_allclose(found, kernel.reference(*(a.astype(np.float64) for a in arrays)), rtol=1e-5, atol=1e-5)
    assert [a.shape for a in KERNELS[name].arrays(0)] == [tuple(t.shape) for t in KERNELS[name].define(te)[:-1]]


def test_a_schedule_is_found_when_the_best_time_comes_near_the_last_one() -> None:
    assert _found([(1.0, None), (2.0, 9.0), (3.0, 5.05), (4.0, 7.0), (5.0, 5.0)]) == 3.0
    assert _found([(1.0, None), (2.0, 9.0), (3.0, 5.2), (4.0, 7.0), (5.0, 5.0)]) == 5.0


class StandIn(Peer):
    """The process that has TVM: numpy instead of TVM's code, which took 7 seconds of 20 to be found."""

    def __init__(self, interpreter: object, modules: tuple[str, ...]) -> None:
        super().__init__()
        assert modules == metaschedule.MODULES

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *_: object) -> None: ...

    def start(self) -> dict[str, Any]:
        return {"version": "0"}

    def request(self, method: str, kernel: str, trials: int, threads: int, seed: int) -> dict[str, Any]:
        assert (method, trials, threads) == ("tune", 2, 1)
        one = KERNELS[kernel]
        arrays = one.arrays(seed)
        self._call = lambda: one.reference(*arrays)
        return {"times": [[3.0, None], [7.0, 1.0]], "seconds": 20.0}

    def outputs(self) -> list[np.ndarray]:
        return [self._call()]

    def measure(self, runs: int | None) -> list[float]:
        return super().measure(2)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("softmax", "depthwise"):
        monkeypatch.setitem(KERNELS, name, SMALL[name])
    monkeypatch.setattr(peer, "SECONDS", 0.0)


def test_the_command(small: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    monkeypatch.setattr(metaschedule, "PeerProcess", StandIn)
    out = tmp_path / "out.json"
    arguments = ["metaschedule", "--tvm", sys.executable, "--kernels", "softmax", "--trials", "2", "--rounds", "2", "--json", str(out)]
    assert command.main(arguments) == 0
    assert "softmax" in capsys.readouterr().out
    (record,) = json.loads(out.read_text())["results"]
    assert record["name"] == "softmax" and (record["tvm"]["found"], record["tvm"]["search"]) == (7.0, 20.0)
    assert all(len(record[side]["rounds"]) == 2 and min(record[side]["rounds"][0]) > 0 for side in ("default", "relayc", "tvm"))
    assert 0 <= record["relayc"]["found"] <= record["relayc"]["search"] and record["default"]["search"] == 0


def test_a_result_that_differs_costs_its_kernel_only(
    small: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    class Wrong(StandIn):
        def outputs(self) -> list[np.ndarray]:
            found = self._call()
            return [found * 1.01 if found.shape == SMALL["softmax"].arrays(0)[0].shape else found]

    monkeypatch.setattr(metaschedule, "PeerProcess", Wrong)
    out = tmp_path / "out.json"
    arguments = ["--kernels", "softmax,depthwise", "--trials", "2", "--rounds", "1", "--json", str(out)]
    assert command.main(["metaschedule", "--tvm", sys.executable, *arguments]) == 1
    assert "softmax: tvm: expected what numpy computes" in capsys.readouterr().err
    found = json.loads(out.read_text())
    assert [one["name"] for one in found["results"]] == ["depthwise"] and list(found["errors"]) == ["softmax"]


def test_wrong_arguments_are_errors(small: None, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        command.main(["metaschedule", "--tvm", sys.executable, "--kernels", "softmax,gelu"])
    assert "expected kernels out of product, conv2d" in capsys.readouterr().err
    assert command.main(["metaschedule", "--tvm", "/no/python"]) == 1
    assert "--tvm: expected the Python of an environment in which apache-tvm is installed, found '/no/python'" in capsys.readouterr().err


def test_an_interpreter_gets_only_the_modules_of_its_program(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nfind . -name "*.py" | sort | xargs echo "$@" >&2\nexec {sys.executable} -c pass\n')
    python.chmod(0o755)
    with PeerProcess(metaschedule.Interpreter.other(str(python)), metaschedule.MODULES) as process, pytest.raises(EngineError) as error:
        process.start()
    files = " ".join(f"./relayc/bench/{name}.py" for name in sorted(metaschedule.MODULES))
    assert re.fullmatch(rf"the process ended with code 0: -m relayc\.bench\.metaschedule_peer \d+ {re.escape(files)}", str(error.value))
