"""Windows that slide over one channel at a time, along contiguous columns: depthwise convolutions and poolings in NCHW."""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.kernel.graph import Kernel, Node
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.kernel.window import Axis, WindowedReduction, axis_of, windowed_reduction

Point = dict[Var, Index]


@dataclass
class ColumnWindow:
    """A kernel whose result is a windowed reduction, or an elementwise function of one.

    Attributes:
      node, root: the reduction, and the kernel's result in the same element order.
      position: which input of the reduction the window slides over.
      data, indices: that input without its padding, and its indices as functions of the loops (those of rows and columns unused).
      pad_value: constant operation of what surrounds it, None for nothing.
      rows, columns: the axes; the dimension of `data` that rows are in, None where there are none.
      planes: loops that select a channel's plane.
      variables: every loop of the reduction.
    """

    node: Node
    root: Node
    position: int
    data: Node
    indices: list[Index]
    pad_value: ir.Operation | None
    rows: Axis
    columns: Axis
    row_dimension: int | None
    planes: list[Var]
    variables: list[Var]

    def output_point(self, at: Point) -> list[Index]:
        dims = self.node.structured.output_dims(self.node.position)
        return [Index() if d is None else at.get(self.variables[d], Index()) for d in dims]


def match(kernel: Kernel) -> ColumnWindow | None:
    """The sliding window of a kernel; None where it is none, or one whose windows do not overlap."""
    found = windowed_reduction(kernel)
    if found is None:
        return None
    inputs = found.node.structured.inputs
    reads = [read for read in found.reads if read is not None]
    if len(reads) < len(inputs):
        return None
    for position, indices in enumerate(reads):
        further = [read for i, read in enumerate(reads) if i != position and inputs[i].kind != "empty"]
        others = {v for read in further for index in read for v in index.terms}
        window = _over(found, position, indices, others)
        if window is not None:
            return window
    return None


def _over(found: WindowedReduction, position: int, indices: list[Index], others: set[Var]) -> ColumnWindow | None:
    """The window over the input at `position`, read at `indices`; `others` are the loops that further inputs depend on."""
    root, node, variables, reduced = found.root, found.node, found.variables, found.reduced
    data, pad_value, low = node.structured.inputs[position], None, (0,) * len(indices)
    if data.kind == "pad":
        pad_value, low, data = data.pad_value, data.low, data.inputs[0]
    axes = [axis_of(index, before, size, reduced) for index, before, size in zip(indices, low, data.shape, strict=True)]
    columns = axes[-1] if axes else None
    if columns is None or columns.output is None or columns.tap is None or columns.output in others:
        return None
    rows, row_dimension = Axis(None, None, 1, 1, 0, 1), None
    if len(axes) > 1 and axes[-2] is not None and axes[-2].output not in others:
        rows, row_dimension = axes[-2], len(axes) - 2
    own = {v for v in (rows.output, rows.tap, columns.output, columns.tap) if v is not None}
    others_end = len(indices) - 1 if row_dimension is None else row_dimension
    rest = indices[:others_end]
    unpadded = node.structured.inputs[position].shape[:others_end] == data.shape[:others_end]
    overlap = columns.reach >= columns.stride or columns.is_padded or rows.is_padded
    if not reduced <= own or not unpadded or any(v in own for index in rest for v in index.terms) or not overlap:
        return None
    if rows.output is columns.output or rows.tap is columns.tap:
        return None
    planes = [v for v in variables if v.high > 0 and v not in own]
    return ColumnWindow(node, root, position, data, list(indices), pad_value, rows, columns, row_dimension, planes, variables)
