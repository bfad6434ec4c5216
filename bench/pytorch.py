"""`bench torch`: models of PyTorch by from_pytorch and by torch.compile, beside eager, inductor and TVM; inference, and steps of training.

Each engine has a process of its own for a model, and the processes take turns as in the other benchmarks. Weights and inputs are drawn
from the same seed in all.
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from relayc.bench.latency import ratio
from relayc.bench.machine import compile_bytecode, describe, warn_if_busy
from relayc.bench.measure import Result, Settings, check_and_time, load_jobs
from relayc.bench.options import Commands, add_command, add_json
from relayc.bench.report import save
from relayc.bench.tvm_relax import load
from relayc.bench.worker import Server
from relayc.runtime.threads import usable_cpus
from relayc.tools.commands import parse_count
from relayc.tools.tables import NUMBER, make_table

TITLES = {
    "eager": "eager",
    "inductor": "inductor",
    "tvm": "TVM's relax frontend",
    "compile": "torch.compile by relayc",
    "export": "from_pytorch",
}
"""The engines, by the name on the command line."""
OWN = ("compile", "export")
"""Those of relayc."""
MODELS = ("scale", "mlp", "cnn", "encoder", "gpt")
"""Functions of relayc.bench.pytorch_models, which imports PyTorch."""
WITHOUT_PARAMETERS = ("scale",)
"""Models that cannot be trained."""
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "RELAYC_CACHE_DIR")
"""Environment variables of the folders where engines keep compiled programs."""


def _function(engine: str, model: Any, inputs: tuple[Any, ...], threads: int) -> Callable[..., Any]:
    """The model as an engine runs it. Raises RuntimeError where the engine lacks something."""
    import torch

    import relayc

    if engine == "eager":
        return model
    if engine == "inductor":
        if not (shutil.which("g++") or shutil.which("clang++")):
            raise RuntimeError("inductor needs a C++ compiler, found none")
        return torch.compile(model)
    if engine == "tvm":
        return load(model, inputs, threads)
    if engine == "compile":
        from relayc.tools.dynamo import backend

        options = {"freeze": not model.training, "cache": True}
        return torch.compile(model, backend=backend, options=options)
    if model.training:
        raise RuntimeError("an exported program does not train")
    return relayc.compile(relayc.from_pytorch(model, inputs), cache=True)


@dataclass
class _TorchJob:
    """An engine on a model; `folder` has its caches of compiled programs."""

    engine: str
    model: str
    training: bool
    threads: int
    seed: int
    folder: str


class _TorchServer(Server):
    """A process in which an engine runs a model of PyTorch."""

    def load(self, job: Any) -> dict[str, Any]:
        """Makes the model and calls it once: the seconds of both."""
        os.environ.update({name: os.path.join(job.folder, name) for name in _CACHES})
        import torch

        from relayc.runtime import set_num_threads

        torch.set_num_threads(job.threads)
        set_num_threads(job.threads)
        begin = time.perf_counter()
        self._call = _call(job)
        self._call()
        return {"first": time.perf_counter() - begin}


def _call(job: _TorchJob) -> Callable[[], list[np.ndarray]]:
    """A call of a model, or a step of its training, which gives the result and the gradients."""
    import torch

    from relayc.bench import pytorch_models

    torch.manual_seed(job.seed)
    model, inputs = getattr(pytorch_models, job.model)()
    model.train(job.training)
    with torch.set_grad_enabled(job.training):
        function = _function(job.engine, model, inputs, job.threads)

    def inference() -> list[np.ndarray]:
        with torch.no_grad():
            return [function(*inputs).numpy()]

    def step() -> list[np.ndarray]:
        model.zero_grad()
        result = function(*inputs)
        result.square().mean().backward()
        return [result.detach().numpy(), *(p.grad.numpy() for p in model.parameters())]

    return step if job.training else inference


def measure_model(
    name: str, engines: Sequence[str], training: bool, threads: int, rounds: int, runs: int | None = None, seed: int = 0
) -> list[Result]:
    """Measures engines on a model; what fails has its error. `facts["first"]` are the seconds from the class of the model to the first
    result: with the export, the compilation and a call. The difference is that of the result (in training: of the gradients, too) from
    eager."""
    results = {engine: Result(name, engine) for engine in engines}
    with ExitStack() as stack:
        folders = {engine: stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)) for engine in engines}
        jobs = {engine: _TorchJob(engine, name, training, threads, seed, folder) for engine, folder in folders.items()}
        running, outputs = load_jobs(jobs, results, stack, lambda text: None, _TorchServer)
        settings = Settings(tuple(engines), threads, rounds=rounds, runs=runs)
        check_and_time(results, running, outputs, outputs.get("eager"), settings, lambda text: None)
    return list(results.values())


def torch_table(models: Sequence[Sequence[Result]], training: bool) -> Table:
    """One line per model; ratios are times over those of inductor."""
    engines = _engines(models)
    mine = [e for e in engines if e in OWN]
    heads = [f"{e} ms" for e in engines] + [f"{e} / inductor" for e in mine]
    what = "steps of training" if training else "inference"
    title = f"PyTorch models, {what}; medians of calls in turns; compile: torch.compile by relayc, export: from_pytorch"
    table = make_table(title, model={}, **dict.fromkeys([*heads, "difference"], NUMBER))
    for results in models:
        times = [_text(r.seconds, 1e3, ".3f") for r in results]
        ratios = [_text(ratio(results, e, "inductor"), 1, ".2f") for e in mine]
        differences = [r.difference for r in results if r.engine in mine and r.difference is not None]
        table.add_row(results[0].case, *times, *ratios, _text(max(differences, default=None), 1, ".1e"))
    means = [[found for results in models if (found := ratio(results, e, "inductor")) is not None] for e in mine]
    texts = [f"{statistics.geometric_mean(found):.2f}" if found else "-" for found in means]
    table.add_row("geometric mean", *[""] * len(engines), *texts, "")
    return table


def first_table(models: Sequence[Sequence[Result]]) -> Table:
    """Seconds from each model to the first result, one line per model."""
    table = make_table("Seconds to the first result, with empty caches of programs", model={}, **dict.fromkeys(_engines(models), NUMBER))
    for results in models:
        table.add_row(results[0].case, *(_text(r.facts.get("first"), 1, ".1f") for r in results))
    return table


def _engines(models: Sequence[Sequence[Result]]) -> list[str]:
    """The engines, which are the same for all models."""
    return [result.engine for result in models[0]] if models else []


def _text(value: float | None, factor: float, form: str) -> str:
    return "-" if value is None else format(value * factor, form)


def add_parser(commands: Commands) -> None:
    """Adds the command to those of the command line."""
    command = add_command(commands, "torch", run, "models of PyTorch, beside eager, inductor and TVM")
    command.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="NAME", help="(default: %(default)s)")
    command.add_argument("--by", nargs="+", choices=list(TITLES), default=list(TITLES), metavar="ENGINE", help="(default: %(default)s)")
    command.add_argument("--training", action="store_true", help="steps of training, not inference")
    command.add_argument("--rounds", type=parse_count, default=5, metavar="N", help="turns of each engine (default 5)")
    command.add_argument("--runs", type=parse_count, metavar="N", help="calls in a round (default: as many as fit in 0.3 s)")
    command.add_argument("--threads", type=parse_count, default=usable_cpus(), metavar="N", help="threads of a call (default: all CPUs)")
    add_json(command)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`bench torch`. 1 where an engine of relayc failed."""
    warn_if_busy()
    compile_bytecode()
    engines = [e for e in arguments.by if not (arguments.training and e in ("tvm", "export"))]
    if "tvm" in engines and importlib.util.find_spec("tvm") is None:
        console.print("TVM is not installed (apache-tvm), so its relax frontend is left out.")
        engines.remove("tvm")
    models: list[list[Result]] = []
    for name in arguments.models:
        if arguments.training and name in WITHOUT_PARAMETERS:
            continue
        with console.status(name):
            models.append(measure_model(name, engines, arguments.training, arguments.threads, arguments.rounds, arguments.runs))
    console.print(torch_table(models, arguments.training), first_table(models))
    failed = [result for results in models for result in results if result.error is not None]
    for result in failed:
        console.print(f"{result.case}, {TITLES[result.engine]}: {result.error}", markup=False)
    save(arguments, describe(), results=[_record(result) for results in models for result in results])
    return 1 if any(result.engine in OWN for result in failed) else 0


def _record(result: Result) -> dict[str, Any]:
    """A result as plain data, with the seconds of all calls."""
    facts = {"model": result.case, "engine": result.engine, "first": result.facts.get("first"), "rounds": result.rounds}
    return {**facts, "difference": result.difference, "error": result.error, "median_seconds": result.seconds}
