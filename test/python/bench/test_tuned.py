"""`bench tuned`: a model with the records of a database beside the same model by the defaults."""

import json

import onnx
import pytest
from tuned_models import dense

import relayc
from relayc.bench import __main__ as command
from relayc.bench import machine
from relayc.bench.measure import Result
from relayc.bench.tuned import ratios_of, tuned_table
from relayc.pipelines.history.database import Database
from relayc.pipelines.history.record import Record
from relayc.pipelines.history.records import DATABASE
from relayc.tools.build import Build
from relayc.tune.tasks import KernelTexts

RECORDED = {"strategy": "contraction", "numbers": {"rows": 3}}


def record(model, threads):
    """A record of the only kernel of a model."""
    target = relayc.Target("cpu", num_threads=threads)
    texts = KernelTexts(target)
    with relayc.PassContext(config={DATABASE: ""}, instruments=[texts]):
        Build.of(model, {"target": target, "cache": False}).compile()
    ((name, (key, *_)),) = texts.found.items()
    return Record(key, str(target), name, (), **RECORDED, seconds=1.0, default_seconds=2.0, ratio=2.0, low=2.0, high=2.0, trials=1)


def test_a_model_is_compiled_without_and_with_records(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "load_average", lambda: 0.0)
    path, database, out = tmp_path / "dense.onnx", tmp_path / "t.sqlite", tmp_path / "out.json"
    onnx.save(dense(), path)
    Database(database).put(record(str(path), 1))
    jobs = []
    measured = command.measure_tuned.__globals__["measure_jobs"]

    def spy(case, given, *arguments):
        jobs.append(given)
        return measured(case, given, *arguments)

    monkeypatch.setitem(command.measure_tuned.__globals__, "measure_jobs", spy)
    words = [
        "tuned",
        "--models",
        str(path),
        "--database",
        str(database),
        "--engines",
        "ort",
        "--threads",
        "1",
        "--rounds",
        "9",
        "--runs",
        "2",
    ]
    assert command.main([*words, "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "tuned against default, 1 thread" in shown and "dense" in shown and "of ONNX Runtime" in shown
    assert {name: job.database for name, job in jobs[0].items()} == {"default": "", "tuned": str(database), "ort": None}
    data = json.loads(out.read_text())
    assert [one["engine"] for one in data["results"]] == ["default", "tuned", "ort"] and all(one["agrees"] for one in data["results"])
    assert data["summary"]["default"]["models"] == 1


def test_the_engine_compiles_with_the_records_of_its_job(tmp_path, monkeypatch):
    from relayc.bench import engines
    from relayc.pipelines.driver import compile as driver

    path, database = tmp_path / "dense.onnx", tmp_path / "t.sqlite"
    onnx.save(dense(), path)
    Database(database).put(record(str(path), 1))
    modules = []
    compiled = driver.compile
    monkeypatch.setattr(driver, "compile", lambda *given, **named: modules.append(compiled(*given, **named)) or modules[-1])
    for given in ("", str(database)):
        engines.ENGINES["relayc"].load(engines.Job("relayc", str(path), {}, threads=1, database=given))
    default, tuned = (next(iter(module.kernels)).schedule for module in modules)
    assert default != tuned and "rows=3" in tuned


def results(case, **rounds):
    return {name: Result(case, name, rounds=[[seconds] for seconds in times], agrees=True) for name, times in rounds.items()}


def test_ratios_are_of_rounds_and_their_mean_is_geometric(capsys):
    fast = results("fast", default=[2.0, 20.0] * 5, tuned=[1.0, 10.0] * 5, ort=[4.0] * 10)
    slow = results("slow", default=[1.0] * 10, tuned=[2.0] * 10, ort=[1.0] * 10)
    slow["ort"].error = "no"
    found = ratios_of([fast, slow])
    assert found["default"]["geometric_mean"] == pytest.approx(1.0) and found["default"]["worst_model"] == "slow"
    assert found["ort"]["models"] == 1 and found["ort"]["geometric_mean"] == pytest.approx(5.5 / 4)
    command.make_console().print(tuned_table([fast, slow], 1))
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("fast"))
    assert "0.500" in row and "0.500 - 0.500" in row
    assert "failed" in next(line for line in lines if line.startswith("slow"))
    assert "1.000" in next(line for line in lines if line.startswith("geometric mean"))


def test_each_model_is_tuned_first_where_that_is_said(tmp_path, monkeypatch):
    tuned = []
    monkeypatch.setattr(relayc.tune.model, "search", lambda build, make_inputs, measurer, options, *rest: tuned.append((build, options)))
    monkeypatch.setitem(command.measure_tuned.__globals__, "measure_jobs", lambda case, jobs, *rest: results(case.name))
    path = tmp_path / "dense.onnx"
    onnx.save(dense(), path)
    settings = command.Settings(("ort",), 1)
    command.measure_tuned(command.find_models(str(path)), settings, tmp_path / "t.sqlite", 0.5, {}, 0, lambda text: None)
    ((build, options),) = tuned
    assert options.seconds == 30 and options.database == tmp_path / "t.sqlite"
    assert str(build.target) == str(relayc.Target("cpu", num_threads=1)) and build.threads == 1
