"""Graphs in parts: those of operators that relayc has become functions, what lies between them is left to torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.graph import lacking_nodes

Compiler = Callable[[Any], Callable[..., Any]]
"""Makes a function of a graph, which takes what the graph takes and gives a list of its results. Raises ModelError."""


class _Others(OperatorSupportBase):
    """The operators of a graph other than some; what chooses one of several results goes with the operator that gives them."""

    def __init__(self, left: set[str]) -> None:
        self.left = left

    def is_node_supported(self, submodules: Any, node: Any) -> bool:
        if node.op != "call_function" or isinstance(node.target, torch._ops.HigherOrderOperator) or node.name in self.left:
            return False
        if getattr(node.target, "__name__", "") == "getitem":
            return self.is_node_supported(submodules, node.args[0])
        return True


class _Part(torch.nn.Module):
    """A function in the place of a part of a graph, which has one result or several."""

    def __init__(self, function: Callable[..., Any], is_single: bool) -> None:
        super().__init__()
        self.function, self.is_single = function, is_single

    def forward(self, *args: Any) -> Any:
        found = self.function(*args)
        return found[0] if self.is_single else tuple(found)


def in_parts(graph_module: Any, compiler: Compiler) -> Callable[..., Any]:
    """`compiler` of the whole graph, or of the parts around the nodes for which it raises ModelError."""
    left = lacking_nodes(graph_module)
    if not left:
        try:
            return compiler(graph_module)
        except ModelError as error:
            if error.node is None:
                return _in_eager(graph_module)
            left = {error.node}
    before = set(dict(graph_module.named_children()))
    parts = CapabilityBasedPartitioner(graph_module, _Others(left)).partition_and_fuse()
    for name, part in list(parts.named_children()):
        if name not in before:
            (results,) = part.graph.find_nodes(op="output")
            is_single = not isinstance(results.args[0], (tuple, list))
            delattr(parts, name)
            parts.add_module(name, _Part(in_parts(part, compiler), is_single))
    return _in_eager(parts)


def _in_eager(graph_module: Any) -> Callable[..., Any]:
    (results,) = graph_module.graph.find_nodes(op="output")
    if isinstance(results.args[0], (tuple, list)):
        return graph_module.forward
    return lambda *args: [graph_module(*args)]
