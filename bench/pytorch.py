"""`bench torch`: models of PyTorch by from_pytorch and by torch.compile, beside eager, inductor and TVM; inference, and steps of training.

Each engine has a process of its own for a model, and the processes take turns. Weights and inputs are drawn from the same seed in all.
"""

import argparse
import importlib.util
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from relayc.bench.machine import describe, warn_if_busy
from relayc.bench.options import add_json
from relayc.bench.pytorch_models import MODELS, WITHOUT_PARAMETERS
from relayc.bench.report import save
from relayc.bench.tvm_relax import load
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
_ROUND_SECONDS = 3
"""Time after which a round of an engine ends early."""
_END_SECONDS = 30
"""Time limit for a process to end after the request: inductor ends its compile processes, which takes a second."""


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


def _call(engine: str, name: str, training: bool, threads: int, seed: int) -> Callable[[], list[np.ndarray]]:
    """A call of a model, or a step of its training, which gives the result and the gradients."""
    import torch

    torch.manual_seed(seed)
    model, inputs = MODELS[name]()
    model.train(training)
    with torch.set_grad_enabled(training):
        function = _function(engine, model, inputs, threads)

    def inference() -> list[np.ndarray]:
        with torch.no_grad():
            return [function(*inputs).numpy()]

    def step() -> list[np.ndarray]:
        model.zero_grad()
        result = function(*inputs)
        result.square().mean().backward()
        return [result.detach().numpy(), *(p.grad.numpy() for p in model.parameters())]

    return step if training else inference


def _work(connection: Connection, engine: str, name: str, training: bool, threads: int, seed: int) -> None:
    """A process: sends the seconds and the results of the first call, then those of as many calls as it is told."""
    import torch

    from relayc.runtime import set_num_threads

    torch.set_num_threads(threads)
    set_num_threads(threads)
    try:
        begin = time.perf_counter()
        call = _call(engine, name, training, threads, seed)
        results = call()
        connection.send((time.perf_counter() - begin, [np.array(r) for r in results]))
        while (runs := connection.recv()) is not None:
            seconds = []
            for _ in range(runs):
                begin = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - begin)
                if sum(seconds) > _ROUND_SECONDS:
                    break
            connection.send(seconds)
    except EOFError:
        pass  # nobody asks any more
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


@contextmanager
def _process(*job: Any) -> Iterator[Connection]:
    """A process that does a job, with empty caches of programs; it ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = context.Process(target=_with_caches, args=(folder, theirs, *job), daemon=True)
        process.start()
        theirs.close()
        try:
            yield ours
        finally:
            with suppress(OSError):
                ours.send(None)
            process.join(_END_SECONDS)
            ours.close()
            process.kill()
            process.join()


def _with_caches(folder: str, *job: Any) -> None:
    """A job in which each engine has a folder of its own for compiled programs."""
    os.environ.update({name: os.path.join(folder, name) for name in _CACHES})
    _work(*job)


def measure_model(
    name: str, engines: Sequence[str], training: bool, threads: int, rounds: int, runs: int, seed: int = 0
) -> list[TorchPoint]:
    """Measures engines on a model; what fails has its error."""
    points = {engine: TorchPoint(name, engine) for engine in engines}
    with ExitStack() as stack:
        running: dict[str, Connection] = {}
        results: dict[str, list[np.ndarray]] = {}
        for engine, point in points.items():
            connection = stack.enter_context(_process(engine, name, training, threads, seed))
            found = _received(connection)
            if isinstance(found, str):
                point.error = found
            else:
                running[engine] = connection
                point.first, results[engine] = found
        for engine in results.keys() & running.keys() if "eager" in results else ():
            pairs = zip(results[engine], results["eager"], strict=True)
            points[engine].difference = max(float(np.abs(a - b).max()) for a, b in pairs)
        for _ in range(rounds):
            for engine, connection in running.items():
                if points[engine].error is None:
                    connection.send(runs)
                    found = _received(connection)
                    if isinstance(found, str):
                        points[engine].error = found
                    else:
                        points[engine].rounds.append(found)
    return list(points.values())


def _received(connection: Connection) -> Any:
    try:
        return connection.recv()
    except EOFError:
        return "the process ended"


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
    command.add_argument("--runs", type=parse_count, default=20, metavar="N", help="calls in a round (default 20)")
    command.add_argument("--threads", type=parse_count, default=usable_cpus(), metavar="N", help="threads of a call (default: all CPUs)")
    add_json(command)
    command.set_defaults(action=run)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`bench torch`. 1 where an engine of relayc failed."""
    warn_if_busy()
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
