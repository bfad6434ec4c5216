"""Vectors: loads and stores, lane permutations, and the cover of an extent by vectors."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.symbolic import Size


def pieces(count: int, lanes: int) -> list[tuple[int, int]]:
    """(start, lanes) of the vectors that cover `count` elements: full ones, then successively halved ones."""
    found, start = [], 0
    while start < count:
        while lanes > count - start:
            lanes //= 2
        found.append((start, lanes))
        start += lanes
    return found


def load(buffer: ir.Value, at: Index, lanes: int) -> ir.Value:
    """Loads a contiguous vector from element `at` of a flat buffer."""
    return emit.create("vector.load", [emit.vector_of(lanes, buffer.type.element_type)], [buffer, emit.materialize(at)])


def store(value: ir.Value, buffer: ir.Value, at: Index) -> None:
    """Stores a contiguous vector to a flat buffer, from element `at`."""
    emit.create("vector.store", [], [value, buffer, emit.materialize(at)])


def shuffle(a: ir.Value, b: ir.Value, lanes: Sequence[int]) -> ir.Value:
    """A shuffle of two vectors; lanes of the second are numbered after the lanes of the first."""
    mask = {"mask": ir.DenseI64ArrayAttr.get(list(lanes))}
    return emit.create("vector.shuffle", [emit.vector_of(len(lanes), a.type.element_type)], [a, b], mask)


def extract(vector: ir.Value, lane: int) -> ir.Value:
    """The element in a lane."""
    return emit.create("vector.extract", [vector.type.element_type], [vector], {"static_position": ir.DenseI64ArrayAttr.get([lane])})


def from_elements(elements: Sequence[ir.Value]) -> ir.Value:
    """A vector of scalars."""
    return emit.create("vector.from_elements", [emit.vector_of(len(elements), elements[0].type)], elements)


def bitcast(vector: ir.Value, element: ir.Type) -> ir.Value:
    """The same bits as a vector of another element type."""
    count = vector.type.shape[0] * vector.type.element_type.width // element.width
    return emit.create("vector.bitcast", [emit.vector_of(count, element)], [vector])


def transpose(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The transpose of n vectors of n lanes (n a power of two), by interleaving blocks of 1, 2, 4, ... lanes."""
    rows, n = list(rows), len(rows)
    block = 1
    while block < n:
        low = [lane if not lane & block else n + lane - block for lane in range(n)]
        high = [lane + block if not lane & block else n + lane for lane in range(n)]
        result = list(rows)
        made: dict[tuple[ir.Value, ir.Value], tuple[ir.Value, ir.Value]] = {}  # missing rows are repetitions of one row
        for i in range(n):
            if not i & block:
                a, b = pair = rows[i], rows[i + block]
                if pair not in made:
                    made[pair] = shuffle(a, b, low), shuffle(a, b, high)
                result[i], result[i + block] = made[pair]
        rows, block = result, block * 2
    return rows


def interleave(a: ir.Value, b: ir.Value) -> ir.Value:
    """The elements of two vectors, interleaved."""
    width = a.type.shape[0]
    return shuffle(a, b, [lane for i in range(width) for lane in (i, width + i)])


def by_turns(values: Sequence[ir.Value]) -> ir.Value:
    """The first element of each of several vectors, then the second of each, and so on; they are a power of two."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return by_turns([interleave(a, b) for a, b in zip(values[:half], values[half:], strict=True)])


def store_across(rows: Sequence[ir.Value], buffer: ir.Value, base: Index, stride: Size, lanes: int) -> None:
    """Stores vectors transposed: the values of one lane are contiguous in memory, `stride` elements after the values of the lane before."""
    for first in range(0, len(rows), lanes):
        some = [emit.broadcast(v, lanes) for v in rows[first : first + lanes]]
        columns = transpose(some + [some[-1]] * (lanes - len(some)))
        for k, column in enumerate(columns):
            for begin, width in pieces(len(some), lanes):
                part = column if width == lanes else shuffle(column, column, range(begin, begin + width))
                store(part, buffer, base + k * stride + first + begin)


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sums of two scalars or vectors."""
    return emit.arith("addf" if isinstance(emit.element_of(a.type), ir.FloatType) else "addi", a, b)


def sums_across(values: Sequence[ir.Value]) -> ir.Value:
    """The horizontal sums of several vectors, at most as many as lanes, as one vector; excess lanes repeat the last sum. The number of
    lanes is a power of two.

    Each addition merges two vectors: each half of its lanes, or of the lanes of each part, has the sums of two halves of one of them.
    """
    width = values[0].type.shape[0]
    count = 1 << (len(values) - 1).bit_length()
    some = [*values, *[values[-1]] * (count - len(values))]
    part = width
    while part > 1:
        half, distance = part // 2, len(some) // 2
        pairs = list(zip(some[:distance], some[distance:], strict=True)) if distance else [(some[0], None)]
        some = []
        for a, b in pairs:
            lanes = [[k + i for k in range(0, width, part) for i in (range(h, h + half))] for h in (0, half)]
            if b is not None:
                lanes = [
                    [n for k in range(0, width, part) for o in (0, width) for n in range(o + k + h, o + k + h + half)] for h in (0, half)
                ]
            low, high = (shuffle(a, a if b is None else b, chosen) for chosen in lanes)
            some.append(add(low, high))
        width = some[0].type.shape[0]
        part = half
    return some[0]


def pairwise(values: Sequence[ir.Value], combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Reduces values by combining neighbours pairwise (tree reduction); an odd last value waits."""
    values = list(values)
    while len(values) > 1:
        values = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)] + values[len(values) & ~1 :]
    return values[0]


def across_lanes(vector: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Reduces the lanes of a vector to one element, neighbours first; returns a scalar unchanged."""
    return pairwise([extract(vector, i) for i in range(vector.type.shape[0])], combine) if emit.is_vector(vector) else vector


def across_halves(vector: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Reduces the lanes of a vector (a power of two) to one element, halves with halves; returns a scalar unchanged."""
    if not emit.is_vector(vector):
        return vector
    while (width := vector.type.shape[0]) > 1:
        half = width // 2
        vector = combine(*(shuffle(vector, vector, range(first, first + half)) for first in (0, half)))
    return extract(vector, 0)


def is_byte_table(type_: ir.Type) -> bool:
    """Whether a flat buffer is a table of 256 bytes: `look_up` reads it, at offsets below 256."""
    if not (isinstance(type_, ir.MemRefType) and type_.rank == 1 and type_.shape == [256]):
        return False
    return isinstance(type_.element_type, ir.IntegerType) and type_.element_type.width == 8


def look_up(buffer: ir.Value, offsets: ir.Value) -> ir.Value:
    """The elements of a table of 256 bytes at a vector of offsets, as one operation, for which targets may have instructions."""
    width = offsets.type.shape[0]
    result = emit.vector_of(width, buffer.type.element_type)
    every = emit.broadcast(emit.number(1, ir.IntegerType.get_signless(1)), width)
    return emit.create("vector.gather", [result], [buffer, emit.index_constant(0), offsets, every, emit.zero(result)])


def intrinsic(name: str, type_: ir.Type, *operands: ir.Value) -> ir.Value:
    """Calls an LLVM intrinsic."""
    segments = {"op_bundle_sizes": ir.DenseI32ArrayAttr.get([]), "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0])}
    return emit.create("llvm.call_intrinsic", [type_], operands, {"intrin": ir.StringAttr.get(name), **segments})
