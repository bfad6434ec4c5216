"""Compute rule of class probabilities from pairwise ones: iterated row by row until convergence."""

from relayc.dialects.mlir import arith
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, compute, empty, extract, index_constant, operand_type, result_type
from relayc.pipelines.te.rules.literal import less, number
from relayc.pipelines.te.rules.loops import insert, loop, nest, repeat_while, when
from relayc.pipelines.te.rules.scalar import negated

_TOLERANCE = 0.005
"""Divided by the number of classes: the tolerance of the residual."""
_ROUNDS = 100


@compute("ml_coupled_probabilities")
def coupled_probabilities(op: Op, system: Value) -> Value:
    out, source = result_type(op), operand_type(op).dtype
    wide = accumulator(source)
    classes = out.sizes[1]
    zero, one, end, last = (index_constant(n) for n in (0, 1, classes, _ROUNDS))
    nothing, unit = (scalar.constant(v, wide) for v in (0.0, 1.0))
    even = arith.divf(unit, number(classes, wide))

    def times(a: Value, b: Value) -> Value:
        return scalar.multiply(a, b, wide)

    def plus(a: Value, b: Value) -> Value:
        return scalar.add(a, b, wide)

    def row(at: list[Value], result: Value, work: Value) -> list[Value]:
        """One matrix Q; row 0 of `work` holds p, and row 1 holds Q p."""

        def element(i: Value, j: Value) -> Value:
            return scalar.convert(extract(system, [at[0], i, j]), source, wide)

        def multiplied(work: Value) -> list[Value]:
            """`work` with Q p, p^T Q p, and their largest difference."""

            def line(i: Value, work: Value, square: Value) -> list[Value]:
                (total,) = loop(zero, end, one, [nothing], lambda j, total: [plus(total, times(element(i, j), extract(work, [zero, j])))])
                square = plus(square, times(extract(work, [zero, i]), total))
                return [insert(total, work, [one, i]), square]

            work, square = loop(zero, end, one, [work, nothing], line)

            def further(i: Value, most: Value) -> list[Value]:
                distance = scalar.absolute(scalar.subtract(extract(work, [one, i]), square, wide), wide)
                return [scalar.maximum(most, distance, wide)]

            return [work, square, *loop(zero, end, one, [nothing], further)]

        def improved(i: Value, work: Value, square: Value) -> list[Value]:
            own, slope = element(i, i), extract(work, [one, i])
            change = arith.divf(scalar.subtract(square, slope, wide), own)
            work = insert(plus(extract(work, [zero, i]), change), work, [zero, i])
            whole = plus(unit, change)
            square = arith.divf(arith.divf(plus(square, times(change, plus(times(change, own), plus(slope, slope)))), whole), whole)

            def rescaled(j: Value, work: Value) -> list[Value]:
                moved = arith.divf(plus(extract(work, [one, j]), times(change, element(i, j))), whole)
                work = insert(arith.divf(extract(work, [zero, j]), whole), work, [zero, j])
                return [insert(moved, work, [one, j])]

            return [*loop(zero, end, one, [work], rescaled), square]

        def improve(round_: Value, work: Value) -> list[Value]:
            work, square, error = multiplied(work)
            unfinished = negated(scalar.compare("lt", error, tolerance, wide))
            work = when(unfinished, [work], lambda work: loop(zero, end, one, [work, square], improved)[:1])[0]
            # A finished row has had its last round.
            return [scalar.select(unfinished, arith.addi(round_, one), last), work]

        tolerance = times(scalar.constant(_TOLERANCE, wide), even)
        work = loop(zero, end, one, [work], lambda i, work: [insert(even, work, [zero, i])])[0]
        _, work = repeat_while([zero, work], lambda round_, _: less(round_, last), improve)

        def write(i: Value, result: Value) -> list[Value]:
            return [insert(scalar.convert(extract(work, [zero, i]), wide, out.dtype), result, [at[0], i])]

        return [*loop(zero, end, one, [result], write), work]

    return nest(out.sizes[:1], [empty(out), empty(TensorType((2, classes), wide))], row)[0]
