"""Hand-written schedules as strategies: applies a schedule to a kernel and lowers it to tir.

A schedule is one of:

- a function of the Schedule of a module with only the kernel, which schedules it in place, or returns a module that replaces the kernel.
  The numbers that it samples are its knobs: their values can be set by name as for any strategy;
- a trace, or its text: replayed on the kernel, with knobs likewise;
- a module with a function of blocks and loops, or of the te stage, or its text: the replacement.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import KernelSchedule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.te.read.graph import Kernel, NotStructured
from relayc.pipelines.tir.lower.function import lower_function
from relayc.pipelines.tir.schedule.replacement import replacement_nest
from relayc.pipelines.tir.schedule.schedule import Schedule, blocks_module
from relayc.pipelines.tir.schedule.trace import Trace
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.table import DEFAULT_PLEVEL, Entry
from relayc.pipelines.tir.strategy.tuning import SCRIPT, SKETCH, Tuning
from relayc.pipelines.tir.tree.arguments import Knob
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest

ScheduleFunction = Callable[[Schedule], Any]
"""Schedules a kernel in place, given the Schedule of a module with only that kernel; or returns a module that replaces it."""
Source: TypeAlias = ScheduleFunction | Trace | IRModule | str


def name_of(source: Source) -> str:
    """The default name of a schedule. Raises TypeError if it is not a schedule."""
    if isinstance(source, str):
        return "trace" if _is_script(source) else "replacement"
    if isinstance(source, Trace):
        return "trace"
    if isinstance(source, IRModule):
        functions = [symbol_name(op) for op in source.module.body.operations if op.operation.name == "func.func"]
        return functions[0] if len(functions) == 1 and functions[0] != "main" else "replacement"
    if callable(source):
        return getattr(source, "__name__", type(source).__name__)
    raise TypeError(f"expected a function of a Schedule, a trace, a module, or the text of one of these, found {source!r}")


def schedule_entry(
    name: str,
    source: Source,
    anchors: tuple[str, ...] = (),
    condition: Callable[[Kernel, Target], bool] | None = None,
    plevel: int = DEFAULT_PLEVEL,
) -> Entry:
    """A strategy for a schedule. An error of the schedule or of the condition names the schedule and the kernel."""

    def schedule(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled:
        return schedule_by(name, source, kernel.function, target, tuning)

    def holds(kernel: Kernel, target: Target) -> bool:
        assert condition is not None
        try:
            return condition(kernel, target)
        except Exception as error:
            raise _error(name, kernel.name, error, "condition: ") from error

    words = f"kernels around {', '.join(anchors)}" if anchors else "what its schedule is legal for"
    checked = None if condition is None else holds
    return Entry(name, schedule, words, anchors=anchors, condition=checked, plevel=plevel, has_knobs=True)


def schedule_by(name: str, source: Source, function: ir.OpView, target: Target, tuning: Tuning) -> Scheduled:
    """Applies a hand-written schedule to a kernel of the te stage, at the ambient insertion point.

    Args:
      function: the kernel.
      tuning: decisions for knobs; records all knobs.

    Raises:
      ScheduleError: names the schedule and the kernel, and the cause if it is another error.
    """
    try:
        with function.operation.context:
            return _lowered(name, source, function, target, tuning)
    except Exception as error:  # any error of a user's function
        raise _error(name, symbol_name(function), error) from error


def schedule_built_in(write: ScheduleFunction, kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled:
    """Applies a schedule of a backend's own strategy to a kernel, at the ambient insertion point.

    Args:
      write: schedules the kernel in place. It requests its numbers from `tuning` before.
      tuning: of the strategy that is being tried.

    Raises:
      NotStructured: the kernel has no form as blocks and loops, or the schedule is not legal for it: the next strategy is tried.
    """
    try:
        return _lowered(tuning.strategy, write, kernel, target, Tuning())
    except ScheduleError as error:
        raise NotStructured(str(error)) from error


def schedule_sketch(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled:
    """Applies the trace set as `sketch.script` to a kernel, as a strategy: the form in which a search over generated schedules records its
    result.

    Raises NotStructured if the trace is not legal for the kernel.
    """
    script, own = tuning.decisions()[SCRIPT], Tuning()
    # Blocks have the names of the model's nodes, which differ between models: the names are removed, as when the trace was made.
    plain = IRModule.parse(str(kernel.function), context=kernel.function.operation.context)
    try:
        found = _lowered(SKETCH, script, next(iter(plain.module.body.operations)), target, own)
    except ValueError as error:
        raise NotStructured(str(error)) from error
    for name, value in own.used.items():
        tuning.knob(name, value, (value,))
    return found


def _lowered(name: str, source: Source, kernel: ir.OpView | Kernel, target: Target, tuning: Tuning) -> Scheduled:
    """Schedules and lowers a kernel; instruments of the PassContext observe it."""
    function = kernel.function if isinstance(kernel, Kernel) else kernel
    observers = [i for i in PassContext.current().instruments if i.observes_schedules]
    applied = _apply(source, kernel, tuning.decisions(), bool(observers))
    for knob in applied.knobs.values():
        tuning.knob(knob.name, knob.value, knob.options)
    after = str(applied.nest.function) if observers else ""
    scheduled = lower_function(applied.nest, target, function)
    for observer in observers:
        observer.run_on_schedule(KernelSchedule(symbol_name(function), name, applied.before, after, applied.trace))
    return scheduled


def _error(name: str, kernel: str, error: Exception, where: str = "") -> ScheduleError:
    kind = "" if isinstance(error, ScheduleError) else f"{type(error).__name__}: "
    return ScheduleError(f"schedule {name} of kernel @{kernel}: {where}{kind}{error}")


@dataclass(frozen=True)
class _Applied:
    """A scheduled kernel.

    Attributes:
      holder: owns the function.
      before, trace: texts for observers.
    """

    holder: IRModule | Schedule
    nest: Nest
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    before: str = ""
    trace: str = ""


def _apply(source: Source, kernel: ir.OpView | Kernel, decisions: Mapping[str, Any], observed: bool) -> _Applied:
    function = kernel.function if isinstance(kernel, Kernel) else kernel
    if isinstance(source, Trace):
        source = str(source)
    if isinstance(source, str) and _is_script(source):
        return _replay(source, function, decisions, observed)
    if isinstance(source, (str, IRModule)):
        _check_decisions(decisions, {})
        mod, nest = replacement_nest(source, function)
        return _Applied(mod, nest, before=str(function) if observed else "")
    if not callable(source):
        name_of(source)
    schedule = Schedule(kernel, decisions=decisions)
    before = str(schedule.mod) if observed else ""
    given = source(schedule)
    knobs = schedule.trace.knobs
    _check_decisions(decisions, knobs)
    trace = str(schedule.trace) if observed else ""
    if given is None or given is schedule:
        nest = schedule.nest
        return _Applied(schedule, nest, knobs, before, trace)
    if not isinstance(given, IRModule):
        raise ScheduleError(f"expected None or a module from the function, found {given!r}")
    mod, nest = replacement_nest(given, function)
    return _Applied(mod, nest, knobs, before, trace)


def _replay(script: str, function: ir.OpView, decisions: Mapping[str, Any], observed: bool) -> _Applied:
    """Applies a script of one function to any kernel, whatever its name."""
    from relayc.pipelines.tir.schedule.transform_script import apply_script, functions_of

    mod = blocks_module(function)
    before = str(mod) if observed else ""
    nest = Nest(next(iter(mod.module.body.operations)))
    named = functions_of(script, mod.context)
    if len(named) > 1:
        raise ScheduleError(f"expected a trace of the schedule of one function, found one of {', '.join(named)}")
    kernel = nest.function.attributes["sym_name"]
    if named:
        nest.function.attributes["sym_name"] = ir.StringAttr.get(named[0])
    knobs = apply_script(script, mod, decisions)
    nest = Nest(next(iter(mod.module.body.operations)))
    nest.function.attributes["sym_name"] = kernel
    return _Applied(mod, nest, knobs, before, script if observed else "")


def _check_decisions(decisions: Mapping[str, Any], knobs: Mapping[str, Knob]) -> None:
    unknown = [name for name in decisions if name not in knobs]
    if unknown:
        raise ScheduleError(f"expected numbers for its knobs, {', '.join(knobs) or 'of which it has none'}, found {', '.join(unknown)}")


def _is_script(text: str) -> bool:
    return "transform.named_sequence" in text
