"""Operators of other packages."""

from math import prod
from typing import Any

from relayc.frontend.common.padding import pad
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.pytorch.operands import operand, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import positions
from relayc.frontend.steps import add, binary, cast, filled, like, multiply, reshape, strided_slice, subtract, transpose


@aten("col2im")
def col2im(self: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    x = reshape(self, (1, *self.shape)) if self.rank == 2 else self
    batch, elements, _ = x.shape
    blocks = [
        (o + 2 * p - d * (k - 1) - 1) // s + 1 for o, k, d, p, s in zip(output_size, kernel_size, dilation, padding, stride, strict=True)
    ]
    shape = (batch, elements // prod(kernel_size), *kernel_size, *blocks)
    found = emit("nn.col2im", reshape(x, shape), image_shape=output_size, strides=stride, dilation=dilation, padding=(*padding, *padding))
    return reshape(found, node().sizes)


@aten("im2col")
def im2col(self: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """Windows of an image, one in each column: a gather along each axis."""
    x = reshape(self, (1, *self.shape)) if self.rank == 3 else self
    x = pad(x, [*padding, *padding], None, "constant", (2, 3))
    for i, (k, d, s) in enumerate(zip(kernel_size, dilation, stride, strict=True)):
        axis = 2 + 2 * i
        count = (x.shape[axis] - d * (k - 1) - 1) // s + 1
        at = emit("add", reshape(binary("multiply", positions(k), d), (k, 1)), reshape(binary("multiply", positions(count), s), (1, count)))
        x = emit("take", x, at, axis=axis, mode="clip")
    batch, channels, kh, rows, kw, columns = x.shape
    found = reshape(transpose(x, (0, 1, 2, 4, 3, 5)), (batch, channels * kh * kw, rows * columns))
    return reshape(found, node().sizes)


@aten("histc")
def histc(self: Tensor, bins: int, min: Any, max: Any) -> Tensor:
    """How many elements are in each of equal parts of a range: of that of the elements where none is given."""
    x = reshape(self, (prod(self.shape),))
    whole = x if x.is_float else cast(x, "float32")
    if min == max:
        low, high = (emit(name, whole, axis=(0,)) for name in ("min", "max"))
        flat = emit("equal", low, high)
        low, high = (where(flat, add(t, by), t) for t, by in ((low, -1.0), (high, 1.0)))
    else:
        low, high = operand(min, whole.dtype), operand(max, whole.dtype)
    at = emit("floor", emit("divide", multiply(subtract(whole, low), float(bins)), subtract(high, low)))
    inside = emit("logical_and", emit("greater_equal", whole, low), emit("less_equal", whole, high))
    places = cast(where(inside, emit("clip", at, a_min=0.0, a_max=float(bins - 1)), like(bins, at)), "int64")
    ones = filled(x.shape, 1, x.dtype)
    found = emit("scatter_elements", filled((bins + 1,), 0, x.dtype), places, ones, axis=0, reduction="add", in_bounds=True)
    return strided_slice(found, (0,), (bins,), (1,), (0,))
