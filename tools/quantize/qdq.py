"""Models with QuantizeLinear and DequantizeLinear around operators (QDQ), and with MatMulNBits."""

from collections.abc import Iterator, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from relayc.calibration import Steps
from relayc.tools.quantize.graph import Graph, attributes
from relayc.tools.quantize.layers import Layer, bias_of, bias_steps

MICROSOFT = "com.microsoft"
_MOVES = {"MaxPool", "Concat", "Reshape", "Flatten", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Pad", "Resize"}
"""Operators on quantised numbers whose result has the scale of their operand."""
_LIMITS = {"Relu", "Clip"}
"""Operators that are part of the convolution before them."""
_SUMS = {"Add", "Sum"}
_ARITHMETIC = {"Add", "Sub", "Mul", "Div", "Neg", "Min", "Max", "Clip", "Relu"}
_COSTLY = {"Celu", "Elu", "Erf", "Exp", "Gelu", "Mish", "Selu", "Sigmoid", "Softplus", "Softsign", "Swish", "Tanh"}
"""Functions of an element that take longer in floats than a table of the results for 8 bits."""


@dataclass(frozen=True)
class Plan:
    """What is quantised of a model.

    Attributes:
      groups: tensors that have one scale.
      limited: tensors of groups whose values say nothing about the scale: a Relu sets to zero what the scale cuts off.
      through: names of nodes, beside layers, that read quantised numbers.
      shared: tensors that all nodes read quantised.
    """

    groups: list[list[str]]
    limited: frozenset[str]
    through: frozenset[str]
    shared: frozenset[str]

    @property
    def tensors(self) -> list[str]:
        return [name for group in self.groups for name in group]


def plan(graph: Graph, layers: Sequence[Layer]) -> Plan:
    """The tensors that layers read, what moves them there, and between convolutions sums, means and costly functions of images."""
    together = {layer.data: {layer.data} for layer in layers}
    images = {layer.output for layer in layers if layer.is_image}
    functions = _functions(graph, images)
    limited, through, shared = set[str](), set[str](), set[str]()
    for node in reversed(graph.nodes):
        several = node.op_type == "Concat" or node.op_type in _SUMS
        operands = list(node.input) if several else list(node.input[:1])
        if any(name in graph.constants for name in operands) or len(node.output) != 1:
            continue
        result = node.output[0]
        are_images = all(name in together or _origin(graph, name) in images for name in operands)
        if result in together and (_is_move(node) or _cuts_only(graph, node)):
            if node.op_type in _LIMITS or result in limited:
                if any(graph.only_reader(name) is None for name in operands):
                    continue  # others read what the limits cut off
                limited.update(operands)
            group = set.union(together[result], *(together.get(name, {name}) for name in operands))
            together.update(dict.fromkeys(group, group))
            shared.add(result)
        elif are_images and ((node.op_type in _SUMS and len(operands) == 2) or (node.op_type == "AveragePool" and result in together)):
            for name in operands:
                together.setdefault(name, {name})
        elif result in functions and (result in together or _is_factor(graph, result, together)):
            for name in (result, functions[result]):
                together.setdefault(name, {name})
                shared.add(name)
            continue
        else:
            continue
        through.add(node.name)
    groups = {id(group): sorted(group) for group in together.values()}
    return Plan(list(groups.values()), frozenset(limited), frozenset(through), frozenset(shared))


def _cuts_only(graph: Graph, node: NodeProto) -> bool:
    """Whether a node is the Relu of a moved tensor: the scale of the result makes the negative numbers of the tensor zero."""
    before = graph.producers.get(node.input[0]) if node.op_type == "Relu" else None
    return before is not None and _is_move(before)


def _is_move(node: NodeProto) -> bool:
    """Whether the elements of a result are those of the operands, as those of a Resize to the nearest element are, or constants."""
    return node.op_type in _MOVES and (node.op_type != "Resize" or attributes(node).get("mode", b"nearest") == b"nearest")


def _origin(graph: Graph, name: str) -> str:
    """The tensor that limits were put on."""
    node = graph.producers.get(name)
    return node.input[0] if node is not None and node.op_type in _LIMITS else name


def _functions(graph: Graph, roots: Set[str]) -> dict[str, str]:
    """Results of costly functions of the elements of one tensor (x * sigmoid(x)): the tensor, one of `roots`, by the name of the result."""
    found: dict[str, tuple[str, bool]] = {}
    for node in graph.nodes:
        is_costly = node.op_type in _COSTLY
        if not (is_costly or node.op_type in _ARITHMETIC) or len(node.output) != 1:
            continue
        operands = [name for name in node.input if name and getattr(graph.constants.get(name), "size", 0) != 1]
        parts = [found.get(name, (name, False)) for name in operands]
        if len({root for root, _ in parts}) == 1 and parts[0][0] in roots:
            found[node.output[0]] = parts[0][0], is_costly or any(costly for _, costly in parts)
    return {name: root for name, (root, costly) in found.items() if costly and not _is_inner(graph, name, root, found)}


def _is_inner(graph: Graph, name: str, root: str, found: Mapping[str, tuple[str, bool]]) -> bool:
    """Whether nothing but functions of the same root reads a tensor."""
    return all(found.get(node.output[0], ("",))[0] == root for node in graph.readers.get(name, []))


def _is_factor(graph: Graph, name: str, together: Mapping[str, Any]) -> bool:
    """Whether a tensor is part of a product that is quantised, as one with a gate is."""
    return any(node.op_type == "Mul" and node.output[0] in together for node in graph.readers.get(name, []))


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
            copied = deepcopy(node)
            quantised = [name for name in node.input if name in steps and (node.name in how.through or name in how.shared)]
            reads = {name: f"{name}.dequantized" for name in quantised}
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
    copied = deepcopy(layer.node)
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
