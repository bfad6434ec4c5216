"""SmoothQuant (Xiao et al., 2022): channels of activations that are far larger than others give some of their size to the weights."""

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from relayc.tools.quantize.graph import Graph, attributes
from relayc.tools.quantize.layers import Layer


def smoothable(graph: Graph, layers: Sequence[Layer]) -> dict[str, list[Layer]]:
    """Layers by the tensor that they read, if nothing else reads it and constants scale its channels (its last axis)."""
    found: dict[str, list[Layer]] = {}
    for layer in layers:
        if not layer.is_image:
            found.setdefault(layer.data, []).append(layer)
    return {
        name: readers
        for name, readers in found.items()
        if len(graph.readers[name]) == len(readers)
        and name not in graph.outputs
        and _scales(graph, name, readers[0].matrix(graph.constants[readers[0].weight]).shape[0]) is not None
    }


def _scales(graph: Graph, name: str, depth: int) -> list[tuple[NodeProto, int]] | None:
    """The node inputs to divide by a factor per channel so that a tensor is divided; None if there are none."""
    node = graph.producers.get(name)
    if node is None:
        return None
    if node.op_type == "LayerNormalization":
        places = [(node, i) for i in range(1, len(node.input)) if node.input[i]]
        return places if attributes(node).get("axis", -1) == -1 and _are_channels(graph, places, depth) else None
    places = [(node, i) for i, operand in enumerate(node.input) if operand in graph.constants]
    if node.op_type not in ("Mul", "Add") or len(places) != 1 or not _are_channels(graph, places, depth):
        return None
    if node.op_type == "Mul":
        return places
    before = node.input[1 - places[0][1]]
    rest = _scales(graph, before, depth) if graph.only_reader(before) is node and graph.producers[before].op_type == "Mul" else None
    return None if rest is None else [*places, *rest]


def _are_channels(graph: Graph, places: Sequence[tuple[NodeProto, int]], depth: int) -> bool:
    arrays = [graph.constant(node.input[i]) for node, i in places]
    return all(array is not None and array.shape == (depth,) for array in arrays)


def smooth(graph: Graph, groups: dict[str, list[Layer]], largest: dict[str, np.ndarray], alpha: float) -> Graph:
    """The graph with the channels of each tensor divided by largest(x)^alpha / largest(w)^(1 - alpha), and the weights multiplied."""
    for name, layers in groups.items():
        weights = np.max([np.abs(layer.matrix(graph.constants[layer.weight])).max(1) for layer in layers], 0)
        data = largest[name]
        used = (weights > 0) & (data > 0)
        factor = np.ones(weights.shape)
        factor[used] = data[used].astype(np.float64) ** alpha / weights[used].astype(np.float64) ** (1 - alpha)
        for node, i in _scales(graph, name, factor.size) or []:
            _put(graph, node, i, graph.constants[node.input[i]] / factor)
        for layer in layers:
            shaped = factor if layer.axis == 0 else factor[:, None]
            _put(graph, layer.node, 1, graph.constants[layer.weight] * shaped)
    return Graph(graph.copy(graph.nodes, {}))


def _put(graph: Graph, node: NodeProto, i: int, array: np.ndarray) -> None:
    name = f"{node.name}.smooth{i}"
    graph.constants[name] = array.astype(np.float32)
    node.input[i] = name
