"""`bench tuned`: models compiled with the records of a tuning database, against the same models by the defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

import relayc
from relayc.bench.engines import ENGINES
from relayc.bench.latency import mean_and_worst, ratio, threads_text
from relayc.bench.measure import Progress, Result, Settings, job_of, measure_jobs
from relayc.bench.models import Case, Source, make_cases
from relayc.tools.tables import NUMBER, make_table
from relayc.tools.timing import Comparison, compare_rounds

SIDES = {"default": "relayc by default", "tuned": "relayc tuned"}


def measure_tuned(
    sources: Sequence[Source],
    settings: Settings,
    database: Path,
    minutes: float | None,
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    progress: Progress,
) -> list[dict[str, Result]]:
    """Measures each model without records, with the records of a database, and by other engines, in turns; returns the results by name.

    Args:
      minutes: minutes of tuning of each model before; None for no tuning.
    """
    found = []
    for case in make_cases(sources, shapes, seed, progress):
        if minutes is not None:
            _tune(case, settings, database, minutes, seed, progress)
        default = replace(job_of(case, "relayc", settings.threads, settings.precision), database="")
        others = {name: job_of(case, name, settings.threads, settings.precision) for name in settings.engines}
        jobs = {"default": default, "tuned": replace(default, database=str(database)), **others}
        found.append(measure_jobs(case, jobs, settings, progress))
    return found


def _tune(case: Case, settings: Settings, database: Path, minutes: float, seed: int, progress: Progress) -> None:
    """Tunes a model for the target that the measurement compiles it for."""
    relayc.tune(
        str(case.path),
        minutes=minutes,
        database=database,
        seed=seed,
        inputs=case.inputs,
        target=relayc.Target("cpu", num_threads=settings.threads),
        num_threads=settings.threads,
        shapes=case.shapes or None,
        precision=settings.precision,
        report=lambda status: progress(f"{case.name}: {status.kernel}, gain {status.gain:.3f}"),
    )


def ratios_of(models: Sequence[Mapping[str, Result]]) -> dict[str, dict[str, Any]]:
    """For each comparison: geometric mean and maximum of the time of the tuned model relative to the other."""
    found = {}
    for name in dict.fromkeys(name for model in models for name in model if name != "tuned"):
        ratios = [(value, model["tuned"].case) for model in models if (value := _ratio(model, name)) is not None]
        if ratios:
            found[name] = mean_and_worst(ratios)
    return found


def _ratio(model: Mapping[str, Result], other: str) -> float | None:
    """Time of the tuned model relative to another; None if either failed. By rounds for the default, which ran right before."""
    found = ratio(list(model.values()), "tuned", other)
    return 1 / _comparison(model).ratio if other == "default" and found is not None else found


def _comparison(model: Mapping[str, Result]) -> Comparison:
    default, tuned = ([median(calls) for calls in model[name].rounds] for name in SIDES)
    return compare_rounds(default, tuned)


def tuned_table(models: Sequence[Mapping[str, Result]], threads: int) -> Table:
    """One line per model: milliseconds of each, the ratio with its interval, the ratios to other engines; then the geometric means."""
    others = [name for name in models[0] if name not in SIDES] if models else []
    titles = ["default ms", "tuned ms", "ratio", "interval", *(f"of {ENGINES[name].title}" for name in others)]
    table = make_table(f"tuned against default, {threads_text(threads)}", model={}, **dict.fromkeys(titles, NUMBER))
    for model in models:
        times = [_text(None if one.seconds is None else one.seconds * 1e3) for one in (model["default"], model["tuned"])]
        gain, interval = _ratio(model, "default"), ""
        if gain is not None:
            compared = _comparison(model)
            interval = f"{1 / compared.high:.3f} - {1 / compared.low:.3f}" if compared.low else "too few rounds"
        mark = "!" if model["tuned"].agrees is False else ""
        table.add_row(model["tuned"].case + mark, *times, _text(gain), interval, *(_text(_ratio(model, name)) for name in others))
    if len(models) > 1:
        means = ratios_of(models)
        shown = [_text(means[name]["geometric_mean"] if name in means else None) for name in ("default", *others)]
        table.add_section()
        table.add_row("geometric mean", "", "", shown[0], "", *shown[1:])
    return table


def _text(value: float | None) -> str:
    return "failed" if value is None else f"{value:.3f}"
