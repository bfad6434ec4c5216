"""The nodes of tree ensembles as arrays, however a model has them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import Required, TypedDict

from relayc.frontend.onnx.errors import OnnxError

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""How a node compares a feature with its value; where a mode is a number, their order."""
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(len(MODES))
LEAF = -1
"""The mode of a leaf."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of all trees of an ensemble; nodes are told by their numbers.

    Attributes:
      roots: [trees].
      modes: [nodes], numbers in MODES, or LEAF.
      features: [nodes], the number of the feature that is compared.
      values: [nodes], floats: what it is compared with.
      trues, falses: [nodes], the node that follows where the comparison holds, and where it does not.
      missing: [nodes], bool: whether NaN goes where the comparison holds.
      weights: [nodes, targets], of leaves.
      present: [nodes, targets], bool: whether a leaf has a weight for a target at all.
    """

    roots: np.ndarray
    modes: np.ndarray
    features: np.ndarray
    values: np.ndarray
    trues: np.ndarray
    falses: np.ndarray
    missing: np.ndarray
    weights: np.ndarray
    present: np.ndarray

    @property
    def targets(self) -> int:
        return self.weights.shape[1]

    @property
    def certain(self) -> list[bool | None]:
        """For each target, whether every row reaches a leaf with a weight for it (True), or no row does (False); None if rows differ."""
        trees = np.full(len(self.modes), -1)
        trees[self.roots] = np.arange(len(self.roots))
        level = self.roots
        while level.size:
            inner = level[self.modes[level] != LEAF]
            following = np.concatenate([self.trues[inner], self.falses[inner]])
            level, first = np.unique(following, return_index=True)
            new = trees[level] < 0
            trees[level[new]] = np.tile(trees[inner], 2)[first[new]]
            level = level[new]
        leaf = (self.modes == LEAF) & (trees >= 0)
        lacking = np.zeros((len(self.roots), self.targets), bool)
        np.logical_or.at(lacking, trees[leaf], ~self.present[leaf])
        some = self.present[leaf].any(axis=0)
        return [None if s and bad else bool(s) for s, bad in zip(some, np.all(lacking, axis=0), strict=True)]

    def checked(self) -> "Nodes":
        """Returns itself. Raises OnnxError if the number of a root or a feature is out of range."""
        inner = self.modes != LEAF
        count = len(self.modes)
        for name, found, end in (("root", self.roots, count), ("feature", self.features[inner], 1 << 31)):
            wrong = found[(found < 0) | (found >= end)]
            if wrong.size:
                raise OnnxError(f"tree ensemble: expected the number of a {name} in [0, {end}), found {wrong[0]}")
        return self

    def without_sets(self, sets: Sequence[np.ndarray]) -> "Nodes":
        """The same with comparisons for equality, one behind the other, in the place of each node that tests for membership in a set; the
        sets in the order of these nodes."""
        places = np.flatnonzero(self.modes == MEMBER)
        if len(places) != len(sets):
            raise OnnxError(f"attribute membership_values: expected {len(places)} sets, each of which ends with NaN, found {len(sets)}")
        if not len(places):
            return self
        # The node itself compares with the first member; of an empty set with NaN, which nothing is equal to.
        added = [(at, value) for at, members in zip(places, sets, strict=True) for value in members[1:]]
        source = np.array([at for at, _ in added], np.int64)
        found = self.taken(np.concatenate([np.arange(len(self.modes)), source]))
        found.modes[np.isin(found.modes, MEMBER)] = EQ
        found.values[places] = [members[0] if len(members) else np.nan for members in sets]
        found.values[len(self.modes) :] = [value for _, value in added]
        following = dict(zip(places, self.falses[places], strict=True))
        for number, (at, _) in reversed(list(enumerate(added, len(self.modes)))):
            found.falses[number], following[at] = following[at], number
        found.falses[places] = [following[at] for at in places]
        return found

    def taken(self, numbers: np.ndarray) -> "Nodes":
        """The nodes of some numbers, as they are."""
        names = ("modes", "features", "values", "trues", "falses", "missing", "weights", "present")
        return replace(self, **{name: getattr(self, name)[numbers] for name in names})


def weight_table(leaves: np.ndarray, targets: np.ndarray, weights: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Weights by node and target, the sum of several, and where there are any. Raises OnnxError for a target that is not there."""
    wrong = targets[(targets < 0) | (targets >= shape[1])]
    if wrong.size:
        raise OnnxError(f"tree ensemble: expected targets in [0, {shape[1]}), found {wrong[0]}")
    found, present = np.zeros(shape, weights.dtype), np.zeros(shape, bool)
    np.add.at(found, (leaves, targets), weights)
    present[leaves, targets] = True
    return found, present


class NodeAttributes(TypedDict, total=False):
    """The attributes of TreeEnsembleRegressor and TreeEnsembleClassifier that tell their nodes."""

    nodes_falsenodeids: Required[Sequence]
    nodes_featureids: Required[Sequence]
    nodes_hitrates: Sequence
    nodes_hitrates_as_tensor: np.ndarray
    nodes_missing_value_tracks_true: Sequence
    nodes_modes: Required[Sequence]
    nodes_nodeids: Required[Sequence]
    nodes_treeids: Required[Sequence]
    nodes_truenodeids: Required[Sequence]
    nodes_values: Sequence
    nodes_values_as_tensor: np.ndarray


def by_tree(
    own: NodeAttributes,
    *,
    values: np.ndarray,
    weight_tree_ids: Sequence,
    weight_node_ids: Sequence,
    weight_targets: Sequence,
    weights: np.ndarray,
    targets: int,
) -> Nodes:
    """Nodes that are told by a tree and a number in it, as in TreeEnsembleRegressor and TreeEnsembleClassifier, with their values.

    The root of a tree is its first node. Raises OnnxError if lists do not fit, or name what is not there.
    """
    count = len(own["nodes_nodeids"])
    modes, missing = own["nodes_modes"], own.get("nodes_missing_value_tracks_true", ())
    _check_count("nodes_treeids", own["nodes_treeids"], count)
    _check_count("nodes_modes", modes, count)
    _check_count("nodes_featureids", own["nodes_featureids"], count)
    _check_count("nodes_values", values, count)
    _check_count("nodes_truenodeids", own["nodes_truenodeids"], count)
    _check_count("nodes_falsenodeids", own["nodes_falsenodeids"], count)
    if missing:
        _check_count("nodes_missing_value_tracks_true", missing, count)
    for given in (weight_tree_ids, weight_node_ids, weights):
        if len(given) != len(weight_targets):
            raise OnnxError(f"tree ensemble: expected lists of weights of one length, found {len(weight_targets)} and {len(given)}")
    if not count:
        raise OnnxError("attribute nodes_nodeids: expected at least one node, found none")
    numbers = {mode: i for i, mode in enumerate(MODES[:MEMBER])} | {"LEAF": LEAF}
    unknown = set(modes) - numbers.keys()
    if unknown:
        raise OnnxError(f"attribute nodes_modes: expected {', '.join(numbers)}, found {', '.join(sorted(unknown))}")
    kinds = np.array([numbers[mode] for mode in modes], np.int64)
    trees = np.asarray(own["nodes_treeids"], np.int64)
    index = _Index(trees, np.asarray(own["nodes_nodeids"], np.int64))
    inner = kinds != LEAF
    leaves = index.find(np.asarray(weight_tree_ids, np.int64), np.asarray(weight_node_ids, np.int64))
    table, present = weight_table(leaves, np.asarray(weight_targets, np.int64), weights, (count, targets))
    follow = [np.zeros(count, np.int64) for _ in range(2)]
    for found, given in zip(follow, (own["nodes_truenodeids"], own["nodes_falsenodeids"]), strict=True):
        found[inner] = index.find(trees[inner], np.asarray(given, np.int64)[inner])
    return Nodes(
        roots=np.unique(trees, return_index=True)[1],
        modes=kinds,
        features=np.asarray(own["nodes_featureids"], np.int64),
        values=values,
        trues=follow[0],
        falses=follow[1],
        missing=np.asarray(missing, bool) if missing else np.zeros(count, bool),
        weights=table,
        present=present,
    ).checked()


def _check_count(name: str, given: Sequence | np.ndarray, count: int) -> None:
    if len(given) != count:
        raise OnnxError(f"attribute {name}: expected one for each of {count} nodes, found {len(given)}")


class _Index:
    """Finds nodes by tree and number."""

    def __init__(self, trees: np.ndarray, numbers: np.ndarray) -> None:
        self.order = np.lexsort((numbers, trees))
        self.trees, self.numbers = np.unique(trees), np.unique(numbers)
        self.keys = self._key(trees[self.order], numbers[self.order])
        if (self.keys[1:] == self.keys[:-1]).any():
            raise OnnxError("attribute nodes_nodeids: expected each node of a tree once, found one twice")

    def _key(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.trees, trees) * len(self.numbers) + np.searchsorted(self.numbers, numbers)

    def find(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The positions of nodes. Raises OnnxError if one is not there."""
        known = np.isin(trees, self.trees) & np.isin(numbers, self.numbers)
        keys = np.where(known, self._key(trees, numbers), -1)
        at = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        wrong = np.flatnonzero(self.keys[at] != keys)
        if wrong.size:
            raise OnnxError(f"tree ensemble: expected the number of a node, found {numbers[wrong[0]]} in tree {trees[wrong[0]]}")
        return self.order[at]


def by_number(
    *,
    roots: Sequence,
    modes: np.ndarray,
    features: Sequence,
    values: np.ndarray,
    trues: Sequence,
    falses: Sequence,
    true_leaves: Sequence,
    false_leaves: Sequence,
    missing: Sequence,
    members: np.ndarray,
    leaf_targets: Sequence,
    leaf_weights: np.ndarray,
    targets: int,
) -> Nodes:
    """Nodes that are told by one number, and leaves by another, as in TreeEnsemble. Raises OnnxError."""
    count, leaves = len(features), len(leaf_targets)
    for name, given in (("modes", modes), ("splits", values), ("truenodeids", trues), ("falsenodeids", falses)):
        _check_count(f"nodes_{name}", given, count)
    for name, given in (("nodes_trueleafs", true_leaves), ("nodes_falseleafs", false_leaves)):
        _check_count(name, given, count)
    if missing:
        _check_count("nodes_missing_value_tracks_true", missing, count)
    if len(leaf_weights) != leaves:
        raise OnnxError(f"attribute leaf_weights: expected one for each of {leaves} leaves, found {len(leaf_weights)}")
    if modes.size and modes.max() >= len(MODES):
        raise OnnxError(f"attribute nodes_modes: expected numbers in [0, {len(MODES)}), found {modes.max()}")
    numbers = np.arange(count, count + leaves)
    table, present = weight_table(numbers, np.asarray(leaf_targets, np.int64), leaf_weights, (count + leaves, targets))
    follow = []
    for given, are_leaves in ((trues, true_leaves), (falses, false_leaves)):
        own, is_leaf = np.asarray(given, np.int64), np.asarray(are_leaves, bool)
        wrong = own[(own < 0) | (own >= np.where(is_leaf, leaves, count))]
        if wrong.size:
            raise OnnxError(f"tree ensemble: expected the number of a node or a leaf, found {wrong[0]}")
        follow.append(np.concatenate([own + count * is_leaf, numbers]))
    nothing = np.zeros(leaves, np.int64)
    nodes = Nodes(
        roots=np.asarray(roots, np.int64),
        modes=np.concatenate([modes.astype(np.int64), nothing + LEAF]),
        features=np.concatenate([np.asarray(features, np.int64), nothing]),
        values=np.concatenate([values, nothing.astype(values.dtype)]),
        trues=follow[0],
        falses=follow[1],
        missing=np.concatenate([np.asarray(missing, bool) if missing else np.zeros(count, bool), nothing.astype(bool)]),
        weights=table,
        present=present,
    )
    ends = np.flatnonzero(np.isnan(members))
    sets = [part[~np.isnan(part)] for part in np.split(members, ends)][: len(ends)]
    return nodes.checked().without_sets(sets)
