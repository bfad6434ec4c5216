"""Keys of kernels, the database of measurements, and records that apply when something is compiled."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from functools import partial
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
from tuned_models import chain, dense

import relayc
from relayc import PassContext
from relayc.pipelines.history import database as database_module
from relayc.pipelines.history.database import Database, read_settings
from relayc.pipelines.history.keys import kernel_key
from relayc.pipelines.history.record import Record, Trial, export_records, import_records
from relayc.pipelines.history.records import current_records, default_database, records_of
from relayc.pipelines.program.functions import read_functions
from relayc.runtime.cpu import host
from relayc.runtime.device import Device

TARGET = relayc.Target("cpu", num_threads=2)
ROWS = "contraction.rows"


def keys(model, target=TARGET, **options):
    mod = relayc.compile(model, target, stop_after="te", **options)
    with mod.context, mod.ranges:
        return [kernel_key(function, target) for function in read_functions(mod.module).kernels.values()]


def test_a_machine_whose_processor_has_no_name_is_told_by_its_architecture(monkeypatch, tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(host, "_CPUINFO", cpuinfo)
    monkeypatch.setattr(host, "_entries", host._entries.__wrapped__)  # is not remembered
    cpuinfo.write_text("processor : 0\nmodel name\t: A: CPU \n")
    assert Device("cpu").name == "A: CPU"
    monkeypatch.setattr(host.platform, "processor", lambda: "")
    monkeypatch.setattr(host.platform, "machine", lambda: "riscv64")
    for text in ("", "processor : 0\n"):
        cpuinfo.write_text(text)
        assert Device("cpu").name == "riscv64"
    monkeypatch.setattr(host.platform, "processor", lambda: "x86_64")
    assert Device("cpu").name == "x86_64"


def record(key, numbers=None, **changes):
    found = Record(key, str(TARGET), "k", ("nn.dense",), "contraction", numbers or {"rows": 3}, 1e-3, 2e-3, 2.0, 1.9, 2.1, 7)
    return replace(found, **changes)


def schedule_of(model, **options):
    return relayc.compile(model, TARGET, **options).kernels[0].schedule


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "tuning.sqlite")


# ---- keys ---------------------------------------------------------------------------------------------------------------------------


def test_a_key_knows_what_is_computed_and_not_how_it_is_called():
    assert keys(dense()) == keys(dense(name="z"))
    assert keys(dense()) != keys(dense(columns=80))
    assert keys(dense()) != keys(dense(rows="65"))
    assert keys(dense()) != keys(dense(), relayc.Target("cpu", num_threads=3))


def test_names_of_symbols_are_no_part_of_a_key_and_their_ranges_are():
    assert keys(dense("batch")) == keys(dense("n"))
    assert keys(dense("batch")) != keys(dense())
    assert keys(dense("n"), dims={"n": (1, 64)}) == keys(dense("m"), dims={"m": (1, 64)})
    assert keys(dense("n"), dims={"n": (1, 64)}) != keys(dense("n"), dims={"n": (1, 32)})


def test_parameters_are_part_of_a_key_and_names_are_not():
    text = """
func.func private @{}(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>{}) -> tensor<4x8xf32> {{
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.add ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}}"""
    found = set()
    named = [("f", ' {relay.name = "it"}'), ("g", ' {relay.name = "other", relay.param}')]
    for name, attribute in (("f", ""), ("f", " {relay.param}"), ("g", ""), *named):
        mod = relayc.IRModule.parse(text.format(name, attribute))
        with mod.context, mod.ranges:
            found.add(kernel_key(mod.module.body.operations[0], TARGET))
    assert len(found) == 2


# ---- the database -------------------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(database):
    one, other = record("a"), record("b", {"rows": 4, "tile": (8, 8)}, target="cpu -num-threads=9", ratio=3.0)
    database.put(one, other)
    database.add(Trial("a", "contraction", {"rows": 2}, 0.7, rounds=8, time=1.5))
    database.add(Trial("a", "contraction", {"rows": 5}, None, "crashed", time=2.5), replace(one, trials=8))
    again = Database(database.path)
    assert again.best() == [other, replace(one, trials=8)]
    assert again.best(str(TARGET)) == [replace(one, trials=8)]
    assert [(t.numbers, t.relative, t.outcome) for t in again.trials("a")] == [
        ({"rows": 2}, 0.7, "measured"),
        ({"rows": 5}, None, "crashed"),
    ]
    again.remove(["a"])
    assert again.record("a") is None and again.record("b") == other and len(again.trials("a")) == 2


def test_records_go_from_one_database_to_another(database, tmp_path):
    database.put(record("a", ratio=2.0), record("b", ratio=2.0, numbers={"tile": (2, 4)}))
    other = Database(tmp_path / "other.sqlite")
    other.put(record("a", {"rows": 9}, ratio=1.5))
    assert other.merge(import_records(export_records(database.best()))) == 2
    assert sorted(other.best(), key=lambda r: r.key) == sorted(database.best(), key=lambda r: r.key)
    assert database.merge([record("a", {"rows": 9}, ratio=1.5)]) == 0  # the better one stays
    assert database.merge([record("a", {"rows": 9}, ratio=2.0)]) == 0 and database.record("a") == record("a", ratio=2.0)
    with pytest.raises(ValueError, match="line 2: expected a record"):
        import_records(export_records([record("a")]) + '{"key": 1}')


def test_files_that_are_no_database(tmp_path):
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(ValueError, match="expected a tuning database"):
        Database(path)
    other = tmp_path / "b.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(ValueError, match="expected a tuning database of version 1, found none"):
        Database(other)
    with pytest.raises(OSError, match="unable to open database file"):
        Database(tmp_path)
    Database(tmp_path / "c" / "d" / "e.sqlite")
    with pytest.raises(OSError, match="unable to open database file"):
        read_settings(tmp_path / "f.sqlite", TARGET)
    with pytest.warns(UserWarning, match="is left out: .*expected a tuning database"), PassContext(config={"tuning.database": str(path)}):
        assert current_records(TARGET).settings == {}


def run_python(code, *arguments, **options):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], **options)


def test_two_processes_write_at_the_same_time(tmp_path):
    path = tmp_path / "new.sqlite"
    code = """
        import sys
        from pathlib import Path
        from relayc.pipelines.history.database import Database
        from relayc.pipelines.history.record import Record, Trial
        database = Database(Path(sys.argv[1]))
        for i in range(40):
            record = Record(f"{sys.argv[2]}{i}", "t", "k", (), "s", {"n": i}, 1.0, 2.0, 2.0, 1.0, 3.0, i)
            database.add(Trial("shared", "s", {"who": sys.argv[2], "n": i}, 0.5), record)
    """
    writers = [run_python(code, path, name) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = Database(path)
    assert len(found.best()) == 80
    numbers = [(t.numbers["who"], t.numbers["n"]) for t in found.trials("shared")]
    assert sorted(numbers) == [(who, n) for who in "ab" for n in range(40)]


def test_another_process_may_create_the_file_while_it_is_looked_at(tmp_path, monkeypatch):
    """Between two reads of it the database comes into being, unless the first read keeps others from that."""
    path, others = tmp_path / "new.sqlite", []

    class Connection(sqlite3.Connection):
        def execute(self, statement, *values):
            if "sqlite_master" in statement and not others:
                others.append(Thread(target=Database, args=(path,)))
                others[0].start()
                others[0].join(0.5)
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    found = Database(path)
    others[0].join()
    assert found.best() == []


def test_a_writer_that_is_killed_leaves_what_was_there(database):
    database.put(record("a"))
    code = """
        import sys, time
        from pathlib import Path
        from dataclasses import replace
        from relayc.pipelines.history.database import Database, _put
        from relayc.pipelines.history.record import Trial
        database = Database(Path(sys.argv[1]))
        with database._writing() as db:
            _put(db, replace(database.record("a"), strategy="half"))
            db.execute("DELETE FROM trials")
            print("writing", flush=True)
            time.sleep(100)
    """
    database.add(Trial("a", "s", {}, 1.0))
    writer = run_python(code, database.path, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "writing\n"
    assert database.record("a") == record("a")  # readers do not wait
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    assert database.record("a") == record("a") and len(database.trials("a")) == 1
    database.put(record("b"))  # and the lock is gone


def test_a_lock_that_stays_is_an_error(database, monkeypatch):
    monkeypatch.setattr("relayc.pipelines.history.database._WAIT_SECONDS", 0.1)
    with database._writing():
        with pytest.raises(OSError, match=r"tuning\.sqlite: database is locked"):
            database.put(record("a"))
        assert current_records(TARGET).settings == {}


def test_what_is_locked_is_tried_until_the_time_has_passed(monkeypatch):
    now, tries = [0.0], []
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(database_module, "time", clock)
    monkeypatch.setattr(database_module, "_WAIT_SECONDS", 0.02)

    def action():
        tries.append(now[0])
        if len(tries) != 5:
            raise sqlite3.OperationalError("database is locked")

    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        database_module._retried(action)
    assert tries == pytest.approx([0, 0.01, 0.02, 0.03])
    database_module._retried(action)
    assert len(tries) == 5


def test_where_the_database_is(monkeypatch, tmp_path):
    monkeypatch.setenv("RELAYC_TUNING_DB", "0")
    assert default_database() is None
    monkeypatch.setenv("RELAYC_TUNING_DB", str(tmp_path / "x"))
    assert default_database() == tmp_path / "x"
    monkeypatch.delenv("RELAYC_TUNING_DB")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    assert default_database() == tmp_path / "tuning.sqlite"
    for name in ("one", "other"):
        assert Database(tmp_path / "a" / "b" / name).best() == []
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_the_order_of_records_and_of_numbers_is_no_part_of_their_digest():
    first, second = ("a", {"strategy": "loops", "loops.rows": 1}), ("b", {"loops.rows": 2, "strategy": "loops"})
    assert records_of(dict([first, second])).digest == records_of(dict([second, first])).digest


# ---- application --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tuned(database):
    """A database with three rows in a tile for the kernel of `dense`, which has more by default."""
    (key,) = keys(dense())
    database.put(record(key, {"rows": 3, "vectors": 1}))
    return database


def test_records_apply(tuned, monkeypatch):
    assert "rows=3 " not in schedule_of(dense())
    with relayc.tune.ApplyHistoryBest(tuned.path):
        assert schedule_of(dense()).startswith("contraction rows=3 vectors=1 ")
        assert schedule_of(dense("n"))  # other kernels get what they always get
        x = np.random.default_rng(1).standard_normal((64, 256), np.float32)
        found = relayc.compile(dense(), TARGET)["main"](x)
    np.testing.assert_allclose(found, relayc.compile(dense(), TARGET, opt_level=0)["main"](x), rtol=1e-4, atol=1e-4)
    assert "rows=3 " not in schedule_of(dense())
    monkeypatch.setenv("RELAYC_TUNING_DB", str(tuned.path))
    assert "rows=3 " in schedule_of(dense())
    with PassContext(config={"tuning.database": ""}):
        assert "rows=3 " not in schedule_of(dense())


def test_every_kernel_of_a_model_gets_its_record(database):
    model = chain(32, 48, 96, 80)
    found = keys(model)
    assert len(set(found)) == 3
    database.put(*(record(key, {"rows": rows, "vectors": 1}) for key, rows in zip(found, (1, 2, 3), strict=True)))
    with relayc.tune.ApplyHistoryBest(database.path):
        kernels = relayc.compile(model, TARGET).kernels
    assert sorted(kernel.schedule.split()[1] for kernel in kernels) == ["rows=1", "rows=2", "rows=3"]


def test_a_kernel_with_a_symbol_gets_its_record_by_another_name(database):
    (key,) = keys(dense("batch"))
    database.put(record(key, {"rows": 3}))
    with relayc.tune.ApplyHistoryBest(database.path):
        assert "rows=3 " in schedule_of(dense("n"))


@pytest.mark.parametrize(
    ("config", "is_recorded"),
    [
        ({"schedule.contraction.rows": 5}, False),
        ({"schedule.kernels": {"fused_dense*": {"contraction.rows": 5}}}, False),
        ({"schedule.kernels": {"fused_dense*": {"strategy": "loops"}}}, False),
        ({"schedule.kernels": {"other*": {"contraction.rows": 5}}}, True),
    ],
)
def test_what_the_user_sets_wins(tuned, config, is_recorded):
    with PassContext(config=config):
        without = schedule_of(dense())
    with PassContext(config={"tuning.database": str(tuned.path), **config}):
        found = schedule_of(dense())
    assert ("rows=3 " in found) == is_recorded
    if "kernels" in next(iter(config)) and not is_recorded:
        assert found == without
    if not is_recorded:
        assert "rows=5 " in found or found.startswith("loops ")


def test_schedules_by_name_win(tuned):
    with relayc.tune.ApplyHistoryBest(tuned.path):
        assert schedule_of(dense(), schedules={"fused_dense*": lambda s: None}).startswith("<lambda>")


def test_records_that_do_not_fit_are_left_out(database):
    (key,) = keys(dense())
    default = schedule_of(dense())
    for numbers, strategy in (({"gone": 3}, "contraction"), ({"rows": 3}, "gone"), ({"rows": "x"}, "contraction"), ({}, "attention")):
        database.put(record(key, numbers, strategy=strategy))
        with relayc.tune.ApplyHistoryBest(database.path):
            assert schedule_of(dense()) == default


def test_programs_in_the_cache_are_those_of_the_records(tuned, monkeypatch, tmp_path):
    monkeypatch.delenv("RELAYC_CACHE", raising=False)
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RELAYC_TUNING_DB", str(tuned.path))
    (key,) = keys(dense())

    def compiled():
        module = relayc.compile(dense(), TARGET)
        return module.kernels[0].schedule, "cache" in module.stats

    first, cached = compiled()
    assert "rows=3 " in first and not cached
    assert compiled() == (first, True)
    tuned.put(record("of another kernel", target="cpu -num-threads=77"))  # another target's
    assert compiled() == (first, True)
    tuned.put(record(key, {"rows": 4, "vectors": 1}))
    second, cached = compiled()
    assert "rows=4 " in second and not cached
    tuned.put(record(key, {"rows": 3, "vectors": 1}))
    assert compiled() == (first, True)


def test_nothing_is_imported_where_there_is_no_database(tmp_path):
    code = """
        import sys, relayc
        from relayc.pipelines.history.records import current_records
        assert not current_records(relayc.Target("cpu")).settings
        assert "sqlite3" not in sys.modules
    """
    environment = {**os.environ, "RELAYC_TUNING_DB": str(tmp_path / "none")}
    assert run_python(code, env=environment).wait() == 0


def test_a_record_is_plain_data():
    one = record("a", time=time.time(), sizes=((2, 3), (4,)))
    assert import_records(export_records([one])) == [one]
    assert json.loads(export_records([one]))["numbers"] == {"rows": 3}
