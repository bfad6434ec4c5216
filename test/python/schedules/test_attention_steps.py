"""Steps of attention as tensor intrinsics, alone and in an attention whose softmax goes on from one block of keys to the next."""

from typing import Any

import numpy as np
import pytest
from schedules.lowered import arrays, compiled, first

import relayc
from relayc import te
from relayc.tir import Schedule, ScheduleError, T, prim_func


@pytest.mark.parametrize("columns", [64, 40, 7])
def test_weights(columns: int) -> None:
    """Of the whole columns of a row, and of those that are left."""
    x, largest = te.placeholder((5, columns), name="X"), te.placeholder((5,), name="M")
    weights = te.compute((5, columns), lambda i, j: te.exp(x[i, j] - largest[i]), name="W")

    def schedule(s: Schedule) -> None:
        s.tensorize(s.split(s.get_loops("W")[1], [None, 32])[1], "softmax_weights_32")

    given = arrays((5, columns))[0] * 30
    given[0, 0], given[1, 0] = -np.inf, np.nan
    most = np.nanmax(given, 1)
    given[2, :3] = most[2] + np.array([3, 88, 1e6], "f4")
    found = first(compiled(te.create_prim_func([x, largest, weights]), schedule)(given, most))
    # The exponential errs by 2.5e-7 of itself and 5e-9 for each unit of its argument, of which there are about 200.
    with np.errstate(over="ignore"):
        expected = np.exp((given - most[:, None]).astype("f8"))
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-37)


def test_columns_of_weights_are_numbers() -> None:
    x, largest = te.placeholder((5, te.size_var("n")), name="X"), te.placeholder((5,), name="M")
    weights = te.compute(x.shape, lambda i, j: te.exp(x[i, j] - largest[i]), name="W")

    def schedule(s: Schedule) -> None:
        s.tensorize(s.split(s.get_loops("W")[1], [None, 32])[1], "softmax_weights_32")

    with pytest.raises(ScheduleError, match="softmax_weights_32: expected columns that are a number, found"):
        compiled(te.create_prim_func([x, largest, weights]), schedule)


@pytest.mark.parametrize("size", [4, 16])
def test_transposes(size: int) -> None:
    x = te.placeholder((32, 48), name="X")
    y = te.compute((48, 32), lambda i, j: x[j, i], name="Y")

    def schedule(s: Schedule) -> None:
        i, j = s.get_loops("Y")
        (i0, i1), (j0, j1) = s.split(i, [None, size]), s.split(j, [None, size])
        s.reorder(i0, j0, i1, j1)
        s.tensorize(i1, f"transpose_f32_{size}")

    given = arrays((32, 48))[0]
    np.testing.assert_array_equal(first(compiled(te.create_prim_func([x, y]), schedule)(given)), given.T)


@prim_func
def online(
    Q: T.Buffer((32, 16), "float32"), K: T.Buffer((16, 96), "float32"), V: T.Buffer((96, 32), "float32"), Y: T.Buffer((32, 32), "float32")
):
    """Attention of 32 queries and 96 keys (transposed) in blocks of 32 keys: what there is so far is scaled as the largest score grows."""
    scores = T.alloc_buffer((32, 96), "float32", scope="local")
    weights = T.alloc_buffer((32, 96), "float32", scope="local")
    before = T.alloc_buffer((32,), "float32", scope="local")
    largest = T.alloc_buffer((32,), "float32", scope="local")
    growth = T.alloc_buffer((32,), "float32", scope="local")
    total = T.alloc_buffer((32,), "float32", scope="local")
    context = T.alloc_buffer((32, 32), "float32", scope="local")
    for tile in T.parallel(4):
        for i in range(8):
            with T.block("begin"):
                vi = T.axis.spatial(32, tile * 8 + i)
                largest[vi] = T.float32("-inf")
                total[vi] = 0.0
            for e in T.vectorized(32):
                with T.block("begin_context"):
                    vi = T.axis.spatial(32, tile * 8 + i)
                    ve = T.axis.spatial(32, e)
                    context[vi, ve] = 0.0
        for keys in range(3):
            for i, j, d in T.grid(8, 32, 16):
                with T.block("scores"):
                    vi = T.axis.spatial(32, tile * 8 + i)
                    vj = T.axis.spatial(96, keys * 32 + j)
                    vd = T.axis.reduce(16, d)
                    with T.init():
                        scores[vi, vj] = 0.0
                    scores[vi, vj] = scores[vi, vj] + Q[vi, vd] * K[vd, vj]
            for i in range(8):
                with T.block("before"):
                    vi = T.axis.spatial(32, tile * 8 + i)
                    before[vi] = largest[vi]
                for j in T.vectorized(32):
                    with T.block("largest"):
                        vi = T.axis.spatial(32, tile * 8 + i)
                        vj = T.axis.reduce(96, keys * 32 + j)
                        largest[vi] = T.max(largest[vi], scores[vi, vj])
                with T.block("growth"):
                    vi = T.axis.spatial(32, tile * 8 + i)
                    growth[vi] = T.exp(before[vi] - largest[vi])
                    total[vi] = total[vi] * T.exp(before[vi] - largest[vi])
            for i, j in T.grid(8, 32):
                with T.block("weights"):
                    vi = T.axis.spatial(32, tile * 8 + i)
                    vj = T.axis.spatial(96, keys * 32 + j)
                    weights[vi, vj] = T.exp(scores[vi, vj] - largest[vi])
            for i in range(8):
                for j in T.vectorized(32):
                    with T.block("total"):
                        vi = T.axis.spatial(32, tile * 8 + i)
                        vj = T.axis.reduce(96, keys * 32 + j)
                        total[vi] = total[vi] + weights[vi, vj]
                for e in T.vectorized(32):
                    with T.block("scaled"):
                        vi = T.axis.spatial(32, tile * 8 + i)
                        ve = T.axis.spatial(32, e)
                        context[vi, ve] = context[vi, ve] * growth[vi]
            for i, e, j in T.grid(8, 32, 32):
                with T.block("context"):
                    vi = T.axis.spatial(32, tile * 8 + i)
                    ve = T.axis.spatial(32, e)
                    vj = T.axis.reduce(96, keys * 32 + j)
                    context[vi, ve] = context[vi, ve] + weights[vi, vj] * V[vj, ve]
        for i in range(8):
            for e in T.vectorized(32):
                with T.block("Y"):
                    vi = T.axis.spatial(32, tile * 8 + i)
                    ve = T.axis.spatial(32, e)
                    Y[vi, ve] = context[vi, ve] / total[vi]


def test_an_attention_in_blocks_of_keys() -> None:
    s = Schedule(online)
    s.tensorize(s.get_loops("scores")[-3], "dot_f32_8x32")
    s.tensorize(s.get_loops("weights")[-1], "softmax_weights_32")
    s.tensorize(s.get_loops("context")[-3], "dot_f32_8x32")
    q, k, v = arrays((32, 16), (16, 96), (96, 32))
    for module in (online, s.mod):
        found: Any = relayc.compile_kernel(module)(q, k, v)
        powers = np.exp(q.astype("f8") @ k - (q.astype("f8") @ k).max(1, keepdims=True))
        # Scores of up to about 16 err by some units of 1e-6, and so do weights and context.
        np.testing.assert_allclose(first(found), powers / powers.sum(1, keepdims=True) @ v, rtol=0, atol=1e-5)
