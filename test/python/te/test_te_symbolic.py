"""Computations over symbolic sizes, compiled once, agree with numpy at every size."""

import numpy as np
import pytest
from accuracy import check_sums
from tensor_expressions import compiled, ir_of

import relayc
from relayc import te
from relayc.symbolic import evaluate, parse

RANDOM = np.random.default_rng(4)


def values(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_sizes_are_expressions_over_variables():
    n, m = te.var("n"), te.size_var("m")
    A = te.placeholder((n, 2 * m + 1), name="A")
    B = te.compute((A.shape[1] - 1, n // 2), lambda i, j: A[j * 2, i], name="B")
    text = ir_of([A, B, n])
    assert 'tensor<?x?xf32, ["n", "2*m + 1"]> {relay.name = "A"}' in text
    assert '-> (tensor<?x?xf32, ["2*m", "n//2"]> {relay.name = "B"})' in text
    assert '%arg1: index {relay.symbol = "m"}, %arg2: index {relay.symbol = "n"}' in text
    assert [str(d) for d in B.shape] == ["2*m", "n//2"] and A.shape[0] == n
    assert te.compute((n.astype("int64") + 1,), lambda i: i).shape[0] == n + 1
    kernel = compiled([A, B])
    for sizes in ((0, 3), (1, 1), (7, 4), (40, 9)):
        a = values(sizes[0], 2 * sizes[1] + 1)
        np.testing.assert_array_equal(kernel(a), a[: sizes[0] // 2 * 2 : 2, :-1].T)
    with pytest.raises(ValueError, match="A"):
        kernel(values(3, 4))  # of 2 m + 1 columns


def test_operations_on_sizes_are_sizes():
    n = te.var("n")
    sizes = lambda n, least, most: [least(n, 4), most(4, n), least(6, most(n, 9)), n * 3 - 1, (n + 1) // 2, n % 5]  # noqa: E731
    found = [parse(str(te.compute((size,), lambda i: i).shape[0])) for size in sizes(n, te.min, te.max)]
    for number in (1, 3, 4, 5, 9, 20):
        assert [evaluate(size, {"n": number}) for size in found] == sizes(number, min, max)


def test_elementwise_reads_of_every_kind():
    n = te.var("n")
    A, B, C = te.placeholder((n + 1,), name="A"), te.placeholder((2 * n,), name="B"), te.placeholder((3 * n,), name="C")
    made = {
        "neighbours": te.compute((n,), lambda i: A[i] + A[i + 1]),
        "second_half": te.compute((n,), lambda i: B[i + n] - B[i]),
        "two_offsets": te.compute((n,), lambda i: C[i + 2 * n] - C[i + n]),
        "reversed": te.compute((n,), lambda i: B[2 * n - 1 - i]),
        "pairs": te.compute((n, 2), lambda i, j: B[i * 2 + j]),
        "strided": te.compute((n,), lambda i: B[2 * i + 1]),
        "padded": te.compute((n + 4,), lambda i: te.if_then_else(te.all(i >= 2, i < n + 3), A[i - 2], 0.0)),
        "joined": te.compute((3 * n + 1,), lambda i: te.if_then_else(i <= n, A[i], B[i - n - 1])),
        "sizes": te.compute((n,), lambda i: (n - i) * 2 + n // 2),
        "wide sizes": te.compute((n,), lambda i: n.astype("int64") * 3 + i),
        "flat": te.compute((n, n), lambda i, j: B[te.min(i * n + j, 2 * n - 1)]),
        "rows": te.compute((n * n,), lambda i: A[i // n] + B[i % n]),
    }
    kernel = compiled([A, B, C, *made.values()])
    for size in (1, 2, 5, 33):
        a, b, c, i = values(size + 1), values(2 * size), values(3 * size), np.arange(size)
        wanted = {
            "neighbours": a[:-1] + a[1:],
            "second_half": b[size:] - b[:size],
            "two_offsets": c[2 * size :] - c[size : 2 * size],
            "reversed": b[: size - 1 : -1],
            "pairs": b.reshape(size, 2),
            "strided": b[1::2],
            "padded": np.pad(a, (2, 1)),
            "joined": np.concatenate([a, b]),
            "sizes": (size - i) * 2 + size // 2,
            "wide sizes": size * 3 + i,
            "flat": b[np.minimum(np.arange(size * size), 2 * size - 1)].reshape(size, size),
            "rows": np.repeat(a[:-1], size) + np.tile(b[:size], size),
        }
        for name, found in zip(made, kernel(a, b, c), strict=True):
            np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name} at n = {size}")


def test_reductions():
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n, m), name="A"), te.placeholder((m, 16), name="B")
    k, j, tail = te.reduce_axis((0, m), "k"), te.reduce_axis((0, n), "j"), te.reduce_axis((1, m), "tail")
    product = compiled([A, B, te.compute((n, 16), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="P")])
    sums = compiled(
        [
            A,
            te.compute((n,), lambda i: te.max(A[i, k], axis=k)),
            te.compute((m,), lambda i: te.sum(A[j, i], axis=j)),
            te.compute((n,), lambda i: te.sum(A[i, tail] - A[i, 0], axis=tail)),
            te.compute((), lambda: te.sum(te.if_then_else(j == k, A[j, k], 0.0), axis=[j, k])),
        ]
    )
    assert product.info.schedule.startswith("contraction")
    for shape in ((1, 1), (3, 5), (17, 33), (40, 64)):
        a, b = values(*shape), values(shape[1], 16)
        check_sums(product(a, b), a.astype(np.float64) @ b, np.abs(a) @ np.abs(b), shape[1])
        difference, diagonal = a[:, 1:] - a[:, :1], a.diagonal()
        largest, *found = sums(a)
        np.testing.assert_array_equal(largest, a.max(1))
        for one, (terms, axis) in zip(found, ((a, 0), (difference, 1), (diagonal, 0)), strict=True):
            check_sums(one, terms.sum(axis, dtype=np.float64), np.abs(terms).sum(axis), terms.shape[axis])


def test_a_convolution_over_any_image():
    h, w = te.var("h"), te.var("w")
    X, W = te.placeholder((1, 2, h, w), name="X"), te.placeholder((16, 2, 3, 3), name="W")
    c, r, s = te.reduce_axis((0, 2), "c"), te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")
    P = te.compute(
        (1, 2, h + 2, w + 2),
        lambda n, c, y, x: te.if_then_else(te.all(y >= 1, y <= h, x >= 1, x <= w), X[n, c, y - 1, x - 1], 0.0),
        name="P",
    )
    Y = te.compute((1, 16, h, w), lambda n, o, y, x: te.sum(P[n, c, y + r, x + s] * W[o, c, r, s], axis=[c, r, s]), name="Y")
    assert "tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]" in ir_of([X, W, Y])
    kernel = compiled([X, W, Y])
    for size in ((1, 1), (4, 7), (13, 20)):
        x, weights = values(1, 2, *size), values(16, 2, 3, 3)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
        expected, magnitude = (np.einsum("ncyxrs,ocrs->noyx", of(windows), of(weights)) for of in (np.float64, np.abs))
        check_sums(kernel(x, weights), expected, magnitude, 18)


def test_a_convolution_along_the_diagonal_of_an_image():
    """Rows move along two dimensions, with padding at the ends of one."""
    n = te.var("n")
    X, W = te.placeholder((n, n, 16), name="X"), te.placeholder((40, 16, 3), name="W")
    c, s = te.reduce_axis((0, 16), "c"), te.reduce_axis((0, 3), "s")

    def tap(i):
        return te.if_then_else(te.all(i + s >= 1, i + s <= n), X[i, i + s - 1, c], 0.0)

    kernel = compiled([X, W, te.compute((n, 40), lambda i, o: te.sum(tap(i) * W[o, c, s], axis=[c, s]), name="Y")])
    for size in (1, 5, 37):
        x, w = values(size, size, 16), values(40, 16, 3)
        taps = np.stack([np.pad(x, ((0, 0), (1, 1), (0, 0)))[np.arange(size), np.arange(size) + k] for k in range(3)], axis=2)
        expected, magnitude = (np.einsum("ics,ocs->io", of(taps), of(w)) for of in (np.float64, np.abs))
        check_sums(kernel(x, w), expected, magnitude, 48)


def test_a_size_that_no_argument_tells_is_an_error():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n,), name="A")
    with pytest.raises(ValueError, match="m"):
        relayc.compile_kernel(te.create_prim_func([A, te.compute((n, m), lambda i, j: A[i] + j)]))
    with pytest.raises(ValueError, match="m"):
        relayc.compile_kernel(te.create_prim_func([A, te.compute((n,), lambda i: A[i] + m)]))


def test_divisions_by_sizes_are_unsigned_and_guarded_where_a_size_may_be_0():
    n = te.var("n")
    for size, guards in ((n, 1), (n + 1, 0)):
        A = te.placeholder((size,), "int32", name="A")
        text = ir_of([A, te.compute((3 * n,), lambda i, A=A, size=size: A[i % size], name="B")])
        assert (text.count("arith.remui"), text.count("arith.select")) == (1, guards)


def test_an_index_that_is_out_of_bounds_at_every_size_is_an_error():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    with pytest.raises(
        ValueError, match=r"te.compute C: A\[i \+ 1\]: index i \+ 1 of dimension 0 of tensor A: expected 0 to n - 1, found 1 to n \+ 1"
    ):
        te.compute((n + 1,), lambda i: A[i + 1], name="C")
