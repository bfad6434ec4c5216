"""Compute rule of searchsorted: binary search in a sorted sequence, with as many steps as the longest sequence needs."""

from relayc.dialects.mlir import arith, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    empty,
    extract,
    fill,
    index_constant,
    operand_type,
    reduction,
    result_type,
)
from relayc.pipelines.te.rules.literal import INDEX_DTYPE, clamped, index_of, integer_of
from relayc.pipelines.te.rules.scalar import both, comes_before, negated
from relayc.symbolic import bounds


@compute("searchsorted")
def searchsorted(op: Op, sequence: Value, values: Value) -> Value:
    source, out = operand_type(op), result_type(op)
    count, dtype = source.sizes[0], source.dtype
    if count == 0:
        return fill(out, 0)
    # The loop over the steps: the last one, number 0, tests one element.
    rounds = int(min(bounds(count)[1], 1 << 40)).bit_length()
    one, most = index_constant(1), index_constant(count)

    def halve(_: Value, value: Value, before: Value) -> Value:
        """One step: `before` elements are known to come before the value; the step size halves each round."""
        step = arith.shli(one, arith.subi(index_constant(rounds - 1), linalg.IndexOp(out.rank).result))
        found = index_of(before, out.dtype)
        further = arith.addi(found, step)
        element = extract(sequence, [clamped(arith.subi(further, one), count)])
        goes = negated(comes_before(value, element, dtype)) if op.right else comes_before(element, value, dtype)
        inside = scalar.compare("le", further, most, INDEX_DTYPE)
        return scalar.select(both(inside, goes), integer_of(further, out.dtype), before)

    dims = [dim(i) for i in range(out.rank)]
    maps = [affine_map(out.rank + 1, [dim(out.rank)]), affine_map(out.rank + 1, dims)]
    halvings = empty(TensorType((rounds,), "int32"))
    return reduction([halvings, values], maps, fill(out, 0), affine_map(out.rank + 1, dims), halve)
