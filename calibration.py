"""Ranges of activations: histograms over all samples in memory that does not grow with them, and the ranges that methods take from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

METHODS = ("minmax", "percentile", "entropy", "mse")
BINS = 1 << 14
_SHARES = np.geomspace(1, 0.002, 120)
"""What methods that try ranges try of the whole one."""


@dataclass(frozen=True)
class Steps:
    """Numbers q stand for (q - zero) * scale; `dtype` is that of q."""

    scale: np.float32
    zero: int
    dtype: str


class Histogram:
    """Counts of values in equal bins between -reach and reach. The reach doubles as values need it, when pairs of bins become one."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS, np.int64)
        self.reach = 0.0
        self.low = self.high = 0.0
        self.zeros = self.total = 0

    def add(self, values: np.ndarray) -> None:
        """Counts values, which are finite."""
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        zeros = values.size - int(np.count_nonzero(values))
        self.zeros += zeros
        self.total += values.size
        largest = max(-low, high)
        if largest == 0:
            return
        self.reach = self.reach or largest
        while self.reach < largest:
            merged = self.counts.reshape(-1, 2).sum(1)
            self.counts = np.pad(merged, BINS // 4)
            self.reach *= 2
        places = (values.reshape(-1) * np.float32(BINS / 2 / self.reach) + np.float32(BINS / 2)).astype(np.int32)
        self.counts += np.bincount(np.clip(places, 0, BINS - 1), minlength=BINS)
        self.counts[BINS // 2] -= zeros

    def centres(self) -> np.ndarray:
        """The middle of each bin. Zeros are in none."""
        return (np.arange(BINS) + 0.5 - BINS / 2) * (2 * self.reach / BINS)


# ---- methods --------------------------------------------------------------------------------------------------------------------------


def range_of(found: Histogram, method: str, percentile: float = 99.99, levels: int = 255) -> tuple[float, float]:
    """The range around 0 that a method gives to some values: all of them (minmax), a percentage of those above and below (percentile),
    with the least expected square of the error (mse), or the least Kullback-Leibler divergence (entropy)."""
    if not found.counts.any() or method == "minmax":
        return found.low, found.high
    if method == "percentile":
        return _percentile(found, percentile)
    return _entropy(found, levels) if method == "entropy" else _least_square(found, levels)


def _percentile(found: Histogram, percentile: float) -> tuple[float, float]:
    counts = found.counts.copy()
    counts[BINS // 2] += found.zeros
    below = np.cumsum(counts)
    width = 2 * found.reach / BINS
    outside = (100 - percentile) / 100 * found.total
    first, last = np.searchsorted(below, outside, "right"), np.searchsorted(below, found.total - outside)
    low, high = first * width - found.reach, (last + 1) * width - found.reach
    return min(max(low, found.low), 0.0), max(min(high, found.high), 0.0)


def _least_square(found: Histogram, levels: int) -> tuple[float, float]:
    """Tries smaller high and low ends in turn: what is outside has the distance as its error, what is inside a twelfth of a squared step.

    A step may be narrower than a bin, so that the error inside cannot be counted.
    """
    used = found.counts > 0
    centres, counts = found.centres()[used], found.counts[used]

    def error(low: float, high: float) -> float:
        outside = np.maximum(low - centres, 0) + np.maximum(centres - high, 0)
        inside = counts[outside == 0].sum() * ((high - low) / levels) ** 2 / 12
        return float((counts * outside**2).sum() + inside)

    low, high = found.low, found.high
    for _ in range(3):
        high = min((high_ for high_ in found.high * _SHARES), key=lambda end: error(low, end))
        low = min((low_ for low_ in found.low * _SHARES), key=lambda end: error(end, high))
    return low, high


def _entropy(found: Histogram, levels: int) -> tuple[float, float]:
    """The range up to a bound whose distribution, with what is outside at its ends, diverges least from itself in `levels` levels."""
    low, high = (np.array([found.low, found.high]) + found.reach) * (BINS / 2 / found.reach)
    best, ends = np.inf, (found.low, found.high)
    for share in _SHARES:
        bound = share * max(-found.low, found.high) * BINS / 2 / found.reach
        first, last = int(max(BINS / 2 - bound, low)), min(int(np.ceil(min(BINS / 2 + bound, high))), BINS)
        if last - first < levels:
            break
        inside = found.counts[first:last].astype(np.float64)
        reference = inside.copy()
        reference[0] += found.counts[:first].sum()
        reference[-1] += found.counts[last:].sum()
        starts = np.linspace(0, inside.size, levels, endpoint=False).astype(int)
        filled = np.add.reduceat((inside > 0).astype(np.float64), starts)
        level = np.add.reduceat(inside, starts) / np.maximum(filled, 1)
        coarse = np.where(inside > 0, np.repeat(level, np.diff([*starts, inside.size])), 0)
        divergence = _divergence(reference, coarse)
        if divergence < best:
            width = 2 * found.reach / BINS
            best, ends = divergence, (max(first * width - found.reach, found.low), min(last * width - found.reach, found.high))
    return ends


def _divergence(reference: np.ndarray, other: np.ndarray) -> float:
    """Kullback-Leibler divergence; a little of the mass is where `other` has none."""
    p, q = reference / reference.sum(), other / max(other.sum(), 1)
    q = np.maximum(q, 1e-9)
    where = p > 0
    return float((p[where] * np.log(p[where] / q[where])).sum())


def steps_of(low: float, high: float, dtype: str) -> Steps:
    """Steps of a range with 0 in it: uint8 with a zero point, or int8 around 0."""
    if dtype == "int8":
        scale = max(-low, high) / 127
        return Steps(_scale(scale), 0, dtype)
    step = _scale((high - low) / 255)
    return Steps(step, int(np.clip(np.rint(-low / float(step)), 0, 255)), dtype)


def _scale(value: float) -> np.float32:
    return np.float32(value) if value > np.finfo(np.float32).tiny else np.float32(1)


# ---- what is added up over samples ----------------------------------------------------------------------------------------------------


class Largest:
    """The largest absolute value in each channel (the last axis)."""

    def __init__(self) -> None:
        self.values = np.zeros(0, np.float32)

    def add(self, values: np.ndarray) -> None:
        found = np.abs(values.reshape(-1, values.shape[-1])).max(0, initial=0)
        self.values = np.maximum(self.values, found) if self.values.size else found


class Products:
    """X^T X of the rows of a tensor, which GPTQ takes for the curvature of the error of a product."""

    def __init__(self) -> None:
        self.values = np.zeros((0, 0), np.float32)

    def add(self, values: np.ndarray) -> None:
        rows = values.reshape(-1, values.shape[-1])
        found = rows.T @ rows
        self.values = self.values + found if self.values.size else found


class NotFinite(ValueError):
    """A tensor has NaN or infinite values."""

    def __init__(self, tensor: str, value: float) -> None:
        super().__init__(f"expected finite values in {tensor}, found {value}")
        self.tensor = tensor


def is_finite(array: np.ndarray) -> bool:
    """Whether all values are finite. Integers always are."""
    return array.dtype.kind in "iub" or bool(np.isfinite(array).all())


def observe(observers: dict[str, Histogram] | dict[str, Largest] | dict[str, Products], results: dict[str, np.ndarray]) -> None:
    """Adds what a run gave to the observers by name of a tensor. Raises NotFinite for the first tensor that is not finite."""
    for name, observer in observers.items():
        values = results[name]
        if not is_finite(values):
            raise NotFinite(name, float(values[~np.isfinite(values)][0]))
        observer.add(values)


def merged(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The range of all of some ranges."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)
