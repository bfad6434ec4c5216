"""Determinants."""

from relayc.frontend.converter import Tensor, assume, emit, simpler
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError


@converter(since=11)
def Det(x: Tensor) -> Tensor:
    if x.rank < 2:
        raise OnnxError(f"expected matrices, found {list(x.shape)}")
    size = simpler(*x.shape[-2:])
    return emit("det", assume(x, (*x.shape[:-2], size, size)))
