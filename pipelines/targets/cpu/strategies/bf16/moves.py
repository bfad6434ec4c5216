"""Moves of elements that the copies of operands have in common."""

from collections.abc import Iterable, Iterator

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size

LANES = 32
"""Elements that are moved at a time: 64 bytes of bf16."""
TASKS = 16
"""Iterations that the parallel loop of a copy should have at least."""


def set_zeros(buffer: ir.Value, start: Index, count: Size, evaluator: Evaluator, value: float | int = 0) -> None:
    """Sets `count` elements to 0, or to another value."""
    element = buffer.type.element_type
    if not isinstance(count, int):
        with nest.loop(0, count, evaluator) as loop:
            evaluator.store(emit.number(value, element), buffer, start + loop)
        return
    wide = count // LANES
    if wide:
        zero = emit.number(value, emit.vector_of(LANES, element))
        with nest.loop(0, wide, evaluator) as loop:
            vectors.store(zero, buffer, start + loop * LANES)
    for at, lanes in vectors.pieces(count - wide * LANES, LANES):
        vectors.store(emit.number(value, emit.vector_of(lanes, element)), buffer, start + (wide * LANES + at))


def transposed_groups(columns: Iterable[ir.Value], group: int) -> Iterator[ir.Value]:
    """The transpose of n vectors of n, n/2, n/4, ... groups of elements, read one by one: vectors of the first groups, the second, ..."""
    words = []
    for column in columns:
        element = column.type.element_type
        words.append(vectors.bitcast(column, ir.IntegerType.get_signless(group * element.width)))
    count = words[0].type.shape[0]
    if count < len(words):
        words = [vectors.shuffle(word, word, [lane % count for lane in range(len(words))]) for word in words]
    for row in vectors.transpose(words)[:count]:
        yield vectors.bitcast(row, element)
