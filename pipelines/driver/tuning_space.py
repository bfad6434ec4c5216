"""`relayc.tuning_space`: the tunable numbers of kernels, with the values that are sensible for each kernel and target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from relayc.dialects.discardable import UPDATES
from relayc.dialects.functions import calls_others, symbol_name
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.program.functions import read_functions
from relayc.pipelines.program.schedules import Schedules
from relayc.pipelines.program.single import parsed
from relayc.pipelines.te.read.graph import NotStructured, read_kernel
from relayc.pipelines.tir.analysis.features import features_of
from relayc.pipelines.tir.strategy.choice import offers, operators_of
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.table import FUNCTIONS, tuning_for
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.runtime.cache import digest

if TYPE_CHECKING:
    from relayc.pipelines.program.single import Source


@dataclass(frozen=True)
class TuningSpace:
    """The tunable numbers of a kernel by one strategy.

    Attributes:
      kernel: its name; ops: Relay's names of the operators that it was made of.
      strategy: of the strategy table, or a schedule that a person wrote; "bufferize" for a kernel that only plain loops take.
      chosen: what is used where nobody says otherwise, by parameter; a knob may be several numbers together, as a tuple.
      values: the sensible values of each, what is used among them. Those of a parameter hold while the others are as chosen: with some set
        to other values (`schedule.kernels` of a PassContext), ask again.
      loops: a digest of the loops that the chosen numbers give: numbers with equal loops need not both be measured.
      features: of these loops, for a cost model (pipelines.tir.analysis.features).
    """

    kernel: str
    ops: tuple[str, ...]
    strategy: str
    chosen: Mapping[str, Any]
    values: Mapping[str, tuple[Any, ...]]
    loops: str = field(default="", compare=False, repr=False)
    features: tuple[float, ...] = field(default=(), compare=False, repr=False)

    @property
    def size(self) -> int:
        """The number of combinations of values."""
        return prod(map(len, self.values.values()))

    def config(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The setting of `schedule.kernels` in a PassContext that gives the kernel these values."""
        if not self.chosen:
            return {}
        return {"strategy": self.strategy, **{f"{self.strategy}.{name}": value for name, value in values.items()}}


def tuning_space(
    kernels: "Source",
    target: "str | Target" = "cpu",
    name: str | None = None,
    schedules: Mapping[str, Any] | None = None,
    all_strategies: bool = False,
) -> list[TuningSpace]:
    """The tunable numbers of kernels, by the strategy that each gets, for whoever searches them.

    Args:
      kernels: functions of the te stage, as `relayc.compile(..., stop_after="te")` gives them: MLIR text, an operation, or a module; it
        stays as it is.
      target: as for `relayc.compile`. What the ambient PassContext sets for schedules holds.
      name: which function; by default all.
      schedules: as for `relayc.compile`.
      all_strategies: also those of all other strategies that would take a kernel (`strategy` of `schedule.kernels` chooses one), after the
        one that it gets.

    Raises:
      ValueError, TypeError: text that does not parse; there is no such function; as `relayc.compile` for `schedules`.
    """
    target = target if isinstance(target, Target) else Target(target)
    mod = parsed(kernels, "tuning_space")
    context = PassContext.current()
    config = {**context.config, FUNCTIONS: {**context.get(FUNCTIONS), **(schedules or {})}}
    found: list[TuningSpace] = []
    with mod.context, mod.ranges, ir.Location.unknown():
        functions = kernels_of(mod)
        if name is not None and name not in functions:
            raise ValueError(f"tuning_space: expected a kernel out of {', '.join(functions) or 'none'}, found {name!r}")
        own = Schedules(functions, target, config, asks_values=True)
        for key in functions if name is None else [name]:
            found += _spaces(key, functions[key], own, target, config, all_strategies)
    return found


def kernels_of(mod: IRModule) -> dict[str, ir.OpView]:
    """The kernels of a module: private functions, or otherwise all functions that call no other."""
    found = read_functions(mod.module).kernels
    if found:
        return dict(found)
    defined = [op for op in mod.module.body.operations if isinstance(op, func.FuncOp) and not op.is_external]
    return {symbol_name(f): f for f in defined if not calls_others(f)}


def _spaces(
    name: str, function: ir.OpView, schedules: Schedules, target: Target, config: Mapping[str, Any], everything: bool
) -> list[TuningSpace]:
    ops = tuple(operators_of(function))
    scratch = ir.Module.create()
    with ir.InsertionPoint(scratch.body), function.operation.location:
        choice = schedules.choose(name, function)
        chosen = (
            TuningSpace(name, ops, "bufferize", {}, {}) if choice.scheduled is None else _space(name, ops, choice.tuning, choice.scheduled)
        )
        found = [chosen]
        if everything and not schedules.has_own(name) and not UPDATES.on(function):
            tuning = tuning_for(name, config, target.kind, asks_values=True)
            try:
                for entry, answer in offers(read_kernel(function), target, tuning):
                    if isinstance(answer, Scheduled) and entry.name != chosen.strategy:
                        found.append(_space(name, ops, tuning, answer))
            except NotStructured:
                pass
    return found


def _space(name: str, ops: tuple[str, ...], tuning: Tuning, scheduled: Scheduled) -> TuningSpace:
    loops = digest([str(scheduled.function).encode()])
    return TuningSpace(name, ops, tuning.strategy, dict(tuning.used), dict(tuning.values), loops, features_of(scheduled.function))
