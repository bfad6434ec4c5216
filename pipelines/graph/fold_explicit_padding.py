"""FoldExplicitPadding: a convolution or pooling of a padded tensor -> one with more padding."""

import ml_dtypes
import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.conv import Conv
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.names import build
from relayc.dialects.relay.pool import AvgPool, MaxPool
from relayc.dialects.relay.transform import pad_pairs
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.dialects.relay.window import SPATIAL, padding_pairs
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("FoldExplicitPadding")


@RULES.on(Conv, AvgPool, MaxPool)
def absorb_pad(op: Conv | AvgPool | MaxPool, rw: Rewriter) -> Found:
    """A convolution or a pooling of a tensor padded with what it pads with itself -> one with more padding."""
    pad = rw.producer(op.data, "nn_pad")
    if pad is None or pad.pad_mode != "constant":
        return None
    cast = rw.producer(pad.pad_value, "cast")
    value, attrs = rw.scalar(pad.pad_value if cast is None else cast.data), op.attrs()
    if isinstance(op, Conv) and not any(op.padding) and numpy_dtype(TensorType.of(op.data).dtype).kind in "iu" and value is not None:
        attrs["pad_value"] = value = int(value)  # a zero point
    elif value != _padded_with(op):
        return None
    if isinstance(op, AvgPool) and (attrs["ceil_mode"] or (any(attrs["padding"]) and not attrs["count_include_pad"])):
        return None
    parsed = layout(attrs["data_layout" if isinstance(op, Conv) else "layout"])
    widths = dict(zip(parsed.axes, pad_pairs(pad.pad_width, parsed.rank), strict=True))
    spatial = SPATIAL[op.spatial_rank]
    if any(widths[axis] != (0, 0) for axis in parsed.axes if axis not in spatial):
        return None
    if not all(isinstance(n, int) for pair in widths.values() for n in pair):
        return None  # the border of a window is a number
    pairs = padding_pairs(attrs["padding"], len(spatial))
    grown = [(a + widths[axis][0], b + widths[axis][1]) for axis, (a, b) in zip(spatial, pairs, strict=True)]
    attrs["padding"] = [a for a, _ in grown] + [b for _, b in grown]
    if isinstance(op, AvgPool):
        attrs["count_include_pad"] = True
    found: ir.Value = build(op.relay_name, pad.data, *list(op.operation.operands)[1:], **attrs)
    return found if found.type == op.operation.results[0].type else None


def _padded_with(op: Conv | AvgPool | MaxPool) -> float | int:
    """What the padding of an operator counts as: for a maximum, the least number of the type."""
    if isinstance(op, Conv):
        return int(op.pad_value)
    dtype = numpy_dtype(TensorType.of(op.data).dtype)
    if isinstance(op, AvgPool):
        return 0
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else float(ml_dtypes.finfo(dtype).min)


fold_explicit_padding = RULES.as_pass(0, "Padding becomes part of the convolutions and poolings that read it.")
