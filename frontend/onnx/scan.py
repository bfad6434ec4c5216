"""Running sums and products."""

from relayc.frontend.converter import Tensor, axis_of, emit, scalar
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.late_axes import along_late


def _scan(relay_name: str, x: Tensor, axis: Tensor, exclusive: bool, reverse: bool) -> Tensor:
    if not axis.is_known:
        return along_late(x, axis, lambda data, along: _scan_along(relay_name, data, along, exclusive, reverse))
    return _scan_along(relay_name, x, axis_of(int(scalar(axis, "axis")), x.rank), exclusive, reverse)


def _scan_along(relay_name: str, x: Tensor, along: int, exclusive: bool, reverse: bool) -> Tensor:
    data = emit("reverse", x, axis=along) if reverse else x
    found = emit(relay_name, data, axis=along, exclusive=exclusive)
    return emit("reverse", found, axis=along) if reverse else found


@converter(since=11)
def CumSum(x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    return _scan("cumsum", x, axis, exclusive, reverse)


@converter(since=26)
def CumProd(x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    return _scan("cumprod", x, axis, exclusive, reverse)
