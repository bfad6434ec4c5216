"""Compute rules of Fourier transforms: rows are read into lines, lines are transformed several at a time (stockham), and written.

The factors come from a plan, which the program computes if the length is a symbol: the same code serves all lengths.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import factorial, pi

from relayc.dialects.discardable import DISTINCT, ITERATION_WORK
from relayc.dialects.mlir import arith, linalg, math
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.fourier import LARGEST_FACTOR, PLAN, plan_of
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    empty,
    extract,
    index_constant,
    operand_type,
    parallel,
    result_type,
)
from relayc.pipelines.te.rules.literal import divide, equal, index_of, integer_of, less
from relayc.pipelines.te.rules.loops import insert, loop, repeat_while, when
from relayc.pipelines.te.rules.scalar import both, negated
from relayc.pipelines.te.rules.stockham import LINE_BYTES, UNROLLED, Complex, Lines, Numbers, tiled
from relayc.symbolic import Size, ceil_div, maximum, minimum

_SIDE_BY_SIDE = 1024
"""The longest lines that are transformed several at a time: longer ones have enough lanes in themselves, and fill the nearest caches."""
_SPREAD = 5
"""Cache lines between planes, which would share cache sets if their size is a power of two."""
_PASSES = 4
"""Operations per element in iterations of a loop that is worth a thread."""
_TERMS = 10
"""Terms of the series of sine and cosine: up to an eighth of a circle the first omitted term is below float64 precision."""


@dataclass(frozen=True)
class _Rows:
    """Rows of `fft` that are read into lines, and lines that are written.

    Real rows of even length n are lines of n / 2 elements, each a pair of neighbours: with E and O the transforms of the even and odd
    elements, the transforms of the lines are E + i O, and of the rows E + exp(-2 pi i k / n) O.

    Attributes:
      op: the operator; `data`: its operand.
      given: number of valid elements of a row; None if all are.
      multipliers: the operator's.
      lines: the transform of the rows.
      first: number of the first row.
      pairs: whether an element of a line is a pair of a row; None for complex rows.
    """

    op: Op
    data: Value
    given: Value | None
    multipliers: Sequence[Value]
    lines: Lines
    first: Value
    pairs: Value | None

    @property
    def _parts(self) -> int:
        return self.data.type.shape[2]

    def read(self, work: Value) -> Value:
        """`work` with the rows in its first copy. The inverse transform of z is the transform of z with real and imaginary parts swapped,
        swapped again."""
        if self.op.to_real:
            return self._either(work, lambda pairs, work: self._filled(work, partial(self._of_frequencies, pairs), True))
        if self.pairs is None:
            return self._filled(work, self._of_complex, self.op.inverse)
        return self._either(work, lambda pairs, work: self._filled(work, partial(self._of_real, pairs), False))

    def write(self, work: Value, copy: Value, result: Value) -> Value:
        """The results of the lines that begin at `copy`."""
        if self.op.to_real:
            return self._either(result, lambda pairs, result: self._real(work, copy, result, pairs))
        if self.pairs is None:
            return self._frequencies(result, partial(self._line, work, copy), self.op.inverse)
        found = {True: partial(self._unpacked, work, copy), False: partial(self._line, work, copy)}
        return self._either(result, lambda pairs, result: self._frequencies(result, found[pairs], False))

    def _either(self, carried: Value, body: Callable[[bool, Value], Value]) -> Value:
        """`body`, called with whether there are pairs and the carried value, in a branch."""
        assert self.pairs is not None
        return when(self.pairs, [carried], lambda carried: [body(True, carried)], lambda carried: [body(False, carried)])[0]

    def _part(self, row: Value, j: Value, part: int) -> Value:
        at = [row, j, index_constant(part)]
        if self.given is None:
            return extract(self.data, at)
        there, nothing = less(j, self.given), self.lines.numbers.constant(0.0)
        return when(there, [nothing], lambda _: [extract(self.data, at)])[0]

    def _multiplied(self, number: int, at: Value, value: Complex) -> Complex:
        """A value times an element of one of the multipliers, if there is one."""
        if number >= len(self.multipliers):
            return value
        real, imaginary = (extract(self.multipliers[number], [index_constant(part), at]) for part in (0, 1))
        return self.lines.numbers.multiply(value, (real, imaginary))

    def _of_complex(self, row: Value, j: Value) -> Complex:
        imaginary = self._part(row, j, 1) if self._parts == 2 else self.lines.numbers.constant(0.0)
        return self._multiplied(0, j, (self._part(row, j, 0), imaginary))

    def _of_real(self, pairs: bool, row: Value, j: Value) -> Complex:
        if not pairs:
            return self._part(row, j, 0), self.lines.numbers.constant(0.0)
        at = arith.muli(j, index_constant(2))
        return self._part(row, at, 0), self._part(row, arith.addi(at, index_constant(1)), 0)

    def _of_frequencies(self, pairs: bool, row: Value, k: Value) -> Complex:
        """E + i O from the frequencies of real rows with pairs; otherwise all frequencies, by symmetry."""
        numbers, zero = self.lines.numbers, index_constant(0)
        is_first, nothing = equal(k, zero), numbers.constant(0.0)

        def frequency(at: Value, is_real: Value) -> Complex:
            imaginary = self._part(row, at, 1) if self._parts == 2 else nothing
            return self._part(row, at, 0), scalar.select(is_real, nothing, imaginary)

        mirrored = arith.subi(self.lines.size, k)
        if pairs:
            here, there = frequency(k, is_first), numbers.conjugate(frequency(mirrored, is_first))
            odd = numbers.multiply(numbers.subtract(here, there), numbers.conjugate(self.lines.root(k)))
            even = numbers.add(here, there)
            return numbers.scale(numbers.subtract(even, numbers.by_minus_i(odd)), numbers.constant(0.5))
        is_given = negated(less(mirrored, k))
        found = frequency(scalar.select(is_given, k, mirrored), is_first)
        return found[0], scalar.select(is_given, found[1], numbers.negative(found[1]))

    def _filled(self, work: Value, element: Callable[[Value, Value], Complex], swapped: bool) -> Value:
        def put(line: Value, j: Value, work: Value) -> Value:
            value = element(arith.addi(self.first, line), j)
            return self.lines.put(value[::-1] if swapped else value, work, arith.addi(arith.muli(j, self.lines.width), line))

        return tiled(self.lines.width, self.lines.size, work, put)

    def _line(self, work: Value, copy: Value, line: Value, k: Value) -> Complex:
        return self.lines.element(work, arith.addi(copy, arith.addi(arith.muli(k, self.lines.width), line)))

    def _unpacked(self, work: Value, copy: Value, line: Value, k: Value) -> Complex:
        """A frequency of a real row from the frequencies of the line of its pairs."""
        numbers, size = self.lines.numbers, self.lines.size
        here = scalar.select(less(k, size), k, arith.subi(k, size))
        mirrored = scalar.select(equal(here, index_constant(0)), here, arith.subi(size, here))
        a, b = self._line(work, copy, line, here), numbers.conjugate(self._line(work, copy, line, mirrored))
        odd = numbers.by_minus_i(numbers.multiply(numbers.subtract(a, b), self.lines.root(k)))
        return numbers.scale(numbers.add(numbers.add(a, b), odd), numbers.constant(0.5))

    def _frequencies(self, result: Value, found: Callable[[Value, Value], Complex], swapped: bool) -> Value:
        factor = self._inverse_of(self.lines.order)

        def put(line: Value, k: Value, result: Value) -> Value:
            value = found(line, k)
            value = value[::-1] if swapped else self.lines.numbers.conjugate(value) if self.op.inverse else value
            value = self._multiplied(1, k, self.lines.numbers.scale(value, factor) if self.op.inverse else value)
            row = arith.addi(self.first, line)
            return insert(value[1], insert(value[0], result, [row, k, index_constant(0)]), [row, k, index_constant(1)])

        return tiled(self.lines.width, index_constant(self.op.frequencies), result, put)

    def _real(self, work: Value, copy: Value, result: Value, pairs: bool) -> Value:
        factor, zero = self._inverse_of(self.lines.size), index_constant(0)

        def put(line: Value, j: Value, result: Value) -> Value:
            # With its parts swapped, as the transform was.
            odd, even = self.lines.numbers.scale(self._line(work, copy, line, j), factor)
            row = arith.addi(self.first, line)
            if not pairs:
                return insert(even, result, [row, j, zero])
            at = arith.muli(j, index_constant(2))
            return insert(odd, insert(even, result, [row, at, zero]), [row, arith.addi(at, index_constant(1)), zero])

        return tiled(self.lines.width, self.lines.size, result, put)

    def _inverse_of(self, size: Value) -> Value:
        numbers = self.lines.numbers
        return arith.divf(numbers.constant(1.0), integer_of(size, numbers.dtype))


def _kinds(op: Op, halved: bool) -> list[int]:
    """The kinds of passes that the code needs."""
    if op.is_power_of_two:
        return [8, 4, 2]
    if not isinstance(op.length, int):
        return [*UNROLLED, LARGEST_FACTOR]
    factors = set(plan_of(op.length // 2 if halved and op.length % 2 == 0 else op.length)[2:])
    others = sorted(factors - set(UNROLLED))
    return [known for known in UNROLLED if known in factors] + others[:1] or [2]


@compute("fft")
def fft(op: Op, data: Value, roots: Value, plan: Value, *multipliers: Value) -> Value:
    source, out = operand_type(op), result_type(op)
    if out.num_elements == 0:
        return empty(out)
    batch, length, numbers = source.sizes[0], op.length, Numbers(source.dtype)
    lanes = LINE_BYTES // (scalar.te_element(source.dtype).width // 8)
    side_by_side: Size = maximum(1, minimum(minimum(batch, lanes), _SIDE_BY_SIDE // maximum(length, 1) * lanes))
    plane = length * side_by_side + _SPREAD * lanes
    zero, one, order = index_constant(0), index_constant(1), index_constant(length)
    pairs, size = None, order
    wanted = length // 2 + 1 if op.to_real else length
    given = None if source.sizes[1] == wanted else index_constant(source.sizes[1])
    if op.to_real or (source.sizes[2] == 1 and not multipliers):
        pairs = equal(both(order, one), zero)
        size = scalar.select(pairs, arith.shrui(order, one), order)

    def block(number: Value, result: Value) -> list[Value]:
        first = arith.muli(number, index_constant(side_by_side))
        width = arith.minsi(index_constant(side_by_side), arith.subi(index_constant(batch), first))
        lines = Lines(
            numbers, size, width, arith.muli(size, width), index_constant(plane), roots, order, plan, _kinds(op, pairs is not None)
        )
        rows = _Rows(op, data, given, multipliers, lines, first, pairs)
        work = rows.read(empty(TensorType((4 * plane,), source.dtype)))
        work, copy = lines.transformed(work)
        return [rows.write(work, copy, result)]

    found = loop(zero, index_constant(ceil_div(batch, side_by_side)), one, [empty(out)], block)[0]
    DISTINCT.mark(found.owner.operation)
    ITERATION_WORK.put(found.owner.operation, _PASSES * length * side_by_side)
    return found


@compute("fft_plan")
def fft_plan(op: Op, length: Value) -> Value:
    """See `plan_of`."""
    zero, one, two, three, four, eight = (index_constant(n) for n in (0, 1, 2, 3, 4, 8))
    dtype = result_type(op).dtype
    plan = loop(zero, index_constant(PLAN), one, [empty(result_type(op))], lambda i, plan: [insert(integer_of(zero, dtype), plan, [i])])[0]

    def rest(left: Value, by: int) -> Value:
        return arith.remui(left, index_constant(by))

    def power_of_two(left: Value) -> Value:
        small = scalar.select(equal(rest(left, 4), zero), four, two)
        takes_eight = both(equal(rest(left, 8), zero), scalar.compare("ne", rest(left, 32), index_constant(16), dtype))
        return scalar.select(takes_eight, eight, small)

    def divided(divisor: Value, carried: Sequence[Value], factor: Callable[[Value], Value]) -> list[Value]:
        """All factors of a kind."""

        def divides(left: Value, count: Value, plan: Value) -> Value:
            return both(scalar.compare("gt", left, zero, dtype), equal(arith.remui(left, divisor), zero))

        def take(left: Value, count: Value, plan: Value) -> list[Value]:
            by = factor(left)
            return [divide(left, by), arith.addi(count, one), insert(integer_of(by, dtype), plan, [arith.addi(count, two)])]

        return repeat_while(carried, divides, take)

    carried = divided(two, [index_of(extract(length, []), dtype), zero, plan], power_of_two)
    left, count, plan = loop(
        three, index_constant(LARGEST_FACTOR + 1), two, carried, lambda odd, *carried: divided(odd, carried, lambda _: odd)
    )
    return insert(integer_of(count, dtype), insert(integer_of(left, dtype), plan, [zero]), [one])


@compute("fft_roots")
def fft_roots(op: Op, powers: Value, length: Value) -> Value:
    """By the nearest quarter of the circle, and an angle of at most an eighth from there: quarters are exact."""
    out, wide = result_type(op), "float64"

    def number(value: float) -> Value:
        return scalar.constant(value, wide)

    def times(a: Value, b: Value) -> Value:
        return scalar.multiply(a, b, wide)

    def body(power: Value, length: Value) -> Value:
        period = scalar.convert(length, "int64", wide)
        inverse = arith.divf(number(1.0), period)
        steps = times(scalar.convert(power, "int64", wide), number(4.0))
        quarter = math.roundeven(times(steps, inverse))
        angle = times(math.fma(scalar.negative(quarter, wide), period, steps), times(inverse, number(pi / 2)))
        # -sin x is cos of a quarter more; the cosine of an odd number of quarters and an angle is a sine of the angle.
        quarter = scalar.add(quarter, scalar.convert(integer_of(linalg.IndexOp(0).result, "int64"), "int64", wide), wide)
        half = times(quarter, number(0.5))
        is_odd = scalar.compare("ne", math.floor(half), half, wide)
        turns = times(scalar.add(quarter, number(1.0), wide), number(0.25))
        is_right = scalar.compare("lt", scalar.subtract(turns, math.floor(turns), wide), number(0.5), wide)
        square, found = times(angle, angle), number(0.0)
        for k in reversed(range(_TERMS)):
            term = scalar.select(is_odd, number((-1) ** k / factorial(2 * k + 1)), number((-1) ** k / factorial(2 * k)))
            found = math.fma(found, square, term)
        found = times(found, scalar.select(is_odd, angle, number(1.0)))
        return scalar.convert(scalar.select(is_right, found, scalar.negative(found, wide)), wide, out.dtype)

    return parallel(out, [powers, length], body, [affine_map(2, [dim(1)]), affine_map(2, [])])
