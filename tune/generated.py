"""Generated schedules of a kernel as strategies of the search (tune.sketch makes them)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relayc.dialects.relay.module import IRModule
from relayc.interrupts import deferred
from relayc.pipelines.context.instruments import KeepSchedules
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
      only_general: whether to add them only for kernels whose strategy is a general one.
    """
    with PassContext(config={**task.config, DATABASE: ""}):
        if only_general and tuning_space(task.text, target, task.name)[0].strategy not in GENERAL:
            return task
    with deferred():
        return replace(task, sketches={sketch.__name__: sketch for sketch in sketches(task.text, target, task.name)})


def sample_sketch(task: Task, strategy: str, seed: int, numbers: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Random values of the knobs of a generated schedule that are not given; None for other strategies, and if the given values are
    impossible."""
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


def written_text(task: Task, candidate: Candidate) -> str:
    """The trace of a written schedule with the decisions of a candidate, or the module that replaces the kernel: texts for a worker
    process, to which the function cannot be sent."""
    settings = {f"{candidate.strategy}.{name}": value for name, value in candidate.numbers.items()}
    kept, schedule = KeepSchedules(), task.sketches.get(candidate.strategy, task.schedule)
    config = {**task.config, DATABASE: "", "schedule.kernels": {task.name: settings}}
    with deferred(), PassContext(config=config, instruments=[kept]):
        tuning_space(task.text, task.target, task.name, {task.name: schedule})
    applied = kept.found[-1]
    return applied.trace or applied.after
