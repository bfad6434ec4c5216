"""Reductions agree with numpy: every reducer and dtype, conditions, first values, reducers of one's own."""

import numpy as np
import pytest
from accuracy import UNIT, check_sums
from oracle import values
from tensor_expressions import compiled, computed, ir_of, numpy_dtype

import relayc
from relayc import te
from relayc.dialects.relay import RelayError

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "uint64"])
def test_reducers_in_the_dtype_of_what_they_reduce(dtype):
    kind = numpy_dtype(dtype)
    is_float = "float" in dtype
    a = values((6, 40), kind, limit=None)
    A, k, r, part = te.placeholder((6, 40), dtype, "A"), te.reduce_axis((0, 40), "k"), te.reduce_axis((0, 6), "r"), te.reduce_axis((3, 9))
    made = [
        te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="sum"),
        te.compute((40,), lambda j: te.sum(A[r, j], axis=r), name="columns"),
        te.compute((), lambda: te.sum(A[r, k], axis=[r, k]), name="all"),
        te.compute((6,), lambda i: te.prod(A[i, part], axis=part), name="prod"),
        te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="max"),
        te.compute((6,), lambda i: te.min(A[i, k], axis=[k]), name="min"),
    ]
    exact = a.astype(np.float64) if is_float else a
    of = lambda x: [x.sum(1), x.sum(0), x.sum(), x[:, 3:9].prod(1)]  # noqa: E731 (an argument, not a definition)
    wanted, sizes = (of(x.astype(np.float64) if is_float else x) for x in (a, np.abs(a)))
    for tensor, found, expected in zip(made, computed([A, *made], a), [*wanted, exact.max(1), exact.min(1)], strict=True):
        assert found.dtype == kind
        name = tensor.name
        if not is_float or name in ("max", "min"):
            np.testing.assert_array_equal(found, expected.astype(kind), err_msg=name)
            continue
        # As in check_sums, but partial sums are of the tensor's own type.
        roundings = 4 + {"all": 240, "columns": 6, "prod": 6}.get(name, 40) ** 0.5 / 8
        assert (np.abs(found.astype(np.float64) - expected) <= roundings * UNIT[dtype] * sizes.pop(0)).all(), name


def test_extremes_of_infinities_and_of_nothing():
    a = np.array([[-np.inf, -np.inf], [np.inf, 1]], np.float32)
    A, k, none = te.placeholder((2, 2), name="A"), te.reduce_axis((0, 2)), te.reduce_axis((0, 0))
    made = [
        te.compute((2,), lambda i: te.max(A[i, k], axis=k)),
        te.compute((2,), lambda i: te.sum(A[i, none], axis=none)),
        te.compute((2,), lambda i: te.min(A[i, none].astype("int8"), axis=none)),
    ]
    found = computed([A, *made], a)
    assert [f.tolist() for f in found] == [[-np.inf, np.inf], [0, 0], [127, 127]]


def test_conditions_and_first_values():
    a = RANDOM.integers(-9, 9, (5, 8)).astype(np.int32)
    A, k, at = te.placeholder((5, 8), "int32", "A"), te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 20), "at")
    made = [
        te.compute((5,), lambda i: te.sum(A[i, k], axis=k, where=k <= i), name="triangle"),
        te.compute((5,), lambda i: te.sum(A[i, at], axis=at, where=te.all(at >= 2, at < 8)), name="guarded"),
        te.compute((5,), lambda i: te.max(A[i, k], axis=k, where=A[i, k] < 0), name="negative"),
        te.compute((5,), lambda i: te.sum(A[i, k], axis=k, init=100), name="hundred"),
        te.compute((5,), lambda i: te.max(A[i, k], axis=k, init=A[i, 0] + i * 3), name="from"),
        te.compute((5,), lambda i: te.sum(k * A[i, k], axis=k), name="weighted"),
        te.compute((5,), lambda i: te.sum(1, axis=k), name="count"),
    ]
    wanted = [
        [a[i, : i + 1].sum() for i in range(5)],
        a[:, 2:].sum(1),
        np.where(a < 0, a, -(1 << 31)).max(1),
        a.sum(1) + 100,
        np.maximum(a.max(1), a[:, 0] + np.arange(5) * 3),
        (a * np.arange(8)).sum(1),
        np.full(5, 8),
    ]
    for tensor, found, expected in zip(made, computed([A, *made], a), wanted, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=tensor.name)


def test_reducers_of_ones_own():
    def larger(x, y):
        first = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return te.if_then_else(first, x[0], y[0]), te.if_then_else(first, x[1], y[1])

    argmax = te.comm_reducer(larger, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    both = te.comm_reducer(lambda x, y: te.all(x, y), lambda dtype: True, name="both")
    xor = te.comm_reducer(lambda x, y: x ^ y, lambda dtype: te.const(0, dtype), name="xor")
    a = RANDOM.integers(-4, 4, (7, 33)).astype(np.int32)
    A, k = te.placeholder((7, 33), "int32", "A"), te.reduce_axis((0, 33), "k")
    where, largest = te.compute((7,), lambda i: argmax((k, A[i, k]), axis=k), name="argmax")
    made = [
        where,
        largest,
        te.compute((7,), lambda i: both(A[i, k] < 3, axis=k), name="all"),
        te.compute((7,), lambda i: xor(A[i, k], axis=k), name="xor"),
        *te.compute((7,), lambda i: (te.sum(A[i, k], axis=k), te.min(A[i, k] * 2, axis=k)), name="two"),
        te.compute((7,), lambda i: xor(A[i, 0], A[i, 1], A[i, 2]), name="direct"),
    ]
    wanted = [
        a.argmax(1),
        a.max(1),
        (a < 3).all(1),
        np.bitwise_xor.reduce(a, 1),
        a.sum(1),
        a.min(1) * 2,
        a[:, 0] ^ a[:, 1] ^ a[:, 2],
    ]
    for found, expected in zip(computed([A, *made], a), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert ir_of([A, where]).count("linalg.generic") == 1


def test_a_loop_that_nothing_read_tells_the_extent_of():
    x = RANDOM.standard_normal((2, 9, 9)).astype(np.float32)
    X, r, s = te.placeholder((2, 9, 9), name="X"), te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 2), "s")
    P = te.compute((2, 4, 4), lambda c, y, z: te.max(X[c, y * 2 + r, z * 2 + s], axis=[r, s]), name="P")
    assert "tensor.empty() : tensor<3x2xf32>" in ir_of([X, P])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::2, ::2]
    kernel = compiled([X, P])
    np.testing.assert_array_equal(kernel(x), windows[:, :4, :4].max((3, 4)))


def test_a_window_each_of_whose_results_is_read_twice():
    x, b = values((3, 34, 34), np.float32), np.array([2, -3], np.float32)
    X, B = te.placeholder(x.shape, name="X"), te.placeholder(b.shape, name="B")
    r, s = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")
    P = te.compute((3, 32, 32), lambda c, y, z: te.max(X[c, y + r, z + s], axis=[r, s]), name="P")
    (found,) = computed([X, B, te.compute((2, 3, 32, 32), lambda n, c, y, z: P[c, y, z] * B[n], name="twice")], x, b)
    largest = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)).max((3, 4))
    np.testing.assert_array_equal(found, largest * b[:, None, None, None])


def test_a_window_over_products_of_three_tensors_of_bytes():
    x, w, v = (np.random.default_rng(s).integers(-128, 128, shape).astype(np.int8) for s, shape in enumerate([(3, 70), (3, 5), (5,)]))
    X, W, V = (te.placeholder(a.shape, "int8", name) for name, a in zip("XWV", (x, w, v), strict=True))
    k = te.reduce_axis((0, 5), "k")
    product = lambda c, i: X[c, i + k].astype("int32") * W[c, k].astype("int32") * V[k].astype("int32")  # noqa: E731 (an argument)
    Y = te.compute((3, 66), lambda c, i: te.sum(product(c, i), axis=k), name="Y")
    kernel = relayc.compile_kernel(te.create_prim_func([X, W, V, Y]), target="cpu -mcpu=x86-64-v3")
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), 5, axis=1)
    np.testing.assert_array_equal(kernel(x, w, v), (windows * w[:, None] * v.astype(np.int32)).sum(-1))
    assert kernel.info.schedule.startswith("window_columns")


def test_a_product_is_scheduled_as_one():
    a, b, c = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((24, 32), (48, 32), (48,)))
    A, B, C = te.placeholder(a.shape, name="A"), te.placeholder(b.shape, name="B"), te.placeholder(c.shape, name="C")
    k = te.reduce_axis((0, 32), "k")
    P = te.compute((24, 48), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="P")
    Y = te.compute((24, 48), lambda i, j: te.max(P[i, j] + C[j], 0.0), name="Y")
    kernel = compiled([A, B, C, Y], params={1: b})
    magnitude = np.abs(a) @ np.abs(b.T) + np.abs(c)
    check_sums(kernel(a, c), np.maximum(a.astype(np.float64) @ b.T + c, 0), magnitude, 33)
    assert kernel.info.schedule.startswith("contraction") and kernel.info.flops >= 2 * 24 * 48 * 32


def test_products_of_one_row_with_columns_that_are_not_in_memory():
    x, w = RANDOM.integers(-4, 5, (1, 64)).astype(np.float32), RANDOM.integers(-4, 5, (64,)).astype(np.float32)
    X, W, k = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W"), te.reduce_axis((0, 64), "k")
    repeated = te.compute((8, 64), lambda j, k: W[k], name="repeated")
    kernel = compiled([X, W, te.compute((1, 8), lambda i, j: te.sum(X[i, k] * repeated[j, k], axis=k), name="P")])
    np.testing.assert_array_equal(kernel(x, w), x @ np.tile(w, (8, 1)).T)


A = te.placeholder((4, 6), name="A")
k = te.reduce_axis((0, 6), name="k")
i = te.compute((4,), lambda i: i).op.axis[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: te.sum(A[0, k], axis=[k, te.reduce_axis((0, 2)), k]),
            r"te.sum of A\[0, k\]: axis: expected each axis once, found k twice",
        ),
        (lambda: te.sum(A[0, k], axis=[k, k]), r"te.sum of A\[0, k\]: axis: expected each axis once, found k twice"),
        (lambda: te.sum(A[0, k], axis=[i]), r"te.sum of A\[0, k\]: axis: expected axes of te.reduce_axis, found i"),
        (lambda: te.sum(A[0, k]), "te.sum: expected axis=, one or several axes of te.reduce_axis, or several values, found neither"),
        (lambda: te.sum(A[0, k], axis=[]), "expected one or several axes of te.reduce_axis, found none"),
        (lambda: te.reduce_axis((4, 2), "r"), "te.reduce_axis r: extent: expected a number that is not negative"),
        (lambda: te.reduce_axis(4, "r"), "te.reduce_axis r: expected its first value and the one behind its last, found 4"),
        (lambda: te.reduce_axis((0, A[0, 0]), "r"), "te.reduce_axis r: expected bounds that are numbers or expressions over te.var"),
        (lambda: te.sum(A[0, k], axis=k, init=[1, 2]), r"te.sum of A\[0, k\]: init: expected 1 values, found 2"),
        (
            lambda: te.sum(A[0, k], axis=k, init=te.const(1)),
            r"te.sum of A\[0, k\]: init: expected \['float32'\], found \['int32'\]",
        ),
        (
            lambda: te.comm_reducer(lambda x, y: x, lambda d: te.const(0))(A[0, k], axis=k),
            r"reduce: the identity: expected constants of \['float32'\], found \['int32'\]",
        ),
        (lambda: te.sum(A[0, k], axis=k, where=k), "where: expected a condition, of dtype bool, found k of dtype int32"),
        (lambda: te.comm_reducer(lambda x, y: x < y, lambda d: 0.0, "odd")(A[0, k], axis=k), r"odd: what combines two values: expected"),
        (lambda: te.comm_reducer(lambda x, y: x, lambda d: (0, 0))(A[0, k], axis=k), "reduce: the identity: expected 1 values, found 2"),
        (
            lambda: te.compute((), lambda: (te.sum(A[0, k], axis=k), te.sum(A[r, 0], axis=r))),
            r"te.compute compute: expected reductions over the same axes, found \[k\] and \[r\]",
        ),
        (
            lambda: te.compute((), lambda: (te.sum(A[0, k], axis=k), te.sum(A[r, k], axis=[k, r]))),
            r"te.compute compute: expected reductions over the same axes, found \[k\] and \[k, r\]",
        ),
        (lambda: te.compute((), lambda: te.sum(te.sum(A[r, k], axis=k), axis=r)), "only allowed at the top level of compute"),
    ],
)
def test_what_is_no_reduction_is_an_error(make, message):
    with pytest.raises(RelayError, match=message):
        make()


r = te.reduce_axis((0, 4), name="r")


def test_reductions_of_reductions_are_left_to_the_fallback():
    A, j, i = te.placeholder((5, 7), name="A"), te.reduce_axis((0, 7)), te.reduce_axis((0, 5))
    rows = te.compute((5,), lambda r: te.sum(A[r, j], axis=j))
    kernel = compiled([A, te.compute((3,), lambda o: te.sum(rows[i] * rows[i] + o, axis=i))])
    assert kernel.info.schedule == "bufferize"
    a = np.arange(35, dtype=np.float32).reshape(5, 7)
    np.testing.assert_array_equal(kernel(a), (a.sum(1) ** 2).sum() + 5 * np.arange(3))
