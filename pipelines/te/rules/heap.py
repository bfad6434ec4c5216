"""A binary heap of scores: the largest are popped one by one; O(n + k log n) for k of n."""

from dataclasses import dataclass

from relayc.dialects.mlir import arith
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, extract, index_constant
from relayc.pipelines.te.rules.literal import INDEX_DTYPE, less
from relayc.pipelines.te.rules.loops import insert, loop, repeat_while
from relayc.pipelines.te.rules.scalar import both, either, negated

NUMBER = "int64"
"""dtype of the numbers that identify entries."""


@dataclass(frozen=True)
class Heap:
    """A binary max-heap of entries, each a score and a number: ordered by largest score, ties by lowest number.

    Attributes:
      dtype: of the scores.
      scores, numbers: of the entries, tensors of one dimension; entry i comes before entries 2 i + 1 and 2 i + 2.
    """

    dtype: str
    scores: Value
    numbers: Value

    @property
    def state(self) -> list[Value]:
        """The loop-carried values."""
        return [self.scores, self.numbers]

    def _like(self, scores: Value, numbers: Value) -> "Heap":
        return Heap(self.dtype, scores, numbers)

    def at(self, position: Value) -> tuple[Value, Value]:
        """Score and number of an entry."""
        return extract(self.scores, [position]), extract(self.numbers, [position])

    def put(self, entry: tuple[Value, Value], position: Value) -> "Heap":
        """Replaces an entry."""
        return self._like(insert(entry[0], self.scores, [position]), insert(entry[1], self.numbers, [position]))

    def ordered(self, count: Value) -> "Heap":
        """Heapifies the first `count` entries."""
        one = index_constant(1)
        half = arith.shrui(count, one)

        def place(i: Value, *state: Value) -> list[Value]:
            heap, position = self._like(*state), arith.subi(arith.subi(half, i), one)
            return heap._sunk(heap.at(position), position, count).state

        return self._like(*loop(index_constant(0), half, one, self.state, place))

    def without_first(self, count: Value) -> "Heap":
        """Pops the first of `count` entries, `count` being 1 or more."""
        last = arith.subi(count, index_constant(1))
        return self._sunk(self.at(last), index_constant(0), last)

    def _sunk(self, entry: tuple[Value, Value], position: Value, count: Value) -> "Heap":
        """Sifts an entry down from a position: entries that come before it move up."""
        one = index_constant(1)

        def below(position: Value) -> Value:
            return arith.addi(arith.addi(position, position), one)

        def goes_on(*state: Value) -> Value:
            return both(state[-1], less(below(state[2]), count))

        def step(scores: Value, numbers: Value, position: Value, _: Value) -> list[Value]:
            heap, left = self._like(scores, numbers), below(position)
            # An only child is compared with itself.
            right = arith.minsi(arith.addi(left, one), arith.subi(count, one))
            child = scalar.select(self._before(heap.at(right), heap.at(left)), right, left)
            better = heap.at(child)
            rises = self._before(better, entry)
            moved = heap.put(tuple(scalar.select(rises, b, e) for b, e in zip(better, entry, strict=True)), position)
            return [*moved.state, scalar.select(rises, child, position), rises]

        yes = negated(scalar.to_flag(scalar.constant(0, "bool")))
        *state, position, _ = repeat_while([*self.state, position, yes], goes_on, step)
        return self._like(*state).put(entry, position)

    def _before(self, b: tuple[Value, Value], a: tuple[Value, Value]) -> Value:
        sooner, later = (scalar.comes_before(x, y, self.dtype, descending=True) for x, y in ((b[0], a[0]), (a[0], b[0])))
        return either(sooner, both(negated(later), scalar.compare("lt", b[1], a[1], INDEX_DTYPE)))
