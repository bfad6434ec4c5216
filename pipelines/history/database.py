"""The database of measurements: SQLite, one file, several processes at a time.

Every change is one transaction of a database in WAL mode: a process that dies while it writes leaves what was there before, readers never
wait, and writers wait for each other. `trials` has every measurement, so that a search goes on where an earlier one ended; `best` has one
record for each kernel, which applies when a program is compiled. A record of a better ratio replaces one of a worse ratio, so that
databases can be merged in any order.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from relayc.pipelines.history.record import Record, Trial, record_of, text_of, tuples_of, with_tuples

VERSION = 1
_WAIT_SECONDS = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS best (key TEXT PRIMARY KEY, target TEXT NOT NULL, settings TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS best_by_target ON best (target);
CREATE TABLE IF NOT EXISTS trials (number INTEGER PRIMARY KEY, key TEXT NOT NULL, trial TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS trials_by_key ON trials (key);
"""


class Database:
    """The database in a file, which is created if it is missing.

    Raises:
      ValueError: the file is not a tuning database. OSError: it cannot be opened or created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        with _opened(path) as db:
            if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
                return
            _retried(lambda: db.execute("PRAGMA journal_mode = WAL"))
            db.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction; an error, or the end of the process, takes all of it back."""
        with _opened(self.path) as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    def best(self, target: str | None = None) -> list[Record]:
        """The best records, of one target or of all, those that gain most first."""
        where, values = ("", ()) if target is None else (" WHERE target = ?", (target,))
        with _opened(self.path) as db:
            rows = db.execute(f"SELECT record FROM best{where}", values).fetchall()
        return sorted((record_of(text) for (text,) in rows), key=lambda one: -one.ratio)

    def record(self, key: str) -> Record | None:
        """The best record of a kernel."""
        with _opened(self.path) as db:
            row = db.execute("SELECT record FROM best WHERE key = ?", (key,)).fetchone()
        return None if row is None else record_of(row[0])

    def trials(self, key: str) -> list[Trial]:
        """The measurements of a kernel, in order."""
        with _opened(self.path) as db:
            rows = db.execute("SELECT trial FROM trials WHERE key = ? ORDER BY number", (key,)).fetchall()
        return [Trial(**with_tuples(json.loads(text))) for (text,) in rows]

    def examples(self) -> list[tuple[tuple[float, ...], float]]:
        """Features and seconds of all measurements of all kernels, in order: training data of a cost model."""
        with _opened(self.path) as db:
            rows = db.execute("SELECT trial FROM trials ORDER BY number").fetchall()
        found = [json.loads(text) for (text,) in rows]
        return [(tuple(one["features"]), one["seconds"]) for one in found if one.get("features") and one["relative"] is not None]

    def add(self, trial: Trial, record: Record | None = None) -> None:
        """Adds a measurement and the record that results from it, atomically."""
        with self._writing() as db:
            db.execute("INSERT INTO trials (key, trial) VALUES (?, ?)", (trial.key, text_of(trial)))
            if record is not None:
                _put(db, record)

    def put(self, *records: Record) -> None:
        """Sets the best records of kernels."""
        with self._writing() as db:
            for record in records:
                _put(db, record)

    def remove(self, keys: Iterable[str]) -> None:
        """Removes the best records of kernels; measurements are kept."""
        with self._writing() as db:
            db.executemany("DELETE FROM best WHERE key = ?", [(key,) for key in keys])

    def merge(self, records: Iterable[Record]) -> int:
        """Adds records that are missing or have a better ratio; returns their number."""
        count = 0
        with self._writing() as db:
            for record in records:
                row = db.execute("SELECT record FROM best WHERE key = ?", (record.key,)).fetchone()
                if row is None or record_of(row[0]).ratio < record.ratio:
                    _put(db, record)
                    count += 1
        return count


def read_settings(path: Path, target: str) -> dict[str, dict[str, Any]]:
    """The settings of the best records for a target, by key. Raises ValueError or OSError as `Database`."""
    with _opened(path, writes=False) as db:
        rows = db.execute("SELECT key, settings FROM best WHERE target = ?", (target,)).fetchall()
    return {key: tuples_of(json.loads(settings)) for key, settings in rows}


@contextmanager
def _opened(path: Path, writes: bool = True) -> Iterator[sqlite3.Connection]:
    """A connection. Raises ValueError for a file that is not a tuning database, OSError if it cannot be read or written."""
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if writes else 'ro'}"
    try:
        opened = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise OSError(f"{path}: {error}") from None
    with closing(opened) as db:
        try:
            db.execute("BEGIN")  # one state of the file, which another process may be creating
            version = db.execute("PRAGMA user_version").fetchone()[0]
            is_empty = version == 0 and not db.execute("SELECT name FROM sqlite_master").fetchone()
            db.execute("COMMIT")
            if version != VERSION and not (writes and is_empty):
                found = f"version {version}" if version else "none"
                raise ValueError(f"{path}: expected a tuning database of version {VERSION}, found {found}")
            yield db
        except sqlite3.OperationalError as error:  # locked for too long, no room
            raise OSError(f"{path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{path}: expected a tuning database, found another file ({error})") from None


def _retried(action: Callable[[], Any]) -> None:
    """An action for which SQLite does not wait until other processes are through with the file."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _put(db: sqlite3.Connection, record: Record) -> None:
    values = record.key, record.target, json.dumps(record.settings), text_of(record)
    db.execute("INSERT OR REPLACE INTO best (key, target, settings, record) VALUES (?, ?, ?, ?)", values)
