"""`bench metaschedule`: relayc's tuner and TVM's MetaSchedule tune the same tensor expressions, with the same number of trials."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import relayc
from relayc import te
from relayc.bench.latency import threads_text
from relayc.bench.machine import describe, warn_if_busy
from relayc.bench.measure import Progress
from relayc.bench.metaschedule_kernels import KERNELS, Kernel
from relayc.bench.options import Commands, add_command, add_turns, parse_names
from relayc.bench.peer import Caller, clock_of
from relayc.bench.peer_process import Interpreter, PeerProcess
from relayc.bench.report import save
from relayc.bench.worker import EngineError
from relayc.tools.commands import parse_count
from relayc.tools.tables import NUMBER, make_table

MODULES = ("peer", "metaschedule_kernels", "metaschedule_peer")
_NEAR = 1.02
"""A schedule is found once the best time so far is at most this much above the best of the search: what `relayc tune` takes for noise."""


@dataclass
class Side:
    """A way to compile a kernel.

    Attributes:
      found: seconds until the search had found its best schedule; search: seconds of the whole search.
      rounds: seconds of every call, by round.
    """

    found: float = 0.0
    search: float = 0.0
    rounds: list[list[float]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Median of the calls of all rounds."""
        return median(s for calls in self.rounds for s in calls)


@dataclass
class Tuned:
    """A kernel by relayc's default schedule, by relayc's tuner and by MetaSchedule."""

    name: str
    strategy: str
    sides: dict[str, Side]

    def as_data(self) -> dict[str, Any]:
        """One record, as plain data."""
        return {"name": self.name, "strategy": self.strategy, **{name: asdict(side) for name, side in self.sides.items()}}


class _Own(Caller):
    """A kernel compiled by relayc in this process, measured like the kernel of the other process."""

    def __init__(self, kernel: Kernel, arrays: Sequence[np.ndarray], threads: int) -> None:
        super().__init__()
        self._clock = clock_of(threads)
        self.kernel = relayc.compile_kernel(te.create_prim_func(kernel.define(te)), num_threads=threads)
        self._call = lambda: self.kernel(*arrays)


def measure_tuners(name: str, tvm: Interpreter, trials: int, threads: int, rounds: int, seed: int, progress: Progress) -> Tuned:
    """Tunes a kernel by both, then measures what was found in turns. Raises ValueError if a result differs from numpy, EngineError if TVM
    fails."""
    kernel = KERNELS[name]
    arrays = kernel.arrays(seed)
    expected = kernel.reference(*(a.astype(np.float64) for a in arrays))
    sides = {side: Side() for side in ("default", "relayc", "tvm")}
    with PeerProcess(tvm, MODULES) as process, TemporaryDirectory() as folder:
        progress(f"{name}: relayc")
        own = {"default": _Own(kernel, arrays, threads)}
        own["relayc"] = _tuned(kernel, arrays, trials, threads, seed, Path(folder) / "tuning.sqlite", sides["relayc"])
        progress(f"{name}: TVM {process.start()['version']}")
        answer = process.request("tune", kernel=name, trials=trials, threads=threads, seed=seed)
        sides["tvm"].search, sides["tvm"].found = answer["seconds"], _found([tuple(time) for time in answer["times"]])
        callers: dict[str, _Own | PeerProcess] = {**own, "tvm": process}
        for side, one in callers.items():
            # Sums of f32 of some hundreds of numbers of about 1, in any order.
            if not np.allclose(one.outputs()[0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()):
                raise ValueError(f"{side}: expected what numpy computes, found something else")
        for i in range(rounds):
            progress(f"{name}: round {i + 1} of {rounds}")
            for side, one in callers.items():
                sides[side].rounds.append(one.measure(None))
    return Tuned(name, own["relayc"].kernel.info.schedule.split()[0], sides)


def _tuned(kernel: Kernel, arrays: Sequence[np.ndarray], trials: int, threads: int, seed: int, database: Path, side: Side) -> _Own:
    """The kernel with what relayc's tuner finds."""
    times: list[tuple[float, float | None]] = []

    def report(status: relayc.tune.Status) -> None:
        times.append((status.seconds[0], 1 / status.gain))

    function = te.create_prim_func(kernel.define(te))
    tuning = relayc.tune.kernel(function, trials=trials, num_threads=threads, database=database, seed=seed, report=report)
    side.search = tuning.seconds
    side.found = _found([*times, (side.search, 1 / tuning.gains[-1])]) if tuning.gains else 0.0
    with relayc.tune.ApplyHistoryBest(database):
        return _Own(kernel, arrays, threads)


def _found(times: Sequence[tuple[float, float | None]]) -> float:
    """When the best time so far came near the best of all, given the moments and the times of measurements."""
    known = [(at, seconds) for at, seconds in times if seconds is not None]
    best = min(seconds for _, seconds in known)
    return next(at for at, seconds in known if seconds <= _NEAR * best)


def tuners_table(tuned: Sequence[Tuned], trials: int, threads: int) -> Table:
    """One line per kernel: times of a call, and of the search until its best schedule; ratios below 1 are in favour of relayc."""
    times = ("default ms", "tuned ms", "TVM ms", "default / TVM", "tuned / TVM", "GFLOP/s")
    columns = (*times, "found s", "TVM found s", "ratio", "search s", "TVM search s")
    table = make_table(f"{trials} trials, {threads_text(threads)}", kernel={}, strategy={}, **dict.fromkeys(columns, NUMBER))
    for one in tuned:
        default, own, other = (one.sides[side] for side in ("default", "relayc", "tvm"))
        rate = KERNELS[one.name].flops / own.seconds / 1e9
        table.add_row(
            one.name,
            one.strategy,
            *(f"{side.seconds * 1e3:.3f}" for side in (default, own, other)),
            f"{default.seconds / other.seconds:.2f}",
            f"{own.seconds / other.seconds:.2f}",
            f"{rate:.0f}" if rate else "",
            f"{own.found:.1f}",
            f"{other.found:.1f}",
            f"{own.found / other.found:.2f}",
            f"{own.search:.0f}",
            f"{other.search:.0f}",
        )
    return table


def add_parser(commands: Commands) -> None:
    """Adds the command to the command line."""
    command = add_command(commands, "metaschedule", run, "kernels by relayc's tuner and by TVM's MetaSchedule, with equal trials")
    command.add_argument("--tvm", required=True, metavar="PYTHON", help="interpreter of an environment in which apache-tvm is installed")
    listed = f"of {', '.join(KERNELS)}, separated by commas (default all)"
    command.add_argument("--kernels", type=parse_names("kernels", KERNELS), default=tuple(KERNELS), metavar="LIST", help=listed)
    command.add_argument("--trials", type=parse_count, default=64, metavar="N", help="trials of each kernel by each tuner (default 64)")
    add_turns(command)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """`bench metaschedule`."""
    warn_if_busy()
    tvm = Interpreter.other(arguments.tvm, "--tvm", "apache-tvm")
    settings = arguments.trials, arguments.threads, arguments.rounds, arguments.seed
    found, errors = [], {}
    with console.status("") as status:
        for name in arguments.kernels:
            try:
                found.append(measure_tuners(name, tvm, *settings, status.update))
            except (EngineError, ValueError) as error:  # the other kernels are measured
                errors[name] = str(error)
    if found:
        console.print(tuners_table(found, arguments.trials, arguments.threads))
    for name, text in errors.items():
        print(f"relayc.bench: error: {arguments.tvm}: {name}: {text}", file=sys.stderr)
    save(arguments, describe(), results=[one.as_data() for one in found], errors=errors)
    return 1 if errors else 0
