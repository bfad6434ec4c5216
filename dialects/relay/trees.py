"""Ensembles of decision trees: ml.tree_leaves, ml.leaf_weights. Relay has no operators for them; those of ONNX are made of these."""

from relayc.dialects.relay.base import Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least, require_equal
from relayc.dialects.relay.kinds import FLOAT

AGGREGATES = ("sum", "min", "max")
"""What the weights of the leaves that a row reaches may be joined by."""


class TreeLeaves(Op, name="ml_tree_leaves", relay_name="ml.tree_leaves"):
    """The leaf of each tree that each row reaches, by its number among the nodes of all trees.

    From node n a row x goes on to node children[n] where lows[n] <= x[features[n]] <= highs[n], and where x[features[n]] is NaN and
    missing[n] holds; else to the node behind that one. A leaf leads to itself, whatever is in the row.

    Operands: data [rows, features], floats; roots int32 [trees]; and tables over the nodes of all trees: children and features, int32
    [nodes], highs [nodes] of the type of data, lows as highs and missing bool, both [nodes], or [1] where all nodes have the same. What
    the tables name has to exist; nothing checks that.

    Attributes:
      depth: how many nodes a row leaves at most on its way.
      num_features: how many features there have to be: one more than the largest number of one in the tables.

    Result: int32 [trees, rows].
    """

    data: Operand
    roots: Operand
    children: Operand
    features: Operand
    highs: Operand
    lows: Operand
    missing: Operand
    depth: int
    num_features: int = 0
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        data = op.data
        FLOAT.require("data", data)
        check(data.rank == 2, "data", "a shape [rows, features]", data)
        require_at_least(op.num_features, data.shape[1], "data", f"at least {op.num_features} features", data)
        check(op.depth >= 0, "depth", "no negative number", op.depth)
        for name in ("roots", "children", "features"):
            table = getattr(op, name)
            check(table.rank == 1 and table.dtype == "int32", name, "rank 1 and element type int32", table)
        nodes = op.children.shape[0]
        for name, dtype in (("highs", data.dtype), ("lows", data.dtype), ("missing", "bool")):
            table = getattr(op, name)
            check(table.rank == 1 and table.dtype == dtype, name, f"rank 1 and element type {dtype}", table)
            if name == "highs" or table.shape[0] != 1:
                require_equal(table.shape[0], nodes, name, f"{nodes} nodes", table)
        require_equal(op.features.shape[0], nodes, "features", f"{nodes} nodes", op.features)
        return TensorType((op.roots.shape[0], data.shape[0]), "int32")


class LeafWeights(Op, name="ml_leaf_weights", relay_name="ml.leaf_weights"):
    """Of each row the sum, the least or the largest of the weights of the leaves that it reaches, for each target.

    Operands: leaves int32 [trees, rows], and weights [nodes, targets] of floats, of whose rows the leaves are the numbers; nothing checks
    that.

    Attributes:
      aggregate: "sum", "min" or "max"; without a tree 0, infinity or its negative.

    Result: [rows, targets] of the type of weights.
    """

    leaves: Operand
    weights: Operand
    aggregate: str = "sum"
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.leaves.rank == 2 and op.leaves.dtype == "int32", "leaves", "a shape [trees, rows] and element type int32", op.leaves)
        FLOAT.require("weights", op.weights)
        check(op.weights.rank == 2, "weights", "a shape [nodes, targets]", op.weights)
        check(op.aggregate in AGGREGATES, "aggregate", f"one of {', '.join(AGGREGATES)}", op.aggregate)
        return op.weights.with_shape((op.leaves.shape[1], op.weights.shape[1]))
