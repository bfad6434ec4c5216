"""Running sums and products."""

from relayc.frontend.converter import Tensor, axis_of, emit, scalar
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.late_axes import along_late


def _register(name: str, since: int) -> None:
    @converter(name, since=since)
    def scan(x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
        def along(data: Tensor, at: int) -> Tensor:
            data = emit("reverse", data, axis=at) if reverse else data
            found = emit(name.lower(), data, axis=at, exclusive=exclusive)
            return emit("reverse", found, axis=at) if reverse else found

        return along(x, axis_of(int(scalar(axis, "axis")), x.rank)) if axis.is_known else along_late(x, axis, along)


_register("CumSum", 11)
_register("CumProd", 26)
