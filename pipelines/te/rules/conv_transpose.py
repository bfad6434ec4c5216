"""Compute rules of transposed convolutions: nn.conv1d/2d/3d_transpose.

No zeros are inserted and multiplied. With o an element of the result along an axis, counted with the padding before it, write o + pad = q *
stride + r: only the taps k = j * stride + r of the kernel reach it, from the data element q - j. Over (q, r) the result is therefore a
plain convolution of ceil(kernel / stride) taps j, with a separate kernel for each of the phases r.
"""

from dataclasses import dataclass, replace

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.conv import ConvGeometry
from relayc.dialects.relay.layout import Layout
from relayc.dialects.relay.types import TensorType
from relayc.dialects.relay.window import extent
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator, contract, narrowed
from relayc.pipelines.te.rules.conv import Loops, by_group
from relayc.pipelines.te.rules.core import Value, compute, extract, gather, index_constant, operand_type, result_type, shape
from relayc.pipelines.te.rules.window import crop, merge, pad, split
from relayc.symbolic import Size, ceil_div


@dataclass(frozen=True)
class Phases:
    """One axis of a transposed convolution.

    Attributes:
      stride: number of phases r.
      taps: taps j of a phase.
      step: distance of the data elements of adjacent taps (the dilation).
      first: the q of the first element of the result; `skip`: its r.
      count: values of q.
    """

    stride: int
    taps: int
    step: int
    first: int
    skip: int
    count: Size

    @staticmethod
    def of(kernel: int, stride: int, dilation: int, before: int, out: Size) -> "Phases":
        first, skip = divmod(before, stride)
        return Phases(stride, ceil_div(kernel, stride), dilation, first, skip, ceil_div(out + skip, stride))

    @property
    def reach(self) -> int:
        """Distance from data element q back to the first element read for it."""
        return self.step * (self.taps - 1)

    def padding(self, size: Size) -> tuple[int, Size]:
        """Padding (negative: cropping) after which the data for the first result starts at 0 and the data for the last result ends the
        tensor."""
        low = self.reach - self.first
        return low, self.count + self.reach - size - low


@compute("nn_conv1d_transpose", "nn_conv2d_transpose", "nn_conv3d_transpose")
def transposed_convolution(op: Op, data: Value, weight: Value) -> Value:
    """Pads, sums over channels and taps for every phase, and interleaves the phases."""
    out, dtype = result_type(op), operand_type(op).dtype
    weight, g = _spread(weight, op.geometry(), dtype)
    sizes = g.out_layout.logical(out.sizes)
    # By the type relation these are static.
    kernel = {axis: weight.type.shape[g.kernel_layout.index(axis)] for axis in g.spatial}
    phases = {
        axis: Phases.of(kernel[axis], stride, dilation, before, sizes[axis])
        for axis, stride, dilation, (before, _) in zip(g.spatial, g.strides, g.dilation, g.pads, strict=True)
    }
    data, weight = _padded_data(data, g, phases, dtype), _padded_weight(weight, g, phases, dtype)
    parts = _by_phase(g.out_layout, by_group(g.out_layout, "C", out.sizes, g.groups), {axis: p.count for axis, p in phases.items()}, phases)
    wide = accumulator(out.dtype)
    sums = TensorType(tuple(n for part in parts for n in part), wide)
    found = merge(_phase_convolution(g, phases, parts, data, weight, sums, dtype), [len(part) for part in parts])
    low = [phases[axis].skip if axis in phases else 0 for axis in g.out_layout.axes]
    high = [n - skipped - kept for n, skipped, kept in zip(shape(found), low, out.sizes, strict=True)]
    return narrowed(crop(found, low, high), out, wide)


def _spread(weight: Value, g: ConvGeometry, dtype: str) -> tuple[Value, ConvGeometry]:
    """The weight with zeros between its taps, and a dilation of 1, along the axes that have both a stride and a dilation."""
    factors = {axis: d for axis, s, d in zip(g.spatial, g.strides, g.dilation, strict=True) if s > 1 and d > 1}
    if not factors:
        return weight, g
    steps = [factors.get(axis, 1) for axis in g.kernel_layout.axes]

    def element(indices: list[Value]) -> Value:
        at, on_tap = list(indices), arith.constant(ir.IntegerType.get_signless(1), 1)
        for i, step in enumerate(steps):
            if step > 1:
                by = index_constant(step)
                at[i] = arith.divui(indices[i], by)
                exact = arith.cmpi(arith.CmpIPredicate.eq, arith.remui(indices[i], by), index_constant(0))
                on_tap = arith.andi(on_tap, exact)
        return scalar.select(on_tap, extract(weight, at), scalar.constant(0, dtype))

    sizes = tuple(extent(n, step) for n, step in zip(shape(weight), steps, strict=True))
    dilation = tuple(1 if axis in factors else d for axis, d in zip(g.spatial, g.dilation, strict=True))
    return gather(TensorType(sizes, dtype), element), replace(g, dilation=dilation)


def _padded_data(data: Value, g: ConvGeometry, phases: dict[str, Phases], dtype: str) -> Value:
    sizes = zip(g.data_layout.axes, shape(data), strict=True)
    low, high = zip(*(phases[axis].padding(n) if axis in phases else (0, 0) for axis, n in sizes), strict=True)
    data = pad(data, low, high, 0, dtype)
    return split(data, by_group(g.data_layout, "C", shape(data), g.groups))


def _padded_weight(weight: Value, g: ConvGeometry, phases: dict[str, Phases], dtype: str) -> Value:
    """The weight with each spatial axis split into [tap, phase], padded with zeros, and the axis I into [group, channel of the group]."""
    lengths = [
        phases[axis].taps * phases[axis].stride if axis in phases else n
        for axis, n in zip(g.kernel_layout.axes, shape(weight), strict=True)
    ]
    weight = pad(weight, [0] * len(lengths), [b - a for a, b in zip(shape(weight), lengths, strict=True)], 0, dtype)
    parts = by_group(g.kernel_layout, "I", shape(weight), g.groups)
    return split(weight, _by_phase(g.kernel_layout, parts, {axis: p.taps for axis, p in phases.items()}, phases))


def _by_phase(layout: Layout, parts: list[list[Size]], counts: dict[str, Size], phases: dict[str, Phases]) -> list[list[Size]]:
    """Sizes that the axes are split into, with the spatial ones split into [count, phase]."""
    found = {axis: [n, phases[axis].stride] if phases[axis].stride > 1 else [n] for axis, n in counts.items()}
    return [found.get(axis, part) for axis, part in zip(layout.axes, parts, strict=True)]


def _phase_convolution(
    g: ConvGeometry,
    phases: dict[str, Phases],
    parts: list[list[Size]],
    data: Value,
    weight: Value,
    out: TensorType,
    operand: str,
) -> Value:
    """Loops: the dimensions of the result, which are parts of its axes, then input channel and taps."""
    loops = Loops()
    result = {axis: [loops.new() for _ in part] for axis, part in zip(g.out_layout.axes, parts, strict=True)}
    *group, out_channel = result["C"]
    channel = loops.new()
    of_data = {"N": result["N"], "C": [*group, channel]}
    of_weight = {"O": [out_channel], "I": [*group, channel]}
    for axis, phase in phases.items():
        tap, (q, *r) = loops.new(), result[axis]
        of_data[axis] = [q + phase.reach - tap * phase.step]
        of_weight[axis] = [tap, *r]
    maps = [loops.map(g.data_layout, of_data), loops.map(g.kernel_layout, of_weight)]
    return contract(data, weight, maps, loops.map(g.out_layout, result), out, (operand, operand))
