"""Schedules that people write as strategies: a function that schedules a kernel, primitive by primitive, in the strategy table."""

from collections.abc import Callable
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.blocks.lower.function import lower_function
from relayc.pipelines.blocks.schedule import Schedule
from relayc.pipelines.blocks.structure import ScheduleError
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.table import Entry
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target

ScheduleFunction = Callable[[Schedule], Any]
"""Schedules a kernel in place: it is given the Schedule of a module of that kernel alone."""


def schedule_entry(name: str, function: ScheduleFunction) -> Entry:
    """A strategy that schedules kernels by a function. An error of the function, or of the schedule that it made, names both."""

    def schedule(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled:
        return schedule_by(name, function, kernel, target)

    return Entry(name, schedule, "what its schedule is legal for")


def schedule_by(name: str, function: ScheduleFunction, kernel: Kernel, target: Target) -> Scheduled:
    """A kernel of the te stage, scheduled by a function, at the ambient insertion point.

    Raises ScheduleError, which names the schedule and the kernel.
    """
    try:
        with kernel.function.operation.context:
            schedule = Schedule(_alone(kernel.function))
            function(schedule)
            return lower_function(schedule.nest, target, kernel)
    except ScheduleError as error:
        raise ScheduleError(f"schedule {name} of kernel @{kernel.name}: {error}") from None


def _alone(function: ir.OpView) -> IRModule:
    """A module that holds a copy of a function."""
    with ir.Location.unknown():
        module = IRModule(ir.Module.create())
        with ir.InsertionPoint(module.module.body):
            function.operation.clone()
    return module
