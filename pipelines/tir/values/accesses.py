"""Loads and stores of elements, or of a vector of lanes, at offsets of flat buffers."""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.read.graph import NotStructured
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.points import Points


class Accesses(Points):
    """Loads and stores elements; the coefficient of the lane in an offset is the stride of a vector.

    With a `mask` only active lanes are loaded and stored.
    """

    def load_from(self, buffer: ir.Value, element: ir.Type, offset: Index) -> ir.Value:
        """Loads the element(s) of a flat buffer at an offset."""
        stride = offset.coefficient(self.lane)
        if offset.has_vector() or (self.mask is not None and stride not in (0, 1)):
            return self._gather(buffer, element, offset)
        first = offset.without(self.lane)
        if stride == 0:
            return emit.create("memref.load", [element], [buffer, self.placed(first)])
        type_ = emit.vector_of(self.width, element)
        if self.mask is not None:
            return emit.create("vector.maskedload", [type_], [buffer, self.placed(first), self.mask, emit.zero(type_)])
        if stride == 1:
            return self._load_run(buffer, type_, first)
        if stride == -1:
            value = self._load_vector(buffer, type_, first - (self.width - 1))
            return vectors.shuffle(value, value, range(self.width - 1, -1, -1))
        if stride == 2:
            return self._load_pairs(buffer, type_, first)
        places = [self.placed(first + i * stride) for i in range(self.width)]
        return vectors.from_elements([emit.create("memref.load", [element], [buffer, at]) for at in places])

    def _load_run(self, buffer: ir.Value, type_: ir.Type, first: Index) -> ir.Value:
        """Loads the vector of the lanes of elements side by side."""
        return self._load_vector(buffer, type_, first)

    def _load_vector(self, buffer: ir.Value, type_: ir.Type, first: Index) -> ir.Value:
        return emit.create("vector.load", [type_], [buffer, self.placed(first)])

    def _load_pairs(self, buffer: ir.Value, type_: ir.Type, first: Index) -> ir.Value:
        # Two vectors that end exactly at the last element needed, so nothing beyond the buffer is read.
        width = self.width
        low, high = (self._load_vector(buffer, type_, at) for at in (first, first + (width - 1)))
        return vectors.shuffle(low, high, [2 * i if 2 * i < width else width + 2 * i - (width - 1) for i in range(width)])

    def _gather(self, buffer: ir.Value, element: ir.Type, offset: Index) -> ir.Value:
        offsets = self.index_value(offset)
        if self.mask is not None:
            # At least one lane is active, so the buffer has an element 0.
            offsets = emit.select(self.mask, offsets, emit.zero(offsets.type))
        if vectors.is_byte_table(buffer.type):
            return vectors.look_up(buffer, offsets)
        lanes = []
        for i in range(self.width):
            lanes.append(emit.create("memref.load", [element], [buffer, vectors.extract(offsets, i)]))
        return vectors.from_elements(lanes)

    def store(self, value: ir.Value, buffer: ir.Value, offset: Index) -> None:
        """Stores a value (a vector: with the lane's coefficient as its stride) at a flat offset."""
        stride = offset.coefficient(self.lane)
        first = offset.without(self.lane)
        if self.width == 1 or stride == 0:
            emit.create("memref.store", [], [value, buffer, self.placed(first)])
            return
        value = emit.broadcast(value, self.width)
        if self.mask is not None:
            if stride != 1:
                raise NotStructured("a masked store that is not contiguous")
            emit.create("vector.maskedstore", [], [buffer, self.placed(first), self.mask, value])
            return
        if stride == 1:
            self._store_run(value, buffer, first)
            return
        for i in range(self.width):
            emit.create("memref.store", [], [vectors.extract(value, i), buffer, self.placed(first + i * stride)])

    def _store_run(self, value: ir.Value, buffer: ir.Value, first: Index) -> ir.Operation:
        """Stores the vector of the lanes to elements side by side."""
        return ir.Operation.create("vector.store", operands=[value, buffer, self.placed(first)])
