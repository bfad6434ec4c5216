"""The strategy table: the strategies, their order, and their tunable numbers.

A kernel gets the first strategy of its target that accepts it (see tir.strategy.choice). The numbers of a strategy are its defaults, unless
set through `PassContext.config`: `{"schedule.contraction.rows": 6}` for every kernel, or by patterns of kernel names, with the strategy if
only one may be tried: `{"schedule.kernels": {"fused_dense*": {"contraction.rows": 4}, "fused_add": {"strategy": "loops"}}}`. `relayc
inspect` and `KernelInfo.schedule` show the choice for each kernel. A kernel that no strategy accepts, or with the strategy FALLBACK,
becomes plain loops (pipelines.tir.fallback.bufferize).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from relayc.nearest import nearest
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.passes import config_option
from relayc.pipelines.context.target import Target
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning

Strategy = Callable[[Kernel, Target, Tuning], Scheduled | None]
"""Emits a kernel in tir at the ambient insertion point, or returns None if it does not accept the kernel. It requests its numbers from the
Tuning. It may raise NotStructured, or Undecided if its choice depends on unknown sizes: then the emitted operations are removed."""

DEFAULT_PLEVEL = 10

FALLBACK = "bufferize"
"""As a strategy: no strategy is tried, and the kernel becomes plain loops."""


@dataclass(frozen=True)
class Parameter:
    """A tunable number: its default, or a description of how it is computed, and its maximum. The strategy gives sensible values for a
    kernel where it requests the number (see Tuning.number)."""

    name: str
    default: int | str
    doc: str
    most: int = 1 << 40


@dataclass(frozen=True)
class Entry:
    """A strategy in the table.

    Attributes:
      name: for users.
      schedule: returns the kernel in tir, or None if it does not accept it.
      operators, shapes, dtypes: descriptions of accepted kernels, for documentation: the strategy itself examines the loops of the kernel.
      parameters: its tunable numbers.
      features: features that the target must have, all of them.
      anchors: Relay's names of operators: only for kernels with one of these as anchor; for all kernels if empty.
      condition: predicate on kernel and target; None if `schedule` decides alone.
      plevel: strategies of higher level are tried first, of equal ones the last registered first; the package's have DEFAULT_PLEVEL.
      has_knobs: whether it is a hand-written schedule, whose numbers are its knobs: only the schedule itself knows them.
    """

    name: str
    schedule: Strategy
    operators: str = ""
    shapes: str = ""
    dtypes: str = ""
    parameters: tuple[Parameter, ...] = ()
    features: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    condition: Callable[[Kernel, Target], bool] | None = None
    plevel: int = DEFAULT_PLEVEL
    has_knobs: bool = False


STRATEGIES: dict[str, list[Entry]] = {}
"""Strategies registered from outside a backend, by kind of target; see `register_strategies`."""

_OPTION, _KERNELS = "schedule.", "schedule.kernels"
FUNCTIONS, WHY = "schedule.functions", "schedule.why"

config_option(_KERNELS, dict, {}, "parameters by pattern of kernel names, which go before those for all; also strategy=NAME")
config_option(FUNCTIONS, dict, {}, "schedules that people wrote by pattern of kernel names (relayc.compile: schedules)")
config_option(WHY, bool, False, "keep for each kernel why strategies that were asked before its own did not take it")


def declare_options(entries: Sequence[Entry]) -> None:
    """Declares the tunable numbers of strategies as options of a PassContext."""
    for entry in entries:
        for parameter in entry.parameters:
            config_option(f"{_OPTION}{entry.name}.{parameter.name}", int, None, f"{parameter.doc} (default: {parameter.default})")


def register_strategies(kind: str, *entries: Entry) -> None:
    """Adds strategies for a kind of target ("cpu"), tried in the given order before strategies registered earlier and before the backend's,
    except where `plevel` differs.

    Raises:
      ValueError: another strategy of this kind of target has the name.
    """
    for name in (e.name for e in entries):
        if name in (e.name for e in strategies_of(kind)):
            raise ValueError(f"strategies of {kind}: there is one of the name {name!r} already")
    STRATEGIES.setdefault(kind, [])[:0] = entries
    declare_options(entries)


def strategies_of(kind: str) -> Sequence[Entry]:
    """The strategies of a kind of target, in the order in which they are tried."""
    return sorted([*STRATEGIES.get(kind, ()), *find_backend(kind).strategies()], key=lambda entry: -entry.plevel)


def tuning_for(
    kernel: str,
    config: Mapping[str, Any],
    kind: str = "cpu",
    schedule: str | None = None,
    asks_values: bool = False,
    recorded: Mapping[str, Any] | None = None,
) -> Tuning:
    """The numbers that `config` (of a PassContext) sets for a kernel; of several matching patterns, later ones replace earlier ones.

    Args:
      recorded: the best measured numbers for the kernel. Numbers that `config` sets for all kernels override them; they are ignored if a
        pattern of `config` matches the kernel.
      schedule: the name of a schedule that the kernel gets by its name, which is not in the table.
      asks_values: whether strategies should give the sensible values.

    Raises:
      ValueError: a strategy or parameter that is not in the table, or a value that is not a number within its range.
    """
    table = strategies_of(kind)
    named: dict[str, Any] = {}
    for pattern, values in config.get(_KERNELS, {}).items():
        if fnmatchcase(kernel, pattern):
            named |= values
    given = {**({} if named else recorded or {}), **_numbers_for_all(config), **named}
    strategies = [entry.name for entry in table] if schedule is None else [schedule]
    with_knobs = [entry.name for entry in table if entry.has_knobs] + ([] if schedule is None else [schedule])
    known = {f"{entry.name}.{parameter.name}": parameter.most for entry in table for parameter in entry.parameters}
    for name, value in given.items():
        if name == "strategy":
            if value not in (*strategies, FALLBACK):
                raise ValueError(
                    f"schedule of {kernel}: expected a strategy out of {', '.join(strategies)}, found {value!r}{nearest(value, strategies)}"
                )
        elif name in known:
            if not isinstance(value, int) or not 1 <= value <= known[name]:
                raise ValueError(f"schedule of {kernel}: {name}: expected a number of 1 to {known[name]}, found {value!r}")
        elif name.partition(".")[0] not in with_knobs:
            raise ValueError(
                f"schedule of {kernel}: expected parameters out of {', '.join(sorted(known))}, found {name!r}{nearest(name, known)}"
            )
    return Tuning(given, asks_values)


def _numbers_for_all(config: Mapping[str, Any]) -> dict[str, Any]:
    other = (_KERNELS, FUNCTIONS, WHY)
    return {key.removeprefix(_OPTION): value for key, value in config.items() if key.startswith(_OPTION) and key not in other}


def strategy_table(kind: str = "cpu") -> str:
    """The table as Markdown."""
    lines = ["| strategy | operators | shapes | element types | features | parameters |", "|---|---|---|---|---|---|"]
    for entry in strategies_of(kind):
        parameters = "<br>".join(f"`{p.name}` {p.doc} ({p.default})" for p in entry.parameters)
        features = ", ".join(entry.features) or "any"
        lines.append(f"| {entry.name} | {entry.operators} | {entry.shapes} | {entry.dtypes} | {features} | {parameters} |")
    return "\n".join(lines) + "\n"
