"""Rules of random graphs for operators that few models have: derivatives of attention, sparse matrices, decision trees.

It imports all other rules before its own, as a drawing depends on their order: whoever draws imports this file."""

from typing import Any

import random_quantised  # noqa: F401 (its rules, and those of random_rules, draw)
from random_drawing import Drawing, rule
from random_rules import attention, bounded, divisors

from relayc.dialects.relay import RelayError


@rule("nn_attention_lse", weight=0.3)
def attention_lse(d: Drawing, op: str) -> Any:
    return attention(d, op)


@rule("nn_attention_grad", weight=0.5)
def attention_grad(d: Drawing, op: str) -> Any:
    query = d.floats(rank=4)
    t = d.types[query]
    batch, _, rows, depth = t.shape
    groups, keys, width = d.choice(divisors(d.number(query, 1))), d.choice((rows, d.size(70))), d.choice((depth, d.size(70)))
    bounded(d, t, keys)
    key, value = (d.leaf((batch, groups, keys, n), t.dtype) for n in (depth, width))
    mask = [d.leaf((rows, keys) if d.chance(0.5) else (batch, 1, 1, keys), d.choice((t.dtype, "bool")))] if d.chance(0.4) else []
    attrs = {"scale": d.choice((0.125, 1.0)), "is_causal": d.chance(0.3)}
    result, lse = d.emit("nn_attention_lse", query, key, value, *mask, **attrs, empty_to_zero=True)
    grad = d.leaf(d.types[result].shape, t.dtype)
    delta = d.emit("sum", d.emit("cast", d.emit("multiply", grad, result), dtype=d.types[lse].dtype), axis=(3,))
    return d.emit(op, query, key, value, grad, lse, delta, *mask, **attrs)


@rule("nn_sparse_dense", weight=0.5)
def sparse_dense(d: Drawing, op: str) -> Any:
    dense = d.floats(rank=2)
    t, block = d.types[dense], d.choice(((), (), (1, 1), (4, 1), (2, 3), (16, 4)))
    columns = d.number(dense, 1) // (block or (1, 1))[1]
    if not columns:
        raise RelayError("fewer columns than those of a block")
    count = d.choice((4, 5))  # with ends of rows from 0 to 3, rows of several elements and of none
    indptr = d.emit("sort", d.leaf((d.size(40) + 1,), "int32", "few"), axis=0)
    indices = d.emit("cast", d.leaf((count,), "uint32", columns), dtype="int32")
    return d.emit(op, dense, d.leaf((count, *block), t.dtype), indices, indptr, sparse_lhs=d.chance(0.5))


@rule("ml_tree_leaves", "ml_leaf_weights", weight=0.5)
def trees(d: Drawing, op: str) -> Any:
    """Tables of nodes that lead to nodes 0 to 4."""
    count, nodes = d.size(40), 5 + d.size(40)
    leaves = d.leaf((count, d.size(130)), "int32", "few")
    if op == "ml_tree_leaves" or d.chance(0.5):
        data = d.leaf((d.size(130), 4 + d.size(9)), d.choice(("float32", "float64")))
        many, one = (d.leaf((n,), d.types[data].dtype) for n in (nodes, 1))
        lows = d.emit("subtract", many, one) if d.chance(0.5) else one
        numbers = [d.leaf((n,), "int32", "few") for n in (count, nodes, nodes)]
        missing = d.leaf((d.choice((1, nodes)),), "bool")
        leaves = d.emit("ml_tree_leaves", data, *numbers, many, lows, missing, depth=d.integer(0, 4), num_features=4)
    if op == "ml_tree_leaves":
        return leaves
    weights = d.leaf((nodes, d.size(20)), d.choice(("float32", "float64")))
    return d.emit(op, leaves, weights, aggregate=d.choice(("sum", "min", "max")))
