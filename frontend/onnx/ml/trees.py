"""Tree ensembles: TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

import numpy as np
from typing_extensions import Unpack

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.nodes import LEAF, NodeAttributes, Nodes, by_number, by_tree
from relayc.frontend.onnx.ml.scores import (
    DOMAIN,
    TRANSFORMS,
    Labels,
    Transform,
    as_rows,
    column,
    finished,
    transformed,
    two_scores,
)
from relayc.frontend.onnx.ml.tables import Tables, make_tables
from relayc.frontend.steps import add, binary, cast, divide, like

Aggregate = Literal["AVERAGE", "SUM", "MIN", "MAX"]
AGGREGATES = get_args(Aggregate)
"""Values of aggregate_function, in the order of their numeric codes."""


@dataclass(frozen=True)
class Walked:
    """The leaves that rows reach in an ensemble.

    Attributes:
      leaves: int32 [trees, rows], numbers in the tables.
    """

    nodes: Nodes
    tables: Tables
    leaves: Tensor

    @staticmethod
    def of(x: Tensor, nodes: Nodes) -> "Walked":
        """The walk of rows x [rows, features], of the type of the values of nodes."""
        tables = make_tables(nodes)
        operands = (tables.roots, tables.children, tables.features, tables.highs, tables.lows, tables.missing)
        leaves = emit("ml.tree_leaves", x, *map(constant, operands), depth=tables.depth, num_features=tables.num_features)
        return Walked(nodes, tables, leaves)

    def aggregated(self, function: str) -> Tensor:
        """The weights of the leaves of each row, joined for each target, [rows, targets]: 0 for one that no leaf has a weight for."""
        if function in ("SUM", "AVERAGE"):
            total = self._joined(self.nodes.weights, "sum")
            return total if function == "SUM" else divide(total, float(len(self.nodes.roots)))
        nothing = inf if function == "MIN" else -inf
        found = self._joined(np.where(self.nodes.present, self.nodes.weights, nothing), function.lower())
        if self.nodes.present[self.nodes.modes == LEAF].all():
            return found
        return emit("where", binary("equal", found, nothing), like(0.0, found), found)

    def reaches(self) -> Tensor:
        """Whether a leaf of each row has a weight for each target, bool [rows, targets]."""
        return binary("greater", self._joined(self.nodes.present, "max"), 0.0)

    def _joined(self, weights: np.ndarray, function: str) -> Tensor:
        table = constant(weights[self.tables.nodes], self.nodes.values.dtype.name)
        return emit("ml.leaf_weights", self.leaves, table, aggregate=function)


def _floats(numbers: Sequence | None, tensor: np.ndarray | None, dtype: str, name: str) -> np.ndarray:
    """An attribute that is a list, or a tensor (for float64). Raises OnnxError if both are set."""
    if numbers and tensor is not None:
        raise OnnxError(f"attribute {name}: expected a list or a tensor, found both")
    return np.asarray(tensor if tensor is not None else numbers or (), dtype).reshape(-1)


def _rows(x: Tensor) -> Tensor:
    """x [rows, features] in the type that is compared in: float64 stays, others are float32."""
    return cast(as_rows(x), "float64" if x.dtype == "float64" else "float32")


@converter(domain=DOMAIN)
def TreeEnsembleRegressor(
    x: Tensor,
    *,
    aggregate_function: Aggregate = "SUM",
    base_values: Sequence | None = None,
    base_values_as_tensor: np.ndarray | None = None,
    n_targets: int | None = None,
    post_transform: Transform = "NONE",
    target_ids: Sequence,
    target_nodeids: Sequence,
    target_treeids: Sequence,
    target_weights: Sequence | None = None,
    target_weights_as_tensor: np.ndarray | None = None,
    **own: Unpack[NodeAttributes],
) -> Tensor:
    """Base values are used if there is one per target."""
    x = _rows(x)
    nodes = by_tree(
        own,
        values=_floats(own.get("nodes_values"), own.get("nodes_values_as_tensor"), x.dtype, "nodes_values"),
        weight_tree_ids=target_treeids,
        weight_node_ids=target_nodeids,
        weight_targets=target_ids,
        weights=_floats(target_weights, target_weights_as_tensor, x.dtype, "target_weights"),
        targets=n_targets if n_targets is not None else max(target_ids, default=0) + 1,
    )
    walked = Walked.of(x, nodes)
    scores = walked.aggregated(aggregate_function)
    base = _floats(base_values, base_values_as_tensor, x.dtype, "base_values")
    if len(base) == nodes.targets:
        shifted = emit("add", scores, constant(base))
        # Of several targets, one that no leaf of a row has a weight for stays 0.
        scores = shifted if nodes.targets == 1 or all(nodes.certain) else emit("where", walked.reaches(), shifted, scores)
    return finished(cast(scores, "float32"), post_transform)


@converter(since=5, domain=DOMAIN)
def TreeEnsemble(
    x: Tensor,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence,
    leaf_weights: np.ndarray,
    membership_values: np.ndarray | None = None,
    n_targets: int | None = None,
    nodes_falseleafs: Sequence,
    nodes_falsenodeids: Sequence,
    nodes_featureids: Sequence,
    nodes_hitrates: np.ndarray | None = None,
    nodes_missing_value_tracks_true: Sequence = (),
    nodes_modes: np.ndarray,
    nodes_splits: np.ndarray,
    nodes_trueleafs: Sequence,
    nodes_truenodeids: Sequence,
    post_transform: int = 0,
    tree_roots: Sequence,
) -> Tensor:
    """The result has the type of x; float16 is computed in float32."""
    for name, number, known in (("aggregate_function", aggregate_function, AGGREGATES), ("post_transform", post_transform, TRANSFORMS)):
        if not 0 <= number < len(known):
            raise OnnxError(f"attribute {name}: expected a number in [0, {len(known)}), found {number}")
    rows = _rows(x)
    nodes = by_number(
        roots=tree_roots,
        modes=nodes_modes.reshape(-1),
        features=nodes_featureids,
        values=nodes_splits.astype(rows.dtype).reshape(-1),
        trues=nodes_truenodeids,
        falses=nodes_falsenodeids,
        true_leaves=nodes_trueleafs,
        false_leaves=nodes_falseleafs,
        missing=nodes_missing_value_tracks_true,
        members=np.zeros(0, rows.dtype) if membership_values is None else membership_values.astype(rows.dtype).reshape(-1),
        leaf_targets=leaf_targetids,
        leaf_weights=leaf_weights.astype(rows.dtype).reshape(-1),
        targets=n_targets if n_targets is not None else max(leaf_targetids, default=0) + 1,
    )
    scores = Walked.of(rows, nodes).aggregated(AGGREGATES[aggregate_function])
    if post_transform:
        scores = finished(cast(scores, "float32"), TRANSFORMS[post_transform])
    return cast(scores, x.dtype)


@converter(domain=DOMAIN)
def TreeEnsembleClassifier(
    x: Tensor,
    *,
    base_values: Sequence | None = None,
    base_values_as_tensor: np.ndarray | None = None,
    class_ids: Sequence,
    class_nodeids: Sequence,
    class_treeids: Sequence,
    class_weights: Sequence | None = None,
    class_weights_as_tensor: np.ndarray | None = None,
    classlabels_int64s: Sequence | None = None,
    classlabels_strings: Sequence | None = None,
    post_transform: Transform = "NONE",
    **own: Unpack[NodeAttributes],
) -> tuple[Tensor, Tensor]:
    labels = Labels.of(classlabels_int64s, classlabels_strings)
    if not len(labels):
        raise OnnxError("attribute classlabels_int64s: expected at least one label, found none")
    x = _rows(x)
    weights = _floats(class_weights, class_weights_as_tensor, x.dtype, "class_weights")
    nodes = by_tree(
        own,
        values=_floats(own.get("nodes_values"), own.get("nodes_values_as_tensor"), x.dtype, "nodes_values"),
        weight_tree_ids=class_treeids,
        weight_node_ids=class_nodeids,
        weight_targets=class_ids,
        weights=weights,
        targets=len(labels),
    )
    base = _floats(base_values, base_values_as_tensor, x.dtype, "base_values")
    walked = Walked.of(x, nodes)
    if len(labels) == 2:
        decision = _Decision(labels, base, len(set(class_ids)) == 1, bool((weights >= 0).all()), post_transform)
        return decision.of(walked)
    scores = walked.aggregated("SUM")
    if len(base):
        if len(base) != len(labels):
            raise OnnxError(f"attribute base_values: expected one for each of {len(labels)} classes, found {len(base)}")
        scores = emit("add", scores, constant(base))
    if len(labels) == 1:
        return labels.of_sides(binary("greater", scores, 0.0)), finished(cast(scores, "float32"), post_transform)
    eligible = scores
    if not len(base) and not all(nodes.certain):
        # A class that no leaf says anything of is not chosen.
        eligible = emit("where", walked.reaches(), scores, like(-inf, scores))
    return labels.of_largest(eligible), transformed(cast(scores, "float32"), post_transform)


@dataclass(frozen=True)
class _Decision:
    """How scores for two classes decide between them, and what they become. A class that no leaf of a row has a weight for has the score 0.

    Attributes:
      is_single: whether leaves have weights for one of the classes only.
      is_positive: whether no weight is negative: a single score is a probability.
    """

    labels: Labels
    base: np.ndarray
    is_single: bool
    is_positive: bool
    transform: str

    def of(self, walked: Walked) -> tuple[Tensor, Tensor]:
        """Labels and scores. Rows with a weight for the second class and rows without one are treated differently."""
        scores = walked.aggregated("SUM")
        has_first, has_second = (column(walked.reaches(), i) if known is None else known for i, known in enumerate(walked.nodes.certain))
        if isinstance(has_second, bool):
            return self._decided(scores, has_first, has_second)
        (label, found), (other_label, other) = (self._decided(scores, has_first, second) for second in (True, False))
        flags = emit("squeeze", has_second, axis=(1,))
        return emit("where", flags, label, other_label), emit("where", has_second, found, other)

    def _decided(self, scores: Tensor, has_first: Tensor | bool, has_second: bool) -> tuple[Tensor, Tensor]:
        first, second = column(scores, 0), column(scores, 1)
        if len(self.base) == 2 and has_second:
            second = add(first, float(self.base[1]))
            first = _where(has_first, emit("negative", second))
        elif len(self.base):
            first = _where(has_first, add(first, float(self.base[0])))
        threshold = 0.5 if self.is_single and self.is_positive else 0.0
        label = self.labels.of_sides(binary("greater", second if has_second else first, threshold))
        if has_second or len(self.base) == 2:
            return label, transformed(cast(emit("concatenate", first, second, axis=1), "float32"), self.transform)
        return label, two_scores(cast(first, "float32"), self.is_single and self.is_positive, self.transform)


def _where(flags: Tensor | bool, x: Tensor) -> Tensor:
    """x where flags are true, otherwise 0."""
    return x if flags is True else emit("where", constant(False) if flags is False else flags, x, like(0.0, x))
