"""What the inputs of a network hold, and arrays of it at any sizes.

The exporter makes its example inputs with these, and the runner those of each size: both know a network's inputs from one declaration.
Needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Extent = int | str
"""A size, or an expression of symbols: "seq", "past + seq", "2 * nodes"."""


@dataclass(frozen=True)
class Symbol:
    """A size that stays open.

    Attributes:
      low, high: least and largest value that the network takes, or that is worth running.
      multiple: what every value is a multiple of.
      example: value at which the network is exported.
    """

    low: int = 1
    high: int = 4200
    multiple: int = 1
    example: int = 0

    def nearest(self, value: int) -> int:
        """The allowed value nearest to a number."""
        clipped = min(max(value, self.low), self.high)
        return max(round(clipped / self.multiple), -(-self.low // self.multiple)) * self.multiple


@dataclass(frozen=True)
class Input:
    """An input of a network.

    Attributes:
      shape: extents of the axes.
      kind: what it holds, a key of KINDS.
      high: for integers: the values are below it.
      dtype: of the array; the kind's own where it is empty.
    """

    shape: tuple[Extent, ...]
    kind: str = "normal"
    high: Extent = 2
    dtype: str = ""


def evaluate(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The value of an extent at given sizes."""
    return extent if isinstance(extent, int) else int(eval(extent, {"__builtins__": {}, "max": max, "min": min}, dict(sizes)))


Shape = tuple[int, ...]
Kind = Callable[[np.random.Generator, Shape, int], np.ndarray]


def _normal(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def _uniform(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    return rng.random(shape, np.float32)


def _below(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    return rng.integers(0, high, shape)


def _counted(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    """0, 1, 2, ... along the last axis."""
    return np.broadcast_to(np.arange(shape[-1]), shape).copy()


def _lengths(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    """Numbers of 1 to `high`, of which one is `high`."""
    found = rng.integers(1, high + 1, shape)
    found.flat[rng.integers(found.size)] = high
    return found


def _right_padded(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    """1 for tokens and 0 for the padding after them: at least one token a row, and at least one padded row where there is room."""
    rows, length = shape
    lengths = rng.integers(1, length + 1, rows)
    lengths[0] = min(int(lengths[0]), max(length - 1, 1))
    return (np.arange(length) < lengths[:, None]).astype(np.int64)


def _left_padded(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    return _right_padded(rng, shape, high)[:, ::-1].copy()


def _some_rows(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    """Booleans, about half of them true, at least one along the last axis."""
    found = rng.random(shape) < 0.5
    found[..., 0] |= ~found.any(-1)
    return found


def _ascending(rng: np.random.Generator, shape: Shape, high: int) -> np.ndarray:
    """Sorted numbers below `high`: the graph that each node is of."""
    return np.sort(rng.integers(0, high, shape), -1)


KINDS: dict[str, Kind] = {
    "normal": _normal,
    "uniform": _uniform,
    "below": _below,
    "counted": _counted,
    "lengths": _lengths,
    "right-padded": _right_padded,
    "left-padded": _left_padded,
    "boolean": _some_rows,
    "ascending": _ascending,
}


def make_inputs(inputs: Mapping[str, Input], sizes: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Arrays for every input at given sizes, the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, value in inputs.items():
        array = KINDS[value.kind](rng, tuple(evaluate(e, sizes) for e in value.shape), evaluate(value.high, sizes))
        found[name] = array.astype(value.dtype) if value.dtype else array
    return found


def as_data(inputs: Mapping[str, Input]) -> dict[str, Any]:
    return {name: {"shape": list(i.shape), "kind": i.kind, "high": i.high, "dtype": i.dtype} for name, i in inputs.items()}


def from_data(data: Mapping[str, Any]) -> dict[str, Input]:
    return {name: Input(tuple(i["shape"]), i["kind"], i["high"], i["dtype"]) for name, i in data.items()}
