"""Functions of blocks and loops as kernels of their own: `relayc.compile_kernel` of what people wrote, against numpy."""

import numpy as np
import pytest

import relayc
from relayc.tir import Schedule, T

rng = np.random.default_rng(11)


@T.prim_func
def product(A: T.Buffer(("n", 7), "float32"), B: T.Buffer((7, 16), "float32"), C: T.Buffer(("n", 16), "float32")):
    n = T.int64()
    D = T.alloc_buffer((n, 16), "float32")
    for i in T.parallel(n):
        for j, k in T.grid(16, 7):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = 0.0
                D[vi, vj] += A[vi, vk] * B[vk, vj]
        for j in T.vectorized(16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], 0.0)


def operands(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = rng.standard_normal((rows, 7)).astype(np.float32), rng.standard_normal((7, 16)).astype(np.float32)
    return a, b, np.maximum(a @ b, 0)


def test_a_kernel_runs_as_it_is_written() -> None:
    kernel = relayc.compile_kernel(product)
    for rows in (1, 6):
        a, b, expected = operands(rows)
        np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-5, atol=1e-6)
    assert kernel.info.schedule == "as_written"
    assert [str(s) for s in kernel.info.symbols] == ["n"]


def test_it_is_scheduled_with_knobs_from_its_text() -> None:
    def tiled(schedule: Schedule) -> None:
        rows = schedule.sample_categorical([2, 4, 8], decision=0, name="rows")
        schedule.split("i", [None, rows])

    kernel = relayc.compile_kernel(str(product), schedule=tiled, tuning={"rows": 4})
    a, b, expected = operands(6)
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-5, atol=1e-6)
    assert kernel.info.schedule == "tiled rows=4"


@pytest.mark.parametrize(("smaller", "rows", "columns"), [(True, 6, 7), (True, 2, 9), (False, 6, 7), (False, 3, 3)])
def test_a_guard_of_two_indices_whose_order_is_not_known(smaller: bool, rows: int, columns: int) -> None:
    @T.prim_func
    def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        for i, j in T.grid(n, m):
            with T.block("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = 0.0
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(T.min(i, j) < 3 if smaller else T.max(i, j) < 3)
                B[vi, vj] = A[vi, vj]

    a = rng.standard_normal((rows, columns)).astype(np.float32)
    i, j = np.indices(a.shape)
    expected = np.where((np.minimum if smaller else np.maximum)(i, j) < 3, a, 0)
    np.testing.assert_array_equal(relayc.compile_kernel(main)(a), expected)


def test_parameters_are_given_once() -> None:
    a, b, expected = operands(6)
    kernel = relayc.compile_kernel(product, params={1: b})
    np.testing.assert_allclose(kernel(a), expected, rtol=1e-5, atol=1e-6)


def test_dtypes_are_those_of_the_script() -> None:
    @T.prim_func
    def main(
        x: T.Buffer((9,), "uint8"),
        keep: T.Buffer((9,), "bool"),
        y: T.Buffer((9,), "bfloat16"),
        out: T.Buffer((9,), "uint8"),
        less: T.Buffer((9,), "bool"),
    ):
        for i in range(9):
            with T.block("out"):
                v = T.axis.spatial(9, i)
                out[v] = T.if_then_else(keep[v], x[v] // 3, x[v] + 200)
                less[v] = T.cast(x[v], "float32") * T.float32(y[v]) < 100.0

    x = np.array([0, 1, 2, 100, 127, 128, 200, 254, 255], np.uint8)
    keep = np.arange(9) % 2 == 0
    y = np.linspace(0.25, 2.25, 9).astype(relayc.dialects.relay.types.DTYPES["bfloat16"])
    out, less = relayc.compile_kernel(main)(x, keep, y)
    np.testing.assert_array_equal(out, np.where(keep, x // 3, x + np.uint8(200)))
    np.testing.assert_array_equal(less, x.astype(np.float32) * y.astype(np.float32) < 100)
    assert (out.dtype, less.dtype) == (np.uint8, np.bool_)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a schedule or a strategy, found as_written and loops"):
        relayc.compile_kernel(product, tuning={"strategy": "loops"})
    with pytest.raises(ValueError, match="expected a function @other over tensors, found none"):
        relayc.compile_kernel(product, name="other")

    def wrong(schedule: Schedule) -> None:
        schedule.split("m", [None, 2])

    with pytest.raises(relayc.tir.ScheduleError, match=r"schedule wrong of kernel @product: split.*expected a loop of @product"):
        relayc.compile_kernel(product, schedule=wrong)
