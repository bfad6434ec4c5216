"""Compute rule of determinants: a formula for small matrices, otherwise Gaussian elimination with partial pivoting."""

from math import prod

from relayc.dialects.mlir import arith
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, compute, empty, extract, gather, index_constant, operand_type, reshape, result_type
from relayc.pipelines.te.rules.loops import insert, loop
from relayc.symbolic import Size


@compute("det")
def det(op: Op, data: Value) -> Value:
    source, out = operand_type(op), result_type(op)
    size, wide = source.sizes[-1], accumulator(source.dtype)
    if isinstance(size, int) and size <= 3:

        def expanded(at: list[Value]) -> Value:
            rows = [[_element(data, source.dtype, wide, [*at, *map(index_constant, (i, j))]) for j in range(size)] for i in range(size)]
            return scalar.convert(_expanded(rows, wide), wide, out.dtype)

        return gather(out, expanded)
    return _eliminated(data, source, out, size, wide)


def _element(data: Value, source: str, wide: str, at: list[Value]) -> Value:
    return scalar.convert(extract(data, at), source, wide)


def _expanded(rows: list[list[Value]], dtype: str) -> Value:
    """The determinant of a small matrix by expansion along its first row."""
    if not rows:
        return scalar.constant(1, dtype)
    first, *rest = rows
    total: Value | None = None
    for j, x in enumerate(first):
        minor = _expanded([row[:j] + row[j + 1 :] for row in rest], dtype) if rest else None
        term = x if minor is None else scalar.multiply(x, minor, dtype)
        total = term if total is None else (scalar.subtract if j % 2 else scalar.add)(total, term, dtype)
    assert total is not None  # a row is not empty
    return total


def _eliminated(data: Value, source: TensorType, out: TensorType, size: Size, wide: str) -> Value:
    """Eliminates one matrix after another, each copied to work memory first."""
    count = prod(source.sizes[:-2])
    matrices = reshape(data, (count, size, size))
    zero, one, end = (index_constant(n) for n in (0, 1, size))

    def matrix(b: Value, found: Value, work: Value) -> list[Value]:
        def copy(i: Value, work: Value) -> list[Value]:
            return loop(zero, end, one, [work], lambda j, work: [insert(_element(matrices, source.dtype, wide, [b, i, j]), work, [i, j])])

        (work,) = loop(zero, end, one, [work], copy)
        value, work = loop(zero, end, one, [scalar.constant(1, wide), work], step)
        return [insert(scalar.convert(value, wide, out.dtype), found, [b]), work]

    def step(k: Value, value: Value, work: Value) -> list[Value]:
        """Column k: multiplies the determinant by the pivot, and eliminates the column from the rows below."""

        def larger(i: Value, best: Value, row: Value) -> list[Value]:
            size_here = scalar.absolute(extract(work, [i, k]), wide)
            better = scalar.compare("gt", size_here, best, wide)
            return [scalar.select(better, size_here, best), scalar.select(better, i, row)]

        _, row = loop(k, end, one, [scalar.constant(-1.0, wide), k], larger)

        def swap(j: Value, work: Value) -> list[Value]:
            a, b = extract(work, [k, j]), extract(work, [row, j])
            return [insert(a, insert(b, work, [k, j]), [row, j])]

        (work,) = loop(k, end, one, [work], swap)
        pivot = extract(work, [k, k])
        same = arith.cmpi(arith.CmpIPredicate.eq, row, k)
        signed = scalar.select(same, pivot, scalar.negative(pivot, wide))
        # Below a pivot of 0 there is nothing to eliminate.
        is_zero = scalar.compare("eq", pivot, scalar.constant(0, wide), wide)
        divisor = scalar.select(is_zero, scalar.constant(1, wide), pivot)

        def eliminate(i: Value, work: Value) -> list[Value]:
            factor = arith.divf(extract(work, [i, k]), divisor)

            def subtract(j: Value, work: Value) -> list[Value]:
                part = scalar.multiply(factor, extract(work, [k, j]), wide)
                return [insert(scalar.subtract(extract(work, [i, j]), part, wide), work, [i, j])]

            return loop(arith.addi(k, one), end, one, [work], subtract)

        (work,) = loop(arith.addi(k, one), end, one, [work], eliminate)
        return [scalar.multiply(value, signed, wide), work]

    room = empty(TensorType((size, size), wide))
    found, _ = loop(zero, index_constant(count), one, [empty(out.with_shape((count,))), room], matrix)
    return reshape(found, out.sizes)
