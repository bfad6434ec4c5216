"""Operators that are composed of others: their types, and their results against numpy and ONNX Runtime."""

from itertools import product

import numpy as np
import pytest
from expressions import both_ways, evaluated, interpreted
from oracle import onnx_run, values

from relayc import relay
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
@pytest.mark.parametrize("multiply", [True, False])
def test_correlation(multiply, run):
    a, b = values((2, 3, 6, 7)), values((2, 3, 6, 7), seed=1)
    k, reach, s1, s2, pad = 3, 2, 2, 1, 2
    p, q = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (a, b))
    out = [-(-(n + 2 * pad - 2 * (reach + k // 2)) // s1) for n in (6, 7)]
    expected = np.zeros((2, 25, *out))
    for d, i, j in np.ndindex(25, *out):
        y, x = i * s1 + reach, j * s1 + reach
        dy, dx = (d // 5 - 2) * s2, (d % 5 - 2) * s2
        one, other = p[:, :, y : y + k, x : x + k], q[:, :, y + dy : y + dy + k, x + dx : x + dx + k]
        expected[:, d, i, j] = (one * other if multiply else abs(one - other)).mean((1, 2, 3))
    found = run(lambda u, v: relay.nn.correlation(u, v, k, reach, s1, s2, pad, multiply, "NCHW"), a, b)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_deformable_convolution():
    x, w = values((1, 4, 6, 7)), values((2, 2, 3, 3), seed=1)
    offset = values((1, 2 * 9 * 2, 6, 7), seed=2) * 0.4
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


# ---- images and detection ------------------------------------------------------------------------------------------------------------


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


def random_boxes(batch, count, seed):
    rng = np.random.default_rng(seed)
    corner, size = rng.uniform(0, 8, (batch, count, 2)), rng.uniform(1, 5, (batch, count, 2))
    ids, scores = rng.integers(-1, 2, (batch, count, 1)), rng.permutation(batch * count).reshape(batch, count, 1) / (batch * count) - 0.2
    return np.concatenate([ids, scores, corner, corner + size], 2).astype(np.float32)


def overlap(a, b):
    common = np.maximum(np.minimum(a[4:], b[4:]) - np.maximum(a[2:4], b[2:4]), 0).prod()
    return common / ((a[4:] - a[2:4]).prod() + (b[4:] - b[2:4]).prod() - common)


def greedy(boxes, valid, top, limit, force):
    """The boxes of one entry that are kept, by the order of their scores."""
    order = [i for i in np.argsort(-boxes[:, 1]) if i < valid][: top if top > 0 else None]
    kept = []
    for i in order:
        if boxes[i, 1] > 0 and len(kept) == limit:
            break
        rivals = [k for k in kept if boxes[k, 0] >= 0 and boxes[k, 1] > 0 and (force or boxes[k, 0] == boxes[i, 0])]
        if boxes[i, 1] > 0 and all(overlap(boxes[i], boxes[k]) < 0.3 for k in rivals):
            kept.append(i)
    return kept


@both_ways
@pytest.mark.parametrize(("top", "limit", "force"), [(-1, -1, False), (6, -1, True), (-1, 3, False)])
def test_boxes_that_overlap_better_ones_are_left_out(top, limit, force, run):
    boxes = random_boxes(2, 12, 3)
    boxes[..., 1] = np.abs(boxes[..., 1])
    valid = np.array([12, 9], np.int32)
    where = np.tile(np.arange(100, 112, dtype=np.int32), (2, 1))
    attrs = {"max_output_size": limit, "iou_threshold": 0.3, "force_suppress": force, "top_k": top}
    found, count = run(lambda *v: relay.vision.non_max_suppression(*v, **attrs), boxes, valid, where)
    rows = run(lambda *v: relay.vision.non_max_suppression(*v, return_indices=False, invalid_to_bottom=True, **attrs), boxes, valid, where)
    for entry in range(2):
        kept = greedy(boxes[entry], valid[entry], top, limit, force)
        assert count[entry, 0] == len(kept)
        np.testing.assert_array_equal(found[entry], [*(100 + i for i in kept), *[-1] * (12 - len(kept))])
        np.testing.assert_array_equal(rows[entry], [*boxes[entry][kept], *[[-1] * 6] * (12 - len(kept))])


def test_prior_boxes():
    """Of each pixel one box for each size, and one for each ratio but the first; the corners are shares of the image."""
    found = evaluated(lambda x: relay.vision.multibox_prior(x, sizes=(0.5, 0.25), ratios=(1.0, 4.0)), values((1, 3, 2, 4)))
    expected = []
    for row, column in np.ndindex(2, 4):
        x, y = (column + 0.5) / 4, (row + 0.5) / 2
        for width, height in ((0.25, 0.5), (0.125, 0.25), (0.5, 0.25)):
            expected.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    np.testing.assert_allclose(found, np.array(expected)[None], **CLOSE)


def test_boxes_of_the_best_classes():
    """As TVM finds them, an anchor at a time; the score of one anchor is the threshold."""
    anchors, classes, threshold, variances = 9, 4, 0.375, (0.1, 0.2, 0.3, 0.4)
    rng = np.random.default_rng(3)
    scores = rng.permutation(2 * classes * anchors).reshape(2, classes, anchors).astype("float32") / 96
    scores[0, 1:, 4] = 0.25, 0.375, 0.125
    moves, corners = values((2, anchors * 4)), np.sort(rng.random((1, anchors, 2, 2)), 2).reshape(1, anchors, 4).astype("float32")
    common, ways = {"threshold": threshold, "variances": variances}, ((False, True), (True, False))

    def made(*given):
        calls = [relay.op.call("vision.multibox_transform_loc", *given, keep_background=keep, clip=clip, **common) for keep, clip in ways]
        return relay.Tuple([relay.TupleGetItem(call, i) for call in calls for i in range(2)])

    found = evaluated(made, scores, moves, corners)
    for (keep_background, clip), rows, count, n in ((*way, n) for way in zip(ways, found[::2], found[1::2], strict=True) for n in range(2)):
        expected = []
        for j in range(anchors):
            candidates = scores[n, 0 if keep_background else 1 :, j]
            label, score = int(candidates.argmax()), candidates.max()
            if score < threshold and not (keep_background and label == 0):
                if not keep_background:
                    continue
                label = 0
            (left, top, right, bottom), (x, y, w, h) = corners[0, j], moves[n, 4 * j : 4 * j + 4] * variances
            x, y = x * (right - left) + (left + right) / 2, y * (bottom - top) + (top + bottom) / 2
            w, h = np.exp(w) * (right - left) / 2, np.exp(h) * (bottom - top) / 2
            box = np.array([x - w, y - h, x + w, y + h])
            expected.append([label, score, *(box.clip(0, 1) if clip else box)])
        assert count[n] == len(expected) and (keep_background or 0 < len(expected) < anchors)
        np.testing.assert_allclose(rows[n, : len(expected)], expected, rtol=1e-4, atol=1e-5)


def test_proposals_are_the_best_anchors_of_each_image():
    """Anchors that do not overlap, one for each cell, which the predicted deltas, 0, leave where they are."""
    scores = np.array([[[0.1, 0.7, 0.3], [0.9, 0.2, 0.5]], [[0.8, 0.1, 0.2], [0.3, 0.6, 0.4]]], np.float32)
    given = np.stack([1 - scores, scores], 1), np.zeros((2, 4, 2, 3), np.float32), np.array([[32, 48, 1]] * 2, np.float32)
    attrs = {"scales": (1.0,), "ratios": (1.0,), "feature_stride": 16, "rpn_post_nms_top_n": 4, "rpn_min_size": 16, "rpn_pre_nms_top_n": 0}
    found = evaluated(lambda *tensors: relay.vision.proposal(*tensors, **attrs), *given)
    expected = []
    for image in range(2):
        for place in np.argsort(-scores[image].ravel())[:4]:
            row, column = divmod(int(place), 3)
            expected.append((image, 16 * column, 16 * row, 16 * column + 15, 16 * row + 15))
    np.testing.assert_array_equal(found, expected)


def test_boxes_of_a_score():
    boxes = random_boxes(2, 7, 1)
    boxes[:, 2, :2] = 0, 0.25
    count, rows, where = evaluated(lambda v: relay.vision.get_valid_counts(v, 0.25, 0, 1), boxes)
    for entry in range(2):
        kept = [i for i, b in enumerate(boxes[entry]) if b[1] > 0.25 and b[0] >= 0]
        assert count[entry] == len(kept)
        np.testing.assert_array_equal(where[entry], [*kept, *[-1] * (7 - len(kept))])
        np.testing.assert_array_equal(rows[entry][: len(kept)], boxes[entry][kept])
        np.testing.assert_array_equal(rows[entry][len(kept) :], -1)
    late = evaluated(lambda v, t: relay.vision.get_valid_counts(v, t, 0, 1), boxes, np.float32(0.25))
    for found, wanted in zip(late, (count, rows, where), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_space_to_depth_as_darknet_has_it():
    x = values((1, 4, 4, 6))
    found = evaluated(lambda v: relay.vision.yolo_reorg(v, 2), x)
    expected = x.reshape(1, 1, 4, 2, 6, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 16, 2, 3)
    np.testing.assert_array_equal(found, expected)


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


@pytest.mark.parametrize("count", [4, relay.Any()])
def test_boxes_of_each_image_as_tensorflow_reads_them(count):
    boxes, scores = relay.var("boxes", shape=(2, count, 4)), relay.var("scores", shape=(2, 3, count))
    chosen, total = relay.vision.all_class_non_max_suppression(boxes, scores, 2, 0.5, 0.3)
    found = relay.vision.all_class_non_max_suppression(boxes, scores, 2, 0.5, 0.3, output_format="tensorflow")
    given = np.abs(values((2, 4, 4))), np.abs(values((2, 3, 4), seed=1))
    function = relay.Function([boxes, scores], relay.Tuple([chosen, total, *found]))
    rows, count, pairs, confidence, counts = (v.numpy() for v in relay.create_executor("vm").evaluate(function)(*given))
    assert pairs.shape == (2, 12, 2) and confidence.shape == (2, 12) and 0 < count[0] == counts.sum()
    for image, number in enumerate(counts):
        own = rows[: count[0]][rows[: count[0], 0] == image]
        np.testing.assert_array_equal(pairs[image], np.pad(own[:, 1:], ((0, 12 - number), (0, 0))))
        np.testing.assert_array_equal(confidence[image], np.pad(given[1][image, own[:, 1], own[:, 2]], (0, 12 - number)))
    with pytest.raises(relay.TypeInferenceError, match="output_format: expected onnx or tensorflow, found torch"):
        wrong = relay.vision.all_class_non_max_suppression(boxes, scores, output_format="torch")
        relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([boxes, scores], wrong[0])))


def _regular(boxes, scores, per_class, most, classes, overlap, least):
    """What regular_non_max_suppression gives for an image, box by box."""

    def shared(a, b):
        areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
        if min(areas) <= 0:
            return 0
        sides = [max(min(a[2 + i], b[2 + i]) - max(a[i], b[i]), 0) for i in (0, 1)]
        return sides[0] * sides[1] / (sum(areas) - sides[0] * sides[1])

    found = []
    for c in range(classes):
        own = scores[:, scores.shape[1] - classes + c]
        kept = []
        for i in sorted(np.flatnonzero(own >= np.float32(least)), key=lambda i: -own[i]):
            if len(kept) < per_class and all(shared(boxes[i], boxes[j]) <= overlap for j in kept):
                kept.append(i)
        found += [(own[i], c, i) for i in kept]
    return sorted(found, key=lambda one: -one[0])[:most]


@both_ways
@pytest.mark.parametrize("most", [4, 40])
def test_regular_suppression(most, run):
    rng = np.random.default_rng(5)
    corners = rng.integers(0, 5, (2, 7, 4)).astype(np.float32)
    boxes = np.concatenate([np.minimum(corners[..., :2], corners[..., 2:]), np.maximum(corners[..., :2], corners[..., 2:]) + 1], -1)
    boxes[0, 2] = boxes[0, 2, [2, 3, 0, 1]]  # the wrong way round
    scores = (rng.integers(0, 8, (2, 7, 4)) / 8).astype(np.float32)
    n, b = symbol("n"), symbol("b")
    for shapes in (None, [(b, n, 4), (b, n, 4)]):
        found = run(lambda *v: relay.vision.regular_non_max_suppression(*v, 2, most, 3, 0.4, 0.25), boxes, scores, shapes=shapes)
        for image in range(2):
            expected = _regular(boxes[image], scores[image], 2, most, 3, 0.4, 0.25)
            count = len(expected)
            assert found[3][image] == count and [part.shape[1] for part in found[:3]] == [most] * 3
            np.testing.assert_array_equal(found[0][image, :count], [boxes[image, i] for _, _, i in expected])
            np.testing.assert_array_equal(found[1][image, :count], [c for _, c, _ in expected])
            np.testing.assert_array_equal(found[2][image, :count], [score for score, _, _ in expected])
            assert not any(part[image, count:].any() for part in found[:3])


def regions(scores, moves, info, ratios, scales, stride, threshold, before, after, smallest, adds=False):
    """The proposals of one image, a box at a time: scores [2 * anchors, rows, columns], moves [4 * anchors, rows, columns]."""
    anchors, (rows, columns), boxes = len(ratios) * len(scales), scores.shape[1:], []
    height, width, scale = info
    for row, column, (a, (ratio, size)) in product(range(rows), range(columns), enumerate(product(ratios, scales))):
        wide = np.floor(np.sqrt(np.floor(stride * stride / ratio)) + 0.5)
        w, h = wide * size, np.floor(wide * ratio + 0.5) * size
        x, y = ((stride - 1) / 2 + place * stride for place in (column, row))
        dx, dy, dw, dh = moves[4 * a : 4 * a + 4, row, column]
        # A box has its last row and column, and its centre is half a pixel before the middle of its extent.
        if not adds:
            x, y, w, h = x + dx * w, y + dy * h, np.exp(dw) * w, np.exp(dh) * h
        corners = np.array([x - (w - 1) / 2, y - (h - 1) / 2, x + (w - 1) / 2, y + (h - 1) / 2])
        corners += [dx, dy, dw, dh] if adds else 0
        box = np.clip(corners, 0, [width - 1, height - 1, width - 1, height - 1])
        score = scores[anchors + a, row, column]
        if min(box[2] - box[0], box[3] - box[1]) + 1 < smallest * scale:
            box, score = box + np.array([-1, -1, 1, 1]) * smallest * scale / 2, -1
        if row >= int(height / stride) or column >= int(width / stride):
            score = -1
        boxes.append((score, box))
    boxes = sorted(boxes, key=lambda found: -found[0])[:before]
    kept = []
    for _, box in boxes:
        if all(shared(box, other) <= threshold for other in kept):
            kept.append(box)
    return [kept[i % len(kept)] for i in range(after)]


def shared(a, b):
    """The part of two boxes that they share, where a box holds its last row and column."""
    w, h = (max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + 1, 0) for i in (0, 1))
    areas = ((c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b))
    return w * h / (sum(areas) - w * h)


@both_ways
@pytest.mark.parametrize(("threshold", "after", "adds"), [(0.3, 12, False), (0.7, 6, False), (0.5, 9, True)])
def test_proposals_of_regions(threshold, after, adds, run):
    """The second image has fewer rows and columns than the scores; some boxes are too small."""
    attrs = {"scales": (1.0, 2.0), "ratios": (0.5, 1.0, 2.0), "feature_stride": 8, "threshold": threshold}
    rng = np.random.default_rng(7)
    scores = rng.permutation(2 * 12 * 3 * 4).reshape(2, 12, 3, 4).astype("float32") / 300
    moves = rng.uniform(-0.5, 0.5, (2, 24, 3, 4)).astype("float32") * (4 if adds else 1)
    info = np.array([[24, 32, 1], [23, 31, 1.5]], "float32")
    sizes = {"rpn_pre_nms_top_n": 40, "rpn_post_nms_top_n": after, "rpn_min_size": 6, "iou_loss": adds}
    found = run(lambda *v: relay.vision.proposal(*v, **attrs, **sizes), scores, moves, info)
    expected = [
        [i, *box]
        for i, (s, m, entry) in enumerate(zip(scores, moves, info, strict=True))
        for box in regions(s, m, entry, attrs["ratios"], attrs["scales"], 8, threshold, 40, after, 6, adds)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
