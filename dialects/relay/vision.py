"""Detection of objects: the choice among boxes that overlap, and the contents of regions."""

from relayc.dialects.relay.base import Ints, Op, Operand, Pattern, Size, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least, require_equal
from relayc.dialects.relay.kinds import FLOAT, INTEGER, same_dtype
from relayc.dialects.relay.shapes import product
from relayc.dialects.relay.window import per_axis


class AllClassNonMaxSuppression(Op, name="vision_all_class_non_max_suppression", relay_name="vision.all_class_non_max_suppression"):
    """Of each class, the boxes of the highest scores that do not overlap one of a higher score (ONNX NonMaxSuppression).

    A box is chosen if its score is above `score_threshold`, and if its intersection with each box of the class that is chosen already is
    at most `iou_threshold` of their union. Among equal scores the box of the lower index comes first.

    Operands: boxes [batch, boxes, 4], each two opposite corners (y, x, y, x); scores [batch, classes, boxes]; and scalars:
    max_output_boxes_per_class, where a negative number is no limit, iou_threshold, and score_threshold, where NaN is none.

    Results: selected_indices int64 [batch * classes * boxes, 3], of which the first rows are (batch, class, box) of what is chosen, by
    batch, class and descending score, and the other ones are left as memory has them; num_total_detections int64 [1], their number.
    """

    boxes: Operand
    scores: Operand
    max_output_boxes_per_class: Operand
    iou_threshold: Operand
    score_threshold: Operand
    pattern = Pattern.OPAQUE
    result_names = ("selected_indices", "num_total_detections")
    required_results = 2

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        boxes, scores = op.boxes, op.scores
        FLOAT.require("boxes", boxes)
        dtype = same_dtype(boxes=boxes, scores=scores)
        check(boxes.rank == 3 and boxes.shape[2] == 4, "boxes", "a shape [batch, boxes, 4]", boxes)
        check(scores.rank == 3, "scores", "a shape [batch, classes, boxes]", scores)
        for i, j in ((0, 0), (2, 1)):
            require_equal(scores.shape[i], boxes.shape[j], f"scores, dimension {i}", boxes.shape[j], scores)
        INTEGER.require("max_output_boxes_per_class", op.max_output_boxes_per_class)
        check(op.max_output_boxes_per_class.rank == 0, "max_output_boxes_per_class", "rank 0", op.max_output_boxes_per_class)
        for name, threshold in (("iou_threshold", op.iou_threshold), ("score_threshold", op.score_threshold)):
            check(threshold == TensorType((), dtype), name, TensorType((), dtype), threshold)
        return [TensorType((product(scores.shape), 3), "int64"), TensorType((1,), "int64")]


MOST_SAMPLES = 1024
"""Along an axis of a part of a region, of any size."""


class _Regions(Op):
    """What the poolings of regions share.

    Operands: data [batch, channels, height, width] and rois [regions, 5], of one float type. A region is the number of an image of the
    batch, which is clamped to those there are, and its corners x0, y0, x1, y1.

    Attributes:
      pooled_size: rows and columns of the result [regions, channels, *pooled_size].
      spatial_scale: what corners are multiplied with to be positions in data.
      layout: NCHW.
    """

    data: Operand
    rois: Operand
    pooled_size: Ints
    spatial_scale: float
    layout: str = "NCHW"
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    @staticmethod
    def infer(op: View) -> TensorType:
        data, rois = op.data, op.rois
        FLOAT.require("data", data)
        same_dtype(data=data, rois=rois)
        check(op.layout == "NCHW", "layout", "NCHW", op.layout)
        check(data.rank == 4, "data", "a shape [batch, channels, height, width]", data)
        check(rois.rank == 2 and rois.shape[1] == 5, "rois", "a shape [regions, 5]", rois)
        size = per_axis(op.pooled_size, 2, "pooled_size")
        for axis in (0, 2, 3):
            require_at_least(1, data.shape[axis], f"data, dimension {axis}", "at least one element", data)
        return data.with_shape((rois.shape[0], data.shape[1], *size))


class RoiAlign(_Regions, name="vision_roi_align", relay_name="vision.roi_align"):
    """Of each part of a region the mean (or the maximum) of samples between elements of data (Relay vision.roi_align; ONNX RoiAlign).

    Attributes:
      sample_ratio: samples along each axis of a part; where it is not positive, as many as a part has elements, rounded up, at most 1024.
      most_samples: not in Relay: what these are at most, where it is known; parts are computed side by side then.
      mode: "avg", "max" of the samples, or "max_neighbor": of the four neighbours of each sample, each times its weight (as ONNX has it).
      aligned: not in Relay: whether positions are half an element less, and regions may be smaller than one element.
    """

    sample_ratio: int = -1
    mode: str = "avg"
    aligned: bool = False
    most_samples: Size | None = None

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.mode in ("avg", "max", "max_neighbor"), "mode", "avg, max or max_neighbor", op.mode)
        require_at_least(0, op.most_samples, "most_samples", "no negative number", op.most_samples)
        return _Regions.infer(op)


class RoiPool(_Regions, name="vision_roi_pool", relay_name="vision.roi_pool"):
    """The largest element of data in each part of a region, 0 of a part outside (Relay vision.roi_pool; ONNX MaxRoiPool)."""
