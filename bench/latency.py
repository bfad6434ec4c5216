"""`bench latency`: whole models, engine against engine."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from relayc.bench.engines import ENGINES
from relayc.bench.measure import Progress, Result, Settings, measure_case
from relayc.bench.models import Source, make_cases
from relayc.runtime import Peak
from relayc.tools.tables import NUMBER, make_table

MIB = 1 << 20


def measure_models(
    sources: Sequence[Source], settings: Settings, shapes: Mapping[str, Sequence[int]], seed: int, progress: Progress
) -> list[list[Result]]:
    """The results of each model. Raises ValueError for shapes that do not fit a model."""
    return [measure_case(case, settings, progress) for case in make_cases(sources, shapes, seed, progress)]


def fastest_other(results: Sequence[Result], engine: str) -> float | None:
    """Seconds of the fastest engine but `engine` on a case."""
    return min((r.seconds for r in results if r.engine != engine and r.seconds is not None), default=None)


def ratio(results: Sequence[Result], engine: str, other: str | None = None) -> float | None:
    """Time of an engine relative to another engine (by default the fastest other engine); None if either has no time."""
    mine = next((r.seconds for r in results if r.engine == engine), None)
    others = fastest_other(results, engine) if other is None else next((r.seconds for r in results if r.engine == other), None)
    return None if mine is None or others is None else mine / others


def done_text(result: Result) -> str:
    """Operations that an engine did, as a share of the operations by definition; empty if the engine does not report them."""
    own, done = result.facts.get("flops"), result.facts.get("done_flops")
    return f"{done / own:.0%}" if own and done is not None else ""


def threads_text(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"


def ratio_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def add_engines(table: Table, names: Sequence[str], results: Sequence[Result], cells: Callable[[Result, float], Sequence[str]]) -> None:
    """Adds a row for each engine: the names of the case in the first one, the engine, and its cells by its result and seconds.

    A table with a column `computes` gets the precision there.
    """
    computes = any(column.header == "computes" for column in table.columns)
    for i, result in enumerate(results):
        head = [*(names if i == 0 else [""] * len(names)), ENGINES[result.engine].title]
        head += [result.facts.get("precision", "")] if computes else []
        found = ["failed"] if result.seconds is None else cells(result, result.seconds)
        table.add_row(*head, *found, end_section=i == len(results) - 1)


def difference_text(result: Result) -> str:
    return "" if result.difference is None else f"{result.difference:.1e}"


def latency_table(models: Sequence[Sequence[Result]], peak: Peak, precision: str) -> Table:
    """One line per model and engine."""
    table = make_table(
        f"latency, batch 1, {threads_text(peak.threads)}, {precision} asked for",
        model={},
        engine={},
        computes={},
        **{name: NUMBER for name in ("median ms", "ratio", "GFLOP/s", "of peak", "FLOP done", "memory MiB", "compile s", "difference")},
    )
    for results in models:
        flops = next((r.facts["flops"] for r in results if "flops" in r.facts), None)  # None if relayc did not run

        def cells(result: Result, seconds: float, flops: int | None = flops, results: Sequence[Result] = results) -> list[str]:
            rate = flops / seconds / 1e9 if flops else None
            return [
                f"{seconds * 1e3:.3f}",
                ratio_text(ratio(results, result.engine)),
                "" if rate is None else f"{rate:.1f}",
                "" if rate is None else f"{rate / peak.gflops:.0%}",
                done_text(result),
                f"{result.memory['resident'] / MIB:.0f}",
                f"{result.facts['load_seconds']:.2f}",
                difference_text(result) + ("!" if result.agrees is False and result.difference is not None else ""),
            ]

        add_engines(table, [results[0].case], results, cells)
    return table


def summarize(models: Sequence[Sequence[Result]], engines: Sequence[str]) -> list[dict[str, Any]]:
    """For each engine the geometric mean and the largest of its ratios: to the fastest other engine, and to each other one."""
    found = []
    for engine in engines:
        others: list[str | None] = [None, *(e for e in engines if e != engine)]
        for other in others if len(engines) > 2 else others[1:]:
            ratios = [(value, results[0].case) for results in models if (value := ratio(results, engine, other)) is not None]
            if ratios:
                found.append({"engine": engine, "other": other, **mean_and_worst(ratios)})
    return found


def mean_and_worst(ratios: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """The geometric mean and the largest of some (ratio, model), at least one."""
    worst, model = max(ratios)
    mean = math.exp(sum(math.log(value) for value, _ in ratios) / len(ratios))
    return {"models": len(ratios), "geometric_mean": mean, "worst": worst, "worst_model": model}


def summary_table(summary: Sequence[Mapping[str, Any]]) -> Table:
    """The geometric means as a table."""
    table = make_table("ratios over models", engine={}, against={}, models=NUMBER, **{"geometric mean": NUMBER, "worst": NUMBER, "of": {}})
    for row in summary:
        other = "the fastest other" if row["other"] is None else ENGINES[row["other"]].title
        mean, worst = ratio_text(row["geometric_mean"]), ratio_text(row["worst"])
        table.add_row(ENGINES[row["engine"]].title, other, str(row["models"]), mean, worst, row["worst_model"])
    return table


def plot_latency(models: Sequence[Sequence[Result]], peak: Peak, precision: str, path: Path) -> None:
    """Bars of the latency of each engine relative to the fastest engine, labelled with milliseconds."""
    from relayc.bench.plots import figure

    shown = [results for results in models if any(r.seconds for r in results)]
    engines = list(dict.fromkeys(r.engine for results in shown for r in results))
    width = 0.8 / max(1, len(engines))
    with figure(path, (max(6.0, 1.1 * len(shown) + 2), 4.5)) as axes:
        for k, engine in enumerate(engines):
            bars = []
            for x, results in enumerate(shown):
                best = min(r.seconds for r in results if r.seconds is not None)
                bars += [(x, r.seconds, r.seconds / best) for r in results if r.engine == engine and r.seconds is not None]
            at = [x + (k - (len(engines) - 1) / 2) * width for x, _, _ in bars]
            drawn = axes.bar(at, [height for _, _, height in bars], width, label=ENGINES[engine].title, color=f"C{k}", zorder=2)
            axes.bar_label(drawn, [f"{seconds * 1e3:.3g}" for _, seconds, _ in bars], fontsize=7, rotation=90, padding=2)
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set_xticks(range(len(shown)), [results[0].case for results in shown], rotation=30, ha="right")
        axes.set_ylabel("time / time of the fastest engine")
        axes.set_title(f"latency, batch 1, {threads_text(peak.threads)}, {precision} (labels in ms)", loc="left", fontsize="medium")
        axes.margins(y=0.15)
        axes.grid(axis="y", color="0.9", zorder=0)
        # Beside the title: bars may reach up to the frame anywhere.
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.07), ncols=len(engines), frameon=False, borderaxespad=0)
