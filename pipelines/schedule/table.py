"""The mechanism of the strategy table: which strategy takes which kernel, in which order, with which tunable numbers.

A kernel gets the first strategy of its target that takes it. The numbers of a strategy are its defaults, unless set through
`PassContext.config`: `{"schedule.contraction.rows": 6}` for every kernel, or for those whose names match a pattern, together with the
strategy where only one is to be asked: `{"schedule.kernels": {"fused_dense*": {"contraction.rows": 4}, "fused_add": {"strategy":
"loops"}}}`. `relayc inspect` and `KernelInfo.schedule` say what each kernel got. A kernel that no strategy takes becomes plain loops
(pipelines.codegen.bufferize).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.backend import find_backend
from relayc.pipelines.kernel.graph import Kernel, NotStructured, read_kernel
from relayc.pipelines.passes import config_option
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.symbolic import Undecided

Strategy = Callable[[Kernel, Target, Tuning], Scheduled | None]
"""Emits a kernel in tir at the ambient insertion point, or gives None where it does not take the kernel. It asks the Tuning for its
numbers, and may raise NotStructured, or Undecided where it does not know what to do for all sizes: what it has emitted until then is taken
back."""


@dataclass(frozen=True)
class Parameter:
    """A tunable number: its default, or what computes it, and the largest value."""

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
    """

    name: str
    schedule: Strategy
    operators: str = ""
    shapes: str = ""
    dtypes: str = ""
    parameters: tuple[Parameter, ...] = ()
    features: tuple[str, ...] = ()


STRATEGIES: dict[str, list[Entry]] = {}
"""Strategies from outside of a backend, by kind of target; see `register_strategies`."""

_OPTION, _KERNELS = "schedule.", "schedule.kernels"

config_option(_KERNELS, dict, {}, "parameters by pattern of kernel names, which go before those for all; also strategy=NAME")


def declare_options(entries: Sequence[Entry]) -> None:
    """Makes the tunable numbers of strategies options of a PassContext."""
    for entry in entries:
        for parameter in entry.parameters:
            config_option(f"{_OPTION}{entry.name}.{parameter.name}", int, None, f"{parameter.doc} (default: {parameter.default})")


def register_strategies(kind: str, *entries: Entry) -> None:
    """Adds strategies for a kind of target ("cpu"): the first one given is asked first, and all of them before those registered so far
    and before those of the backend.

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
    return [*STRATEGIES.get(kind, ()), *find_backend(kind).strategies()]


def tuning_for(kernel: str, config: Mapping[str, Any], kind: str = "cpu") -> Tuning:
    """What `config` (of a PassContext) sets for a kernel; of several patterns that match, later ones replace earlier ones.

    Raises:
      ValueError: a strategy or parameter that is not in the table, or a value that is not a number within its range.
    """
    table = strategies_of(kind)
    given = {key.removeprefix(_OPTION): value for key, value in config.items() if key.startswith(_OPTION) and key != _KERNELS}
    for pattern, values in config.get(_KERNELS, {}).items():
        if fnmatchcase(kernel, pattern):
            given |= values
    known = {f"{entry.name}.{parameter.name}": parameter.most for entry in table for parameter in entry.parameters}
    for name, value in given.items():
        if name == "strategy":
            if value not in (entry.name for entry in table):
                raise ValueError(f"schedule of {kernel}: expected a strategy out of {', '.join(e.name for e in table)}, found {value!r}")
        elif name not in known:
            raise ValueError(f"schedule of {kernel}: expected parameters out of {', '.join(sorted(known))}, found {name!r}")
        elif not isinstance(value, int) or not 1 <= value <= known[name]:
            raise ValueError(f"schedule of {kernel}: {name}: expected a number of 1 to {known[name]}, found {value!r}")
    return Tuning(given)


def schedule_kernel(source: ir.OpView, target: Target, config: Mapping[str, Any]) -> tuple[Scheduled, Tuning] | None:
    """Schedules a te function into the module at the ambient insertion point; None where only the fallback takes it.

    Args:
      config: of the PassContext (see `tuning_for`).
    """
    try:
        kernel = read_kernel(source)
    except NotStructured:
        return None
    tuning = tuning_for(kernel.name, config, target.kind)
    only = tuning.given.get("strategy")
    for entry in strategies_of(target.kind):
        if only not in (None, entry.name) or not all(map(target.has, entry.features)):
            continue
        block = ir.InsertionPoint.current.block
        before = len(block.operations)
        tuning.begin(entry.name)
        try:
            scheduled = entry.schedule(kernel, target, tuning)
        except (NotStructured, Undecided):
            for op in list(block.operations)[before:]:  # what was emitted until the operation that is not read
                op.operation.erase()
            continue
        if scheduled is not None:
            return scheduled, tuning
    return None


def strategy_table(kind: str = "cpu") -> str:
    """The table as Markdown."""
    lines = ["| strategy | operators | shapes | element types | features | parameters |", "|---|---|---|---|---|---|"]
    for entry in strategies_of(kind):
        parameters = "<br>".join(f"`{p.name}` {p.doc} ({p.default})" for p in entry.parameters)
        features = ", ".join(entry.features) or "any"
        lines.append(f"| {entry.name} | {entry.operators} | {entry.shapes} | {entry.dtypes} | {features} | {parameters} |")
    return "\n".join(lines) + "\n"
