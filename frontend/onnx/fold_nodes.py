"""Evaluation of nodes on known inputs at import: what exporters compute to get at shapes (Shape, Gather, Concat, ...)."""

from collections.abc import Mapping, Sequence
from math import inf, prod

import numpy as np
import onnx
from onnx.defs import SchemaError

from relayc.dialects.relay.types import DTYPES, is_narrow
from relayc.frontend.converter import Tensor, constant
from relayc.frontend.onnx.converters import Converter, find_converter
from relayc.frontend.onnx.functions import type_proto

_MAX_INPUT_BYTES = 1 << 16
_MAX_OUTPUT_BYTES = 1 << 20
"""Larger results are weights: the graph passes fold them, with compiled kernels."""

_SELECTS = frozenset({"Compress", "NonZero", "Unique"})
"""Operators whose results are at most as large as their inputs; the size depends on the values."""


def fold_node(node: onnx.NodeProto, opset: int, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...] | None:
    """The outputs of a node whose inputs are all known and small; None if the node is to be converted.

    They are computed by the reference implementation of the onnx package.
    """
    given = [t for t in inputs if t is not None]
    if not given or node.domain not in ("", "ai.onnx") or not is_as_in_opset_7(node.op_type, opset):
        return None
    if any(a.name == "num_outputs" and a.i != len(node.output) for a in node.attribute):
        return None  # the package's shape inference would end the process
    converter = find_converter("", node.op_type, opset)
    if converter is not None and not (converter.foldable and _has_right_flags(node, converter)):
        return None
    # Of strings the reference knows no numbers.
    if not all(t.is_known and t.foldable and t.dtype != "string" for t in given) or sum(t.type.num_bytes for t in given) > _MAX_INPUT_BYTES:
        return None
    if not _is_small(node, opset, inputs) or begins_before(node, inputs):
        return None
    found = evaluated(node, opset, {name: t.array for name, t in zip(node.input, inputs, strict=True) if t is not None})
    if found is None:
        return None
    arrays = dict(zip((n for n in node.output if n), found, strict=True))
    # Of narrow types the reference rounds special values in ways of its own.
    if any(a.dtype.name not in DTYPES or is_narrow(a.dtype.name) or a.nbytes > _MAX_OUTPUT_BYTES for a in arrays.values()):
        return None
    nothing = constant(0)
    return tuple(constant(arrays[n]) if n else nothing for n in node.output)


def evaluated(node: onnx.NodeProto, opset: int, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray] | None:
    """The outputs of a node, of the values of its inputs, by the reference implementation of the onnx package; None where it fails."""
    # Late: importing the reference implementation takes a tenth of a second that many models do not need.
    from onnx.reference import ReferenceEvaluator

    graph = onnx.helper.make_graph([node], "node", list(map(_untyped, feeds)), [_untyped(name) for name in node.output if name])
    try:
        with np.errstate(all="ignore"):
            return list(map(np.asarray, ReferenceEvaluator(graph, opsets={"": opset}).run(None, dict(feeds))))
    except Exception:
        return None  # whatever is wrong with the node, its converter says so with the node's name


def begins_before(node: onnx.NodeProto, inputs: Sequence[Tensor | None]) -> bool:
    """Whether a slice begins before the first element and goes backwards: from there, and from nowhere in the reference implementation."""
    if node.op_type != "Slice" or len(inputs) < 5:
        return False
    data, starts, steps = inputs[0], inputs[1], inputs[4]
    if data is None or starts is None or steps is None or not (data.type.is_static and starts.is_known and steps.is_known):
        return False
    return bool(np.any(steps.array < 0)) and bool(np.any(starts.array < -min(data.type.static_shape, default=0)))


def _has_right_flags(node: onnx.NodeProto, converter: Converter) -> bool:
    """Whether flags are 0 or 1: the reference implementation takes other numbers, for which converters have an error."""
    return all(a.i in (0, 1) for a in node.attribute if converter.attributes.get(a.name) == (bool,))


def is_as_in_opset_7(op_type: str, opset: int) -> bool:
    """Whether an operator has the meaning that it has from operator set 7 on, the oldest that the reference implementation knows."""
    try:
        return opset >= 7 or onnx.defs.get_schema(op_type, opset).since_version == onnx.defs.get_schema(op_type, 7).since_version
    except SchemaError:
        return False


def _is_small(node: onnx.NodeProto, opset: int, inputs: Sequence[Tensor | None]) -> bool:
    """Whether the outputs are known to have few elements, by the shape inference of the onnx package."""
    given = {name: t for name, t in zip(node.input, inputs, strict=True) if t is not None}
    types = {name: type_proto(t) for name, t in given.items()}
    values = {name: onnx.numpy_helper.from_array(t.array, name) for name, t in given.items()}
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        imports = [onnx.helper.make_opsetid("", opset)]
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, values, opset_imports=imports)
    except Exception:
        return False  # the converter reports the error
    # An element has a byte at least; what is computed is measured again.
    return node.op_type in _SELECTS or sum(_num_elements(found.get(name)) for name in node.output if name) <= _MAX_OUTPUT_BYTES


def _num_elements(type_: onnx.TypeProto | None) -> float:
    """The number of elements of a tensor of a type; infinity if its shape is unknown."""
    if type_ is None or not type_.tensor_type.HasField("shape"):
        return inf
    return prod(d.dim_value if d.HasField("dim_value") else inf for d in type_.tensor_type.shape.dim)


def _untyped(name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name)
