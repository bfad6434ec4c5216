"""Convolutions: nn.conv1d/2d/3d and nn.conv1d/2d/3d_transpose.

Data may come in any order of the axes N, C and the spatial ones; that of a convolution also with blocked channels ("NCHW16c"). Weights stay
unblocked: packing them is a matter of the schedule.
"""

from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Ints, LayoutRole, Operand, Pattern, Precision, Size, TensorType, View, check, declare
from relayc.dialects.relay.conditions import require_at_least, require_divides, require_equal
from relayc.dialects.relay.kinds import check_factors
from relayc.dialects.relay.layout import NCHW, Layout, layout
from relayc.dialects.relay.linear import Linear, WeightChannels
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.window import AXES, SPATIAL, Pairs, extent, padding_pairs, per_axis, windows


@dataclass(frozen=True)
class ConvGeometry:
    """The attributes of a convolution in long form: one entry per spatial axis, layouts parsed."""

    spatial: str
    strides: Ints
    dilation: Ints
    pads: Pairs
    groups: int
    data_layout: Layout
    kernel_layout: Layout
    out_layout: Layout

    @staticmethod
    def of(op: "View | ConvBase", n: int) -> "ConvGeometry":
        """Of the attributes of `op`, a convolution over `n` spatial axes. Raises RelayError for values that say nothing."""
        letters = SPATIAL[n]
        check(op.groups >= 1, "groups", "at least 1", op.groups)
        return ConvGeometry(
            spatial=letters,
            strides=per_axis(op.strides, n, "strides"),
            dilation=per_axis(op.dilation, n, "dilation"),
            pads=padding_pairs(op.padding, n),
            groups=op.groups,
            data_layout=layout(op.data_layout, "NC" + letters, "data_layout"),
            kernel_layout=layout(op.kernel_layout, "OI" + letters, "kernel_layout"),
            out_layout=layout(op.out_layout or op.data_layout, "NC" + letters, "out_layout"),
        )


def _check_weight(op: View, geometry: ConvGeometry) -> dict[str, Size | None]:
    """Lengths of the weight's axes, checked against the attributes channels and kernel_size if given."""
    check(not geometry.kernel_layout.blocks, "kernel_layout", "an unblocked layout (schedules pack weights)", op.kernel_layout)
    check_factors(op.data, op.weight, ("data", "weight"), op.out_dtype)
    weight = geometry.kernel_layout.logical(op.weight.shape, "weight")
    if op.kernel_size is not None:
        for axis, size in zip(geometry.spatial, per_axis(op.kernel_size, len(geometry.spatial), "kernel_size"), strict=True):
            require_equal(weight[axis], size, f"weight {op.weight}, axis {axis}", f"{size} (kernel_size)", weight[axis])
            weight[axis] = size
    return weight


def _times(a: Size | None, b: int) -> Size | None:
    return None if a is None else a * b


def _agree(found: Size | None, given: Size | None, what: str, where: str) -> Size | None:
    """One length known from two sides."""
    require_equal(found, given, what, f"{given} ({where})", found)
    return given if found is None else found


class ConvBase(Linear):
    """The common part of all convolutions; subclasses define the attributes whose defaults depend on their rank.

    `channels` and `kernel_size` repeat properties of the weight and are checked against it; the result has the layout and dtype of data
    unless `out_layout` and `out_dtype` specify others.
    """

    data: Operand
    weight: Operand
    groups: int = 1
    channels: int | None = None
    kernel_size: Ints | None = None
    out_layout: str = ""
    out_dtype: str = ""
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    spatial_rank = 0
    grouped_axis = ""  # the letter of the weight's axis that counts the channels of one group
    precision = Precision.ALWAYS

    def geometry(self) -> ConvGeometry:
        """The attributes in long form."""
        return ConvGeometry.of(self, self.spatial_rank)

    def channel_axis(self, of_result: bool) -> int | None:
        parsed = layout(self.out_layout or self.data_layout if of_result else self.data_layout)
        return None if parsed.blocks else parsed.index("C")

    def weight_channels(self, of_result: bool) -> WeightChannels:
        kernel = layout(self.kernel_layout)
        axis, other = ("O", "I") if of_result else ("I", "O")
        groups = self.groups if axis == self.grouped_axis else 1
        return WeightChannels(kernel.index(axis), groups, kernel.index(other))


class Conv(ConvBase):
    """The weight's axis O holds the channels of the result, I those of data in one group.

    `pad_value` is what data is padded with: the zero point of quantised data.
    """

    pad_value: int = 0
    grouped_axis = "I"

    @classmethod
    def infer(cls, op: View) -> TensorType:
        g = ConvGeometry.of(op, cls.spatial_rank)
        data, weight = g.data_layout.logical(op.data.shape), _check_weight(op, g)
        expected = _times(weight["I"], g.groups)
        require_equal(
            data["C"],
            expected,
            f"channels of data {op.data}",
            f"{expected} (weight {op.weight} in {g.kernel_layout.text}, groups {g.groups})",
            data["C"],
        )
        channels = _agree(weight["O"], op.channels, f"weight {op.weight}, axis O", "channels")
        require_divides(g.groups, channels, "output channels", f"a multiple of groups {g.groups}", channels)
        _check_blocks(g, data["C"], channels)
        dims = {"N": data["N"], "C": channels}
        for i, axis in enumerate(g.spatial):
            dims[axis] = windows(data[axis], weight[axis], g.strides[i], g.dilation[i], g.pads[i], False, axis)
        return TensorType(g.out_layout.shape(dims), op.out_dtype or op.data.dtype)


def _check_blocks(g: ConvGeometry, channels_in: Size | None, channels_out: Size | None) -> None:
    """Blocked channels must be of one group: one group in all, depthwise with equal blocks, or groups of whole blocks."""
    check(g.data_layout.blocks.keys() | g.out_layout.blocks.keys() <= {"C"}, "layout", "only the axis C blocked", g.data_layout.text)
    c_block, o_block = g.data_layout.block("C"), g.out_layout.block("C")
    if g.groups == 1 or c_block == o_block == 1 or channels_in is None or channels_out is None:
        return
    depthwise = g.groups == channels_in == channels_out and c_block == o_block
    whole = channels_in // g.groups % c_block == 0 and channels_out // g.groups % o_block == 0
    check(
        depthwise or whole,
        "blocked layout with groups",
        "depthwise, or groups of whole blocks",
        f"{channels_in} channels in {g.groups} groups",
    )


def _attributes(n: int, kernel: str, **others: Ints) -> dict[str, Any]:
    """The attributes of a convolution over `n` spatial axes whose weight has the axes `kernel` before these."""
    ones, zeros = (1,) * n, (0,) * 2 * n
    return {
        "strides": ones,
        "padding": zeros,
        **others,
        "dilation": ones,
        "data_layout": f"NC{SPATIAL[n]}",
        "kernel_layout": kernel + SPATIAL[n],
    }


declare(Conv, {"nn.conv1d": "Convolution over one spatial axis (Relay nn.conv1d; ONNX Conv)."}, _attributes(1, "OI"), spatial_rank=1)


class Conv2d(Conv, name="nn_conv2d", relay_name="nn.conv2d"):
    """Convolution over two spatial axes (Relay nn.conv2d; ONNX Conv); padding is (top, left, bottom, right)."""

    strides: Ints = (1, 1)
    padding: Ints = (0, 0, 0, 0)
    dilation: Ints = (1, 1)
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    spatial_rank = 2
    layout_role = LayoutRole.FOLLOWS
    layout_gain = 1.5

    def is_plain(self) -> bool:
        """Whether all its layouts are those that ONNX writes, and its weight, which schedules pack for another layout, is a constant."""
        layouts = self.data_layout == NCHW and self.kernel_layout == "OIHW" and self.out_layout in ("", NCHW)
        return layouts and isinstance(self.weight.owner, Constant)

    def can_change_layout(self) -> bool:
        """True if it is depthwise; a convolution over all channels may read and write different layouts, and follows none."""
        data, result = TensorType.of(self.data).shape, TensorType.of(self.result).shape
        return self.is_plain() and self.groups == data[1] == result[1]

    def images(self) -> list[ir.Value]:
        return [self.data]

    def in_layout(self, target: str) -> dict[str, Any]:
        return {**self.attrs(), "data_layout": target, "out_layout": target}


declare(Conv, {"nn.conv3d": "Convolution over three spatial axes (Relay nn.conv3d; ONNX Conv)."}, _attributes(3, "OI"), spatial_rank=3)


class _ConvTranspose(ConvBase):
    """The weight's axis I contains the channels of data, O the channels of the result in one group."""

    grouped_axis = "O"

    @classmethod
    def infer(cls, op: View) -> TensorType:
        g = ConvGeometry.of(op, cls.spatial_rank)
        data, weight = g.data_layout.logical(op.data.shape), _check_weight(op, g)
        for each in (g.data_layout, g.out_layout):
            check(not each.blocks, "layout", "an unblocked layout", each.text)
        extra = per_axis(op.output_padding, len(g.spatial), "output_padding", least=0)
        channels_in = _agree(data["C"], weight["I"], f"channels of data {op.data}", f"weight {op.weight} in {g.kernel_layout.text}")
        require_divides(g.groups, channels_in, "channels of data", f"a multiple of groups {g.groups}", channels_in)
        channels = _agree(_times(weight["O"], g.groups), op.channels, f"output channels of weight {op.weight}", "channels")
        dims = {"N": data["N"], "C": channels}
        for i, axis in enumerate(g.spatial):
            dims[axis] = _transposed_size(data[axis], weight[axis], g.strides[i], g.dilation[i], g.pads[i], extra[i], axis)
        return TensorType(g.out_layout.shape(dims), op.out_dtype or op.data.dtype)


def _transposed_size(
    size: Size | None, kernel: Size | None, stride: int, dilation: int, pads: tuple[int, int], extra: int, axis: str
) -> Size | None:
    check(extra < max(stride, dilation), f"output_padding along axis {axis}", f"less than stride {stride} or dilation {dilation}", extra)
    if size is None or kernel is None:
        return None
    check(isinstance(kernel, int), f"weight, axis {axis}", "a number", kernel)
    require_at_least(1, size, f"data along axis {axis}", "at least one element", size)
    out = (size - 1) * stride + extent(kernel, dilation) - sum(pads) + extra
    require_at_least(1, out, f"padding along axis {axis}", "less than the result", pads)
    return out


_SIZE = "\n\n    The result has (size - 1) * stride + dilation * (kernel - 1) + 1 - padding + output_padding elements.\n    "
for _n, _axes in AXES.items():
    _name, _more = f"nn.conv{_n}d_transpose", _SIZE if _n == 1 else ""
    _doc = f"Transposed convolution over {_axes.replace(' ', ' spatial ')} (Relay {_name}; ONNX ConvTranspose).{_more}"
    declare(_ConvTranspose, {_name: _doc}, _attributes(_n, "IO", output_padding=(0,) * _n), spatial_rank=_n)
