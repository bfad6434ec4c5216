"""Operators of object detection."""

from itertools import product

import numpy as np
import pytest
from expressions import both_ways, evaluated, interpreted
from oracle import values

from relayc import relay
from relayc.frontend.converter import constant
from relayc.frontend.relay.op.composed import COMPOSED, composed, detection
from relayc.symbolic import symbol

CLOSE = {"rtol": 2e-5, "atol": 2e-5}
"""Sums of a few products of float32."""

BOXES = np.array(
    [
        [0, 0.875, 0, 0, 2, 1],
        [0, 0, 0, 0, 2, 1],  # no score
        [0, 0.75, 0, 0, 1, 1],  # half of the first one
        [-1, 0.625, 2, 1, 0, 0],  # no class, and the corners in the other order
        [1, 0.5, 0, 0, 2, 1],
        [2, 0.25, 5, 5, 5, 5],  # no area
        [2, 0.125, 5, 5, 5, 5],
    ],
    np.float32,
)


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"iou_threshold": 0.5}, [0, 3, 4, 5, 6, 1]),
        ({"iou_threshold": 0.625}, [0, 2, 3, 4, 5, 6, 1]),
        ({"iou_threshold": 0.5, "force_suppress": True}, [0, 5, 6, 1]),
        ({"iou_threshold": 0.5, "id_index": -1}, [0, 5, 6, 1]),
        ({"iou_threshold": 0.0}, [0, 2, 3, 4, 5, 6, 1]),
        ({"iou_threshold": 0.5, "max_output_size": 2}, [0, 3]),
        ({"iou_threshold": 0.5, "top_k": 2}, [0]),
        ({"iou_threshold": 0.5, "top_k": 0}, [0, 3, 4, 5, 6, 1]),
    ],
)
def test_overlaps_of_the_threshold(attrs, expected):
    """Boxes without a score stay: they are no candidates."""
    valid, where = np.array([7], np.int32), np.arange(7, dtype=np.int32)[None]
    found, count = interpreted(lambda *v: relay.vision.non_max_suppression(*v, **attrs), BOXES[None], valid, where)
    assert count[0, 0] == len(expected)
    np.testing.assert_array_equal(found[0], [*expected, *[-1] * (7 - len(expected))])
    rows = interpreted(lambda *v: relay.vision.non_max_suppression(*v, **attrs, return_indices=False), BOXES[None], valid, where)
    in_order = np.argsort(-BOXES[:, 1])
    np.testing.assert_array_equal(rows[0], np.where(np.isin(in_order, expected)[:, None], BOXES[in_order], -1))


def test_boxes_whose_class_does_not_count():
    count, rows, where = interpreted(lambda v: relay.vision.get_valid_counts(v, 0.25, -1, 1), BOXES[None])
    assert count[0] == 4
    np.testing.assert_array_equal(where[0], [0, 2, 3, 4, -1, -1, -1])
    np.testing.assert_array_equal(rows[0], [*BOXES[[0, 2, 3, 4]], *[[-1] * 6] * 3])


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


def test_proposals_that_overlap_by_the_threshold_are_kept():
    """16 of 32 columns; a delta that is added moves a corner to the edge of the image."""
    scores = np.array([[[[0, 0]], [[0.9, 0.8]]]], np.float32)
    moves, info = np.zeros((1, 4, 1, 2), np.float32), np.array([[16, 32, 1]], np.float32)
    moves[0, 0, 0, 1] = -16
    attrs = {"scales": (1.0,), "ratios": (1.0,), "rpn_post_nms_top_n": 2, "threshold": 0.5, "iou_loss": True}
    found = interpreted(lambda *tensors: relay.vision.proposal(*tensors, **attrs), scores, moves, info)
    np.testing.assert_array_equal(found, [[0, 0, 0, 15, 15], [0, 0, 0, 31, 15]])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_loop_has_as_many_rounds_as_it_says(count):
    rounds = detection._loop

    @composed("test.rounds")
    def counted(x):
        return rounds(constant(count, "int32"), [x], lambda number, total: (total + number + 1,))[0].tensor

    try:
        assert interpreted(lambda x: relay.op.call("test.rounds", x), np.int32(7)) == 7 + count * (count + 1) // 2
    finally:
        del COMPOSED["test.rounds"]


def test_prior_boxes():
    """Of each pixel one box for each size, and one for each ratio but the first; the corners are shares of the image."""
    found = evaluated(lambda x: relay.vision.multibox_prior(x, sizes=(0.5, 0.25), ratios=(1.0, 4.0)), values((1, 3, 2, 4)))
    expected = []
    for row, column in np.ndindex(2, 4):
        x, y = (column + 0.5) / 4, (row + 0.5) / 2
        for width, height in ((0.25, 0.5), (0.125, 0.25), (0.5, 0.25)):
            expected.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    np.testing.assert_allclose(found, np.array(expected)[None], **CLOSE)
    attrs = {"steps": (0.0, 0.125), "offsets": (0.25, 0.75), "sizes": (0.5,), "clip": True}
    expected = []
    for row, column in np.ndindex(2, 4):
        x, y = (column + 0.75) * 0.125, (row + 0.25) / 2
        expected.append(np.clip((x - 0.125, y - 0.25, x + 0.125, y + 0.25), 0, 1))
    found = interpreted(lambda x: relay.vision.multibox_prior(x, **attrs), values((1, 3, 2, 4)))
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
        attrs = [common, {**common, "keep_background": True, "clip": False}]
        calls = [relay.op.call("vision.multibox_transform_loc", *given, **each) for each in attrs]
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
