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
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from relayc.bench.machine import compile_bytecode, describe, warn_if_busy
from relayc.bench.options import add_json
from relayc.bench.pytorch_models import MODELS, WITHOUT_PARAMETERS
from relayc.bench.report import save
from relayc.bench.tvm_relax import load
from relayc.bench.worker import EngineProcess, Server, errors_of
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
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "RELAYC_CACHE_DIR")
"""Environment variables of the folders where engines keep compiled programs."""


@dataclass
class TorchPoint:
    """An engine on a model.

    Attributes:
      first: seconds from the class of the model to the first result: with the export, the compilation and a call.
      rounds: seconds of the calls of each round.
      difference: largest absolute difference of the result (in training: of the gradients, too) from eager.
      error: why there are no numbers.
    """

    model: str
    engine: str
    first: float | None = None
    rounds: list[list[float]] = field(default_factory=list)
    difference: float | None = None
    error: str | None = None

    @property
    def seconds(self) -> float | None:
        """Median over all calls."""
        calls = [s for seconds in self.rounds for s in seconds]
        return statistics.median(calls) if calls else None


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
        """Makes the model and calls it once: the seconds of both, and the results of the call."""
        os.environ.update({name: os.path.join(job.folder, name) for name in _CACHES})
        import torch

        from relayc.runtime import set_num_threads

        torch.set_num_threads(job.threads)
        set_num_threads(job.threads)
        begin = time.perf_counter()
        self._call = _call(job)
        results = self._call()
        return {"first": time.perf_counter() - begin, "results": [np.array(r) for r in results]}


class _TorchProcess(EngineProcess):
    server = _TorchServer


def _call(job: _TorchJob) -> Callable[[], list[np.ndarray]]:
    """A call of a model, or a step of its training, which gives the result and the gradients."""
    import torch

    torch.manual_seed(job.seed)
    model, inputs = MODELS[job.model]()
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
) -> list[TorchPoint]:
    """Measures engines on a model; what fails has its error."""
    points = {engine: TorchPoint(name, engine) for engine in engines}
    with ExitStack() as stack:
        running: dict[str, _TorchProcess] = {}
        results: dict[str, list[np.ndarray]] = {}
        for engine, point in points.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            process = stack.enter_context(_TorchProcess(_TorchJob(engine, name, training, threads, seed, folder)))
            with errors_of(point):
                found = process.load()
                running[engine] = process
                point.first, results[engine] = found["first"], found["results"]
        for engine in results if "eager" in results else ():
            pairs = zip(results[engine], results["eager"], strict=True)
            points[engine].difference = max(float(np.abs(a - b).max()) for a, b in pairs)
        for _ in range(rounds):
            for engine, process in running.items():
                if points[engine].error is None:
                    with errors_of(points[engine]):
                        points[engine].rounds.append(process.measure(runs))
    return list(points.values())


def torch_table(points: Sequence[TorchPoint], training: bool) -> Table:
    """One line per model; ratios are times over those of inductor."""
    engines, mine, by_model = _by_model(points)
    heads = [f"{e} ms" for e in engines] + [f"{e} / inductor" for e in mine]
    what = "steps of training" if training else "inference"
    title = f"PyTorch models, {what}; medians of calls in turns; compile: torch.compile by relayc, export: from_pytorch"
    table = make_table(title, model={}, **dict.fromkeys([*heads, "difference"], NUMBER))
    for name, of in by_model.items():
        times = [_text(of[e].seconds, 1e3, ".3f") for e in engines]
        ratios = [_text(ratio(of, e), 1, ".2f") for e in mine]
        differences = [of[e].difference for e in mine if of[e].difference is not None]
        table.add_row(name, *times, *ratios, _text(max(differences, default=None), 1, ".1e"))  # type: ignore[type-var]
    means = [[r for of in by_model.values() if (r := ratio(of, e)) is not None] for e in mine]
    texts = [f"{statistics.geometric_mean(found):.2f}" if found else "-" for found in means]
    table.add_row("geometric mean", *[""] * len(engines), *texts, "")
    return table


def first_table(points: Sequence[TorchPoint]) -> Table:
    """Seconds from each model to the first result, one line per model."""
    engines, _, by_model = _by_model(points)
    table = make_table("Seconds to the first result, with empty caches of programs", model={}, **dict.fromkeys(engines, NUMBER))
    for name, of in by_model.items():
        table.add_row(name, *(_text(of[e].first, 1, ".1f") for e in engines))
    return table


def _by_model(points: Sequence[TorchPoint]) -> tuple[list[str], list[str], dict[str, dict[str, TorchPoint]]]:
    """The engines, those of relayc, and the points by model and engine."""
    engines = list(dict.fromkeys(p.engine for p in points))
    by_model: dict[str, dict[str, TorchPoint]] = {}
    for point in points:
        by_model.setdefault(point.model, {})[point.engine] = point
    return engines, [e for e in engines if e in ("compile", "export")], by_model


def ratio(of: Mapping[str, TorchPoint], engine: str) -> float | None:
    """An engine's time over that of inductor, on the same model."""
    mine, other = (of[e].seconds if e in of else None for e in (engine, "inductor"))
    return mine / other if mine is not None and other is not None else None


def _text(value: float | None, factor: float, form: str) -> str:
    return "-" if value is None else format(value * factor, form)


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command to those of the command line."""
    command = commands.add_parser("torch", help="models of PyTorch, beside eager, inductor and TVM")
    command.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME", help="(default: %(default)s)")
    command.add_argument("--by", nargs="+", choices=list(TITLES), default=list(TITLES), metavar="ENGINE", help="(default: %(default)s)")
    command.add_argument("--training", action="store_true", help="steps of training, not inference")
    command.add_argument("--rounds", type=parse_count, default=5, metavar="N", help="turns of each engine (default 5)")
    command.add_argument("--runs", type=parse_count, metavar="N", help="calls in a round (default: as many as fit in 0.3 s)")
    command.add_argument("--threads", type=parse_count, default=usable_cpus(), metavar="N", help="threads of a call (default: all CPUs)")
    add_json(command)
    command.set_defaults(action=run)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`bench torch`. 1 where an engine of relayc failed."""
    warn_if_busy()
    compile_bytecode()
    engines = [e for e in arguments.by if not (arguments.training and e in ("tvm", "export"))]
    if "tvm" in engines and importlib.util.find_spec("tvm") is None:
        console.print("TVM is not installed (apache-tvm), so its relax frontend is left out.")
        engines.remove("tvm")
    points: list[TorchPoint] = []
    for name in arguments.models:
        if arguments.training and name in WITHOUT_PARAMETERS:
            continue
        with console.status(name):
            points += measure_model(name, engines, arguments.training, arguments.threads, arguments.rounds, arguments.runs)
    console.print(torch_table(points, arguments.training), first_table(points))
    failed = [point for point in points if point.error is not None]
    for point in failed:
        console.print(f"{point.model}, {TITLES[point.engine]}: {point.error}", markup=False)
    save(arguments, describe(), results=[{**asdict(point), "median_seconds": point.seconds} for point in points])
    return 1 if any(point.engine in ("compile", "export") for point in failed) else 0
