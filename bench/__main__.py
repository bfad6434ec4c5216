"""The command `python -m relayc.bench`.

    latency    whole models, engine against engine
    dynamic    models compiled once, at many sizes, against the same compiled for each size
    ops        matrix products, convolutions and recurrent networks, against the peak of the machine
    int8       quantised products and models, engine against engine and against floats
    loops      the cost of an iteration of a loop, with trivial kernels
    heap       cells of the native heap: lists of the Relay language
    relay-text models in Relay text, beside the same models from ONNX
    torch      models of PyTorch by from_pytorch and torch.compile, against eager and inductor
    trees      tree ensembles on many rows, engine against engine
    schedules  the steps of docs/schedules.md, against the peak of the machine
    written    kernels by schedules of primitives, against the built-in schedules
    gate       kernels of models and operators by two strategies of the table
    compile    seconds and memory of a first compilation
    gpu        kernels, models and compilation for NVIDIA's GPUs, against torch and ONNX Runtime
    passes     milliseconds of each pass on the graph, and fusion groups
    serve      requests per second behind `relayc serve`, beside ONNX Runtime behind it
    tuned      models with the records of a tuning database, against the defaults
    metaschedule  kernels by relayc's tuner and by TVM's MetaSchedule, with equal trials
    revisions  latency and compilation of this relayc, against that of another environment

Exit codes: 0 for success; 1 if an engine or a revision failed, or for an error in a file; 2 for a wrong command line.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from relayc.bench.compilation import compilation_table, measure_compilation
from relayc.bench.dynamic import (
    VARIANTS,
    costs_table,
    measure_sweep,
    plot_sweeps,
    summarize_costs,
    summarize_sweeps,
    sweep_table,
    sweeps_table,
)
from relayc.bench.engines import ENGINES
from relayc.bench.gate import GateSettings, gate_table, measure_gate, summary_of
from relayc.bench.gpu import (
    SECTIONS,
    GpuSettings,
    copy_bandwidth,
    gpu_table,
    measure_kernels,
    require_gpu,
)
from relayc.bench.gpu import measure_compilation as measure_gpu_compilation
from relayc.bench.gpu import measure_models as measure_gpu_models
from relayc.bench.gpu import summarize as summarize_gpu
from relayc.bench.gpu_cases import find_cases
from relayc.bench.heap import add_parser as add_heap_parser
from relayc.bench.int8 import PRODUCTS, measure_products, measure_quantised, models_table, products_table
from relayc.bench.latency import latency_table, measure_models, plot_latency, summarize, summary_table, threads_text
from relayc.bench.loops import loop_names, loops_table, measure_loops
from relayc.bench.machine import describe, measure_integer_peak, measure_peak, warn_if_busy
from relayc.bench.measure import Point, Progress, Settings
from relayc.bench.metaschedule import add_parser as add_metaschedule_parser
from relayc.bench.models import find_models
from relayc.bench.ops import find_operations, measure_operations, operations_table, plot_roofline
from relayc.bench.options import (
    add_command,
    add_common,
    add_json,
    add_models,
    add_results,
    add_rounds,
    add_settings,
    add_turns,
    parse_names,
)
from relayc.bench.passes import measure_passes, passes_table
from relayc.bench.peer_process import Interpreter
from relayc.bench.pytorch import add_parser as add_torch_parser
from relayc.bench.random_sizes import measure_random, random_table
from relayc.bench.relay_text import add_parser as add_text_parser
from relayc.bench.report import save
from relayc.bench.revisions import change_table, comparison_table, identify, measure_revisions, summarize_changes
from relayc.bench.schedules import find_sizes, measure_steps, steps_table
from relayc.bench.serving import add_parser as add_serve_parser
from relayc.bench.sizes import choose_grids, open_model, parse_grid
from relayc.bench.trees import DEFAULT as ENSEMBLES
from relayc.bench.trees import Ensemble, find_ensembles, measure_ensembles, trees_table
from relayc.bench.tuned import SIDES, measure_tuned, ratios_of, tuned_table
from relayc.bench.written import measure_written, written_table
from relayc.bench.written_kernels import kernels as written_kernels
from relayc.pipelines.context.target import Target
from relayc.runtime import DeviceError, Peak
from relayc.tools.commands import make_console, parse_count
from relayc.tools.inputs import parse_shape, parse_size
from relayc.tools.progress import status_line
from relayc.tune.command import parse_minutes
from relayc.tune.model import open_database


def _peak(arguments: argparse.Namespace, console: Console, progress: Progress) -> tuple[Peak, dict[str, Any]]:
    """Measures and describes the machine, and prints both in a line."""
    warn_if_busy()
    progress("measuring the machine")
    peak = measure_peak(arguments.threads)
    machine = describe(peak)
    rates = f"{peak.gflops:.0f} GFLOP/s f32, reads {peak.read_gbytes:.1f} GB/s, triad {peak.triad_gbytes:.1f} GB/s"
    console.print(f"{machine['cpu']}, {machine['cpus']} CPUs; on {threads_text(peak.threads)}: {rates}\n", markup=False)
    return peak, machine


def _settings(arguments: argparse.Namespace) -> Settings:
    return Settings(arguments.engines, arguments.threads, arguments.precision, arguments.rounds, arguments.runs)


def _report_errors(errors: Iterable[tuple[str, str, str | None]]) -> int:
    """Prints the errors out of (case, title of the engine, error) in a line each; gives the exit code."""
    failed = [(case, title, error) for case, title, error in errors if error is not None]
    for case, title, error in failed:
        print(f"relayc.bench: {case}: {title}: {error}", file=sys.stderr)
    return int(bool(failed))


def latency(arguments: argparse.Namespace, console: Console) -> int:
    """`bench latency`."""
    sources = find_models(arguments.models)
    with status_line() as progress:
        peak, machine = _peak(arguments, console, progress)
        models = measure_models(sources, _settings(arguments), dict(arguments.shape), arguments.seed, progress)
    console.print(latency_table(models, peak, arguments.precision))
    summary = summarize(models, arguments.engines)
    if summary:
        console.print("", summary_table(summary), sep="\n")
    results = [result for model in models for result in model]
    save(arguments, machine, results=[result.as_data() for result in results], summary=summary)
    if arguments.plot is not None:
        plot_latency(models, peak, arguments.precision, arguments.plot)
    return _report_errors((result.case, ENGINES[result.engine].title, result.error) for result in results)


def dynamic(arguments: argparse.Namespace, console: Console) -> int:
    """`bench dynamic`."""
    given = [parse_grid(text) for text in arguments.sizes]
    settings, seed, rounds = _settings(arguments), arguments.seed, arguments.compile_rounds
    with ExitStack() as stack:
        models = [open_model(source.name, stack.enter_context(source.file())) for source in find_models(arguments.models)]
        chosen = list(zip(models, choose_grids(models, given), strict=True))
        progress = stack.enter_context(status_line())
        peak, machine = _peak(arguments, console, progress)
        if arguments.random is not None:
            found = [r for model, grids in chosen for r in measure_random(model, grids, settings, arguments.random, seed, progress)]
            console.print(random_table(found, arguments.threads))
            save(arguments, machine, results=[result.as_data() for result in found])
            return _report_errors((result.model, VARIANTS[result.engine].title, result.error) for result in found)
        sweeps = [measure_sweep(model, grids, settings, rounds, seed, progress) for model, grids in chosen]
    summary, costs = summarize_sweeps(sweeps, arguments.engines), summarize_costs(sweeps)
    for sweep in sweeps:
        console.print(sweep_table(sweep, arguments.engines, peak, arguments.precision), "", sep="\n")
    console.print(sweeps_table(summary), "", costs_table(costs, arguments.engines), sep="\n")
    save(arguments, machine, results=[sweep.as_data() for sweep in sweeps], summary=summary, costs=costs)
    if arguments.plot is not None:
        plot_sweeps(sweeps, arguments.engines, arguments.plot)
    failed = {(r.case, VARIANTS[r.engine].title, r.error): None for sweep in sweeps for point in sweep.points for r in point}
    return _report_errors(failed)


def ops(arguments: argparse.Namespace, console: Console) -> int:
    """`bench ops`."""
    chosen = find_operations(arguments.sizes)
    with status_line() as progress:
        peak, machine = _peak(arguments, console, progress)
        points = measure_operations(chosen, peak, _settings(arguments), arguments.seed, progress)
    if arguments.plot is not None:
        plot_roofline(points, peak, arguments.precision, arguments.plot)
    return _show(points, operations_table(points, peak, arguments.precision), machine, arguments, console)


def int8(arguments: argparse.Namespace, console: Console) -> int:
    """`bench int8`."""
    operations = [operation for _, operation in find_operations(arguments.sizes)] if arguments.sizes else []
    sources = find_models(arguments.models) if arguments.models else []
    settings = _settings(arguments)
    with status_line() as progress:
        warn_if_busy()
        peak = measure_integer_peak(arguments.threads)
        products = measure_products(operations, settings, arguments.seed, progress)
        models = measure_quantised(sources, settings, dict(arguments.shape), arguments.seed, progress)
    if products:
        console.print(products_table(products, peak, arguments.threads), "", sep="\n")
    if models:
        console.print(models_table(models, arguments.threads))
    records = [r for point in products for r in point.as_data()] + [r for point in models for r in point.as_data()]
    save(arguments, {**describe(), "integer_peak_gops": peak}, results=records)
    results = [r for point in products for r in point.results] + [r for point in models for r in point.results.values()]
    return _report_errors((result.case, ENGINES[result.engine].title, result.error) for result in results)


def loops(arguments: argparse.Namespace, console: Console) -> int:
    """`bench loops`."""
    with status_line() as progress:
        warn_if_busy()
        points = measure_loops(arguments.loops, _settings(arguments), progress)
    return _show(points, loops_table(points, arguments.threads), describe(), arguments, console)


def trees(arguments: argparse.Namespace, console: Console) -> int:
    """`bench trees`."""
    with status_line() as progress:
        warn_if_busy()
        points = measure_ensembles(arguments.ensembles, _settings(arguments), arguments.seed, progress)
    return _show(points, trees_table(points, arguments.threads), describe(), arguments, console)


def _show(points: Sequence[Point[Any]], table: Table, machine: dict[str, Any], arguments: argparse.Namespace, console: Console) -> int:
    """Prints the table of points, and saves them; gives the exit code."""
    console.print(table)
    save(arguments, machine, results=[record for point in points for record in point.as_data()])
    return _report_errors((result.case, ENGINES[result.engine].title, result.error) for point in points for result in point.results)


def schedules(arguments: argparse.Namespace, console: Console) -> int:
    """`bench schedules`."""
    sizes = find_sizes(arguments.sizes)
    with status_line() as progress:
        _, machine = _peak(arguments, console, progress)
        found = [measure_steps(size, arguments.threads, arguments.rounds, arguments.seed, progress) for size in sizes]
    console.print(steps_table(found, arguments.threads))
    save(arguments, machine, results=[record for measured in found for record in measured.as_data()])
    return 0


def written(arguments: argparse.Namespace, console: Console) -> int:
    """`bench written`."""
    with status_line() as progress:
        warn_if_busy()
        known = written_kernels(Target("cpu"))
        kernels = [kernel for kernel in known if arguments.kernels in kernel.name]
        if not kernels:
            raise ValueError(f"--kernels: expected a part of a name of {', '.join(k.name for k in known)}, found {arguments.kernels}")
        found = measure_written(kernels, arguments.threads, arguments.rounds, arguments.seed, progress)
    console.print(written_table(found, arguments.threads))
    save(arguments, describe(), results=[one.as_data() for one in found])
    return 0


def gate(arguments: argparse.Namespace, console: Console) -> int:
    """`bench gate`."""
    sources = [*find_models(arguments.models)] if arguments.models else []
    operations = [operation for _, operation in find_operations(arguments.operations)] if arguments.operations else []
    settings = GateSettings(
        arguments.old,
        arguments.new,
        arguments.threads,
        arguments.rounds,
        arguments.seed,
        arguments.at or ({},),
        arguments.kernels,
        arguments.precision,
    )
    with status_line() as progress:
        warn_if_busy()
        found = measure_gate([*sources, *operations], settings, progress)
    console.print(gate_table(found, arguments.threads))
    console.print(summary_of(found), markup=False)
    save(arguments, describe(), results=[one.as_data() for one in found.measured], declined=found.declined)
    return 0


def compilation(arguments: argparse.Namespace, console: Console) -> int:
    """`bench compile`."""
    sources = find_models(arguments.models)
    with status_line() as progress:
        _, machine = _peak(arguments, console, progress)
        shapes = dict(arguments.shape)
        records = measure_compilation(sources, arguments.engines, arguments.threads, arguments.precision, shapes, progress)
    console.print(compilation_table(records))
    save(arguments, machine, results=records)
    return _report_errors((record["case"], ENGINES[record["engine"]].title, record["error"]) for record in records)


def revisions(arguments: argparse.Namespace, console: Console) -> int:
    """`bench revisions`."""
    sources = find_models(arguments.models)
    interpreters = {"old": Interpreter.other(arguments.against), "new": Interpreter.this()}
    settings = Settings(("relayc",), arguments.threads, arguments.precision, arguments.rounds, arguments.runs)
    with status_line() as progress:
        warn_if_busy()
        machine = describe()
        progress("starting both revisions")
        known = identify(interpreters)
        shapes = dict(arguments.shape)
        found = measure_revisions(sources, interpreters, settings, arguments.compile_rounds, shapes, arguments.seed, progress)
    for name, facts in known.items():
        revision = "" if facts["revision"] is None else f", {facts['revision']}"
        console.print(f"{name}: relayc {facts['version']}{revision} ({facts['package']}), Python {facts['python']}", markup=False)
    console.print("", comparison_table(found, arguments.threads, arguments.precision), sep="\n")
    summary = summarize_changes(found)
    if summary:
        console.print("", change_table(summary), sep="\n")
    save(arguments, machine, revisions=known, results=[comparison.as_data() for comparison in found], summary=summary)
    return _report_errors((comparison.case, name, side.error) for comparison in found for name, side in comparison.sides.items())


def gpu(arguments: argparse.Namespace, console: Console) -> int:
    """`bench gpu`."""
    sources = find_models(arguments.models) if {"models", "compile"} & set(arguments.sections) else []
    try:
        device = require_gpu(arguments.device)
    except DeviceError as error:
        print(f"relayc.bench: {error}", file=sys.stderr)
        return 1
    facts = device.facts
    target = arguments.target or Target("cuda")
    settings = GpuSettings(target, arguments.device, arguments.rounds, arguments.runs or 5, arguments.seed)
    if arguments.copy_bytes:
        settings = replace(settings, copy_bytes=arguments.copy_bytes)
    with status_line() as progress:
        bandwidth = copy_bandwidth(settings)
        what = f"{facts.name}, {facts.architecture}, {facts.cores} multiprocessors"
        console.print(f"{what}; a copy moves {bandwidth / 1e9:.0f} GB/s; target {target}\n", markup=False)
        results = measure_kernels(find_cases(arguments.sections, arguments.sizes), settings, progress)
        if "models" in arguments.sections:
            results += measure_gpu_models(sources, dict(arguments.shape), arguments.precision, settings, progress)
        if "compile" in arguments.sections:
            results += measure_gpu_compilation(sources, settings, progress)
    for section in dict.fromkeys(result.section for result in results):
        console.print(gpu_table(section, [r for r in results if r.section == section], bandwidth), "", sep="\n")
    summary = summarize_gpu(results)
    for section, found in summary.items():
        line = f"{section}: {found['geometric_mean']:.2f} of the fastest other engine (geometric mean), {found['least']:.2f} at least"
        console.print(line, markup=False)
    arguments.target = str(target)
    machine = {**describe(), "gpu": {**asdict(facts), "copy_bytes_per_second": bandwidth, "target": str(target)}}
    save(arguments, machine, results=[result.as_data() for result in results], summary=summary)
    return _report_errors((result.case, engine, error) for result in results for engine, error in result.errors.items())


def tuned(arguments: argparse.Namespace, console: Console) -> int:
    """`bench tuned`."""
    sources = find_models(arguments.models)
    with status_line() as progress:
        warn_if_busy()
        shapes, database = dict(arguments.shape), open_database(arguments.database).path
        models = measure_tuned(sources, _settings(arguments), database, arguments.minutes, shapes, arguments.seed, progress)
    console.print(tuned_table(models, arguments.threads))
    summary, arguments.database = ratios_of(models), str(database)
    save(arguments, describe(), results=[result.as_data() for model in models for result in model.values()], summary=summary)
    titles = {**SIDES, **{name: engine.title for name, engine in ENGINES.items()}}
    return _report_errors((one.case, titles[name], one.error) for model in models for name, one in model.items())


def passes(arguments: argparse.Namespace, console: Console) -> int:
    """`bench passes`."""
    sources = find_models(arguments.models)
    with status_line() as progress:
        records = measure_passes(sources, arguments.precision, arguments.rounds, dict(arguments.shape), progress)
    console.print(passes_table(records))
    save(arguments, describe(), results=records)
    return 0


# ---- the command line -------------------------------------------------------------------------------------------------------------


def _ensembles(text: str) -> tuple[Ensemble, ...]:
    try:
        return find_ensembles(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _products(text: str) -> tuple[tuple[int, int, int], ...]:
    found = [tuple(map(int, part.split("x"))) for part in text.split(",") if re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", part)]
    if len(found) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"expected products as 1024x1024x512, separated by commas, found {text!r}")
    return tuple((m, n, k) for m, n, k in found)


def _point(text: str) -> dict[str, int]:
    return dict(parse_size(part) for part in text.split(",") if part)


def _add_plot(parser: argparse.ArgumentParser, figure: str) -> None:
    parser.add_argument("--plot", type=Path, metavar="OUT.png", help=figure)


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m relayc.bench", description="Measure relayc and other engines.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = add_command(commands, "latency", latency, "whole models, engine against engine")
    add_models(command)
    add_common(command, "relayc,ort,openvino")
    add_rounds(command)
    _add_plot(command, "draw the latencies as bars")
    command = add_command(commands, "dynamic", dynamic, "models compiled once, at many sizes, against the same compiled for each size")
    models = "dynamic, files and patterns of files with named dimensions, separated by commas (default dynamic)"
    command.add_argument("--models", default="dynamic", metavar="LIST", help=models)
    sizes = "combinations that are measured of models with exactly these symbols; may be repeated (default: see bench/sizes.py)"
    command.add_argument("--sizes", action="append", default=[], metavar="[MODEL:]NAME=N,N,...;NAME=N,...", help=sizes)
    rounds = "loadings by each engine, each in a fresh process that meets every size for the first time (default 3)"
    command.add_argument("--compile-rounds", type=parse_count, default=3, metavar="N", help=rounds)
    command.add_argument(
        "--random", type=parse_count, metavar="N", help="instead: N calls at random sizes, in order and from several threads"
    )
    add_common(command, "relayc,relayc-static,ort", VARIANTS)
    add_rounds(command)
    _add_plot(command, "draw the ratios over the sizes")
    command = add_command(commands, "ops", ops, "matrix products, convolutions and recurrent networks, against the peak of the machine")
    shapes = "MxNxK, MxNxKqBITSbBLOCK[aLEVEL], CHANNELSxSIZE-FILTERSkKERNELsSTRIDE[gGROUPS], CELLSTEPSxBATCHxINPUTS-HIDDEN"
    sizes = f"sets of shapes, or shapes as {shapes} (default all)"
    command.add_argument("--sizes", default="all", metavar="LIST", help=sizes)
    add_common(command, "relayc,ort")
    add_rounds(command)
    _add_plot(command, "draw the roofline")
    command = add_command(commands, "int8", int8, "quantised products and models, engine against engine and against floats")
    command.add_argument(
        "--sizes", default=PRODUCTS, metavar="LIST", help="products and convolutions as for ops (default: a few; '' for none)"
    )
    add_models(command)
    command.set_defaults(models="resnet50")
    add_common(command, "relayc,ort,openvino")
    add_rounds(command)
    command = add_command(commands, "loops", loops, "what a round of a loop costs, beside kernels that do next to nothing")
    known = loop_names()
    listed = f"of {', '.join(known)} (default all)"
    command.add_argument("--loops", type=parse_names("loops", known), default=known, metavar="LIST", help=listed)
    add_common(command, "relayc,ort")
    add_rounds(command)
    add_heap_parser(commands)
    add_text_parser(commands)
    add_torch_parser(commands)
    command = add_command(commands, "trees", trees, "tree ensembles on many rows, engine against engine")
    listed = f"TREESxDEPTH-TARGETS@ROWS, separated by commas (default {','.join(ensemble.name for ensemble in ENSEMBLES)})"
    command.add_argument("--ensembles", type=_ensembles, default=ENSEMBLES, metavar="LIST", help=listed)
    add_common(command, "relayc,ort")
    add_rounds(command)
    command = add_command(commands, "schedules", schedules, "the steps of docs/schedules.md, against the peak of the machine")
    sizes = "products as MxNxK, separated by commas (default 512x512x512)"
    command.add_argument("--sizes", default="512x512x512", metavar="LIST", help=sizes)
    add_turns(command)
    command = add_command(commands, "written", written, "kernels by schedules of primitives, against the built-in schedules")
    command.add_argument("--kernels", default="", metavar="TEXT", help="those whose names hold a text, such as product (default: all)")
    add_turns(command)
    command = add_command(commands, "gate", gate, "kernels of models and of operators by two strategies of the table, in turns")
    command.add_argument("old", metavar="OLD", help="the strategy that is the measure")
    command.add_argument("new", metavar="NEW", help="the strategy that may take its place")
    command.add_argument("--models", default="test", metavar="LIST", help="as for latency (default test; '' for none)")
    command.add_argument("--operations", default="", metavar="LIST", help="sets of shapes, or shapes, as for ops --sizes (default none)")
    command.add_argument("--kernels", default="", metavar="REGEX", help="those whose names match (default all)")
    points = "sizes of symbols, 16 of those that are not named; may be repeated: a point each, at which kernels with symbols are measured"
    command.add_argument("--at", type=_point, action="append", metavar="NAME=N,...", help=points)
    command.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="what models compute in (default f32)")
    add_turns(command)
    command = add_command(commands, "compile", compilation, "seconds and memory of a first compilation")
    add_models(command)
    add_common(command, "relayc")
    command = add_command(commands, "gpu", gpu, "kernels, models and compilation for NVIDIA's GPUs, against torch and ONNX Runtime")
    listed = f"of {', '.join(SECTIONS)}, separated by commas (default all)"
    command.add_argument("--sections", type=parse_names("sections", SECTIONS), default=SECTIONS, metavar="LIST", help=listed)
    sizes = "products as MxNxK, separated by commas, in place of those that are measured by default"
    command.add_argument("--sizes", type=_products, default=(), metavar="LIST", help=sizes)
    models = "as for latency (default resnet50); the networks of test/models in their full sizes are written by test/models/export.py"
    command.add_argument("--models", default="resnet50", metavar="LIST", help=models)
    shape = "shape of an input with symbolic dimensions, in every model that has it; may be repeated"
    command.add_argument("--shape", type=parse_shape, action="append", default=[], metavar="NAME=D0,D1,...", help=shape)
    command.add_argument("--device", type=int, default=0, metavar="N", help="number of the GPU (default 0)")
    command.add_argument("--target", type=Target, metavar="TARGET", help="the target (default: that of the GPU)")
    command.add_argument("--copy-bytes", type=parse_count, metavar="N", help="bytes of the copies that tell the bandwidth (default 1 GiB)")
    command.add_argument("--precision", choices=("f32", "bf16"), default="bf16", help="of models (default bf16)")
    add_rounds(command)
    add_json(command)
    command = add_command(commands, "passes", passes, "milliseconds of each pass on the graph, and fusion groups")
    add_models(command)
    add_results(command)
    command.add_argument(
        "--rounds", type=parse_count, default=3, metavar="N", help="compilations, of which the least time counts (default 3)"
    )
    command.set_defaults(engines=None, default_engines=())
    add_serve_parser(commands)
    command = add_command(commands, "tuned", tuned, "models with the records of a tuning database, against the defaults")
    add_models(command, "tuned")
    add_common(command, "ort,openvino", [name for name in ENGINES if name != "relayc"])
    add_rounds(command)
    command.add_argument("--minutes", type=parse_minutes, metavar="M", help="tune each model first, for so long (default: not)")
    where = "the tuning database (default: the one that relayc.compile uses)"
    command.add_argument("--database", type=Path, metavar="FILE", help=where)
    add_metaschedule_parser(commands)
    command = add_command(commands, "revisions", revisions, "latency and compilation of this relayc, against that of another environment")
    against = "interpreter of an environment in which another revision of relayc is installed"
    command.add_argument("--against", required=True, metavar="PYTHON", help=against)
    add_models(command)
    add_settings(command)
    add_rounds(command)
    rounds = "compilations by each revision, each in a fresh process (default 3)"
    command.add_argument("--compile-rounds", type=parse_count, default=3, metavar="N", help=rounds)
    return parser


def _installed(given: tuple[str, ...] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """The engines to measure. Raises ModuleNotFoundError if a requested engine is not installed; a default engine that is not installed is
    left out, with a line on stderr."""
    known = {name: ENGINES[variant.engine] for name, variant in VARIANTS.items()} | ENGINES
    missing = [name for name in given or default if not known[name].is_installed]
    if missing:
        packages = dict.fromkeys(known[name].package for name in missing)
        text = f"not installed: {', '.join(packages)} (pip install 'relayc[bench]')"
        if given is not None:
            raise ModuleNotFoundError(text)
        print(f"relayc.bench: left out, as {text}", file=sys.stderr)
    return tuple(name for name in given or default if name not in missing)


def main(argv: list[str] | None = None) -> int:
    """Runs a command and returns its exit code; argparse ends the process with 2 for a wrong command line."""
    arguments = make_parser().parse_args(argv)
    try:
        if "engines" in arguments:
            arguments.engines = _installed(arguments.engines, arguments.default_engines)
        return arguments.action(arguments, make_console())
    except KeyboardInterrupt:
        print("relayc.bench: interrupted", file=sys.stderr)
        return 130
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(f"relayc.bench: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
