"""Sampling of images at computed positions: GridSample."""

from relayc.frontend.converter import Tensor, assume, emit, simpler
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.windows import SPATIAL_LAYOUTS, spatial_rank
from relayc.frontend.steps import transpose

_METHODS = {
    "nearest": "nearest_neighbor",
    "linear": "bilinear",
    "bilinear": "bilinear",
    "cubic": "bicubic",
    "bicubic": "bicubic",
}
"""Operator set 16 calls them by two dimensions."""


@converter(since=16)
def GridSample(x: Tensor, grid: Tensor, *, align_corners: bool = False, mode: str = "linear", padding_mode: str = "zeros") -> Tensor:
    n = spatial_rank(x)
    if mode not in _METHODS:
        raise OnnxError(f"attribute mode: expected {', '.join(_METHODS)}, found {mode!r}")
    if grid.rank != x.rank:
        raise OnnxError(f"input grid: expected rank {x.rank} as X has, found {list(grid.shape)}")
    batch = simpler(x.shape[0], grid.shape[0])
    x, grid = assume(x, (batch, *x.shape[1:])), assume(grid, (batch, *grid.shape[1:]))
    return emit(
        "image.grid_sample",
        x,
        transpose(grid, (0, grid.rank - 1, *range(1, grid.rank - 1))),
        method=_METHODS[mode],
        layout=SPATIAL_LAYOUTS[n],
        padding_mode=padding_mode,
        align_corners=align_corners,
    )
