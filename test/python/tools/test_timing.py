"""Timing in turns: what is decided from which times, by a clock that the calls advance."""

from fractions import Fraction

import numpy as np
import pytest

from relayc.tools.timing import FASTER, SAME, SLOWER, UNCLEAR, Comparison, compare_rounds, compare_times, median_interval, time_in_turns


class Clock:
    """A clock that stands still except for what calls take."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def call(self, draw):
        def run():
            self.now += draw()

        return run


def compared(base, other, seconds=100.0, **options):
    clock = Clock()
    return compare_times(clock.call(base), clock.call(other), seconds, clock=clock, **options), clock.now


@pytest.mark.parametrize(
    ("other", "verdict"), [(0.8, FASTER), (1.3, SLOWER), (1.0, SAME), (0.99, SAME)], ids=["faster", "slower", "equal", "not worth it"]
)
def test_a_steady_difference_is_decided_in_the_fewest_rounds(other, verdict):
    found, _ = compared(lambda: 0.01, lambda: 0.01 * other)
    assert (found.verdict, found.rounds) == (verdict, 8)
    assert found.ratio == pytest.approx(1 / other) and found.base_seconds == pytest.approx(0.01)


def test_noise_takes_more_rounds():
    rng = np.random.default_rng(0)
    found, _ = compared(lambda: 0.01 * rng.uniform(0.8, 1.6), lambda: 0.01 * rng.uniform(0.7, 1.3))
    assert found.verdict == FASTER and found.rounds > 8 and 1 < found.low <= found.ratio <= found.high


def test_what_noise_hides_is_unclear():
    rng = np.random.default_rng(1)
    found, _ = compared(lambda: 0.01 * rng.uniform(0.5, 2), lambda: 0.01 * rng.uniform(0.5, 2))
    assert found.verdict == UNCLEAR and found.rounds == 128


def test_time_runs_out():
    found, taken = compared(lambda: 1.0, lambda: 0.5, 5.0)
    assert found.verdict == UNCLEAR and found.low == 0 and found.high == float("inf") and taken < 8
    assert found.as_data()["low"] is None and found.as_data()["high"] is None
    assert compared(lambda: 1.0, lambda: 0.5, 0.0)[0].rounds == 1


def test_it_ends_where_what_is_found_is_enough():
    rng = np.random.default_rng(1)
    noise = lambda: 0.01 * rng.uniform(0.5, 2)  # noqa: E731
    assert compared(noise, noise, enough=lambda found: True)[0].rounds == 4


def test_a_spike_in_one_round_changes_nothing():
    times = iter([0.01] * 5 + [5.0] + [0.01] * 100)
    found, _ = compared(lambda: 0.01, lambda: next(times))
    assert found.verdict == SAME or found.rounds == 8


def test_turns_of_both_have_as_many_calls():
    counts = {"short": 0, "long": 0}
    clock = Clock()

    def call(name, seconds):
        def run():
            clock.now += seconds
            counts[name] += 1

        return run

    compare_times(call("short", 0.0004), call("long", 0.004), 10.0, clock=clock)
    assert counts["short"] == counts["long"] > 8 * 13  # 13 short calls fill a turn of 5 ms


def test_the_order_is_the_other_one_in_every_second_round():
    clock, order = Clock(), []

    def call(name):
        def run():
            clock.now += 1.0
            order.append(name)

        return run

    time_in_turns((call("a"), call("b")), 100.0, clock=clock)
    assert "".join(order[-16:]) == "abba" * 4


def test_by_item():
    found = Comparison(1.0, 2.0, 0.5, 0.45, 0.55, 8).by_item(4)
    assert (found.ratio, found.low, found.high, found.verdict) == (2.0, 1.8, 2.2, FASTER)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "verdict"),
    [
        (1.02, 1.001, 1.1, FASTER),
        (1.02, 1.0, 1.03, SAME),
        (1.019, 1.001, 1.1, UNCLEAR),
        (0.98, 0.9, 0.999, SLOWER),
        (0.98, 0.97, 1.0, SAME),
        (0.981, 0.9, 0.999, UNCLEAR),
        (1.0, 0.961, 1.039, SAME),
        (1.0, 0.96, 1.0, UNCLEAR),
        (1.0, 1.0, 1.04, UNCLEAR),
        (1.5, 0.0, float("inf"), UNCLEAR),
    ],
)
def test_limits_of_verdicts(ratio, low, high, verdict):
    assert Comparison(1.0, 1 / ratio, ratio, low, high, 8).verdict == verdict


@pytest.mark.parametrize(("seconds", "calls"), [(0.1, 1), (0.0625, 3), (2**-9, 3), (2**-10, 6), (2**-11, 11)])
def test_calls_of_a_turn(seconds, calls):
    """The first call of four is for memory, the least of the others says how long they take. The time ends with the first turn."""
    clock, counts = Clock(), [0]

    def run():
        counts[0] += 1
        clock.now += Fraction(seconds) * (4 if counts[0] in (1, 3) else 1)

    time_in_turns((run,), Fraction(seconds) * (4 + 1 + 4 + 1 + calls), clock=clock)
    assert counts[0] == 4 + calls


@pytest.mark.parametrize(("count", "cut"), [(0, None), (1, None), (7, None), (8, 0), (9, 0), (11, 0), (12, 1), (16, 2)])
def test_the_interval_of_few_values(count, cut):
    expected = (0.0, float("inf")) if cut is None else (float(cut), float(count - 1 - cut))
    assert median_interval([float(i) for i in range(count)]) == expected


def test_rounds_that_were_not_in_turns_have_an_interval_each():
    base, other = [float(i) for i in range(1, 11)], [float(2 * i) for i in range(1, 13)]
    assert compare_rounds(base, other, in_turns=False) == Comparison(5.5, 13.0, 5.5 / 13, 1 / 22, 10 / 4, 10)
    assert compare_rounds(base[:3], other, in_turns=False).low == 0
    assert compare_rounds(base, other[:3], in_turns=False).high == float("inf")
    assert compare_rounds(base, base) == Comparison(5.5, 5.5, 1.0, 1.0, 1.0, 10)


@pytest.mark.parametrize("count", [8, 16, 40])
def test_the_interval_holds_the_median_as_often_as_they_should(count):
    rng = np.random.default_rng(count)
    draws = np.sort(rng.exponential(size=(4000, count)), axis=1)
    held = [low <= np.log(2) <= high for low, high in map(median_interval, draws.tolist())]
    assert 0.985 < np.mean(held) <= 1  # 99 %, and four standard deviations of that many draws
    if count > 8:  # the narrowest interval of which that is true
        assert np.mean([row[median_index(row)] <= np.log(2) <= row[-1 - median_index(row)] for row in draws.tolist()]) < 0.99


def median_index(row):
    """The position one further inside than that of the lower bound."""
    return row.index(median_interval(row)[0]) + 1
