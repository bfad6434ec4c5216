"""The strategy table: which strategies there are, in which order they are asked, and their tunable numbers.

A kernel gets the first strategy of its target that takes it (see tir.strategy.choice). The numbers of a strategy are its defaults, unless
set through `PassContext.config`: `{"schedule.contraction.rows": 6}` for every kernel, or for those whose names match a pattern, with the
strategy where only one is to be asked: `{"schedule.kernels": {"fused_dense*": {"contraction.rows": 4}, "fused_add": {"strategy":
"loops"}}}`. `relayc inspect` and `KernelInfo.schedule` say what each kernel got. A kernel that no strategy takes, or for which FALLBACK is
said, becomes plain loops (pipelines.tir.fallback.bufferize).
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
"""Emits a kernel in tir at the ambient insertion point, or gives None where it does not take the kernel. It asks the Tuning for its
numbers, and may raise NotStructured, or Undecided where it does not know what to do for all sizes: what it has emitted until then is taken
back."""

DEFAULT_PLEVEL = 10

FALLBACK = "bufferize"
"""Says as a strategy that none is to be asked: the kernel becomes plain loops."""


@dataclass(frozen=True)
class Parameter:
    """A tunable number: its default, or what computes it, and the largest value. Which values are sensible for a kernel the strategy says
    where it asks for the number (see Tuning.number)."""

    name: str
    default: int | str
    doc: str
    most: int = 1 << 40


@dataclass(frozen=True)
class Entry:
    """A strategy in the table.

    Attributes:
      name: what users call it.
      schedule: gives the kernel in tir, None where it does not take it.
      operators, shapes, dtypes: what it takes, in words: the strategy itself looks at the loops of the kernel.
      parameters: its tunable numbers.
      features: features that the target must have, all of them.
      anchors: Relay's names of operators: it is for kernels that are made around one of these; for all where there are none.
      condition: says whether it is for a kernel and a target; None for one that its `schedule` decides.
      plevel: those of a higher one are asked first, of equals the one that was registered last; the package's have DEFAULT_PLEVEL.
      has_knobs: it is a schedule that a person wrote, whose numbers are its knobs: only the schedule itself knows them.
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
"""Strategies from outside of a backend, by kind of target; see `register_strategies`."""

_OPTION, _KERNELS = "schedule.", "schedule.kernels"
FUNCTIONS, WHY = "schedule.functions", "schedule.why"

config_option(_KERNELS, dict, {}, "parameters by pattern of kernel names, which go before those for all; also strategy=NAME")
config_option(FUNCTIONS, dict, {}, "schedules that people wrote by pattern of kernel names (relayc.compile: schedules)")
config_option(WHY, bool, False, "keep for each kernel why strategies that were asked before its own did not take it")


def declare_options(entries: Sequence[Entry]) -> None:
    """Makes the tunable numbers of strategies options of a PassContext."""
    for entry in entries:
        for parameter in entry.parameters:
            config_option(f"{_OPTION}{entry.name}.{parameter.name}", int, None, f"{parameter.doc} (default: {parameter.default})")


def register_strategies(kind: str, *entries: Entry) -> None:
    """Adds strategies for a kind of target ("cpu"): the first one given is asked first, and all of them before those registered so far
    and before those of the backend, where their `plevel` does not say otherwise.

    Raises:
      ValueError: a name that another strategy of this kind of target has.
    """
    for name in (e.name for e in entries):
        if name in (e.name for e in strategies_of(kind)):
            raise ValueError(f"strategies of {kind}: there is one of the name {name!r} already")
    STRATEGIES.setdefault(kind, [])[:0] = entries
    declare_options(entries)


def strategies_of(kind: str) -> Sequence[Entry]:
    """The strategies of a kind of target, in the order in which they are asked."""
    return sorted([*STRATEGIES.get(kind, ()), *find_backend(kind).strategies()], key=lambda entry: -entry.plevel)


def tuning_for(
    kernel: str,
    config: Mapping[str, Any],
    kind: str = "cpu",
    schedule: str | None = None,
    asks_values: bool = False,
    recorded: Mapping[str, Any] | None = None,
) -> Tuning:
    """What `config` (of a PassContext) sets for a kernel; of several patterns that match, later ones replace earlier ones.

    Args:
      recorded: what was measured to be best for the kernel. Numbers that `config` sets for all kernels replace those of it; where a pattern
        of `config` matches the kernel, it does not count.
      schedule: the name of a schedule that the kernel gets by its name, which is not in the table.
      asks_values: whether strategies are to say which values are sensible.

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
