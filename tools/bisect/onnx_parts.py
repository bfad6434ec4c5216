"""Parts of ONNX models."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from functools import partial

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from relayc.tools.bisect.parts import NoPart, Part
from relayc.tools.onnx_graphs import reads

_OF_SHAPES = {"Shape", "Size"}
_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


class OnnxSource:
    """An ONNX model as its nodes, in their order.

    What follows from constants and from shapes is known when a model is imported (the shape of a reshape, say): where a part takes such a
    tensor from outside, it is a constant of the part; in a part with symbols, where it follows from symbols too, the nodes that give it are
    nodes of the part.
    """

    def __init__(
        self, model: ModelProto, inputs: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int | str]] | None = None
    ) -> None:
        """
        Args:
          inputs: the values of the model's inputs, whose sizes parts are for.
          shapes: of tensors by name, with sizes or expressions of symbols, for parts that have symbols; of a tensor that is not among them,
            the sizes that it has.
        """
        self.model, self.inputs, self.shapes = model, inputs, shapes
        graph = model.graph
        self.nodes = [_named(node, i) for i, node in enumerate(graph.node)]
        self.names = [node.name for node in self.nodes]
        self.initializers = {t.name: t for t in graph.initializer}
        self.producers = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self.types = {v.name: v for v in (*graph.input, *graph.value_info, *graph.output)}
        self.known = self._known()

    def _known(self) -> set[str]:
        """Tensors that follow from constants and shapes."""
        known = set(self.initializers)
        for node in self.nodes:
            if node.op_type in _OF_SHAPES or (node.op_type not in _RANDOM and all(name in known for name in reads(node))):
                known.update(node.output)
        return known

    def all_tensors(self) -> Part:
        names = tuple(self.producers)
        model = deepcopy(self.model)
        del model.graph.node[:], model.graph.output[:]
        model.graph.node.extend(self.nodes)
        model.graph.output.extend(self.types.get(name) or onnx.ValueInfoProto(name=name) for name in names)
        return Part(tuple(range(len(self.nodes))), partial(deepcopy, model), self.inputs, names)

    def part(self, nodes: Collection[int], values: Mapping[str, np.ndarray], outputs: Collection[str] | None = None) -> Part:
        chosen = set(nodes)
        given = self._given(chosen) if outputs is None else [name for name in self._given(chosen) if name in outputs]
        chosen = self._needed(chosen, given)
        if self.shapes is not None:
            chosen |= self._sizes_of(chosen)
        if not given:
            raise NoPart("no outputs")
        inside = {name for i in chosen for name in self.nodes[i].output}
        taken = dict.fromkeys(name for i in sorted(chosen) for name in reads(self.nodes[i]) if name not in inside)
        graph = GraphProto(name=self.model.graph.name or "part")
        graph.node.extend(self.nodes[i] for i in sorted(chosen))
        inputs: dict[str, np.ndarray] = {}
        for name in taken:
            if name in self.initializers:
                graph.initializer.append(self.initializers[name])
                continue
            value = values.get(name)
            if not isinstance(value, np.ndarray) or value.dtype.kind in "OU":
                raise NoPart(f"{name} is no tensor of numbers")
            if name in self.known:
                graph.initializer.append(numpy_helper.from_array(value, name))
            else:
                shape = (self.shapes or {}).get(name, value.shape)
                graph.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape))
                inputs[name] = value
        for name in given:
            if not isinstance(values.get(name), np.ndarray):
                raise NoPart(f"{name} is no tensor")
            dtype = values[name].dtype
            element = onnx.TensorProto.STRING if dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(dtype)
            graph.output.append(helper.make_tensor_value_info(name, element, None))
        model = ModelProto(ir_version=self.model.ir_version, producer_name="relayc bisect", graph=graph)
        model.opset_import.extend(self.model.opset_import)
        model.functions.extend(self.model.functions)
        return Part(tuple(sorted(chosen)), partial(deepcopy, model), inputs, tuple(given))

    def _given(self, chosen: Collection[int]) -> list[str]:
        """The tensors of some nodes that other nodes or the caller use."""
        wanted = {output.name for output in self.model.graph.output}
        wanted.update(name for i, node in enumerate(self.nodes) if i not in chosen for name in reads(node))
        return [name for i in sorted(chosen) for name in self.nodes[i].output if name in wanted]

    def _sizes_of(self, chosen: Collection[int]) -> set[int]:
        """The nodes that compute what some nodes take and is known from shapes."""
        left, found = [name for i in chosen for name in reads(self.nodes[i])], set[int]()
        while left:
            name = left.pop()
            node = self.producers.get(name)
            if name in self.known and node is not None and node not in found:
                found.add(node)
                left += [] if self.nodes[node].op_type in _OF_SHAPES else reads(self.nodes[node])
        return found

    def _needed(self, chosen: Collection[int], outputs: Collection[str]) -> set[int]:
        """The nodes, out of `chosen`, that tensors depend on."""
        left, needed = list(outputs), set[int]()
        while left:
            node = self.producers.get(left.pop())
            if node is not None and node in chosen and node not in needed:
                needed.add(node)
                left += reads(self.nodes[node])
        return needed


def _named(node: NodeProto, index: int) -> NodeProto:
    """The node under the name that errors and profiles call it by."""
    found = deepcopy(node)
    found.name = node.name or f"{node.op_type}#{index}"
    return found
