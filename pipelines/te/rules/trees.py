"""Compute rules of ensembles of decision trees: a walk is a reduction over its steps, so that rows can be vectorized."""

from math import inf

from relayc.dialects.mlir import linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator, narrowed
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
    parallel,
    reduction,
    result_type,
)
from relayc.pipelines.te.rules.literal import index_of, literal
from relayc.pipelines.te.rules.scalar import both, either

_NODE = "int32"
"""dtype of node and feature numbers."""


@compute("ml_tree_leaves")
def tree_leaves(op: Op, data: Value, roots: Value, children: Value, features: Value, highs: Value, lows: Value, missing: Value) -> Value:
    out, dtype = result_type(op), operand_type(op).dtype
    low, always = literal(op, 5), literal(op, 6)

    def entry(position: int, table: Value, at: Value) -> Value:
        """The element of a node in a table that may be one for all nodes."""
        return extract(table, [index_constant(0) if operand_type(op, position).shape == (1,) else at])

    def goes_to_child(x: Value, at: Value) -> Value:
        """i1: whether a feature x leads from the node at an index to its child."""
        found = scalar.compare("le", x, extract(highs, [at]), dtype)
        if low != -inf:
            found = both(found, scalar.compare("ge", x, entry(5, lows, at), dtype))
        if always == 0:
            return found
        is_nan = scalar.compare("ne", x, x, dtype)
        if always is None:
            is_nan = both(is_nan, scalar.to_flag(entry(6, missing, at)))
        return either(found, is_nan)

    def step(_: Value, node: Value) -> Value:
        at, row = index_of(node, _NODE), linalg.IndexOp(1).result
        x = extract(data, [row, index_of(extract(features, [at]), _NODE)])
        child = extract(children, [at])
        return scalar.select(goes_to_child(x, at), child, scalar.add(child, scalar.constant(1, _NODE), _NODE))

    starts = parallel(out, [roots], lambda root: root, [affine_map(2, [dim(0)])])
    if op.depth == 0:
        return starts
    # Gives the extent of the loop over the steps.
    steps = empty(TensorType((op.depth,), _NODE))
    return reduction([steps], [affine_map(3, [dim(2)])], starts, affine_map(3, [dim(0), dim(1)]), step)


_JOIN = {"sum": (0.0, scalar.add), "min": (inf, scalar.minimum), "max": (-inf, scalar.maximum)}
"""Initial value and combination of each aggregate."""


@compute("ml_leaf_weights")
def leaf_weights(op: Op, leaves: Value, weights: Value) -> Value:
    out, source = result_type(op), operand_type(op, 1)
    wide = accumulator(source.dtype)
    start, join = _JOIN[op.aggregate]

    def body(leaf: Value, total: Value) -> Value:
        weight = extract(weights, [index_of(leaf, _NODE), linalg.IndexOp(1).result])
        return join(scalar.convert(weight, source.dtype, wide), total, wide)

    maps = [affine_map(3, [dim(2), dim(0)])]
    found = reduction([leaves], maps, fill(out.with_dtype(wide), start), affine_map(3, [dim(0), dim(1)]), body)
    return narrowed(found, out, wide)
