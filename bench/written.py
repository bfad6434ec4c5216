"""`bench written`: kernels by schedules that are written with primitives, next to the built-in schedules of the same kernels."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from relayc.bench.latency import threads_text
from relayc.bench.measure import Progress
from relayc.bench.schedules import Timed, turn
from relayc.bench.written_kernels import Written
from relayc.pipelines.driver.compile_kernel import compile_kernel
from relayc.tools.tables import NUMBER, make_table


@dataclass(frozen=True)
class Compared:
    """A kernel by its two schedules.

    Attributes:
      strategy: the built-in one, by name.
    """

    kernel: Written
    strategy: str
    built_in: Timed
    written: Timed

    @property
    def ratio(self) -> float:
        """Ratio of the time of the written schedule to the built-in schedule."""
        return self.written.seconds / self.built_in.seconds

    def as_data(self) -> dict[str, Any]:
        """One record, as plain data."""
        return {
            "kernel": self.kernel.name,
            "dtype": self.kernel.dtype,
            "strategy": self.strategy,
            "built_in_seconds": self.built_in.seconds,
            "written_seconds": self.written.seconds,
            "built_in_compile_seconds": self.built_in.compile_seconds,
            "written_compile_seconds": self.written.compile_seconds,
        }


def measure_written(kernels: Sequence[Written], threads: int, rounds: int, seed: int, progress: Progress) -> list[Compared]:
    """Measures kernels by both schedules in turns. Raises ValueError if a result differs from numpy."""
    found = []
    for kernel in kernels:
        arrays = kernel.arrays(seed)
        expected = kernel.reference(*(a.astype(np.float64) for a in arrays))
        given = [a for i, a in enumerate(arrays) if i not in kernel.parameters]
        results, turns, strategy = list[Timed](), list[Callable[[], list[float]]](), ""
        for name, schedule in (("built-in", None), ("written", kernel.schedule)):
            progress(f"{kernel.name}: compiling {name}")
            start = time.perf_counter()
            made = compile_kernel(kernel.module(), params={i: arrays[i] for i in kernel.parameters}, num_threads=threads, schedule=schedule)
            results.append(Timed(name, time.perf_counter() - start))
            strategy = strategy or made.info.schedule.split()[0]
            # Sums of f32 of some hundreds of numbers of about 1, in any order.
            if not np.allclose(np.asarray(made(*given)), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()):
                raise ValueError(f"{kernel.name}: {name}: expected what numpy computes, found something else")
            turns.append(functools.partial(turn, functools.partial(made, *given)))
        for i in range(rounds):
            progress(f"{kernel.name}: round {i + 1} of {rounds}")
            for result, one in zip(results, turns, strict=True):
                result.rounds.append(one())
        found.append(Compared(kernel, strategy, *results))
    return found


def written_table(compared: Sequence[Compared], threads: int) -> Table:
    """One line per kernel."""
    columns = ("built-in us", "written us", "ratio", "GFLOP/s", "compile s", "written")
    table = make_table(
        f"schedules written with primitives, {threads_text(threads)}", kernel={}, dtype={}, strategy={}, **dict.fromkeys(columns, NUMBER)
    )
    for one in compared:
        rate = one.kernel.flops / one.written.seconds / 1e9
        table.add_row(
            one.kernel.name,
            one.kernel.dtype,
            one.strategy,
            f"{one.built_in.seconds * 1e6:.1f}",
            f"{one.written.seconds * 1e6:.1f}",
            f"{one.ratio:.2f}",
            f"{rate:.1f}" if one.kernel.flops else "",
            f"{one.built_in.compile_seconds:.2f}",
            f"{one.written.compile_seconds:.2f}",
        )
    return table
