"""`bench gate`: kernels by two strategies, in turns."""

from pathlib import Path

import onnx
import pytest

import relayc
from relayc.bench import __main__ as command
from relayc.bench.gate import GateSettings, measure_gate, summary_of
from relayc.bench.models import Source, find_models
from relayc.bench.ops import gemm

MODELS = Path(relayc.__path__[0]) / "test" / "models"


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relayc.bench.schedules.SECONDS", 0)


def test_kernels_of_models_and_operators_count_once() -> None:
    sources = find_models(str(MODELS / "dynamic" / "bert.onnx"))
    settings = GateSettings("contraction", "loops", rounds=2, sizes=({"batch": 2}, {}), pattern="dense_add_tanh|matmul|dense$")
    gate = measure_gate([*sources, *sources, gemm(3, 5, 7)], settings, lambda text: None)
    pooler = [one for one in gate.measured if one.origin == "bert"]
    assert [one.sizes for one in pooler] == [{"batch": 2}, {"batch": 16}]
    assert [one.shapes for one in gate.measured if one.origin != "bert"] == ["3x7"]
    assert all(one.agrees and one.old.seconds > 0 and len(one.new.rounds) == 2 for one in gate.measured)
    assert not gate.declined and "0 with other results" in summary_of(gate)


def test_what_one_of_them_does_not_take() -> None:
    gate = measure_gate([gemm(3, 5, 7)], GateSettings("contraction", "window_columns"), lambda text: None)
    assert gate.declined == ["3x5x7: fused_dense"] and not gate.measured
    assert "no kernel" in summary_of(measure_gate([], GateSettings("loops", "amx"), lambda text: None))


def test_a_kernel_whose_inputs_do_not_say_its_sizes_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "range.onnx"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> main (int64 limit) => (int64[m] y) '
        "{ zero = Constant <value_int = 0> () one = Constant <value_int = 1> () y = Range (zero, limit, one) }"
    )
    onnx.save(model, path)
    gate = measure_gate([Source("range", path)], GateSettings("loops", "loops", rounds=1), lambda text: None)
    assert [name.split(": ")[0] for name in gate.inner] == ["range"] and "whose inputs do not say all sizes" in summary_of(gate)


def test_a_strategy_that_there_is_not(capsys: pytest.CaptureFixture) -> None:
    assert command.main(["gate", "contraction", "swift"]) == 1
    assert "found 'swift'" in capsys.readouterr().err


def test_the_command(capsys: pytest.CaptureFixture) -> None:
    assert command.main(["gate", "contraction", "loops", "--models", "", "--operations", "3x5x7", "--rounds", "1"]) == 0
    assert "1 kernels: geometric mean" in capsys.readouterr().out
