"""Layers: products and convolutions of constant weights, and what becomes of their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from onnx import NodeProto

from relayc.calibration import Steps
from relayc.tools.quantize.graph import Graph, attributes

OPERATORS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
MOST_STEPS = 1 << 29
"""Of a bias in 32 bits, so that there is room for the sum."""


@dataclass(eq=False)
class Layer:
    """A node with constant weights, and its quantised form.

    Attributes:
      data, weight, bias: names of tensors; the bias may be the constant of the Add that follows a product (`adder`), or not be there.
      axis: of the output channels in the weights.
      steps: of the data; None where they stay floats.
      output_steps: of the result, where an integer sum of images reads it.
      weights: what the quantised weights stand for, in floats; None where the layer stays in floats.
      integers, scales: of weights with a scale for each output channel.
      block: inputs and attributes of MatMulNBits.
      corrected: what is added to each output channel in place of the mean error; empty for nothing.
    """

    node: NodeProto
    data: str
    weight: str
    axis: int
    bias: str | None = None
    adder: NodeProto | None = None
    steps: Steps | None = None
    output_steps: Steps | None = None
    weights: np.ndarray | None = None
    integers: np.ndarray | None = None
    scales: np.ndarray | None = None
    block: "Blocks | None" = None
    corrected: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def output(self) -> str:
        return self.node.output[0]

    @property
    def nbytes(self) -> int:
        """Of the quantised weights with their scales and zero points."""
        parts = (self.integers, self.scales) if self.block is None else (self.block.packed, self.block.scales, self.block.zeros)
        return sum(array.nbytes for array in parts if array is not None)

    @property
    def is_image(self) -> bool:
        """Whether the channels of the result are its second axis; else they are its last."""
        return self.node.op_type in ("Conv", "ConvTranspose")

    def channels(self, weights: np.ndarray) -> int:
        """The number of output channels."""
        groups = int(attributes(self.node).get("group", 1)) if self.node.op_type == "ConvTranspose" else 1
        return weights.shape[self.axis] * groups

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """The weights of a product as [inputs, outputs]."""
        return weights.T if self.axis == 0 else weights


@dataclass(frozen=True)
class Blocks:
    """Weights of MatMulNBits: `packed` uint8 [N, blocks, bytes], `scales` [N, blocks], `zeros` uint8 [N, bytes] of packed numbers.

    Attributes:
      level: what the node has as accuracy_level.
    """

    packed: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    bits: int
    size: int
    level: int


def find_layers(graph: Graph, keep: Sequence[str] = (), operators: Sequence[str] = OPERATORS) -> list[Layer]:
    """The layers of a model in order, without those whose name, or operator, matches a pattern in `keep`.

    Raises ValueError for a pattern that matches no layer.
    """
    found = [layer for node in graph.nodes if node.op_type in operators and (layer := _layer(graph, node)) is not None]
    for pattern in keep:
        if not any(_matches(layer, pattern) for layer in found):
            raise ValueError(f"keep: expected the name or operator of a layer ({_names(found)}), found {pattern!r}")
    return [layer for layer in found if not any(_matches(layer, pattern) for pattern in keep)]


def _matches(layer: Layer, pattern: str) -> bool:
    return fnmatchcase(layer.name, pattern) or layer.node.op_type == pattern


def _names(layers: Sequence[Layer]) -> str:
    names = [layer.name for layer in layers]
    return ", ".join([*names[:8], *(["..."] if len(names) > 8 else [])]) or "there are none"


def _layer(graph: Graph, node: NodeProto) -> Layer | None:
    data, weight = node.input[:2]
    array = graph.constant(weight)
    if array is None or array.size == 0 or data in graph.constants or node.domain not in ("", "ai.onnx"):
        return None
    bias = node.input[2] if len(node.input) > 2 and node.input[2] else None
    given = attributes(node)
    if node.op_type == "MatMul":
        if array.ndim != 2:
            return None
        adder = graph.only_reader(node.output[0])
        if adder is not None and adder.op_type == "Add":
            other = adder.input[1] if adder.input[0] == node.output[0] else adder.input[0]
            found = graph.constant(other)
            if found is not None and found.shape == (array.shape[1],):
                return Layer(node, data, weight, 1, other, adder)
        return Layer(node, data, weight, 1)
    if node.op_type == "Gemm":
        if given.get("transA", 0) or given.get("alpha", 1.0) != 1 or given.get("beta", 1.0) != 1:
            return None
        axis = 0 if given.get("transB", 0) else 1
    else:
        axis = 0 if node.op_type == "Conv" else 1
    layer = Layer(node, data, weight, axis, bias)
    if bias is not None:
        found = graph.constant(bias)
        if found is None or found.shape != (layer.channels(array),):
            return None
    return layer


# ---- weights --------------------------------------------------------------------------------------------------------------------------


def quantize_weights(graph: Graph, layer: Layer, most: int) -> None:
    """Weights as symmetric s8, of absolute values up to `most`, with a scale for each output channel, which leaves the bias fewer than
    2^29 steps."""
    weights = graph.constants[layer.weight].astype(np.float64)
    others = tuple(a for a in range(weights.ndim) if a != layer.axis)
    scales = np.abs(weights).max(others) / most
    if layer.bias is not None and layer.steps is not None and layer.adder is None:
        bias = np.abs(graph.constants[layer.bias].astype(np.float64)).reshape(-1, scales.size).max(0)
        scales = np.maximum(scales, bias / (MOST_STEPS * float(layer.steps.scale)))
    scales = np.where(scales > np.finfo(np.float32).tiny, scales, 1).astype(np.float32)
    shaped = scales.reshape([-1 if a == layer.axis else 1 for a in range(weights.ndim)])
    layer.integers = np.clip(np.rint(weights / shaped), -most, most).astype(np.int8)
    layer.scales = scales
    layer.weights = layer.integers.astype(np.float32) * shaped


def bias_of(graph: Graph, layer: Layer) -> np.ndarray | None:
    """The bias of a layer with its correction; None for neither."""
    bias = None if layer.bias is None else graph.constants[layer.bias]
    if not layer.corrected.size:
        return bias
    return layer.corrected if bias is None else bias + layer.corrected


def bias_steps(layer: Layer, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A bias as s32, and its scales: those of the data times those of the weights."""
    assert layer.scales is not None and layer.steps is not None
    scales = np.tile(layer.scales, bias.size // layer.scales.size) * layer.steps.scale
    limit = 2 * MOST_STEPS
    return np.clip(np.rint(bias.astype(np.float64) / scales), -limit, limit).astype(np.int32), scales


def decibels(signal: float, noise: float) -> float:
    """A ratio of powers in dB; infinite without noise."""
    if noise <= 0:
        return float("inf")
    ratio = signal / noise
    return 10 * float(np.log10(ratio)) if ratio > 0 else float("-inf")
