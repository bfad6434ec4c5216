"""Two ways to compute the same, timed in turns until their difference is beyond the noise."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

FASTER, SLOWER, SAME, UNCLEAR = "faster", "slower", "same", "unclear"
WORTH = 0.02
"""The least gain that is worth a change: 2 %."""
_ERROR = 0.01
"""Probability that an interval misses the median. Intervals are looked at after 4, 8, 16, 32, ... rounds, so that few looks add theirs;
those of 4 rounds have no ends."""
_FEWEST_ROUNDS = 4
_MOST_ROUNDS = 128
_TURN_SECONDS = 0.005
_FEWEST_CALLS = 3
_LONG_SECONDS = 0.1
"""Calls of a turn take 5 ms together at least, and are three at least unless they are long: the median call stands for the turn."""


@dataclass(frozen=True)
class Comparison:
    """Two ways to compute the same, timed.

    Attributes:
      base_seconds, seconds: median call of the first way, and of the second.
      ratio: median over the rounds of the time of the first way in that of the second: above 1, the second is faster.
      low, high: the interval that the true median ratio is in with a probability of 99 %; 0 and infinity while there are too few rounds.
      rounds: how often each had its turn.
    """

    base_seconds: float
    seconds: float
    ratio: float
    low: float
    high: float
    rounds: int

    @property
    def verdict(self) -> str:
        """What the second way is: FASTER or SLOWER beyond the noise and by WORTH at least, the SAME, or UNCLEAR."""
        if self.low > 1 and self.ratio >= 1 + WORTH:
            return FASTER
        if self.high < 1 and self.ratio <= 1 - WORTH:
            return SLOWER
        return SAME if self.low > 1 - 2 * WORTH and self.high < 1 + 2 * WORTH else UNCLEAR

    def by_item(self, factor: float) -> "Comparison":
        """The comparison per item, if a call of the second way has `factor` times as many; times remain per call."""
        return replace(self, ratio=self.ratio * factor, low=self.low * factor, high=self.high * factor)

    def as_data(self) -> dict[str, Any]:
        """The comparison as plain data; an end of the interval that is not known is None."""
        high = self.high if math.isfinite(self.high) else None
        return {**asdict(self), "low": self.low or None, "high": high, "verdict": self.verdict}


def is_decided(found: Comparison) -> bool:
    """Whether the difference of two ways is known."""
    return found.verdict != UNCLEAR


def compare_times(
    base: Callable[[], Any],
    other: Callable[[], Any],
    seconds: float,
    enough: Callable[[Comparison], bool] = is_decided,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Times two ways alternately, until the comparison satisfies `enough`, or for `seconds`."""
    first, second = time_in_turns((base, other), seconds, enough, clock)
    return compare_rounds(first, second)


def time_in_turns(
    calls: Sequence[Callable[[], Any]],
    seconds: float,
    enough: Callable[[Comparison], bool] = is_decided,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Seconds of some ways to compute the same, at most two: the median call of each turn.

    In every second round the order is the other one. It ends as soon as what is found of two is `enough`, or after `seconds`; each has one
    turn at least.
    """
    deadline = clock() + seconds
    for call in calls:
        call()  # the first call allocates
    # As many calls for all: the system interrupts the longer turn more often.
    turn = max(_calls_of_a_turn(call, clock) for call in calls)
    times: list[list[float]] = [[] for _ in calls]
    rounds = 0
    while rounds == 0 or (clock() < deadline and rounds < _MOST_ROUNDS):
        for i in range(len(calls))[:: -1 if rounds % 2 else 1]:
            times[i].append(_turn(calls[i], turn, clock))
        rounds += 1
        if rounds >= _FEWEST_ROUNDS and rounds & (rounds - 1) == 0 and (len(calls) < 2 or enough(compare_rounds(times[0], times[1]))):
            break
    return times


def _calls_of_a_turn(call: Callable[[], Any], clock: Callable[[], float]) -> int:
    seconds = min(_turn(call, 1, clock) for _ in range(3))
    fewest = _FEWEST_CALLS if seconds < _LONG_SECONDS else 1
    return max(fewest, math.ceil(_TURN_SECONDS / seconds))


def _turn(call: Callable[[], Any], calls: int, clock: Callable[[], float]) -> float:
    """The median call of a turn."""
    seconds = []
    for _ in range(calls):
        start = clock()
        call()
        seconds.append(clock() - start)
    return max(statistics.median(seconds), 1e-9)


def compare_rounds(base: Sequence[float], other: Sequence[float], in_turns: bool = True) -> Comparison:
    """The times of two ways, by round.

    Args:
      in_turns: whether a round of one came with the round of the other. Else the interval is that of medians at two different times,
        without what changed of the machine from one to the other.
    """
    seconds = statistics.median(base), statistics.median(other)
    if in_turns:
        ratios = sorted(a / b for a, b in zip(base, other, strict=True))
        return Comparison(*seconds, statistics.median(ratios), *median_interval(ratios), len(ratios))
    (low, high), (least, most) = (median_interval(sorted(times)) for times in (base, other))
    return Comparison(*seconds, seconds[0] / seconds[1], low / most, high / least if least else math.inf, min(len(base), len(other)))


def median_interval(values: Sequence[float], error: float = _ERROR) -> tuple[float, float]:
    """Two of some sorted values, between which the median of their distribution lies but for a probability of `error`, whatever the
    distribution (the sign test); 0 and infinity where there are too few values."""
    n, outside, k = len(values), 0.0, 0
    while (more := outside + 2 * math.comb(n, k) / 2**n) <= error:
        outside, k = more, k + 1
    return (values[k - 1], values[n - k]) if k else (0.0, math.inf)
