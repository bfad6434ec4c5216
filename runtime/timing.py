"""How long runs take, as TVM's time evaluators measure it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median, pstdev
from typing import Any


@dataclass(frozen=True)
class BenchmarkResult:
    """Times of runs.

    Attributes:
      results: seconds of a run, the mean of each repetition.
    """

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Seconds of a run: the mean of the repetitions."""
        return mean(self.results)

    @property
    def median(self) -> float:
        """Seconds: the median of the repetitions."""
        return median(self.results)

    @property
    def min(self) -> float:
        """Seconds: the fastest repetition."""
        return min(self.results)

    @property
    def max(self) -> float:
        """Seconds: the slowest repetition."""
        return max(self.results)

    @property
    def std(self) -> float:
        """Seconds: the standard deviation of the repetitions."""
        return pstdev(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        heads = "".join(f"{f'{name} (ms)':>14}" for name in names)
        return f"Execution time summary:\n{heads}\n" + "".join(f"{getattr(self, name) * 1e3:>14.4f}" for name in names)


def timed(
    run: Callable[[], object],
    number: int,
    repeat: int,
    min_repeat_ms: float | None = None,
    cooldown_interval_ms: float = 0.0,
    repeats_to_cooldown: int = 1,
    finish: Callable[[], object] = lambda: None,
) -> BenchmarkResult:
    """Seconds of a run.

    Args:
      number: of how many runs each of the times is the mean.
      repeat: how many times are taken.
      min_repeat_ms: how long the runs of a time take together at least: more are made.
      cooldown_interval_ms: a rest after every `repeats_to_cooldown` of the times.
      finish: waits for what runs have begun; part of each of the times.

    Raises ValueError for counts below 1.
    """
    if min(number, repeat, repeats_to_cooldown) < 1:
        found = f"{number}, {repeat} and {repeats_to_cooldown}"
        raise ValueError(f"expected number, repeat and repeats_to_cooldown of 1 or more, found {found}")
    least = (min_repeat_ms or 0.0) / 1e3
    results: list[float] = []
    for i in range(repeat):
        if cooldown_interval_ms and i and i % repeats_to_cooldown == 0:
            time.sleep(cooldown_interval_ms / 1e3)
        while True:
            start = time.perf_counter()
            for _ in range(number):
                run()
            finish()
            taken = time.perf_counter() - start
            if taken >= least:
                break
            number = max(number + 1, int(number * min(10.0, least / max(taken, 1e-9))))
        results.append(taken / number)
    return BenchmarkResult(tuple(results))


def evaluator(
    function: Callable[..., object], number: int = 10, repeat: int = 1, finish: Callable[[], object] = lambda: None, **options: Any
) -> Callable[..., BenchmarkResult]:
    """Creates a function that times `function` on given arguments, after a warm-up run.

    Args:
      number, repeat, finish, options: of `timed`.
    """

    def evaluate(*arguments: Any, **named: Any) -> BenchmarkResult:
        function(*arguments, **named)
        finish()
        return timed(lambda: function(*arguments, **named), number, repeat, finish=finish, **options)

    return evaluate
