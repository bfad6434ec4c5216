"""Engines on one case: loaded in processes of their own, checked against the reference, measured in turns."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

import numpy as np
import onnx

from relayc.bench.engines import ENGINES, REFERENCE, Job
from relayc.bench.models import Case, make_case
from relayc.bench.worker import EngineError, EngineProcess, Server, errors_of
from relayc.tools.reference import Agreement, compare

Progress = Callable[[str], None]
Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Settings:
    """How to measure: engines by name, threads of each, "f32" or "bf16", rounds, and calls a round (None: as many as fit in some time)."""

    engines: tuple[str, ...]
    threads: int
    precision: str = "f32"
    rounds: int = 5
    runs: int | None = None


@dataclass
class Result:
    """One engine on one case.

    Attributes:
      error: why there are no numbers; the other attributes are then absent or empty.
      facts: facts that the engine's process reports after loading the model: seconds, memory, for relayc also flops and stages.
      rounds: seconds of every call, by round.
      memory: bytes resident after the last call; see relayc.bench.worker.memory.
      difference: largest absolute difference of an output from the reference; None without the reference.
      agrees: whether the outputs are within the tolerances for f32 (see relayc.tools.reference).
    """

    case: str
    engine: str
    error: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    rounds: list[list[float]] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    difference: float | None = None
    agrees: bool | None = None

    @property
    def seconds(self) -> float | None:
        """Median over the calls of all rounds."""
        calls = [s for seconds in self.rounds for s in seconds]
        return statistics.median(calls) if calls and self.error is None else None

    def as_data(self) -> dict[str, Any]:
        """The result as plain data; of the rounds their number of calls, median and least."""
        data = asdict(self)
        return {**data, "rounds": calls_by_round(self.rounds), "median_seconds": self.seconds}


@dataclass(frozen=True)
class Point(Generic[Subject]):
    """The results of the engines on a model that was generated for `subject`; `facts` describe the subject in its records."""

    subject: Subject
    facts: Mapping[str, Any]
    results: list[Result]

    def as_data(self) -> list[dict[str, Any]]:
        """One record an engine, as plain data."""
        return [{**self.facts, **result.as_data()} for result in self.results]


def measure_model(
    model: onnx.ModelProto, name: str, inputs: Mapping[str, np.ndarray] | None, seed: int, settings: Settings, progress: Progress
) -> list[Result]:
    """Measures the engines on a model in memory, on given or random inputs."""
    with TemporaryDirectory(prefix="relayc-bench-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        case = make_case(name, path, {}, seed) if inputs is None else Case(name, path, inputs)
        return measure_case(case, settings, progress)


def job_of(case: Case, engine: str, threads: int, precision: str) -> Job:
    """What a process of `engine` is to do for a case."""
    return Job(engine, str(case.path), case.inputs, case.shapes, case.symbols, threads, precision)


def measure_case(case: Case, settings: Settings, progress: Progress) -> list[Result]:
    """Measures the engines on a case; gives a result for each, in order. An engine that fails has its error there."""
    jobs = {engine: job_of(case, engine, settings.threads, settings.precision) for engine in settings.engines}
    return list(measure_jobs(case, jobs, settings, progress).values())


def measure_jobs(case: Case, jobs: Mapping[str, Job], settings: Settings, progress: Progress) -> dict[str, Result]:
    """Measures jobs for a case in turns; gives a result for each, under its name. A job that fails has its error there."""
    results = {name: Result(case.name, name) for name in jobs}
    with ExitStack() as stack:
        running, outputs = load_jobs(jobs, results, stack, progress)
        reference = outputs[REFERENCE] if REFERENCE in outputs else _reference(case, settings.threads)
        check_and_time(results, running, outputs, reference, settings, lambda text: progress(f"{case.name}: {text}"))
    return results


def check_and_time(
    results: Mapping[str, Result],
    running: Mapping[str, EngineProcess],
    outputs: dict[str, list[np.ndarray]],
    reference: Sequence[np.ndarray] | None,
    settings: Settings,
    progress: Progress,
) -> None:
    """Enters in results, by name, how far outputs are from the reference, the times of calls in turns, and the memory after them. The
    outputs are dropped before the calls."""
    for name, found in outputs.items():
        check(results[name], found, reference)
    outputs.clear()
    take_turns(results, running, settings, progress)
    for name, process in running.items():
        if results[name].error is None:
            results[name].memory = process.memory()


def load_jobs(
    jobs: Mapping[str, Any],
    results: Mapping[str, Result],
    stack: ExitStack,
    progress: Progress,
    server: type[Server] = Server,
) -> tuple[dict[str, EngineProcess], dict[str, list[np.ndarray]]]:
    """The processes of jobs, until the stack ends, and their outputs, by name; the result of a failed process has its error."""
    running, outputs = dict[str, EngineProcess](), dict[str, list[np.ndarray]]()
    for name, result in results.items():
        progress(f"{result.case}: {ENGINES[name].title if name in ENGINES else name} loads")
        process = stack.enter_context(EngineProcess(jobs[name], server))
        with errors_of(result):
            result.facts = process.load()
            outputs[name] = process.outputs()
            running[name] = process
    return running, outputs


def take_turns(results: Mapping[str, Result], running: Mapping[str, EngineProcess], settings: Settings, progress: Progress) -> None:
    """Records the times of the rounds in results, by name. A process that fails gets an error in its result, and is not called again."""
    for turn in range(settings.rounds):
        for name, process in running.items():
            if results[name].error is not None:
                continue
            progress(f"round {turn + 1} of {settings.rounds}, {name}")
            with errors_of(results[name]):
                results[name].rounds.append(process.measure(settings.runs))


def _reference(case: Case, threads: int) -> list[np.ndarray] | None:
    """Outputs of the reference engine; None if it is not installed or fails."""
    if not ENGINES[REFERENCE].is_installed:
        return None
    try:
        with EngineProcess(job_of(case, REFERENCE, threads, "f32")) as process:
            process.load()
            return process.outputs()
    except EngineError:
        return None


def check(result: Result, outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray] | None) -> None:
    """Enters how far outputs are from the reference, or as an error that they differ in number or shape."""
    if reference is None:
        return
    try:
        found = agreement(outputs, reference, result.facts.get("precision", "f32"))
    except ValueError as error:
        result.error = str(error)
        return
    result.difference, result.agrees = found.difference, found.agrees


def agreement(outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray], precision: str) -> Agreement:
    """Compares outputs computed in `precision` with a reference. Raises ValueError if they differ in number or shape."""
    if len(outputs) != len(reference):
        raise ValueError(f"expected {len(reference)} outputs as of the reference, found {len(outputs)}")
    mine, theirs = ({str(i): value for i, value in enumerate(values)} for values in (outputs, reference))
    return compare(mine, theirs, precision)


def calls_by_round(rounds: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Of each round its number of calls, their median and their least, as plain data."""
    return [{"calls": len(r), "median_seconds": statistics.median(r), "least_seconds": min(r)} for r in rounds]
