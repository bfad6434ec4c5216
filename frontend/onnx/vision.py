"""Detection of objects: NonMaxSuppression."""

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, emit, simpler
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.indexing import first_rows
from relayc.frontend.onnx.loops import scalar_of
from relayc.frontend.steps import binary, filled, strided_slice


@converter(since=10, foldable=False)  # the reference implementation orders equal scores otherwise
def NonMaxSuppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    """Without a number of boxes there are none, without a threshold of scores there is no limit to them."""
    if boxes.rank != 3 or scores.rank != 3:
        raise OnnxError(f"expected boxes [batch, boxes, 4] and scores [batch, classes, boxes], found {boxes.type} and {scores.type}")
    if center_point_box not in (0, 1):
        raise OnnxError(f"attribute center_point_box: expected 0 or 1, found {center_point_box}")
    if max_output_boxes_per_class is None:
        return filled((0, 3), 0, "int64")
    batch, count = simpler(boxes.shape[0], scores.shape[0]), simpler(boxes.shape[1], scores.shape[2])
    boxes, scores = assume(boxes, (batch, count, 4)), assume(scores, (batch, scores.shape[1], count))
    selected, total = emit(
        "vision.all_class_non_max_suppression",
        _corners(boxes) if center_point_box else boxes,
        scores,
        binary("maximum", scalar_of(max_output_boxes_per_class, "max_output_boxes_per_class"), 0),
        constant(np.float32(0)) if iou_threshold is None else scalar_of(iou_threshold, "iou_threshold"),
        constant(np.float32(np.nan)) if score_threshold is None else scalar_of(score_threshold, "score_threshold"),
    )
    return first_rows(selected, total)


def _corners(boxes: Tensor) -> Tensor:
    """Boxes (center x, center y, width, height) by two corners; one of a negative size has none."""
    center, size = (strided_slice(boxes, [i], [i + 2], [1], [2]) for i in (0, 2))
    half = binary("divide", binary("maximum", size, 0.0), 2.0)
    return emit("concatenate", emit("subtract", center, half), emit("add", center, half), axis=2)
