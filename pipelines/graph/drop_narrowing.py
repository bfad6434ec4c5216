"""DropNarrowing: a kernel does not make numbers narrower and wide again where this changes no number.

    %2 = cast<i32>(cast<u8>(clip(%1, 0, 255)))                     ->   cast<i32>(clip(%1, 0, 255))
    %3 = cast<f32>(cast<i32>(clip(round(%0) + 128, 0, 255)) - 128)  ->   clip(round(%0), -128, 127)

A sum of quantised tensors is full of these. Before FuseOps they stay: where a tensor is stored between two kernels, it is stored in 8 bits.
"""

import numpy as np

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.names import build
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.blocks import fused_blocks
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.pipelines.graph.simplify_expr import limits

RULES = Rules("DropNarrowing")
WHOLE = 1 << 22
"""Whole numbers up to it, and their differences, are exact in float32, and in the integers of 32 bits."""


@RULES.on("cast")
def clipped(op: Op, rw: Rewriter) -> Found:
    """Numbers clipped to the range of an integer type, cast to it and to other integers -> one cast."""
    inner = rw.producer(op.data, "cast")
    clip = None if inner is None else rw.producer(inner.data, "clip")
    if inner is None or clip is None or not rw.used_once(op.data):
        return None
    dtypes = [numpy_dtype(cast.dtype) for cast in (inner, op)]
    if any(dtype.kind not in "iu" for dtype in dtypes):  # integers of less than 8 bits are of another kind
        return None
    low, high = limits(clip)
    if not all(np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max for dtype in dtypes):
        return None
    return inner.data if TensorType.of(inner.data).dtype == op.dtype else build("cast", inner.data, **op.attrs())


@RULES.on("cast")
def whole_steps(op: Op, rw: Rewriter) -> Found:
    """Whole steps from a zero point, by way of integers -> in floats, with limits less the zero point."""
    difference = rw.producer(op.data, "subtract")
    cast = None if difference is None else rw.producer(difference.lhs, "cast")
    clip = None if cast is None else rw.producer(cast.data, "clip")
    total = None if clip is None else rw.producer(clip.data, "add")
    if difference is None or cast is None or clip is None or total is None or rw.producer(total.lhs, "round") is None:
        return None
    zero, (low, high), result = rw.scalar(difference.rhs), limits(clip), TensorType.of(op.result)
    if result != TensorType.of(total.lhs) or result.dtype != "float32" or zero is None or rw.scalar(total.rhs) != zero:
        return None
    if not all(rw.used_once(v) for v in (op.data, difference.lhs, cast.data, clip.data)):
        return None
    if not all(abs(number) <= WHOLE and float(number).is_integer() for number in (zero, low, high)):
        return None
    return build("clip", total.lhs, a_min=low - zero, a_max=high - zero)


drop_narrowing = RULES.as_pass(1, "Numbers that a kernel makes narrower and wide again stay wide.", fused_blocks)
