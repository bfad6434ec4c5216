"""Operators that are graphs of other operators: model-local functions and the function bodies of ONNX's operator schemas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto
from onnx.defs import SchemaError

from relayc.dialects.relay.types import numpy_dtype
from relayc.frontend.converter import Tensor
from relayc.frontend.onnx.converters import find_converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import NEWEST_OPSET, opset_versions
from relayc.frontend.onnx.objects import Value
from relayc.trampoline import Call, trampoline

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""

LocalFunctions = Mapping[FunctionKey, FunctionProto]


def local_functions(model: onnx.ModelProto) -> dict[FunctionKey, FunctionProto]:
    """The functions a model brings along."""
    return {("" if f.domain == "ai.onnx" else f.domain, f.name, f.overload): f for f in model.functions}


class Schema(Protocol):
    """What onnx.defs.OpSchema has of function bodies, which its type information leaves out."""

    name: str
    attributes: Mapping[str, Any]
    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int) -> bytes | FunctionProto: ...
    def get_context_dependent_function_with_opset_version(self, version: int, node: bytes, types: list[bytes]) -> bytes | FunctionProto: ...


def _schema(domain: str, name: str, opset: int) -> Schema | None:
    try:
        return cast(Schema, onnx.defs.get_schema(name, opset, domain))
    except SchemaError:
        return None


def _body_version(versions: Iterable[int], opset: int) -> int | None:
    return max((v for v in versions if v <= opset), default=None)


def schema_function(node: NodeProto, domain: str, opset: int, inputs: Sequence[Value | None]) -> FunctionProto | None:
    """The function body that the operator's schema defines for this node; None if there is none."""
    schema = _schema(domain, node.op_type, opset)
    if schema is None:
        return None
    version = _body_version(schema.function_opset_versions, opset)
    if version is not None:
        return _parsed(schema.get_function_with_opset_version(version))
    version = _body_version(schema.context_dependent_function_opset_versions, opset)
    if version is None:
        return None
    types = [type_proto(t).SerializeToString() for t in inputs]
    try:
        return _parsed(schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types))
    except (RuntimeError, ValueError, TypeError) as error:
        raise OnnxError(f"expected a node for which the operator's schema gives a function body, found another: {error}") from None


def default_attributes(node: NodeProto, domain: str, opset: int) -> dict[str, AttributeProto]:
    """The default attributes of an operator, by its schema, that a node does not set."""
    schema = _schema(domain, node.op_type, opset)
    return {} if schema is None else {n: a.default_value for n, a in schema.attributes.items() if a.default_value.name}


def body_opsets(function: FunctionProto, outer: Mapping[str, int]) -> dict[str, int]:
    """Operator sets of a function's body: its own, otherwise the caller's, otherwise the newest."""
    return {"": NEWEST_OPSET, **outer, **opset_versions(function.opset_import)}


def _parsed(body: bytes | FunctionProto) -> FunctionProto | None:
    function = FunctionProto.FromString(body) if isinstance(body, bytes) else body
    return function if function.node else None


def type_proto(tensor: Value | None) -> onnx.TypeProto:
    """ONNX's type of a tensor; an empty one for an input that is not given, or no tensor."""
    if not isinstance(tensor, Tensor):
        return onnx.TypeProto()
    is_string = tensor.dtype == "string"
    dtype = TensorProto.STRING if is_string else onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(tensor.dtype))
    return onnx.helper.make_tensor_type_proto(dtype, [d if isinstance(d, int) else str(d) for d in tensor.shape])


MOST_NODES = 100_000
"""Nodes of a model with all calls of its functions expanded, ten times those of the largest exported ones: importing takes a millisecond a
node. Functions that each call another twice double the nodes with each level."""
MOST_CALLS = 100
"""Calls of functions in one another: half of what Python's recursion limit of 1,000 is enough for."""


def check_calls(source: str, graph: GraphProto, local: LocalFunctions) -> None:
    """Raises OnnxError for functions that call themselves, or whose calls make too many nodes; looks at each node of the file once."""
    known: dict[FunctionKey, tuple[int, int]] = {}
    calling: set[FunctionKey] = set()

    def check(is_right: bool, what: str, expected: str, found: object) -> None:
        if not is_right:
            raise OnnxError(f"{source}: {what}: expected {expected}, found {found}", located=True)

    def count(nodes: Sequence[NodeProto]) -> Call[tuple[int, int]]:
        """Number of nodes after expansion, and how many calls are in one another."""
        total = deepest = 0
        for node in nodes:
            key = ("" if node.domain == "ai.onnx" else node.domain, node.op_type, node.overload)
            number, depth = 1, 0
            if key in local:
                what = f"function {node.op_type!r}"
                check(key not in calling, what, "functions that do not call themselves", "one that does")
                if key not in known:
                    calling.add(key)
                    number, depth = yield count(local[key].node)
                    calling.remove(key)
                    known[key] = number, depth + 1
                number, depth = known[key]
                check(depth <= MOST_CALLS, what, f"at most {MOST_CALLS} calls of functions in one another", "more")
                check(number <= MOST_NODES, what, f"at most {MOST_NODES} nodes with all calls of functions expanded", number)
            for attribute in node.attribute:
                for inner in (attribute.g, *attribute.graphs):
                    more, level = yield count(inner.node)
                    number, depth = number + more, max(depth, level)
            total, deepest = total + number, max(deepest, depth)
        return total, deepest

    if local:
        number, _ = trampoline(count(graph.node))
        check(number <= MOST_NODES, "graph", f"at most {MOST_NODES} nodes with all calls of functions expanded", number)


# ---- what is not supported ------------------------------------------------------------------------------------------------------------


def check_supported(source: str, graph: GraphProto | FunctionProto, opsets: Mapping[str, int], local: LocalFunctions) -> None:
    """Raises one OnnxError that lists every operator of `graph` that has neither a converter nor a function body."""
    found: dict[tuple[str, str, int], str] = {}
    _collect(graph, opsets, local, "", found)
    if found:
        lines = [f"  {_qualified(domain, name)} (opset {opset}), first in node {node!r}" for (domain, name, opset), node in found.items()]
        raise OnnxError(f"{source}: {len(found)} operator(s) that relayc cannot import:\n" + "\n".join(lines), located=True)


def _qualified(domain: str, name: str) -> str:
    return f"{domain}.{name}" if domain else name


def is_expandable(schema: Schema) -> bool:
    """Whether the operator's schema has a function body that can be imported, for the nodes that allow it."""
    versions = schema.function_opset_versions or schema.context_dependent_function_opset_versions
    return bool(versions)


def _collect(
    graph: GraphProto | FunctionProto,
    opsets: Mapping[str, int],
    local: LocalFunctions,
    path: str,
    found: dict[tuple[str, str, int], str],
) -> None:
    for index, node in enumerate(graph.node):
        label = f"{path}{node.name or f'{node.op_type}#{index}'}"
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = opsets.get(domain, 1)
        function = local.get((domain, node.op_type, node.overload))
        if function is None and find_converter(domain, node.op_type, opset) is None:
            schema = _schema(domain, node.op_type, opset)
            version = None if schema is None else _body_version(schema.function_opset_versions, opset)
            if schema is not None and version is not None:
                function = _parsed(schema.get_function_with_opset_version(version))
            elif schema is None or _body_version(schema.context_dependent_function_opset_versions, opset) is None:
                found.setdefault((domain, node.op_type, opset), label)
        if function is not None:
            _collect(function, body_opsets(function, opsets), local, f"{label}/", found)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _collect(attribute.g, opsets, local, f"{label}/", found)
