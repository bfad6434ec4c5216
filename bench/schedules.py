"""`bench schedules`: the steps of docs/schedules.md, next to the schedule that relayc has for the product and to ONNX Runtime's MatMul."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from rich.table import Table

from relayc.bench.engines import ENGINES, REFERENCE
from relayc.bench.latency import threads_text
from relayc.bench.measure import Progress, calls_by_round, job_of
from relayc.bench.models import make_case
from relayc.bench.ops import Operation, find_operations, model_of
from relayc.bench.schedule_steps import STEPS, decisions, product, register_tile, schedule_after
from relayc.bench.worker import EngineProcess, timed
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.pipelines.targets.cpu.peak import peak_kernel
from relayc.runtime.threads import Team
from relayc.tools.reference import compare
from relayc.tools.tables import NUMBER, make_table

SECONDS = 0.1
"""Time of a turn of one step."""


@dataclass
class Timed:
    """A step, or an engine for comparison.

    Attributes:
      compile_seconds: seconds from the tensor expressions to the kernel; 0 for another engine.
      rounds: seconds of every call, by round.
      peaks: 10^9 operations per second of multiply-adds in registers, right before each round: the speed of a shared or warm machine
        varies over time.
    """

    name: str
    compile_seconds: float = 0.0
    rounds: list[list[float]] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Median over the calls of all rounds."""
        return median(s for calls in self.rounds for s in calls)

    def share(self, flops: int) -> float:
        """Of the peak: the median over the rounds, each next to its own peak."""
        return median(flops / median(calls) / 1e9 / peak for calls, peak in zip(self.rounds, self.peaks, strict=True))


@dataclass(frozen=True)
class Measured:
    """All steps of one product, in order, followed by the engines for comparison."""

    size: Operation
    results: list[Timed]

    def as_data(self) -> list[dict[str, Any]]:
        """One record a step, as plain data."""
        facts = {"size": self.size.name, "flops": self.size.flops}
        return [
            {
                **facts,
                "step": r.name,
                "compile_seconds": r.compile_seconds,
                "rounds": calls_by_round(r.rounds),
                "median_seconds": r.seconds,
                "share": r.share(self.size.flops),
            }
            for r in self.results
        ]


def find_sizes(text: str) -> list[Operation]:
    """Products from a list of MxNxK, separated by commas. Raises ValueError for other entries, or unless 32 divides N, and 8 M and K."""
    found = [size for _, size in find_operations(text) if size.operator == "MatMul"]
    wrong = [size.name for size in found if any(length % by for length, by in zip(_lengths(size), (8, 32, 8), strict=True))]
    if wrong or not found:
        raise ValueError(f"--sizes: expected products MxNxK of multiples of 8, N of 32, found {', '.join(wrong) or text}")
    return found


def _lengths(size: Operation) -> tuple[int, int, int]:
    """M, N and K of a product."""
    (m, k), (_, n), _ = size.shapes
    return m, n, k


def measure_steps(size: Operation, threads: int, rounds: int, seed: int, progress: Progress) -> Measured:
    """Measures all steps on a product in turns. Raises ValueError if the result of a step differs from numpy."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(shape, np.float32) for shape in size.shapes[:2])
    m, n, k = _lengths(size)
    bias = rng.standard_normal(n, np.float32)
    wanted = np.maximum(a @ b + bias, 0)
    mod, results, turns = product(m, n, k), list[Timed](), list[Callable[[], list[float]]]()
    tile = register_tile(Target("cpu"))
    for step in (*STEPS, None):
        name = "built-in schedule" if step is None else step.__name__
        progress(f"{size.name}: compiling {name}")
        start = time.perf_counter()
        schedule, tuning = (None, None) if step is None else (schedule_after(step, tile), decisions(step, m, k, tile))
        kernel = compile_kernel(mod, params={1: b}, num_threads=threads, schedule=schedule, tuning=tuning)
        results.append(Timed(name, time.perf_counter() - start))
        if not compare({"D": np.asarray(kernel(a, bias))}, {"D": wanted}, "f32").agrees:
            raise ValueError(f"{size.name}: {name}: expected max(A B + bias, 0) within the tolerances for f32, found something else")
        turns.append(functools.partial(turn, functools.partial(kernel, a, bias)))
    if not ENGINES[REFERENCE].is_installed:
        return _take_turns(Measured(size, results), turns, threads, rounds, progress)
    with TemporaryDirectory(prefix="relayc-bench-") as folder:
        path = Path(folder) / "product.onnx"
        onnx.save(model_of(size, seed), path)
        with EngineProcess(job_of(make_case(size.name, path, {}, seed), REFERENCE, threads, "f32")) as process:
            process.load()
            results.append(Timed(f"{ENGINES[REFERENCE].title}, MatMul alone"))
            turns.append(lambda: process.measure(None))
            return _take_turns(Measured(size, results), turns, threads, rounds, progress)


def _take_turns(found: Measured, turns: Sequence[Callable[[], list[float]]], threads: int, rounds: int, progress: Progress) -> Measured:
    multiply_add, flops = peak_kernel(threads)
    for i in range(rounds):
        progress(f"{found.size.name}: round {i + 1} of {rounds}")
        for result, turn in zip(found.results, turns, strict=True):
            with Team(threads):
                result.peaks.append(flops / min(timed(multiply_add) for _ in range(3)) / 1e9)
            result.rounds.append(turn())
    return found


def turn(call: Callable[[], Any]) -> list[float]:
    """Seconds of calls, after one call that is not counted; if that call takes the whole time, its seconds only."""
    first = timed(call)
    return [timed(call) for _ in range(min(1000, int(SECONDS / first)))] or [first]


def steps_table(measured: Sequence[Measured], threads: int) -> Table:
    """One line per product and step."""
    columns = {name: NUMBER for name in ("ms", "GFLOP/s", "of peak", "compile s")}
    table = make_table(f"steps of docs/schedules.md, {threads_text(threads)}, f32", **{"m x n x k": {}, "": NUMBER, "step": {}}, **columns)
    for one in measured:
        for i, result in enumerate(one.results):
            rate = one.size.flops / result.seconds / 1e9
            table.add_row(
                one.size.name if i == 0 else "",
                str(i) if i < len(STEPS) else "",
                result.name,
                f"{result.seconds * 1e3:.2f}",
                f"{rate:.1f}",
                f"{result.share(one.size.flops):.0%}",
                f"{result.compile_seconds:.2f}" if result.compile_seconds else "",
                end_section=i == len(one.results) - 1,
            )
    return table
