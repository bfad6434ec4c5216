"""Graphs inside of nodes of ONNX models, and what nodes read."""

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def reads(node: NodeProto) -> list[str]:
    """The tensors that a node takes, and those that the graphs in it take from around them."""
    found = [name for name in node.input if name]
    for graph in subgraphs(node):
        own = {t.name for t in graph.initializer} | {i.name for i in graph.input}
        for inner in graph.node:
            found += [name for name in reads(inner) if name not in own]
            own.update(inner.output)
        found += [output.name for output in graph.output if output.name not in own]
    return found
