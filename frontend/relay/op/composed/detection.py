"""Operators of object detection: boxes, their scores, and which of them are kept."""

from collections.abc import Callable, Sequence
from math import floor, sqrt

import numpy as np

from relayc.dialects.relay.structure import While
from relayc.dialects.relay.tuples import fields_of, make_tuple
from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import Composed, composed
from relayc.frontend.relay.op.composed.terms import Term, stacked
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import broadcast_to, cast, filled, reshape, strided_slice, transpose
from relayc.symbolic import Size


def _loop(count: Tensor, init: Sequence[Tensor], body: Callable[..., Sequence[Term]]) -> tuple[Term, ...]:
    """Calls body(number, *carried) `count` times (an int32 scalar): returns the last carried values."""

    def terms(value: object) -> list[Term]:
        return [Term(Tensor(TensorType.of(v), value=v)) for v in fields_of(value)]

    def goes_on(value: object) -> object:
        number, *_ = terms(value)
        return (number < Term(count)).tensor.value

    def step(value: object) -> object:
        number, *carried = terms(value)
        return make_tuple([(number + 1).tensor.value, *(t.tensor.value for t in body(number, *carried))])

    found = While.create(make_tuple([constant(0, "int32").value, *(t.value for t in init)]), goes_on, step)
    return tuple(terms(found)[1:])


def _rows(data: Tensor, order: Tensor) -> Tensor:
    """The rows of each batch entry in an order: [batch, rows, fields] by [batch, rows], or [batch, rows] by that."""
    if data.rank == 2:
        return emit("gather", data, order, axis=1)
    shape = (*order.shape, data.shape[2])
    return emit("gather", data, broadcast_to(reshape(order, (*order.shape, 1)), shape), axis=1)


def _first(holds: Term) -> tuple[Tensor, Tensor]:
    """The rows [batch, rows] for which the condition is true first, in order, then the others; and the number of the former,
    int32[batch]."""
    order = emit("argsort", cast((~holds).tensor, "int32"), axis=1, is_ascend=True, dtype="int32")
    return order, emit("sum", cast(holds.tensor, "int32"), axis=(1,))


def _numbers(data: Tensor) -> Tensor:
    """int32[1, rows]: the numbers of rows."""
    return reshape(positions(data.shape[1], "int32"), (1, data.shape[1]))


def _column(values: Tensor) -> Tensor:
    return reshape(values, (*values.shape, 1))


@composed("vision.get_valid_counts", results=3)
def get_valid_counts(
    data: Tensor, threshold: Tensor, *, id_index: int = 0, score_index: int = 1, score_threshold: float | None = None
) -> tuple[Tensor, ...]:
    """Moves boxes with a score above a threshold to the front and sets the others to -1. Returns the number of boxes, the boxes, and their
    original indices.

    `score_threshold` is the threshold if it is a number, shown in the text of the program.
    """
    boxes = Term(data)
    holds = boxes.field(score_index) > Term(cast(threshold, data.dtype))
    if id_index >= 0:
        holds = holds & (boxes.field(id_index) >= 0)
    order, count = _first(holds)
    valid = Term(_numbers(data)) < Term(_column(count))
    kept = Term(_column(valid.tensor)).where(Term(_rows(data, order)), -1)
    return count, kept.tensor, valid.where(Term(order), -1).tensor


@composed("vision.non_max_suppression", results=lambda attrs, _: 2 if attrs["return_indices"] else 1, max_output_size=-1, iou_threshold=0.5)
def non_max_suppression(
    data: Tensor,
    valid_count: Tensor,
    indices: Tensor,
    max_output_size: Tensor,
    iou_threshold: Tensor,
    *,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """Boxes sorted by score, without boxes whose overlap with a better one of their class is the threshold or more.

    Returns the boxes, with -1 in place of removed ones; or the original indices of the boxes (via `indices`), and their number.
    """
    numbers, threshold = Term(_numbers(data)), Term(cast(iou_threshold, data.dtype))
    valid = numbers < Term(_column(valid_count))
    scores = valid.where(Term(data).field(score_index), -np.inf)
    order = emit("argsort", scores.tensor, axis=1, is_ascend=False, dtype="int32")
    kept = Term(_column(valid_count)).min(top_k) if top_k > 0 else Term(_column(valid_count))
    valid = numbers < kept
    boxes = Term(_column(valid.tensor)).where(Term(_rows(data, order)), -1)
    scores = boxes.field(score_index)
    ids = boxes.field(id_index) if id_index >= 0 else None
    x1, y1, x2, y2 = (boxes.field(coord_start + i) for i in range(4))
    corners = x1.min(x2), y1.min(y2), x1.max(x2), y1.max(y2)
    limit = Term(cast(reshape(max_output_size, ()), "int32"))

    def suppress(number: Term, removed: Term, count: Term) -> Sequence[Term]:
        def of_this(values: Term) -> Term:  # [batch, 1]
            return Term(emit("take", values.tensor, reshape(number.tensor, (1,)), axis=1, mode="clip"))

        overlap = _overlap([of_this(c) for c in corners], corners)
        rivals = (scores > 0) & ~removed & (numbers < number) & (overlap >= threshold)
        if ids is not None:
            rivals = rivals & (ids >= 0) if force_suppress else rivals & (ids >= 0) & ids.eq(of_this(ids))
        is_full = count.eq(limit)
        is_candidate = of_this(scores) > 0
        is_worse = is_candidate & Term(emit("any", rivals.tensor, axis=(1,), keepdims=True))
        gone = is_full | is_worse
        more = (is_candidate & ~gone).cast("int32")
        return (numbers.eq(number) & gone) | removed, count + more

    batch = (data.shape[0], 1)
    rounds = emit("max", kept.tensor, axis=(0, 1))
    removed, _ = _loop(rounds, [filled(data.shape[:2], False, "bool"), filled(batch, 0, "int32")], suppress)
    # A threshold of 0 or less leaves boxes as they are.
    on = threshold > 0
    left = valid & ~(removed & on)
    if return_indices:
        where = Term(_rows(indices, order))
        turn, count = _first(left & (where >= 0))
        found = (numbers < Term(_column(count))).where(Term(_rows(where.tensor, turn)), -1)
        return found.tensor, _column(count)
    found = Term(_column(left.tensor)).where(boxes, -1)
    if invalid_to_bottom:
        turn, _ = _first(left)
        found = Term(_rows(found.tensor, turn))
    return found.tensor


@composed("vision.regular_non_max_suppression", results=4)
def regular_non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    *,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> tuple[Tensor, ...]:
    """The boxes of the best scores, of each class without those that overlap a better one of the class by more than a threshold (TFLite).

    Scores are [batch, boxes, classes], of which the last `num_classes` count. Gives boxes, classes and scores, 0 where there are no more
    of them, as float32 [batch, max_detections, ...], and how many there are, int32 [batch].
    """
    boxes, scores = cast(boxes, "float32"), cast(scores, "float32")
    first = scores.shape[2] - num_classes
    by_class = transpose(strided_slice(scores, [first], [scores.shape[2]], [1], [2]), (0, 2, 1))
    batch, classes, count = by_class.shape
    flat = Term(reshape(by_class, (batch, classes * count)))
    # The suppression takes any two opposite corners, and scores above a threshold: here wrong corners are a box without area.
    low, high = Term(boxes).part(2, 0, 2), Term(boxes).part(2, 2, 4)
    corners = emit("concatenate", low.tensor, high.max(low).tensor, axis=2)
    least = np.nextafter(np.float32(score_threshold), np.float32(-np.inf))
    limits = constant(max_detections_per_class, "int64"), constant(iou_threshold, "float32"), constant(least, "float32")
    found, total = emit("vision.all_class_non_max_suppression", corners, by_class, *limits)
    entry, place, box = (Term(found).field(i) for i in range(3))
    at = (entry * _term(classes) + place) * _term(count) + box
    is_found = Term(positions(found.shape[0])) < Term(total)
    at = is_found.where(at, _term(batch * classes * count))  # one more element, for rows without meaning
    ones, room = filled((found.shape[0],), True, "bool"), filled((batch * classes * count + 1,), False, "bool")
    marks = emit("scatter_elements", room, at.tensor, ones, axis=0, reduction="update", distinct=True)
    marks = Term(reshape(strided_slice(marks, [0], [batch * classes * count], [1], [0]), (batch, classes * count)))
    # Equal scores stay in the order of their classes and boxes.
    order = emit("argsort", marks.where(flat, -np.inf).tensor, axis=1, is_ascend=False, dtype="int32")
    best = emit("take", order, positions(max_detections), axis=1, mode="clip")
    number = Term(emit("sum", marks.cast("int32").tensor, axis=(1,))).min(max_detections)
    is_there = Term(reshape(positions(max_detections, "int32"), (1, max_detections))) < Term(_column(number.tensor))
    length = size_tensor(count)
    kinds, rows = (emit(name, best, cast(length, "int32")) for name in ("floor_divide", "floor_mod"))
    kept = Term(_column(is_there.tensor)).where(Term(_rows(boxes, rows)), 0)
    return (
        kept.tensor,
        is_there.where(Term(kinds).cast("float32"), 0).tensor,
        is_there.where(Term(_rows(flat.tensor, best)), 0).tensor,
        number.tensor,
    )


def _term(size: Size) -> Term:
    return Term(size_tensor(size))


def _overlap(a: Sequence[Term], b: Sequence[Term], extent: float = 0.0) -> Term:
    """Intersection over union of boxes by their corners; `extent` is 1 where a box holds its last row and column."""
    width = (a[2].min(b[2]) - a[0].max(b[0]) + extent).max(0)
    height = (a[3].min(b[3]) - a[1].max(b[1]) + extent).max(0)
    common = width * height
    areas = [(c[2] - c[0] + extent) * (c[3] - c[1] + extent) for c in (a, b)]
    total = 0 + areas[0] + areas[1] - common
    return (total > 0).where(common / total, 0)


@composed("vision.multibox_prior")
def multibox_prior(
    data: Tensor,
    *,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (-1.0, -1.0),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Tensor:
    """Boxes around the pixels of an image [batch, channels, height, width], by sizes and ratios: [1, boxes, 4]."""
    height, width = TensorType(data.shape[2:], "int64").static_shape
    shapes = [(s * height / width / 2, s / 2) for s in sizes]
    shapes += [(sizes[0] * height / width * sqrt(r) / 2, sizes[0] / sqrt(r) / 2) for r in ratios[1:]]
    half = np.array(shapes)
    step = [s if s > 0 else 1 / n for s, n in zip(steps, (height, width), strict=True)]
    rows, columns = np.meshgrid(*((np.arange(n) + o) * s for n, o, s in zip((height, width), offsets, step, strict=True)), indexing="ij")
    center = np.stack([columns, rows], -1)[:, :, None]
    boxes = np.concatenate([center - half, center + half], -1).reshape(1, -1, 4)
    return constant(np.clip(boxes, 0, 1) if clip else boxes, data.dtype)


@composed("vision.multibox_transform_loc", results=2)
def multibox_transform_loc(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> tuple[Tensor, ...]:
    """Boxes [batch, boxes, (class, score, corners)] of the best classes of anchors, those of a class first, and how many have one."""
    batch, _, count = cls_prob.shape
    classes = Term(cls_prob) if keep_background else Term(cls_prob).part(1, 1, cls_prob.shape[1])  # type: ignore[arg-type]
    score = Term(emit("max", classes.tensor, axis=(1,)))
    label = Term(emit("argmax", classes.tensor, axis=(1,))).cast("float32")
    if keep_background:
        label = (score < threshold).where(0, label)
        holds = label >= 0
    else:
        holds = ~(score < threshold)
    moved = Term(reshape(loc_pred, (batch, count, 4)))
    left, top, right, bottom = (Term(anchor).field(i) for i in range(4))
    width, height = right - left, bottom - top
    x = moved.field(0) * variances[0] * width + (left + right) / 2.0
    y = moved.field(1) * variances[1] * height + (top + bottom) / 2.0
    w = (moved.field(2) * variances[2]).exp() * width / 2.0
    h = (moved.field(3) * variances[3]).exp() * height / 2.0
    corners = [x - w, y - h, x + w, y + h]
    if clip:
        corners = [c.min(1.0).max(0.0) for c in corners]
    rows = stacked(label.cast(cls_prob.dtype), score, *corners)
    order, found = _first(holds)
    return _rows(rows.tensor, order), found


@composed("vision.proposal")
def proposal(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    *,
    scales: Sequence[float] = (4.0, 8.0, 16.0, 32.0),
    ratios: Sequence[float] = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    threshold: float = 0.7,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    rpn_min_size: int = 16,
    iou_loss: bool = False,
) -> Tensor:
    """The regions [batch * rpn_post_nms_top_n, (entry of the batch, corners)] of the best anchors that do not overlap better ones."""
    batch, both, height, width = TensorType(cls_prob.shape, "int64").static_shape
    anchors, count = both // 2, both // 2 * height * width
    corners = np.array([_anchor(r, s, feature_stride) for r in ratios for s in scales])
    row, column = np.indices((height, width)) * feature_stride
    shift = np.stack([column, row, column, row], -1)[:, :, None]
    x1, y1, x2, y2 = (Term(constant((corners + shift)[..., i].reshape(1, -1), cls_prob.dtype)) for i in range(4))

    def by_place(x: Tensor, parts: int) -> Tensor:  # [batch, anchors * parts, height, width] to [batch, boxes, parts]
        return reshape(transpose(reshape(x, (batch, anchors, parts, height, width)), (0, 3, 4, 1, 2)), (batch, count, parts))

    d = [Term(by_place(bbox_pred, 4)).field(i) for i in range(4)]
    if iou_loss:
        found = [c + delta for c, delta in zip((x1, y1, x2, y2), d, strict=True)]
    else:
        w, h = x2 - x1 + 1.0, y2 - y1 + 1.0
        x, y = d[0] * w + x1 + (w - 1.0) * 0.5, d[1] * h + y1 + (h - 1.0) * 0.5
        wide, high = (d[2].exp() * w - 1.0) * 0.5, (d[3].exp() * h - 1.0) * 0.5
        found = [x - wide, y - high, x + wide, y + high]
    image_h, image_w, scale = (Term(im_info).part(1, i) for i in range(3))
    found = [c.min(size - 1.0).max(0.0) for c, size in zip(found, (image_w, image_h, image_w, image_h), strict=True)]
    smallest = scale * float(rpn_min_size)
    small = ((found[2] - found[0] + 1.0) < smallest) | ((found[3] - found[1] + 1.0) < smallest)
    half = small.where(smallest / 2.0, 0.0)
    found = [found[0] - half, found[1] - half, found[2] + half, found[3] + half]
    places = [Term(constant(np.repeat(p.reshape(1, -1), anchors, 1) // feature_stride, "int32")) for p in (row, column)]
    outside = (places[0] >= (image_h / float(feature_stride)).cast("int32")) | (
        places[1] >= (image_w / float(feature_stride)).cast("int32")
    )
    score = Term(by_place(Term(cls_prob).part(1, anchors, both).tensor, 1)).field(0)
    score = (small | outside).where(-1.0, score)
    order = emit("argsort", score.tensor, axis=1, is_ascend=False, dtype="int32")
    if 0 < rpn_pre_nms_top_n < count:
        count = rpn_pre_nms_top_n
        order = Term(order).part(1, 0, count).tensor
    found = [Term(_rows(c.tensor, order)) for c in found]
    numbers = Term(constant(np.arange(count)[None], "int32"))

    def suppress(number: Term, removed: Term) -> Sequence[Term]:
        def of_this(values: Term) -> Term:
            return Term(emit("take", values.tensor, reshape(number.tensor, (1,)), axis=1, mode="clip"))

        covered = _overlap([of_this(c) for c in found], found, 1.0) > threshold
        return (removed | (covered & (numbers > number) & ~of_this(removed)),)

    (removed,) = _loop(constant(count - 1, "int32"), [filled((batch, count), False, "bool")], suppress)
    turn, kept = _first(~removed)
    # If there are too few, they are repeated.
    places_wanted = Term(constant(np.arange(rpn_post_nms_top_n)[None], "int32"))
    wanted = Term(emit("floor_mod", places_wanted.tensor, Term(_column(kept)).max(1).tensor))
    chosen = _rows(turn, wanted.tensor)
    entry = Term(broadcast_to(constant(np.arange(batch)[:, None], cls_prob.dtype), (batch, rpn_post_nms_top_n)))
    rows = stacked(entry, *(Term(_rows(c.tensor, chosen)) for c in found))
    return reshape(rows.tensor, (batch * rpn_post_nms_top_n, 5))


def _anchor(ratio: float, scale: float, size: int) -> tuple[float, ...]:
    """The corners of the anchor of a ratio and a scale around a cell of a size."""
    center = 0.5 * (size - 1.0)
    width = floor(sqrt(floor(size * size / ratio)) + 0.5) * scale
    height = floor(width / scale * ratio + 0.5) * scale
    return tuple(center + sign * 0.5 * (extent - 1.0) for sign in (-1, 1) for extent in (width, height))


@composed("vision.yolo_reorg")
def yolo_reorg(data: Tensor, *, stride: int) -> Tensor:
    """Space to depth as Darknet has it: [n, c, h, w] to [n, c * stride^2, h / stride, w / stride]."""
    n, c, h, w = TensorType(data.shape, "int64").static_shape
    parts = reshape(data, (n, c // stride**2, h, stride, w, stride))
    return reshape(transpose(parts, (0, 3, 5, 1, 2, 4)), (n, c * stride**2, h // stride, w // stride))


def _chosen_of_images(boxes: Tensor, scores: Tensor, most: Tensor, iou_threshold: Tensor, score_threshold: Tensor) -> tuple[Tensor, ...]:
    """What vision.all_class_non_max_suppression chooses of each image, as TensorFlow reads it: (class, box) [images, classes * boxes, 2],
    the scores, and how many there are. The other ones are 0."""
    chosen, total = emit("vision.all_class_non_max_suppression", boxes, scores, most, iou_threshold, score_threshold)
    images, classes, count = scores.shape
    is_row = Term(positions(chosen.shape[0], "int64")) < Term(total)
    of_image = Term(_column(positions(images, "int64"))).eq(Term(chosen).field(0)) & is_row
    counts = Term(emit("sum", of_image.cast("int64").tensor, axis=(1,)))
    first = Term(emit("cumsum", counts.tensor, axis=0)) - counts
    place = Term(reshape(positions(classes * count, "int64"), (1, classes * count)))
    rows = emit("take", chosen, (Term(_column(first.tensor)) + place).tensor, axis=0, mode="clip")
    holds = place < Term(_column(counts.tensor))
    found = Term(_column(holds.tensor)).where(Term(rows), 0)
    values = Term(emit("gather_nd", scores, transpose(found.tensor, (2, 0, 1))))
    return found.part(2, 1, 3).tensor, holds.where(values, 0).tensor, counts.tensor


_BOXES = ("boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold")
CHOSEN_OF_IMAGES = Composed("vision.all_class_non_max_suppression", _BOXES, lambda *_: 3, _chosen_of_images)
"""vision.all_class_non_max_suppression with the output format "tensorflow"."""
