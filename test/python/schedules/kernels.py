"""Kernels that the tests of primitives schedule: small, of odd sizes, some of which are symbols."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relayc import te
from relayc.dialects.relay import IRModule


@dataclass(frozen=True)
class Kernel:
    """A te function with what it is called with; `inputs` are small integers as floats, of which sums are exact in any order."""

    mod: IRModule
    inputs: Sequence[np.ndarray]
    sizes: Mapping[str, int] = field(default_factory=dict)


def _whole(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def product() -> Kernel:
    """Rows of a number that is not known, times a matrix, with bias and relu."""
    n = te.var("n")
    a, b, c = te.placeholder((n, 7), name="A"), te.placeholder((7, 5), name="B"), te.placeholder((5,), name="bias")
    k = te.reduce_axis((0, 7), name="k")
    d = te.compute((n, 5), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="D")
    e = te.compute((n, 5), lambda i, j: te.max(d[i, j] + c[j], 0.0), name="E")
    return Kernel(te.create_prim_func([a, b, c, e]), [_whole(6, 7), _whole(7, 5, seed=1), _whole(5, seed=2)], {"n": 6})


def softmax() -> Kernel:
    """Of rows."""
    a = te.placeholder((3, 9), name="A")
    k, m = te.reduce_axis((0, 9), name="k"), te.reduce_axis((0, 9), name="l")
    most = te.compute((3,), lambda i: te.max(a[i, k], axis=k), name="most")
    powers = te.compute((3, 9), lambda i, j: te.exp(a[i, j] - most[i]), name="powers")
    total = te.compute((3,), lambda i: te.sum(powers[i, m], axis=m), name="total")
    found = te.compute((3, 9), lambda i, j: powers[i, j] / total[i], name="found")
    return Kernel(te.create_prim_func([a, found]), [_whole(3, 9)])


def convolution() -> Kernel:
    """Of 2 x 2 images with padding."""
    a, w = te.placeholder((2, 5, 5), name="A"), te.placeholder((3, 2, 3, 3), name="W")
    c, y, x = (te.reduce_axis((0, e), name=name) for e, name in ((2, "c"), (3, "y"), (3, "x")))
    inside = lambda i: te.all(i >= 1, i < 6)  # noqa: E731
    padded = te.compute((2, 7, 7), lambda c, i, j: te.if_then_else(te.all(inside(i), inside(j)), a[c, i - 1, j - 1], 0.0), name="padded")
    found = te.compute((3, 5, 5), lambda o, i, j: te.sum(padded[c, i + y, j + x] * w[o, c, y, x], axis=[c, y, x]), name="found")
    return Kernel(te.create_prim_func([a, w, found]), [_whole(2, 5, 5), _whole(3, 2, 3, 3, seed=1)])


def total() -> Kernel:
    """Over the middle axis, whose extent is a symbol."""
    m = te.var("m")
    a = te.placeholder((3, m, 4), name="A")
    k = te.reduce_axis((0, m), name="k")
    found = te.compute((3, 4), lambda i, j: te.sum(a[i, k, j], axis=k), name="total")
    return Kernel(te.create_prim_func([a, found]), [_whole(3, 11, 4)], {"m": 11})


def largest() -> Kernel:
    """The largest element of each row, and where it is: two results of one reduction."""
    a = te.placeholder((3, 10), name="A")
    k = te.reduce_axis((0, 10), name="k")

    def larger(x: Any, y: Any) -> Any:
        first = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return te.if_then_else(first, x[0], y[0]), te.if_then_else(first, x[1], y[1])

    argmax = te.comm_reducer(larger, lambda index, value: (te.const(-1, index), te.min_value(value)), name="argmax")
    where, value = te.compute((3,), lambda i: argmax((k, a[i, k]), axis=k), name="largest")
    return Kernel(te.create_prim_func([a, where, value]), [_whole(3, 10)])


KERNELS: dict[str, Callable[[], Kernel]] = {f.__name__: f for f in (product, softmax, convolution, total, largest)}
