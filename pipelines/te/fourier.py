"""Compute rules of Fourier transforms: Stockham's passes, one for each factor of the length, on lines side by side.

A pass for a factor r makes r times as many transforms that are r times shorter: of left = r m elements it reads x as [r, m, S] and writes
y[p, k, :] = w^(p k) sum over j of exp(-2 pi i j k / r) x[j, p, :], w = exp(-2 pi i / left), as [m, r, S]. After the last pass everything is
in order. S, the innermost loop and the lanes of vectors, is r times longer after each pass.

It begins with several lines, element by element side by side. Where these are fewer than the lanes, the elements of a line are a matrix
[first, second]: its columns are transformed side by side, then multiplied with roots of 1 and transposed, and then its rows, which are the
columns now. `first` is the product of the first factors.

Factors are those of a plan, which the program computes where the length is a symbol: the same code serves all lengths.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import cos, factorial, pi, sin
from typing import TypeAlias

from relayc.dialects.mlir import arith, ir, linalg, math
from relayc.dialects.relay.attributes import size_attribute
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.fourier import LARGEST_FACTOR, PLAN, plan_of
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.kernel.updates import DISTINCT, THREADS
from relayc.pipelines.te import scalar
from relayc.pipelines.te.core import Value, affine_map, compute, dim, empty, extract, index_constant, operand_type, parallel, result_type
from relayc.pipelines.te.literal import add, index_of, integer_of
from relayc.pipelines.te.loops import insert, loop, repeat_while, when
from relayc.pipelines.te.scalar import both
from relayc.symbolic import Size, ceil_div, maximum, minimum

Complex: TypeAlias = tuple[Value, Value]

_LINE_BYTES = 64
"""As many lines side by side as there are elements in them: the lanes of the widest vectors."""
_SIDE_BY_SIDE = 1024
"""The longest lines of which several are side by side: longer ones have lanes enough in themselves, and take the caches that are near."""
_SPREAD = 5
"""Lines of the cache between planes, which would share sets of the cache where their size is a power of two."""
_TILE = 32
"""Elements of each line that are read or written before those of the next one."""
_TERMS = 10
"""Of the series of sine and cosine: up to an eighth of a circle the first one left out is below the precision of a float64."""
_PASSES = 4
"""Operations on an element, in iterations of a loop that is worth a thread."""
_UNROLLED = (8, 4, 2, 3, 5)
"""Factors with code of their own."""


# ---- arithmetic -----------------------------------------------------------------------------------------------------------------------


def _times(a: Value, b: Value) -> Value:
    return arith.MulIOp(a, b).result


def _over(a: Value, b: Value) -> Value:
    """The quotient of two indices that are not negative; a divisor of 0, which no plan has, counts as 1."""
    return arith.DivUIOp(a, arith.MaxUIOp(b, index_constant(1)).result).result


def _minus(a: Value, b: Value) -> Value:
    return arith.SubIOp(a, b).result


def _equal(a: Value, b: Value) -> Value:
    return arith.cmpi(arith.CmpIPredicate.eq, a, b)


def _tiled(lines: Value, extent: Value, carried: Value, body: Callable[[Value, Value, Value], Value]) -> Value:
    """`body` of a line, an element and what is carried, for all elements of all lines: a few of each line after the other."""
    zero, one, tile = (index_constant(n) for n in (0, 1, _TILE))

    def of_tile(begin: Value, carried: Value) -> list[Value]:
        end = arith.MinSIOp(add(begin, tile), extent).result

        def of_line(line: Value, carried: Value) -> list[Value]:
            return loop(begin, end, one, [carried], lambda j, carried: [body(line, j, carried)])

        return loop(zero, lines, one, [carried], of_line)

    return loop(zero, extent, tile, [carried], of_tile)[0]


@dataclass(frozen=True)
class _Numbers:
    """Arithmetic of complex numbers as pairs of floats of `dtype`."""

    dtype: str

    def constant(self, value: float) -> Value:
        return scalar.constant(value, self.dtype)

    def add(self, a: Complex, b: Complex) -> Complex:
        return scalar.add(a[0], b[0], self.dtype), scalar.add(a[1], b[1], self.dtype)

    def subtract(self, a: Complex, b: Complex) -> Complex:
        return scalar.subtract(a[0], b[0], self.dtype), scalar.subtract(a[1], b[1], self.dtype)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        return math.FmaOp(a, b, c).result

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
        turned = [self._turn(v, k, n) for k, v in enumerate(odd)]
        return [self.add(a, b) for a, b in zip(even, turned, strict=True)] + [
            self.subtract(a, b) for a, b in zip(even, turned, strict=True)
        ]

    def _turn(self, a: Complex, k: int, n: int) -> Complex:
        """a exp(-2 pi i k / n), for a k below n / 2."""
        if k == 0:
            return a
        if 4 * k > n:
            return self.by_minus_i(self._turn(a, k - n // 4, n))
        if 4 * k == n:
            return self.by_minus_i(a)
        if 8 * k == n:
            root = self.constant(0.5**0.5)
            return self.scale((scalar.add(a[0], a[1], self.dtype), scalar.subtract(a[1], a[0], self.dtype)), root)
        return self.multiply(a, (self.constant(cos(2 * pi * k / n)), self.constant(-sin(2 * pi * k / n))))

    def _odd(self, x: Sequence[Complex]) -> list[Complex]:
        """Frequencies k and n - k share their sums: of x[j] + x[n - j] with cosines, of x[j] - x[n - j] with sines."""
        n, first, half = len(x), x[0], range(1, len(x) // 2 + 1)
        sums, differences = ([f(x[j], x[-j]) for j in half] for f in (self.add, self.subtract))
        found = [reduce(self.add, sums, first)] + [first] * (n - 1)
        for k in half:
            even, odd = first, None
            for j in half:
                c, s = self.constant(cos(2 * pi * j * k / n)), self.constant(sin(2 * pi * j * k / n))
                of_sum, of_difference = sums[j - 1], differences[j - 1]
                even = self.multiply_add(of_sum[0], c, even[0]), self.multiply_add(of_sum[1], c, even[1])
                if odd is None:
                    odd = self.scale(of_difference, s)
                else:
                    odd = self.multiply_add(of_difference[0], s, odd[0]), self.multiply_add(of_difference[1], s, odd[1])
            assert odd is not None
            turned = self.by_minus_i(odd)
            found[k], found[n - k] = self.add(even, turned), self.subtract(even, turned)
        return found


# ---- passes ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lines:
    """Lines that are transformed side by side.

    Attributes:
      numbers: arithmetic of their elements.
      size: elements of a line.
      width: how many lines there are.
      total: elements of all lines.
      plane: from the real parts of a copy to its imaginary parts, and from these to the next copy.
      roots: the table of the operator, and `order`, how many there are.
      plan: that of the operator.
      kinds: factors that it may have, those with code of their own first; of the others one stands for all.

    What is worked in is a tensor of 4 planes: real and imaginary parts of two copies, of which a pass reads one and writes the other.
    A copy is given by where it begins.
    """

    numbers: _Numbers
    size: Value
    width: Value
    total: Value
    plane: Value
    roots: Value
    order: Value
    plan: Value
    kinds: Sequence[int]

    def other(self, copy: Value) -> Value:
        """Where the other copy begins."""
        return _minus(_times(self.plane, index_constant(2)), copy)

    def element(self, work: Value, at: Value) -> Complex:
        return extract(work, [at]), extract(work, [add(at, self.plane)])

    def put(self, value: Complex, work: Value, at: Value) -> Value:
        return insert(value[1], insert(value[0], work, [at]), [add(at, self.plane)])

    def root(self, power: Value) -> Complex:
        return extract(self.roots, [index_constant(0), power]), extract(self.roots, [index_constant(1), power])

    def planned(self, position: Value) -> Value:
        return index_of(extract(self.plan, [position]), "int64")

    def transformed(self, work: Value) -> tuple[Value, Value]:
        """`work` with the transforms of the lines in its first copy, and where they begin."""
        zero, one, two = (index_constant(n) for n in (0, 1, 2))
        count = self.planned(one)
        lanes = index_constant(_LINE_BYTES // (scalar.te_element(self.numbers.dtype).width // 8))

        def is_narrow(i: Value, first: Value) -> Value:
            return both(scalar.compare("lt", i, count, "int64"), scalar.compare("lt", _times(first, self.width), lanes, "int64"))

        def longer(i: Value, first: Value) -> list[Value]:
            return [add(i, one), _times(first, self.planned(add(i, two)))]

        split, first = repeat_while([zero, one], is_narrow, longer)
        second = _over(self.size, first)
        begin = scalar.select(_equal(split, zero), self.size, first)

        def step(i: Value, work: Value, copy: Value, left: Value) -> list[Value]:
            turns = both(_equal(i, split), scalar.compare("ne", i, zero, "int64"))
            work, copy, left = when(
                turns, [work, copy, left], lambda *_: [self.turned(work, copy, first, second), self.other(copy), second]
            )
            factor = self.planned(add(i, two))
            m = _over(left, factor)
            work = self.passed(work, copy, left, factor, m)
            return [work, self.other(copy), m]

        work, copy, _ = loop(zero, count, one, [work, zero, begin], step)
        return work, copy

    def turned(self, work: Value, copy: Value, first: Value, second: Value) -> Value:
        """Matrices [first, second] of lines into the other copy: multiplied with roots, and transposed."""
        target, step, row = self.other(copy), _over(self.order, self.size), _times(second, self.width)

        def of_element(k: Value, p: Value, work: Value) -> Value:
            root = self.root(_times(_times(p, step), k))
            begin, end = add(copy, add(_times(k, row), _times(p, self.width))), add(target, _times(add(_times(p, first), k), self.width))

            def of_line(q: Value, work: Value) -> list[Value]:
                return [self.put(self.numbers.multiply(self.element(work, add(begin, q)), root), work, add(end, q))]

            return loop(index_constant(0), self.width, index_constant(1), [work], of_line)[0]

        return _tiled(first, second, work, of_element)

    def passed(self, work: Value, copy: Value, left: Value, factor: Value, m: Value) -> Value:
        """One pass from a copy into the other one."""

        def among(kinds: Sequence[int]) -> Callable[[Value], list[Value]]:
            def first(work: Value) -> list[Value]:
                return [
                    self._unrolled(work, copy, left, kinds[0], m) if kinds[0] in _UNROLLED else self._looped(work, copy, left, factor, m)
                ]

            if len(kinds) == 1:
                return first
            return lambda work: when(_equal(factor, index_constant(kinds[0])), [work], first, among(kinds[1:]))

        return among(self.kinds)(work)[0]

    def _of_each(self, work: Value, m: Value, body: Callable[[Value, Value, Value], Value]) -> Value:
        """`body` of p, its part of the elements, and `work`, for all p below m."""
        return loop(index_constant(0), m, index_constant(1), [work], lambda p, work: [body(p, work)])[0]

    def _side_by_side(self, extent: Value, work: Value, body: Callable[[Value, Value], Value]) -> Value:
        """`body` for neighbours, which are independent."""
        found = loop(index_constant(0), extent, index_constant(1), [work], lambda q, work: [body(q, work)])[0]
        found.owner.operation.attributes[DISTINCT] = ir.UnitAttr.get()
        return found

    def _unrolled(self, work: Value, copy: Value, left: Value, factor: int, m: Value) -> Value:
        inner, step, target = _over(self.total, left), _over(self.order, left), self.other(copy)
        apart = _times(m, inner)

        def part(p: Value, work: Value) -> Value:
            power = _times(p, step)
            roots = [self.root(_times(power, index_constant(k))) for k in range(1, factor)]
            source, sink = _times(p, inner), _times(p, _times(inner, index_constant(factor)))
            sources = [add(copy, add(source, _times(apart, index_constant(j)))) for j in range(factor)]
            sinks = [add(target, add(sink, _times(inner, index_constant(k)))) for k in range(factor)]

            def body(q: Value, work: Value) -> Value:
                found = self.numbers.transform([self.element(work, add(s, q)) for s in sources])
                found[1:] = [self.numbers.multiply(y, w) for y, w in zip(found[1:], roots, strict=True)]
                for y, sink in zip(found, sinks, strict=True):
                    work = self.put(y, work, add(sink, q))
                return work

            return self._side_by_side(inner, work, body)

        return self._of_each(work, m, part)

    def _looped(self, work: Value, copy: Value, left: Value, factor: Value, m: Value) -> Value:
        """The pass of a factor without code of its own, by its definition."""
        inner, step, target = _over(self.total, left), _over(self.order, left), self.other(copy)
        zero, one, nothing = index_constant(0), index_constant(1), self.numbers.constant(0.0)
        apart, turn = _times(m, inner), _over(self.order, factor)

        def part(p: Value, work: Value) -> Value:
            source, sink = add(copy, _times(p, inner)), add(target, _times(p, _times(inner, factor)))

            def frequency(k: Value, work: Value) -> list[Value]:
                root, end = self.root(_times(_times(p, step), k)), add(sink, _times(k, inner))
                by = _times(k, turn)

                def body(q: Value, work: Value) -> Value:
                    begin = add(source, q)

                    def term(j: Value, real: Value, imaginary: Value, power: Value) -> list[Value]:
                        x = self.element(work, add(begin, _times(j, apart)))
                        total = self.numbers.multiply(x, self.root(power), (real, imaginary))
                        power = add(power, by)
                        around = scalar.compare("ge", power, self.order, "int64")
                        return [*total, scalar.select(around, _minus(power, self.order), power)]

                    *total, _ = loop(zero, factor, one, [nothing, nothing, zero], term)
                    return self.put(self.numbers.multiply((total[0], total[1]), root), work, add(end, q))

                return [self._side_by_side(inner, work, body)]

            return loop(zero, factor, one, [work], frequency)[0]

        return self._of_each(work, m, part)


# ---- rules ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Rows of `fft` that are read into lines, and lines that are written.

    Real rows of an even length n are lines of n / 2 elements, of which each is two neighbours: with E and O the transforms of the even and
    odd elements, those of the lines are E + i O, and those of the rows E + exp(-2 pi i k / n) O.

    Attributes:
      op: the operator; `data`: its operand.
      given: elements of a row that there are; None where there are all.
      factors: those of the operator.
      lines: what the rows are transformed as.
      first: number of the first row.
      pairs: whether an element of a line is two of a row; None where the rows are complex.
    """

    op: Op
    data: Value
    given: Value | None
    factors: Sequence[Value]
    lines: _Lines
    first: Value
    pairs: Value | None

    @property
    def _parts(self) -> int:
        return self.data.type.shape[2]

    def read(self, work: Value) -> Value:
        """`work` with the rows in its first copy. The inverse transform of z is that of z with its parts swapped, swapped again."""
        if self.op.to_real:
            return self._both(work, lambda pairs: lambda row, j: self._of_frequencies(row, j, pairs), True)
        if self.pairs is None:
            return self._filled(work, self._of_complex, self.op.inverse)
        return self._both(work, lambda pairs: lambda row, j: self._of_real(row, j, pairs), False)

    def _both(self, work: Value, element: Callable[[bool], Callable[[Value, Value], Complex]], swapped: bool) -> Value:
        assert self.pairs is not None
        return when(
            self.pairs,
            [work],
            lambda work: [self._filled(work, element(True), swapped)],
            lambda work: [self._filled(work, element(False), swapped)],
        )[0]

    def _part(self, row: Value, j: Value, part: int) -> Value:
        at = [row, j, index_constant(part)]
        if self.given is None:
            return extract(self.data, at)
        there, nothing = scalar.compare("lt", j, self.given, "int64"), self.lines.numbers.constant(0.0)
        return when(there, [nothing], lambda _: [extract(self.data, at)])[0]

    def _factor(self, number: int, at: Value, value: Complex) -> Complex:
        """A value times an element of one of the factors, where there is one."""
        if number >= len(self.factors):
            return value
        real, imaginary = (extract(self.factors[number], [index_constant(part), at]) for part in (0, 1))
        return self.lines.numbers.multiply(value, (real, imaginary))

    def _of_complex(self, row: Value, j: Value) -> Complex:
        imaginary = self._part(row, j, 1) if self._parts == 2 else self.lines.numbers.constant(0.0)
        return self._factor(0, j, (self._part(row, j, 0), imaginary))

    def _of_real(self, row: Value, j: Value, pairs: bool) -> Complex:
        if not pairs:
            return self._part(row, j, 0), self.lines.numbers.constant(0.0)
        at = _times(j, index_constant(2))
        return self._part(row, at, 0), self._part(row, add(at, index_constant(1)), 0)

    def _of_frequencies(self, row: Value, k: Value, pairs: bool) -> Complex:
        """E + i O of frequencies of real rows; else those of the other half, too."""
        numbers, zero = self.lines.numbers, index_constant(0)
        is_first, nothing = _equal(k, zero), numbers.constant(0.0)

        def frequency(at: Value, is_real: Value) -> Complex:
            imaginary = self._part(row, at, 1) if self._parts == 2 else nothing
            return self._part(row, at, 0), scalar.select(is_real, nothing, imaginary)

        mirrored = _minus(self.lines.size, k)
        if pairs:
            here, there = frequency(k, is_first), numbers.conjugate(frequency(mirrored, is_first))
            odd = numbers.multiply(numbers.subtract(here, there), numbers.conjugate(self.lines.root(k)))
            even = numbers.add(here, there)
            return numbers.scale(
                (scalar.subtract(even[0], odd[1], numbers.dtype), scalar.add(even[1], odd[0], numbers.dtype)), numbers.constant(0.5)
            )
        is_given = scalar.compare("le", k, mirrored, "int64")
        found = frequency(scalar.select(is_given, k, mirrored), is_first)
        return found[0], scalar.select(is_given, found[1], numbers.negative(found[1]))

    def _filled(self, work: Value, element: Callable[[Value, Value], Complex], swapped: bool) -> Value:
        def put(line: Value, j: Value, work: Value) -> Value:
            value = element(add(self.first, line), j)
            return self.lines.put(value[::-1] if swapped else value, work, add(_times(j, self.lines.width), line))

        return _tiled(self.lines.width, self.lines.size, work, put)

    def write(self, work: Value, copy: Value, result: Value) -> Value:
        """The results of the lines that begin at `copy`."""
        if self.op.to_real:
            return self._either(result, lambda pairs: lambda result: self._real(work, copy, result, pairs))
        if self.pairs is None:
            return self._frequencies(result, lambda line, k: self._line(work, copy, line, k), self.op.inverse)
        return self._either(
            result,
            lambda pairs: (
                lambda result: self._frequencies(
                    result, lambda line, k: (self._unpacked if pairs else self._line)(work, copy, line, k), False
                )
            ),
        )

    def _either(self, result: Value, written: Callable[[bool], Callable[[Value], Value]]) -> Value:
        assert self.pairs is not None
        return when(self.pairs, [result], lambda result: [written(True)(result)], lambda result: [written(False)(result)])[0]

    def _line(self, work: Value, copy: Value, line: Value, k: Value) -> Complex:
        return self.lines.element(work, add(copy, add(_times(k, self.lines.width), line)))

    def _unpacked(self, work: Value, copy: Value, line: Value, k: Value) -> Complex:
        """A frequency of a real row from those of the line of its pairs."""
        numbers, size = self.lines.numbers, self.lines.size
        beyond = scalar.compare("ge", k, size, "int64")
        here = scalar.select(beyond, _minus(k, size), k)
        mirrored = scalar.select(_equal(here, index_constant(0)), here, _minus(size, here))
        a, b = self._line(work, copy, line, here), numbers.conjugate(self._line(work, copy, line, mirrored))
        odd = numbers.by_minus_i(numbers.multiply(numbers.subtract(a, b), self.lines.root(k)))
        return numbers.scale(numbers.add(numbers.add(a, b), odd), numbers.constant(0.5))

    def _frequencies(self, result: Value, found: Callable[[Value, Value], Complex], swapped: bool) -> Value:
        factor = self._inverse_of(self.lines.order)

        def put(line: Value, k: Value, result: Value) -> Value:
            value = found(line, k)
            value = value[::-1] if swapped else self.lines.numbers.conjugate(value) if self.op.inverse else value
            value = self._factor(1, k, self.lines.numbers.scale(value, factor) if self.op.inverse else value)
            row = add(self.first, line)
            return insert(value[1], insert(value[0], result, [row, k, index_constant(0)]), [row, k, index_constant(1)])

        return _tiled(self.lines.width, index_constant(self.op.frequencies), result, put)

    def _real(self, work: Value, copy: Value, result: Value, pairs: bool) -> Value:
        factor, zero = self._inverse_of(self.lines.size), index_constant(0)

        def put(line: Value, j: Value, result: Value) -> Value:
            # With its parts swapped, as the transform was.
            odd, even = self.lines.numbers.scale(self._line(work, copy, line, j), factor)
            row = add(self.first, line)
            if not pairs:
                return insert(even, result, [row, j, zero])
            at = _times(j, index_constant(2))
            return insert(odd, insert(even, result, [row, at, zero]), [row, add(at, index_constant(1)), zero])

        return _tiled(self.lines.width, self.lines.size, result, put)

    def _inverse_of(self, size: Value) -> Value:
        numbers = self.lines.numbers
        return arith.DivFOp(numbers.constant(1.0), integer_of(size, numbers.dtype)).result


def _kinds(op: Op, halved: bool) -> list[int]:
    """Which code the passes need."""
    if op.is_power_of_two:
        return [8, 4, 2]
    if not isinstance(op.length, int):
        return [*_UNROLLED, LARGEST_FACTOR]
    factors = set(plan_of(op.length // 2 if halved and op.length % 2 == 0 else op.length)[2:])
    others = sorted(factors - set(_UNROLLED))
    return [known for known in _UNROLLED if known in factors] + others[:1] or [2]


@compute("fft")
def fft(op: Op, data: Value, roots: Value, plan: Value, *factors: Value) -> Value:
    source, out = operand_type(op), result_type(op)
    if out.num_elements == 0:
        return empty(out)
    batch, length, numbers = source.sizes[0], op.length, _Numbers(source.dtype)
    lanes = _LINE_BYTES // (scalar.te_element(source.dtype).width // 8)
    side_by_side: Size = maximum(1, minimum(minimum(batch, lanes), _SIDE_BY_SIDE // maximum(length, 1) * lanes))
    plane = length * side_by_side + _SPREAD * lanes
    zero, one, order = index_constant(0), index_constant(1), index_constant(length)
    pairs, size = None, order
    wanted = length // 2 + 1 if op.to_real else length
    given = None if source.sizes[1] == wanted else index_constant(source.sizes[1])
    if op.to_real or (source.sizes[2] == 1 and not factors):
        pairs = _equal(both(order, one), zero)
        size = scalar.select(pairs, arith.ShRUIOp(order, one).result, order)

    def block(number: Value, result: Value) -> list[Value]:
        first = _times(number, index_constant(side_by_side))
        width = arith.MinSIOp(index_constant(side_by_side), _minus(index_constant(batch), first)).result
        lines = _Lines(numbers, size, width, _times(size, width), index_constant(plane), roots, order, plan, _kinds(op, pairs is not None))
        rows = _Rows(op, data, given, factors, lines, first, pairs)
        work = rows.read(empty(TensorType((4 * plane,), source.dtype)))
        work, copy = lines.transformed(work)
        return [rows.write(work, copy, result)]

    found = loop(zero, index_constant(ceil_div(batch, side_by_side)), one, [empty(out)], block)[0]
    attributes = found.owner.operation.attributes
    attributes[DISTINCT], attributes[THREADS] = ir.UnitAttr.get(), size_attribute(_PASSES * length * side_by_side)
    return found


@compute("fft_plan")
def fft_plan(op: Op, length: Value) -> Value:
    """See `plan_of`."""
    zero, one, two, three, four, eight = (index_constant(n) for n in (0, 1, 2, 3, 4, 8))
    dtype = result_type(op).dtype
    plan = loop(zero, index_constant(PLAN), one, [empty(result_type(op))], lambda i, plan: [insert(integer_of(zero, dtype), plan, [i])])[0]

    def rest(left: Value, by: int) -> Value:
        return arith.RemUIOp(left, index_constant(by)).result

    def power_of_two(left: Value) -> Value:
        small = scalar.select(_equal(rest(left, 4), zero), four, two)
        takes_eight = both(_equal(rest(left, 8), zero), scalar.compare("ne", rest(left, 32), index_constant(16), dtype))
        return scalar.select(takes_eight, eight, small)

    def divided(divisor: Value, carried: Sequence[Value], factor: Callable[[Value], Value]) -> list[Value]:
        """All factors of a kind."""

        def divides(left: Value, count: Value, plan: Value) -> Value:
            return both(scalar.compare("gt", left, zero, dtype), _equal(arith.RemUIOp(left, divisor).result, zero))

        def take(left: Value, count: Value, plan: Value) -> list[Value]:
            by = factor(left)
            return [_over(left, by), add(count, one), insert(integer_of(by, dtype), plan, [add(count, two)])]

        return repeat_while(carried, divides, take)

    carried = divided(two, [index_of(extract(length, []), dtype), zero, plan], power_of_two)
    left, count, plan = loop(
        three, index_constant(LARGEST_FACTOR + 1), two, carried, lambda odd, *carried: divided(odd, carried, lambda _: odd)
    )
    return insert(integer_of(count, dtype), insert(integer_of(left, dtype), plan, [zero]), [one])


@compute("fft_roots")
def fft_roots(op: Op, powers: Value, length: Value) -> Value:
    """Of the nearest quarter of the circle, and an angle of at most an eighth from there: quarters are exact."""
    out, wide = result_type(op), "float64"

    def number(value: float) -> Value:
        return scalar.constant(value, wide)

    def times(a: Value, b: Value) -> Value:
        return scalar.multiply(a, b, wide)

    def body(power: Value, length: Value) -> Value:
        period = scalar.convert(length, "int64", wide)
        inverse = arith.DivFOp(number(1.0), period).result
        steps = times(scalar.convert(power, "int64", wide), number(4.0))
        quarter = math.RoundEvenOp(times(steps, inverse)).result
        angle = times(math.FmaOp(scalar.negative(quarter, wide), period, steps).result, times(inverse, number(pi / 2)))
        # -sin x is cos of a quarter more; the cosine of an odd number of quarters and an angle is a sine of the angle.
        quarter = scalar.add(quarter, scalar.convert(integer_of(linalg.IndexOp(0).result, "int64"), "int64", wide), wide)
        half = times(quarter, number(0.5))
        is_odd = scalar.compare("ne", math.FloorOp(half).result, half, wide)
        turns = times(scalar.add(quarter, number(1.0), wide), number(0.25))
        is_right = scalar.compare("lt", scalar.subtract(turns, math.FloorOp(turns).result, wide), number(0.5), wide)
        square, found = times(angle, angle), number(0.0)
        for k in reversed(range(_TERMS)):
            term = scalar.select(is_odd, number((-1) ** k / factorial(2 * k + 1)), number((-1) ** k / factorial(2 * k)))
            found = math.FmaOp(found, square, term).result
        found = times(found, scalar.select(is_odd, angle, number(1.0)))
        return scalar.convert(scalar.select(is_right, found, scalar.negative(found, wide)), wide, out.dtype)

    return parallel(out, [powers, length], body, [affine_map(2, [dim(1)]), affine_map(2, [])])
