"""Generated schedules of a kernel as strategies of the search (tune.sketch makes them)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.interrupts import deferred
from relayc.pipelines.context.instruments import KernelSchedule, PassInstrument
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.tuning_space import tuning_space
from relayc.pipelines.history.records import DATABASE
from relayc.pipelines.tir.strategy.table import FALLBACK
from relayc.tune.sketch import sketches
from relayc.tune.tasks import Task
from relayc.tune.worker import Candidate

GENERAL = ("loops", FALLBACK)
"""Schedules for kernels that no strategy is made for."""


def with_sketches(task: Task, target: Target, only_general: bool) -> Task:
    """A task with the schedules that rules generate for its kernel.

    Args:
      only_general: only where the kernel gets one of the schedules that are made for no kind of kernel.
    """
    with PassContext(config={**task.config, DATABASE: ""}):
        if only_general and tuning_space(task.text, target, task.name)[0].strategy not in GENERAL:
            return task
    with deferred():
        return replace(task, sketches={sketch.__name__: sketch for sketch in sketches(task.text, target, task.name)})


def sample_sketch(task: Task, strategy: str, seed: int, numbers: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Random numbers of a generated schedule of a kernel, beside those that are given; None for other strategies, and where these are not
    possible."""
    sketch = task.sketches.get(strategy)
    if sketch is None:
        return None
    mod = IRModule.parse(task.text)
    try:
        with mod.context, mod.ranges:
            found: dict[str, Any] = sketch.sample(mod, seed, numbers)[0]
            return found
    except ValueError:
        return None


class _Seen(PassInstrument):
    """The schedule by primitives that was applied last."""

    observes_schedules = True
    found: KernelSchedule | None = None

    def run_on_schedule(self, found: KernelSchedule) -> None:
        self.found = found


def written_text(task: Task, candidate: Candidate) -> str:
    """The trace of a written schedule with the decisions of a candidate, or the module that it gives in place of the kernel: texts, which a
    worker process can read where it cannot have the function."""
    settings = {f"{candidate.strategy}.{name}": value for name, value in candidate.numbers.items()}
    seen, schedule = _Seen(), task.sketches.get(candidate.strategy, task.schedule)
    config = {**task.config, DATABASE: "", "schedule.kernels": {task.name: settings}}
    with deferred(), PassContext(config=config, instruments=[seen]):
        tuning_space(task.text, task.target, task.name, {task.name: schedule})
    assert seen.found is not None
    return seen.found.trace or seen.found.after
