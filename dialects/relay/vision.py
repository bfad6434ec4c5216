"""Detection of objects: the choice among boxes that overlap."""

from relayc.dialects.relay.base import Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_equal
from relayc.dialects.relay.kinds import FLOAT, INTEGER, same_dtype
from relayc.dialects.relay.shapes import product


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
