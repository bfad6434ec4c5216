"""Passes on the relay stage, one file each, named like their flags."""

from relayc.pipelines.graph.dead_code_elimination import dead_code_elimination
from relayc.pipelines.graph.eliminate_common_subexpr import eliminate_common_subexpr
from relayc.pipelines.graph.fold_constant import fold_constant
from relayc.pipelines.graph.fuse_ops import fuse_ops
from relayc.pipelines.graph.infer_type import infer_type
from relayc.pipelines.graph.simplify_inference import simplify_inference
from relayc.pipelines.passes import Sequential

__all__ = [
    "dead_code_elimination",
    "eliminate_common_subexpr",
    "fold_constant",
    "fuse_ops",
    "graph_pipeline",
    "infer_type",
    "simplify_inference",
]


def graph_pipeline() -> Sequential:
    """The passes between a frontend and the lowering; the PassContext's opt_level says which of them run."""
    passes = [
        infer_type,
        simplify_inference,
        fold_constant,
        eliminate_common_subexpr,
        dead_code_elimination,
        fuse_ops,
    ]
    return Sequential(passes, name="GraphPipeline")
