"""`relayc.diff` and `relayc diff`: what changed between two compilations: kernels, schedules, times, memory, results."""

import difflib
import os
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from relayc.runtime import Module, load_module
from relayc.symbolic import symbols_of
from relayc.tools.build import Build
from relayc.tools.inputs import inputs_of
from relayc.tools.record import Call, Record, make_record, sampled
from relayc.tools.reference import Difference, difference
from relayc.tools.timing import Comparison, compare_rounds, time_in_turns

SECONDS = 10.0
_PROFILES = 3
"""Profiles of each side, in turns."""


@dataclass(frozen=True)
class Side:
    """One of the programs.

    Attributes:
      module: None for a saved record.
      build: compiles it again; None for a library, or a given module.
    """

    name: str
    module: Module | None = None
    build: Build | None = None
    record: Record | None = None


@dataclass(frozen=True)
class Change:
    """Calls of both programs that stand for the same nodes, and do not do the same in the same way.

    Attributes:
      what: "added", "removed", "regrouped" (the nodes are in other kernels), or what changed of a call: "operators", "tensors" (shapes
        and types), "computation", "constants", "schedule".
      a, b: the calls.
    """

    what: tuple[str, ...]
    a: tuple[Call, ...]
    b: tuple[Call, ...]

    def texts(self) -> str:
        """The changed lines of computation and schedule, as a unified diff."""
        pairs = [(getattr(self.a[0], name), getattr(self.b[0], name)) for name in ("computes", "loops")] if self.a and self.b else []
        lines = [line for a, b in pairs for line in difflib.unified_diff(a.splitlines(), b.splitlines(), "a", "b", lineterm="", n=2)]
        return "\n".join(lines)

    def as_data(self) -> dict[str, Any]:
        """The change as plain data."""
        sides = {
            side: [{n: v for n, v in asdict(call).items() if n not in ("computes", "loops", "constants")} for call in calls]
            for side, calls in (("a", self.a), ("b", self.b))
        }
        return {"what": list(self.what), **sides, "texts": self.texts()}


@dataclass(frozen=True)
class Diff:
    """Differences between a program `a` and a program `b`.

    Attributes:
      interface: types of inputs and outputs that differ, by name: in a and in b, None if absent.
      changes: of kernel calls.
      memory: bytes in both by purpose, if they differ.
      outputs: their differences by name; None if the inputs, or the shapes of outputs, are not the same.
      times: of calls; None if they were not measured. Times of a saved record were not measured alternately.
      in_turns: whether both were measured alternately.
    """

    a: Record
    b: Record
    interface: Mapping[str, tuple[str | None, str | None]]
    changes: Sequence[Change]
    memory: Mapping[str, tuple[int, int]]
    outputs: Mapping[str, Difference] | None
    times: Comparison | None
    in_turns: bool

    @property
    def is_empty(self) -> bool:
        """Whether both are the same program, and give the same bits. Times do not count."""
        same = self.outputs is None or all(one.is_none for one in self.outputs.values())
        return same and not (self.interface or self.changes or self.memory)

    def as_data(self) -> dict[str, Any]:
        """The difference as plain data, for JSON."""
        return {
            "same": self.is_empty,
            "a": self.a.made_by,
            "b": self.b.made_by,
            "interface": {name: list(types) for name, types in self.interface.items()},
            "kernels": [change.as_data() for change in self.changes],
            "memory": {name: list(sizes) for name, sizes in self.memory.items()},
            "outputs": None if self.outputs is None else {name: asdict(one) for name, one in self.outputs.items()},
            "times": None if self.times is None else {**self.times.as_data(), "in_turns": self.in_turns},
        }

    def __str__(self) -> str:
        from relayc.tools.diff_tables import diff_parts
        from relayc.tools.tables import parts_text

        return parts_text(diff_parts(self, texts=False))


def diff(
    a: Any,
    b: Any = None,
    *,
    a_options: Mapping[str, Any] | None = None,
    b_options: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    seconds: float = SECONDS,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    **options: Any,
) -> Diff:
    """What changed between two compilations.

    Args:
      a, b: what `relayc.compile` takes, a Module, the path of an exported library (.so), or that of a record which `relayc diff --save`
        wrote (.json). By default b is a.
      a_options, b_options: options of `relayc.compile` for one of them; `options` are for both.
      inputs: by name; by default random ones.
      seconds: how long to time both in turns; 0 for no times.
      sizes, seed: of random inputs.

    Raises:
      ValueError, TypeError, OSError: as `relayc.compile` and the calls do; a file that is no record.
    """
    sides = [open_side(model, {**options, **(own or {})}) for model, own in ((a, a_options), (a if b is None else b, b_options))]

    def make(module: Module, fixed: Collection[str]) -> Mapping[str, Any]:
        return inputs_of(module, inputs, {name: size for name, size in (sizes or {}).items() if name not in fixed}, seed)

    return compare_records(*make_records(sides, make, seconds))


def open_side(model: Any, options: Mapping[str, Any], build: Build | None = None) -> Side:
    """A program, compiled, loaded or read; `build` specifies the compilation if `options` do not."""
    if isinstance(model, Module):
        return Side(repr(model), model)
    path = Path(model) if isinstance(model, (str, os.PathLike)) else Path()
    if path.suffix == ".json":
        return Side(str(path), record=Record.load(path))
    if path.suffix == ".so":
        return Side(str(path), load_module(path))
    build = build or Build.of(model, options)
    return Side(build.command or build.call, build.compile(), build)


def make_records(
    sides: Sequence[Side], make_inputs: Callable[[Module, Collection[str]], Mapping[str, Any]], seconds: float
) -> list[Record]:
    """Runs programs on the same inputs, and times them in turns.

    Args:
      make_inputs: gives inputs of a module, that of the side with fewer symbols; the other one takes them as well where it can. It is told
        the symbols that only other sides have.
    """
    live = sorted((side for side in sides if side.module is not None), key=lambda side: len(_symbols(side)))
    every = {name for side in live for name in _symbols(side)}
    given: dict[int, Mapping[str, Any]] = {}
    for side in live:
        inputs = given.get(id(live[0])) or make_inputs(_module(side), every - _symbols(side))
        try:
            _module(side).run(inputs)
        except (ValueError, TypeError):
            if side is live[0]:
                raise
            inputs = make_inputs(_module(side), every - _symbols(side))  # other inputs: results are not compared
        given[id(side)] = inputs
    records = [side.record or make_record(_module(side), given[id(side)], side.build, side.name) for side in sides]
    if seconds > 0:
        _time([(_module(s), given[id(s)], r) for s, r in zip(sides, records, strict=True) if s.module is not None], seconds)
    return records


def _module(side: Side) -> Module:
    assert side.module is not None  # not a record
    return side.module


def _symbols(side: Side) -> set[str]:
    return {name for spec in _module(side).inputs for d in spec.shape for name in symbols_of(d)}


def _time(live: Sequence[tuple[Module, Mapping[str, Any], Record]], seconds: float) -> None:
    """Enters the times of programs, taken in turns, into their records."""
    if not live:
        return
    start = time.perf_counter()
    for turn in range(_PROFILES):
        for module, inputs, record in live if turn % 2 == 0 else live[::-1]:
            for call, row in zip(record.calls, module.profile(inputs, repeat=5).rows, strict=True):
                call.seconds.append(row.seconds)
    calls = [partial(module.run, inputs) for module, inputs, _ in live]
    rounds = time_in_turns(calls, max(seconds - (time.perf_counter() - start), seconds / 2))
    for (_, _, record), times in zip(live, rounds, strict=True):
        record.latency = list(times)


def compare_records(a: Record, b: Record) -> Diff:
    """The differences between two records."""
    names = dict.fromkeys((*a.interface, *b.interface))
    interface = {name: (a.interface.get(name), b.interface.get(name)) for name in names if a.interface.get(name) != b.interface.get(name)}
    memory = {name: (a.memory.get(name, 0), b.memory.get(name, 0)) for name in dict.fromkeys((*a.memory, *b.memory))}
    changes: list[Change] = [change for ours, theirs in matched(a.calls, b.calls) if (change := _change(ours, theirs)) is not None]
    if a.constants != b.constants and not {"constants", "added", "removed", "regrouped"} & {w for c in changes for w in c.what}:
        interface["constants"] = a.constants, b.constants  # which calls read them is not known
    in_turns = not (a.is_saved or b.is_saved)
    times = compare_rounds(a.latency, b.latency, in_turns) if a.latency and b.latency else None
    return Diff(a, b, interface, changes, {n: s for n, s in memory.items() if s[0] != s[1]}, _outputs(a, b), times, in_turns)


def _outputs(a: Record, b: Record) -> dict[str, Difference] | None:
    if a.inputs != b.inputs or a.outputs.keys() != b.outputs.keys():
        return None
    is_saved = a.is_saved or b.is_saved
    found = {}
    for name, wanted in a.outputs.items():
        ours, theirs = (sampled(wanted), sampled(b.outputs[name])) if is_saved else (wanted, b.outputs[name])
        if ours.shape != theirs.shape:
            return None
        found[name] = difference(theirs, ours)
    return found


# ---- which calls stand for the same ------------------------------------------------------------------------------------------------


def matched(a: Sequence[Call], b: Sequence[Call]) -> list[tuple[list[Call], list[Call]]]:
    """Calls of both programs that stand for the same nodes of the model, in groups.

    Calls of the same nodes and operators at the same place are paired in their order. Of the others, those are a group that share nodes;
    those without nodes are paired by their operators.
    """
    groups: list[tuple[list[Call], list[Call]]] = []
    rest_a, rest_b = list(a), list(b)
    for facts in (("where", "sources", "operators", "tensors"), ("where", "sources", "operators")):
        waiting: dict[str, list[Call]] = {}
        for call in rest_b:
            waiting.setdefault(repr([getattr(call, name) for name in facts]), []).append(call)
        for call in list(rest_a):
            others = waiting.get(repr([getattr(call, name) for name in facts]))
            if others:
                other = others.pop(0)
                groups.append(([call], [other]))
                rest_a, rest_b = [c for c in rest_a if c is not call], [c for c in rest_b if c is not other]
    while rest_a or rest_b:
        ours, theirs = ([rest_a.pop(0)], []) if rest_a else ([], [rest_b.pop(0)])
        grows = True
        while grows:
            nodes = {node for call in (*ours, *theirs) for node in call.sources}
            grows = False
            for rest, group in ((rest_a, ours), (rest_b, theirs)):
                found = [call for call in rest if nodes & set(call.sources)]
                group += found
                rest[:] = [call for call in rest if not any(call is one for one in found)]
                grows = grows or bool(found)
        groups.append((ours, theirs))
    places = {id(call): i for calls in (b, a) for i, call in enumerate(calls)}
    return sorted(groups, key=lambda group: min(places[id(call)] for call in group[0] or group[1]))


def _change(a: Sequence[Call], b: Sequence[Call]) -> Change | None:
    if len(a) == len(b) == 1:
        what = _changed(a[0], b[0])
        return Change(what, tuple(a), tuple(b)) if what else None
    return Change(("removed" if not b else "added" if not a else "regrouped",), tuple(a), tuple(b))


def _changed(a: Call, b: Call) -> tuple[str, ...]:
    """The changes of a call."""
    found = [name for name in ("operators", "tensors", "constants") if getattr(a, name) != getattr(b, name)]
    both = bool(a.computes and b.computes)
    if both and a.computes != b.computes and not {"operators", "tensors"} & set(found):
        found.append("computation")
    same_work = not both or a.computes == b.computes
    if a.schedule != b.schedule or (same_work and a.loops and b.loops and a.loops != b.loops):
        found.append("schedule")
    return tuple(found)


def seconds_of(calls: Sequence[Call]) -> float | None:
    """Total of the median seconds of calls; None if they were not timed."""
    return sum(statistics.median(call.seconds) for call in calls) if calls and all(call.seconds for call in calls) else None
