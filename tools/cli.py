"""The command `relayc`.

    relayc run MODEL       compiles a model, of any format that a frontend takes, and runs it; or runs a library
    relayc inspect MODEL   shows its kernels (operators, FLOPs, bytes, time), its IR or machine code, or what can be tuned
    relayc compile MODEL   writes it as a library that runs where relayc is not installed
    relayc visualize MODEL draws it: its operators, fusion groups or kernels
    relayc report MODEL    writes a page about it: every pass, the graph, kernels with times and code, the memory
    relayc quantize MODEL  writes it with weights and activations of 8 bits, or weights of 4
    relayc advise MODEL    says where its time goes, and which options make it faster here, as measured
    relayc tune MODEL      searches for the numbers of schedules that are fastest here, and records them
    relayc serve FOLDER    serves models by REST and gRPC (docs/serving.md)
    relayc diff A B        shows what changed between two compilations
    relayc bisect MODEL    finds the pass, kernel or operator that makes its results differ from a reference
    relayc opt FILE ...    runs passes on MLIR text (the same as relayc-opt)
    relayc targets         shows what programs can be compiled for
    relayc cache           shows the compiled programs that are kept on disk; relayc cache clear removes them

argcomplete, where it is installed, completes commands and options in the shell.

Exit codes: 0; 1 for an error in the model, its inputs or its results; 2 for a wrong command line; 130 after an interrupt (tools/entry.py).
Of `relayc diff`, as of diff: 0 for no change, 1 for changes, 2 for any error.
"""

import argparse
import importlib.metadata
import json
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from relayc.dialects.mlir import ir
from relayc.frontend.errors import MissingShapes
from relayc.runtime import GraphExecutorDebug, Module, Profile
from relayc.runtime.export import ExportRequest
from relayc.runtime.profile import peak_text, saved_text
from relayc.serve.command import add_options as add_serve_options
from relayc.serve.command import serve
from relayc.tools import cache, comparing, device_code, opt, quantizing, targets
from relayc.tools.bisect.command import add_options as add_bisect_options
from relayc.tools.commands import (
    CommandError,
    add_compiler_options,
    add_model_options,
    compile_model,
    inputs_of,
    make_console,
    module_of,
    parse_count,
    say,
)
from relayc.tools.inputs import (
    load_inputs,
    output_file,
    parse_seconds,
    parse_seed,
    parse_tolerance,
    save_outputs,
    sizes_of_call,
    tensors_of,
    written,
)
from relayc.tools.progress import progress_bar
from relayc.tools.reference import compare, run_onnxruntime, tolerance
from relayc.tools.settings import pass_context
from relayc.tools.tables import kernel_table, operators_table, print_parts, profile_table, scaled, space_table, stage_table, why_table
from relayc.tools.visualize.command import add_options as add_visualize_options

COMMANDS = ("relayc.tune.command",)
"""Modules of packages above the tools that add a command each: their `add_parser` takes what argparse's `add_subparsers` gives."""


def run(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc run`: compiles, runs, and as asked for saves, checks, times and profiles."""
    if arguments.check and arguments.model.suffix == ".so":
        raise CommandError("--check needs the model, found a library")
    module = module_of(arguments)
    inputs = inputs_of(module, arguments, console)
    if module.lacking:
        raise CommandError(f"the target {module.target} has features that this machine lacks: {', '.join(module.lacking)}")
    outputs = module.run(inputs)
    how = "from a library" if arguments.model.suffix == ".so" else f"compiled in {sum(module.stats.values()):.2f} s"
    say(f"{arguments.model}: {len(module.kernels)} kernels, {how}", arguments, console)
    _print_precision(module, arguments, console)
    for spec in module.outputs:
        say(f"output {spec.name}: {spec}", arguments, console)
    if arguments.outputs is not None:
        save_outputs(arguments.outputs, outputs)
    if arguments.repeat or arguments.duration:
        _print_latency(module, inputs, arguments, console)
    if arguments.profile or arguments.json is not None:
        _print_profile(module, inputs, arguments, console)
    if arguments.trace is not None:
        _trace(module, inputs, arguments.trace, console)
    if arguments.check:
        _check(arguments, module.precision, inputs, outputs, console)


def _trace(module: Module, inputs: dict[str, np.ndarray], folder: Path, console: Console) -> None:
    """Writes the results of each kernel call of a run, and its time."""
    executor = GraphExecutorDebug(module, sizes=sizes_of_call(module, inputs), dump_root=folder)
    executor.run(**inputs)
    print_parts(console, f"wrote {len(executor.times)} calls to {folder}")


def _print_profile(module: Module, inputs: dict[str, np.ndarray], arguments: argparse.Namespace, console: Console) -> None:
    profile = module.profile(inputs)
    stages = [stage_table(module.stats)] if module.stats else []  # a library has none
    for table in (*stages, profile_table(profile), operators_table(profile)):
        console.print(table, "", sep="\n")
    if profile.peak is not None:
        console.print(peak_text(profile.peak))
    _print_saved(profile, console)
    console.print(_sum_text(profile))
    if arguments.json is not None:
        data = {"model": str(arguments.model), "target": module.target, "stages": module.stats, **profile.as_data()}
        with written(arguments.json) as file:
            file.write(f"{json.dumps(data, indent=1)}\n".encode())


def _print_saved(profile: Profile, console: Console) -> None:
    saved = saved_text(profile.total())
    if saved:
        print_parts(console, saved)


def _sum_text(profile: Profile) -> str:
    return f"{profile.seconds * 1e3:.3f} ms in kernels, {profile.latency * 1e3:.3f} ms a call"


def _print_precision(module: Module, arguments: argparse.Namespace, console: Console) -> None:
    """Prints the precision of the computation, if one was requested."""
    if arguments.precision != "f32":
        why = "" if module.precision == arguments.precision else f": the target has no instructions for {arguments.precision}"
        say(f"precision {module.precision}{why}", arguments, console)


def _print_latency(module: Module, inputs: dict[str, np.ndarray], arguments: argparse.Namespace, console: Console) -> None:
    for _ in range(arguments.warmup):
        module.run(inputs)
    callers = arguments.concurrency
    begin = time.perf_counter()

    def call(runs: int) -> list[float]:
        seconds: list[float] = []
        while len(seconds) < runs or time.perf_counter() < begin + arguments.duration:
            start = time.perf_counter()
            module.run(inputs)
            seconds.append((time.perf_counter() - start) * 1e3)
        return seconds

    with ThreadPoolExecutor(callers) as pool:
        shares = [arguments.repeat // callers + (i < arguments.repeat % callers) for i in range(callers)]
        seconds = [one for found in pool.map(call, shares) for one in found]
    rate = len(seconds) / (time.perf_counter() - begin)
    middle, *high = np.percentile(seconds, (50, 90, 99))
    tail = ", ".join(f"p{percent} {time:.3f} ms" for percent, time in zip((90, 99), high, strict=True))
    console.print(f"latency: median {middle:.3f} ms, {tail}, least {min(seconds):.3f} ms, {len(seconds)} runs")
    if callers > 1:
        console.print(f"throughput: {rate:.1f} runs/s by {callers} callers")


def _check(
    arguments: argparse.Namespace, precision: str, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray], console: Console
) -> None:
    given = arguments.tolerance
    try:
        reference = run_onnxruntime(arguments.model, inputs)
    except ModuleNotFoundError as error:
        raise CommandError("--check needs ONNX Runtime: pip install onnxruntime") from error
    found = compare(tensors_of(outputs), tensors_of(reference), precision, given)
    if not found.agrees:
        far = f"{found.difference:.3g}" if precision == "f32" else f"{found.difference:.3g}, {found.spread:.1%} of the spread"
        raise CommandError(f"results differ from ONNX Runtime by up to {far} (allowed: {tolerance(precision, given)})")
    much = "" if precision == "f32" else f", {found.spread:.1%} of the spread"
    console.print(f"agrees with ONNX Runtime: largest difference {found.difference:.3g}{much}")


def inspect(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc inspect`: compiles and shows the compiled model."""
    if arguments.stage is not None:
        print(_stage_text(arguments), end="")
        return
    if arguments.space:
        _print_space(arguments, console)
        return
    module = _compile_with_reasons(arguments) if arguments.why else module_of(arguments)
    for kind, specs in (("input", module.inputs), ("output", module.outputs)):
        for spec in specs:
            print_parts(console, f"{kind} {spec.name}: {spec}")
    _print_precision(module, arguments, console)
    lacking = ", ".join(module.lacking) if module.device.exists else f"the device {module.device}"
    profile = None if lacking else module.profile(inputs_of(module, arguments, console))
    console.print(stage_table(module.stats), "", kernel_table(module.call_sites(), profile), sep="\n")
    if figures := device_code.figures_of(module):
        schedules = {kernel.name: kernel.schedule for kernel in module.kernels}
        console.print("", device_code.figures_table(figures, schedules), sep="\n")
    if profile is None:
        console.print(f"not run: this machine lacks {lacking}")
    else:
        _print_saved(profile, console)
        console.print(_sum_text(profile))
    if arguments.why:
        console.print("", why_table(module.kernels), sep="\n")


def _compile_with_reasons(arguments: argparse.Namespace) -> Module:
    """The module; its kernels have the reasons why strategies tried before declined."""
    from relayc.pipelines.context.passes import PassContext
    from relayc.pipelines.tir.strategy.table import WHY

    with PassContext(config={WHY: True}):
        return compile_model(arguments)


def _print_space(arguments: argparse.Namespace, console: Console) -> None:
    from relayc.pipelines.context.passes import PassContext
    from relayc.pipelines.driver.tuning_space import tuning_space

    with PassContext(opt_level=arguments.opt_level):
        te: Any = compile_model(arguments, stop_after="te")
        console.print(space_table(tuning_space(te, arguments.target)))


def _stage_text(arguments: argparse.Namespace) -> str:
    """The program at the stage that `--stage` names: IR, or the instructions that LLVM or ptxas made of it."""
    if arguments.stage == "asm":
        return compile_model(arguments).assembly()
    if arguments.stage == "schedule":
        from relayc.pipelines.driver.schedule_texts import schedule_texts

        to_tir: Any = partial(compile_model, arguments, stop_after="tir")
        return "\n\n".join(schedule_texts(to_tir).values())
    if arguments.stage in device_code.STAGES:
        code = device_code.device_code(lambda stage: compile_model(arguments, stop_after=stage), arguments.target)
        return device_code.device_text(code, arguments.stage)
    return compile_model(arguments, keep_ir=True).ir[arguments.stage]


def export(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc compile`: compiles a model and writes it as a library."""
    ExportRequest(arguments.out.absolute(), arguments.params == "beside", arguments.prefix, not arguments.no_openmp)  # before the work
    module = compile_model(arguments)
    with progress_bar("exporting", arguments.quiet):
        files = module.export_library(arguments.out, params=arguments.params, prefix=arguments.prefix, bundle=not arguments.no_openmp)
    say(f"{arguments.model}: {len(module.kernels)} kernels, compiled in {sum(module.stats.values()):.2f} s", arguments, console)
    _print_precision(module, arguments, console)
    for file in files:
        say(f"{file.name}: {scaled(file.stat().st_size)} bytes", arguments, console)


def visualize(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc visualize`: draws a model into a file."""
    from relayc.tools.visualize import visualize as draw

    program: Any
    profile = sizes = None
    if arguments.show == "kernels":
        program = module_of(arguments)
        inputs = inputs_of(program, arguments, console)
        profile = None if program.lacking else program.profile(inputs)
        sizes = sizes_of_call(program, inputs)
    elif arguments.show == "fused":
        program = compile_model(arguments, stop_after="relay")
    else:
        from relayc.frontend import import_model

        program = import_model(arguments.model, shapes=dict(arguments.shape), dims=dict(arguments.dim))
    picture = draw(program, profile=profile, sizes=sizes, collapse=not arguments.all)
    picture.save(arguments.out)
    say(f"wrote {arguments.out}: {len(picture.drawing.boxes)} boxes", arguments, console)


def report(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc report`: compiles a model, runs it, and writes a page about both."""
    from relayc.tools.report import make_report

    if arguments.model.suffix == ".so":
        raise CommandError(f"expected a model, found the library {arguments.model}: a report shows how a model is compiled")
    page = make_report(
        partial(compile_model, arguments, cache=False), lambda module: inputs_of(module, arguments, console), arguments.model
    )
    with written(arguments.out) as file:
        file.write(page)
    say(f"wrote {arguments.out}: {scaled(len(page))} bytes", arguments, console)


def bisect(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc bisect`: finds the cause of results that differ from a reference, and writes the smallest model that shows it."""
    from relayc.tools.bisect import command
    from relayc.tools.bisect.compiling import Compiler

    report = partial(print_parts, console)
    parts = {"target": arguments.target, "opt_level": arguments.opt_level, "precision": arguments.precision}
    whole = {**parts, "shapes": dict(arguments.shape), "dims": dict(arguments.dim), "specialize": arguments.specialize}
    folder = arguments.out or Path(f"bisect-{arguments.model.stem}")
    if arguments.failure:
        if arguments.inputs is None:
            raise CommandError("--failure needs --inputs")
        inputs = load_inputs(arguments.inputs, ())
        with progress_bar("searching", arguments.quiet):
            failure = command.find_failure(arguments.model, Compiler(whole), Compiler(parts), inputs, report)
        if failure is not None:
            command.show_failure(failure, folder, console)
            raise CommandError(f"the model fails: {failure.symptom}")
        console.print("the model does not fail")
        return
    if arguments.passes:
        _bisect_passes(arguments, whole, console)
        return
    module = compile_model(arguments, cache=False)
    if module.lacking:
        raise CommandError(f"the target {module.target} has features that this machine lacks: {', '.join(module.lacking)}")
    inputs = inputs_of(module, arguments, console)
    question = command.Question(arguments.model, Compiler(whole), Compiler(parts), inputs, module, module.precision)
    try:
        with progress_bar("searching", arguments.quiet):
            answer = command.bisect(question, command.chosen_reference(arguments), report)
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise CommandError("--check needs ONNX Runtime: pip install onnxruntime") from error
    command.show(answer, question, folder, console)
    if answer.fault is not None:
        raise CommandError(f"results differ from {answer.reference}: {answer.fault.kind} {answer.fault.name}")


def _bisect_passes(arguments: argparse.Namespace, options: dict[str, Any], console: Console) -> None:
    """`relayc bisect --passes`: evaluates a model before and after every pass."""
    from relayc.pipelines.evaluate.equivalence import check
    from relayc.tools.bisect.command import show_passes

    inputs = None if arguments.inputs is None else [load_inputs(arguments.inputs, ())]
    with progress_bar("evaluating after every pass", arguments.quiet):
        found = check(arguments.model, inputs=inputs, sizes={name: [size] for name, size in arguments.size} or None, **options)
    show_passes(found, console)
    if found.differences:
        first = found.differences[0]
        raise CommandError(f"{first.kind} {first.name} changes what the model gives")


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="relayc", description="Compile and run models.")
    parser.add_argument("--version", action="version", version=f"relayc {importlib.metadata.version('relayc')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    runner = commands.add_parser("run", help="compile a model and run it", description="Compile a model and run it.")
    add_model_options(runner)
    runner.add_argument("--outputs", type=output_file, metavar="OUT.npz", help="save the outputs by name; - for standard output")
    runner.add_argument("--repeat", type=parse_count, default=0, metavar="N", help="run N more times and print the latency")
    runner.add_argument("--duration", type=parse_seconds, default=0.0, metavar="S", help="run for S more seconds at least and print it")
    runner.add_argument("--warmup", type=parse_seed, default=0, metavar="N", help="runs before those that are timed (default 0)")
    runner.add_argument(
        "--concurrency", type=parse_count, default=1, metavar="N", help="callers that are timed at the same time (default 1)"
    )
    runner.add_argument("--profile", action="store_true", help="print the time of each stage and kernel")
    as_json = "write the profile as JSON too, to standard output for -; implies --profile"
    runner.add_argument("--json", type=output_file, metavar="OUT.json", help=as_json)
    traced = "write what each kernel call gives, and its time: trace.json for Chrome's trace viewer, tensors.npz, graph.json"
    runner.add_argument("--trace", type=Path, metavar="DIR", help=traced)
    runner.add_argument("--check", action="store_true", help="compare the outputs with those of ONNX Runtime")
    allowed = "of --check: |difference| <= ATOL + RTOL * |reference| for each element (default: by precision, see docs/command-line.md)"
    runner.add_argument("--tolerance", type=parse_tolerance, metavar="RTOL[,ATOL]", help=allowed)
    runner.set_defaults(action=run)
    about = "Compile a model to a library that runs where relayc is not installed (docs/export.md)."
    compiler = commands.add_parser("compile", help="compile a model to a shared library", description=about)
    add_compiler_options(compiler)
    out = "the library, model.so; or model.o, an object for static linking, with a header beside it"
    compiler.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help=out)
    params = "where the parameters are: in the library (the default), or beside it in a safetensors file, which is mapped"
    compiler.add_argument("--params", choices=("embedded", "beside"), default="embedded", help=params)
    compiler.add_argument("--prefix", default="", metavar="NAME", help="what comes before the names of the functions: an identifier of C")
    compiler.add_argument("--no-openmp", action="store_true", help="do not put the OpenMP runtime beside the library")
    compiler.set_defaults(action=export)
    about = "Compile a model and show its kernels: operators, FLOPs, bytes, time."
    inspector = commands.add_parser("inspect", help="show the kernels of a model", description=about)
    add_model_options(inspector)
    stages = "print the program at a stage instead: its IR, with schedule that of each kernel, with asm, ptx or sass its machine code"
    shown = inspector.add_mutually_exclusive_group()
    shown.add_argument("--stage", choices=("relay", "te", "schedule", "tir", "llvm", "asm", *device_code.STAGES), help=stages)
    shown.add_argument("--space", action="store_true", help="print the tunable numbers of each kernel instead, with their sensible values")
    shown.add_argument("--why", action="store_true", help="say too why strategies that were asked before did not take a kernel")
    inspector.set_defaults(action=inspect)
    about = "Draw a model: its operators, in fusion groups, or the kernels that it became, coloured by time."
    painter = commands.add_parser("visualize", help="draw a model", description=about)
    add_model_options(painter)
    add_visualize_options(painter)
    painter.set_defaults(action=visualize)
    about = "Write a page about a model: the IR after every pass, the graph, the kernels with their times and code, the memory."
    reporter = commands.add_parser("report", help="write a page about how a model is compiled and runs", description=about)
    add_model_options(reporter)
    reporter.add_argument("-o", "--out", type=output_file, required=True, metavar="FILE", help="the page, HTML; - for standard output")
    reporter.set_defaults(action=report)
    about = "Quantise an ONNX model in floats, calibrated on samples, and report what each layer loses (docs/quantization.md)."
    quantizer = commands.add_parser("quantize", help="write a model in 8 or 4 bits", description=about)
    add_compiler_options(quantizer, "an ONNX model in floats (.onnx)")
    quantizing.add_options(quantizer)
    quantizer.set_defaults(action=quantizing.quantize)
    about = "Show what bounds the kernels of a model, and try options that may make it faster, each timed in turns with the model as it is."
    adviser = commands.add_parser("advise", help="say why a model is slow, and what makes it faster", description=about)
    add_model_options(adviser)
    comparing.add_advise_options(adviser)
    adviser.set_defaults(action=comparing.advise)
    about = (
        "Show what changed between two compilations: kernels, schedules, memory, results and time. Exit codes: 0 for no change (times do "
    )
    about += "not count), 1 for changes, 2 for an error."
    differ = commands.add_parser("diff", help="show what changed between two compilations", description=about)
    add_model_options(differ)
    comparing.add_diff_options(differ)
    differ.set_defaults(action=comparing.diff, error_code=2)
    about = (
        "Find the pass, kernel or operator that makes the results of a model differ from a reference, and the least model that shows it."
    )
    searcher = commands.add_parser("bisect", help="find what makes results differ from a reference", description=about)
    add_model_options(searcher)
    add_bisect_options(searcher)
    searcher.set_defaults(action=bisect)
    about = "Serve the models of a folder by the Open Inference Protocol, REST and gRPC (docs/serving.md)."
    server = commands.add_parser("serve", help="serve models by REST and gRPC", description=about)
    add_serve_options(server)
    server.set_defaults(action=serve)
    for name in COMMANDS:
        import_module(name).add_parser(commands)
    about = "Show what programs can be compiled for: kinds of targets, this machine, and CPUs by name."
    lister = commands.add_parser("targets", help="show what programs can be compiled for", description=about)
    lister.add_argument("--verbose", action="store_true", help="show the traceback of an error")
    lister.set_defaults(action=targets.targets)
    about = "Show the programs in the on-disk cache, last used first, or remove them all."
    keeper = commands.add_parser("cache", help="show or clear the cache of compiled programs", description=about)
    keeper.add_argument("what", nargs="?", choices=("show", "clear"), default="show", help="default: show")
    keeper.add_argument("--verbose", action="store_true", help="show the traceback of an error")
    keeper.set_defaults(action=cache.run)
    commands.add_parser("opt", help="run passes on MLIR text: see relayc opt --help", add_help=False)
    return parser


def _message(error: Exception) -> str:
    """The message of an error, in terms of the command line."""
    if isinstance(error, MissingShapes):
        return f"{error.what}; give them with --shape {error.inputs[0]}=D0,D1,..."
    return str(error)


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code; argparse ends the process with 2 for a wrong command line."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["opt"]:
        return opt.main(argv[1:])
    parser = make_parser()
    with suppress(ModuleNotFoundError):
        import argcomplete

        argcomplete.autocomplete(parser)
    arguments = parser.parse_args(argv)
    if sys.stdout is None:
        print("relayc: error: expected a standard output, found it closed", file=sys.stderr)
        return 1
    files = {name: str(getattr(arguments, name, None)) for name in ("outputs", "json", "save", "out", "report", "export")}
    if list(files.values()).count("-") > 1:
        parser.error(f"expected - for one of {' and '.join(f'--{n}' for n, file in files.items() if file == '-')}, found it for both")
    try:
        is_given = any(getattr(arguments, name, []) for name in ("config", "disable", "require"))
        with pass_context(arguments) if is_given else nullcontext():
            code = arguments.action(arguments, make_console("-" in files.values()))
    except KeyboardInterrupt:
        print("relayc: interrupted", file=sys.stderr)
        return 130
    except (CommandError, ModuleNotFoundError, OSError, TypeError, ValueError, ir.MLIRError) as error:
        if arguments.verbose:
            traceback.print_exc()
        print(f"relayc: error: {' '.join(_message(error).split())}", file=sys.stderr)
        return getattr(arguments, "error_code", 1)
    return code or 0


if __name__ == "__main__":
    sys.exit(main())
