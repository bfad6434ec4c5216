"""Running sums and products."""

from relayc.frontend.converter import Tensor, axis_of, emit, scalar
from relayc.frontend.onnx.converters import converter


def _scan(relay_name: str, x: Tensor, axis: Tensor, exclusive: bool, reverse: bool) -> Tensor:
    along = axis_of(int(scalar(axis, "axis")), x.rank)
    data = emit("reverse", x, axis=along) if reverse else x
    found = emit(relay_name, data, axis=along, exclusive=exclusive)
    return emit("reverse", found, axis=along) if reverse else found


@converter(since=11)
def CumSum(x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    return _scan("cumsum", x, axis, exclusive, reverse)


@converter(since=26)
def CumProd(x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    return _scan("cumprod", x, axis, exclusive, reverse)
