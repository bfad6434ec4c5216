"""`bench dynamic --random`: calls whose sizes change every time, against calls at the same sizes repeated."""

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.table import Table

from relayc.bench.dynamic import VARIANTS, job_at
from relayc.bench.latency import MIB, mean_and_worst, ratio_text, threads_text
from relayc.bench.measure import Progress, Settings
from relayc.bench.sized_worker import SizedServer
from relayc.bench.sizes import DynamicModel, Grid, points_once, sizes_text
from relayc.bench.worker import EngineProcess, errors_of
from relayc.runtime import TensorSpec
from relayc.tools.inputs import random_inputs
from relayc.tools.tables import NUMBER, make_table

CALLERS = 4
"""Threads that call at the same time."""
SAMPLES = 12
"""Sizes whose times are compared."""
SHARE = 4
"""One in this many random calls is at a compared size, if there are enough calls."""
REPEATED, WARMING = 7, 2
"""Calls at a size in a row, and how many of them are not counted."""
LARGEST = 10
"""Calls of each caller at the largest sizes, after which the process has the memory for these sizes."""


@dataclass
class RandomResult:
    """A variant on calls at random sizes.

    Attributes:
      model, engine: names of the model and of the variant.
      calls: number of calls in order, and again from several threads.
      sizes: number of different sizes.
      error: why numbers are missing.
      changing, repeated: seconds of calls at each compared size: among the random calls, and in a row.
      seconds: of all random calls, by "in order" and "callers".
      memory: memory of the process (see relayc.bench.worker.memory): "loaded"; "largest" and "callers largest" after calls at the largest
        sizes only, in order and from several threads; "random" and "callers random" after the random calls.
    """

    model: str
    engine: str
    calls: int
    sizes: int
    error: str | None = None
    changing: dict[str, list[float]] = field(default_factory=dict)
    repeated: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def ratios(self) -> list[tuple[float, str]]:
        """Median time of calls at a size among random calls relative to calls in a row, and the size."""
        both = [(text, self.changing[text], self.repeated[text]) for text in self.repeated if self.changing.get(text)]
        return [(statistics.median(mine) / statistics.median(theirs), text) for text, mine, theirs in both if theirs]

    def memory_ratio(self, prefix: str = "") -> float | None:
        """Resident memory after random sizes relative to memory after the largest sizes only."""
        random, largest = self.memory.get(f"{prefix}random"), self.memory.get(f"{prefix}largest")
        return random["resident"] / largest["resident"] if random and largest else None

    def as_data(self) -> dict[str, Any]:
        ratios = mean_and_worst(self.ratios) if self.ratios else {}
        told = {name: ratios.get(name) for name in ("geometric_mean", "worst")}
        memory = {"in order": self.memory_ratio(), "callers": self.memory_ratio("callers ")}
        return {**asdict(self), "time_ratio": {**told, "worst_sizes": ratios.get("worst_model")}, "memory_ratio": memory}


@dataclass(frozen=True)
class Plan:
    """Sizes of the calls: all random sizes, the sizes whose times are compared, and the largest sizes."""

    calls: list[dict[str, int]]
    samples: list[dict[str, int]]
    largest: list[dict[str, int]]


def make_plan(grids: Sequence[Grid], count: int, seed: int) -> Plan:
    """`count` random sizes within grids; the largest sizes of each grid are among them."""
    rng = np.random.default_rng(seed)
    largest = [grid.largest for grid in grids]
    samples = points_once(grids[i % len(grids)].draw(rng) for i in range(min(SAMPLES, max(1, count // SHARE))))
    fixed = [largest[i] for i in range(min(len(largest), count))]
    fixed += [samples[i % len(samples)] for i in range(min(count // SHARE, count - len(fixed)))]
    drawn = [grids[int(rng.integers(len(grids)))].draw(rng) for _ in range(count - len(fixed))]
    calls = [*fixed, *drawn]
    return Plan([calls[i] for i in rng.permutation(count)], samples, largest)


def measure_random(
    model: DynamicModel, grids: Sequence[Grid], settings: Settings, count: int, seed: int, progress: Progress
) -> list[RandomResult]:
    """Measures the symbolic variants of `settings.engines` on `count` calls at random sizes, in order and again from CALLERS threads.

    Of each variant one process has all random calls, and another only calls at the largest sizes and then in a row at some; they take
    turns, `settings.rounds` times.
    """
    plan = make_plan(grids, count, seed)
    different = len({tuple(sizes.items()) for sizes in plan.calls})
    results = [RandomResult(model.name, name, count, different) for name in settings.engines if VARIANTS[name].is_symbolic]
    with ExitStack() as stack:
        running: dict[str, tuple[EngineProcess, EngineProcess]] = {}
        for result in results:
            progress(f"{model.name}: {VARIANTS[result.engine].title} loads")
            with errors_of(result):
                running[result.engine] = _start(stack, model, result, plan, settings, seed)
        chunks = [plan.calls[i :: settings.rounds] for i in range(settings.rounds)]
        for turn, chunk in enumerate(chunks):
            for result in results:
                if result.error is None:
                    progress(f"{model.name}: round {turn + 1} of {settings.rounds}, {VARIANTS[result.engine].title}")
                    with errors_of(result):
                        _take_turn(*running[result.engine], result, chunk, plan.samples)
        for result in results:
            if result.error is None:
                progress(f"{model.name}: {CALLERS} callers, {VARIANTS[result.engine].title}")
                with errors_of(result):
                    _finish(*running[result.engine], result, plan)
    return results


def _start(
    stack: ExitStack, model: DynamicModel, result: RandomResult, plan: Plan, settings: Settings, seed: int
) -> tuple[EngineProcess, EngineProcess]:
    """The processes for sizes that change and for sizes that do not, the latter after calls at the largest sizes."""
    job = job_at(model.case(plan.samples[0], seed), result.engine, settings)
    changing, steady = (stack.enter_context(EngineProcess(job, SizedServer)) for _ in range(2))
    for process in (changing, steady):
        process.load()
        process.request("prepare", **flat_inputs(model, plan.largest, seed))
    result.memory["loaded"] = changing.memory()
    steady.request("calls", sizes=[sizes for sizes in plan.largest for _ in range(LARGEST)])
    result.memory["largest"] = steady.memory()
    return changing, steady


def flat_inputs(model: DynamicModel, largest: Sequence[Mapping[str, int]], seed: int) -> dict[str, Any]:
    """What `SizedServer.prepare` takes: the dimensions of each input, and random elements, as many as the largest sizes need."""
    counts = {value.name: max(math.prod(value.shape(sizes)) for sizes in largest) for value in model.inputs}
    inputs = random_inputs([TensorSpec(value.name, (counts[value.name],), value.dtype) for value in model.inputs], seed)
    return {"dims": {value.name: value.dims for value in model.inputs}, "inputs": inputs}


def _take_turn(
    changing: EngineProcess, steady: EngineProcess, result: RandomResult, chunk: Sequence[dict[str, int]], samples: Sequence[dict[str, int]]
) -> None:
    seconds, times = changing.request("calls", sizes=chunk)
    result.seconds["in order"] = result.seconds.get("in order", 0.0) + seconds
    for sizes, taken in zip(chunk, times, strict=True):
        if sizes in samples:
            result.changing.setdefault(sizes_text(sizes), []).append(taken)
    for sizes in samples:
        _, times = steady.request("calls", sizes=[sizes] * REPEATED)
        result.repeated.setdefault(sizes_text(sizes), []).extend(times[WARMING:])


def _finish(changing: EngineProcess, steady: EngineProcess, result: RandomResult, plan: Plan) -> None:
    """Enters the memory after all calls in order, then the calls from several threads and the memory after them."""
    result.memory["random"] = changing.memory()
    result.seconds["callers"], _ = changing.request("calls", sizes=plan.calls, callers=CALLERS)
    result.memory["callers random"] = changing.memory()
    steady.request("calls", sizes=[sizes for sizes in plan.largest for _ in range(LARGEST * CALLERS)], callers=CALLERS)
    result.memory["callers largest"] = steady.memory()


def random_table(results: Sequence[RandomResult], threads: int) -> Table:
    """One line per model and engine."""
    how = f"{threads_text(threads)}, in order and from {CALLERS} callers"
    title = f"random sizes, {how}; resident MiB after the largest sizes alone and after all"
    numbers = ("calls", "sizes", "ms a call", "/ repeated", "worst", "loaded", "largest", "random", "ratio")
    more = (f"{CALLERS}: ms a call", f"{CALLERS}: largest", f"{CALLERS}: random", f"{CALLERS}: ratio")
    table = make_table(title, model={}, engine={}, **{name: NUMBER for name in (*numbers, *more)})
    for result in results:
        head = [result.model, VARIANTS[result.engine].title, str(result.calls), str(result.sizes)]
        if result.error is not None:
            table.add_row(*head, "failed")
            continue
        ratios = mean_and_worst(result.ratios) if result.ratios else None
        resident = {name: f"{memory['resident'] / MIB:.0f}" for name, memory in result.memory.items()}
        each = {name: f"{seconds / result.calls * 1e3:.3f}" for name, seconds in result.seconds.items()}
        table.add_row(
            *head,
            each["in order"],
            *(("", "") if ratios is None else (ratio_text(ratios["geometric_mean"]), ratio_text(ratios["worst"]))),
            *(resident[name] for name in ("loaded", "largest", "random")),
            ratio_text(result.memory_ratio()),
            each["callers"],
            *(resident[name] for name in ("callers largest", "callers random")),
            ratio_text(result.memory_ratio("callers ")),
        )
    return table
