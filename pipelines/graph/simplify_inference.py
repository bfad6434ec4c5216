"""SimplifyInference: operators that only matter in training, or that inference can say in simpler ones (Relay's SimplifyInference)."""

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.names import build
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.reshapes import along_axis
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("SimplifyInference")


def _constant(rw: Rewriter, value: float, dtype: str) -> ir.Value:
    return rw.mod.constant(np.array(value, numpy_dtype(dtype)))


@RULES.on("nn_batch_norm")
def batch_norm(op: Op, rw: Rewriter) -> Found:
    """batch_norm -> data * scale + shift with scale = gamma / sqrt(var + epsilon), shift = beta - mean * scale."""
    data = TensorType.of(op.data)
    axis = normalize_axis(op.axis, data.rank)
    deviation = build("sqrt", build("add", op.moving_var, _constant(rw, op.epsilon, data.dtype)))
    scale = build("divide", op.gamma if op.scale else _constant(rw, 1.0, data.dtype), deviation)
    shift = build("negative", build("multiply", op.moving_mean, scale))
    if op.center:
        shift = build("add", op.beta, shift)
    scaled = build("multiply", op.data, along_axis(scale, axis, data.rank))
    return build("add", scaled, along_axis(shift, axis, data.rank)), op.moving_mean, op.moving_var


@RULES.on("nn_dropout")
def dropout(op: Op, rw: Rewriter) -> Found:
    """dropout -> its data; the mask is ones."""
    data = TensorType.of(op.data)
    if not rw.is_used(op.operation.results[1]):
        return op.data, op.data  # nobody reads the second
    if not data.is_known:
        return None
    return op.data, build("ones", shape=data.sizes, dtype=data.dtype)


@RULES.on("copy")
def copy(op: Op, rw: Rewriter) -> Found:
    """copy -> its operand: values are never changed in place."""
    return op.data


simplify_inference = RULES.as_pass(0, "batch_norm and dropout in terms of simpler operators.")
