"""The figures of docs/figures.md: each command measures one, draws docs/figures/NAME.svg, and writes the table of the page anew.

python -m relayc.bench.figures latency        calls of models, beside the other engines that are installed
python -m relayc.bench.figures memory         memory over calls at random sizes, beside ONNX Runtime
python -m relayc.bench.figures start          from a file to the first result, beside ONNX Runtime
python -m relayc.bench.figures conformance    the onnx package's cases by kind, as ONNX's scoreboard of backends counts them
python -m relayc.bench.figures zoo            the results of `make zoo`
"""

import argparse
import datetime
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from relayc.bench import export
from relayc.bench.dynamic import VARIANTS, job_at
from relayc.bench.engines import ENGINES
from relayc.bench.latency import MIB, mean_and_worst, measure_models, plot_latency, ratio, ratio_text, threads_text
from relayc.bench.machine import describe, load_average, measure_peak
from relayc.bench.measure import Settings
from relayc.bench.models import find_models
from relayc.bench.plots import figure
from relayc.bench.random_sizes import flat_inputs, make_plan
from relayc.bench.sized_worker import SizedServer
from relayc.bench.sizes import choose_grids, open_model
from relayc.bench.worker import EngineError, EngineProcess
from relayc.frontend.onnx import supported_operators
from relayc.runtime.threads import usable_cpus
from relayc.tools.conformance import KINDS, cases_by_kind, newer_cases, refused_cases
from relayc.tools.generated import with_table
from relayc.tools.progress import progress_bar, tracked

PAGE = Path("docs/figures.md")
POINTS = 50
"""How often memory is read during the calls."""
BUSY = 1.0
"""Load average from which a figure is marked as disturbed."""

Table = Sequence[Sequence[object]]


def latency(arguments: argparse.Namespace, picture: Path) -> Table:
    """Latency of each model by engine."""
    engines = tuple(name for name in ("relayc", "ort", "openvino") if ENGINES[name].is_installed)
    settings = Settings(engines, arguments.threads, rounds=arguments.rounds)
    with progress_bar("measuring the machine") as show:
        peak = measure_peak(arguments.threads)
        models = measure_models(find_models(arguments.models), settings, {}, 0, show)
    plot_latency(models, peak, "f32", picture)
    titles = [ENGINES[name].title for name in engines]
    rows: list[Sequence[object]] = [["model", *(f"{title} ms" for title in titles), *(f"relayc / {title}" for title in titles[1:])]]
    for results in models:
        times = ["failed" if r.seconds is None else f"{r.seconds * 1e3:.3f}" for r in results]
        rows.append([results[0].case, *times, *(ratio_text(ratio(results, "relayc", other)) for other in engines[1:])])
    against = [[(value, "") for results in models if (value := ratio(results, "relayc", other))] for other in engines[1:]]
    means = [ratio_text(mean_and_worst(ratios)["geometric_mean"] if ratios else None) for ratios in against]
    return [*rows, ["geometric mean", *("" for _ in engines), *means]]


def memory(arguments: argparse.Namespace, picture: Path) -> Table:
    """Resident memory over the calls."""
    (source,) = find_models("test/models/dynamic/bert.onnx" if arguments.models == "test" else arguments.models)
    with source.file() as file:
        model = open_model(source.name, file)
        plan = make_plan(choose_grids([model], [])[0], arguments.calls, 0)
        settings = Settings(tuple(name for name in ("relayc", "ort") if ENGINES[name].is_installed), arguments.threads)
        found: dict[str, list[float]] = {}
        for name in settings.engines:
            with EngineProcess(job_at(model.case(plan.samples[0], 0), name, settings), SizedServer) as process:
                process.load()
                process.request("prepare", **flat_inputs(model, plan.largest, 0))
                found[name] = [process.memory()["resident"] / MIB]
                step = max(1, len(plan.calls) // POINTS)
                for begin in tracked(range(0, len(plan.calls), step), VARIANTS[name].title, math.ceil(len(plan.calls) / step)):
                    process.request("calls", sizes=plan.calls[begin : begin + step])
                    found[name].append(process.memory()["resident"] / MIB)
    with figure(picture, (7, 4)) as axes:
        for name, values in found.items():
            axes.plot([min(i * step, len(plan.calls)) for i in range(len(values))], values, label=VARIANTS[name].title)
        axes.set(xlabel="calls, each at random sizes", ylabel="resident MiB", ylim=(0, None))
        axes.legend()
        axes.grid(color="0.9")
    different = len({tuple(sizes.items()) for sizes in plan.calls})
    head = [f"{source.name}, {different} different sizes", "loaded MiB", "at half of the calls", "at the end", "most"]
    return [head, *([VARIANTS[k].title, *(f"{x:.0f}" for x in (v[0], v[len(v) // 2], v[-1], max(v)))] for k, v in found.items())]


def start(arguments: argparse.Namespace, picture: Path) -> Table:
    """Time from the start of Python to the first result."""
    model = "resnet50" if arguments.models == "test" else arguments.models
    with tempfile.TemporaryDirectory() as folder, progress_bar(f"starting processes with {model}"):
        medians, _ = export.measure(model, arguments.rounds, arguments.threads, Path(folder))
    parts = {"import": "import", "load": "load", "first call": "first"}
    with figure(picture, (7, 3)) as axes:
        left = [0.0] * len(medians)
        for part in parts:
            widths = [1e3 * (row[parts[part]] - (row["load"] if part == "first call" else 0)) for row in medians.values()]
            axes.barh(list(medians), widths, left=left, label=part)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.set_xlabel(f"ms from the start of Python to the first result, {model}")
        axes.invert_yaxis()
        axes.legend()
    head = [model, "import ms", "load ms", "load to first result ms", "a later call ms", "resident MiB", "private MiB"]
    times = {name: [1e3 * row[key] for key in ("import", "load", "first", "run")] for name, row in medians.items()}
    return [head, *([n, *(f"{t:.1f}" for t in times[n]), f"{r['VmRSS']:.0f}", f"{r['RssAnon']:.0f}"] for n, r in medians.items())]


def conformance(arguments: argparse.Namespace, picture: Path) -> Table:
    """Share of the cases that pass, by kind."""
    refused, newer = refused_cases(), newer_cases()
    counts = {kind: Counter(name not in refused for name in cases if name not in newer) for kind, cases in cases_by_kind().items()}
    with figure(picture, (7, 2.6)) as axes:
        passed = [100 * count[True] / count.total() for count in counts.values()]
        axes.barh(KINDS, passed, color="C2", label="passed")
        axes.barh(KINDS, [100 - share for share in passed], left=passed, color="C3", label="failed")
        axes.set_xlabel("% of the cases")
        axes.invert_yaxis()
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    supported = {(row.domain, row.name) for row in supported_operators()}
    schemas = [(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas() if not schema.deprecated]
    operators = {domain: Counter(key in supported for key in schemas if key[0] == domain) for domain in sorted({d for d, _ in schemas})}
    named = counts | {f"operators of {domain or 'ai.onnx'}": count for domain, count in operators.items()}
    named["all cases"] = sum(counts.values(), Counter[bool]())
    rows = [[name, count.total(), count[True], count[False], f"{count[True] / count.total():.1%}"] for name, count in named.items()]
    return [[f"onnx {onnx.__version__}", "in all", "passed", "failed", "share"], *rows]


def zoo(arguments: argparse.Namespace, picture: Path) -> Table:
    """Distribution of the ratios of times."""
    reports = json.loads(arguments.results.read_text())["reports"]
    points = [point for report in reports for point in report["points"]]
    ratios = sorted(p["relayc_seconds"] / p["reference_seconds"] for p in points if p.get("relayc_seconds"))
    statuses = Counter(point["status"] for point in points)
    with figure(picture, (7, 3)) as axes:
        axes.plot(ratios, [100 * (i + 1) / len(ratios) for i in range(len(ratios))])
        axes.axvline(1, color="grey", linewidth=0.8)
        axes.set(xscale="log", xlabel="time of relayc / time of ONNX Runtime, one thread", ylabel="% of models and sizes", ylim=(0, 100))
        axes.grid(color="0.9")
    rows = [["architectures", len({report["model"].rsplit(".", 1)[0] for report in reports})], ["models", len(reports)]]
    told = {"agrees": "sizes that agree", "no reference": "sizes that ONNX Runtime does not take"}
    rows += [[told.get(status, f"sizes: {status}"), count] for status, count in statuses.most_common()]
    if ratios:
        mean = mean_and_worst([(value, "") for value in ratios])["geometric_mean"]
        rows += [["relayc / ONNX Runtime, geometric mean", ratio_text(mean)], ["largest", ratio_text(ratios[-1])]]
    return [["the zoo", "number"], *rows]


FIGURES = {function.__name__: function for function in (latency, memory, start, conformance, zoo)}


def _machine(arguments: argparse.Namespace, busy: float | None) -> str:
    """What a figure was measured on, and when."""
    facts: dict[str, Any] = describe()
    engines = "".join(f", {name} {facts['packages'][name]}" for name in ("onnxruntime", "openvino") if name in facts["packages"])
    if arguments.name == "zoo":
        day = datetime.date.fromtimestamp(arguments.results.stat().st_mtime)
        return f"{day}, {facts['cpu']} with {facts['cpus']} CPUs, one thread."
    if arguments.name == "conformance":
        return f"{facts['time'][:10]}."
    load = f"; the load average before was {busy:.1f}: other processes disturbed it" if busy is not None and busy > BUSY else ""
    return f"{facts['time'][:10]}, {facts['cpu']} with {facts['cpus']} CPUs, {threads_text(arguments.threads)}{engines}{load}."


def main(argv: Sequence[str] | None = None) -> int:
    """Measures a figure; the exit code is 1 where its page has no place for it, or a file, an engine or
    matplotlib is missing."""
    parser = argparse.ArgumentParser(prog="python -m relayc.bench.figures", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", choices=FIGURES)
    parser.add_argument("--page", type=Path, default=PAGE, help=f"the page, with the pictures in a folder of its name (default {PAGE})")
    parser.add_argument("--models", default="test", help="of latency, as for bench latency; of memory and start a model")
    parser.add_argument("--threads", type=int, default=usable_cpus(), help="of each engine (default: all CPUs)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine (default 5)")
    parser.add_argument("--calls", type=int, default=10_000, help="of memory (default 10,000)")
    parser.add_argument("--results", type=Path, default=Path("build/zoo/zoo.json"), help="of zoo (default build/zoo/zoo.json)")
    arguments = parser.parse_args(argv)
    busy = load_average()
    try:
        text = arguments.page.read_text()
        with_table(text, arguments.name, "")  # before the work
        picture = arguments.page.with_suffix("") / f"{arguments.name}.svg"
        table = FIGURES[arguments.name](arguments, picture)
    except (EngineError, ModuleNotFoundError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    head, *rows = ([str(cell) for cell in row] for row in table)
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    marked = "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{_machine(arguments, busy)}\n"
    shown = f"![{(FIGURES[arguments.name].__doc__ or '').rstrip('.')}]({picture.relative_to(arguments.page.parent)})\n\n"
    arguments.page.write_text(with_table(text, arguments.name, shown + marked))
    print(marked, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
