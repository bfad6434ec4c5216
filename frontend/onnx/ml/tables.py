"""The tables of ml.tree_leaves, made of the nodes of an ensemble."""

from dataclasses import dataclass

import numpy as np

from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.nodes import EQ, GT, GTE, LEAF, LT, NEQ, Nodes


@dataclass(frozen=True)
class Tables:
    """What the operands of ml.tree_leaves are, and which node of the ensemble each of theirs is (`nodes`)."""

    roots: np.ndarray
    children: np.ndarray
    features: np.ndarray
    highs: np.ndarray
    lows: np.ndarray
    missing: np.ndarray
    nodes: np.ndarray
    depth: int
    num_features: int


def make_tables(nodes: Nodes) -> Tables:
    """The tables of an ensemble: levels one behind the other, the two nodes that follow another side by side.

    A node that several lead to (the members of a set do) is there once for each, but what follows it is not. Raises OnnxError if a node
    leads back to itself.
    """
    tests = _Tests.of(nodes)
    inner = nodes.modes != LEAF
    children, placed = np.zeros(len(inner), np.int64), [nodes.roots]
    count, depth, level = len(nodes.roots), 0, np.unique(nodes.roots[inner[nodes.roots]])
    while level.size:
        new = level[children[level] == 0]
        children[new] = count + 2 * np.arange(len(new))
        count += 2 * len(new)
        placed.append(np.stack([tests.inside[new], tests.outside[new]], axis=1).reshape(-1))
        following = np.concatenate([tests.inside[level], tests.outside[level]])
        level = np.unique(following[inner[following]])
        depth += 1
        if depth == len(inner):
            raise OnnxError("tree ensemble: expected trees, found a node that leads back to itself")
    order = np.concatenate(placed)
    is_leaf = ~inner[order]
    # A leaf leads to its child either always, if NaN does, or never: this is entered in the table for all.
    always = bool(tests.missing[inner].all()) and bool(inner.any())
    ends = np.arange(count) - (0 if always else 1)
    highs = np.where(is_leaf, np.inf if always else np.nan, tests.highs[order]).astype(nodes.values.dtype)
    lows = np.where(is_leaf, -np.inf, tests.lows[order]).astype(nodes.values.dtype)
    missing = tests.missing[order] & (~is_leaf | always)
    return Tables(
        roots=np.arange(len(nodes.roots), dtype=np.int32),
        children=np.where(is_leaf, ends, children[order]).astype(np.int32),
        features=np.where(is_leaf, 0, nodes.features[order]).astype(np.int32),
        highs=highs,
        lows=_once(lows),
        missing=np.array([always]) if always else _once(missing),
        nodes=order,
        depth=depth,
        num_features=int(nodes.features[inner].max(initial=-1)) + 1,
    )


def _once(table: np.ndarray) -> np.ndarray:
    """A table of one element where all are the same."""
    return table[:1] if (table == table[:1]).all() else table


@dataclass(frozen=True)
class _Tests:
    """Every comparison as an interval: low <= x <= high.

    Attributes:
      inside, outside: the next nodes if x is inside the interval, and if it is outside.
      missing: whether NaN counts as inside.
    """

    highs: np.ndarray
    lows: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    missing: np.ndarray

    @staticmethod
    def of(nodes: Nodes) -> "_Tests":
        """x < v is x <= the number before v, and x > v, x >= v and x != v are the opposites of other comparisons. NaN is not equal to
        anything, and where v is one, it is the same for all x."""
        values, modes = nodes.values, nodes.modes
        opposite = np.isin(modes, (GT, GTE, NEQ))
        before = np.nextafter(values, np.array(-np.inf, values.dtype))
        before[values == -np.inf] = np.nan
        highs = np.where(np.isin(modes, (LT, GTE)), before, values)
        lows = np.where(np.isin(modes, (EQ, NEQ)), values, np.array(-np.inf, values.dtype))
        missing = np.where(opposite, ~nodes.missing & (modes != NEQ), nodes.missing)
        # x > NaN and x >= NaN do not hold.
        never = np.isnan(values) & np.isin(modes, (GT, GTE))
        highs = np.where(never, np.array(np.inf, values.dtype), highs)
        inside, outside = (np.where(opposite, a, b) for a, b in ((nodes.falses, nodes.trues), (nodes.trues, nodes.falses)))
        return _Tests(highs, lows, inside, outside, missing)
