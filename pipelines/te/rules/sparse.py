"""Compute rule of products with sparse matrices: loops over the stored elements of a row, with lanes along the rows of the dense matrix."""

from collections.abc import Callable, Sequence

from relayc.dialects.discardable import DISTINCT, ITERATION_WORK
from relayc.dialects.mlir import arith
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
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
    reshape,
    result_type,
)
from relayc.pipelines.te.rules.literal import clamped, index_of
from relayc.pipelines.te.rules.loops import insert, loop
from relayc.symbolic import Size, maximum


def _transposed(matrix: Value, type_: TensorType) -> Value:
    """The transpose [n, m] of a matrix [m, n]."""
    m, n = type_.sizes
    if 1 in (m, n):
        return reshape(matrix, (n, m))
    return parallel(type_.with_shape((n, m)), [matrix], lambda x: x, [affine_map(2, [dim(1), dim(0)])])


@compute("nn_sparse_dense")
def sparse_dense(op: Op, dense: Value, data: Value, indices: Value, indptr: Value) -> Value:
    source, stored, out = operand_type(op), operand_type(op, 1), result_type(op)
    if out.num_elements == 0:
        return empty(out)
    count, r, c = stored.sizes if stored.rank == 3 else (stored.sizes[0], 1, 1)
    lanes, k = source.sizes
    rows, wide = operand_type(op, 3).sizes[0] - 1, accumulator(out.dtype)
    zero, one = index_constant(0), index_constant(1)
    blocks, columns = reshape(data, (count, r, c)), _transposed(dense, source)
    made = TensorType((rows, r, lanes), out.dtype)

    def pointer(at: Value) -> Value:
        return clamped(index_of(extract(indptr, [at]), operand_type(op, 3).dtype), count + 1)

    def product(at: Value, i: Value, j: Value, lane: Value) -> Value:
        """Element (i, j) of a stored block times the corresponding element of the dense matrix."""
        block = clamped(index_of(extract(indices, [at]), operand_type(op, 2).dtype), k // c)
        column = block if c == 1 else arith.addi(arith.muli(block, index_constant(c)), j)
        a, b = extract(blocks, [at, i, j]), extract(columns, [column, lane])
        return scalar.multiply(scalar.convert(a, out.dtype, wide), scalar.convert(b, out.dtype, wide), wide)

    def row(number: Value, result: Value) -> list[Value]:
        begin, end = pointer(number), pointer(arith.addi(number, one))

        def element(i: Value, lane: Value, result: Value) -> list[Value]:
            def step(at: Value, total: Value) -> list[Value]:
                if c == 1:
                    return [scalar.add(total, product(at, i, zero, lane), wide)]
                return loop(zero, index_constant(c), one, [total], lambda j, sum_: [scalar.add(sum_, product(at, i, j, lane), wide)])

            (total,) = loop(begin, end, one, [scalar.constant(0, wide)], step)
            return [insert(scalar.convert(total, wide, out.dtype), result, [number, i, lane])]

        return _independent(r, result, lambda i, part: _independent(lanes, part, lambda lane, last: element(i, lane, last)))

    found = _independent(rows, empty(made), row)[0]
    ITERATION_WORK.put(found.owner.operation, (count // maximum(rows, 1) + 1) * r * c * lanes)
    product_type = TensorType((rows * r, lanes), out.dtype)
    sums = reshape(found, product_type.sizes)
    return sums if op.sparse_lhs else _transposed(sums, product_type)


def _independent(count: Size, result: Value, body: Callable[..., Sequence[Value]]) -> list[Value]:
    """A loop whose iterations write distinct elements."""
    found = loop(index_constant(0), index_constant(count), index_constant(1), [result], body)
    DISTINCT.mark(found[0].owner.operation)
    return found
