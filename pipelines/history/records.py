"""Which measured numbers apply when something is compiled: those of a database for one target."""

import json
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayc.runtime.cache import default_folder, digest

if TYPE_CHECKING:
    from relayc.pipelines.context.target import Target

DATABASE, RECORDS = "tuning.database", "tuning.records"
"""Options of a PassContext."""
_VARIABLE = "RELAYC_TUNING_DB"
_OFF = ("0", "off", "no", "false")


@dataclass(frozen=True)
class Records:
    """Measured numbers by the keys of kernels.

    Attributes:
      settings: of each kernel, as `schedule.kernels` of a PassContext has them.
      digest: of all of them; "" where there are none.
    """

    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    digest: str = ""


NOTHING = Records()


def default_database() -> Path | None:
    """The file that RELAYC_TUNING_DB names, else tuning.sqlite in the folder of the compile cache; None where the variable turns it off."""
    named = os.environ.get(_VARIABLE, "")
    if named.lower() in _OFF:
        return None
    return Path(named).expanduser() if named else default_folder() / "tuning.sqlite"


def current_records(target: "Target") -> Records:
    """The records that hold for a target: of the database of the ambient PassContext, else of the default one. A database that cannot be
    read is a warning: a program without records is as right as one with them."""
    passes = sys.modules.get("relayc.pipelines.context.passes")
    config = passes.PassContext.current().config if passes is not None else {}
    if config.get(RECORDS) is not None:
        return config[RECORDS]
    named = config.get(DATABASE)
    path = default_database() if named is None else Path(named) if named else None
    if path is None or not path.exists():
        return NOTHING
    from relayc.pipelines.history.database import read_settings

    try:
        return records_of(read_settings(path, str(target)))
    except (OSError, ValueError) as error:
        warnings.warn(f"the tuning database {path} is left out: {error}", stacklevel=3)
        return NOTHING


def records_of(settings: Mapping[str, Mapping[str, Any]]) -> Records:
    """Records with their digest."""
    return Records(settings, digest([json.dumps(settings, sort_keys=True).encode()])) if settings else NOTHING
