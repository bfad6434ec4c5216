"""Two revisions of relayc are compared on tiny models, and with stand-ins that misbehave; nothing here depends on how fast anything is."""

import json
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest

from relayc.bench import __main__ as command
from relayc.bench import machine
from relayc.bench.engines import Job
from relayc.bench.measure import Settings
from relayc.bench.models import Source
from relayc.bench.peer_process import Interpreter, PeerProcess
from relayc.bench.revisions import Comparison, Side, _order, identify, measure_revisions, summarize_changes
from relayc.bench.worker import EngineError
from relayc.processes import ChildProcess, program_of

QUICK = ["--threads", "1", "--rounds", "1", "--runs", "2", "--compile-rounds", "1"]
MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
main (float[N, 3] x, bfloat16[2] b) => (float[N, 3] y, bfloat16[2] z) { y = Abs (x) z = Identity (b) }
"""

STAND_IN = """
import os
import numpy as np

__version__ = "0.0"
print("noise")
os.write(1, b"noise")
os.system("echo noise")

class Module:
    kernels, step_kernels, stats, precision, input_names = (1,), (1, 1), {{"all": 0.5}}, "f32", ("x",)
    def __getitem__(self, name):
        return self.main
    def main(self, x):
        print("noise")
        {main}

def compile(model, **options):
    {compile}
    return Module()

def Target(kind, num_threads):
    return kind

def set_num_threads(count):
    pass

def num_threads():
    return 1
"""


@pytest.fixture
def model(tmp_path):
    """A model with a symbolic dimension, and with an input whose name is no word and whose dtype is none of numpy's."""
    found = onnx.parser.parse_model(MODEL)
    found.graph.input[1].name = found.graph.node[1].input[0] = "odd/name"
    onnx.save(found, tmp_path / "tiny.onnx")
    return tmp_path / "tiny.onnx"


@pytest.fixture
def stand_in(tmp_path):
    """Makes an interpreter that has a package `relayc` with a given text of `compile` and of `main`."""

    def make(compile="pass", main="return np.abs(x)"):
        folder = tmp_path / "stand_in"
        (folder / "relayc").mkdir(parents=True)
        (folder / "relayc" / "__init__.py").write_text(STAND_IN.format(compile=compile, main=main))
        return Interpreter(sys.executable, (str(folder), *Interpreter.this().path))

    return make


@pytest.fixture
def floats(tmp_path):
    path = tmp_path / "floats.onnx"
    onnx.save(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) { y = Abs (x) }'), path)
    return path


def compare(old, new, path, rounds=1, compile_rounds=1):
    (found,) = measure_revisions(
        [Source("m", path)], {"old": old, "new": new}, Settings(("relayc",), 1, "f32", rounds, 1), compile_rounds, {}, 0, lambda text: None
    )
    return found


def test_revisions_are_compared(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "load_average", lambda: 0.0)
    file = tmp_path / "out.json"
    arguments = ["--against", sys.executable, "--models", str(model), "--shape", "x=2,3", *QUICK, "--json", str(file)]
    code = command.main(["revisions", *arguments])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    assert all(text in captured.out for text in ("old: relayc", "new: relayc", "tiny", "latency", "compilation"))
    found = json.loads(file.read_text())
    assert found["command"] == "revisions" and "peak" not in found["machine"] and "engines" not in found["arguments"]
    assert {facts["interpreter"] for facts in found["revisions"].values()} == {sys.executable}
    (record,) = found["results"]
    assert record["case"] == "tiny" and record["agrees"] is True and record["difference"] == 0
    for side in (record["old"], record["new"]):
        assert side["error"] is None and side["median_seconds"] > 0 and [r["calls"] for r in side["rounds"]] == [2]
        assert side["facts"]["threads"] == 1 and side["facts"]["steps"] >= side["facts"]["kernels"] > 0
        (compiled,) = side["compilations"]
        assert side["compile_seconds"] == compiled["load_seconds"] >= sum(side["stages"].values()) > 0
    assert record["ratio"] == record["new"]["rounds"][0]["median_seconds"] / record["old"]["rounds"][0]["median_seconds"]
    assert [row["of"] for row in found["summary"]] == ["latency", "compilation"]
    assert found["summary"][0]["worst"] == record["ratio"] and found["summary"][1]["worst"] == record["compile_ratio"]


def test_the_other_interpreter_sees_neither_the_working_folder_nor_pythonpath(tmp_path, monkeypatch, stand_in):
    folder = stand_in().path[0]
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", folder)
    monkeypatch.setattr(sys, "path", [folder, *sys.path])
    known = identify({"old": Interpreter.other(sys.executable), "new": Interpreter.this()})
    assert known["old"]["version"] != "0.0" and known["old"]["package"] != f"{folder}/relayc"
    assert (known["new"]["version"], known["new"]["package"], known["new"]["revision"]) == ("0.0", f"{folder}/relayc", None)


def test_what_a_revision_prints_does_not_disturb(stand_in, floats):
    noisy = stand_in()
    found = compare(noisy, noisy, floats, rounds=3, compile_rounds=2)
    for side in found.sides.values():
        assert side.error is None and len(side.rounds) == 3 and len(side.compilations) == 2
        assert side.facts["kernels"] == 1 and side.facts["steps"] == 2 and side.stages == {"all": 0.5}
    assert len(found.ratios) == 3 and len(found.compile_ratios) == 2 and found.agrees


@pytest.mark.parametrize(
    "wrong, error",
    [
        ({"compile": "if model != b'no model': raise ValueError('no\\nway')"}, "ValueError: no way"),
        ({"compile": "if model != b'no model': os.write(2, b'oh\\n'); os._exit(7)"}, "the process ended with code 7: oh"),
        ({"main": "raise KeyError('x')"}, "KeyError: 'x'"),
        ({"main": "return x[:1]"}, "expected shape (4,) as in the reference, found (1,)"),
        ({"main": "return x, x"}, "expected 1 outputs as of the reference, found 2"),
    ],
)
def test_a_revision_that_fails_has_its_reason_and_the_other_is_measured(stand_in, floats, wrong, error):
    found = compare(Interpreter.this(), stand_in(**wrong), floats, rounds=2)
    old, new = found.sides.values()
    assert error in new.error and (found.ratio, found.compile_ratio, found.agrees) == (None, None, None)
    assert old.error is None and len(old.rounds) == 2 and old.compile_seconds > 0
    assert summarize_changes([found]) == [] and json.dumps(found.as_data())


def test_outputs_that_differ_are_told(stand_in, floats):
    found = compare(Interpreter.this(), stand_in(main="return np.abs(x) + np.float32(0.5)"), floats)
    assert found.difference == pytest.approx(0.5) and found.agrees is False and found.ratio is not None


def test_a_process_that_dies_between_requests_is_an_error(stand_in, floats):
    with PeerProcess(stand_in()) as process:
        process.start()
        process._process.kill()
        process._process.wait()
        with pytest.raises(EngineError, match="the process was ended by SIGKILL"):
            process.load(Job("relayc", str(floats), {"x": np.zeros(4, np.float32)}))


def test_an_interpreter_without_relayc_is_refused(floats, tmp_path, capsys):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    broken.chmod(0o755)
    assert command.main(["revisions", "--against", str(broken), "--models", str(floats), *QUICK]) == 1
    error = f"{broken}: expected an interpreter that has relayc: the process ended with code 3: broken"
    assert error in capsys.readouterr().err
    assert command.main(["revisions", "--against", str(tmp_path / "none"), "--models", str(floats), *QUICK]) == 1
    assert "--against: expected the Python of an environment" in capsys.readouterr().err


def test_arrays_are_exchanged_in_every_dtype():
    arrays = [
        np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3),
        np.array(2.5, np.float16),
        np.zeros((0, 3), np.int64),
        np.array([True, False]),
        np.array([1, 2], ml_dtypes.float8_e4m3fn),
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
    ]
    with ChildProcess(program_of("from relayc.processes import answer_requests; answer_requests(lambda arrays: arrays)")) as process:
        found = process.ask(arrays)
    for before, after in zip(arrays, found, strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def test_ratios_are_of_rounds_and_who_begins_changes():
    sides = {
        "old": Side(compilations=[{"load_seconds": s, "stages": {"te": s}} for s in (1.0, 2.0)], rounds=[[1.0, 1.0, 9.0], [2.0], [4.0]]),
        "new": Side(compilations=[{"load_seconds": s, "stages": {"te": s}} for s in (3.0, 4.0)], rounds=[[2.0], [1.0], [4.0]]),
    }
    found = Comparison("m", sides)
    assert (found.ratios, found.ratio) == ([2.0, 0.5, 1.0], 1.0)
    assert (found.compile_ratios, found.compile_ratio) == ([3.0, 2.0], 2.5)
    assert sides["old"].stages == {"te": 1.5}
    assert [row["geometric_mean"] for row in summarize_changes([found])] == pytest.approx([1.0, 2.5])
    assert [_order(turn, sides) for turn in range(3)] == [["old", "new"], ["new", "old"], ["old", "new"]]
    assert _order(1, {"old": Side(), "new": Side(error="gone")}) == ["old"]
