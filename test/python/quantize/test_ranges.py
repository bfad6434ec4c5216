"""Ranges of activations against the same in plain Python, with few bins."""

import math

import numpy as np
import pytest

from relayc import calibration
from relayc.calibration import Histogram, range_of

BINS, LEVELS = 64, 8
RNG = np.random.default_rng(3)
VALUES = {
    "an outlier": np.r_[RNG.standard_normal(4000), 9],
    "both signs": np.r_[-RNG.exponential(1, 3000), -20, RNG.exponential(0.3, 500)],
    "positive": np.r_[np.abs(RNG.standard_normal(2000)), 7, 8],
    "negative": -np.r_[np.abs(RNG.standard_normal(2000)), 7, 8],
    "few": np.r_[RNG.uniform(-1, 3, 900), 17],
}


@pytest.fixture
def few_bins(monkeypatch):
    monkeypatch.setattr(calibration, "BINS", BINS)


def divergence(counts, first, last):
    """Of what is counted, with what is outside at the ends, from itself with one number for all bins of a level that have any."""
    inside = [int(count) for count in counts[first:last]]
    p, q = list(inside), []
    p[0] += int(counts[:first].sum())
    p[-1] += int(counts[last:].sum())
    for i in range(LEVELS):
        level = inside[len(inside) * i // LEVELS : len(inside) * (i + 1) // LEVELS]
        used = [count for count in level if count]
        q += [sum(used) / len(used) if count else 0 for count in level]
    return sum(n / sum(p) * math.log(n / sum(p) / max(m / max(sum(q), 1), 1e-9)) for n, m in zip(p, q, strict=True) if n)


@pytest.mark.parametrize("name", VALUES)
def test_the_least_divergence(name, few_bins):
    found = Histogram()
    found.add(VALUES[name].astype(np.float32))
    width, least, expected = 2 * found.reach / BINS, math.inf, (found.low, found.high)
    for share in np.geomspace(1, 0.002, 120):
        end = share * max(-found.low, found.high)
        first = int((max(-end, found.low) + found.reach) / width)
        last = min(math.ceil((min(end, found.high) + found.reach) / width), BINS)
        if last - first < LEVELS:
            break
        if (off := divergence(found.counts, first, last)) < least:
            least, expected = off, (max(first * width - found.reach, found.low), min(last * width - found.reach, found.high))
    assert range_of(found, "entropy", levels=LEVELS) == pytest.approx(expected)
    assert expected != (found.low, found.high)


@pytest.mark.parametrize("name", VALUES)
def test_the_least_square(name, few_bins):
    """No other share of an end gives less."""
    found = Histogram()
    found.add(VALUES[name].astype(np.float32))
    width = 2 * found.reach / BINS

    def error(low, high):
        total = 0.0
        for i, count in enumerate(found.counts):
            off = max(low - ((i + 0.5) * width - found.reach), (i + 0.5) * width - found.reach - high, 0)
            total += count * (off**2 if off else ((high - low) / LEVELS) ** 2 / 12)
        return total

    low, high = range_of(found, "mse", levels=LEVELS)
    shares = np.geomspace(1, 0.002, 120)
    assert error(low, high) <= min(error(low, found.high * share) for share in shares) * (1 + 1e-9)
    assert error(low, high) <= min(error(found.low * share, high) for share in shares) * (1 + 1e-9)
