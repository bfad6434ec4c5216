"""`bench revisions`: latency and compilation of this revision of relayc, and of the revision in another environment, in turns."""

import statistics
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from relayc.bench.engines import Job
from relayc.bench.latency import mean_and_worst, ratio_text, threads_text
from relayc.bench.measure import Progress, Settings, agreement, calls_by_round, job_of
from relayc.bench.models import Case, Source, make_cases
from relayc.bench.peer_process import Interpreter, PeerProcess
from relayc.bench.worker import EngineError, errors_of
from relayc.tools.tables import NUMBER, make_table


@dataclass
class Side:
    """One revision on one case.

    Attributes:
      error: why numbers are missing.
      facts: facts about the revision and the compiled model.
      compilations: seconds of `relayc.compile` and of its stages, for each fresh process.
      rounds: seconds of every call, by round.
    """

    error: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    compilations: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[list[float]] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        """Median over the calls of all rounds."""
        return _median([s for calls in self.rounds for s in calls])

    @property
    def compile_seconds(self) -> float | None:
        """Median over the compilations."""
        return _median([c["load_seconds"] for c in self.compilations])

    @property
    def stages(self) -> dict[str, float]:
        """Median seconds of each stage over the compilations."""
        names = dict.fromkeys(name for c in self.compilations for name in c["stages"])
        return {name: statistics.median(c["stages"].get(name, 0.0) for c in self.compilations) for name in names}

    def as_data(self) -> dict[str, Any]:
        """The side as plain data."""
        return {
            "error": self.error,
            "facts": self.facts,
            "compilations": self.compilations,
            "compile_seconds": self.compile_seconds,
            "stages": self.stages,
            "rounds": calls_by_round(self.rounds),
            "median_seconds": self.seconds,
        }


@dataclass
class Comparison:
    """Both revisions on one case.

    Attributes:
      sides: "old" and "new".
      difference: largest absolute difference between the outputs of the two revisions.
      agrees: whether the outputs are within the tolerances for their precision (see relayc.tools.reference).
    """

    case: str
    sides: Mapping[str, Side] = field(default_factory=lambda: {"old": Side(), "new": Side()})
    difference: float | None = None
    agrees: bool | None = None

    @property
    def ratios(self) -> list[float]:
        """For each round the median time of a call of the new revision relative to the old one."""
        return self._ratios({name: [statistics.median(calls) for calls in side.rounds] for name, side in self.sides.items()})

    @property
    def compile_ratios(self) -> list[float]:
        """For each pair of compilations the time of the new revision relative to the old one."""
        return self._ratios({name: [c["load_seconds"] for c in side.compilations] for name, side in self.sides.items()})

    @property
    def ratio(self) -> float | None:
        """Median over the rounds: a disturbance of the machine longer than a round affects both revisions."""
        return _median(self.ratios)

    @property
    def compile_ratio(self) -> float | None:
        """Median over the pairs of compilations."""
        return _median(self.compile_ratios)

    def _ratios(self, seconds: Mapping[str, Sequence[float]]) -> list[float]:
        if any(side.error is not None for side in self.sides.values()):
            return []
        return [new / old for old, new in zip(seconds["old"], seconds["new"], strict=True)]

    def as_data(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "case": self.case,
            **{name: side.as_data() for name, side in self.sides.items()},
            "ratios": self.ratios,
            "ratio": self.ratio,
            "compile_ratios": self.compile_ratios,
            "compile_ratio": self.compile_ratio,
            "difference": self.difference,
            "agrees": self.agrees,
        }


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


# ---- measuring --------------------------------------------------------------------------------------------------------------------


def identify(interpreters: Mapping[str, Interpreter]) -> dict[str, dict[str, Any]]:
    """Facts about each interpreter: version and folder of its relayc, its Python version, and for a checkout the revision from git.

    Raises:
      ValueError: an interpreter does not start, or has no relayc.
    """
    known = {}
    for name, interpreter in interpreters.items():
        try:
            with PeerProcess(interpreter) as process:
                facts = process.start()
        except (EngineError, OSError) as error:
            raise ValueError(f"{interpreter.python}: expected an interpreter that has relayc: {error}") from error
        known[name] = {**facts, "interpreter": interpreter.python, "revision": _revision(Path(facts["package"]))}
    return known


def _revision(package: Path) -> str | None:
    """Commit of a checkout, marked where files have changed since; None for a package that is none."""
    try:
        top = subprocess.run(["git", "-C", package, "rev-parse", "--show-toplevel"], capture_output=True, text=True)
        # A package that is installed somewhere below a checkout of something else has nothing to do with that.
        if top.returncode != 0 or not package.samefile(top.stdout.rstrip("\n")):
            return None
        described = subprocess.run(["git", "-C", package, "describe", "--always", "--dirty"], capture_output=True, text=True)
    except OSError:
        return None
    return described.stdout.strip() or None


def measure_revisions(
    sources: Sequence[Source],
    interpreters: Mapping[str, Interpreter],
    settings: Settings,
    compile_rounds: int,
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    progress: Progress,
) -> list[Comparison]:
    """A comparison of each model. Raises ValueError for shapes that do not fit a model."""
    cases = make_cases(sources, shapes, seed, progress)
    return [_compare(case, interpreters, settings, compile_rounds, progress) for case in cases]


def _compare(
    case: Case, interpreters: Mapping[str, Interpreter], settings: Settings, compile_rounds: int, progress: Progress
) -> Comparison:
    """Measures both revisions on a case. If one fails, its result has the error, and the other continues alone."""
    comparison = Comparison(case.name)
    sides = comparison.sides
    job = job_of(case, "relayc", settings.threads, settings.precision)
    with ExitStack() as stack:
        running: dict[str, PeerProcess] = {}
        for turn in range(compile_rounds):
            for name in _order(turn, sides):
                progress(f"{case.name}: compilation {turn + 1} of {compile_rounds}, {name}")
                with errors_of(sides[name]), ExitStack() as ending:
                    process = ending.enter_context(PeerProcess(interpreters[name]))
                    _compile(process, job, sides[name])
                    if turn == compile_rounds - 1:
                        # The last processes of both revisions are called.
                        stack.enter_context(ending.pop_all())
                        running[name] = process
        _check(comparison, running)
        for turn in range(settings.rounds):
            for name in _order(turn, sides):
                progress(f"{case.name}: round {turn + 1} of {settings.rounds}, {name}")
                with errors_of(sides[name]):
                    sides[name].rounds.append(running[name].measure(settings.runs))
    return comparison


def _order(turn: int, sides: Mapping[str, Side]) -> list[str]:
    """The order of turns of the revisions that have not failed: reversed every other time, so that neither always runs after the
    other."""
    names = [name for name, side in sides.items() if side.error is None]
    return names[::-1] if turn % 2 else names


def _compile(process: PeerProcess, job: Job, side: Side) -> None:
    """Compiles in a fresh process, and records the reported facts."""
    facts = {**process.start(), **process.load(job)}
    side.compilations.append({name: facts.pop(name) for name in ("load_seconds", "stages")})
    side.facts = facts


def _check(comparison: Comparison, running: Mapping[str, PeerProcess]) -> None:
    """Enters how far the outputs of both are from each other, or as an error of the new revision that they differ in number or shape."""
    sides = comparison.sides
    outputs: dict[str, list[np.ndarray]] = {}
    for name in _order(0, sides):
        with errors_of(sides[name]):
            outputs[name] = running[name].outputs()
    if len(outputs) < len(sides):
        return
    precisions = {side.facts["precision"] for side in sides.values()}
    try:
        found = agreement(outputs["new"], outputs["old"], "bf16" if "bf16" in precisions else "f32")
    except ValueError as error:
        sides["new"].error = str(error)
        return
    comparison.difference, comparison.agrees = found.difference, found.agrees


# ---- tables -----------------------------------------------------------------------------------------------------------------------


def comparison_table(comparisons: Sequence[Comparison], threads: int, precision: str) -> Table:
    """One line per model."""
    numbers = (
        "kernels",
        "steps",
        "old ms",
        "new ms",
        "ratio",
        "of rounds",
        "old compile s",
        "new compile s",
        "compile ratio",
        "difference",
    )
    table = make_table(
        f"new revision against old, batch 1, {threads_text(threads)}, {precision} asked for",
        model={},
        **{name: NUMBER for name in numbers},
    )
    for comparison in comparisons:
        old, new = comparison.sides.values()
        ratios = comparison.ratios
        mark = "!" if comparison.agrees is False else ""
        table.add_row(
            comparison.case,
            *(f"{old.facts.get(name, '-')} / {new.facts.get(name, '-')}" for name in ("kernels", "steps")),
            _milliseconds(old),
            _milliseconds(new),
            ratio_text(comparison.ratio),
            f"{min(ratios):.2f}-{max(ratios):.2f}" if ratios else "",
            _compile_seconds(old),
            _compile_seconds(new),
            ratio_text(comparison.compile_ratio),
            "" if comparison.difference is None else f"{comparison.difference:.1e}{mark}",
        )
    return table


def _milliseconds(side: Side) -> str:
    return "failed" if side.error is not None or side.seconds is None else f"{side.seconds * 1e3:.3f}"


def _compile_seconds(side: Side) -> str:
    return "failed" if side.compile_seconds is None else f"{side.compile_seconds:.2f}"


def summarize_changes(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Geometric mean and maximum of the ratios of latency and of compilation; empty if no model has a ratio."""
    found = []
    for name, attribute in (("latency", "ratio"), ("compilation", "compile_ratio")):
        ratios = [(value, c.case) for c in comparisons if (value := getattr(c, attribute)) is not None]
        if ratios:
            found.append({"of": name, **mean_and_worst(ratios)})
    return found


def change_table(summary: Sequence[Mapping[str, Any]]) -> Table:
    """The geometric means as a table."""
    columns = {"new / old": {}, "models": NUMBER, "geometric mean": NUMBER, "worst": NUMBER, "of": {}}
    table = make_table("ratios over models", **columns)
    for row in summary:
        table.add_row(row["of"], str(row["models"]), ratio_text(row["geometric_mean"]), ratio_text(row["worst"]), row["worst_model"])
    return table
