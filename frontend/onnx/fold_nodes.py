"""Evaluation of nodes on known inputs at import: what exporters compute to get at shapes (Shape, Gather, Concat, ...)."""

from collections.abc import Sequence

import numpy as np
import onnx

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.converter import Tensor, constant
from relayc.frontend.onnx.converters import find_converter
from relayc.frontend.onnx.functions import REFUSED_BODIES

_MAX_INPUT_BYTES = 1 << 16
_MAX_OUTPUT_BYTES = 1 << 20
"""What is larger is a weight: the graph passes fold it, with compiled kernels."""


def fold_node(node: onnx.NodeProto, opset: int, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...] | None:
    """The outputs of a node whose inputs are all known and small; None where it is left to be converted.

    The values are those of the reference implementation in the onnx package.
    """
    given = [t for t in inputs if t is not None]
    if not given or node.domain not in ("", "ai.onnx") or node.op_type in REFUSED_BODIES:
        return None
    converter = find_converter("", node.op_type, opset)
    if converter is not None and not converter.foldable:
        return None
    if not all(t.is_known and t.foldable for t in given) or sum(t.type.num_bytes for t in given) > _MAX_INPUT_BYTES:
        return None
    # Late: importing the reference implementation takes a tenth of a second that many models do not need.
    from onnx.reference import ReferenceEvaluator

    graph = onnx.helper.make_graph([node], "node", [_untyped(name) for name in node.input if name], [_untyped(n) for n in node.output if n])
    feeds = {name: t.array for name, t in zip(node.input, inputs, strict=True) if t is not None}
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(graph, opsets={"": opset}).run(None, feeds)
    except Exception:
        # Whatever is wrong with the node, its converter says so with the node's name.
        return None
    arrays = dict(zip((n for n in node.output if n), map(np.asarray, found), strict=True))
    if any(a.dtype.name not in DTYPES or a.nbytes > _MAX_OUTPUT_BYTES for a in arrays.values()):
        return None
    nothing = constant(0)
    return tuple(constant(arrays[n]) if n else nothing for n in node.output)


def _untyped(name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name)
