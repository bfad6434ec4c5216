"""The tuner on a device: kernels are measured by recordings of many launches, with a driver that emulates them."""

import numpy as np
import onnx
import pytest
from fake_cuda import fake_cuda
from tuned_models import dense

import relayc
from relayc.pipelines.history.database import Database
from relayc.runtime import Device
from relayc.tools.timing import Comparison
from relayc.tune import model, worker
from relayc.tune.process import Measurer
from relayc.tune.single import kernel_task
from relayc.tune.worker import DEFAULT, Bench, Candidate, launches_of

TARGET = relayc.Target("cuda -arch=sm_80")
ROWS = """
func.func @rows(%x: tensor<9x33xf32>) -> tensor<9x33xf32> {
  %y = linalg.exp ins(%x : tensor<9x33xf32>) outs(%x : tensor<9x33xf32>) -> tensor<9x33xf32>
  return %y : tensor<9x33xf32>
}
"""


class Here(Measurer):
    """Measures in this process, whose driver is not a real one."""

    def __init__(self):
        self.bench = Bench()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def measure(self, task, base, candidate, seconds):
        return self.bench.measure(task, base, candidate, 0.02)


@pytest.fixture
def driver():
    with fake_cuda() as found:
        yield found


def test_a_recording_of_many_calls_gives_what_one_call_gives(driver):
    kernel = relayc.compile_kernel(ROWS, TARGET)
    x = np.linspace(-3, 3, 9 * 33, dtype=np.float32).reshape(9, 33)
    before = len(driver.launches)
    launch = kernel.function.repeated([Device("cuda", 0).tensor(x)], 5)
    launch()
    launch()
    Device("cuda", 0).synchronize()
    assert len(driver.launches) - before == 10
    np.testing.assert_allclose(kernel(x), np.exp(x), rtol=1e-6)


def test_times_are_of_one_call(driver, monkeypatch):
    task = kernel_task(ROWS, TARGET, None, None, {}, (), 1)
    assert launches_of(task) > 1 and launches_of(kernel_task(ROWS, relayc.Target("cpu"), None, None, {}, (), 1)) == 1
    found = Here().measure(task, DEFAULT, Candidate("general", {"threads": 64}), 0.02)
    assert found.outcome == "measured", found.message
    assert found.comparison.rounds > 0
    monkeypatch.setattr(worker, "compare_times", lambda *_: Comparison(32.0, 16.0, 2.0, 1.9, 2.1, 8))
    found = Here().measure(task, DEFAULT, DEFAULT, 0.02).comparison
    assert (found.base_seconds, found.seconds, found.ratio) == (32.0 / launches_of(task), 16.0 / launches_of(task), 2.0)


def test_a_model_is_tuned_for_a_device(driver, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "WorkerProcess", Here)
    path, database = tmp_path / "dense.onnx", tmp_path / "t.sqlite"
    onnx.save(dense(), path)
    found = relayc.tune(path, target=TARGET, trials=3, sampler="grid", kernels="fused*", database=database)
    (state,) = found.states
    assert [trial.outcome for trial in state.trials] == ["measured"] * 3 and state.task.target == str(TARGET)
    assert {trial.key for trial in Database(database).trials(state.task.key)} == {state.task.key}


def test_the_times_of_an_emulation_are_refused(tmp_path):
    path = tmp_path / "dense.onnx"
    onnx.save(dense(), path)
    with pytest.raises(ValueError, match="expected a target whose instructions this machine has, found cuda"):
        relayc.tune(path, target="cuda -arch=sm_80 -emulate=true", trials=1, database=tmp_path / "t.sqlite")
