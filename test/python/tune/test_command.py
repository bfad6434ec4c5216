"""`relayc tune`: the search as a command, with times that are made up, and what it does with databases."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from tuned_models import dense

import relayc
from relayc.pipelines.history import records
from relayc.pipelines.history.database import Database
from relayc.pipelines.history.record import Record, Trial, export_records
from relayc.pipelines.tir.schedule.written_strategy import SCRIPT
from relayc.tools.cli import main
from relayc.tools.timing import Comparison
from relayc.tune import action, model
from relayc.tune.action import _time_text
from relayc.tune.model import Check, Tuning
from relayc.tune.process import Measurer
from relayc.tune.session import State, Status
from relayc.tune.tasks import Task
from relayc.tune.texts import chart, kernel_chart, kernel_rows, records_tables, summary
from relayc.tune.worker import DEFAULT, Measured


def comparison(base, other):
    return Comparison(base, other, base / other, base / other * 0.999, base / other * 1.001, 8)


class Fake(Measurer):
    """A worker for which the fewest rows are fastest; it is interrupted after some measurements."""

    left = 1000

    def measure(self, task, base, candidate, seconds):
        Fake.left -= 1
        if Fake.left < 0:
            raise KeyboardInterrupt
        times = [1.0 if one == DEFAULT else 0.1 * one.numbers["rows"] for one in (base, candidate)]
        return Measured("measured", comparison(*times))


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    """Runs `relayc tune` on a model with a database of its own; gives the exit code."""
    monkeypatch.setattr(model, "WorkerProcess", Fake)
    monkeypatch.setattr(Fake, "left", 1000)
    monkeypatch.setattr(model, "whole_model", lambda *arguments: model.Check(comparison(2.0, 1.0), tuple(arguments[-1])))
    path = tmp_path / "dense.onnx"
    onnx.save(dense(), path)
    return lambda *words: main(
        ["tune", str(path), "--kernels", "fused*", "--sampler", "grid", "--database", str(tmp_path / "t.sqlite"), *words]
    )


def test_a_model_is_tuned_and_its_records_move(tuned, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert tuned("--trials", "8", "--report", str(page)) == 0
    shown = capsys.readouterr().out
    assert "8 trials of 1 kernels" in shown and "the model is 2.00 times as fast" in shown and "rows=1 " in shown
    text = page.read_text()
    assert "fused_dense_add_relu" in text and text.count("<svg") == 2 and "http" not in text.replace("http://www.w3.org", "")
    database = tmp_path / "t.sqlite"
    (record,) = Database(database).best()
    assert record.numbers["rows"] == 1 and record.is_checked

    assert main(["tune", "--show", "--database", str(database)]) == 0
    assert "fused_dense_add_relu" in capsys.readouterr().out
    assert main(["tune", "--export", "-", "--database", str(database)]) == 0
    line, told = capsys.readouterr()
    assert json.loads(line)["numbers"]["rows"] == 1 and told == "1 records\n"
    (tmp_path / "records.json").write_text(line)
    other = tmp_path / "other.sqlite"
    assert main(["tune", "--import", str(tmp_path / "records.json"), "--database", str(other)]) == 0
    assert "1 of 1 records are added" in capsys.readouterr().out
    third = tmp_path / "third.sqlite"
    assert main(["tune", "--merge", str(other), "--database", str(third)]) == 0
    assert Database(third).best() == [record]


def test_the_records_of_a_model_as_a_table_that_comes_with_relayc(tuned, tmp_path, monkeypatch):
    assert tuned("--trials", "8") == 0
    level = str(relayc.Target("cpu").attributes["mcpu"])
    with open(tmp_path / f"{level}.jsonl", "wb") as file:
        file.write(export_records(Database(tmp_path / "t.sqlite").best()).encode())
    monkeypatch.setattr(records, "TABLES", tmp_path)
    monkeypatch.setenv("RELAYC_TUNING_DB", str(tmp_path / "none.sqlite"))
    other = relayc.Target("cpu", l3_bytes=1 << 30)
    assert str(other) != str(relayc.Target("cpu"))
    assert "rows=1 " in relayc.compile(tmp_path / "dense.onnx", other).kernels[0].schedule
    with relayc.tune.ApplyHistoryBest(None):
        assert "rows=1 " not in relayc.compile(tmp_path / "dense.onnx", other).kernels[0].schedule


def test_an_interrupt_ends_with_what_is_known(tuned, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Fake, "left", 4)
    assert tuned() == 130
    assert "interrupted: what was found is in" in capsys.readouterr().out
    (record,) = Database(tmp_path / "t.sqlite").best()
    count = len(Database(tmp_path / "t.sqlite").trials(record.key))
    assert count > 0
    monkeypatch.setattr(Fake, "left", 1000)
    assert tuned("--trials", "3", "--quiet") == 0
    assert len(Database(tmp_path / "t.sqlite").trials(record.key)) == count + 3
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a model"),
        (["m.onnx", "--show"], "expected no model with --show"),
        (["m.so"], "found the library m.so"),
        (["--import", "none.json"], "expected a file, found none at none.json"),
        (["--merge", "none.sqlite"], "expected a file, found none at none.sqlite"),
    ],
)
def test_wrong_uses_are_one_line(words, message, tmp_path, capsys):
    assert main(["tune", *words, "--database", str(tmp_path / "t.sqlite")]) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_files_that_are_no_databases(tmp_path, capsys):
    (tmp_path / "x").write_text("no database\n" * 100)
    for words in (["--show", "--database", str(tmp_path / "x")], ["--merge", str(tmp_path / "x"), "--database", str(tmp_path / "t")]):
        assert main(["tune", *words]) == 1
        assert "expected a tuning database, found another file" in capsys.readouterr().err
    assert main(["tune", "--import", str(tmp_path / "x"), "--database", str(tmp_path / "t")]) == 1
    assert "line 1: expected a record" in capsys.readouterr().err


def test_the_default_database_can_be_off(capsys):
    assert main(["tune", "--show"]) == 1  # RELAYC_TUNING_DB=0 in tests
    assert "RELAYC_TUNING_DB turns the default one off" in capsys.readouterr().err


def test_records_that_no_model_has_checked_are_marked(tmp_path, capsys):
    database = Database(tmp_path / "t.sqlite")
    database.put(Record("a", "cpu", "one", ("add",), "loops", {"grain": 3}, 1.0, 2.0, 2.0, 1.9, 2.1, 7))
    assert main(["tune", "--show", "--database", str(database.path)]) == 0
    shown = capsys.readouterr().out
    assert "t.sqlite: 1 records" in shown.replace("\n", "")
    assert "2.00 ?" in shown and "loops grain=3" in shown and "the whole model was not measured" in shown


def test_the_command_line_imports_the_tuner_only_to_tune():
    code = "import sys; from relayc.tools.cli import make_parser; make_parser(); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in found if name.startswith("relayc.tune")} == {"relayc.tune", "relayc.tune.command"}


def test_a_chart_is_a_line_of_steps():
    """Each trial has the same width, and its step begins where the one before ends."""
    picture = chart([1.0, 1.0, 2.0, 2.5], [1.0, 0.0, 2.0, 2.5])
    places = [float(x) for x in re.findall(r"[ML]([\d.]+) ", picture)]
    width = float(re.search(r'viewBox="0 -4 (\d+)', picture)[1])
    np.testing.assert_allclose(places, np.repeat(np.linspace(0, width, 5), 2)[1:-1], atol=0.1)
    assert picture.count('class="good"') == 3 and picture.count('class="bad"') == 1


def test_what_came_of_a_search_in_words(tmp_path):
    task = Task("key", "k", "", target="cpu", seconds=1.0)
    record = Record("key", "cpu", "k", ("add",), "loops", {"grain": 3}, 2e-6, 1e-6, 2.0, 1.9, 2.1, 7)
    scripted = dataclasses.replace(
        record, strategy="sketch", numbers={SCRIPT: '%0 = transform.tune.knob<"a"> = 4 : x\n transform.tune.knob<"b"> = 5'}
    )
    states = [
        State(task),  # which nobody has looked at
        State(task, skipped="too fast"),
        State(task, search=object(), seconds=2e-6, relative=0.5, record=record, known=3),
        State(dataclasses.replace(task, seconds=0.0), search=object(), record=scripted),
    ]
    tuning = Tuning("model", tmp_path / "t.sqlite", states, (), 4.0)
    assert kernel_rows(tuning) == [
        ["k", "25.0%", "0", "", "", "", "too fast"],
        ["k", "25.0%", "3", "2.0", "1.0", "2.00", "loops grain=3"],
        ["k", "", "0", "", "", "", "sketch a=4 b=5"],
    ]
    faster = Comparison(4e-3, 2e-3, 2.0, 1.9, 2.1, 8)
    graph = State(task, relative=0.8)
    for changed, words in [
        ({}, "nothing faster than the defaults"),
        ({"gains": (1.5,), "total": 0.0}, "1.50 times as fast"),
        ({"gains": (1.5, 1.0)}, "nothing faster than the defaults"),
        ({"check": Check(faster, ("a",)), "graph": State(task, relative=1.0)}, "2.000 ms after; faster)"),
        ({"interrupted": True}, "interrupted: what was found is in "),
        ({"check": Check(None, (), ("a", "b"))}, "none of 2 records makes the model faster; they are not kept"),
        ({"check": Check(faster, ("a",))}, "(4.000 ms a call before, 2.000 ms after; faster)"),
        ({"check": Check(faster, ("a",), ("b",)), "graph": graph}, "; faster, after 1.25 by its graph), 1 records are not kept"),
    ]:
        assert summary(dataclasses.replace(tuning, **changed)).startswith(f"{len(changed.get('gains', ()))} trials of 0 kernels in 0 s")
        assert words in summary(dataclasses.replace(tuning, **changed))
    found = str(tuning).splitlines()
    assert found[0] == "kernel  share  trials  us before  us after  gain  numbers" and found[4] == summary(tuning)
    assert found[2] == "k       25.0%  3       2.0        1.0       2.00  loops grain=3"


def test_the_graph_is_no_kernel():
    task = Task("key", "k", "", target="cpu", seconds=1.0)
    record = Record("key", "cpu", "k", ("add",), "loops", {"grain": 3}, 2e-6, 1e-6, 2.0, 1.9, 2.1, 7)
    trial = Trial("key", "loops", {}, 0.5)
    graph = State(dataclasses.replace(task, name="graph"), record=record, trials=[trial])
    states = [graph, State(task, record=record, trials=[trial]), State(dataclasses.replace(task, name="other"))]
    tuning = Tuning("model", Path("t.sqlite"), states, (1.0, 2.0), 4.0, graph=graph)
    assert tuning.settings == {"k": record.settings}
    measured = State(task, search=object(), seconds=2e-6, trials=[trial, trial], known=3)
    assert kernel_rows(dataclasses.replace(tuning, states=[measured])) == [["k", "25.0%", "5", "2.0", "2.0", "1.00", "as they are"]]
    assert summary(tuning).startswith("2 trials of 1 kernels in 0 s")
    assert dataclasses.replace(tuning, gains=()).gain == 1.0
    assert dataclasses.replace(tuning, gains=(), graph=State(task, relative=0.5)).gain == 2.0
    assert dataclasses.replace(tuning, gains=(3.0,), graph=State(task, relative=0.5)).gain == 3.0
    for check, gain in ((Check(None, (), ("a",)), 2.0), (Check(comparison(3.0, 1.0), ("a",)), 6.0)):
        assert dataclasses.replace(tuning, check=check, graph=State(task, relative=0.5)).gain == gain


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0:00"),
        (0.4, "0:00"),
        (0.6, "0:01"),
        (59.4, "0:59"),
        (59.6, "1:00"),
        (3599.4, "59:59"),
        (3599.6, "1:00:00"),
        (3661, "1:01:01"),
        (36_000, "10:00:00"),
    ],
)
def test_times_that_are_left(seconds, text):
    assert _time_text(seconds) == text


@pytest.mark.parametrize(
    ("trials", "seconds", "text", "share"),
    [
        ((3, 10), (6.0, None), "3 trials, 0:14 left", (3, 10)),
        ((3, 10), (6.0, 9.0), "3 trials, 0:03 left", (6.0, 9.0)),
        ((9, 10), (6.0, 9.0), "9 trials, 0:01 left", (9, 10)),
        ((3, None), (6.0, 66.0), "3 trials, 1:00 left", (6.0, 66.0)),
        ((3, None), (6.0, None), "3 trials, 0:00 left", (0, None)),
    ],
)
def test_progress_says_the_time_to_the_nearer_limit(monkeypatch, trials, seconds, text, share):
    shown, times = [], iter([100.0, 106.0])
    monkeypatch.setattr(action, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    monkeypatch.setattr(action.Progress, "update", lambda self, task, **fields: shown.append(fields))
    with action._shown(SimpleNamespace(quiet=True)) as show:
        show(Status("k", "c", trials, seconds, 1.25))
    (found,) = shown
    assert (found["description"], found["completed"], found["total"]) == (f"{text}, gain 1.250", *share)


def test_progress_is_a_line_of_standard_error_that_goes(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with action._shown(SimpleNamespace(quiet=False)) as show:
        show(Status("k", "loops order=[bold]", (3, 10), (6.0, None), 1.25))
    out, error = capsys.readouterr()
    assert "k: loops order=[bold]" in error and error.endswith("\x1b[1A\x1b[2K") and not out


def test_charts_show_the_best_so_far_and_what_failed():
    task = Task("key", "k", "", target="cpu", seconds=1.0)
    trials = [Trial("key", "loops", {}, relative) for relative in (None, 0.8, 2.0, 0.25)]
    previous = Record("key", "cpu", "k", ("add",), "loops", {}, 2e-6, 1e-6, 1.1, 1.0, 1.2, 7)
    for before, line in ((None, [1.0, 1.25, 1.25, 4.0]), (previous, [1.1, 1.25, 1.25, 4.0])):
        assert kernel_chart(State(task, trials=trials, previous=before)) == chart(line, [0.0, 1.25, 0.5, 4.0])
    assert re.search(r'class="axis"', chart([])) and 'd=""' in chart([])


@pytest.mark.parametrize("marks, caption", [((True, True), False), ((True, False), True), ((False, False), True)])
def test_tables_explain_marks_only_where_there_is_one(marks, caption):
    record = Record("key", "cpu", "k", ("add",), "loops", {"grain": 3}, 2e-6, 1e-6, 2.0, 1.9, 2.1, 7)
    (table,) = records_tables([dataclasses.replace(record, is_checked=checked) for checked in marks])
    assert (table.caption is not None) == caption and table.row_count == 2
    assert len(list(records_tables([record, dataclasses.replace(record, machine="other"), record]))) == 2


def test_the_history_is_a_file():
    with pytest.raises(FileNotFoundError, match="ApplyHistoryBest: expected the file of a tuning database, found none at '/none'"):
        relayc.tune.ApplyHistoryBest("/none")
    assert relayc.tune.ApplyHistoryBest(None).database == ""
