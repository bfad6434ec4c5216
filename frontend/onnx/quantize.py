"""Quantised arithmetic, in integers and floats of the relay dialect: exact where ONNX is."""

from collections.abc import Sequence

import numpy as np

from relayc.frontend.converter import Tensor, axis_of, emit
from relayc.frontend.onnx.conv import convolution
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.dense import matmul
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.steps import cast, multiply, reshape
from relayc.symbolic import Size


def _along(parameter: Tensor, x: Tensor, axis: int, block_size: int = 0) -> Tensor:
    """A scale or zero point (a scalar, one per position along `axis`, or one per block) in a shape that broadcasts with x."""
    if parameter.type.num_elements == 1 and parameter.rank <= 1:
        return reshape(parameter, ())
    axis = axis_of(axis, x.rank)
    if block_size:
        return _per_block(parameter, x, axis, block_size)
    if parameter.shape != (x.shape[axis],):
        raise OnnxError(f"expected a scale for each of {x.shape[axis]} positions of axis {axis}, found {list(parameter.shape)}")
    return reshape(parameter, _vector(x, axis))


def _vector(x: Tensor, axis: int) -> list[Size]:
    return [d if i == axis else 1 for i, d in enumerate(x.shape)]


def _per_block(parameter: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    repeated = emit("repeat", parameter, repeats=block_size, axis=axis)
    return emit("strided_slice", repeated, begin=(0,), end=(x.shape[axis],), strides=(1,), axes=(axis,))


def _quantized(x: Tensor, dtype: str, zero: Tensor | None) -> Tensor:
    """round(x) + zero point, limited to the range of `dtype`; x is in float32 or wider."""
    info = np.iinfo(dtype)
    rounded = emit("round", x)
    shifted = rounded if zero is None else emit("add", rounded, cast(zero, x.dtype))
    return cast(emit("clip", shifted, a_min=float(info.min), a_max=float(info.max)), dtype)


_INTEGERS = ("int8", "uint8", "int16", "uint16")


def _check_target(dtype: str) -> str:
    if dtype not in _INTEGERS:
        raise OnnxError(f"expected a quantised type among {', '.join(_INTEGERS)}, found {dtype}")
    return dtype


@converter(since=10)
def QuantizeLinear(
    x: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    saturate: bool = True,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Tensor:
    given = dtype_name(output_dtype, "attribute output_dtype") if output_dtype else "uint8"
    dtype = _check_target(given if y_zero_point is None else y_zero_point.dtype)
    scale = cast(_along(y_scale, x, axis, block_size), "float32")
    zero = None if y_zero_point is None else _along(y_zero_point, x, axis, block_size)
    return _quantized(emit("divide", cast(x, "float32"), scale), dtype, zero)


@converter(since=10)
def DequantizeLinear(
    x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Tensor:
    scale = _along(x_scale, x, axis, block_size)
    wide = cast(x, "int32")
    if x_zero_point is not None:
        wide = emit("subtract", wide, cast(_along(x_zero_point, x, axis, block_size), "int32"))
    found = emit("multiply", cast(wide, "float32"), cast(scale, "float32"))
    return cast(found, dtype_name(output_dtype, "attribute output_dtype") if output_dtype else x_scale.dtype)


def _centred(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """x minus its zero point, in int32; a vector of zero points goes along `axis`."""
    wide = cast(x, "int32")
    if zero is None:
        return wide
    zero = cast(zero, "int32")
    if zero.rank == 1 and zero.type.num_elements > 1:
        return emit("subtract", wide, reshape(zero, _vector(x, axis_of(axis, x.rank))))
    return emit("subtract", wide, reshape(zero, ()) if zero.type.num_elements == 1 else zero)


@converter(since=10)
def MatMulInteger(a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None) -> Tensor:
    return matmul(_centred(a, a_zero_point, -2), _centred(b, b_zero_point, -1))


@converter(since=10)
def QLinearMatMul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, y_scale: Tensor, y_zero: Tensor
) -> Tensor:
    product = cast(matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1)), "float32")
    scales = [cast(reshape(s, ()) if s.type.num_elements == 1 else s, "float32") for s in (a_scale, b_scale, y_scale)]
    scaled = emit("divide", multiply(product, multiply(scales[0], scales[1])), scales[2])
    return _quantized(scaled, _check_target(y_zero.dtype), reshape(y_zero, ()) if y_zero.type.num_elements == 1 else y_zero)


@converter(since=10)
def ConvInteger(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    # The padding is that of the centred data, so that it stands for the real value 0.
    data, weight = _centred(x, x_zero_point, 1), _centred(w, w_zero_point, 0)
    return convolution(data, weight, auto_pad, dilations, group, kernel_shape, pads, strides)


@converter(since=10)
def QLinearConv(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    data, weight = _centred(x, x_zero, 1), _centred(w, w_zero, 0)
    product = convolution(data, weight, auto_pad, dilations, group, kernel_shape, pads, strides)
    if b is not None:
        product = emit("nn.bias_add", product, b, axis=1)
    wide = cast(product, "float32")
    scale = emit("multiply", reshape(x_scale, ()), _along(w_scale, wide, 1))
    return _quantized(emit("divide", emit("multiply", wide, scale), reshape(y_scale, ())), _check_target(y_zero.dtype), reshape(y_zero, ()))
