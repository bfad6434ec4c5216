"""Activations that Relay has operators for: rectifiers and softmax; dropout in inference."""

from collections.abc import Callable
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


def along_axis(function: Callable[[Tensor, int], Tensor], x: Tensor, axis: int, opset: int) -> Tensor:
    """A function along an axis; before operator set 13 of the rows of a matrix, of what is before and after the axis."""
    if opset >= 13:
        return function(x, axis_of(axis, x.rank))
    if axis != x.rank:
        axis = axis_of(axis, x.rank)
    return reshape(function(reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:]))), 1), x.shape)


def softmax(x: Tensor, axis: int) -> Tensor:
    return emit("nn.softmax", x, axis=axis)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """One at the first largest element along `axis`, zero elsewhere."""
    first = emit("argmax", x, axis=(axis,), keepdims=True)
    along = reshape(positions(x.shape[axis], "int32"), [d if i == axis else 1 for i, d in enumerate(x.shape)])
    return cast(emit("equal", first, along), x.dtype)


def _register(name: str, function: Callable[[Tensor, int], Tensor], foldable: bool = True) -> None:
    @converter(name, foldable=foldable)
    def before_13(x: Tensor, *, axis: int = 1) -> Tensor:
        return along_axis(function, x, axis, 1)

    @converter(name, since=13, foldable=foldable)
    def since_13(x: Tensor, *, axis: int = -1) -> Tensor:
        return along_axis(function, x, axis, 13)


_register("Softmax", softmax)
# The reference implementation takes the logarithm of a softmax, which is 0 for what is far below the largest element.
_register("LogSoftmax", lambda x, axis: emit("nn.log_softmax", x, axis=axis), foldable=False)
_register("Hardmax", _hardmax)


@converter(since=7, foldable=False)
def Dropout(x: Tensor, *, ratio: float = 0.5) -> tuple[Tensor, ...]:
    """In inference the data as it is, and a mask that keeps everything, before operator set 10 as numbers."""
    dtype = x.dtype if current().opset < 10 else "bool"
    return (x, filled(x.shape, 1, dtype)) if current().wants(1) else (x,)
