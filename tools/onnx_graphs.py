"""Graphs inside of nodes of ONNX models, and what nodes read."""

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def every_node(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph, and of the graphs in them."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from every_node(inner)


def inputs_of(graph: GraphProto) -> list[ValueInfoProto]:
    """What a call has to give: inputs without a value in the model."""
    initialised = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in initialised]


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
