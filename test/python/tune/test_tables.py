"""Tables of records that come with relayc hold for all targets of a level with the same caches, after the user's own records."""

from dataclasses import replace

import pytest
from tuned_models import dense

import relayc
from relayc import PassContext
from relayc.pipelines.history import records
from relayc.pipelines.history.database import Database
from relayc.pipelines.history.keys import kernel_key
from relayc.pipelines.history.record import Record, export_records, import_records
from relayc.pipelines.program.functions import read_functions

LEVEL = "cpu -mcpu=x86-64-v3 -num-threads=2 -l1-bytes=32768 -l2-bytes=524288"
TARGET = relayc.Target(LEVEL)
OTHER = relayc.Target(f"{LEVEL} -mattr=+avxvnni -l3-bytes=67108864")


def record(target, rows):
    mod = relayc.compile(dense(), target, stop_after="te")
    with mod.context, mod.ranges:
        (function,) = read_functions(mod.module).kernels.values()
        key, level_key = kernel_key(function, target), kernel_key(function, records.level_of(target))
    numbers = {"rows": rows}
    return Record(key, str(target), "k", (), "contraction", numbers, 1e-3, 2e-3, 2.0, 1.9, 2.1, 7, is_checked=True, level_key=level_key)


def rows_of(target, path=None):
    with PassContext(config={} if path is None else {"tuning.database": str(path)}):
        return relayc.compile(dense(), target).kernels[0].schedule


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with a record of three rows, measured on one target of the level."""
    monkeypatch.setattr(records, "TABLES", tmp_path)
    monkeypatch.setenv("RELAYC_TUNING_DB", str(tmp_path / "mine.sqlite"))
    path = tmp_path / "x86-64-v3.jsonl"
    path.write_text(export_records([record(OTHER, 3)]))
    return path


def test_a_table_holds_for_its_level_threads_and_caches(table):
    assert "rows=3" in rows_of(TARGET) and "rows=3" in rows_of(OTHER)
    for other in ("-num-threads=1", "-mcpu=x86-64-v2", "-l1-bytes=49152", "-l2-bytes=1048576"):
        name = other.partition("=")[0]
        words = [word for word in LEVEL.split() if not word.startswith(f"{name}=")]
        assert "rows=3" not in rows_of(relayc.Target(" ".join([*words, other]))), other
    assert "rows=3" not in rows_of(TARGET, "")  # no records at all


def test_a_record_without_a_check_by_a_model_does_not_come_with_relayc(table):
    table.write_text(export_records([replace(record(OTHER, 3), is_checked=False)]))
    assert "rows=3" not in rows_of(TARGET)


def test_no_level_but_the_target_itself_without_an_instruction_set():
    target = relayc.Target("cuda -arch=sm_80")
    assert records.level_of(target) == target and records.shipped_settings(target) == {}


def test_records_of_the_user_go_first(table, tmp_path):
    Database(tmp_path / "mine.sqlite").put(record(TARGET, 2))
    assert "rows=2" in rows_of(TARGET) and "rows=3" in rows_of(OTHER)
    Database(tmp_path / "other.sqlite").put(record(OTHER, 1))
    assert "rows=3" in rows_of(TARGET, tmp_path / "other.sqlite")


def test_a_table_is_part_of_the_digest(table, tmp_path):
    first = records.current_records(TARGET)
    assert first.digest and not first.settings
    table.write_text(export_records([replace(record(OTHER, 3), numbers={"rows": 2})]))
    assert records.current_records(TARGET).digest not in ("", first.digest)
    table.write_text("")
    assert records.current_records(TARGET) == records.NOTHING


def test_the_tables_of_this_package_are_read():
    for path in records.TABLES.glob("*.jsonl"):
        for record in import_records(path.read_text()):
            target = relayc.Target(record.target)
            assert target.attributes["mcpu"] == path.stem and record.is_checked
            assert records.shipped_settings(target)[record.level_key] == record.settings
    assert (records.TABLES / "README.md").is_file()
