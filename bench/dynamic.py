"""`bench dynamic`: models compiled once and run at many sizes, against the same compiled for each size and against other engines."""

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from relayc.bench.engines import Job
from relayc.bench.latency import MIB, mean_and_worst, ratio, ratio_text, threads_text
from relayc.bench.measure import Progress, Result, Settings, check_and_time
from relayc.bench.models import Case
from relayc.bench.sized_worker import SizedServer
from relayc.bench.sizes import DynamicModel, Grid, points_of, sizes_text
from relayc.bench.worker import EngineError, EngineProcess, errors_of
from relayc.runtime import Peak
from relayc.tools.tables import NUMBER, make_table
from relayc.tools.timing import median_interval

FIRST_CALLS = 3
"""Calls at a new size that are timed one by one."""
FIRST_SIZES = 40
"""Number of new sizes at which a process is called: the measured sizes, and if these are fewer, other sizes between them."""
DOUBT = 0.05
"""Probability that a median is outside the reported bounds."""


@dataclass(frozen=True)
class Variant:
    """A way to run a model: an engine, and whether it keeps symbolic dimensions or loads the model for each size; `short` is its name in
    the heading of a column."""

    title: str
    short: str
    engine: str
    is_symbolic: bool


VARIANTS: dict[str, Variant] = {
    "relayc": Variant("relayc", "relayc", "relayc", True),
    "relayc-static": Variant("relayc static", "static", "relayc", False),
    "ort": Variant("ONNX Runtime", "ORT", "ort", True),
    "ort-static": Variant("ONNX Runtime static", "ORT static", "ort", False),
}
REFERENCES = ("ort", "ort-static", "relayc-static")
"""Variants that the outputs of others are compared with, the first of them that runs."""


@dataclass
class SizedResult(Result):
    """One variant at one size of a model; `case` is the model and `engine` the variant.

    Attributes:
      sizes: value of each symbol.
      first_calls: seconds of the first calls at this size, for each fresh process; empty for variants that are loaded for the size.
      arena_bytes: memory for intermediate tensors; None if the engine does not report it.
      read_bytes: bytes of constants and inputs, which a call reads at least once.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    first_calls: list[list[float]] = field(default_factory=list)
    arena_bytes: int | None = None
    read_bytes: int = 0

    @property
    def excess(self) -> float | None:
        """Seconds that the first call at this size takes longer than the second: the median over the fresh processes."""
        return statistics.median(calls[0] - calls[1] for calls in self.first_calls) if self.first_calls else None

    def as_data(self) -> dict[str, Any]:
        return {**super().as_data(), "first_call_excess_seconds": self.excess}


@dataclass
class Sweep:
    """The measurements of a model.

    Attributes:
      points: the results at each size, of every variant.
      loads: seconds of each loading of the model, by variant: symbolic variants in fresh processes, other variants for each size.
      compilations: seconds of loadings in turns, by variant: variants that load the model for a size did so for one size.
      first_calls: seconds of the first calls at each new size, by variant: at the sizes of the points, and at other sizes.
    """

    model: DynamicModel
    points: list[list[SizedResult]] = field(default_factory=list)
    loads: dict[str, list[float]] = field(default_factory=dict)
    compilations: dict[str, list[float]] = field(default_factory=dict)
    first_calls: dict[str, list[list[float]]] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        results = [result.as_data() for point in self.points for result in point]
        return {"model": self.model.name, "results": results, "load_seconds": self.loads, "compilations": self.compilations}


def job_at(case: Case, variant: str, settings: Settings) -> Job:
    """What a process of a variant is to load: for the sizes of the case, or for all."""
    chosen = VARIANTS[variant]
    shapes, symbols = ({}, {}) if chosen.is_symbolic else (case.shapes, case.symbols)
    return Job(chosen.engine, str(case.path), case.inputs, shapes, symbols, settings.threads, settings.precision)


def measure_sweep(
    model: DynamicModel, grids: Sequence[Grid], settings: Settings, compile_rounds: int, seed: int, progress: Progress
) -> Sweep:
    """Measures the variants in `settings.engines` at every point of some grids.

    Fresh processes of the variants load the model in turns, `compile_rounds` times; processes of symbolic variants are then called at each
    size for the first time, after the largest sizes. At each size all variants are then called in turns. The result of a variant that fails
    has its error.
    """
    points = points_of(grids)
    sweep = Sweep(model, [[SizedResult(model.name, v, sizes=p, read_bytes=model.read_bytes(p)) for v in settings.engines] for p in points])
    say = lambda text: progress(f"{model.name}: {text}")  # noqa: E731
    for turn in range(compile_rounds):
        for variant in settings.engines:
            say(f"compilation {turn + 1} of {compile_rounds}, {VARIANTS[variant].title}")
            _first_calls(sweep, variant, grids, turn, settings, seed)
    with ExitStack() as stack:
        symbolic: dict[str, EngineProcess | EngineError] = {}
        for variant in settings.engines:
            if VARIANTS[variant].is_symbolic:
                say(f"{VARIANTS[variant].title} loads")
                symbolic[variant] = _loaded(stack, sweep, variant, model.case(points[0], seed), settings)
        for sizes, results in zip(points, sweep.points, strict=True):
            _measure_point(sweep, model.case(sizes, seed), results, symbolic, settings, progress)
    return sweep


def _first_calls(sweep: Sweep, variant: str, grids: Sequence[Grid], turn: int, settings: Settings, seed: int) -> None:
    """Loads the model in a fresh process, and records the first calls at FIRST_SIZES sizes or more, in random order.

    The process begins with the largest sizes, which allocate the memory for the other sizes: the cost of a new page of memory is the same
    in every engine, and does not depend on sizes.
    """
    model, chosen, points = sweep.model, VARIANTS[variant], points_of(grids)
    largest = largest_of(points)
    # A size from the middle represents the static variants.
    start = largest[0] if chosen.is_symbolic else len(points) // 2
    try:
        with EngineProcess(job_at(model.case(points[start], seed), variant, settings), SizedServer) as process:
            sweep.compilations.setdefault(variant, []).append(process.load()["load_seconds"])
            if not chosen.is_symbolic:
                return
            rng = np.random.default_rng((seed, turn))
            others = [points[at] for at in range(len(points)) if at not in largest]
            others += sizes_between(grids, points, FIRST_SIZES - len(others), rng)
            rng.shuffle(others)
            for at in largest[1:]:
                process.request("first_calls", inputs=dict(model.case(points[at], seed).inputs), count=FIRST_CALLS)
            for sizes in others:
                calls = process.request("first_calls", inputs=dict(model.case(sizes, seed).inputs), count=FIRST_CALLS)
                sweep.first_calls.setdefault(variant, []).append(calls)
                if sizes in points:
                    _of(sweep.points[points.index(sizes)], variant).first_calls.append(calls)
    except EngineError:
        return  # the error will occur again, and be recorded, when the sizes are measured


def sizes_between(grids: Sequence[Grid], known: Sequence[dict[str, int]], count: int, rng: np.random.Generator) -> list[dict[str, int]]:
    """`count` different sizes between the least and the largest of some grids, without `known` ones; fewer if there are not as many."""
    found: list[dict[str, int]] = []
    for attempt in range(8 * count):
        sizes = grids[attempt % len(grids)].draw(rng)
        if sizes not in known and sizes not in found and len(found) < count:
            found.append(sizes)
    return found


def largest_of(points: Sequence[Mapping[str, int]]) -> list[int]:
    """The largest of some points: for each symbol the point with its largest value; among several, the largest in the other symbols."""
    chosen = [max(range(len(points)), key=lambda i: (points[i][name], math.prod(points[i].values()))) for name in points[0]]
    return list(dict.fromkeys(chosen))


def _of(results: Sequence[SizedResult], variant: str) -> SizedResult:
    return next(result for result in results if result.engine == variant)


def _loaded(stack: ExitStack, sweep: Sweep, variant: str, case: Case, settings: Settings) -> EngineProcess | EngineError:
    """A process that has loaded a case, or why it could not."""
    process = stack.enter_context(EngineProcess(job_at(case, variant, settings), SizedServer))
    try:
        facts = process.load()
    except EngineError as error:
        return error
    sweep.loads.setdefault(variant, []).append(facts["load_seconds"])
    for results in sweep.points:
        result = _of(results, variant)
        if VARIANTS[variant].is_symbolic or f"{sweep.model.name} at {sizes_text(result.sizes)}" == case.name:
            result.facts = facts
    return process


def _measure_point(
    sweep: Sweep,
    case: Case,
    results: Sequence[SizedResult],
    symbolic: Mapping[str, EngineProcess | EngineError],
    settings: Settings,
    progress: Progress,
) -> None:
    """Measures all variants at one size, in turns."""
    by_variant = {result.engine: result for result in results}
    with ExitStack() as stack:
        running: dict[str, EngineProcess] = {}
        outputs: dict[str, list[np.ndarray]] = {}
        for variant, result in by_variant.items():
            progress(f"{case.name}: {VARIANTS[variant].title} loads")
            with errors_of(result):
                process = symbolic[variant] if variant in symbolic else _loaded(stack, sweep, variant, case, settings)
                if isinstance(process, EngineError):
                    raise process
                result.arena_bytes = process.request("bind", inputs=dict(case.inputs))
                outputs[variant] = process.outputs()
                running[variant] = process
        reference = next((outputs[name] for name in REFERENCES if name in outputs), None)
        check_and_time(by_variant, running, outputs, reference, settings, lambda text: progress(f"{case.name}: {text}"))


# ---- reports ----------------------------------------------------------------------------------------------------------------------


def first_of(engines: Sequence[str]) -> str:
    """The variant whose ratios are reported: relayc with symbolic dimensions, or the first one if relayc is not measured."""
    return "relayc" if "relayc" in engines else engines[0]


def summarize_sweeps(sweeps: Sequence[Sweep], engines: Sequence[str]) -> list[dict[str, Any]]:
    """For each model, and for all, the geometric mean and the maximum of the ratios of the first variant's times to each other's."""
    mine, found = first_of(engines), []
    groups = [(sweep.model.name, [sweep]) for sweep in sweeps]
    for name, group in [*groups, ("all", list(sweeps))] if len(sweeps) > 1 else groups:
        for other in engines:
            points = [(point, sweep.model.name) for sweep in group for point in sweep.points]
            ratios = [
                (value, sizes_text(point[0].sizes) if len(group) == 1 else f"{model}: {sizes_text(point[0].sizes)}")
                for point, model in points
                if other != mine and (value := ratio(point, mine, other)) is not None
            ]
            if ratios:
                told = mean_and_worst(ratios)
                worst = {"sizes": told["models"], "geometric_mean": told["geometric_mean"], "worst": told["worst"]}
                found.append({"model": name, "engine": mine, "other": other, **worst, "worst_sizes": told["worst_model"]})
    return found


def summarize_costs(sweeps: Sequence[Sweep]) -> list[dict[str, Any]]:
    """For each model the costs of symbolic dimensions in relayc besides the time of a call: median seconds of all loads and their ratio;
    the seconds by which a first call at new sizes exceeds the second, and as a measure of noise the second exceeds the third (see
    `median_within`); the largest ratio of arenas."""
    found = []
    for sweep in sweeps:
        # A static program takes as long as its sizes ask for, one of few rows the least: all sizes count.
        loads = {name: seconds + sweep.loads.get(name, []) for name, seconds in sweep.compilations.items()}
        medians = {name: statistics.median(seconds) for name, seconds in loads.items() if seconds}
        symbolic, static = medians.get("relayc"), medians.get("relayc-static")
        arenas = [value for point in sweep.points if (value := arena_ratio(point)) is not None]
        found.append(
            {
                "model": sweep.model.name,
                "compile_seconds": medians,
                "compile_ratio": symbolic / static if symbolic and static else None,
                "first_call_excess_seconds": _excess(sweep, 0),
                "second_call_excess_seconds": _excess(sweep, 1),
                "arena_ratio": max(arenas, default=None),
            }
        )
    return found


def _excess(sweep: Sweep, at: int) -> dict[str, dict[str, float]]:
    """Seconds by which a call at new sizes exceeds the next call, for each variant; the first call is number 0."""
    return {name: median_within([c[at] - c[at + 1] for c in calls]) for name, calls in sweep.first_calls.items()}


def median_within(values: Sequence[float]) -> dict[str, float]:
    """The median of at least one value, the number of values, and bounds of the median of their distribution, which hold with probability
    1 - DOUBT for every distribution; for fewer than six values the bounds are the least and the largest value."""
    ordered = sorted(values)
    low, high = median_interval(ordered, DOUBT)
    if math.isinf(high):
        low, high = ordered[0], ordered[-1]
    return {"median": statistics.median(ordered), "low": low, "high": high, "count": len(values)}


def arena_ratio(point: Sequence[SizedResult]) -> float | None:
    """Arena of the symbolic program relative to the static program; None if either is unknown or empty."""
    known = {result.engine: result.arena_bytes for result in point}
    mine, static = known.get("relayc"), known.get("relayc-static")
    return mine / static if mine and static else None


def sweep_table(sweep: Sweep, engines: Sequence[str], peak: Peak, precision: str) -> Table:
    """One line per size."""
    mine = first_of(engines)
    others = [name for name in engines if name != mine]
    columns = {f"{VARIANTS[name].short} ms": NUMBER for name in engines} | {f"/ {VARIANTS[name].short}": NUMBER for name in others}
    columns |= {name: NUMBER for name in ("of read", "first +ms", "arena MiB", "/ static arena", "difference")}
    title = f"{sweep.model.name}, {threads_text(peak.threads)}, {precision} asked for; ratios and what follows: {VARIANTS[mine].title}"
    table = make_table(title, sizes={"no_wrap": True}, **columns)
    for point in sweep.points:
        own = _of(point, mine)
        times = ["failed" if r.seconds is None else f"{r.seconds * 1e3:.3f}" for r in point]
        rate = None if own.seconds is None else own.read_bytes / own.seconds / 1e9 / peak.read_gbytes
        mark = "!" if own.agrees is False else ""
        table.add_row(
            sizes_text(point[0].sizes),
            *times,
            *(ratio_text(ratio(point, mine, other)) for other in others),
            "" if rate is None else f"{rate:.0%}",
            "" if own.excess is None else f"{own.excess * 1e3:.2f}",
            "" if own.arena_bytes is None else f"{own.arena_bytes / MIB:.1f}",
            ratio_text(arena_ratio(point)),
            "" if own.difference is None else f"{own.difference:.1e}{mark}",
        )
    return table


def sweeps_table(summary: Sequence[Mapping[str, Any]]) -> Table:
    """The geometric means as a table."""
    table = make_table("ratios over sizes", model={}, ratio={}, sizes=NUMBER, **{"geometric mean": NUMBER, "worst": NUMBER, "at": {}})
    for row in summary:
        names = f"{VARIANTS[row['engine']].title} / {VARIANTS[row['other']].title}"
        mean, worst = ratio_text(row["geometric_mean"]), ratio_text(row["worst"])
        table.add_row(row["model"], names, str(row["sizes"]), mean, worst, row["worst_sizes"])
    return table


def costs_table(costs: Sequence[Mapping[str, Any]], engines: Sequence[str]) -> Table:
    """What symbolic dimensions cost besides, as a table."""
    symbolic = [name for name in engines if VARIANTS[name].is_symbolic]
    columns = {f"{VARIANTS[name].short} load s": NUMBER for name in engines} | {"relayc / static": NUMBER}
    columns |= {f"{VARIANTS[name].short} {which} +ms": NUMBER for name in symbolic for which in ("first", "second")}
    columns |= {"arena / static": NUMBER}
    title = "besides: loading; first and second calls at a new size, how much longer than the next one, with bounds; the worst arena"
    table = make_table(title, model={}, **columns)
    for row in costs:
        seconds, first, second = (row[name] for name in ("compile_seconds", "first_call_excess_seconds", "second_call_excess_seconds"))
        table.add_row(
            row["model"],
            *(f"{seconds[name]:.2f}" if name in seconds else "" for name in engines),
            ratio_text(row["compile_ratio"]),
            *(_excess_text(excess.get(name)) for name in symbolic for excess in (first, second)),
            ratio_text(row["arena_ratio"]),
        )
    return table


def _excess_text(excess: Mapping[str, float] | None) -> str:
    if excess is None:
        return ""
    median, low, high = (excess[name] * 1e3 for name in ("median", "low", "high"))
    return f"{median:.2f} ({low:.2f} to {high:.2f})"


def plot_sweeps(sweeps: Sequence[Sweep], engines: Sequence[str], path: Path) -> None:
    """The ratios of every size over the time of a call: filled to the second variant, hollow to others."""
    from relayc.bench.plots import figure

    mine = first_of(engines)
    others = [name for name in engines if name != mine]
    with figure(path, (8.0, 5.0)) as axes:
        for color, sweep in enumerate(sweeps):
            for marker, other in zip("osd", others, strict=False):
                ratios = [(own, value) for p in sweep.points if (own := _of(p, mine).seconds) and (value := ratio(p, mine, other))]
                label = f"{sweep.model.name} / {VARIANTS[other].title}"
                fill = f"C{color}" if other == others[0] else "none"
                times, values = [seconds * 1e3 for seconds, _ in ratios], [value for _, value in ratios]
                axes.plot(times, values, marker, color=f"C{color}", markerfacecolor=fill, markersize=5, label=label, zorder=2)
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(f"ms of a call of {VARIANTS[mine].title}")
        axes.set_ylabel("its time / time of the other")
        axes.grid(color="0.9", zorder=0)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small")
