"""Activations that Relay has operators for: rectifiers and softmax; dropout in inference."""

from math import prod

from relayc.frontend.converter import Tensor, axis_of, emit
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.sizes import positions
from relayc.frontend.steps import cast, filled, reshape


@converter()
def Relu(x: Tensor) -> Tensor:
    return emit("nn.relu", x)


@converter()
def LeakyRelu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return emit("nn.leaky_relu", x, alpha=alpha)


def _of_rows(x: Tensor, axis: int) -> tuple[Tensor, int]:
    """x as a matrix of what is before and after `axis`: what Softmax worked on before operator set 13."""
    if axis != x.rank:
        axis = axis_of(axis, x.rank)
    return reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:]))), 1


@converter()
def Softmax(x: Tensor, *, axis: int = 1) -> Tensor:
    rows, last = _of_rows(x, axis)
    return reshape(emit("nn.softmax", rows, axis=last), x.shape)


@converter("Softmax", since=13)
def Softmax_13(x: Tensor, *, axis: int = -1) -> Tensor:
    return emit("nn.softmax", x, axis=axis_of(axis, x.rank))


@converter()
def LogSoftmax(x: Tensor, *, axis: int = 1) -> Tensor:
    rows, last = _of_rows(x, axis)
    return reshape(emit("nn.log_softmax", rows, axis=last), x.shape)


@converter("LogSoftmax", since=13)
def LogSoftmax_13(x: Tensor, *, axis: int = -1) -> Tensor:
    return emit("nn.log_softmax", x, axis=axis_of(axis, x.rank))


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """One at the first largest element along `axis`, zero elsewhere."""
    first = emit("argmax", x, axis=(axis,), keepdims=True)
    along = reshape(positions(x.shape[axis], "int32"), [d if i == axis else 1 for i, d in enumerate(x.shape)])
    return cast(emit("equal", first, along), x.dtype)


@converter()
def Hardmax(x: Tensor, *, axis: int = 1) -> Tensor:
    rows, last = _of_rows(x, axis)
    return reshape(_hardmax(rows, last), x.shape)


@converter("Hardmax", since=13)
def Hardmax_13(x: Tensor, *, axis: int = -1) -> Tensor:
    return _hardmax(x, axis_of(axis, x.rank))


@converter(since=7, foldable=False)
def Dropout(x: Tensor, *, ratio: float = 0.5) -> tuple[Tensor, ...]:
    """In inference the data as it is, and a mask that keeps everything, before operator set 10 as numbers."""
    dtype = x.dtype if current().opset < 10 else "bool"
    return (x, filled(x.shape, 1, dtype)) if current().wants(1) else (x,)
