"""A buffer in registers: its elements are SSA values, whole vectors where it is written in vectors."""

from collections.abc import Iterable

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.tir.values import vectors

Slot = tuple[int, int]
"""(first element, lanes) of a value."""


class Registers:
    """The values of a buffer's elements, by slot. Slots do not overlap; elements never written read as `unwritten`."""

    def __init__(self, element: ir.Type, unwritten: float | int = 0) -> None:
        self.element, self.unwritten = element, unwritten
        self.values: dict[Slot, ir.Value] = {}

    def type_of(self, slot: Slot) -> ir.Type:
        return self.element if slot[1] == 1 else emit.vector_of(slot[1], self.element)

    def value(self, slot: Slot) -> ir.Value:
        """The value of a slot."""
        found = self.values.get(slot)
        return emit.number(self.unwritten, self.type_of(slot)) if found is None else found

    def load(self, first: int, lanes: int, stride: int = 1) -> ir.Value:
        """Loads elements from `first` on, `stride` apart: a vector, or a scalar for one lane."""
        if (stride == 1 or lanes == 1) and ((first, lanes) in self.values or not self._covers((first, lanes))):
            return self.value((first, lanes))
        elements = [self._element(first + i * stride) for i in range(lanes)]
        return elements[0] if lanes == 1 else vectors.from_elements(elements)

    def store(self, value: ir.Value, first: int, lanes: int, stride: int = 1) -> None:
        """Stores elements from `first` on, `stride` apart; a scalar is broadcast to all lanes."""
        if lanes > 1 and stride != 1:
            wide = emit.broadcast(value, lanes)
            for i in range(lanes):
                self.store(vectors.extract(wide, i), first + i * stride, 1)
            return
        slot = first, lanes
        if slot not in self.values:
            self._clear(first, first + lanes)
        self.values[slot] = emit.broadcast(value, lanes)

    def prepare(self, slots: Iterable[Slot]) -> None:
        """Creates these slots with the present values of their elements: before a loop or a branch that writes them."""
        for slot in slots:
            if slot not in self.values:
                value = self.load(*slot) if self._covers(slot) else self.value(slot)
                self.store(value, *slot)

    def _covers(self, slot: Slot) -> bool:
        first, end = slot[0], slot[0] + slot[1]
        return any(start < end and first < start + width for start, width in self.values)

    def _element(self, position: int) -> ir.Value:
        for (start, width), value in self.values.items():
            if start <= position < start + width:
                return value if width == 1 else vectors.extract(value, position - start)
        return emit.number(self.unwritten, self.element)

    def _clear(self, first: int, end: int) -> None:
        """Removes elements from the slots that hold them; the other elements of such a slot become slots of one lane."""
        for start, width in list(self.values):
            if start < end and first < start + width:
                value = self.values.pop((start, width))
                for lane in range(width):
                    if not first <= start + lane < end:
                        self.values[start + lane, 1] = vectors.extract(value, lane)

    def snapshot(self) -> dict[Slot, ir.Value]:
        return dict(self.values)
