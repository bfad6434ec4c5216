"""The largest or smallest elements along an axis."""

from relayc.frontend.common.sort import topk
from relayc.frontend.converter import Tensor
from relayc.frontend.onnx.converters import converter
from relayc.frontend.sizes import size


@converter()
def TopK(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, ...]:
    return topk(x, k, axis, True)


@converter("TopK", since=10)
def TopK_10(x: Tensor, k: Tensor, *, axis: int = -1, largest: bool = True, sorted: bool | None = None) -> tuple[Tensor, ...]:
    # Sorted output satisfies sorted=0 too, where the order is not specified.
    return topk(x, size(k, "K"), axis, largest)
