"""Helpers of the contraction tests: cases of sums of products with rigorous bounds, compiled together and run on one and two threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from accuracy import UNIT, bound_of
from oracle import values
from support import Const, program

from relayc.dialects.mlir import ir
from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.driver.compile import compile
from relayc.runtime import Module, num_threads, set_num_threads


@dataclass(frozen=True)
class Case:
    """Operators on arrays (Const: a constant), and their result to within `bound` for each element; 0 for exact."""

    name: str
    body: Callable[..., ir.Value]
    arrays: Sequence[np.ndarray | Const]
    expected: np.ndarray
    bound: np.ndarray

    def then(self, relay_name: str, function: Callable[[np.ndarray], np.ndarray]) -> "Case":
        """The case with an elementwise operator after it that brings values no further apart and rounds once."""
        expected = function(self.expected)
        bound = self.bound + UNIT["float32"] * (np.abs(expected) + self.bound)
        return replace(
            self, name=f"{self.name} {relay_name}", body=lambda *v: build(relay_name, self.body(*v)), expected=expected, bound=bound
        )

    def plus(self, other: np.ndarray | Const) -> "Case":
        """The case with a sum after it."""
        array = other.array if isinstance(other, Const) else other
        expected = self.expected + array
        bound = self.bound + UNIT["float32"] * (np.abs(expected) + self.bound)
        body = lambda *v: build("add", self.body(*v[:-1]), v[-1])  # noqa: E731 (an argument, not a definition)
        return replace(self, name=f"{self.name} add", body=body, arrays=[*self.arrays, other], expected=expected, bound=bound)


def matrix_product(
    rows: int,
    depth: int,
    columns: int,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    constant: str = "",
    dtype: str = "float32",
    out_dtype: str = "",
) -> Case:
    """nn.matmul of seeded matrices; `constant` says which of "a" and "b" are constants."""
    a = values((depth, rows) if transpose_a else (rows, depth), dtype)
    b = values((columns, depth) if transpose_b else (depth, columns), dtype, seed=1)
    exact = np.int64 if np.dtype(dtype).kind in "iu" else np.float64
    x, y = ((v.T if t else v).astype(exact) for v, t in ((a, transpose_a), (b, transpose_b)))
    expected = x @ y
    bound = bound_of(depth, expected, np.abs(x) @ np.abs(y), out_dtype or dtype)
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b, "out_dtype": out_dtype}
    arrays = [Const(v) if name in constant else v for name, v in (("a", a), ("b", b))]
    form = f"{rows}x{depth}x{columns} {'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'} {dtype} constant {constant or '-'}"
    return Case(form, lambda x, y: build("nn.matmul", x, y, **attrs), arrays, expected, bound)


def batch_product(
    left: int,
    right: int,
    rows: int,
    depth: int,
    columns: int,
    *,
    transpose_a: bool = False,
    transpose_b: bool = True,
    constant: bool = False,
    dtype: str = "float32",
    out_dtype: str = "",
) -> Case:
    """nn.batch_matmul of seeded matrices in batches of `left` and `right`, one of which may be 1; `constant`: of the right operand."""
    a = values((left, *((depth, rows) if transpose_a else (rows, depth))), dtype)
    b = values((right, *((columns, depth) if transpose_b else (depth, columns))), dtype, seed=1)
    x, y = ((v.transpose(0, 2, 1) if t else v).astype(np.float64) for v, t in ((a, transpose_a), (b, transpose_b)))
    expected = x @ y
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b, "out_dtype": out_dtype}
    form = f"{left},{right} of {rows}x{depth}x{columns} {'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'} {dtype} {constant}"
    bound = bound_of(depth, expected, np.abs(x) @ np.abs(y), out_dtype or dtype)
    return Case(form, lambda x, y: build("nn.batch_matmul", x, y, **attrs), [a, Const(b) if constant else b], expected, bound)


def convolve(x: np.ndarray, w: np.ndarray, strides: Sequence[int], dilation: Sequence[int], pads: Sequence[int], groups: int) -> np.ndarray:
    """The convolution of [n, channels, spatial...] by [filters, channels / groups, taps...]; `pads` are all befores, then all afters."""
    n = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:n], pads[n:], strict=True)])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + n)))
    seen = seen[(slice(None), slice(None), *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilation))]
    seen = seen.reshape(x.shape[0], groups, x.shape[1] // groups, *seen.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    at, taps = "hij"[:n], "uvw"[:n]
    found = np.einsum(f"ngc{at}{taps},gfc{taps}->ngf{at}", seen, w, optimize=True)
    return found.reshape(x.shape[0], -1, *found.shape[3:])


def convolution(
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    *,
    strides: Sequence[int] = (),
    dilation: Sequence[int] = (),
    pads: Sequence[int] = (),
    groups: int = 1,
    constant: bool = True,
    dtype: str = "float32",
    out_dtype: str = "",
) -> Case:
    """nn.conv1d, 2d or 3d of seeded data [n, channels, spatial...] by weights [filters, channels / groups, taps...]."""
    n = len(w_shape) - 2
    strides, dilation, pads = tuple(strides) or (1,) * n, tuple(dilation) or (1,) * n, tuple(pads) or (0,) * (2 * n)
    x, w = values(x_shape, dtype), values(w_shape, dtype, seed=1)
    exact = np.int64 if np.dtype(dtype).kind in "iu" else np.float64
    wide = x.astype(exact), w.astype(exact)
    expected = convolve(*wide, strides, dilation, pads, groups)
    magnitude = convolve(*map(np.abs, wide), strides, dilation, pads, groups)
    bound = bound_of(int(np.prod(w_shape[1:])), expected, magnitude, out_dtype or dtype)
    attrs: dict[str, Any] = {"strides": strides, "dilation": dilation, "padding": pads, "groups": groups, "out_dtype": out_dtype}
    form = f"{tuple(x_shape)} by {tuple(w_shape)} {attrs} {dtype} {'constant' if constant else 'input'} weights"
    return Case(form, lambda x, w: build(f"nn.conv{n}d", x, w, **attrs), [x, Const(w) if constant else w], expected, bound)


def check(cases: Sequence[Case], **options: Any) -> Module:
    """Compiles the cases as one program and compares them on one thread and on two; runs on as many threads give the same bits. Gives the
    program.

    Winograd convolutions, whose error is another, are off.
    """
    counts = [len(case.arrays) for case in cases]

    def body(*arguments: ir.Value) -> list[ir.Value]:
        rest = list(arguments)
        return [case.body(*[rest.pop(0) for _ in range(count)]) for case, count in zip(cases, counts, strict=True)]

    arrays = [array for case in cases for array in case.arrays]
    ambient = PassContext.current()
    with PassContext(ambient.opt_level, ambient.required_pass, {*ambient.disabled_pass, "Winograd"}, ambient.config):
        module = compile(program(body, arrays), **options)
    inputs = [a for a in arrays if not isinstance(a, Const)]
    before = num_threads()
    try:
        for threads in (1, 2):
            set_num_threads(threads)
            first, again = (module["main"](*inputs) for _ in range(2))
            for case, found, same in zip(cases, *(v if isinstance(v, tuple) else (v,) for v in (first, again)), strict=True):
                assert found.tobytes() == same.tobytes(), f"{case.name}: two runs on {threads} threads differ"
                _compare(case, found, threads)
    finally:
        set_num_threads(before)
    return module


def _compare(case: Case, found: np.ndarray, threads: int) -> None:
    where = f"{case.name}, {threads} threads"
    assert found.shape == case.expected.shape, where
    error = np.abs(found.astype(case.expected.dtype) - case.expected)
    if not (error <= case.bound).all():  # also where there is a NaN
        worst = np.unravel_index(np.nanargmax(error - case.bound), error.shape)
        raise AssertionError(f"{where}: at {worst} found {found[worst]}, expected {case.expected[worst]} +- {case.bound[worst]}")
