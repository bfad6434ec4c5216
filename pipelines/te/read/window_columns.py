"""Windows over single channels, along contiguous columns: depthwise convolutions and poolings in NCHW."""

from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.te.read.window import NO_AXIS, Window, WindowAxis, WindowedReduction, axis_of, windowed_reduction
from relayc.symbolic import Size


def match(kernel: Kernel) -> Window | None:
    """The sliding window of a kernel; None for another kernel, or if windows do not overlap."""
    found = windowed_reduction(kernel)
    if found is None:
        return None
    inputs = found.node.structured.inputs
    reads = [read for read in found.reads if read is not None]
    if len(reads) < len(inputs):
        return None
    for position, indices in enumerate(reads):
        window = _over(found, position, indices, found.loops_beside(position))
        if window is not None:
            return window
    return None


def _over(found: WindowedReduction, position: int, indices: list[Index], others: set[Var]) -> Window | None:
    """The window over the input at `position`, read at `indices`; `others` are the loops on which further inputs depend."""
    root, node, variables, reduced = found.root, found.node, found.variables, found.reduced
    data, pad_value = node.structured.inputs[position], None
    low: tuple[Size, ...] = (0,) * len(indices)
    if data.kind == "pad":
        pad_value, low, data = data.pad_value, data.low, data.inputs[0]
    whole = node.structured.inputs[position].shape
    axes = [axis_of(*of, reduced) for of in zip(indices, low, data.shape, whole, strict=True)]
    columns = axes[-1] if axes else None
    if columns is None or columns.output is None or columns.tap is None or columns.output in others:
        return None
    rows: WindowAxis = NO_AXIS
    row_dimension: int | None = None
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
    planes = [v for v in variables if v.extent != 1 and v not in own]
    return Window(node, root, position, data, list(indices), pad_value, rows, columns, row_dimension, len(axes) - 1, planes, variables)
