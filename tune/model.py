"""`relayc.tune`: tunes the kernels of a model, and checks whether faster kernels make the model faster."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from relayc.interrupts import deferred
from relayc.pipelines.context.instruments import PassInstrument
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.tuning_space import TuningSpace, tuning_space
from relayc.pipelines.history.database import Database
from relayc.pipelines.history.programs import GRAPH
from relayc.pipelines.history.records import DATABASE, default_database
from relayc.runtime import Module, num_threads
from relayc.tools.build import Build
from relayc.tools.inputs import inputs_of
from relayc.tools.timing import FASTER, SLOWER, WORTH, Comparison, compare_rounds, compare_times
from relayc.tune import MINUTES
from relayc.tune.generated import sample_sketch, with_sketches, written_text
from relayc.tune.process import Measurer, WorkerProcess
from relayc.tune.program import ProgramKey, ProgramMeasurer, graph_spaces, with_records
from relayc.tune.search import AskSpace
from relayc.tune.session import Session, State, Status
from relayc.tune.tasks import KernelTexts, Task, model_tasks
from relayc.tune.worker import clock_of

GRAPH_SHARE = 0.3
"""Of the time, or of the trials, for choices of the graph at most."""
_CHECK_ROUNDS = 8
_CHECK_SECONDS = 10.0


@dataclass(frozen=True)
class Check:
    """A check of records by timing the whole model.

    Attributes:
      comparison: the model without records and the model with the kept records; None if none is kept.
      kept, refused: keys of the records that make the model faster, and of the others.
    """

    comparison: Comparison | None = None
    kept: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """How to search; see `tune`."""

    minutes: float | None = None
    trials: int | None = None
    kernels: str = "*"
    database: str | os.PathLike[str] | None = None
    all_strategies: bool = False
    sampler: str | None = None
    seed: int = 0
    report: Callable[[Status], None] = lambda status: None

    @property
    def seconds(self) -> float | None:
        """The limit of time; None where only the number of trials is a limit."""
        minutes = MINUTES if self.minutes is None and self.trials is None else self.minutes
        return None if minutes is None else minutes * 60

    def session(self, tasks: Sequence[Task], database: Database, measurer: Measurer, **more: Any) -> Session:
        """A session over some kernels."""
        usual = self.sampler or ("tpe" if find_spec("optuna") is not None else "random")
        return Session(
            tasks,
            database,
            measurer,
            partial(task_spaces, everything=self.all_strategies),
            usual,
            self.seed,
            of_sketches=self.sampler or ("model" if find_spec("lightgbm") is not None else usual),
            report=self.report,
            schedule_text=written_text,
            sample=sample_sketch,
            **more,
        )


@dataclass
class Tuning:
    """The result of a search.

    Attributes:
      states: one for each kernel, the slowest kernel first.
      gains: gain of the model after each trial, computed from the kernels.
      check: the check by the whole model; None if nothing was gained or the search was interrupted.
      seconds: duration of the search; total: seconds of a call of the model before.
      graph: the choices of the graph, timed by calls of the whole model; None if they were not searched.
    """

    name: str
    database: Path
    states: Sequence[State]
    gains: Sequence[float]
    total: float
    seconds: float = 0.0
    check: Check | None = None
    interrupted: bool = False
    graph: State | None = None

    @property
    def trials(self) -> int:
        """Measurements of this search."""
        return len(self.gains)

    @property
    def gain(self) -> float:
        """Time of a call before relative to the time after: of the whole model if it was measured, otherwise computed from the kernels."""
        of_graph = 1.0 if self.graph is None else 1 / self.graph.relative
        if self.check is not None:
            return of_graph * (1.0 if self.check.comparison is None else self.check.comparison.ratio)
        return self.gains[-1] if self.gains else of_graph

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """What the records of its kernels set, by name of the kernel: for `schedule.kernels` of a PassContext."""
        return {state.task.name: state.record.settings for state in self.states if state.record is not None and state is not self.graph}

    def __str__(self) -> str:
        from relayc.tune.texts import tuning_text

        return tuning_text(self)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page about the search: gains over trials, of the model and of each kernel.

        Raises:
          OSError: the file cannot be written. ModuleNotFoundError: jinja2 is not installed.
        """
        from relayc.tune.texts import tuning_page

        Path(path).write_bytes(tuning_page(self))


def tune(
    model: Any,
    *,
    minutes: float | None = None,
    trials: int | None = None,
    kernels: str = "*",
    database: str | os.PathLike[str] | None = None,
    all_strategies: bool = False,
    sampler: str | None = None,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    inputs: Mapping[str, Any] | None = None,
    scheduler: str | None = None,
    report: Callable[[Status], None] = lambda status: None,
    **options: Any,
) -> Tuning:
    """Searches for the numbers with which the kernels of a model are fastest on this machine, and records them in a database, for all
    later compilations of programs with these kernels.

    Candidates are compiled and timed in a separate process, in turns with the fastest candidate so far; their results must equal the
    results of the default schedule. Kernels with the largest possible gain for the model are first. At the end the model is timed with and
    without the new records; records that do not make the model faster are dropped. Before the kernels, choices of the graph are timed by
    calls of the whole model. Kernels without a special strategy also have generated schedules as candidates. An interrupt (^C) ends the
    search and keeps its results; another call continues the search.

    Args:
      model: a model as for `relayc.compile`.
      minutes, trials: limits of the duration of the search and of the number of measured candidates; 10 minutes by default.
      kernels: a pattern of names of kernels, and of "graph", the choices of the graph.
      database: its file; by default the database that compilations use (RELAYC_TUNING_DB).
      all_strategies: whether to try all strategies that accept a kernel, not only the default strategy.
      sampler: "tpe" (Optuna), "random", "grid", "near" (one number of the fastest at a time), or "model": a cost model (LightGBM) that
        learns from all measurements in the database; by default "tpe" if Optuna is installed, otherwise "random", and "model" for
        kernels with generated schedules if LightGBM is installed.
      seed: of the sampler, and of random inputs.
      sizes: of symbolic dimensions; by default typical ones.
      inputs: by name; by default random ones.
      scheduler: address of a Dask scheduler, "tcp://HOST:PORT", whose workers measure; by default this machine does (docs/tuning.md).
      report: called before each measurement.
      options: options of `relayc.compile`; the ambient PassContext applies, too. Kernels that it names are not tuned.

    Raises:
      ValueError, TypeError: as raised by `relayc.compile` and by the call of the module; this machine cannot run the program; no name of
        a kernel matches.
      ModuleNotFoundError: Optuna is not installed, for the sampler "tpe"; Dask is not installed, for a scheduler.
      ConnectionError: the scheduler does not answer, or its last worker is lost.
    """
    how = Options(minutes, trials, kernels, database, all_strategies, sampler, seed, report)
    build = Build.of(model, options)
    with local_or_cluster(scheduler, build.target) as measurer:
        return search(build, lambda module: inputs_of(module, inputs, sizes, seed), measurer, how)


def local_or_cluster(scheduler: str | None, target: Target) -> Measurer:
    """What measures: a process of this machine, or the workers of a scheduler."""
    if scheduler is None:
        return WorkerProcess()
    from relayc.tune.cluster import Cluster

    return Cluster(scheduler, target)


def search(
    build: Build,
    make_inputs: Callable[[Module], Mapping[str, Any]],
    measurer: Measurer,
    options: Options,
) -> Tuning:
    """Implements `tune`.

    Args:
      make_inputs: returns the inputs of the module.
    """
    start, config = time.perf_counter(), {**build.context.get("config", {}), DATABASE: ""}
    build = replace(build, context={**build.context, "config": config})
    target, threads = build.target, build.threads or num_threads()
    found = open_database(options.database)
    texts, key = KernelTexts(target), ProgramKey(target)
    module = _observed(build, texts, key)
    if module.lacking or target.emulate:
        raise ValueError(f"tune: expected a target whose instructions this machine has, found {target}: its times say nothing")
    inputs = make_inputs(module)
    profile = module.profile(inputs)
    has_graph = bool(key.key) and fnmatchcase(GRAPH, options.kernels)
    tasks = model_tasks(texts, module, profile, target, threads, config)
    if tasks and not has_graph and not any(fnmatchcase(task.name, options.kernels) for task in tasks):
        names = ", ".join([GRAPH, *(task.name for task in tasks)])
        raise ValueError(f"tune: expected a pattern of kernels out of {names}, found {options.kernels!r}")
    name = Path(build.model).name if isinstance(build.model, (str, os.PathLike)) else type(build.model).__name__
    tuning = Tuning(name, found.path, [], [], profile.latency)
    trials, limit, graph = options.trials, options.seconds, None
    try:
        if has_graph:
            task = Task(key.key, GRAPH, "", target=str(target), threads=threads, seconds=profile.latency, level_key=key.level_key)
            measurer_of_graph, spaces = ProgramMeasurer(build, inputs), partial(graph_spaces, build)
            graph = Session([task], found, measurer_of_graph, spaces, "near", options.seed, profile.latency, report=options.report)
            tuning.graph, tuning.states, tuning.gains = graph.states[0], graph.states, graph.gains
            graph.run(None if trials is None else int(trials * GRAPH_SHARE), None if limit is None else limit * GRAPH_SHARE)
            record = graph.states[0].record
            if record is not None:
                graph.settle((), (record.key,))
                build = with_records(build, {record.key: record.settings})
                texts = KernelTexts(target)
                module = _observed(build, texts)
                profile = module.profile(inputs)
                tasks = model_tasks(texts, module, profile, target, threads, config)
            trials = None if trials is None else trials - tuning.trials
            limit = None if limit is None else limit - (time.perf_counter() - start)
        tasks = [with_sketches(task, target, only_general=True) for task in tasks if fnmatchcase(task.name, options.kernels)]
        session = options.session(tasks, found, measurer, total=profile.latency, before=graph)
        tuning.states, tuning.gains = [*tuning.states, *session.states], session.gains
        session.run(trials, limit)
        records = {state.record.key: state.record.settings for state in session.states if state.record is not None}
        if records:
            seconds = time.perf_counter() - start
            options.report(Status("the whole model", "", (tuning.trials, options.trials), (seconds, options.seconds), session.gain))
            tuning.check = whole_model(build, module, inputs, records)
            session.settle(tuning.check.refused, tuning.check.kept)
    except KeyboardInterrupt:
        tuning.interrupted = True
    tuning.seconds = time.perf_counter() - start
    return tuning


def _observed(build: Build, *instruments: PassInstrument) -> Module:
    outer = PassContext.current()
    with PassContext(**outer.settings, instruments=[*outer.instruments, *instruments]):
        found: Module = build.compile()
    return found


def open_database(path: str | os.PathLike[str] | None) -> Database:
    """The database of a file, by default the database that compilations use. Raises ValueError if there is none."""
    named = default_database() if path is None else Path(path)
    if named is None:
        raise ValueError("tune: expected a database, found none named, and RELAYC_TUNING_DB turns the default one off")
    return Database(named)


def task_spaces(task: Task, everything: bool) -> tuple[Sequence[TuningSpace], AskSpace]:
    """The tuning spaces of a kernel, and the function that queries them. Generated schedules are after the strategies of the table."""
    known: dict[str, TuningSpace | None] = {}

    def spaces(kernels: Mapping[str, Mapping[str, Any]], schedule: Any, everything: bool = False) -> list[TuningSpace]:
        schedules = None if schedule is None else {task.name: schedule}
        with deferred(), PassContext(config={**task.config, DATABASE: "", "schedule.kernels": kernels}):
            return tuning_space(task.text, task.target, task.name, schedules, everything)

    def ask(strategy: str, numbers: Mapping[str, Any]) -> TuningSpace | None:
        settings = {"strategy": strategy, **{f"{strategy}.{name}": value for name, value in numbers.items()}}
        key = repr(sorted(settings.items()))
        if key not in known:
            try:
                (found,) = spaces({task.name: settings}, task.sketches.get(strategy, task.schedule))
                known[key] = found if found.strategy == strategy else None
            except ValueError:  # a schedule that is not legal with these numbers
                known[key] = None
        return known[key]

    found = spaces({}, task.schedule, everything)
    for sketch in task.sketches.values():
        found += spaces({}, sketch)
    return found, ask


def whole_model(build: Build, module: Module, inputs: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> Check:
    """Compiles the model with records and times it in turns with the model without them: kernel by kernel, then in whole calls."""
    texts = KernelTexts(build.target)
    other = _observed(with_records(build, records), texts)
    names = {key: [name for name, facts in texts.found.items() if facts[0] == key] for key in records}
    rounds: tuple[dict[str, list[float]], ...] = ({}, {})
    for turn in range(_CHECK_ROUNDS):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            for name, seconds in _seconds_by_kernel((module, other)[i], inputs).items():
                rounds[i].setdefault(name, []).append(seconds)
    kept: list[str] = []
    refused: list[str] = []
    for key in records:
        before, after = ([sum(times) for times in zip(*(part.get(name, []) for name in names[key]), strict=True)] for part in rounds)
        gains = bool(before) and compare_rounds(before, after).ratio >= 1 + WORTH
        (kept if gains else refused).append(key)
    if refused and kept:
        other = _observed(with_records(build, {key: records[key] for key in kept}), texts)
    if not kept:
        return Check(None, (), tuple(refused))
    comparison = compare_times(
        lambda: module.run(inputs),
        lambda: other.run(inputs),
        _CHECK_SECONDS,
        lambda c: c.verdict in (FASTER, SLOWER),
        clock_of(build.called_on),
    )
    if comparison.verdict == SLOWER:
        return Check(None, (), tuple(records))
    return Check(comparison, tuple(kept), tuple(refused))


def _seconds_by_kernel(module: Module, inputs: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in module.profile(inputs, repeat=3).rows:
        found[row.kernel.name] = found.get(row.kernel.name, 0.0) + row.seconds
    return found
