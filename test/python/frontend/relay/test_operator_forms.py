"""Forms of operators that only Relay has, many in one program: against numpy and ONNX Runtime."""

import numpy as np
import pytest
from expressions import evaluated
from oracle import onnx_run, values

from relayc import relay
from relayc.frontend.relay.lowering import lower
from relayc.pipelines.evaluate.relay import RelayInterpreter
from relayc.symbolic import symbol


def check(made, expected, *arrays):
    """Asserts what expressions of variables give for arrays, in one program."""
    found = evaluated(lambda *v: relay.Tuple(made(*v)), *arrays)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6, err_msg=f"result {i}")
        assert a.dtype == b.dtype, i


def test_shapes_and_padding():
    x, like, by = values((3, 4)), values((2, 3, 4)), np.array([5], np.float32)

    def made(x, like, by):
        return [
            relay.broadcast_to_like(x, like),
            relay.nn.mirror_pad(x, ((1, 2), (0, 3)), "REFLECT"),
            relay.nn.mirror_pad(x, ((1, 2), (0, 3)), "SYMMETRIC"),
            relay.nn.pad(x, ((1, 0), (0, 2)), by),
            relay.strided_slice(like, [0, 0, 0], [2, 3, 4], [1, 2]),
            relay.strided_slice(like, [0, 1, 0], [2, 1, -1], [1], slice_mode="size"),
            relay.strided_slice(like, [0, 0, 0], [2, 3, 4], [2]),
            relay.strided_set(x, relay.const(np.zeros((2, 3), np.float32)), [0, 1], [3], [2]),
        ]

    pads = (1, 2), (0, 3)
    expected = [np.broadcast_to(x, like.shape), np.pad(x, pads, "reflect"), np.pad(x, pads, "symmetric")]
    expected += [np.pad(x, ((1, 0), (0, 2)), constant_values=5), like[:, ::2], like[:, 1:2], like[::2]]
    expected.append(x.copy())
    expected[-1][::2, 1:] = 0
    check(made, expected, x, like, by)


def test_padding_that_takes_away_from_symbols():
    x = values((5, 3))
    found = evaluated(lambda v: relay.nn.pad(v, ((-1, -2), (0, 1)), 3.0), x, shapes=[(symbol("n"), 3)])
    np.testing.assert_array_equal(found, np.pad(x[1:3], ((0, 0), (0, 1)), constant_values=3))
    short = relay.nn.pad(relay.var("x", shape=(symbol("n"), 3)), ((-1, -2), (0, 1)), 3.0)
    assert relay.transform.InferTypeLocal(short) == relay.TensorType((symbol("n") - 3, 4))


def test_positions_are_of_any_type():
    x = np.random.default_rng(0).permutation(12).reshape(3, 4).astype(np.float32)
    rows, wanted = np.sort(values((2, 5), seed=1), -1), values((2, 3), seed=2)
    wanted[0, 1] = rows[0, 3]

    def made(x, rows, wanted):
        best = relay.topk(x, relay.const([2]), axis=1, dtype="float32")
        return [
            relay.argsort(x, axis=0, dtype="float32"),
            *(best[i] for i in range(2)),
            relay.topk(x, 3, axis=0, ret_type="values", is_ascend=True, dtype="float32"),
            relay.topk(x, 3, axis=0, ret_type="indices", dtype="float32"),
            relay.searchsorted(rows, wanted),
            relay.searchsorted(rows, wanted, right=True, dtype="int64"),
        ]

    order = np.argsort(-x, 1)[:, :2]
    expected = [np.argsort(x, 0).astype(np.float32), np.take_along_axis(x, order, 1), order.astype(np.float32), np.sort(x, 0)]
    expected += [np.argsort(-x, 0).astype(np.float32)]
    for side, dtype in (("left", np.int32), ("right", np.int64)):
        expected.append(np.stack([np.searchsorted(a, b, side) for a, b in zip(rows, wanted, strict=True)]).astype(dtype))
    check(made, expected, x, rows, wanted)


def test_images():
    x, at = values((1, 2, 5, 6)), np.random.default_rng(1).uniform(-1.2, 1.2, (1, 3, 4, 2)).astype(np.float32)
    regions = np.array([[0, 0, 1, 4, 3], [0, 1, 0, 5, 4]], np.float32)

    def made(x, grid, regions):
        last = relay.transpose(x, (0, 2, 3, 1))
        return [
            relay.image.grid_sample(x, grid, method="nearest"),
            relay.vision.roi_align(last, regions, (2, 3), 1.0, 2, layout="NHWC", mode="avg"),
        ]

    nearest = onnx_run("GridSample", x, at, mode="nearest", align_corners=1)
    aligned = onnx_run(
        "RoiAlign", x, regions[:, 1:].copy(), np.zeros(2, np.int64), output_height=2, output_width=3, sampling_ratio=2, opset=10
    )
    check(made, [nearest, aligned.transpose(0, 2, 3, 1)], x, at.transpose(0, 3, 1, 2).copy(), regions)


def test_integers_are_divided_towards_zero():
    a, b = (np.array(v, np.int32) for v in zip(*[(p, q) for p in (-7, -6, 0, 5, 7) for q in (-3, 2, 7)], strict=True))
    exact = np.trunc(a / b)
    x, y = a.astype(np.float32), b.astype(np.float32)

    def made(a, b, x, y):
        return [relay.trunc_divide(a, b), relay.trunc_mod(a, b), relay.trunc_divide(x, y), relay.trunc_mod(x, y)]

    expected = [exact.astype(np.int32), (a - exact * b).astype(np.int32), exact.astype(np.float32), np.fmod(x, y)]
    check(made, expected, a, b, x, y)


@pytest.mark.parametrize(("is_left", "is_right"), [(False, True), (True, False), (True, True)])
def test_fixed_point_products_of_axes(is_left, is_right):
    x = np.array([[-7, 1000, 5], [3, -(2**20), 1]], np.int32)
    m, left, right = (np.array(v, np.int32) for v in ([1 << 30, 1395864371, 1 << 29], [0, 2, 1], [3, 0, 1]))

    flags = {f"is_{name}shift_required": True for name, is_there in (("l", is_left), ("r", is_right)) if is_there}

    def made(x, m, left, right):
        return relay.fixed_point_multiply_per_axis(x, m, left, right, axes=(-1,), **flags)

    total = 31 + is_right * right.astype(object)
    expected = (x.astype(object) * m * 2 ** (is_left * left.astype(object)) + 2 ** (total - 1)) // 2**total
    np.testing.assert_array_equal(evaluated(made, x, m, left, right), expected.astype(np.int64))


def test_sizes_that_the_program_computes():
    sizes, depth, places = np.array([2, 3]), np.array(4), np.array([1, 3, 4], np.int32)
    x, begin, taken = values((4, 6)), np.array([1, 2]), np.array([-1, 0])

    def made(sizes, depth, places, x, begin, taken):
        on, off = relay.const(2.0), relay.const(-1.0)
        return [
            relay.full(relay.const(1.5), sizes, "float32"),
            relay.one_hot(places, on, off, depth, -1, "float32"),
            relay.strided_slice(x, begin, taken, None, slice_mode="size"),
        ]

    hot = np.where(places[:, None] == np.arange(4), np.float32(2), np.float32(-1))
    check(made, [np.full((2, 3), 1.5, np.float32), hot, x[1:, 2:2]], sizes, depth, places, x, begin, taken)


def test_suppression_in_a_class_and_between_all():
    """Boxes of class, score and corners, which all overlap; the one without a class is no rival."""
    boxes = np.array([[[0, 0.9, 0, 0, 4, 4], [1, 0.8, 0, 0, 4, 4], [0, 0.7, 0, 0, 4, 3], [-1, 0.95, 0, 0, 4, 4]]], np.float32)
    count, places = np.array([4], np.int32), np.arange(4, dtype=np.int32)[None]

    given = [relay.var(f"x{i}", shape=a.shape, dtype=a.dtype.name) for i, a in enumerate((boxes, count, places))]
    calls = [relay.vision.non_max_suppression(*given, -1, 0.5, force_suppress=force, top_k=-1) for force in (False, True)]
    program = lower(relay.IRModule.from_expr(relay.Function(given, relay.Tuple([call[i] for call in calls for i in range(2)]))))
    found = RelayInterpreter(program)("main", [boxes, count, places])
    assert [part.tolist() for part in found] == [[[3, 0, 1, -1]], [[3]], [[3, 0, -1, -1]], [[2]]]


BOXES, SCORES = relay.var("boxes", shape=(1, 4, 4)), relay.var("scores", shape=(1, 4, 2))


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (relay.invert_permutation(relay.var("x", shape=(5,), dtype="int64")), 1),
        (relay.unique(relay.var("x", shape=(5,), dtype="int64"), is_sorted=False).astuple(), 2),
        (relay.vision.regular_non_max_suppression(BOXES, SCORES, 1, 2, 2, 0.5, 0.0).astuple(), 1),
    ],
)
def test_elements_that_are_written_once_are_written_in_any_order(made, count):
    assert str(lower(relay.IRModule.from_expr(made)).module).count("distinct = true") == count


def test_positions_have_a_number_for_each_axis():
    at, what = relay.var("at", shape=(2, 3), dtype="int64"), relay.var("what", shape=(2,))
    with pytest.raises(relay.TypeInferenceError, match="scatter_nd"):
        relay.transform.InferTypeLocal(relay.sparse_to_dense(at, (3, 4), what, relay.const(0.0)))
