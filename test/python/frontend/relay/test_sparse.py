"""Operators on sparse matrices, against dense ones in numpy."""

import numpy as np
import pytest
from expressions import both_ways, evaluated
from oracle import values

from relayc import relay
from relayc.symbolic import symbol

N, M = symbol("n"), symbol("m")


def matrix(shape, block=(1, 1), dtype="float32", seed=0):
    """A matrix with rows of no, some and many blocks."""
    rng = np.random.default_rng(seed)
    share = np.linspace(0, 0.9, shape[0] // block[0])[rng.permutation(shape[0] // block[0])]
    kept = rng.random((shape[0] // block[0], shape[1] // block[1])) < share[:, None]
    return values(shape, dtype, seed=seed) * np.kron(kept, np.ones(block)).astype(dtype)


def compressed(dense, block=(1, 1), dtype="int32"):
    """Data, indices and indptr of a matrix."""
    rows, columns = (n // b for n, b in zip(dense.shape, block, strict=True))
    blocks = dense.reshape(rows, block[0], columns, block[1]).transpose(0, 2, 1, 3)
    stored = (blocks != 0).any((2, 3))
    data = blocks[stored] if block != (1, 1) else blocks[stored].reshape(-1)
    return data, np.nonzero(stored)[1].astype(dtype), np.concatenate([[0], stored.sum(1).cumsum()]).astype(dtype)


@both_ways
@pytest.mark.parametrize("is_symbolic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("sparse_lhs", [False, True])
@pytest.mark.parametrize(("block", "rows"), [((1, 1), 5), ((1, 1), 1), ((2, 3), 19), ((4, 1), 1)])
def test_products(block, rows, sparse_lhs, is_symbolic, run):
    x, dense = values((rows, 12)), matrix((24, 12), block)
    stored = compressed(dense, block)
    shapes = [(N, 12), (M, *stored[0].shape[1:]), (M,), stored[2].shape] if is_symbolic else None
    found = run(lambda x, *s: relay.nn.sparse_dense(x, s, *([True] if sparse_lhs else [])), x, *stored, shapes=shapes)
    exact = x.astype("float64") @ dense.astype("float64").T
    np.testing.assert_allclose(found, exact.T if sparse_lhs else exact, rtol=1e-5, atol=1e-5)


@both_ways
@pytest.mark.parametrize(("dtype", "index"), [("float16", "int64"), ("float64", "int32"), ("int32", "int64"), ("int8", "uint32")])
def test_element_types(dtype, index, run):
    dense, x = matrix((6, 8), dtype=dtype), values((5, 8), dtype)
    found = run(lambda x, *s: relay.nn.sparse_dense(x, s), x, *compressed(dense, dtype=index))
    exact = x.astype("float64") @ dense.astype("float64").T
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact.astype("int64").astype(dtype) if "int" in dtype else exact, rtol=2e-3, atol=2e-3)


def test_no_elements_and_several_of_one_place():
    x = values((3, 4))
    nothing = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(3, np.int32)
    np.testing.assert_array_equal(evaluated(lambda x, *s: relay.nn.sparse_dense(x, s), x, *nothing), np.zeros((3, 2)))
    twice = np.array([2, 5, 1], np.float32), np.array([1, 1, 3], np.int32), np.array([0, 0, 2, 3], np.int32)
    expected = np.stack([0 * x[:, 1], 7 * x[:, 1], x[:, 3]], 1)
    np.testing.assert_allclose(evaluated(lambda x, *s: relay.nn.sparse_dense(x, s), x, *twice), expected, rtol=1e-6)
    blocks = np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.array([1, 0], np.int32), np.array([0, 1, 2], np.int32)
    found = evaluated(lambda x, *s: relay.nn.sparse_dense(x, s), x, *blocks)
    np.testing.assert_allclose(found, np.concatenate([x[:, 2:] @ blocks[0][0].T, x[:, :2] @ blocks[0][1].T], 1), rtol=1e-5, atol=1e-5)
    assert evaluated(lambda x, *s: relay.nn.sparse_dense(x, s), x[:0], *twice).shape == (0, 3)
    padded = evaluated(lambda *v: relay.op.nn.internal.sparse_dense_padded(*v), x, *twice)
    np.testing.assert_allclose(padded, expected, rtol=1e-6)


def test_constants_and_objects_as_matrices():
    dense, x = matrix((6, 8)), values((5, 8))

    class Matrix:
        data, indices, indptr = compressed(dense)

    found = evaluated(lambda x: relay.nn.relu(relay.nn.sparse_dense(x, Matrix())), x)
    np.testing.assert_allclose(found, np.maximum(x @ dense.T, 0), rtol=1e-5, atol=1e-5)


def test_what_fits_not_is_refused():
    data, indices, indptr = (
        relay.var(name, shape=shape, dtype=dtype)
        for name, shape, dtype in (("d", (5,), "float32"), ("i", (4,), "int32"), ("p", (3,), "int32"))
    )
    x = relay.var("x", shape=(3, 8))
    with pytest.raises(ValueError, match=r"sparse_indices: expected 5 element\(s\)"):
        relay.transform.InferTypeLocal(relay.nn.sparse_dense(x, (data, indices, indptr)))
    with pytest.raises(ValueError, match="sparse_indices: expected the shape of sparse_data"):
        relay.transform.InferTypeLocal(relay.nn.sparse_add(x, (data, indices, indptr)))
    images, blocks = relay.var("images", shape=(1, 4, 4, 2)), relay.var("d", shape=(4, 2, 1))
    for wrong, what in (({"layout": "NCWH"}, "layout: expected NHWC or NCHW, found NCWH"), ({}, "dense_data: expected rank 4")):
        with pytest.raises(ValueError, match=what):
            relay.transform.InferTypeLocal(relay.op.nn.sparse_conv2d(images if wrong else x, blocks, indices, indptr, **wrong))
    for size in ((2, 3), (3, 2), (3,)):
        with pytest.raises(ValueError, match="kernel_size: expected two odd numbers, found"):
            relay.transform.InferTypeLocal(relay.op.nn.sparse_conv2d(images, blocks, indices, indptr, kernel_size=size))


def test_rows_of_stored_elements():
    stored = [np.array(a, dtype) for a, dtype in (([3, 5, 7], "float32"), ([2, 0, 1], "int32"), ([0, 1, 1, 3], "int32"))]
    dense = np.array([[0, 0, 3], [0, 0, 0], [5, 7, 0]], np.float32)
    np.testing.assert_array_equal(evaluated(lambda x, *s: relay.nn.sparse_add(x, s), dense * 10, *stored), dense * 11)


@both_ways
@pytest.mark.parametrize("is_symbolic", [False, True], ids=["numbers", "symbols"])
def test_sums_and_transposes(is_symbolic, run):
    dense, x = matrix((9, 9), seed=2), values((9, 9), seed=3)
    stored = compressed(dense)
    shapes = [(M,), (M,), (N,)] if is_symbolic else [None] * 3
    own = [s or a.shape for s, a in zip(shapes, stored, strict=True)]
    found = run(lambda x, *s: relay.nn.sparse_add(x, s), x, *stored, shapes=[x.shape, *own])
    np.testing.assert_allclose(found, x + dense, rtol=1e-6)
    for a, b in zip(run(lambda *s: relay.nn.sparse_transpose(s), *stored, shapes=own), compressed(dense.T), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def convolves(layout, size, block, *batches):
    channels, units, images = 6, 8, values((2, 5, 4, 6))
    filters = matrix((units, size[0] * size[1] * channels), block)
    around = np.pad(images, ((0, 0), (size[0] // 2,) * 2, (size[1] // 2,) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(around, size, (1, 2))  # [n, h, w, c, kh, kw]
    if layout == "NHWC":
        windows = np.moveaxis(windows, 3, 5)
    expected = windows.reshape(2, 5, 4, -1).astype("float64") @ filters.T
    data, *rest = compressed(filters, block)
    is_last = layout == "NHWC"
    x = images if is_last else images.transpose(0, 3, 1, 2).copy()
    stored = data.reshape(data.shape[:2]) if block[1] == 1 else data
    for batch in batches:
        shapes = [(batch, *x.shape[1:]), stored.shape, *(a.shape for a in rest)]
        found = evaluated(lambda *v: relay.op.nn.sparse_conv2d(*v, layout=layout, kernel_size=size), x, stored, *rest, shapes=shapes)
        np.testing.assert_allclose(found if is_last else found.transpose(0, 2, 3, 1), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("block", [(4, 1), (2, 2)])
def test_convolutions_of_pixels(layout, block):
    convolves(layout, (1, 1), block, 2, N)


@pytest.mark.parametrize("batch", [2, N], ids=["numbers", "symbols"])
@pytest.mark.parametrize(("size", "block"), [((3, 1), (2, 3)), ((3, 3), (4, 1))])
def test_convolutions(size, block, batch):
    for layout in ("NHWC", "NCHW"):
        convolves(layout, size, block, batch)


FILLED = {
    "gaps": ([[1, 3], [1, 5], [4, 2]], [7, -3, 9], 7),
    "all rows": ([[0, 1], [1, 0]], [5, 6], 2),
    "nothing": (np.zeros((0, 2)), [], 3),
}


@pytest.mark.parametrize("name", FILLED)
@pytest.mark.parametrize("is_symbolic", [False, True], ids=["numbers", "symbols"])
def test_rows_without_values(name, is_symbolic):
    places, stored, total = FILLED[name]
    places, stored = np.array(places, np.int32), np.array(stored, np.float32)
    given = places, stored, np.array([total, 8], np.int64), np.array([4], np.float32)
    shapes = [(N, 2), (N,), (2,), (1,)] if is_symbolic else None
    found = evaluated(relay.sparse_fill_empty_rows, *given, shapes=shapes)
    empty = [row for row in range(total) if row not in places[:, 0]]
    rows = sorted(
        [(*place, value) for place, value in zip(places.tolist(), stored.tolist(), strict=True)] + [(row, 0, 4.0) for row in empty]
    )
    np.testing.assert_array_equal(found[0], np.array([row[:2] for row in rows], np.int32))
    np.testing.assert_array_equal(found[1], np.array([row[2] for row in rows], np.float32))
    np.testing.assert_array_equal(found[2], np.isin(np.arange(total), empty))
    assert [part.dtype for part in found] == ["int32", "float32", "bool"]


def test_products_with_weights_of_zeros_become_sparse():
    x, sparse, dense = values((3, 8)), matrix((12, 8), (4, 1)), values((5, 12), seed=4)
    names = {name: relay.var(name, shape=shape) for name, shape in (("x", (3, 8)), ("a", (12, 8)), ("b", (5, 12)))}
    body = relay.nn.dense(relay.nn.relu(relay.nn.dense(names["x"], names["a"])), names["b"])
    given = {"a": sparse, "b": dense}
    function, params = relay.data_dep_optimization.bsr_dense.convert(relay.Function([*names.values()], body), dict(given), (4, 1), 0.3)
    assert [param.name_hint for param in function.params] == ["x", "b", "a.data", "a.indices", "a.indptr"]
    assert set(params) == {"b", "a.data", "a.indices", "a.indptr"}
    found = relay.create_executor("graph").evaluate(function)(x, *(params[param.name_hint] for param in function.params[1:]))
    np.testing.assert_allclose(found.numpy(), np.maximum(x @ sparse.T, 0) @ dense.T, rtol=1e-4, atol=1e-4)
    whole, convert = relay.Function([*names.values()], body), relay.data_dep_optimization.bsr_dense.convert
    share = float(np.mean(sparse == 0))
    for least, converts in ((share, True), (share + 0.001, False)):
        assert ("a.data" in convert(whole, dict(given), (4, 1), least)[1]) == converts
    assert set(convert(whole, {"a": sparse.astype("float64")}, (4, 1), 0.3)[1]) == {"a"}
    for block, found in (((5, 1), r"\(5, 1\)"), ((4, 3), r"\(4, 3\)"), ((4,), r"\(4,\)"), ((4, 1, 1), r"\(4, 1, 1\)")):
        with pytest.raises(ValueError, match=rf"block size: expected one that divides a matrix of shape \(12, 8\), found {found}"):
            convert(whole, dict(given), block, 0.3)
