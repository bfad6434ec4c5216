"""Detection of objects: NonMaxSuppression, and the contents of regions, RoiAlign and MaxRoiPool."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from relayc.dialects.relay.vision import MOST_SAMPLES
from relayc.frontend.common.positions import first_rows
from relayc.frontend.converter import Tensor, assume, constant, emit, simpler
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.loops import scalar_of
from relayc.frontend.sizes import size
from relayc.frontend.steps import add, binary, cast, filled, multiply, reshape, strided_slice
from relayc.symbolic import Size


@converter(since=10, foldable=False)  # the reference implementation orders equal scores otherwise
def NonMaxSuppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    *,
    center_point_box: bool = False,
) -> Tensor:
    """The default number of boxes is 0; without a score threshold, all scores are accepted."""
    if boxes.rank != 3 or scores.rank != 3:
        raise OnnxError(f"expected boxes [batch, boxes, 4] and scores [batch, classes, boxes], found {boxes.type} and {scores.type}")
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


@converter(since=10)
def RoiAlign(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """Before operator set 16 there is no attribute for the coordinates; the mode is output_half_pixel."""
    if current().opset < 16:
        coordinate_transformation_mode = "output_half_pixel"
    if rois.rank != 2 or batch_indices.rank != 1:
        raise OnnxError(f"expected rois [regions, 4] and batch_indices [regions], found {rois.type} and {batch_indices.type}")
    rois = assume(rois, (simpler(rois.shape[0], batch_indices.shape[0]), rois.shape[1]))
    wide = "float64" if x.dtype == "float64" else "float32"  # which has the numbers of all images of a batch
    images = reshape(cast(assume(batch_indices, (rois.shape[0],)), wide), (rois.shape[0], 1))
    rois, pooled = cast(rois, wide), (output_height, output_width)
    found = emit(
        "vision.roi_align",
        cast(x, wide),
        emit("concatenate", images, rois, axis=1),
        pooled_size=pooled,
        spatial_scale=spatial_scale,
        most_samples=None if sampling_ratio > 0 else _most_samples(rois, spatial_scale, pooled),
        sample_ratio=sampling_ratio or -1,
        mode="max_neighbor" if mode.lower() == "max" else mode.lower(),
        aligned=coordinate_transformation_mode == "half_pixel",
    )
    return cast(found, x.dtype)


def _most_samples(rois: Tensor, scale: float, pooled: tuple[int, int]) -> Size:
    """How many samples a part of a region has at most along an axis: a size of the program. Small regions may count as an element."""
    first, last = (strided_slice(rois, [i], [i + 2], [1], [1]) for i in (0, 2))
    extent = emit("max", emit("subtract", last, first), axis=(0,))
    parts = multiply(extent, constant(scale / np.array([pooled[1], pooled[0]]), rois.dtype))
    # The extents of parts are differences of rounded corners: what they may be more than these ones.
    margin = multiply(emit("max", emit("abs", rois), axis=(0, 1)), scale * 1e-6)
    count = emit("ceil", add(emit("max", parts, axis=(0,)), margin))
    return size(cast(emit("clip", count, a_min=1.0, a_max=float(MOST_SAMPLES)), "int64"), "samples")


@converter()
def MaxRoiPool(x: Tensor, rois: Tensor, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Tensor:
    return emit("vision.roi_pool", x, rois, pooled_size=tuple(pooled_shape), spatial_scale=spatial_scale)
