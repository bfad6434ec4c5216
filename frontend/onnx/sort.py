"""The largest or smallest elements along an axis."""

from relayc.frontend.converter import Tensor, axis_of, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.sizes import size
from relayc.symbolic import Size


def _topk(x: Tensor, k: Size, axis: int, largest: bool) -> tuple[Tensor, ...]:
    axis = axis_of(axis, x.rank)
    return emit("topk", x, k=k, axis=axis, ret_type="both", is_ascend=not largest, dtype="int64")


@converter()
def TopK(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, ...]:
    return _topk(x, k, axis, True)


@converter("TopK", since=10)
def TopK_10(x: Tensor, k: Tensor, *, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, ...]:
    # Sorted output satisfies sorted=0 too, where the order is not specified.
    return _topk(x, size(k, "K"), axis, largest)
