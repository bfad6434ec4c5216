"""`python -m relayc.bench serve`: requests per second and latencies of models behind `relayc serve`, beside ONNX Runtime behind it."""

import argparse
import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import relayc
from relayc.bench.machine import describe, load_average
from relayc.bench.models import Case, find_models, make_case
from relayc.bench.options import Commands, add_command, add_json
from relayc.bench.report import save
from relayc.runtime.threads import usable_cpus
from relayc.tools.tables import NUMBER, make_table

_ENGINES = {"relayc": "relayc.serve.RelaycModel", "ort": "relayc.bench.served_onnxruntime.OnnxRuntimeModel"}


@dataclass
class Load:
    """What a model was asked, and how fast it answered.

    Attributes:
      seconds: latency of each request.
      rates: requests per second of each round.
      rows, batches: how many of each the model ran.
    """

    engine: str
    model: str
    callers: int
    seconds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    rows: float = 0.0
    batches: float = 0.0

    def as_data(self) -> dict[str, Any]:
        """Plain data: medians, not single requests."""
        p50, p99 = np.percentile(self.seconds, (50, 99))
        facts = {"engine": self.engine, "model": self.model, "callers": self.callers, "requests": len(self.seconds)}
        return {
            **facts,
            "rate": float(np.median(self.rates)),
            "p50": float(p50),
            "p99": float(p99),
            "batch_rows": self.rows / max(self.batches, 1),
        }


@contextmanager
def served(cases: Sequence[Case], threads: int, workers: int, batch: int, delay: float) -> Iterator[dict[str, int]]:
    """A server of each model by each engine, as MODEL-ENGINE; gives its ports."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        for case in cases:
            for engine, implementation in _ENGINES.items():
                place = Path(folder, f"{case.name}-{engine}")
                place.mkdir()
                parameters = {"uri": str(case.path.absolute()), "extra": {"threads": threads, "workers": workers}}
                settings: dict[str, Any] = {"implementation": implementation, "parameters": parameters}
                if case.symbols:
                    settings |= {"max_batch_size": batch, "max_batch_time": delay}
                (place / "model-settings.json").write_text(json.dumps(settings))
        ports = {"http": 0, "grpc": 0, "metrics": 0}
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in ports]
        for kind, each in zip(ports, sockets, strict=True):
            ports[kind] = each.getsockname()[1]
            each.close()
        options = [f"--{kind}-port={port}" for kind, port in ports.items()]
        process = subprocess.Popen([sys.executable, "-m", "relayc.serve", folder, *options], stdout=log, stderr=log)
        try:
            _wait_until_ready(process, ports["http"])
            yield ports
        except RuntimeError as error:
            log.seek(0)
            raise OSError(f"{error}: {log.read().decode().strip().splitlines()[-1:]}") from error
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")


def measure_serving(cases: Sequence[Case], callers: Sequence[int], requests: int, rounds: int, **options: Any) -> list[Load]:
    """Asks each model by gRPC, engine after engine in turns.

    Args:
      callers: how many requests are under way at the same time.
      requests: of a round.
      options: of `served`.

    Raises:
      OSError: the server did not start.
      ModuleNotFoundError: a package is missing.
    """
    inputs = {case.name: case.inputs for case in cases}
    with served(cases, **options) as ports:
        loads = [Load(engine, name, count) for name in inputs for count in callers for engine in _ENGINES]
        for _ in range(rounds):
            for load in loads:
                asyncio.run(_ask(load, inputs[load.model], requests, ports))
    return loads


async def _ask(load: Load, inputs: Mapping[str, np.ndarray], requests: int, ports: Mapping[str, int]) -> None:
    """A round: callers that send the next request when they have the answer to the last one, after a few that are not counted."""
    from tritonclient.grpc import InferInput
    from tritonclient.grpc.aio import InferenceServerClient
    from tritonclient.utils import np_to_triton_dtype

    model = f"{load.model}-{load.engine}"
    tensors = []
    for name, array in inputs.items():
        tensors.append(InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        tensors[-1].set_data_from_numpy(array)
    async with InferenceServerClient(f"127.0.0.1:{ports['grpc']}") as client:

        async def caller(count: int) -> list[float]:
            seconds = []
            for _ in range(count):
                start = time.perf_counter()
                await client.infer(model, tensors, client_timeout=60)
                seconds.append(time.perf_counter() - start)
            return seconds

        shares = [requests // load.callers + (i < requests % load.callers) for i in range(load.callers)]
        await asyncio.gather(*(caller(2) for _ in range(load.callers)))
        before = _batches(model, ports["metrics"])
        begin = time.perf_counter()
        found = await asyncio.gather(*map(caller, shares))
        load.rates.append(requests / (time.perf_counter() - begin))
        rows, batches = (after - old for after, old in zip(_batches(model, ports["metrics"]), before, strict=True))
    load.seconds += [each for seconds in found for each in seconds]
    load.rows += rows
    load.batches += batches


def _batches(model: str, port: int) -> tuple[float, float]:
    """Rows and batches that a model has run."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if f'model="{model}"' in line]
    rows, batches = (sum(float(x.split()[-1]) for x in lines if x.startswith(f"relayc_batch_rows_{end}{{")) for end in ("sum", "count"))
    return rows, batches


def serving_table(loads: Sequence[Load]) -> Table:
    """A row for each model and number of callers."""
    columns: dict[str, Any] = {"model": {}, "callers": NUMBER}
    for engine in _ENGINES:
        columns |= {f"{engine} req/s": NUMBER, f"{engine} p50 ms": NUMBER, f"{engine} p99 ms": NUMBER, f"{engine} rows/batch": NUMBER}
    table = make_table("Requests by gRPC", **columns)
    for model, callers in dict.fromkeys((load.model, load.callers) for load in loads):
        cells = []
        for engine in _ENGINES:
            (load,) = (each for each in loads if (each.engine, each.model, each.callers) == (engine, model, callers))
            data = load.as_data()
            cells += [f"{data['rate']:.0f}", f"{data['p50'] * 1e3:.2f}", f"{data['p99'] * 1e3:.2f}", f"{data['batch_rows']:.1f}"]
        table.add_row(model, str(callers), *cells)
    return table


def add_parser(commands: Commands) -> None:
    """Adds the command to the command line."""
    command = add_command(commands, "serve", run, "requests per second behind relayc serve, beside ONNX Runtime behind it")
    folder = Path(relayc.__path__[0]) / "test" / "models"
    models = "files and patterns of files, separated by commas (default resnet18 and bert of test/models)"
    command.add_argument("--models", default=f"{folder}/resnet18.onnx,{folder}/bert.onnx", metavar="LIST", help=models)
    command.add_argument("--callers", default="1,8,32", metavar="LIST", help="requests under way at the same time (default 1,8,32)")
    command.add_argument("--requests", type=int, default=300, metavar="N", help="of a round (default 300)")
    command.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each engine (default 3)")
    command.add_argument("--threads", type=int, default=usable_cpus(), metavar="N", help="of a call (default: all CPUs)")
    command.add_argument("--workers", type=int, default=0, metavar="N", help="worker processes of each model (default 0)")
    command.add_argument("--max-batch-size", type=int, default=16, metavar="N", help="rows of a batch (default 16)")
    command.add_argument("--max-batch-time", type=float, default=0.002, metavar="S", help="that a request waits for others (default 0.002)")
    add_json(command)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`bench serve`."""
    callers = [int(text) for text in arguments.callers.split(",")]
    batching = {"batch": arguments.max_batch_size, "delay": arguments.max_batch_time}
    before = load_average()
    with ExitStack() as files:
        cases = [make_case(source.name, files.enter_context(source.file()), {}) for source in find_models(arguments.models)]
        settings = {"threads": arguments.threads, "workers": arguments.workers, **batching}
        loads = measure_serving(cases, callers, arguments.requests, arguments.rounds, **settings)
    console.print(serving_table(loads))
    console.print(f"{arguments.requests} requests a round, {arguments.rounds} rounds; load average before: {before}", markup=False)
    save(arguments, describe(), results=[load.as_data() for load in loads])
    return 0
