"""Compute rules of convolutions: nn.conv1d/2d/3d."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relayc.dialects.mlir import ir, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.conv import ConvGeometry
from relayc.dialects.relay.layout import Layout
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules.contraction import accumulator, contract, named_applies, narrowed
from relayc.pipelines.te.rules.core import Value, affine_map, compute, dim, fill, operand_type, result_type, shape
from relayc.pipelines.te.rules.window import merge, pad, split
from relayc.symbolic import Size

PLAIN, DEPTHWISE, GROUPED = "plain", "depthwise", "grouped"

NAMED = {
    (PLAIN, "NCW", "OIW"): linalg.Conv1DNcwFcwOp,
    (PLAIN, "NWC", "WIO"): linalg.Conv1DNwcWcfOp,
    (PLAIN, "NCHW", "OIHW"): linalg.Conv2DNchwFchwOp,
    (PLAIN, "NHWC", "HWIO"): linalg.Conv2DNhwcHwcfOp,
    (PLAIN, "NHWC", "OHWI"): linalg.Conv2DNhwcFhwcOp,
    (PLAIN, "NCDHW", "OIDHW"): linalg.Conv3DNcdhwFcdhwOp,
    (PLAIN, "NDHWC", "DHWIO"): linalg.Conv3DNdhwcDhwcfOp,
    (DEPTHWISE, "NCW", "OIW"): linalg.DepthwiseConv1DNcwCwOp,
    (DEPTHWISE, "NWC", "WIO"): linalg.DepthwiseConv1DNwcWcOp,
    (DEPTHWISE, "NCHW", "OIHW"): linalg.DepthwiseConv2DNchwChwOp,
    (DEPTHWISE, "NHWC", "HWIO"): linalg.DepthwiseConv2DNhwcHwcOp,
    (DEPTHWISE, "NCDHW", "OIDHW"): linalg.DepthwiseConv3DNcdhwCdhwOp,
    (DEPTHWISE, "NDHWC", "DHWIO"): linalg.DepthwiseConv3DNdhwcDhwcOp,
    (GROUPED, "NCHW", "OIHW"): linalg.Conv2DNgchwGfchwOp,
    (GROUPED, "NHWC", "OHWI"): linalg.Conv2DNhwgcGfhwcOp,
}
"""linalg's named convolutions by kind, data layout and kernel layout; other convolutions are a linalg.generic."""


def _kind(g: ConvGeometry, channels_in: Size, channels_out: Size) -> str:
    if g.groups == 1:
        return PLAIN
    return DEPTHWISE if g.groups == channels_in == channels_out else GROUPED


def by_group(layout: Layout, axis: str, sizes: Sequence[Size], groups: int) -> list[list[Size]]:
    """Sizes of a tensor in `layout`, with `axis` split into [groups, element of the group]."""
    return [[groups, n // groups] if a == axis and groups > 1 else [n] for a, n in zip(layout.axes, sizes, strict=True)]


def _pad_spatial(data: Value, g: ConvGeometry, value: int, dtype: str) -> Value:
    pads = dict(zip(g.spatial, g.pads, strict=True))
    low, high = zip(*(pads.get(axis, (0, 0)) for axis in g.data_layout.axes), strict=True)
    return pad(data, low, high, value, dtype)


@compute("nn_conv1d", "nn_conv2d", "nn_conv3d")
def convolution(op: Op, data: Value, weight: Value) -> Value:
    """Pads, then sums: a named convolution if linalg has one for the layouts and the grouping, otherwise a linalg.generic.

    With groups of several channels, channels are split into [group, channel of the group].
    """
    g, out = op.geometry(), result_type(op)
    data_type = operand_type(op)
    wide, dtypes = accumulator(out.dtype), (data_type.dtype, operand_type(op, 1).dtype)
    kind = _kind(g, g.data_layout.logical(data_type.sizes)["C"], g.out_layout.logical(out.sizes)["C"])
    groups = g.groups if kind == GROUPED else 1
    parts = by_group(g.out_layout, "C", out.sizes, groups)
    sums = TensorType(tuple(n for part in parts for n in part), wide)
    data = _pad_spatial(data, g, op.pad_value, data_type.dtype)
    data = split(data, by_group(g.data_layout, "C", shape(data), groups))
    named = NAMED.get((kind, g.data_layout.text, g.kernel_layout.text))
    if named is None or g.out_layout != g.data_layout or not all(named_applies(dtype, wide) for dtype in dtypes):
        found = _generic_convolution(g, kind, data, weight, sums, dtypes)
    else:
        found = _named_convolution(named, g, kind, data, weight, sums)
    return narrowed(merge(found, [len(part) for part in parts]), out, wide)


def _named_convolution(named: type, g: ConvGeometry, kind: str, data: Value, weight: Value, out: TensorType) -> Value:
    if kind == GROUPED:
        weight = split(weight, by_group(g.kernel_layout, "O", shape(weight), g.groups))
    elif kind == DEPTHWISE:
        # One input channel per group: its axis I, next to O in every layout of the table, has length 1.
        letters = g.kernel_layout.letters.replace("OI", "O").replace("IO", "O")
        weight = merge(weight, [2 if axis == "O" else 1 for axis in letters])
    destination = fill(out, 0)
    numbers = {name: ir.DenseElementsAttr.get(np.array(v, np.int64)) for name, v in (("strides", g.strides), ("dilations", g.dilation))}
    op = named([destination.type], [data, weight], [destination], **numbers)
    linalg.fill_builtin_region(op.operation)
    return op.results[0]


@dataclass
class Loops:
    """Loops of a linalg.generic, allocated one by one."""

    count: int = 0

    def new(self) -> ir.AffineExpr:
        self.count += 1
        return dim(self.count - 1)

    def map(self, layout: Layout, at: Mapping[str, Sequence[ir.AffineExpr | int]]) -> ir.AffineMap:
        """The map of a tensor in `layout`, whose axes are read at these expressions of the loops."""
        return affine_map(self.count, [e for axis in layout.axes for e in at[axis]])


def _generic_convolution(g: ConvGeometry, kind: str, data: Value, weight: Value, out: TensorType, dtypes: tuple[str, str]) -> Value:
    """Loops: the axes of the result in its layout, then input channel (outer and inner part if it is blocked) and window."""
    loops = Loops()
    group = [loops.new()] if kind == GROUPED else []
    result = {axis: loops.new() for axis in g.out_layout.axes}
    # In a depthwise convolution each channel reads only its own input channel.
    channel = result if kind == DEPTHWISE else {axis: loops.new() for axis in g.data_layout.axes if axis in "Cc"}
    taps = {axis: loops.new() for axis in g.spatial}
    of_data = {"N": [result["N"]], "C": [*group, channel["C"]], "c": [channel.get("c")]}
    for axis, stride, dilation in zip(g.spatial, g.strides, g.dilation, strict=True):
        of_data[axis] = [result[axis] * stride + taps[axis] * dilation]
    out_channel = [_unblocked(result, g.out_layout.block("C"))]
    if group:
        channels = shape(weight)[g.kernel_layout.index("O")]
        if isinstance(channels, int):
            out_channel = [group[0] * (channels // g.groups) + out_channel[0]]
        else:  # the weight is split like the result
            weight = split(weight, by_group(g.kernel_layout, "O", shape(weight), g.groups))
            out_channel = [*group, *out_channel]
    in_channel = 0 if kind == DEPTHWISE else _unblocked(channel, g.data_layout.block("C"))
    of_weight = {"O": out_channel, "I": [in_channel], **{axis: [tap] for axis, tap in taps.items()}}
    of_out = {**{axis: [e] for axis, e in result.items()}, "C": [*group, result["C"]]}
    maps = [loops.map(g.data_layout, of_data), loops.map(g.kernel_layout, of_weight)]
    return contract(data, weight, maps, loops.map(g.out_layout, of_out), out, dtypes)


def _unblocked(loops: dict[str, ir.AffineExpr], block: int) -> ir.AffineExpr:
    """The channel number for the loops over its outer and inner part."""
    return loops["C"] * block + loops["c"] if block > 1 else loops["C"]
