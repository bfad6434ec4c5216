"""Models with QuantizeLinear and DequantizeLinear around operators (QDQ), and with MatMulNBits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from relayc.calibration import Steps
from relayc.tools.quantize.graph import Graph
from relayc.tools.quantize.layers import Layer, bias_of, bias_steps

MICROSOFT = "com.microsoft"
_MOVES = {"MaxPool", "Concat", "Reshape", "Flatten", "Transpose", "Slice", "Squeeze", "Unsqueeze"}
"""Operators on quantised numbers whose result has the scale of their operand."""
_LIMITS = {"Relu", "Clip"}
"""Operators that are part of the convolution before them."""


@dataclass(frozen=True)
class Plan:
    """What is quantised of a model.

    Attributes:
      groups: tensors that have one scale.
      through: names of nodes, beside layers, that read quantised numbers.
    """

    groups: list[list[str]]
    through: frozenset[str]

    @property
    def tensors(self) -> list[str]:
        return [name for group in self.groups for name in group]


def plan(graph: Graph, layers: Sequence[Layer]) -> Plan:
    """The tensors that layers read, what moves them there, and the sums of images between convolutions."""
    together = {layer.data: {layer.data} for layer in layers}
    images = {layer.output for layer in layers if layer.is_image}
    through = set()
    for node in reversed(graph.nodes):
        operands = list(node.input) if node.op_type in ("Concat", "Add") else list(node.input[:1])
        if any(name in graph.constants for name in operands) or len(node.output) != 1:
            continue
        if node.op_type in _MOVES and node.output[0] in together:
            group = set.union(together[node.output[0]], *(together.get(name, {name}) for name in operands))
            together.update(dict.fromkeys(group, group))
        elif node.op_type == "Add" and all(name in together or _origin(graph, name) in images for name in operands):
            for name in operands:
                together.setdefault(name, {name})
        else:
            continue
        through.add(node.name)
    groups = {id(group): sorted(group) for group in together.values()}
    return Plan(list(groups.values()), frozenset(through))


def _origin(graph: Graph, name: str) -> str:
    """The tensor that limits were put on."""
    node = graph.producers.get(name)
    return node.input[0] if node is not None and node.op_type in _LIMITS else name


class Writer:
    """Nodes and constants of a quantised model."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants[name] = array
        return name

    def emit(self, op: str, inputs: Sequence[str], output: str, domain: str = "", **attrs: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{output}.{op}", domain=domain, **attrs))
        return output

    def through_steps(self, name: str, steps: Steps, to: str = "") -> str:
        """A tensor that was quantised and dequantised."""
        to = to or f"{name}.dequantized"
        scale = self.constant(f"{to}.scale", np.asarray(steps.scale, np.float32))
        zero = self.constant(f"{to}.zero", np.asarray(steps.zero, steps.dtype))
        numbers = self.emit("QuantizeLinear", [name, scale, zero], f"{to}.integers")
        return self.emit("DequantizeLinear", [numbers, scale, zero], to)


def write(graph: Graph, layers: Sequence[Layer], steps: Mapping[str, Steps], how: Plan) -> ModelProto:
    """The model with the layers quantised.

    Args:
      steps: of the tensors in the plan.
    """
    writer = Writer(graph)
    by_node, by_adder = {layer.name: layer for layer in layers}, {layer.adder.name: layer for layer in layers if layer.adder is not None}
    for value in graph.inputs:
        if value.name in steps:
            writer.through_steps(value.name, steps[value.name])
    for node in graph.nodes:
        layer = by_node.get(node.name)
        if layer is not None:
            writer.nodes.extend(_layer_node(writer, layer, steps))
        else:
            copied = NodeProto()
            copied.CopyFrom(node)
            reads = {name: f"{name}.dequantized" for name in node.input if node.name in how.through and name in steps}
            adder = by_adder.get(node.name)
            if adder is not None and adder.bias is not None and adder.corrected.size:
                bias = bias_of(graph, adder)
                assert bias is not None
                reads[adder.bias] = writer.constant(f"{adder.name}.bias.corrected", bias)
            _replace(copied, [reads.get(name, name) for name in node.input])
            writer.nodes.append(copied)
        for name in node.output:
            if name in steps:
                writer.through_steps(name, steps[name])
    domains = [MICROSOFT] if any(layer.block is not None for layer in layers) else []
    return graph.copy(writer.nodes, writer.constants, domains=domains)


def _replace(node: NodeProto, inputs: Sequence[str]) -> None:
    del node.input[:]
    node.input.extend(inputs)


def _layer_node(writer: Writer, layer: Layer, steps: Mapping[str, Steps]) -> Iterator[NodeProto]:
    """The node of a layer, after what dequantises its constants."""
    name, bias = layer.name, None if layer.adder is not None else bias_of(writer.graph, layer)
    if layer.block is not None:
        yield _blocks_node(writer, layer, bias)
        return
    assert layer.integers is not None and layer.scales is not None
    integers = writer.constant(f"{name}.weight.integers", layer.integers)
    scales = writer.constant(f"{name}.weight.scales", layer.scales)
    zeros = writer.constant(f"{name}.weight.zeros", np.zeros(layer.scales.shape, np.int8))
    inputs = [f"{layer.data}.dequantized" if layer.data in steps else layer.data]
    inputs.append(writer.emit("DequantizeLinear", [integers, scales, zeros], f"{name}.weight.dequantized", axis=layer.axis))
    if bias is not None:
        number, scale = bias_steps(layer, bias)
        parts = [writer.constant(f"{name}.bias.integers", number), writer.constant(f"{name}.bias.scales", scale.astype(np.float32))]
        inputs.append(writer.emit("DequantizeLinear", parts, f"{name}.bias.dequantized", axis=0))
    copied = NodeProto()
    copied.CopyFrom(layer.node)
    _replace(copied, inputs)
    yield copied


def _blocks_node(writer: Writer, layer: Layer, bias: np.ndarray | None) -> NodeProto:
    block = layer.block
    assert block is not None
    inputs = [layer.data]
    for part, array in (("packed", block.packed), ("scales", block.scales), ("zeros", block.zeros)):
        inputs.append(writer.constant(f"{layer.name}.weight.{part}", array))
    if bias is not None:
        inputs += ["", writer.constant(f"{layer.name}.bias.corrected", bias)]
    depth, units = layer.matrix(writer.graph.constants[layer.weight]).shape
    attrs: dict[str, Any] = {"K": depth, "N": units, "bits": block.bits, "block_size": block.size, "accuracy_level": block.level}
    return helper.make_node("MatMulNBits", inputs, [layer.output], name=layer.name, domain=MICROSOFT, **attrs)
