"""Stockham passes: transforms of several lines at a time, one pass for each factor of their length.

A pass for a factor r splits transforms into r times as many that are r times shorter: of left = r m elements it reads x as [r, m, S] and
writes y[p, k, :] = w^(p k) sum over j of exp(-2 pi i j k / r) x[j, p, :], w = exp(-2 pi i / left), as [m, r, S]. After the last pass
everything is in order. S, the innermost loop and the vector lanes, is r times longer after each pass.

Initially several lines are interleaved element by element. If they are fewer than the lanes, the elements of a line form a matrix [first,
second]: its columns are transformed together, then multiplied by roots of unity and transposed, and then its rows, which are now columns.
`first` is the product of the first factors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import cos, pi, sin
from typing import TypeAlias

from relayc.dialects.discardable import DISTINCT
from relayc.dialects.mlir import arith, math
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, extract, index_constant
from relayc.pipelines.te.rules.literal import divide, equal, index_of, less
from relayc.pipelines.te.rules.loops import insert, loop, repeat_while, when
from relayc.pipelines.te.rules.scalar import both, negated

Complex: TypeAlias = tuple[Value, Value]

UNROLLED = (8, 4, 2, 3, 5)
"""Factors with specialized code."""
LINE_BYTES = 64
"""Bytes of a cache line; its elements are the lanes of the widest vectors."""
_TILE = 32
"""Elements of each line that are read or written before the next line."""


def tiled(lines: Value, extent: Value, carried: Value, body: Callable[[Value, Value, Value], Value]) -> Value:
    """`body` of a line, an element and the carried value, for all elements of all lines, tiled by a few elements of each line."""
    zero, one, tile = (index_constant(n) for n in (0, 1, _TILE))

    def of_tile(begin: Value, carried: Value) -> list[Value]:
        end = arith.minsi(arith.addi(begin, tile), extent)

        def of_line(line: Value, carried: Value) -> list[Value]:
            return loop(begin, end, one, [carried], lambda j, carried: [body(line, j, carried)])

        return loop(zero, lines, one, [carried], of_line)

    return loop(zero, extent, tile, [carried], of_tile)[0]


@dataclass(frozen=True)
class Numbers:
    """Arithmetic of complex numbers as pairs of floats of `dtype`."""

    dtype: str

    def constant(self, value: float) -> Value:
        return scalar.constant(value, self.dtype)

    def add(self, a: Complex, b: Complex) -> Complex:
        return scalar.add(a[0], b[0], self.dtype), scalar.add(a[1], b[1], self.dtype)

    def subtract(self, a: Complex, b: Complex) -> Complex:
        return scalar.subtract(a[0], b[0], self.dtype), scalar.subtract(a[1], b[1], self.dtype)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        return math.fma(a, b, c)

    def scale(self, a: Complex, factor: Value) -> Complex:
        return scalar.multiply(a[0], factor, self.dtype), scalar.multiply(a[1], factor, self.dtype)

    def multiply(self, a: Complex, b: Complex, added: Complex | None = None) -> Complex:
        """a b, or a b + added."""
        if added is None:
            real, imaginary = scalar.multiply(a[0], b[0], self.dtype), scalar.multiply(a[0], b[1], self.dtype)
        else:
            real, imaginary = self.multiply_add(a[0], b[0], added[0]), self.multiply_add(a[0], b[1], added[1])
        return self.multiply_add(self.negative(a[1]), b[1], real), self.multiply_add(a[1], b[0], imaginary)

    def negative(self, a: Value) -> Value:
        return scalar.negative(a, self.dtype)

    def conjugate(self, a: Complex) -> Complex:
        return a[0], self.negative(a[1])

    def by_minus_i(self, a: Complex) -> Complex:
        return a[1], self.negative(a[0])

    def transform(self, x: Sequence[Complex]) -> list[Complex]:
        """The transform of a few elements."""
        n = len(x)
        if n == 2:
            return [self.add(*x), self.subtract(*x)]
        if n % 2:
            return self._odd(x)
        even, odd = self.transform(x[::2]), self.transform(x[1::2])
        both_halves = list(zip(even, (self._turn(v, k, n) for k, v in enumerate(odd)), strict=True))
        return [combine(a, b) for combine in (self.add, self.subtract) for a, b in both_halves]

    def _turn(self, a: Complex, k: int, n: int) -> Complex:
        """a exp(-2 pi i k / n), for k below n / 2 and n out of 2, 4 and 8."""
        if k == 0:
            return a
        if 4 * k >= n:
            return self.by_minus_i(self._turn(a, k - n // 4, n))
        root = self.constant(0.5**0.5)
        return self.scale((scalar.add(a[0], a[1], self.dtype), scalar.subtract(a[1], a[0], self.dtype)), root)

    def _add_scaled(self, a: Complex, b: Complex, factor: float) -> Complex:
        scale = self.constant(factor)
        return self.multiply_add(b[0], scale, a[0]), self.multiply_add(b[1], scale, a[1])

    def _odd(self, x: Sequence[Complex]) -> list[Complex]:
        """Frequencies k and n - k share their sums: of x[j] + x[n - j] with cosines, of x[j] - x[n - j] with sines."""
        n, first, half = len(x), x[0], range(1, len(x) // 2 + 1)
        sums, differences = ([f(x[j], x[-j]) for j in half] for f in (self.add, self.subtract))
        found = [reduce(self.add, sums, first)] + [first] * (n - 1)
        for k in half:
            even, odd = first, self.scale(differences[0], self.constant(sin(2 * pi * k / n)))
            for j, total, difference in zip(half, sums, differences, strict=True):
                even = self._add_scaled(even, total, cos(2 * pi * j * k / n))
                odd = self._add_scaled(odd, difference, sin(2 * pi * j * k / n)) if j > 1 else odd
            turned = self.by_minus_i(odd)
            found[k], found[n - k] = self.add(even, turned), self.subtract(even, turned)
        return found


@dataclass(frozen=True)
class Lines:
    """Lines that are transformed together.

    Attributes:
      numbers: arithmetic of their elements.
      size: elements of a line.
      width: number of lines.
      total: elements of all lines.
      plane: distance from the real parts of a copy to its imaginary parts, and from these to the next copy.
      roots: the table of the operator, and `order`, its number of entries.
      plan: the operator's.
      kinds: possible factors, specialized ones first; of the others one represents all.

    The work tensor has 4 planes: real and imaginary parts of two copies; a pass reads one copy and writes the other. A copy is given by its
    offset.
    """

    numbers: Numbers
    size: Value
    width: Value
    total: Value
    plane: Value
    roots: Value
    order: Value
    plan: Value
    kinds: Sequence[int]

    def other(self, copy: Value) -> Value:
        """The offset of the other copy."""
        return arith.subi(arith.muli(self.plane, index_constant(2)), copy)

    def element(self, work: Value, at: Value) -> Complex:
        return extract(work, [at]), extract(work, [arith.addi(at, self.plane)])

    def put(self, value: Complex, work: Value, at: Value) -> Value:
        return insert(value[1], insert(value[0], work, [at]), [arith.addi(at, self.plane)])

    def root(self, power: Value) -> Complex:
        return extract(self.roots, [index_constant(0), power]), extract(self.roots, [index_constant(1), power])

    def planned(self, position: Value) -> Value:
        return index_of(extract(self.plan, [position]), "int64")

    def transformed(self, work: Value) -> tuple[Value, Value]:
        """`work` with the transforms of the lines in its first copy, and their offset."""
        zero, one, two = (index_constant(n) for n in (0, 1, 2))
        count = self.planned(one)
        lanes = index_constant(LINE_BYTES // (scalar.te_element(self.numbers.dtype).width // 8))

        def is_narrow(i: Value, first: Value) -> Value:
            return both(less(i, count), less(arith.muli(first, self.width), lanes))

        def longer(i: Value, first: Value) -> list[Value]:
            return [arith.addi(i, one), arith.muli(first, self.planned(arith.addi(i, two)))]

        split, first = repeat_while([zero, one], is_narrow, longer)
        second = divide(self.size, first)
        begin = scalar.select(equal(split, zero), self.size, first)

        def step(i: Value, work: Value, copy: Value, left: Value) -> list[Value]:
            turns = both(equal(i, split), negated(equal(i, zero)))
            work, copy, left = when(
                turns, [work, copy, left], lambda *_: [self.turned(work, copy, first, second), self.other(copy), second]
            )
            factor = self.planned(arith.addi(i, two))
            m = divide(left, factor)
            work = self.passed(work, copy, left, factor, m)
            return [work, self.other(copy), m]

        work, copy, _ = loop(zero, count, one, [work, zero, begin], step)
        return work, copy

    def turned(self, work: Value, copy: Value, first: Value, second: Value) -> Value:
        """Multiplies matrices [first, second] of lines by roots of unity, and transposes them into the other copy."""
        target, step, row = self.other(copy), divide(self.order, self.size), arith.muli(second, self.width)

        def of_line(q: Value, work: Value) -> list[Value]:
            def of_element(k: Value, p: Value, work: Value) -> Value:
                begin = arith.addi(arith.addi(copy, q), arith.addi(arith.muli(k, row), arith.muli(p, self.width)))
                end = arith.addi(arith.addi(target, q), arith.muli(arith.addi(arith.muli(p, first), k), self.width))
                found = self.numbers.multiply(self.element(work, begin), self.root(arith.muli(arith.muli(p, step), k)))
                return self.put(found, work, end)

            return [tiled(first, second, work, of_element)]

        return loop(index_constant(0), self.width, index_constant(1), [work], of_line)[0]

    def passed(self, work: Value, copy: Value, left: Value, factor: Value, m: Value) -> Value:
        """One pass from a copy to the other one."""

        def among(kinds: Sequence[int]) -> Callable[[Value], list[Value]]:
            def first(work: Value) -> list[Value]:
                if kinds[0] in UNROLLED:
                    return [self._unrolled(work, copy, left, kinds[0], m)]
                return [self._looped(work, copy, left, factor, m)]

            if len(kinds) == 1:
                return first
            return lambda work: when(equal(factor, index_constant(kinds[0])), [work], first, among(kinds[1:]))

        return among(self.kinds)(work)[0]

    def _of_each(self, work: Value, m: Value, body: Callable[[Value, Value], Value]) -> Value:
        """`body` of p and `work`, for all p below m."""
        return loop(index_constant(0), m, index_constant(1), [work], lambda p, work: [body(p, work)])[0]

    def _side_by_side(self, extent: Value, work: Value, body: Callable[[Value, Value], Value]) -> Value:
        """`body` for contiguous elements, which are independent."""
        found = loop(index_constant(0), extent, index_constant(1), [work], lambda q, work: [body(q, work)])[0]
        DISTINCT.mark(found.owner.operation)
        return found

    def _unrolled(self, work: Value, copy: Value, left: Value, factor: int, m: Value) -> Value:
        inner, step, target = divide(self.total, left), divide(self.order, left), self.other(copy)
        apart = arith.muli(m, inner)

        def part(p: Value, work: Value) -> Value:
            power = arith.muli(p, step)
            roots = [self.root(arith.muli(power, index_constant(k))) for k in range(1, factor)]
            source, sink = arith.muli(p, inner), arith.muli(p, arith.muli(inner, index_constant(factor)))
            sources = [arith.addi(copy, arith.addi(source, arith.muli(apart, index_constant(j)))) for j in range(factor)]
            sinks = [arith.addi(target, arith.addi(sink, arith.muli(inner, index_constant(k)))) for k in range(factor)]

            def body(q: Value, work: Value) -> Value:
                found = self.numbers.transform([self.element(work, arith.addi(s, q)) for s in sources])
                found[1:] = [self.numbers.multiply(y, w) for y, w in zip(found[1:], roots, strict=True)]
                for y, sink in zip(found, sinks, strict=True):
                    work = self.put(y, work, arith.addi(sink, q))
                return work

            return self._side_by_side(inner, work, body)

        return self._of_each(work, m, part)

    def _looped(self, work: Value, copy: Value, left: Value, factor: Value, m: Value) -> Value:
        """The pass of a factor without specialized code, by its definition."""
        inner, step, target = divide(self.total, left), divide(self.order, left), self.other(copy)
        zero, one, nothing = index_constant(0), index_constant(1), self.numbers.constant(0.0)
        apart, turn = arith.muli(m, inner), divide(self.order, factor)

        def part(p: Value, work: Value) -> Value:
            source, sink = arith.addi(copy, arith.muli(p, inner)), arith.addi(target, arith.muli(p, arith.muli(inner, factor)))

            def frequency(k: Value, work: Value) -> list[Value]:
                root, end = self.root(arith.muli(arith.muli(p, step), k)), arith.addi(sink, arith.muli(k, inner))
                by = arith.muli(k, turn)

                def body(q: Value, work: Value) -> Value:
                    begin = arith.addi(source, q)

                    def term(j: Value, real: Value, imaginary: Value, power: Value) -> list[Value]:
                        x = self.element(work, arith.addi(begin, arith.muli(j, apart)))
                        total = self.numbers.multiply(x, self.root(power), (real, imaginary))
                        power = arith.addi(power, by)
                        inside = less(power, self.order)
                        return [*total, scalar.select(inside, power, arith.subi(power, self.order))]

                    *total, _ = loop(zero, factor, one, [nothing, nothing, zero], term)
                    return self.put(self.numbers.multiply((total[0], total[1]), root), work, arith.addi(end, q))

                return [self._side_by_side(inner, work, body)]

            return loop(zero, factor, one, [work], frequency)[0]

        return self._of_each(work, m, part)
