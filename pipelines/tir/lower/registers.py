"""A buffer in registers: its elements are SSA values, whole vectors where it is written in vectors."""

from collections.abc import Iterable, Sequence

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
        self._lanes: dict[ir.Value, tuple[ir.Value, int]] = {}
        """The vector and the lane of elements that were stored as lanes of a vector."""
        self._square: tuple[ir.Block, list[ir.Value], list[ir.Value]] | None = None
        """The last transposed vectors: the block of the operations, the rows, the columns."""

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
        return elements[0] if lanes == 1 else self._column(elements) or vectors.from_elements(elements)

    def _column(self, elements: Sequence[ir.Value]) -> ir.Value | None:
        """The vector of elements that are the same lane of as many vectors as a vector has lanes; None for others.

        Transposing a square of vectors takes fewer operations than composing each column of single elements.
        """
        found = [self._lanes.get(e) for e in elements]
        rows = [f[0] for f in found if f is not None]
        lanes = {f[1] for f in found if f is not None}
        if len(rows) != len(elements) or len(lanes) != 1 or rows[0].type.shape[0] != len(rows) or len(rows) & (len(rows) - 1):
            return None
        block = ir.InsertionPoint.current.block
        if self._square is None or self._square[0] != block or self._square[1] != rows:
            self._square = block, rows, vectors.transpose(rows)
        return self._square[2][lanes.pop()]

    def store(self, value: ir.Value, first: int, lanes: int, stride: int = 1) -> None:
        """Stores elements from `first` on, `stride` apart; a scalar is broadcast to all lanes."""
        if lanes > 1 and stride != 1:
            wide = emit.broadcast(value, lanes)
            for i in range(lanes):
                element = vectors.extract(wide, i)
                self._lanes[element] = wide, i
                self.store(element, first + i * stride, 1)
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
        if (single := self.values.get((position, 1))) is not None:
            return single
        for (start, width), value in self.values.items():
            if start <= position < start + width:
                return vectors.extract(value, position - start)
        return emit.number(self.unwritten, self.element)

    def _clear(self, first: int, end: int) -> None:
        """Removes elements from the slots that hold them; the other elements of such a slot become slots of one lane."""
        for start, width in list(self.values):
            if start < end and first < start + width:
                value = self.values.pop((start, width))
                for lane in range(width):
                    if not first <= start + lane < end:
                        self.values[start + lane, 1] = vectors.extract(value, lane)
