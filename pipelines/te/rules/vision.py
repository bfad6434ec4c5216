"""Compute rule of non-maximum suppression: class by class, sequential."""

from dataclasses import dataclass

from relayc.dialects.mlir import arith
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, compute, empty, extract, fill, index_constant, operand_type, result_type
from relayc.pipelines.te.rules.heap import NUMBER, Heap
from relayc.pipelines.te.rules.literal import index_of, integer_of, less
from relayc.pipelines.te.rules.loops import insert, loop, nest, repeat_while, when
from relayc.pipelines.te.rules.scalar import both, either, negated
from relayc.symbolic import Size

_FIELDS = 5
"""Fields of a chosen box: the lower and the upper corner, and the area."""


@dataclass(frozen=True)
class _Overlap:
    """The overlap test of boxes, in the arithmetic of `dtype`."""

    boxes: Value
    source: str
    dtype: str
    most: Value

    def box(self, at: list[Value]) -> list[Value]:
        """y0, x0, y1, x1, area of box (batch, number), where y0 <= y1 and x0 <= x1."""
        a, b, c, d = (scalar.convert(extract(self.boxes, [*at, index_constant(i)]), self.source, self.dtype) for i in range(4))
        low, high = ([pick(a, c, self.dtype), pick(b, d, self.dtype)] for pick in (scalar.minimum, scalar.maximum))
        return [*low, *high, self._area(low, high)]

    def _area(self, low: list[Value], high: list[Value]) -> Value:
        height, width = (scalar.subtract(last, first, self.dtype) for first, last in zip(low, high, strict=True))
        return scalar.multiply(height, width, self.dtype)

    def suppresses(self, a: list[Value], b: list[Value]) -> Value:
        """i1: whether the ratio of intersection and union of two boxes exceeds the limit."""
        dtype = self.dtype
        low = [_pick("gt", x, y, dtype) for x, y in zip(a[:2], b[:2], strict=True)]
        high = [_pick("lt", x, y, dtype) for x, y in zip(a[2:4], b[2:4], strict=True)]
        common = self._area(low, high)
        union = scalar.subtract(scalar.add(a[4], b[4], dtype), common, dtype)
        # For boxes disjoint in both directions the product of the distances is positive, but not an area.
        meet = both(*(scalar.compare("gt", last, first, dtype) for first, last in zip(low, high, strict=True)))
        return both(meet, scalar.compare("gt", arith.divf(common, union), self.most, dtype))


def _pick(predicate: str, a: Value, b: Value, dtype: str) -> Value:
    """a where a PREDICATE b, otherwise b: one instruction, as NaN is not propagated."""
    return scalar.select(scalar.compare(predicate, a, b, dtype), a, b)


def _is_suppressed(overlap: _Overlap, box: list[Value], chosen: Value, found: Value) -> Value:
    """i1: whether one of the first `found` rows of `chosen` suppresses a box."""

    def against(j: Value, _: Value) -> list[Value]:
        other = [extract(chosen, [j, index_constant(i)]) for i in range(_FIELDS)]
        return [arith.addi(j, index_constant(1)), overlap.suppresses(other, box)]

    no = scalar.to_flag(scalar.constant(0, "bool"))
    return repeat_while([index_constant(0), no], lambda j, suppressed: both(less(j, found), negated(suppressed)), against)[1]


def _candidates(heap: Heap, scores: Value, line: list[Value], threshold: Value, count: Size) -> tuple[Heap, Value]:
    """The boxes of a line whose score is above the threshold, stored first in the memory of `heap`; and their number."""
    zero, one = index_constant(0), index_constant(1)
    none = scalar.compare("ne", threshold, threshold, heap.dtype)

    def step(i: Value, *carried: Value) -> list[Value]:
        *state, found = carried
        score = extract(scores, [*line, i])
        # Written unconditionally; overwritten by the next one if the score is too low.
        written = Heap(heap.dtype, *state).put((score, integer_of(i, NUMBER)), found)
        above = either(none, scalar.compare("gt", score, threshold, heap.dtype))
        return [*written.state, scalar.select(above, arith.addi(found, one), found)]

    *state, found = loop(zero, index_constant(count), one, [*heap.state, zero], step)
    return Heap(heap.dtype, *state), found


def _limit(value: Value, dtype: str, count: Value) -> Value:
    """The maximum number of boxes of a class, as an index: all for a negative number."""
    if scalar.is_unsigned(dtype):
        return index_of(value, dtype)
    return scalar.select(scalar.compare("lt", value, scalar.constant(0, dtype), dtype), count, index_of(value, dtype))


@compute("vision_all_class_non_max_suppression")
def all_class_non_max_suppression(
    op: Op, boxes: Value, scores: Value, max_output_boxes_per_class: Value, iou_threshold: Value, score_threshold: Value
) -> list[Value]:
    source, selected_type, total_type = operand_type(op, 1), result_type(op), result_type(op, 1)
    if source.num_elements == 0:
        return [empty(selected_type), fill(total_type, 0)]
    batch, classes, count = source.sizes
    zero, one, end = (index_constant(n) for n in (0, 1, count))
    wide = accumulator(source.dtype)
    threshold = extract(score_threshold, [])
    overlap = _Overlap(boxes, source.dtype, wide, scalar.convert(extract(iou_threshold, []), source.dtype, wide))
    limit = _limit(extract(max_output_boxes_per_class, []), operand_type(op, 2).dtype, end)

    def choose(at: list[Value], selected: Value, total: Value, chosen: Value, *state: Value) -> list[Value]:
        """One class: its candidates by decreasing score, each tested against the chosen ones, until there are enough."""
        b, c = at
        heap, candidates = _candidates(Heap(source.dtype, *state), scores, at, threshold, count)

        def goes_on(candidates: Value, found: Value, *_: Value) -> Value:
            return both(less(zero, candidates), less(found, limit))

        def consider(candidates: Value, found: Value, selected: Value, chosen: Value, *state: Value) -> list[Value]:
            heap = Heap(source.dtype, *state)
            _, number = heap.at(zero)
            box = overlap.box([b, index_of(number, NUMBER)])

            def write(found: Value, selected: Value, chosen: Value) -> list[Value]:
                place = arith.addi(total, found)
                for i, value in enumerate((integer_of(b, NUMBER), integer_of(c, NUMBER), number)):
                    selected = insert(value, selected, [place, index_constant(i)])
                for i, value in enumerate(box):
                    chosen = insert(value, chosen, [found, index_constant(i)])
                return [arith.addi(found, one), selected, chosen]

            fits = negated(_is_suppressed(overlap, box, chosen, found))
            rest = heap.without_first(candidates)
            return [arith.subi(candidates, one), *when(fits, [found, selected, chosen], write), *rest.state]

        carried = [candidates, zero, selected, chosen, *heap.ordered(candidates).state]
        _, found, selected, chosen, *rest = repeat_while(carried, goes_on, consider)
        return [selected, arith.addi(total, found), chosen, *rest]

    room = [TensorType((count, _FIELDS), wide), TensorType((count,), source.dtype), TensorType((count,), NUMBER)]
    selected, total, *_ = nest((batch, classes), [empty(selected_type), zero, *map(empty, room)], choose)
    return [selected, insert(integer_of(total, total_type.dtype), empty(total_type), [zero])]
