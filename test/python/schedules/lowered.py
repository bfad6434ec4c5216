"""Compiles kernels by schedules, for tests."""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from accuracy import check_sums

import relayc
from relayc import te
from relayc.pipelines.tir.schedule.written_strategy import schedule_entry
from relayc.pipelines.tir.strategy.table import STRATEGIES, register_strategies
from relayc.tir import Schedule

Function = Callable[[Schedule], Any]
RNG = np.random.default_rng(7)


@contextmanager
def registered(function: Function):
    """A strategy of this schedule, for a while."""
    register_strategies("cpu", schedule_entry("written", function))
    try:
        yield
    finally:
        STRATEGIES["cpu"].pop(0)


def compiled(module: Any, function: Function, **options: Any) -> Any:
    with registered(function):
        return relayc.compile_kernel(module, tuning={"strategy": "written"}, **options)


def first(found: Any) -> np.ndarray:
    return np.asarray(found[0] if isinstance(found, (list, tuple)) else found)


def product(rows: Any, depth: int, columns: int) -> Any:
    """max(A B + bias, 0); its blocks are C and D."""
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    bias = te.placeholder((columns,), name="bias")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    zero = te.const(0, "float32")
    d = te.compute((rows, columns), lambda i, j: te.if_then_else(c[i, j] + bias[j] > zero, c[i, j] + bias[j], zero), name="D")
    return te.create_prim_func([a, b, bias, d])


def check_product(found: Any, a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None) -> None:
    """Asserts that the first result is A B, or max(A B + bias, 0)."""
    exact, magnitude = a.astype("f8") @ b.astype("f8"), np.abs(a.astype("f8")) @ np.abs(b.astype("f8"))
    if bias is not None:
        exact, magnitude = np.maximum(exact + bias, 0), magnitude + np.abs(bias)
    check_sums(first(found), exact, magnitude, len(b) + 1)


def arrays(*shapes: Sequence[int]) -> list[np.ndarray]:
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]
