"""`bench trees`: ensembles of decision trees with random thresholds, on random rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper
from rich.table import Table

from relayc.bench.latency import add_engines, difference_text, ratio, ratio_text, threads_text
from relayc.bench.measure import Point, Progress, Result, Settings, measure_model
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
"""The default ensembles."""

_ENSEMBLE = re.compile(r"(\d+)x(\d+)-(\d+)@(\d+)")


def find_ensembles(text: str) -> tuple[Ensemble, ...]:
    """Ensembles from a list separated by commas, each TREESxDEPTH-TARGETS@ROWS.

    Raises:
      ValueError: an entry does not have this form, or is impossible.
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


def measure_ensembles(ensembles: Sequence[Ensemble], settings: Settings, seed: int, progress: Progress) -> list[Point[Ensemble]]:
    """Measures every ensemble on every engine."""
    points = []
    for e in ensembles:
        x = np.random.default_rng(seed).standard_normal((e.rows, FEATURES), np.float32)
        points.append(Point(e, {"ensemble": e.name}, measure_model(e.model(seed), e.name, {"x": x}, seed, settings, progress)))
    return points


def trees_table(points: Sequence[Point[Ensemble]], threads: int) -> Table:
    """One line per ensemble and engine."""
    title = f"tree ensembles on {FEATURES} features, {threads_text(threads)}"
    columns = {"us": NUMBER, "ratio": NUMBER, "ns a walk": NUMBER, "difference": NUMBER}
    table = make_table(title, **{"trees x depth - targets @ rows": {}, "engine": {}}, **columns)
    for point in points:
        walks = point.subject.trees * point.subject.rows

        def cells(result: Result, seconds: float, walks: int = walks, results: Sequence[Result] = point.results) -> list[str]:
            among = ratio_text(ratio(results, result.engine))
            return [f"{seconds * 1e6:.1f}", among, f"{seconds / walks * 1e9:.2f}", difference_text(result)]

        add_engines(table, [point.subject.name], point.results, cells)
    return table
