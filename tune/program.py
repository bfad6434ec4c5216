"""The graph of a program as a kernel to be tuned: its choices, and their times in the whole program."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.instruments import PassInfo, PassInstrument
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.pipelines.graph.choices import CHOICES, usual_ways
from relayc.pipelines.history.programs import GRAPH, program_key
from relayc.pipelines.history.records import RECORDS, level_of, records_of
from relayc.runtime.artifact import TensorSpec
from relayc.runtime.cache import digest
from relayc.tools.build import Build
from relayc.tune.process import Measurer
from relayc.tune.search import AskSpace
from relayc.tune.tasks import Task
from relayc.tune.worker import Bench, Candidate


class ProgramKey(PassInstrument):
    """Keeps the keys of a program that is compiled, for the target and for its level; "" for one that has no graph."""

    def __init__(self, target: Target) -> None:
        self._targets = target, level_of(target)
        self.key = self.level_key = ""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name == "GraphPipeline":
            self.key, self.level_key = (program_key(mod, target, PassContext.current()) for target in self._targets)


def with_records(build: Build, records: Mapping[str, Mapping[str, Any]]) -> Build:
    """A build with further records, which are settings by key."""
    config = build.context.get("config", {})
    own = config[RECORDS].settings if RECORDS in config else {}
    return replace(build, context={**build.context, "config": {**config, RECORDS: records_of({**own, **records})}})


def graph_spaces(build: Build, task: Task) -> tuple[Sequence[TuningSpace], AskSpace]:
    """The choices of a program, and the function that queries them: choices with the same kernels have the same loops."""
    values = {name: tuple(ways) for name, ways in CHOICES.items()}
    known: dict[str, str | None] = {}

    def ask(strategy: str, numbers: Mapping[str, Any]) -> TuningSpace | None:
        candidate = Candidate(GRAPH, {**usual_ways(), **numbers})
        if candidate.name not in known:
            try:
                made = with_records(build, _settings(task, candidate)).compile(stop_after="te", cache=False)
                known[candidate.name] = digest([str(made).encode()])
            except Exception:  # whatever a pass raises costs this candidate
                known[candidate.name] = None
        loops = known[candidate.name]
        return None if loops is None else TuningSpace(task.name, (), GRAPH, candidate.numbers, values, loops)

    usual = ask(GRAPH, {})
    return [] if usual is None else [usual], ask


def _settings(task: Task, candidate: Candidate) -> dict[str, dict[str, Any]]:
    chosen = {f"{GRAPH}.{name}": way for name, way in candidate.numbers.items()}
    return {task.key: {"strategy": GRAPH, **chosen}} if chosen else {}


class ProgramMeasurer(Bench, Measurer):
    """Measures choices in calls of the whole program, in this process: passes that relayc has need no other one.

    Args:
      inputs: of a call, by name.
    """

    def __init__(self, build: Build, inputs: Mapping[str, Any]) -> None:
        super().__init__()
        self._build, self._inputs = build, inputs

    def _made(self, task: Task, candidate: Candidate) -> tuple[Sequence[TensorSpec], list[np.ndarray], Callable[[], Any]]:
        module = with_records(self._build, _settings(task, candidate)).compile(cache=False)
        results = module.run(self._inputs)
        return module.outputs, [np.asarray(results[spec.name]) for spec in module.outputs], lambda: module.run(self._inputs)
