"""The graph walk: nodes in order, each converted under its own location, functions and constant branches inlined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto

from relayc.dialects.relay import IRModule, TensorType
from relayc.frontend.converter import ModelBuilder, Tensor, at_node
from relayc.frontend.onnx import functions
from relayc.frontend.onnx.converters import Node, converting, find_converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.fold_nodes import fold_node
from relayc.frontend.onnx.fold_sizes import fold_sizes
from relayc.frontend.onnx.inputs import input_types
from relayc.frontend.onnx.model import Model, elements, opset_versions, tensor_type
from relayc.frontend.onnx.objects import Value, by_number
from relayc.frontend.registry import Progress
from relayc.frontend.steps import cast
from relayc.symbolic import Size


@dataclass
class Scope:
    """The values a graph, a subgraph or a function body sees.

    Attributes:
      opsets: operator set versions by domain.
      values: by name; a subgraph sees those of `outer` too.
      attributes: the attributes of the node whose function body this is, by name; None outside of function bodies.
      path: what stands before the names of nodes in locations and errors.
      nodes: those that are converted, in order, with their labels.
      declared: the types that the model declares of values, by name.
    """

    opsets: Mapping[str, int]
    values: dict[str, Value] = field(default_factory=dict)
    outer: "Scope | None" = None
    attributes: Mapping[str, AttributeProto] | None = None
    path: str = ""
    nodes: list[tuple[NodeProto, str]] = field(default_factory=list)
    declared: Mapping[str, TypeProto] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Value:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise OnnxError(f"expected an input that an earlier node makes, found {name!r}")


class Importer:
    """Builds the IRModule of one model; see `from_onnx`."""

    def __init__(
        self,
        model: Model,
        shapes: Mapping[str, Sequence[Size | str]] | None,
        dtypes: Mapping[str, str] | None,
        freeze_params: bool,
        progress: Progress | None,
        dims: Mapping[str, int | tuple[int, int]] | None,
    ) -> None:
        self.model = model
        self.graph = model.proto.graph
        self.freeze_params = freeze_params
        self.progress = progress
        self.functions = functions.local_functions(model.proto)
        opsets = opset_versions(model.proto.opset_import)
        functions.check_calls(model.source, self.graph, self.functions)
        functions.check_supported(model.source, self.graph, opsets, self.functions)
        self.types, self.ranges = input_types(
            self.graph, {} if shapes is None else shapes, {} if dtypes is None else dtypes, {} if dims is None else dims
        )
        self.scope = Scope(opsets, declared=_declared(self.graph))
        self.constants: dict[int, tuple[GraphProto, dict[str, Tensor]]] = {}

    def run(self) -> IRModule:
        """Raises OnnxError."""
        try:
            with ModelBuilder({name: type_.given for name, type_ in self.types.items()}, self.graph.name, self.ranges) as builder:
                self._enter_inputs(builder)
                self._enter_initializers(builder)
                self._convert_nodes(self.graph.node, self.scope, self.progress)
                return self._finish(builder)
        finally:
            self.constants.clear()
            self.scope.values.clear()  # they refer back to the importer: its arrays would stay until the next cyclic collection

    def _enter_inputs(self, builder: ModelBuilder) -> None:
        for name, type_ in self.types.items():
            if type_.object is not None:
                builder.host_inputs[name] = str(type_.object)
                self.scope.values[name] = by_number(builder.inputs[name], type_.object)
            else:
                self.scope.values[name] = cast(builder.inputs[name], type_.declared.dtype)
            self.scope.values[name].name = name

    def _finish(self, builder: ModelBuilder) -> IRModule:
        outputs = [(o.name, self.scope[o.name]) for o in self.graph.output]
        tensors = [(name, value if isinstance(value, Tensor) else value.number) for name, value in outputs]
        return builder.finish(tensors, {name: str(value.type) for name, value in outputs if not isinstance(value, Tensor)})

    def _enter_initializers(self, builder: ModelBuilder) -> None:
        for proto in self.graph.initializer:
            type_ = tensor_type(proto, f"initializer {proto.name}")
            self.scope.values[proto.name] = Tensor(
                type_,
                read=partial(self._elements, proto),
                materialise=None if self.freeze_params or type_.dtype == "string" else builder.add_argument,
                name=proto.name,
                foldable=self.freeze_params or not type_.is_float,
            )

    def _elements(self, proto: TensorProto) -> np.ndarray:
        """The elements of an initializer; of strings, their numbers."""
        array = self.model.array(proto)
        return ModelBuilder.current().module.numbers_of(array) if array.dtype == object else array

    # ---- nodes --------------------------------------------------------------------------------------------------------------------

    def _convert_nodes(self, nodes: Sequence[NodeProto], scope: Scope, progress: Progress | None = None) -> None:
        for index, node in enumerate(nodes):
            if progress is not None:
                progress(index, len(nodes))
            label = f"{scope.path}{node.name or f'{node.op_type}#{index}'}"
            self._convert(node, label, scope)
            scope.nodes.append((node, label))
        if progress is not None:
            progress(len(nodes), len(nodes))

    def _convert(self, node: NodeProto, label: str, scope: Scope) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = scope.opsets.get(domain, 1)
        operator = f"{domain}.{node.op_type}" if domain else node.op_type
        with at_node(f"{self.model.source}: node {label!r} ({operator}, opset {opset})", label, OnnxError):
            inputs = [scope[name] if name else None for name in node.input]
            node = _resolve_references(node, scope.attributes)
            outputs = self._converted(node, domain, opset, inputs, label, scope)
            wanted = sum(map(bool, node.output))
            if any(node.output[len(outputs) :]):
                raise OnnxError(f"expected at most {len(outputs)} output(s), found {wanted} in use")
        for name, value in zip(node.output, outputs, strict=False):
            if name:
                value.name = value.name or name
                scope.values[name] = value

    def _converted(self, node: NodeProto, domain: str, opset: int, given: list[Value | None], label: str, scope: Scope) -> Sequence[Value]:
        inputs = [t for t in given if t is None or isinstance(t, Tensor)]
        if len(inputs) < len(given):
            return self._outputs(node, domain, opset, given, label, scope)
        folded = fold_node(node, opset, inputs)
        if folded:
            return folded
        found = fold_sizes(node, opset, inputs)
        if isinstance(found, tuple):
            return found
        outputs = self._outputs(node, domain, opset, given, label, scope)
        if found is None:
            return outputs
        # Some elements are known.
        tensors = [t for t in outputs if isinstance(t, Tensor)]
        return [t if t.is_known else Tensor(t.type, value=t.value, elements=e) for t, e in zip(tensors, found, strict=True)]

    def _outputs(self, node: NodeProto, domain: str, opset: int, inputs: list[Value | None], label: str, scope: Scope) -> Sequence[Value]:
        convert = find_converter(domain, node.op_type, opset)
        function = self.functions.get((domain, node.op_type, node.overload))
        if convert is not None and function is None:
            what = f"node {label!r} ({node.op_type})"
            here = Node(
                opset,
                node.output,
                what,
                [scope.declared.get(name) for name in node.output],
                lambda graph, *inputs: self._inline_graph(graph, label, scope, inputs),
                lambda given, name: self._recomputed(given, name, label, scope),
            )
            with converting(here):
                found = convert(inputs, {a.name: _attribute(a, self.model) for a in node.attribute})
            if found is not None:
                return found
        function = function or functions.schema_function(node, domain, opset, inputs)
        if function is None:
            raise OnnxError("expected an operator with a mapping or a function body for these inputs, found none")
        return self._inline_function(function, node, inputs, label, functions.default_attributes(node, domain, opset), scope.opsets)

    def _inline_function(
        self,
        function: FunctionProto,
        node: NodeProto,
        inputs: list[Value | None],
        label: str,
        defaults: dict[str, AttributeProto],
        opsets: Mapping[str, int],
    ) -> list[Value]:
        given = defaults | {a.name: a for a in (*function.attribute_proto, *node.attribute)}
        body = Scope(functions.body_opsets(function, opsets), attributes=given, path=f"{label}/", declared=_declared(function))
        functions.check_supported(self.model.source, function, body.opsets, self.functions)
        body.values.update({name: t for name, t in zip(function.input, inputs, strict=False) if t is not None})
        # Absent optional inputs are absent for nodes of the body, too.
        absent = set(function.input) - body.values.keys()
        self._convert_nodes([_without_inputs(n, absent) for n in function.node], body)
        return [body[name] if wanted else _NOTHING for name, wanted in zip(function.output, node.output, strict=False)]

    def _recomputed(self, given: Mapping[str, Value], name: str, label: str, scope: Scope) -> Value:
        """A value of a scope or its enclosing scopes, recomputed with given values of some names. Raises OnnxError."""
        scopes: list[Scope] = []
        around: Scope | None = scope
        while around is not None:
            scopes.insert(0, around)
            around = around.outer
        nodes, changed = [], set(given)
        for node, where in (entry for each in scopes for entry in each.nodes):
            if not changed.isdisjoint(reads(node)) and not changed.issuperset(node.output):
                nodes.append((node, where))
                changed.update(node.output)
        needed, wanted = [], {name}
        for node, where in reversed(nodes):
            if not wanted.isdisjoint(set(node.output) - given.keys()):
                needed.append((node, where))
                wanted.update(reads(node))
        body = Scope(scope.opsets, dict(given), scope, scope.attributes, f"{label}/", declared=scope.declared)
        for node, where in reversed(needed):
            self._convert(node, f"{label}/{where}", body)
            body.values.update(given)
        return body[name]

    def _constants_of(self, graph: GraphProto) -> dict[str, Tensor]:
        """The initializers of a subgraph: the same tensors each time that it is converted."""
        kept = self.constants.get(id(graph))
        if kept is None or kept[0] is not graph:
            found = {}
            for proto in graph.initializer:
                type_ = tensor_type(proto, f"initializer {proto.name}")
                found[proto.name] = Tensor(type_, read=partial(self._elements, proto), name=proto.name)
            kept = self.constants[id(graph)] = graph, found
        return kept[1]

    def _inline_graph(self, graph: GraphProto, label: str, scope: Scope, inputs: Sequence[Value]) -> list[Value]:
        body = Scope(scope.opsets, outer=scope, attributes=scope.attributes, path=f"{label}/", declared=_declared(graph))
        if len(inputs) != len(graph.input):
            raise OnnxError(f"subgraph {graph.name!r}: expected {len(inputs)} inputs, found {len(graph.input)}")
        body.values.update({i.name: tensor for i, tensor in zip(graph.input, inputs, strict=True)})
        body.values.update(self._constants_of(graph))
        self._convert_nodes(graph.node, body)
        return [body[o.name] for o in graph.output]


def _declared(graph: GraphProto | FunctionProto) -> dict[str, TypeProto]:
    """The types that a graph declares of what its nodes make."""
    outputs = graph.output if isinstance(graph, GraphProto) else ()
    return {value.name: value.type for value in (*graph.value_info, *outputs)}


def reads(node: NodeProto) -> set[str]:
    """The names of the values that a node uses, in its subgraphs too; what a Gradient differentiates is one."""
    found = {name for name in node.input if name}
    for attribute in node.attribute:
        found.update(name for graph in (attribute.g, *attribute.graphs) for inner in graph.node for name in reads(inner))
        if node.op_type == "Gradient" and attribute.name == "y":
            found.add(attribute.s.decode("utf-8", "replace"))
    return found


_NOTHING = Tensor(TensorType((), "float32"))
"""In the place of an output that nothing uses."""


def _attribute(attribute: AttributeProto, model: Model) -> Any:
    """The value of an attribute, tensors as arrays and lists as tuples. Raises OnnxError."""
    kinds = AttributeProto
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == kinds.STRING:
        return value.decode("utf-8", "replace")
    if attribute.type == kinds.STRINGS:
        return tuple(v.decode("utf-8", "replace") for v in value)
    if attribute.type == kinds.TENSOR:
        read = model.external if value.data_location == TensorProto.EXTERNAL else elements
        return read(value, f"attribute {attribute.name}")
    if attribute.type in (kinds.INTS, kinds.FLOATS):
        return tuple(value)
    return value


def _resolve_references(node: NodeProto, given: Mapping[str, AttributeProto] | None) -> NodeProto:
    """`node` with attributes that refer to the function's replaced by their values; those not given are left out.

    Raises OnnxError for a reference outside of a function's body.
    """
    reference = next((a for a in node.attribute if a.ref_attr_name), None)
    if reference is None:
        return node
    if given is None:
        what = f"a reference to {reference.ref_attr_name!r}"
        raise OnnxError(f"attribute {reference.name}: expected a value, as the node is not in a function's body, found {what}")
    resolved = NodeProto()
    resolved.CopyFrom(node)
    del resolved.attribute[:]
    for attribute in node.attribute:
        found = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if found is not None:
            resolved.attribute.add().CopyFrom(found)
            resolved.attribute[-1].name = attribute.name
    return resolved


def _without_inputs(node: NodeProto, absent: set[str]) -> NodeProto:
    if absent.isdisjoint(node.input):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = ["" if name in absent else name for name in node.input]
    return copy
