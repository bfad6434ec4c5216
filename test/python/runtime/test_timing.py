"""Times of runs by a clock that goes only where a test says."""

import pytest

from relayc.runtime import timing
from relayc.runtime.timing import BenchmarkResult, evaluator, timed


class Clock:
    """Time that passes in runs and rests."""

    def __init__(self):
        self.now, self.rests = 0.0, []

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.rests.append(seconds)

    def passing(self, *seconds):
        """A run that takes so long; the last of the times from then on."""
        times = list(seconds)

        def run():
            self.now += times.pop(0) if len(times) > 1 else times[0]

        return run


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(timing, "time", found)
    return found


def test_a_time_is_the_mean_of_some_runs(clock):
    assert timed(clock.passing(1, 3, 2, 6, 5), 2, 3).results == (2, 4, 5)
    assert timed(clock.passing(1), 2, 1, finish=clock.passing(4)).results == (3,)


def test_runs_go_on_until_they_take_long_enough(clock):
    """Ten times as many at most, and one more at least."""
    counts = []

    def counted(run):
        def one():
            counts[-1] += 1
            run()

        return one

    for seconds, least, number, expected in (
        (1.0, 8000, 2, [2, 8]),
        (1.0, 2000, 2, [2]),
        (1.0, 2001, 2, [2, 3]),
        (1 / 1024, 97.65625, 1, [1, 10, 100]),
        (1.0, 7500, 5, [5, 7, 8]),
        (0.0, None, 3, [3]),
    ):
        counts.clear()
        finish = lambda: counts.append(0)  # noqa: E731 (an argument, not a definition)
        finish()
        found = timed(counted(clock.passing(seconds)), number, 1, least, finish=finish)
        assert counts[:-1] == expected and found.results == pytest.approx((seconds,))


def test_rests_between_times(clock):
    run = clock.passing(1)
    for repeat, every, count in ((1, 1, 0), (4, 1, 3), (5, 2, 2), (6, 2, 2), (7, 3, 2)):
        clock.rests.clear()
        timed(run, 1, repeat, cooldown_interval_ms=250, repeats_to_cooldown=every)
        assert clock.rests == [0.25] * count
    clock.rests.clear()
    timed(run, 1, 3)
    assert clock.rests == []


@pytest.mark.parametrize("counts", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_counts_are_one_or_more(clock, counts):
    number, repeat, every = counts
    with pytest.raises(ValueError, match=f"expected number, repeat and .* of 1 or more, found {number}, {repeat} and {every}"):
        timed(clock.passing(1), number, repeat, repeats_to_cooldown=every)


def test_an_evaluator_runs_once_before_it_times(clock):
    calls, waits = [], []

    def function(*arguments, **named):
        calls.append((arguments, named))
        clock.now += 100 if len(calls) == 1 else 1

    found = evaluator(function, 2, 3, lambda: waits.append(len(calls)), cooldown_interval_ms=5)(1, x=2)
    assert found.results == (1, 1, 1) and calls == [((1,), {"x": 2})] * 7 and waits == [1, 3, 5, 7] and clock.rests == [0.005] * 2
    evaluator(function)()
    assert len(calls) == 7 + 11


def test_figures_of_times():
    found = BenchmarkResult((1e-3, 2e-3, 6e-3))
    assert (found.mean, found.median, found.min, found.max) == (3e-3, 2e-3, 1e-3, 6e-3)
    assert found.std == pytest.approx(((4 + 1 + 9) / 3) ** 0.5 * 1e-3)
    heads, row = str(found).splitlines()[1:]
    assert heads.split("  ")[-1].strip() == "std (ms)" and row.split() == ["3.0000", "2.0000", "6.0000", "1.0000", "2.1602"]
