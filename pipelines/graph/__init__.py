"""Passes on the relay stage, one file each, named like their flags."""

from relayc.pipelines.graph.fuse_ops import fuse_ops
from relayc.pipelines.passes import Sequential

__all__ = ["fuse_ops", "graph_pipeline"]


def graph_pipeline() -> Sequential:
    """The passes between a frontend and the lowering; the PassContext's opt_level says which of them run."""
    return Sequential([fuse_ops], name="GraphPipeline")
