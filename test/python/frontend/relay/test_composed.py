"""Operators that are composed of others: their types, and their results against numpy and ONNX Runtime."""

import numpy as np
import pytest
from expressions import both_ways, evaluated, interpreted
from oracle import onnx_run, values

from relayc import relay
from relayc.frontend.relay.lowering import lower
from relayc.frontend.relay.op.composed import COMPOSED, composed
from relayc.symbolic import symbol

CLOSE = {"rtol": 2e-5, "atol": 2e-5}
"""Sums of a few products of float32."""


def type_of(expr):
    return relay.transform.InferTypeLocal(expr.astuple() if isinstance(expr, relay.TupleWrapper) else expr)


def any_of(*arrays):
    return [(relay.Any(),) * a.ndim for a in arrays]


def test_every_operator_has_a_function():
    for name in COMPOSED:
        found = relay.op
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found), name


def test_a_program_may_compose_an_operator():
    from relayc.frontend.converter import emit

    @composed("test.twice")
    def twice(x, *, times: int = 2):
        for _ in range(times):
            x = emit("add", x, x)
        return x

    try:
        x = values((2, 3))
        np.testing.assert_allclose(evaluated(lambda v: relay.op.call("test.twice", v, times=3), x), 8 * x)
    finally:
        del COMPOSED["test.twice"]


# ---- shapes and elements -------------------------------------------------------------------------------------------------------------


def test_sizes_and_slices():
    x, like = values((4, 5, 6)), values((2, 5, 3))
    assert evaluated(lambda v: relay.op.ndarray_size(v), x) == 120
    np.testing.assert_array_equal(evaluated(relay.slice_like, x, like), x[:2, :, :3])
    np.testing.assert_array_equal(evaluated(lambda a, b: relay.slice_like(a, b, axes=(-1,)), x, like), x[:, :, :3])
    assert type_of(relay.slice_like(relay.var("x", shape=(4, 5, 6)), relay.var("y", shape=(2, 3)))) == relay.TensorType((2, 3, 6))
    np.testing.assert_allclose(evaluated(relay.collapse_sum_like, x, like[:1, :, :1]), x.sum((0, 2), keepdims=True), **CLOSE)
    np.testing.assert_allclose(evaluated(lambda v: relay.collapse_sum_to(v, (5, 1)), x), x.sum((0, 2))[:, None], **CLOSE)
    np.testing.assert_array_equal(evaluated(lambda v: relay.reverse_reshape(v, (-1, 0, 3)), x), x.reshape(8, 5, 3))


def test_sizes_that_are_symbols_are_taken_for_equal():
    n, w = symbol("n"), symbol("w")
    x, like = relay.var("x", shape=(n, 2, 3, w)), relay.var("y", shape=(1, 8, 8))
    assert type_of(relay.reshape_like(x, like)) == relay.TensorType((1, 8, 8))
    small = relay.var("z", shape=(1, 2))
    assert type_of(relay.slice_like(relay.var("x", shape=(n, w)), small)) == relay.TensorType((1, 2))
    halves = type_of(relay.split(relay.var("x", shape=(n, 4)), 2, axis=0))
    assert halves.fields[0] == relay.TensorType((n // 2, 4))
    x = values((6, 4))
    first, second = evaluated(lambda v: relay.split(v, 2, axis=0), x, shapes=[(n, 4)])
    np.testing.assert_array_equal(np.concatenate([first, second]), x)


def test_windows_dilation_and_grids():
    x = values((2, 7, 8))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 4), (1, 2))[:, ::2, ::3]
    np.testing.assert_array_equal(evaluated(lambda v: relay.sliding_window(v, 1, (3, 4), (2, 3)), x), windows)
    volume = values((2, 3, 7, 8))
    windows = np.lib.stride_tricks.sliding_window_view(volume, (2, 3, 4), (1, 2, 3))[:, :, ::2, ::3]
    np.testing.assert_array_equal(interpreted(lambda v: relay.sliding_window(v, 1, (2, 3, 4), (1, 2, 3)), volume), windows)
    apart = np.full((2, 13, 22), 0.5, np.float32)
    apart[:, ::2, ::3] = x
    np.testing.assert_array_equal(evaluated(lambda v: relay.nn.dilate(v, (1, 2, 3), 0.5), x), apart)
    a, b, c = values((3,)), values((4,), seed=1), values((2,), seed=2)
    for indexing in ("ij", "xy"):
        found = evaluated(lambda *v, i=indexing: relay.meshgrid(list(v), indexing=i), a, b, c)
        for one, other in zip(found, np.meshgrid(a, b, c, indexing=indexing), strict=True):
            np.testing.assert_array_equal(one, other)
        assert type_of(relay.meshgrid([relay.var("x", shape=(3,))], indexing=indexing)) == relay.TupleType([relay.TensorType((3,))])


def test_fixed_point_products_round_halves_up():
    x = np.array([-7, -1, 0, 1, 5, 1000, -(2**20)], np.int32)
    for multiplier, shift in ((1 << 30, 0), (1395864371, 2), (1 << 30, -1)):
        exact = x.astype(object) * multiplier * 2 ** max(shift, 0)
        expected = [(v + (1 << (30 + max(-shift, 0)))) >> (31 + max(-shift, 0)) for v in exact]
        found = evaluated(lambda v, m=multiplier, s=shift: relay.fixed_point_multiply(v, m, s), x)
        np.testing.assert_array_equal(found, expected)


@both_ways
@pytest.mark.parametrize("k", [(0, 0), (1, 1), (-1, 2)])
def test_diagonals(k, run):
    x = values((2, 3, 4))
    count = k[1] - k[0] + 1
    width = max(min(3 + min(d, 0), 4 - max(d, 0)) for d in range(k[0], k[1] + 1))
    diagonal = values((2, count, width) if count > 1 else (2, width), seed=3)
    expected = x.copy()
    for row, d in enumerate(range(k[1], k[0] - 1, -1)):
        length = min(3 + min(d, 0), 4 - max(d, 0))
        line = diagonal[:, row] if count > 1 else diagonal
        line = line[:, width - length :] if d >= 0 else line[:, :length]  # "RIGHT_LEFT"
        at = np.arange(length)
        expected[:, at - min(d, 0), at + max(d, 0)] = line
    np.testing.assert_array_equal(run(lambda a, b: relay.matrix_set_diag(a, b, k), x, diagonal), expected)


def test_sequences():
    x, lengths = values((4, 3, 2)), np.array([0, 2, 9], np.int32)
    steps = np.arange(4)[:, None, None] < lengths[None, :, None]
    np.testing.assert_array_equal(evaluated(lambda a, b: relay.sequence_mask(a, b, -1.0, 0), x, lengths), np.where(steps, x, -1))
    expected = x.copy()
    for i, n in enumerate(np.minimum(lengths, 4)):
        expected[:n, i] = x[:n, i][::-1]
    np.testing.assert_array_equal(evaluated(lambda a, b: relay.reverse_sequence(a, b, 0, 1), x, lengths), expected)


def test_einsum_and_transforms():
    a, b = values((2, 3, 4)), values((4, 5), seed=1)
    np.testing.assert_allclose(evaluated(lambda *v: relay.einsum(list(v), "bij,jk->bki"), a, b), np.einsum("bij,jk->bki", a, b), **CLOSE)
    real, imaginary = values((3, 8)), values((3, 8), seed=1)
    found = evaluated(lambda r, i: relay.op.call("dft", r, i), real, imaginary)
    expected = np.fft.fft(real + 1j * imaginary)
    np.testing.assert_allclose(found[0] + 1j * found[1], expected, rtol=1e-4, atol=1e-4)  # sums of 8 products
    x, window = values((2, 20)), np.array([1, 3, 2], np.float32)
    frames = np.stack([x[:, i : i + 5] for i in range(0, 16, 4)], 1) * np.array([0, 1, 3, 2, 0])
    spectrum = np.moveaxis(np.fft.rfft(frames), 1, 2)
    steps = [relay.stft(relay.var("x", shape=x.shape), 12, hop).attrs.hop_length for hop in (None, 2)]
    assert steps == [3, 2]
    found = evaluated(lambda v, w: relay.stft(v, 5, 4, 3, w), x, window)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], spectrum, rtol=1e-4, atol=1e-4)


# ---- positions -----------------------------------------------------------------------------------------------------------------------


def test_positions():
    order = np.array([3, 0, 2, 1], np.int32)
    np.testing.assert_array_equal(evaluated(relay.invert_permutation, order), np.argsort(order))
    flat = np.array([0, 22, 5], np.int64)
    found = evaluated(lambda v: relay.unravel_index(v, relay.const(np.array([2, 3, 4]))), flat)
    np.testing.assert_array_equal(found, np.unravel_index(flat, (2, 3, 4)))
    x, i, j = values((3, 4, 2)), np.array([[0, 2], [1, 1]]), np.array([3, 0])
    np.testing.assert_array_equal(evaluated(lambda *v: relay.adv_index(list(v)), x, i, j), x[i, j])
    holds = np.array([[True, False, True], [False, False, True]])
    np.testing.assert_array_equal(evaluated(relay.argwhere, holds), np.argwhere(holds))
    np.testing.assert_array_equal(evaluated(relay.argwhere, holds, shapes=any_of(holds)), np.argwhere(holds))


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [
        ([0, 1], [3, 4], [1, 2]),
        ([2, -1], [-5, 0], [-1, -2]),
        ([1], [9], [2]),
        ([-2, 0], [9, 9], None),
        ([0, 1], [2], [1, 2]),
        ([0, -4, 1], [-1, -1, 9], [1]),
        ([1, 3], [1, 5], [1, 1]),
    ],
)
def test_strided_set(begin, end, strides):
    x = values((3, 5, 2))
    ends, steps = [*end, 9, 9], [*(strides or []), 1, 1, 1]
    slices = tuple(slice(b, e if e > -len(x) - 2 else None, s) for b, e, s in zip(begin, ends, steps, strict=False))
    expected = x.copy()
    v = values(expected[slices].shape, seed=1)
    expected[slices] = v
    np.testing.assert_array_equal(interpreted(lambda a, b: relay.strided_set(a, b, begin, end, strides), x, v), expected)


def test_sparse_tensors():
    at, what = np.array([[0, 1], [2, 3], [1, 0]]), values((3,))
    dense = np.full((3, 4), 7, np.float32)
    dense[tuple(at.T)] = what
    found = evaluated(lambda a, b: relay.sparse_to_dense(a, (3, 4), b, relay.const(7.0)), at, what)
    np.testing.assert_array_equal(found, dense)
    found = evaluated(lambda a, b: relay.sparse_to_dense(a, (5,), b, relay.const(7.0)), np.array(3), np.float32(2).reshape(()))
    np.testing.assert_array_equal(found, [7, 7, 7, 2, 7])
    found, shape = evaluated(lambda a, p, n: relay.op.call("sparse_reshape", a, p, n), at, np.array([3, 4]), np.array([2, -1]))
    np.testing.assert_array_equal(found, np.stack(np.unravel_index(np.ravel_multi_index(at.T, (3, 4)), (2, 6)), 1))
    np.testing.assert_array_equal(shape, [2, 6])
    rows, numbers = values((5, 2)), np.array([0, 2, 2, 0, 1], np.int32)
    sums = np.array([rows[numbers == i].sum(0) for i in range(3)])
    np.testing.assert_allclose(evaluated(relay.op.segment_sum, rows, numbers), sums, **CLOSE)
    np.testing.assert_allclose(evaluated(lambda a, b: relay.op.segment_sum(a, b, 4), rows, numbers), [*sums, [0, 0]], **CLOSE)


@both_ways
@pytest.mark.parametrize("is_sorted", [True, False])
def test_unique(is_sorted, run):
    x = np.array([4, 1, 4, 9, 1, 1, -3], np.int32)
    found, first, inverse, count, times = run(lambda v: relay.unique(v, is_sorted, True), x)
    kinds, at, back, counts = np.unique(x, True, True, True)
    if not is_sorted:
        order = np.argsort(at)
        kinds, at, back, counts = kinds[order], at[order], np.argsort(order)[back], counts[order]
    n = len(kinds)
    np.testing.assert_array_equal(count, [n])
    np.testing.assert_array_equal([*found[:n], *first[:n], *inverse, *times[:n]], [*kinds, *at, *back, *counts])


def _logs(x, **axes):
    return np.log(np.exp(x).sum(**axes))


X = values((2, 3, 4))
FUNCTIONS = {
    "numbers up to one": (lambda x: relay.arange(relay.const(5), dtype="int32"), np.arange(5, dtype="int32")),
    "numbers from one to another": (lambda x: relay.arange(1, 4), np.arange(1, 4, dtype="float32")),
    "numbers with steps": (lambda x: relay.arange(1, 7, 2, "int64"), np.arange(1, 7, 2)),
    "variance": (relay.variance, X.var()),
    "variance along an axis": (lambda x: relay.variance(x, 1), X.var(1)),
    "variance along the others": (lambda x: relay.variance(x, 1, keepdims=True, exclude=True), X.var((0, 2), keepdims=True)),
    "variance of a sample": (lambda x: relay.variance(x, [0, 2], unbiased=True), X.var((0, 2), ddof=1)),
    "variance around a number": (
        lambda x: relay.variance(x, 1, with_mean=relay.const(np.full((2, 1, 4), 0.5, "float32"))),
        ((X - 0.5) ** 2).mean(1),
    ),
    "deviation": (relay.std, X.std()),
    "deviation along the others": (lambda x: relay.std(x, 1, True, True), X.std((0, 2), keepdims=True)),
    "deviation of a sample": (lambda x: relay.std(x, [2], unbiased=True), X.std(2, ddof=1)),
    "mean and variance": (lambda x: relay.mean_variance(x)[1], X.var()),
    "mean of both": (lambda x: relay.mean_variance(x, [1])[0], X.mean(1)),
    "kept mean of both": (lambda x: relay.mean_variance(x, 1, True)[0], X.mean(1, keepdims=True)),
    "mean along the others": (lambda x: relay.mean_variance(x, 1, exclude=True)[0], X.mean((0, 2))),
    "variance of a sample of both": (lambda x: relay.mean_variance(x, 1, unbiased=True)[1], X.var(1, ddof=1)),
    "mean of mean and deviation": (lambda x: relay.mean_std(x, 1, True)[0], X.mean(1, keepdims=True)),
    "deviation of mean and deviation": (lambda x: relay.mean_std(x, 1, exclude=True)[1], X.std((0, 2))),
    "logarithm of sums": (relay.logsumexp, _logs(X)),
    "logarithm of sums along axes": (lambda x: relay.logsumexp(x, [0, 2]), _logs(X, axis=(0, 2))),
    "logarithm of kept sums": (lambda x: relay.logsumexp(x, 1, True), _logs(X, axis=1, keepdims=True)),
    "logarithm of large sums": (lambda x: relay.logsumexp(x + relay.const(1000.0), 1), _logs(X, axis=1) + 1000),
    "upper triangle": (lambda x: relay.trilu(x, 1), np.triu(X, 1)),
    "lower triangle": (lambda x: relay.trilu(x, relay.const(-1), upper=False), np.tril(X, -1)),
    "reversed reshape": (lambda x: relay.reverse_reshape(x, -1), X.reshape(-1)),
    "what is left": (relay.nn.dropout, X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_are_more_than_a_call(name):
    make, expected = FUNCTIONS[name]
    found = interpreted(make, X)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, **CLOSE)


# ---- networks ------------------------------------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(reduction, run):
    x, at, w = values((4, 3, 2)), np.array([[0, 2], [1, 1], [2, 0], [2, 2]]), np.array([0.5, 2, 1], np.float32)
    found = run(lambda *v: relay.nn.nll_loss(*v, reduction, 1), x, at, w)
    expected = onnx_run("NegativeLogLikelihoodLoss", x, at, w, reduction=reduction, ignore_index=1)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_cross_entropy():
    x, y = np.abs(values((4, 3))) + 0.1, np.abs(values((4, 3), seed=1))
    np.testing.assert_allclose(evaluated(relay.nn.cross_entropy, x, y), -(np.log(x) * y).sum(1).mean(), **CLOSE)
    np.testing.assert_allclose(evaluated(relay.nn.cross_entropy_with_logits, x, y), -(x * y).sum(1).mean(), **CLOSE)


def test_blocks_of_space():
    x = values((2, 3, 4, 3))
    blocks = evaluated(lambda v: relay.nn.space_to_batch_nd(v, [2, 2], [[1, 0], [0, 2]], 0.5), x)
    padded = np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=0.5)
    for i, j in np.ndindex(2, 2):
        np.testing.assert_array_equal(blocks[(2 * i + j) * 2 :][:2], padded[:, i::2, j::2])
    back = evaluated(lambda v: relay.nn.batch_to_space_nd(v, [2, 2], [[1, 0], [0, 2]]), blocks)
    np.testing.assert_array_equal(back, x)


@both_ways
@pytest.mark.parametrize(
    ("multiply", "sizes", "padding", "sides"),
    [
        (True, (3, 2, 2, 1), {"padding": 2}, (2, 2, 2, 2)),
        (False, (3, 2, 2, 1), {"padding": (2,)}, (2, 2, 2, 2)),
        (True, (1, 2, 1, 2), {"padding": (1, 2)}, (1, 2, 1, 2)),
        (False, (3, 1, 1, 1), {"padding": (0, 1, 2, 1)}, (0, 1, 2, 1)),
        (True, (1, 1, 2, 1), {}, (0, 0, 0, 0)),
    ],
)
def test_correlation(multiply, sizes, padding, sides, run):
    a, b = values((2, 3, 6, 7)), values((2, 3, 6, 7), seed=1)
    (k, reach, s1, s2), (top, left, bottom, right) = sizes, sides
    p, q = (np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right))) for x in (a, b))
    out = [-(-(n - 2 * (reach + k // 2)) // s1) for n in p.shape[2:]]
    radius = reach // s2
    side = 2 * radius + 1
    expected = np.zeros((2, side**2, *out))
    for d, i, j in np.ndindex(side**2, *out):
        y, x = i * s1 + reach, j * s1 + reach
        dy, dx = (d // side - radius) * s2, (d % side - radius) * s2
        one, other = p[:, :, y : y + k, x : x + k], q[:, :, y + dy : y + dy + k, x + dx : x + dx + k]
        expected[:, d, i, j] = (one * other if multiply else abs(one - other)).mean((1, 2, 3))
    names = dict(zip(("kernel_size", "max_displacement", "stride1", "stride2"), sizes, strict=True))
    found = run(
        lambda u, v: relay.op.call("nn.correlation", u, v, **names, **padding, **({} if multiply else {"is_multiply": False})), a, b
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_deformable_convolution():
    x, w = values((1, 4, 6, 7)), values((2, 2, 3, 3), seed=1)
    offset = values((1, 2 * 9 * 2, 6, 7), seed=2) * 0.4
    offset[:, :, [1, 5]] = 0
    # Places that stay inside are read as ONNX reads them; those outside of the image give nothing here.
    grid = np.indices((6, 7))[:, None] + np.indices((3, 3)).reshape(2, 9, 1, 1) - 1
    at = offset.reshape(2, 9, 2, 6, 7).transpose(0, 2, 1, 3, 4) + grid
    limits = np.array([6, 7]).reshape(2, 1, 1, 1)
    mask = ((at >= 0) & (at < limits)).all(1).astype(np.float32).reshape(1, 18, 6, 7)
    expected = onnx_run("DeformConv", x, w, offset, np.zeros(2, np.float32), mask, opset=19, pads=[1, 1, 1, 1], group=2, offset_group=2)
    attrs = {"padding": (1, 1), "deformable_groups": 2, "groups": 2, "channels": 2, "kernel_size": (3, 3)}
    np.testing.assert_allclose(evaluated(lambda *v: relay.nn.deformable_conv2d(*v, **attrs), x, offset, w), expected, rtol=1e-4, atol=1e-4)
    four = {**attrs, "padding": (1, 1, 1, 1)}
    np.testing.assert_allclose(interpreted(lambda *v: relay.nn.deformable_conv2d(*v, **four), x, offset, w), expected, rtol=1e-4, atol=1e-4)
    last = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    moved = [np.ascontiguousarray(a.transpose(axes)) for a, axes in ((x, (0, 2, 3, 1)), (offset, (0, 2, 3, 1)), (w, (2, 3, 1, 0)))]
    found = evaluated(lambda *v: relay.nn.deformable_conv2d(*v, **attrs, **last), *moved)
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), expected, rtol=1e-4, atol=1e-4)
    free = relay.nn.deformable_conv2d(relay.var("x", shape=(1, 4, 6, 7)), relay.var("o"), relay.var("w"), **attrs)
    assert type_of(free) == relay.TensorType((1, 2, 6, 7))


# ---- images --------------------------------------------------------------------------------------------------------------------------


def test_places_of_affine_maps():
    maps = values((2, 2, 3))
    y, x = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    expected = np.einsum("nij,jhw->nihw", maps, np.stack([x, y, np.ones_like(x)]))
    np.testing.assert_allclose(evaluated(lambda v: relay.image.affine_grid(v, (4, 5)), maps), expected, **CLOSE)


@both_ways
@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_parts_of_images(method, layout, run):
    x = values((2, 3, 7, 9))
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [-0.3, 0.5, 0.4, 1.3], [0.9, 0.1, 0.2, 0.6]], np.float32)
    which = np.array([1, 0, 1], np.int32)
    expected = np.full((3, 3, 4, 5), 9.5)
    for n, i, j in np.ndindex(3, 4, 5):
        y1, x1, y2, x2 = boxes[n]
        y, z = y1 * 6 + i * (y2 - y1) * 6 / 3, x1 * 8 + j * (x2 - x1) * 8 / 4
        if 0 <= y <= 6 and 0 <= z <= 8:
            image = x[which[n]]
            if method == "nearest_neighbor":
                expected[n, :, i, j] = image[:, round(float(y)), round(float(z))]
            else:
                a, b = int(y), int(z)
                c, d = min(a + 1, 6), min(b + 1, 8)
                upper = image[:, a, b] * (1 - z + b) + image[:, a, d] * (z - b)
                lower = image[:, c, b] * (1 - z + b) + image[:, c, d] * (z - b)
                expected[n, :, i, j] = upper * (1 - y + a) + lower * (y - a)
    data = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    found = run(lambda *v: relay.image.crop_and_resize(*v, (4, 5), layout, method, 9.5), np.ascontiguousarray(data), boxes, which)
    found = found if layout == "NCHW" else found.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)  # positions of some units in the last place


def test_a_part_of_one_row_is_the_middle_of_its_box():
    x = values((1, 2, 7, 9))
    boxes = np.array([[0.0, 0.25, 1.0, 0.75], [0.5, -1.5, 0.5, 1.0], [0.25, 0.0, 0.75, 0.5]], np.float32)
    found = evaluated(lambda *v: relay.image.crop_and_resize(*v, (1, 3), extrapolation_value=9.5), x, boxes, np.zeros(3, np.int32))
    row = x[0, :, 3]
    outside = np.full(2, 9.5, np.float32)
    middle = [np.stack([row[:, 2], row[:, 4], row[:, 6]], 1), np.stack([outside, outside, row[:, 8]], 1)]
    np.testing.assert_allclose(found[:, :, 0], [*middle, np.stack([row[:, 0], row[:, 2], row[:, 4]], 1)], **CLOSE)


def test_products_with_packed_weights():
    x, w = values((3, 5)), values((2, 5, 4), seed=1)
    expected = x @ w.transpose(0, 2, 1).reshape(8, 5).T
    np.testing.assert_allclose(
        evaluated(lambda a, b: relay.op.call("nn.contrib_dense_pack", a, b, weight_layout="NC4n"), x, w), expected, **CLOSE
    )
    np.testing.assert_allclose(evaluated(lambda a, b: relay.op.call("nn.contrib_dense_pack", a, b), x, w[0].T.copy()), x @ w[0], **CLOSE)


def test_dilation():
    x, w = values((2, 3, 8, 9)), values((3, 2, 3), seed=1)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)), constant_values=-np.inf)
    expected = np.full((2, 3, 5, 6), -np.inf)
    for i, j in np.ndindex(2, 3):
        part = padded[:, :, i * 2 : i * 2 + 9 : 2, j * 2 : j * 2 + 6]
        expected = np.maximum(expected, part + w[:, i, j][:, None, None])
    attrs = {"strides": (2, 1), "padding": (1, 0, 2, 1), "dilations": (2, 2)}
    found = evaluated(lambda a, b: relay.image.dilation2d(a, b, **attrs), x, w)
    np.testing.assert_allclose(found, expected, **CLOSE)
    last = evaluated(
        lambda a, b: relay.image.dilation2d(a, b, data_layout="NHWC", kernel_layout="HWI", **attrs),
        np.ascontiguousarray(x.transpose(0, 2, 3, 1)),
        np.ascontiguousarray(w.transpose(1, 2, 0)),
    )
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), expected, **CLOSE)


@pytest.mark.parametrize(
    ("attrs", "sides"),
    [
        ({}, (0, 0, 0, 0)),
        ({"padding": (1,)}, (1, 1, 1, 1)),
        ({"padding": (1, 2)}, (1, 2, 1, 2)),
        ({"padding": (0, 1, 2, 0), "strides": (1, 2, 1, 1), "dilations": (1, 1, 2, 1)}, (0, 1, 2, 0)),
    ],
)
def test_dilation_of_integers(attrs, sides):
    """A sum around the image is the least number of its type; strides and dilations may be those of all axes."""
    x, w = values((2, 3, 6, 7), "int32"), values((3, 2, 3), "int32", seed=1)
    top, left, bottom, right = sides
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=-np.inf)
    (down, across), (rows, columns) = ((attrs[name][1:3] if name in attrs else (1, 1)) for name in ("strides", "dilations"))
    out = (padded.shape[2] - rows - 1) // down + 1, (padded.shape[3] - 2 * columns - 1) // across + 1
    parts = [
        padded[:, :, i * rows :: down, j * columns :: across][:, :, : out[0], : out[1]] + w[:, i, j][:, None, None]
        for i, j in np.ndindex(2, 3)
    ]
    found = interpreted(lambda a, b: relay.op.call("image.dilation2d", a, b, **attrs), x, w)
    np.testing.assert_array_equal(found, np.maximum(np.max(parts, 0), np.iinfo("int32").min))


# ---- sizes that the program computes -------------------------------------------------------------------------------------------------


def test_sizes_that_the_program_computes():
    x, shape = values((3, 4)), np.array([2, 6], np.int64)
    np.testing.assert_array_equal(evaluated(relay.reshape, x, shape), x.reshape(2, 6))
    np.testing.assert_array_equal(evaluated(relay.tile, x, np.array([2, 1, 3])), np.tile(x, (2, 1, 3)))
    np.testing.assert_array_equal(evaluated(relay.broadcast_to, x[:1], np.array([5, 4])), np.broadcast_to(x[:1], (5, 4)))
    found = evaluated(lambda v, b, e: relay.strided_slice(v, b, e, [1, 2]), x, np.array([1, 0]), np.array([3, -1]))
    np.testing.assert_array_equal(found, x[1:3, 0:-1:2])
    found = evaluated(lambda a, b, c: relay.arange(a, b, c, "float32"), *(np.float32(v).reshape(()) for v in (1, 7, 2)))
    np.testing.assert_array_equal(found, [1, 3, 5])
    assert type_of(relay.reshape(relay.var("x", shape=(3, 4)), relay.var("s", shape=(2,), dtype="int64"))) == relay.TensorType(
        (relay.Any(), relay.Any())
    )


@pytest.mark.parametrize("axis", [1, -1])
def test_parts_of_a_symbolic_axis(axis):
    """The program checks that the size can be divided."""
    n, x = symbol("n"), values((3, 6))
    split = lambda v: relay.split(v, 2, axis).astuple()  # noqa: E731 (an argument, not a definition)
    left, right = interpreted(split, x, shapes=[(3, n)])
    np.testing.assert_array_equal(np.concatenate([left, right], 1), x)
    assert left.shape == right.shape == (3, 3)
    assert [field.shape[0] for field in type_of(split(relay.var("x", shape=(3, n)))).fields] == [3, 3]


MATRIX = values((3, 4))
COMPUTED = {
    "full": ("dyn.full", [np.float32(2.5), [2, 3]], {}, np.full((2, 3), 2.5, "float32")),
    "full of a type": ("dyn.full", [np.float32(2.5), [2, 3]], {"dtype": "int8"}, np.full((2, 3), 2, "int8")),
    "one-hot": ("dyn.one_hot", [[1, 0, 2], np.int32(5), np.int32(-1), 3], {}, np.eye(3, dtype="int32")[[1, 0, 2]] * 6 - 1),
    "one-hot columns": (
        "dyn.one_hot",
        [[1, 0, 2], np.float32(5), np.float32(-1), 4],
        {"axis": 0, "dtype": "float32"},
        np.eye(4, dtype="float32")[[1, 0, 2]].T * 6 - 1,
    ),
    "greatest": ("dyn.topk", [MATRIX, 2], {"ret_type": "values"}, -np.sort(-MATRIX, 1)[:, :2]),
    "places of the least": (
        "dyn.topk",
        [MATRIX, 2],
        {"ret_type": "indices", "axis": 0, "is_ascend": True, "dtype": "int64"},
        np.argsort(MATRIX, 0, kind="stable")[:2],
    ),
    "tiles of fewer axes": ("dyn.tile", [MATRIX, [2]], {}, np.tile(MATRIX, 2)),
    "tiles of all axes": ("dyn.tile", [MATRIX, [2, 3]], {}, np.tile(MATRIX, (2, 3))),
    "tiles of more axes": ("dyn.tile", [MATRIX, [2, 1, 3, 1]], {}, np.tile(MATRIX, (2, 1, 3, 1))),
    "slices by sizes": ("dyn.strided_slice", [MATRIX, [1, 0], [1, -1], [1, 1]], {"slice_mode": "size"}, MATRIX[1:2]),
    "slices without elements": ("dyn.strided_slice", [MATRIX, [0, 1], [-1, 0], [1, 1]], {"slice_mode": "size"}, MATRIX[:, 1:1]),
    "slices of the first axis": ("dyn.strided_slice", [MATRIX, [2], [-1], [1]], {"slice_mode": "size"}, MATRIX[2:]),
    "slices by ends": ("dyn.strided_slice", [MATRIX, [2, -1], [0, 0], [-1, -2]], {}, MATRIX[2:0:-1, :0:-2]),
    "a shape": ("vm.shape_of", [MATRIX], {}, np.array([3, 4])),
    "a shape of a type": ("vm.shape_of", [MATRIX], {"dtype": "int32"}, np.array([3, 4], "int32")),
    "zeros": ("dyn.zeros", [[2, 1]], {}, np.zeros((2, 1), "float32")),
    "ones": ("dyn.ones", [[2, 1]], {"dtype": "int8"}, np.ones((2, 1), "int8")),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_operators_of_computed_sizes(name):
    """All operands are constants here."""
    operator, operands, attrs, expected = COMPUTED[name]
    arrays = [np.asarray(value, getattr(value, "dtype", "int64")) for value in operands]
    found = interpreted(lambda: relay.op.call(operator, *map(relay.const, arrays), **attrs))
    found = found[0] if isinstance(found, list) else found
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_negative_padding_takes_elements_away():
    x = values((4, 5))
    found = evaluated(lambda v: relay.nn.pad(v, ((-1, 2), (0, -2)), 3.0), x)
    np.testing.assert_array_equal(found, np.pad(x[1:, :3], ((0, 2), (0, 0)), constant_values=3))


def test_quantized_numbers():
    x, scale, zero = values((3, 4)), np.array([0.1, 0.02, 0.5, 1], np.float32), np.array([0, 3, -7, 100], np.int32)
    found = evaluated(lambda *v: relay.qnn.op.quantize(*v, axis=1, out_dtype="int8"), x, scale, zero)
    expected = onnx_run("QuantizeLinear", x, scale, zero.astype("int8"), axis=1)
    np.testing.assert_array_equal(found, expected)
    back = evaluated(lambda *v: relay.qnn.op.dequantize(*v, axis=1), found, scale, zero)
    np.testing.assert_array_equal(back, onnx_run("DequantizeLinear", found, scale, zero.astype("int8"), axis=1))


def test_missing_bounds_and_sums_of_bools():
    x = values((3, 4, 5))
    np.testing.assert_array_equal(evaluated(lambda v: relay.strided_slice(v, [1, 1, 0], [4, 4]), x), x[1:4, 1:4])
    np.testing.assert_array_equal(evaluated(lambda v: relay.strided_slice(v, [1], [2, 3, 3]), x), x[1:2, :3, :3])
    holds = x > 1.5
    np.testing.assert_array_equal(evaluated(lambda v: relay.sum(v, 1), holds), holds.any(1))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: relay.strided_slice(x, [0, 0, 0], [1, 1, 1]), "strided_slice.*axes: expected a value in .-2, 2., found 2"),
        (lambda x: relay.strided_slice(x, [0], [1], axes=[7]), "strided_slice.*axes: expected a value in .-2, 2., found 7"),
        (lambda x: relay.sliding_window(x, 0, (1, 1), (0, 1)), "strides: expected 2 values of at least 1, found .0, 1."),
        (lambda x: relay.sliding_window(x, 0, (1,), (1,)), "window_shape: expected 2 values of at least 1, found .1,."),
        (lambda x: relay.sliding_window(x, 1, (4,), (1,)), "window_shape.0.: expected at most 3, the size of axis 1, found 4"),
    ],
)
def test_slices_and_windows_that_the_data_have_not(call, message):
    with pytest.raises(relay.TypeInferenceError, match=message):
        type_of(call(relay.var("x", shape=(2, 3))))


def test_windows_of_the_size_of_the_data():
    assert type_of(relay.sliding_window(relay.var("x", shape=(2, 3)), 1, (3,), (1,))) == relay.TensorType((2, 1, 3))


@pytest.mark.parametrize(
    ("call", "count"),
    [(relay.invert_permutation, 1), (lambda x: relay.unique(x)[0], 1), (lambda x: relay.unique(x, is_sorted=False)[0], 2)],
)
def test_positions_that_differ_are_said_to(call, count):
    """They are written in parallel."""
    made = relay.IRModule.from_expr(call(relay.var("x", shape=(4,), dtype="int32")))
    assert str(lower(relay.transform.InferType()(made)).module).count("distinct = true") == count


def test_windows_of_an_unknown_size():
    with pytest.raises(relay.TypeInferenceError, match=r"sliding_window.*data: expected a known size of axis 0"):
        type_of(relay.sliding_window(relay.var("x", shape=(relay.Any(), 3)), 0, (1, 1), (1, 1)))


def test_global_poolings_of_lines_and_volumes():
    line, volume = values((2, 3, 7)), values((1, 4, 3, 5, 2))
    np.testing.assert_array_equal(evaluated(relay.nn.global_max_pool1d, line), line.max(2, keepdims=True))
    np.testing.assert_allclose(evaluated(relay.nn.global_avg_pool1d, line), line.mean(2, keepdims=True), **CLOSE)
    np.testing.assert_array_equal(evaluated(relay.nn.global_max_pool3d, volume), volume.max((2, 3, 4), keepdims=True))
    last = evaluated(lambda v: relay.nn.global_avg_pool3d(v, "NDHWC"), volume)
    np.testing.assert_allclose(last, volume.mean((1, 2, 3), keepdims=True), **CLOSE)
