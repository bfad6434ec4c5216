"""Tables of records that come with relayc hold for all targets of a level, after the user's own records."""

from dataclasses import replace

import pytest
from tuned_models import dense

import relayc
from relayc import PassContext
from relayc.pipelines.history import records
from relayc.pipelines.history.database import Database, Record, export_records
from relayc.pipelines.history.keys import kernel_key
from relayc.pipelines.program.functions import read_functions

TARGET = relayc.Target("cpu -mcpu=x86-64-v3 -l2-bytes=262144 -num-threads=2")
LEVEL = relayc.Target("cpu -mcpu=x86-64-v3 -num-threads=2")


def record(target, rows):
    mod = relayc.compile(dense(), target, stop_after="te")
    with mod.context, mod.ranges:
        (key,) = (kernel_key(function, target) for function in read_functions(mod.module).kernels.values())
    return Record(key, str(target), "k", (), "contraction", {"rows": rows}, 1e-3, 2e-3, 2.0, 1.9, 2.1, 7)


def rows_of(target, path=None):
    with PassContext(config={} if path is None else {"tuning.database": str(path)}):
        return relayc.compile(dense(), target).kernels[0].schedule


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of the level with three rows."""
    monkeypatch.setattr(records, "TABLES", tmp_path)
    monkeypatch.setenv("RELAYC_TUNING_DB", str(tmp_path / "mine.sqlite"))
    path = tmp_path / "x86-64-v3.jsonl"
    path.write_text(export_records([record(LEVEL, 3)]))
    return path


def test_a_table_holds_for_its_level_and_number_of_threads(table):
    assert "rows=3" in rows_of(TARGET) and "rows=3" in rows_of(LEVEL)
    assert "rows=3" not in rows_of(relayc.Target("cpu -mcpu=x86-64-v3 -num-threads=1"))
    assert "rows=3" not in rows_of(relayc.Target("cpu -mcpu=x86-64-v2 -num-threads=2"))
    assert "rows=3" not in rows_of(TARGET, "")  # no records at all


def test_records_of_the_user_go_first(table, tmp_path):
    Database(tmp_path / "mine.sqlite").put(record(TARGET, 2))
    assert "rows=2" in rows_of(TARGET) and "rows=3" in rows_of(LEVEL)
    Database(tmp_path / "other.sqlite").put(record(LEVEL, 1))
    assert "rows=3" in rows_of(TARGET, tmp_path / "other.sqlite")


def test_a_table_is_part_of_the_digest(table, tmp_path):
    first = records.current_records(TARGET)
    assert first.digest and not first.settings
    table.write_text(export_records([replace(record(LEVEL, 3), numbers={"rows": 2})]))
    assert records.current_records(TARGET).digest not in ("", first.digest)
    table.write_text("")
    assert records.current_records(TARGET) == records.NOTHING


def test_the_tables_of_this_package_are_read():
    for path in records.TABLES.glob("*.jsonl"):
        assert records.shipped_settings(relayc.Target(f"cpu -mcpu={path.stem}")) is not None
    assert (records.TABLES / "README.md").is_file()
