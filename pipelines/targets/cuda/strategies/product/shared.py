"""Tiles of operands in shared memory: lines of chunks of 16 bytes, permuted so that the threads of a warp meet no bank twice.

Shared memory has 32 banks of four bytes: eight chunks side by side. A matrix load (ldmatrix) reads one chunk of each of eight consecutive
lines at a time. The chunks are in different banks if the position of a chunk in its line is exclusive-or'ed with the number of the line,
or, for lines of fewer than eight chunks, with the number of the group of lines that fills all banks.
"""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.gpu.copies import SHARED, as_pointer
from relayc.pipelines.tir.gpu.swizzle import BANK_CHUNKS, CHUNK_BYTES


@dataclass(frozen=True)
class SharedTile:
    """An operand's tile of one stage.

    Attributes:
      lines, chunks: its extents: threads step along lines; the chunks of a line are contiguous. Both are powers of two, except for padded
        lines.
      element_bytes: of an element.
      is_padded: whether lines have an odd number of chunks, which need no permutation.
    """

    lines: int
    chunks: int
    element_bytes: int
    is_padded: bool = False

    @property
    def pitch(self) -> int:
        """Bytes of a line."""
        return (self.chunks | 1 if self.is_padded else self.chunks) * CHUNK_BYTES

    @property
    def size(self) -> int:
        """Bytes."""
        return self.lines * self.pitch

    @property
    def chunk_elements(self) -> int:
        return CHUNK_BYTES // self.element_bytes

    def place_from(self, line: ir.Value, chunk: Index, more: int) -> ir.Value:
        """The position of the chunk `more` after another one. Permutations stay within a group of chunks that fills all banks; the next
        group is at a constant distance, which instructions add as an immediate."""
        whole = more // BANK_CHUNKS * BANK_CHUNKS
        return added(self.place(line, emit.materialize(chunk + (more - whole))), whole * CHUNK_BYTES)

    def place(self, line: ir.Value, chunk: ir.Value) -> ir.Value:
        """Where a chunk of a line is, in bytes from the start of the tile; both are of type index."""
        at = self._permuted(line, chunk)
        scaled = times(line, self.pitch)
        return emit.arith("addi", scaled, times(at, CHUNK_BYTES))

    def _permuted(self, line: ir.Value, chunk: ir.Value) -> ir.Value:
        near = min(self.chunks, BANK_CHUNKS)
        if near == 1 or self.is_padded:
            return chunk
        group = BANK_CHUNKS // near
        shifted = line if group == 1 else emit.arith("shrui", line, emit.index_constant(group.bit_length() - 1))
        return emit.arith("xori", chunk, emit.arith("andi", shifted, emit.index_constant(near - 1)))


def added(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """The sum of two byte offsets."""
    if isinstance(b, int):
        if b == 0:
            return a
        b = emit.index_constant(b)
    return emit.create("arith.addi", [a.type], [a, b], emit.no_overflow())


@dataclass(frozen=True)
class SharedMemory:
    """The shared memory of a block.

    Attributes:
      bytes: the buffer.
      base: its address, of type index.
    """

    bytes: ir.Value
    base: ir.Value

    @staticmethod
    def of(buffer: ir.Value) -> "SharedMemory":
        return SharedMemory(buffer, emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [buffer]))

    def pointer(self, offset: ir.Value) -> ir.Value:
        """The address of a byte, as nvvm operations take it."""
        return as_pointer(added(self.base, offset), SHARED)

    def elements(self, element: ir.Type) -> ir.Value:
        """The buffer as elements of a type."""
        count = self.bytes.type.shape[0] // (element.width // 8)
        type_ = ir.MemRefType.get([count], element, memory_space=self.bytes.type.memory_space)
        return emit.create("memref.view", [type_], [self.bytes, emit.index_constant(0)])


def times(value: ir.Value, factor: int) -> ir.Value:
    """A multiple of an index."""
    if factor == 1:
        return value
    return emit.create("arith.muli", [value.type], [value, emit.index_constant(factor)], emit.no_overflow())


def element_of(place: ir.Value, element_bytes: int) -> ir.Value:
    """The number of the element that begins at a byte."""
    if element_bytes == 1:
        return place
    shift = emit.index_constant(element_bytes.bit_length() - 1)
    return emit.create("arith.shrui", [place.type], [place, shift], {"isExact": ir.UnitAttr.get()})


def after(pointer: ir.Value, count: int) -> ir.Value:
    """A pointer a number of bytes after another, which instructions of memory add by themselves."""
    if count == 0:
        return pointer
    attributes = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([count]),
        "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
    }
    return emit.create("llvm.getelementptr", [pointer.type], [pointer], attributes)


def load(buffer: ir.Value, at: ir.Value, lanes: int) -> ir.Value:
    """`lanes` elements from a multiple of `lanes` on: an aligned access."""
    type_ = buffer.type.element_type
    if lanes == 1:
        return emit.create("memref.load", [type_], [buffer, at])
    return emit.create("vector.load", [emit.vector_of(lanes, type_)], [buffer, at], _aligned(lanes, type_))


def store(value: ir.Value, buffer: ir.Value, at: ir.Value) -> None:
    """A vector to a multiple of its lanes, aligned; or a scalar."""
    if not emit.is_vector(value):
        emit.create("memref.store", [], [value, buffer, at])
        return
    emit.create("vector.store", [], [value, buffer, at], _aligned(value.type.shape[0], value.type.element_type))


def _aligned(lanes: int, element: ir.Type) -> dict[str, ir.Attribute]:
    size = min(CHUNK_BYTES, lanes * element.width // 8)
    return {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), size)}
