"""Computations of each element agree with numpy: what they read, guards and paddings, several results."""

import numpy as np
import pytest
from accuracy import check_sums
from tensor_expressions import compiled, computed, ir_of

from relayc import te
from relayc.dialects.relay import RelayError

RANDOM = np.random.default_rng(2)


def values(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def test_what_is_read_where():
    a, b = values(4, 6), values(6)
    A, B, S = te.placeholder((4, 6), name="A"), te.placeholder((6,), name="B"), te.placeholder((), name="S")
    made = [
        te.compute((6, 4), lambda i, j: A[j, i], name="transposed"),
        te.compute((4, 6), lambda i, j: A[i, j] + B[j] * S(), name="broadcast"),
        te.compute((2, 3), lambda i, j: A[2 * i + 1, 5 - 2 * j], name="strided"),
        te.compute((3,), lambda i: A[i + 1, 2], name="column"),
        te.compute((24,), lambda i: A[i // 6, i % 6], name="flat"),
        te.compute((3,), lambda i: B[i], name="first"),
        te.compute((4, 3), lambda i, j: A[i, j] + A[i, j + 3], name="halves"),
        te.compute((), lambda: A[1, 2] + 1, name="single"),
        te.compute((4, 6), lambda i, *rest: A(i, *rest) * 2, name="any_rank"),
        te.compute((5, 2), lambda i, j: i * 10 + j, name="indices"),
        te.compute((3,), lambda i: 1.5, name="constant"),
        te.compute((4, 6), lambda i, j: A[i][j], name="sliced"),
        te.compute((6,), lambda i: B[te.truncmod(i * 5, 6)], name="truncated"),
        te.compute((6,), lambda i: B[te.max(i - 2, 0)], name="clamped"),
    ]
    wanted = [
        a.T,
        a + b * np.float32(2),
        a[1::2, 5::-2],
        a[1:, 2],
        a.reshape(24),
        b[:3],
        a[:, :3] + a[:, 3:],
        a[1, 2] + 1,
        a * 2,
        np.add.outer(np.arange(5) * 10, np.arange(2)).astype(np.int32),
        np.full(3, 1.5, np.float32),
        a,
        b[np.arange(6) * 5 % 6],
        b[np.maximum(np.arange(6) - 2, 0)],
    ]
    for tensor, found, expected in zip(made, computed([A, B, S, *made], a, b, np.float32(2)), wanted, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=tensor.name)
        assert found.dtype == tensor.dtype and tensor.shape == found.shape


def test_elements_at_positions_of_a_tensor():
    a, at, bytes_ = values(5, 3), np.array([4, 0, 2, 2], np.int64), np.array([1, 4, 0, 3], np.uint8)
    A, At, Bytes = te.placeholder((5, 3), name="A"), te.placeholder((4,), "int64", "At"), te.placeholder((4,), "uint8", "Bytes")
    rows = te.compute((4, 3), lambda i, j: A[At[i], j] + A[Bytes[i], 2 - j], name="rows")
    chosen = te.compute((4,), lambda i: te.if_then_else(At[i] < 3, A[At[i] + 2, 0], -1.0), name="chosen")
    chain = te.compute((4,), lambda i: A[At[At[i] // 2], 1], name="chain")
    found = computed([A, At, Bytes, rows, chosen, chain], a, at, bytes_)
    np.testing.assert_array_equal(found[0], a[at] + a[bytes_][:, ::-1])
    np.testing.assert_array_equal(found[1], np.where(at < 3, a[np.minimum(at + 2, 4), 0], np.float32(-1)))
    np.testing.assert_array_equal(found[2], a[at[at // 2], 1])


def test_positions_out_of_bounds_read_inside():
    a, at = values(5), np.array([-7, 1 << 40, 4], np.int64)
    A, At = te.placeholder((5,), name="A"), te.placeholder((3,), "int64", "At")
    (found,) = computed([A, At, te.compute((3,), lambda i: A[At[i]])], a, at)
    np.testing.assert_array_equal(found, a[[0, 4, 4]])


def test_a_guard_that_is_the_bound_of_an_index_is_a_padding():
    x = values(2, 5, 7)
    X = te.placeholder((2, 5, 7), name="X")
    inside = {
        "both": lambda y, z: te.all(y >= 1, y < 6, z >= 2, z < 9),
        "other words": lambda y, z: te.all(y >= 1, y - 1 <= 4, z > 1, z <= 8, z - 2 > -5),
    }
    for guard in inside.values():
        P = te.compute((2, 8, 9), lambda c, y, z: te.if_then_else(guard(y, z), X[c, y - 1, z - 2], 0.5), name="P")  # noqa: B023
        assert "tensor.pad %arg0 low[0, 1, 2] high[0, 2, 0]" in ir_of([X, P]) and "linalg.generic" not in ir_of([X, P])
        (found,) = computed([X, P], x)
        np.testing.assert_array_equal(found, np.pad(x, ((0, 0), (1, 2), (2, 0)), constant_values=0.5))


def test_paddings_of_several_lengths_are_inputs_of_their_own():
    a = values(8)
    A = te.placeholder((8,), name="A")
    shifted = lambda i, by: te.if_then_else(i >= by, A[i - by], 0.0)  # noqa: E731 (two words)
    (found,) = computed([A, te.compute((8,), lambda i: shifted(i, 1) - shifted(i, 2))], a)
    np.testing.assert_array_equal(found, np.pad(a, (1, 0))[:8] - np.pad(a, (2, 0))[:8])


def test_paddings_by_other_numbers_and_none_are_inputs_of_their_own():
    a, b = values(8), values(8)
    A, B = te.placeholder((8,), name="A"), te.placeholder((8,), name="B")
    behind = lambda T, i, outside: te.if_then_else(i >= 1, T[i - 1], outside)  # noqa: E731 (two words)
    body = lambda i: [behind(A, i, 0.0), behind(A, i, 2.0), behind(B, i, 0.0), A[i]]  # noqa: E731
    found = computed([A, B, *(te.compute((8,), lambda i, j=j: body(i)[j] - body(i)[j - 1]) for j in range(4))], a, b)
    wanted = [np.concatenate([[0], a[:7]]), np.concatenate([[2], a[:7]]), np.concatenate([[0], b[:7]]), a]
    for j in range(4):
        np.testing.assert_array_equal(found[j], (wanted[j] - wanted[j - 1]).astype(np.float32))


def test_guards_of_every_form():
    a, b = values(8), values(8)
    A, B = te.placeholder((8,), name="A"), te.placeholder((8,), name="B")

    def shifted(i, by, outside):
        return te.if_then_else(i >= by, A[i - by], outside)

    made = [
        te.compute((16,), lambda i: te.if_then_else(i < 8, A[i], B[i - 8]), name="joined"),
        te.compute((8,), lambda i: te.if_then_else(i > 0, A[i - 1] + A[i], B[i]), name="neighbours"),
        te.compute((10,), lambda i: te.if_then_else(te.all(i >= 3, i < 8), A[i], 0.0), name="tighter"),
        te.compute((15,), lambda i: te.if_then_else(i % 2 == 0, A[i // 2], 0.0), name="stretched"),
        te.compute((12,), lambda i: te.if_then_else(te.all(i % 2 == 0, i >= 2, (i - 2) // 2 < 4), A[(i - 2) // 2 * 2], 1.0), name="kept"),
        te.compute((9,), lambda i: te.if_then_else(te.any(i == 0, A[i - 1] > 0), 1, 2), name="sequential"),
        te.compute((9,), lambda i: te.if_then_else(i == 0, 0.0, te.if_then_else(i < 8, A[i], -1.0) * B[i - 1]), name="nested"),
        te.compute((8,), lambda i: te.if_then_else(B[i] > 0, te.if_then_else(i * i < 8, A[i * i], A[i]), 0.0), name="square"),
        te.compute((8,), lambda i: shifted(i, 2, 0.0) + shifted(i, 2, 1.0) * 16 + shifted(i, 3, 0.0) * 128, name="paddings"),
    ]
    at = np.arange(16)
    wanted = [
        np.concatenate([a, b]),
        np.concatenate([b[:1], a[:-1] + a[1:]]),
        np.where((at[:10] >= 3) & (at[:10] < 8), np.append(a, [0, 0])[:10], 0),
        np.where(at[:15] % 2 == 0, a[at[:15] // 2], 0),
        np.where((at[:12] % 2 == 0) & (at[:12] >= 2) & ((at[:12] - 2) // 2 < 4), a[np.clip((at[:12] - 2) // 2 * 2, 0, 7)], 1),
        np.concatenate([[1], np.where(a > 0, 1, 2)]),
        np.concatenate([[0], np.append(a[1:], -1) * b]),
        np.where(b > 0, np.where(at[:8] ** 2 < 8, a[np.minimum(at[:8] ** 2, 7)], a), 0),
        # Factors that are powers of two: a product and a sum in one instruction round as two do.
        np.append(np.zeros(2, np.float32), a[:6])
        + np.append(np.ones(2, np.float32), a[:6]) * np.float32(16)
        + np.append(np.zeros(3, np.float32), a[:5]) * np.float32(128),
    ]
    for tensor, found, expected in zip(made, computed([A, B, *made], a, b), wanted, strict=True):
        np.testing.assert_array_equal(found, expected.astype(found.dtype), err_msg=tensor.name)


def test_several_results_are_one_operation():
    a = values(4, 5)
    A = te.placeholder((4, 5), name="A")
    total, flags = te.compute((4, 5), lambda i, j: (A[i, j] + 1, A[i, j] > 0), name="both")
    assert (total.name, flags.name, flags.dtype, flags.op.num_outputs) == ("both.v0", "both.v1", "bool", 2)
    found = computed([A, flags, total], a)
    np.testing.assert_array_equal(found[0], a > 0)
    np.testing.assert_array_equal(found[1], a + 1)
    assert ir_of([A, flags, total]).count("linalg.generic") == 1


def test_chains_share_what_they_read_and_names_are_unique():
    a = values(6)
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] * 2)
    C = te.compute((6,), lambda i: B[i] + B[5 - i] + A[i])
    kernel = compiled([A, C, B])
    assert [s.name for s in (*kernel.inputs, *kernel.outputs)] == ["A", "compute_1", "compute"]
    np.testing.assert_array_equal(kernel(a)[0], a * 2 + a[::-1] * 2 + a)
    text = te.create_prim_func([A, C, B], name="chain").module.operation.get_asm(enable_debug_info=True)
    assert 'loc("compute_1")' in text and "func.func @chain(" in text
    assert (C.op.input_tensors, B.op.axis[0].name, A.op.num_outputs) == ([B, A], "i", 1)


def test_a_chain_of_any_length():
    a = RANDOM.integers(0, 9, 1200).astype(np.int32)
    A = te.placeholder(a.shape, "int32", name="A")

    def total(i):
        x, at = A[i], i
        for _ in range(1000):
            x, at = x + 1, at + 1
        return x + A[at - 1000]

    B = te.compute((200,), total, name="B")
    np.testing.assert_array_equal(computed([A, B], a)[0], 2 * a[:200] + 1000)
    assert str(total(te.reduce_axis((0, 9), "k"))).startswith("((((((((... + 1) + 1)")


def test_parts_that_an_expression_shares_count_once():
    """The value doubles 60 times: a check or an emission of each path through it would never end."""
    A = te.placeholder((4,), "float64", name="A")

    def doubled(i):
        x = A[i]
        for _ in range(60):
            x = x + x
        return x

    assert ir_of([A, te.compute((4,), doubled, name="B")]).count("arith.addf") == 60


def test_a_convolution_written_with_a_guard():
    x, w = values(1, 3, 9, 9), values(4, 3, 3, 3)
    X, W = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W")
    c, r, s = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")

    def tap(n, y, z):
        y, z = y * 2 + r - 1, z * 2 + s - 1
        return te.if_then_else(te.all(y >= 0, y < 9, z >= 0, z < 9), X[n, c, y, z], 0.0)

    Y = te.compute((1, 4, 5, 5), lambda n, o, y, z: te.sum(tap(n, y, z) * W[o, c, r, s], axis=[c, r, s]), name="Y")
    text = ir_of([X, W, Y])
    assert "tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]" in text and "arith.select" not in text
    kernel = compiled([X, W, Y])
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    expected, magnitude = (np.einsum("ncyxrs,ocrs->noyx", of(windows), of(w)) for of in (np.float64, np.abs))
    check_sums(kernel(x, w), expected, magnitude, 27)
    assert kernel.info.schedule.startswith("contraction")


A = te.placeholder((4, 6), name="A")
k = te.reduce_axis((0, 6), name="k")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: te.compute((4,), lambda i, j: A[i, j], name="C"), r"te.compute C: expected a function of 1 indices.*found one of 2"),
        (
            lambda: te.compute((4, 6), lambda i, j: A[i], name="C"),
            r"A\[i\]: expected 2 indices, one for each dimension of tensor A, found 1",
        ),
        (lambda: A[1] + 1, r"A\[1\]: expected 2 indices, one for each dimension of tensor A, found 1"),
        (lambda: A[0, 1, 2], r"A\[0, 1, 2\]: expected 2 indices, one for each dimension of tensor A, found 3"),
        (lambda: A[0.5, 1], r"expected an integer as the index of dimension 0 of tensor A, found 0.5 of dtype float32"),
        (
            lambda: te.compute((4, 6), lambda i, j: A[i + 1, j], name="C"),
            r"te.compute C: A\[i \+ 1, j\]: index i \+ 1 of dimension 0 of tensor A: expected 0 to 3, found 1 to 4 \(te.if_then_else",
        ),
        (
            lambda: te.compute((4,), lambda i: te.select(i < 3, A[i + 1, 0], 0.0), name="C"),
            r"A\[i \+ 1, 0\]: index i \+ 1 of dimension 0 of tensor A: expected 0 to 3, found 1 to 4",
        ),
        (
            lambda: te.compute((4,), lambda i: te.if_then_else(A[i + 1, 0] > 0, 1.0, 0.0), name="C"),
            r"A\[i \+ 1, 0\]: index i \+ 1 of dimension 0 of tensor A: expected 0 to 3, found 1 to 4",
        ),
        (lambda: te.compute((6, 4), lambda i, j: A[i, j], name="C"), "index i of dimension 0 of tensor A: expected 0 to 3, found 0 to 5"),
        (lambda: te.compute((4,), lambda i: A[i, -1], name="C"), "index -1 of dimension 1 of tensor A: expected 0 to 5, found -1 to -1"),
        (lambda: te.compute((4,), lambda i: A[i, k], name="C"), "te.compute C: expected the axes i, found the reduction axis k outside of"),
        (
            lambda: te.compute((4,), lambda i: te.compute((4,), lambda j: A[i, j], name="D")[i], name="C"),
            "te.compute D: expected the axes j, found the axis i of another tensor",
        ),
        (
            lambda: te.compute((4,), lambda i: te.sum(A[i, k], axis=k) + 1, name="C"),
            r"te.compute C: reductions are only allowed at the top level of compute, found sum\(A\[i, k\], axis=\[k\]\) inside",
        ),
        (lambda: te.compute((4,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0])), "all reductions or none, found 1 of 2"),
        (lambda: te.compute((4, -1), lambda i, j: 0), "te.compute compute: dimension 1: expected a number that is not negative.*found -1"),
        (lambda: te.placeholder((2.5,), name="P"), "te.placeholder P: dimension 0: expected a number that is not negative.*found 2.5"),
        (lambda: te.placeholder((2,), "text", name="P"), "te.placeholder P: expected a dtype such as float32.*found 'text'"),
        (lambda: te.compute((4,), 3, name="C"), "te.compute C: expected a function of indices, found 3"),
        (lambda: te.compute((4,), lambda i: (), name="C"), "te.compute C: expected an element or several, found none"),
        (lambda: te.compute((4,), lambda i: "x", name="C"), "te.compute C: expected an expression or a number, found 'x'"),
    ],
)
def test_what_cannot_be_computed_is_an_error(make, message):
    with pytest.raises(RelayError, match=message):
        make()
