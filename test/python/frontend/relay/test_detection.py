"""Operators of object detection at the limits that they compare with."""

import numpy as np
import pytest
from expressions import interpreted

from relayc import relay

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


def test_boxes_whose_class_does_not_count():
    count, rows, where = interpreted(lambda v: relay.vision.get_valid_counts(v, 0.25, -1, 1), BOXES[None])
    assert count[0] == 4
    np.testing.assert_array_equal(where[0], [0, 2, 3, 4, -1, -1, -1])
    np.testing.assert_array_equal(rows[0], [*BOXES[[0, 2, 3, 4]], *[[-1] * 6] * 3])
