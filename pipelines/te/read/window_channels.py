"""Windows over contiguous channels: depthwise convolutions and poolings in NCHWc or channels last."""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read.graph import Kernel, Node, behind_views, same_order
from relayc.pipelines.te.read.window import NO_AXIS, Window, WindowedReduction, axis_of, number, windowed_reduction
from relayc.symbolic import Size


@dataclass(frozen=True)
class ChannelWindow(Window):
    """A window with channels innermost.

    Attributes:
      channel: loop over the innermost dimension.
    """

    channel: Var

    @property
    def channels(self) -> int:
        return number(self.channel.extent)


def match(kernel: Kernel) -> ChannelWindow | None:
    """The window over channels of a kernel; None for another kernel."""
    found = windowed_reduction(kernel)
    if found is None:
        return None
    for position, (source, indices) in enumerate(zip(found.node.structured.inputs, found.reads, strict=True)):
        if source.kind == "empty" or not source.shape or indices is None:
            continue
        window = _over(found, position, indices)
        if window is not None:
            return window
    return None


def _over(found: WindowedReduction, position: int, indices: list[Index]) -> ChannelWindow | None:
    """The window over the input at `position`, read at `indices`."""
    root, node, variables, reduced = found.root, found.node, found.variables, found.reduced
    data = node.structured.inputs[position]
    low: tuple[Size, ...] = (0,) * len(indices)
    pad_value = None
    if data.kind == "pad":
        pad_value, low, data = data.pad_value, data.low, data.inputs[0]
    source = behind_views(_of_bytes(data) or data)
    if source.kind != "arg" or len(indices) < 2:
        return None
    channel = next(iter(indices[-1].terms), None)
    if (
        channel is None
        or channel in reduced
        or indices[-1].key != Index.of(channel).key
        or not isinstance(channel.extent, int)
        or node.structured.inputs[position].shape[-1] != data.shape[-1]
    ):
        return None
    whole = node.structured.inputs[position].shape
    axes = [axis_of(*of, reduced) for of in zip(indices[:-1], low, data.shape, whole, strict=False)]
    columns, rows = axes[-1], axes[-2] if len(axes) > 1 else None
    others = found.loops_beside(position)  # along which weights vary: a loop over planes, not over rows or columns of a window
    if columns is None or columns.output is None or columns.output in others:
        return None
    has_rows = rows is not None and rows.output is not None and rows.output not in others
    if rows is None or not has_rows:  # a dimension of one output is a plane, unless taps run along it
        has_rows = rows is not None and (rows.tap is not None or rows.is_padded)
    if not any(axis is not None and axis.output is not None and axis.tap is not None for axis in (rows, columns)):
        return None
    rows = rows if rows is not None and has_rows else NO_AXIS
    if rows.output in others:
        return None
    end = len(axes) - 1 - has_rows
    own = {v for v in (rows.output, rows.tap, columns.output, columns.tap, channel) if v is not None}
    padded = node.structured.inputs[position].shape[:end] != data.shape[:end]
    if not reduced or not reduced <= own or padded or any(v in own for index in indices[:end] for v in index.terms):
        return None
    if rows.output is columns.output or (rows.tap is not None and rows.tap is columns.tap):
        return None
    planes = [v for v in variables if v.extent != 1 and v not in own]
    if any(
        v not in {v for index in indices for v in index.terms} for v in planes
    ):  # an input shared by several planes makes it a contraction
        return None
    row_dimension = end if has_rows else None
    return ChannelWindow(
        node, root, position, data, list(indices), pad_value, rows, columns, row_dimension, len(axes) - 1, planes, variables, channel
    )


def _of_bytes(node: Node) -> Node | None:
    """The tensor of 8 bits that a tensor is converted from; None for any other one."""
    if node.kind != "generic" or node.is_reduction or len(node.structured.inputs) != 1:
        return None
    [source] = node.structured.inputs
    is_byte = isinstance(source.element, ir.IntegerType) and source.element.width == 8
    return source if is_byte and same_order(node, source) else None
