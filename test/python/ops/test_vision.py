"""Numerics of vision.all_class_non_max_suppression, against its definition in numpy."""

import numpy as np
import pytest
from support import run_program

from relayc.dialects.relay import RelayError, build


def chosen(boxes, scores, most, iou, threshold):
    """(batch, class, box) of what is chosen."""
    low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    area = (high - low).prod(-1)
    found = []
    for b, c in np.ndindex(scores.shape[:2]):
        kept = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            common = np.maximum(np.minimum(high[b, i], high[b, kept]) - np.maximum(low[b, i], low[b, kept]), 0).prod(-1)
            fits = len(kept) < most or most < 0
            if fits and not scores[b, c, i] <= threshold and not (common > iou * (area[b, i] + area[b, kept] - common)).any():
                kept.append(i)
        found += [(b, c, i) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def select(boxes, scores, most, iou, threshold):
    arrays = (boxes, scores, most, np.asarray(iou, boxes.dtype), np.asarray(threshold, boxes.dtype))
    rows, count = run_program(lambda *values: list(build("vision.all_class_non_max_suppression", *values)), arrays)
    assert rows.shape == (scores.size, 3) and count.shape == (1,) and rows.dtype == count.dtype == np.int64
    return rows[: count[0]]


def drawn(batch, classes, count, dtype="float32"):
    """Corners on a grid of eighths, in any order, and scores with ties: what is computed of them is exact, and differs from thresholds."""
    rng = np.random.default_rng(count)
    return (rng.integers(0, 9, (batch, count, 4)) / 8).astype(dtype), (rng.integers(0, 9, (batch, classes, count)) / 8).astype(dtype)


@pytest.mark.parametrize(("most", "iou", "threshold"), [(5, 0.3, 0.2), (-1, 0.51, np.nan), (1, 0.9, -np.inf), (100, 0.0, 0.9)])
def test_boxes_of_several_batches_and_classes(most, iou, threshold):
    boxes, scores = drawn(2, 3, 61)
    found = select(boxes, scores, np.int64(most), iou, threshold)
    assert len(found)
    np.testing.assert_array_equal(found, chosen(boxes, scores, most, iou, threshold))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(dtype):
    boxes, scores = drawn(1, 2, 31, dtype)
    found = select(boxes, scores, np.uint8(7), 0.3, 0.1)
    np.testing.assert_array_equal(found, chosen(boxes.astype("float64"), scores.astype("float64"), 7, 0.3, 0.1))


@pytest.mark.parametrize(("most", "threshold"), [(0, 0.0), (9, 2.0)])
def test_nothing_is_chosen(most, threshold):
    assert select(*drawn(2, 2, 7), np.int32(most), 0.5, threshold).shape == (0, 3)


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_no_boxes(shape):
    assert select(*drawn(*shape), np.int64(3), 0.5, 0.0).shape == (0, 3)


@pytest.mark.parametrize("shape", [(1, 5), (1, 1, 5, 5)])
def test_scores_are_of_batches_classes_and_boxes(shape):
    with pytest.raises(RelayError, match=r"scores: expected a shape \[batch, classes, boxes\]"):
        select(np.zeros((1, 5, 4), np.float32), np.zeros(shape, np.float32), np.int64(3), 0.5, 0.0)
