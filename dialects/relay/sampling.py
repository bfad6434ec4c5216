"""Sampling of images at computed positions: image.grid_sample."""

from relayc.dialects.relay.base import Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least, require_at_most, require_equal
from relayc.dialects.relay.image import LONGEST
from relayc.dialects.relay.kinds import FLOAT
from relayc.dialects.relay.window import SPATIAL

SAMPLING_METHODS = ("nearest_neighbor", "bilinear", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")
COORDINATES = ("normalized", "pixel")
LAYOUTS = {f"NC{letters}": letters for letters in SPATIAL.values()}


class GridSample(Op, name="image_grid_sample", relay_name="image.grid_sample"):
    """data at the positions that `grid` says (Relay image.grid_sample; ONNX GridSample).

    Operands: data [batch, channels, *sizes] of one to three spatial axes; grid [batch, axes, *result sizes] of floats, whose second axis
    has the coordinates along the spatial axes of data from the last one to the first (x, y, z).

    Attributes:
      method: nearest_neighbor (halves to even), bilinear (linear along each axis) or bicubic (alpha -0.75).
      layout: NCW, NCHW or NCDHW.
      padding_mode: what lies outside data: zeros, the nearest element of the border, or data reflected at its border.
      align_corners: whether -1 and 1 are the centers of the first and the last element, or their outer edges, where reflection is, too.
      coordinates: not in Relay: normalized from -1 to 1, or pixel: from 0 to the size less 1.
    """

    data: Operand
    grid: Operand
    method: str = "bilinear"
    layout: str = "NCHW"
    padding_mode: str = "zeros"
    align_corners: bool = True
    coordinates: str = "normalized"
    pattern = Pattern.INJECTIVE
    gathers = True

    @staticmethod
    def infer(op: View) -> TensorType:
        data, grid = op.data, op.grid
        check(op.layout in LAYOUTS, "layout", " or ".join(LAYOUTS), op.layout)
        check(op.method in SAMPLING_METHODS, "method", " or ".join(SAMPLING_METHODS), op.method)
        check(op.padding_mode in PADDING_MODES, "padding_mode", " or ".join(PADDING_MODES), op.padding_mode)
        check(op.coordinates in COORDINATES, "coordinates", " or ".join(COORDINATES), op.coordinates)
        axes = len(LAYOUTS[op.layout])
        check(data.dtype != "bool" or op.method == "nearest_neighbor", "data", "a number type", data)
        check(data.rank == axes + 2, "data", f"rank {axes + 2} for the layout {op.layout}", data)
        FLOAT.require("grid", grid)
        check(grid.rank == axes + 2 and grid.shape[1] == axes, "grid", f"a shape [batch, {axes}, ...] of rank {axes + 2}", grid)
        require_equal(grid.shape[0], data.shape[0], "grid, dimension 0", data.shape[0], grid)
        for size, letter in zip(data.shape[2:], LAYOUTS[op.layout], strict=True):
            require_at_least(1, size, f"data along axis {letter}", "at least one element", data)
            require_at_most(LONGEST, size, f"data along axis {letter}", f"at most {LONGEST} elements", data)
        return data.with_shape((*data.shape[:2], *grid.shape[2:]))
