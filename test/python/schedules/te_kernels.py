"""Kernels of several blocks, written with te, with what they give: for tests of primitives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from relayc import te
from relayc.dialects.relay import IRModule
from relayc.pipelines.evaluate.tir import run
from relayc.tir import Schedule


@dataclass
class Kernel:
    """A kernel, arrays to run it with, and what it gives for them; small integers, so that sums are exact in any order."""

    mod: IRModule
    inputs: Sequence[np.ndarray]
    expected: np.ndarray
    tolerance: float = 0.0
    sizes: Mapping[str, int] = field(default_factory=dict)

    def check(self, schedule: Schedule) -> None:
        """Raises AssertionError where a schedule of the kernel does not give what the kernel gives."""
        schedule.mod.verify()
        (found,) = run(schedule.mod, self.inputs, self.sizes)
        np.testing.assert_allclose(found, self.expected, rtol=self.tolerance, atol=0)


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(np.float32)


def dense(m: int = 7, n: int = 10, k: int = 6, symbols: str = "") -> Kernel:
    """Blocks C (a product), D (plus a bias), R (relu); m and n may be symbols."""
    rows, columns = (te.size_var(name) if name in symbols else size for name, size in (("m", m), ("n", n)))
    a, b, bias = te.placeholder((rows, k), name="A"), te.placeholder((k, columns), name="B"), te.placeholder((columns,), name="bias")
    over = te.reduce_axis((0, k), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, over] * b[over, j], axis=over), name="C")
    d = te.compute((rows, columns), lambda x, y: c[x, y] + bias[y], name="D")
    r = te.compute((rows, columns), lambda p, q: te.if_then_else(d[p, q] > 0.0, d[p, q], 0.0), name="R")
    inputs = [_numbers(m, k), _numbers(k, n), _numbers(n)]
    expected = np.maximum(inputs[0] @ inputs[1] + inputs[2], 0)
    return Kernel(
        te.create_prim_func([a, b, bias, r]), inputs, expected, sizes={name: size for name, size in (("m", m), ("n", n)) if name in symbols}
    )


def softmax(rows: int = 5, columns: int = 7) -> Kernel:
    """Blocks T (the largest of a row), E (exp), S (their sum), N (the quotients)."""
    x = te.placeholder((rows, columns), name="X")
    over, again = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="l")
    t = te.compute((rows,), lambda i: te.max(x[i, over], axis=over), name="T")
    e = te.compute((rows, columns), lambda a, b: te.exp(x[a, b] - t[a]), name="E")
    s = te.compute((rows,), lambda c: te.sum(e[c, again], axis=again), name="S")
    n = te.compute((rows, columns), lambda p, q: e[p, q] / s[p], name="N")
    (given,) = inputs = [_numbers(rows, columns)]
    exps = np.exp(given - given.max(1, keepdims=True))
    # Sums of float32 in another order, and exp of another library.
    return Kernel(te.create_prim_func([x, n]), inputs, exps / exps.sum(1, keepdims=True), tolerance=1e-5)


def convolution(height: int = 6, width: int = 5, channels: int = 3, filters: int = 4) -> Kernel:
    """Blocks P (padding by 1), C (a convolution of 3x3), R (relu, plus a bias)."""
    x, w = te.placeholder((channels, height, width), name="X"), te.placeholder((filters, channels, 3, 3), name="W")
    bias = te.placeholder((filters,), name="bias")

    def padded(c: te.Tensor, i: te.Tensor, j: te.Tensor) -> te.Tensor:
        return te.if_then_else(te.all(i >= 1, i <= height, j >= 1, j <= width), x[c, i - 1, j - 1], 0.0)

    p = te.compute((channels, height + 2, width + 2), padded, name="P")
    c, u, v = (te.reduce_axis((0, e), name=n) for e, n in ((channels, "c"), (3, "u"), (3, "v")))
    o = te.compute((filters, height, width), lambda f, i, j: te.sum(p[c, i + u, j + v] * w[f, c, u, v], axis=[c, u, v]), name="C")
    r = te.compute((filters, height, width), lambda g, y, z: te.if_then_else(o[g, y, z] > 0.0, o[g, y, z], 0.0) + bias[g], name="R")
    given = [_numbers(channels, height, width), _numbers(filters, channels, 3, 3), _numbers(filters)]
    wide = np.pad(given[0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2))
    expected = np.maximum(np.einsum("chwuv,fcuv->fhw", windows, given[1]), 0) + given[2][:, None, None]
    return Kernel(te.create_prim_func([x, w, bias, r]), given, expected)


KERNELS: dict[str, Callable[[], Kernel]] = {
    "dense": dense,
    "symbolic dense": lambda: dense(symbols="m"),
    "dense of two symbols": lambda: dense(symbols="mn"),
    "softmax": softmax,
    "convolution": convolution,
}
