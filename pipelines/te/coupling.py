"""Compute rule of the probabilities of several classes from those of pairs: row by row, until they change no more."""

from relayc.dialects.mlir import arith
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te import scalar
from relayc.pipelines.te.contraction import accumulator
from relayc.pipelines.te.core import Value, compute, empty, extract, index_constant, operand_type, result_type
from relayc.pipelines.te.literal import add, less, number
from relayc.pipelines.te.loops import insert, loop, nest, repeat_while, when
from relayc.pipelines.te.scalar import both, negated

_TOLERANCE = 0.005
"""Over the number of classes: how far elements may be from what they are when nothing can be improved."""
_ROUNDS = 100


@compute("ml_coupled_probabilities")
def coupled_probabilities(op: Op, system: Value) -> Value:
    out, source = result_type(op), operand_type(op).dtype
    wide = accumulator(source)
    classes = out.sizes[1]
    zero, one, end = (index_constant(n) for n in (0, 1, classes))
    nothing, unit = (scalar.constant(v, wide) for v in (0.0, 1.0))
    even = arith.DivFOp(unit, number(classes, wide)).result

    def times(a: Value, b: Value) -> Value:
        return scalar.multiply(a, b, wide)

    def plus(a: Value, b: Value) -> Value:
        return scalar.add(a, b, wide)

    def over(a: Value, b: Value) -> Value:
        return arith.DivFOp(a, b).result

    def row(at: list[Value], result: Value, p: Value, product: Value) -> list[Value]:
        def element(i: Value, j: Value) -> Value:
            return scalar.convert(extract(system, [at[0], i, j]), source, wide)

        def multiplied(p: Value, product: Value) -> list[Value]:
            """`product` with Q p, p^T Q p, and how far they are apart at most."""

            def line(i: Value, product: Value, square: Value) -> list[Value]:
                (total,) = loop(zero, end, one, [nothing], lambda j, total: [plus(total, times(element(i, j), extract(p, [j])))])
                return [insert(total, product, [i]), plus(square, times(extract(p, [i]), total))]

            product, square = loop(zero, end, one, [product, nothing], line)

            def further(i: Value, most: Value) -> list[Value]:
                return [scalar.maximum(most, scalar.absolute(scalar.subtract(extract(product, [i]), square, wide), wide), wide)]

            return [product, square, *loop(zero, end, one, [nothing], further)]

        def improved(i: Value, p: Value, product: Value, square: Value) -> list[Value]:
            own, slope = element(i, i), extract(product, [i])
            change = over(scalar.subtract(square, slope, wide), own)
            p = insert(plus(extract(p, [i]), change), p, [i])
            whole = plus(unit, change)
            square = over(over(plus(square, times(change, plus(times(change, own), plus(slope, slope)))), whole), whole)

            def rescaled(j: Value, p: Value, product: Value) -> list[Value]:
                moved = over(plus(extract(product, [j]), times(change, element(i, j))), whole)
                return [insert(over(extract(p, [j]), whole), p, [j]), insert(moved, product, [j])]

            return [*loop(zero, end, one, [p, product], rescaled), square]

        def goes_on(round_: Value, unfinished: Value, *_: Value) -> Value:
            return both(less(round_, index_constant(_ROUNDS)), unfinished)

        tolerance = times(scalar.constant(_TOLERANCE, wide), even)

        def improve(round_: Value, _: Value, p: Value, product: Value) -> list[Value]:
            product, square, error = multiplied(p, product)
            unfinished = negated(scalar.compare("lt", error, tolerance, wide))
            p, product = when(unfinished, [p, product], lambda p, product: loop(zero, end, one, [p, product, square], improved)[:2])
            return [add(round_, one), unfinished, p, product]

        p = loop(zero, end, one, [p], lambda i, p: [insert(even, p, [i])])[0]
        yes = scalar.to_flag(scalar.constant(1, "bool"))
        _, _, p, product = repeat_while([zero, yes, p, product], goes_on, improve)

        def write(i: Value, result: Value) -> list[Value]:
            return [insert(scalar.convert(extract(p, [i]), wide, out.dtype), result, [at[0], i])]

        return [*loop(zero, end, one, [result], write), p, product]

    room = [empty(TensorType((classes,), wide)) for _ in range(2)]
    return nest(out.sizes[:1], [empty(out), *room], row)[0]
