"""Measurements of schedules as plain data, and their text: lines of JSON."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """The best numbers of a kernel.

    Attributes:
      key: see history.keys; target: its text; kernel, ops: name and operators where the kernel was first seen, for people.
      strategy, numbers: what to compile it with.
      seconds, default_seconds: of a call, with these numbers and with those that relayc chooses.
      ratio: of the second to the first; low, high: the interval that the true ratio is in with a probability of 99 %.
      trials: how many combinations had been measured.
      sizes: of its tensors, where it has symbols.
      machine, time: where and when (seconds since the epoch) it was measured.
      is_checked: whether a whole model was measured to be no slower with it.
      level_key: the key of the kernel for the level of the target, by which a record that comes with relayc is found (history.records).
    """

    key: str
    target: str
    kernel: str
    ops: tuple[str, ...]
    strategy: str
    numbers: Mapping[str, Any]
    seconds: float
    default_seconds: float
    ratio: float
    low: float
    high: float
    trials: int
    sizes: tuple[tuple[int, ...], ...] = ()
    machine: str = ""
    time: float = 0.0
    is_checked: bool = False
    level_key: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What to set for the kernel in `schedule.kernels` of a PassContext."""
        return {"strategy": self.strategy, **{f"{self.strategy}.{name}": value for name, value in self.numbers.items()}}


@dataclass(frozen=True)
class Trial:
    """One measurement.

    Attributes:
      key: of the kernel; strategy, numbers: the measured schedule.
      relative: time of a call relative to the default schedule; None if it was not measured.
      outcome: "measured", or why there is no measurement: "declined", "wrong", "crashed", "timeout", "failed"; "refused" for numbers that
        improve the kernel but not the whole model.
      message: text of the error.
      features: of the measured loops, for a cost model (pipelines.tir.analysis.features).
    """

    key: str
    strategy: str
    numbers: Mapping[str, Any]
    relative: float | None
    outcome: str = "measured"
    message: str = ""
    seconds: float = 0.0
    default_seconds: float = 0.0
    rounds: int = 0
    machine: str = ""
    time: float = field(default_factory=time.time)
    features: tuple[float, ...] = ()


def export_records(records: Iterable[Record]) -> str:
    """Records as lines of JSON."""
    return "".join(f"{text_of(record)}\n" for record in records)


def import_records(text: str) -> list[Record]:
    """The records in lines of JSON. Raises ValueError for an invalid line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                found.append(record_of(line))
            except ValueError as error:
                raise ValueError(f"line {number}: expected a record of `relayc tune --export`, found another line ({error})") from None
    return found


def text_of(one: Record | Trial) -> str:
    """A record or a trial as one line of JSON."""
    return json.dumps(asdict(one), separators=(",", ":"))


def record_of(text: str) -> Record:
    """The record in a line of JSON. Raises ValueError for an invalid record."""
    try:
        data = json.loads(text)
        data["ops"], data["sizes"] = tuple(data["ops"]), tuple(map(tuple, data["sizes"]))
        return Record(**with_tuples(data))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no record: {error}") from None


def with_tuples(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record or a trial, with tuples for the lists of JSON."""
    features = {"features": tuple(data["features"])} if "features" in data else {}
    return {**data, **features, "numbers": tuples_of(data["numbers"])}


def tuples_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values in which several numbers together, which are lists in JSON, are tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
