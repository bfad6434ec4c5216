"""ONNX models to quantise: prepared, with what is constant in them and who reads a tensor."""

import os
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, inliner, numpy_helper, version_converter
from onnx.reference import ReferenceEvaluator

from relayc.tools.onnx_graphs import inputs_of, reads

OLDEST = 13
"""The first opset whose DequantizeLinear takes a scale for each channel."""
_FOLDED = {"Constant", "Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Cast"}
"""Operators between a weight and its product in exported models."""


class Graph:
    """A model with its constants and edges; nodes have unique names. What is written goes through `copy`."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.nodes: list[NodeProto] = list(model.graph.node)
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.inputs: list[ValueInfoProto] = inputs_of(model.graph)
        self.outputs = [value.name for value in model.graph.output]
        self.producers = {name: node for node in self.nodes for name in node.output if name}
        self.readers: dict[str, list[NodeProto]] = {}
        for node in self.nodes:
            for name in reads(node):
                self.readers.setdefault(name, []).append(node)

    @property
    def opset(self) -> int:
        return next(o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx"))

    def only_reader(self, name: str) -> NodeProto | None:
        """The only node that reads a tensor, if the tensor is not an output; otherwise None."""
        found = self.readers.get(name, [])
        return found[0] if len(found) == 1 and name not in self.outputs else None

    def constant(self, name: str) -> np.ndarray | None:
        """The elements of a constant of float32; None for any other tensor."""
        found = self.constants.get(name)
        return found if found is not None and found.dtype == np.float32 else None

    def copy(
        self,
        nodes: Sequence[NodeProto],
        constants: dict[str, np.ndarray],
        outputs: Sequence[str] = (),
        inputs: Sequence[ValueInfoProto] = (),
        domains: Sequence[str] = (),
    ) -> ModelProto:
        """The model with other nodes, its constants and some more as far as nodes read them, and further outputs and inputs."""
        made = ModelProto(ir_version=max(self.model.ir_version, 8), producer_name="relayc")
        made.opset_import.extend(self.model.opset_import)
        present = {o.domain for o in made.opset_import}
        made.opset_import.extend(helper.make_opsetid(domain, 1) for domain in domains if domain not in present)
        made.graph.name = self.model.graph.name or "main"
        made.graph.node.extend(nodes)
        read = {name for node in nodes for name in reads(node)} | set(self.outputs)
        every = {**self.constants, **constants}
        made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in every.items() if name in read)
        made.graph.input.extend([*self.inputs, *inputs])
        made.graph.output.extend([*self.model.graph.output, *(ValueInfoProto(name=name) for name in outputs)])
        return made


def attributes(node: NodeProto) -> dict[str, Any]:
    """The attributes of a node by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def prepare(model: Any) -> Graph:
    """A copy of a model (a path, bytes or a ModelProto) in the form that is quantised.

    Local functions are inlined, constants are initializers, batch normalisations are part of the convolutions before them, nodes have
    unique names, and the opset is 13 or later.

    Raises:
      TypeError: the model is nothing of ONNX.
      ValueError: it is quantised already.
    """
    found = _load(model)
    if any(
        node.op_type in ("QuantizeLinear", "DequantizeLinear", "QLinearConv", "MatMulInteger", "MatMulNBits") for node in found.graph.node
    ):
        raise ValueError("quantize: expected a model in floats, found a quantised one")
    if found.functions:
        found = inliner.inline_local_functions(found)
    if any(o.domain in ("", "ai.onnx") and o.version < OLDEST for o in found.opset_import):
        found = version_converter.convert_version(found, OLDEST)
    taken: Counter[str] = Counter()
    for node in found.graph.node:
        base = node.name or node.op_type
        taken[base] += 1
        node.name = base if node.name and taken[base] == 1 else f"{base}_{taken[base]}"
    _fold_constants(found)
    _fold_normalisations(found)
    return Graph(found)


def _load(model: Any) -> ModelProto:
    if isinstance(model, ModelProto):
        return deepcopy(model)
    if isinstance(model, bytes):
        return onnx.load_from_string(model)
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"quantize: expected an ONNX file or an onnx.ModelProto, found {type(model).__name__}")
    if Path(model).suffix != ".onnx":
        raise ValueError(f"quantize: expected an ONNX file (.onnx), found {model}")
    return onnx.load(model)


def _fold_constants(model: ModelProto) -> None:
    """Nodes between a constant and its reader become constants."""
    graph = model.graph
    known = {tensor.name: tensor for tensor in graph.initializer}
    left = []
    for node in graph.node:
        if node.op_type in _FOLDED and node.domain in ("", "ai.onnx") and all(name in known for name in node.input):
            outputs = [ValueInfoProto(name=name) for name in node.output]
            part = helper.make_graph([node], "part", [], outputs, [known[name] for name in node.input])
            values: Any = ReferenceEvaluator(helper.make_model(part, opset_imports=model.opset_import)).run(None, {})
            known[node.output[0]] = numpy_helper.from_array(np.asarray(values[0]), node.output[0])
        else:
            left.append(node)
    del graph.node[:], graph.initializer[:]
    graph.node.extend(left)
    read = {name for node in left for name in reads(node)} | {value.name for value in graph.output}
    graph.initializer.extend(tensor for name, tensor in known.items() if name in read)
    inputs = [value for value in graph.input if value.name not in known]
    del graph.input[:]
    graph.input.extend(inputs)


def _fold_normalisations(model: ModelProto) -> None:
    """A BatchNormalization of constants after a Conv scales the weights of the convolution."""
    graph = Graph(model)
    for conv in graph.nodes:
        norm = graph.only_reader(conv.output[0]) if conv.op_type == "Conv" else None
        if norm is None or norm.op_type != "BatchNormalization" or len(norm.output) > 1:
            continue
        arrays = [graph.constant(name) for name in (*conv.input[1:], *norm.input[1:])]
        if any(array is None for array in arrays) or len(graph.readers[conv.input[1]]) > 1:
            continue
        weight, *rest = [np.asarray(array, np.float64) for array in arrays]
        bias = rest.pop(0) if len(conv.input) > 2 else np.zeros(weight.shape[0])
        gain, shift, mean, variance = rest
        factor = gain / np.sqrt(variance + attributes(norm).get("epsilon", 1e-5))
        folded = (weight * factor.reshape(-1, *[1] * (weight.ndim - 1)), (bias - mean) * factor + shift)
        names = [f"{conv.name}.{part}" for part in ("weight", "bias")]
        model.graph.initializer.extend(
            numpy_helper.from_array(array.astype(np.float32), name) for name, array in zip(names, folded, strict=True)
        )
        data, output = conv.input[0], norm.output[0]
        del conv.input[:], conv.output[:]
        conv.input.extend([data, *names])
        conv.output.append(output)
        model.graph.node.remove(norm)
