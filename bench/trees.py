"""`bench trees`: ensembles of decision trees with random thresholds, on random rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from rich.table import Table

from relayc.bench.engines import ENGINES
from relayc.bench.latency import ratio, ratio_text, threads_text
from relayc.bench.measure import Progress, Result, Settings, measure_case
from relayc.bench.models import Case
from relayc.tools.tables import NUMBER, make_table

FEATURES = 30


@dataclass(frozen=True)
class Ensemble:
    """So many full trees, each of so many levels of nodes above the leaves, with so many targets, on so many rows."""

    trees: int
    depth: int
    targets: int
    rows: int

    @property
    def name(self) -> str:
        return f"{self.trees}x{self.depth}-{self.targets}@{self.rows}"

    def model(self, seed: int) -> onnx.ModelProto:
        """A TreeEnsembleRegressor: thresholds are normal, as the rows are; the number of rows is a symbol."""
        rng = np.random.default_rng(seed)
        inner, nodes = (1 << self.depth) - 1, (2 << self.depth) - 1
        each = np.arange(nodes)
        leaves = np.arange(inner, nodes)
        is_inner = np.tile(each < inner, self.trees)
        attributes = {
            "nodes_treeids": np.repeat(np.arange(self.trees), nodes),
            "nodes_nodeids": np.tile(each, self.trees),
            "nodes_featureids": np.where(is_inner, rng.integers(FEATURES, size=is_inner.size), 0),
            "nodes_values": np.where(is_inner, rng.standard_normal(is_inner.size), 0.0),
            "nodes_modes": np.where(is_inner, "BRANCH_LEQ", "LEAF"),
            "nodes_truenodeids": np.where(is_inner, np.tile(2 * each + 1, self.trees), 0),
            "nodes_falsenodeids": np.where(is_inner, np.tile(2 * each + 2, self.trees), 0),
            "target_treeids": np.repeat(np.arange(self.trees), len(leaves) * self.targets),
            "target_nodeids": np.tile(np.repeat(leaves, self.targets), self.trees),
            "target_ids": np.tile(np.arange(self.targets), len(leaves) * self.trees),
            "target_weights": rng.standard_normal(self.trees * len(leaves) * self.targets) / self.trees,
        }
        lists = {name: values.tolist() for name, values in attributes.items()}
        node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=self.targets, **lists)
        x, y = (
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", size]) for name, size in (("x", FEATURES), ("y", self.targets))
        )
        graph = helper.make_graph([node], self.name, [x], [y])
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


DEFAULT = (
    Ensemble(100, 6, 1, 10_000),
    Ensemble(100, 6, 5, 10_000),
    Ensemble(100, 10, 1, 10_000),
    Ensemble(500, 4, 1, 1000),
    Ensemble(100, 6, 1, 100),
    Ensemble(100, 6, 1, 1),
)
"""What is measured where nothing is asked for."""

_ENSEMBLE = re.compile(r"(\d+)x(\d+)-(\d+)@(\d+)")


def find_ensembles(text: str) -> tuple[Ensemble, ...]:
    """Ensembles from a list separated by commas, each TREESxDEPTH-TARGETS@ROWS.

    Raises:
      ValueError: an entry is none of these, or not possible.
    """
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = _ENSEMBLE.fullmatch(entry)
        if match is None or min(map(int, match.groups())) < 1 or int(match[2]) > 16:
            raise ValueError(f"expected TREESxDEPTH-TARGETS@ROWS such as 100x6-1@10000, of depth 16 at most, found {entry!r}")
        found.append(Ensemble(*map(int, match.groups())))
    if not found:
        raise ValueError("expected at least one ensemble, found none")
    return tuple(found)


@dataclass(frozen=True)
class TreePoint:
    """The results of the engines for an ensemble."""

    ensemble: Ensemble
    results: list[Result]

    def as_data(self) -> list[dict[str, Any]]:
        """One record an engine, as plain data."""
        return [{"ensemble": self.ensemble.name, **result.as_data()} for result in self.results]


def measure_ensembles(ensembles: Sequence[Ensemble], settings: Settings, seed: int, progress: Progress) -> list[TreePoint]:
    """Measures every ensemble on every engine."""
    points = []
    with TemporaryDirectory(prefix="relayc-bench-") as folder:
        path = Path(folder) / "trees.onnx"
        for ensemble in ensembles:
            onnx.save(ensemble.model(seed), path)
            x = np.random.default_rng(seed).standard_normal((ensemble.rows, FEATURES), np.float32)
            points.append(TreePoint(ensemble, measure_case(Case(ensemble.name, path, {"x": x}), settings, progress)))
    return points


def trees_table(points: Sequence[TreePoint], threads: int) -> Table:
    """One line per ensemble and engine."""
    title = f"tree ensembles on {FEATURES} features, {threads_text(threads)}"
    columns = {"us": NUMBER, "ratio": NUMBER, "ns a walk": NUMBER, "difference": NUMBER}
    table = make_table(title, **{"trees x depth - targets @ rows": {}, "engine": {}}, **columns)
    for point in points:
        for i, result in enumerate(point.results):
            head = [point.ensemble.name if i == 0 else "", ENGINES[result.engine].title]
            last = i == len(point.results) - 1
            if result.seconds is None:
                table.add_row(*head, "failed", end_section=last)
                continue
            walks = point.ensemble.trees * point.ensemble.rows
            table.add_row(
                *head,
                f"{result.seconds * 1e6:.1f}",
                ratio_text(ratio(point.results, result.engine)),
                f"{result.seconds / walks * 1e9:.2f}",
                "" if result.difference is None else f"{result.difference:.1e}",
                end_section=last,
            )
    return table
