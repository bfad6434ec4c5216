"""ml.tree_leaves, ml.leaf_weights, ml.coupled_probabilities, searchsorted: against numpy."""

import numpy as np
import pytest
from support import Const, run
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.relay import build
from relayc.pipelines.context.instruments import Verifier
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.driver.compile import compile

INF, NAN = np.inf, np.nan


def tables(trees, depth, features, dtype="float32", seed=0):
    """Operands of full trees behind data: half of the comparisons have a lower bound, half send NaN inside."""
    rng = np.random.default_rng(seed)
    inner, nodes = (1 << depth) - 1, (2 << depth) - 1
    own = np.tile(np.arange(nodes), trees)
    start = np.repeat(np.arange(trees) * nodes, nodes)
    is_leaf = own >= inner
    highs = np.where(is_leaf, NAN, rng.normal(size=own.size)).astype(dtype)
    lows = np.where(is_leaf | (rng.random(own.size) < 0.5), -INF, highs - 0.5).astype(dtype)
    missing = ~is_leaf & (rng.random(own.size) < 0.5)
    children = np.where(is_leaf, start + own - 1, start + 2 * own + 1).astype("int32")
    chosen = np.where(is_leaf, 0, rng.integers(features, size=own.size)).astype("int32")
    return (np.arange(trees, dtype="int32") * nodes).astype("int32"), children, chosen, highs, lows, missing


def walk(x, roots, children, features, highs, lows, missing, depth):
    node = np.broadcast_to(roots[:, None], (len(roots), len(x))).copy()
    rows = np.arange(len(x))
    for _ in range(depth):
        value = x[rows, features[node]]
        inside = ((lows[node] <= value) & (value <= highs[node])) | (np.isnan(value) & missing[node])
        node = np.where(inside, children[node], children[node] + 1)
    return node.astype("int32")


@pytest.mark.parametrize(("rows", "depth", "dtype"), [(1, 3, "float32"), (70, 3, "float64"), (37, 60, "float32")])
def test_walks(rows, depth, dtype):
    """More steps than there are levels stay where they are."""
    given = tables(5, 3, 4, dtype)
    x = np.random.default_rng(1).normal(size=(rows, 4)).astype(dtype)
    x[::3, 1] = NAN
    found = run("ml.tree_leaves", x, *map(Const, given), depth=depth, num_features=4)
    np.testing.assert_array_equal(found, walk(x, *given, depth))


def test_bounds_of_all_nodes_that_only_a_call_gives():
    *given, _, _ = tables(5, 3, 4)
    lows, missing = np.array([-0.5], "float32"), np.array([True])
    x = np.random.default_rng(1).normal(size=(20, 4)).astype("float32")
    x[::3, 1] = NAN
    found = run("ml.tree_leaves", x, *map(Const, given), lows, missing, depth=3, num_features=4)
    np.testing.assert_array_equal(found, walk(x, *given, *(np.repeat(v, given[1].size) for v in (lows, missing)), 3))


def test_rows_that_take_no_step_are_at_the_roots():
    given, x = tables(3, 0, 2), np.ones((4, 2), "float32")
    found = run("ml.tree_leaves", x, *map(Const, given), depth=0, num_features=2)
    np.testing.assert_array_equal(found, [[0] * 4, [1] * 4, [2] * 4])


@pytest.mark.parametrize(("aggregate", "function"), [("sum", np.sum), ("min", np.min), ("max", np.max)])
@pytest.mark.parametrize("targets", [1, 3])
def test_weights_of_leaves(aggregate, function, targets):
    rng = np.random.default_rng(2)
    leaves, weights = rng.integers(0, 50, (7, 33)).astype("int32"), rng.normal(size=(50, targets)).astype("float32")
    found = run("ml.leaf_weights", Const(leaves), weights, aggregate=aggregate)
    np.testing.assert_allclose(found, function(weights[leaves], axis=0), rtol=0, atol=1e-5)  # sums of 7 numbers of the order of 1


@pytest.mark.parametrize("shape", ["20, 4, 4", "n, 3, 3", "n, m, m"])
def test_coupled_probabilities(shape):
    """Of probabilities of pairs that come from those of all classes, these."""
    with PassContext(instruments=[Verifier()]):
        module = compile(symbolic_program(lambda x: [build("ml.coupled_probabilities", x)], [tensor(f"float32[{shape}]")]))
    for samples, classes in [(20, 4), (1, 3), (0, 3), (33, 3), (20, 1), (7, 2), (17, 9)]:
        if "m" not in shape and f"{classes}, {classes}" not in shape:
            continue
        p = np.random.default_rng(3).dirichlet(np.full(classes, 5.0), samples)
        ratios = p[:, :, None] / (p[:, :, None] + p[:, None, :])
        other = np.where(np.eye(classes, dtype=bool), 0, ratios.transpose(0, 2, 1))
        system = np.where(np.eye(classes, dtype=bool), np.maximum((other**2).sum(2, keepdims=True), classes == 1), -other * ratios)
        found = module["main"](system.astype("float32"))
        np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
        # The search ends where Q p is as even as 0.005 / classes.
        np.testing.assert_allclose(found, p, atol=0.03)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_searches(right, dtype):
    least = 0 if dtype == "uint8" else -10
    sequence = np.sort(np.random.default_rng(4).integers(least, 20, 13)).astype(dtype)
    values = np.arange(least, 22).astype(dtype).reshape(-1, 2)
    found = run("searchsorted", sequence, values, right=right, dtype="int64")
    np.testing.assert_array_equal(found, np.searchsorted(sequence, values, "right" if right else "left"))


@pytest.mark.parametrize("right", [False, True])
def test_nan_is_searched_as_the_last_number(right):
    sequence = np.array([-INF, 1, 2, NAN, NAN], "float32")
    values = np.array([NAN, -INF, INF, 2], "float32")
    found = run("searchsorted", sequence, values, right=right)
    np.testing.assert_array_equal(found, np.searchsorted(sequence, values, "right" if right else "left"))


def test_nothing_to_search_in():
    np.testing.assert_array_equal(run("searchsorted", np.zeros(0, "float32"), np.ones(3, "float32")), [0, 0, 0])
