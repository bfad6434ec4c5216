"""Rules of random graphs for operators that few models have: derivatives of attention, sparse matrices, decision trees, transforms of
Fourier and Winograd, suppression of boxes.

It imports all other rules before its own, as a drawing depends on their order: whoever draws imports this file."""

from typing import Any

import random_quantised  # noqa: F401 (its rules, and those of random_rules, draw)
from random_drawing import Drawing, rule
from random_rules import attention, bounded, divisors

from relayc.dialects.relay import RelayError
from relayc.dialects.relay.fourier import plan_of
from relayc.dialects.relay.winograd import POINTS, tiles


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


def _known(d: Drawing, n: Any) -> int:
    """A size as an int64 scalar."""
    return d.emit("reshape", d.emit("sizes", values=(n,)), newshape=())


def _numbers(d: Drawing, count: Any) -> int:
    """int64 from 0 on."""
    return d.emit("arange", start=0.0, stop=count, step=1.0, dtype="int64")


@rule("fft_plan", "fft_roots", "fft", weight=0.5)
def fourier(d: Drawing, op: str) -> Any:
    n, dtype = d.size(1100), d.choice(("float32", "float32", "float64"))
    roots = d.emit("fft_roots", _numbers(d, n), _known(d, n), dtype=dtype)
    if op == "fft_roots":
        return roots
    count, parts, inverse = d.choice((0, 0, 1, 2)), d.integer(1, 2), d.chance(0.5)
    to_real = inverse and not count and d.chance(0.4)
    lines = n // 2 if not count and n % 2 == 0 and (parts == 1 or to_real) else n
    plan = d.emit("fft_plan", _known(d, lines))
    if op == "fft_plan":
        return plan
    if plan_of(lines)[0] != 1:
        raise RelayError("a length that has other factors")
    data = d.leaf((d.shape(1)[0], d.choice((n, n, d.size(1100))), parts), dtype)
    multipliers = [d.leaf((2, n), dtype) for _ in range(count)]
    wanted = n if to_real else d.choice((n, n // 2 + 1, d.integer(1, n)))
    return d.emit(
        op,
        *(data, roots, plan, *multipliers),
        **{"length": n, "frequencies": wanted, "inverse": inverse, "to_real": to_real},
        is_power_of_two=n & (n - 1) == 0 and d.chance(0.5),
    )


@rule("nn_winograd_input_transform", "nn_winograd_output_transform", weight=0.5)
def winograd(d: Drawing, op: str) -> Any:
    lanes, dtype = d.choice((4, 8, 16)), d.choice(("float32", "float32", "float64"))
    batch, channels, height, width = d.shape(1)[0], d.choice((1, 2, 3)), *(d.size(33) for _ in range(2))
    layout = f"NCHW{lanes}c"
    if op == "nn_winograd_input_transform":
        data = d.leaf((batch, channels, height, width, lanes), dtype)
        return d.emit(op, data, padding=tuple(d.integer(0, 2) for _ in range(4)), layout=layout)
    data = d.leaf((batch, POINTS * channels, tiles(height), tiles(width), lanes), dtype)
    return d.emit(op, data, height=height, width=width, layout=layout)


@rule("vision_all_class_non_max_suppression", weight=0.5)
def suppression(d: Drawing, op: str) -> Any:
    """Of boxes on a grid, as a comparison of areas that round differently chooses other boxes; scores that are equal now and then."""
    batch, classes, count, dtype = d.integer(1, 3), d.size(5), d.size(65), d.choice(("float32", "float32", "float64"))
    boxes, scores = d.leaf((batch, count, 4), dtype, "boxes"), d.leaf((batch, classes, count), dtype, d.choice(("any", "few")))
    most, iou, threshold = d.leaf((), "int64", d.choice(("few", count))), d.leaf((), dtype, "positive"), d.leaf((), dtype)
    found, number = d.emit(op, boxes, scores, most, iou, threshold)
    d.scope.remove(found)
    d.undefined.add(found)  # in other rows
    rows = batch * classes * count
    is_chosen = d.emit("less", d.emit("reshape", _numbers(d, rows), newshape=(rows, 1)), number)
    return d.emit("where", is_chosen, found, d.leaf((1,), "int64"))


@rule("ml_coupled_probabilities", weight=0.3)
def coupled(d: Drawing, op: str) -> Any:
    """Of systems as probabilities make them."""
    count, dtype = d.size(9), d.choice(("float32", "float64"))
    r = d.emit("sigmoid", d.leaf((d.shape(1)[0], count, count), dtype))
    numbers = _numbers(d, count)
    is_diagonal = d.emit("equal", d.emit("reshape", numbers, newshape=(count, 1)), numbers)
    others = d.emit("where", is_diagonal, d.emit("subtract", r, r), r)
    sums = d.emit("sum", d.emit("multiply", others, others), axis=(1,), keepdims=True)
    products = d.emit("negative", d.emit("multiply", others, d.emit("transpose", others, axes=(0, 2, 1))))
    return d.emit(op, d.emit("where", is_diagonal, sums, products))
