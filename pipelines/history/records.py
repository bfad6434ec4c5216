"""Which measured numbers apply when something is compiled: those of a database for one target."""

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayc.pipelines.history.record import Record, import_records
from relayc.runtime.cache import default_folder, digest

if TYPE_CHECKING:
    from relayc.pipelines.context.target import Target

DATABASE, RECORDS = "tuning.database", "tuning.records"
"""Options of a PassContext."""
TABLES = Path(__file__).parent / "tables"
"""Records that come with relayc, a file for each level of processors."""
_VARIABLE = "RELAYC_TUNING_DB"
_OFF = ("0", "off", "no", "false")


@dataclass(frozen=True)
class Records:
    """Measured numbers by the keys of kernels.

    Attributes:
      settings: for each kernel, in the form of `schedule.kernels` of a PassContext.
      digest: of all settings; "" if there are none.
      shipped: settings distributed with relayc, by the keys of kernels for the level of the target (`level_of`); used if `settings` has
        none.
    """

    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    digest: str = ""
    shipped: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


NOTHING = Records()


def default_database() -> Path | None:
    """The file in RELAYC_TUNING_DB, otherwise tuning.sqlite in the folder of the compile cache; None if the variable turns it off."""
    named = os.environ.get(_VARIABLE, "")
    if named.lower() in _OFF:
        return None
    return Path(named).expanduser() if named else default_folder() / "tuning.sqlite"


def current_records(target: "Target") -> Records:
    """The records in use for a target: from the database of the ambient PassContext, otherwise from the default one, and the records
    distributed with relayc. Empty if databases are turned off. An unreadable database causes a warning, because records do not affect
    correctness."""
    passes = sys.modules.get("relayc.pipelines.context.passes")
    config = passes.PassContext.current().config if passes is not None else {}
    if config.get(RECORDS) is not None:
        return config[RECORDS]
    named = config.get(DATABASE)
    path = default_database() if named is None else Path(named) if named else None
    if path is None:
        return NOTHING
    settings: Mapping[str, Mapping[str, Any]] = {}
    if path.exists():
        from relayc.pipelines.history.database import read_settings

        try:
            settings = read_settings(path, str(target))
        except (OSError, ValueError) as error:
            warnings.warn(f"the tuning database {path} is left out: {error}", stacklevel=3)
    return records_of(settings, shipped_settings(target))


def records_of(settings: Mapping[str, Mapping[str, Any]], shipped: Mapping[str, Mapping[str, Any]] | None = None) -> Records:
    """Records with their digest."""
    if not settings and not shipped:
        return NOTHING
    parts = [settings, shipped] if shipped else [settings]
    return Records(settings, digest([json.dumps(part, sort_keys=True).encode() for part in parts]), shipped or {})


def level_of(target: "Target") -> "Target":
    """The target with the properties that the numbers of float kernels depend on: level, threads, and the caches of a core; a target that
    has no level itself. Records apply to all targets of one such target if they come with relayc."""
    from relayc.pipelines.context.target import Target

    if "mcpu" not in target.attributes:
        return target
    kept = ("mcpu", "num_threads", "l1_bytes", "l2_bytes")
    return Target(" ".join([target.kind, *(f"-{name.replace('_', '-')}={target.attributes[name]}" for name in kept)]))


@lru_cache
def _table(path: Path, changed: int) -> Sequence[Record]:
    """The records of a table that a whole model was measured with. They are read once as long as the file is not `changed`."""
    return tuple(record for record in import_records(path.read_text()) if record.is_checked)


def shipped_settings(target: "Target") -> Mapping[str, Mapping[str, Any]]:
    """The settings that come with relayc for the level of a target (`level_of`), by the key of a kernel for this level."""
    path = TABLES / f"{target.attributes.get('mcpu')}.jsonl"
    if not path.exists():
        return {}
    from relayc.pipelines.context.target import Target

    records, level = _table(path, path.stat().st_mtime_ns), level_of(target)
    fits = {text for text in {record.target for record in records} if level_of(Target(text)) == level}
    return {record.level_key: record.settings for record in records if record.target in fits}
