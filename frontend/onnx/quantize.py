"""Quantised tensors: operators of the relay dialect on them, with ONNX's way of rounding."""

from typing_extensions import Unpack

from relayc.dialects.relay.types import DTYPES, is_narrow
from relayc.frontend.common.products import matmul, number, quantised_product
from relayc.frontend.common.quantized import parameter
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.onnx.conv import ConvAttributes, convolution, with_bias
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.steps import cast, multiply, reshape

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2")
_FLOATS = tuple(name for name in DTYPES if is_narrow(name) and name.startswith("float") and name != "float8_e8m0fnu")


def _check_target(dtype: str) -> str:
    if dtype not in _INTEGERS and dtype not in _FLOATS:
        raise OnnxError(f"expected a quantised type among {', '.join((*_INTEGERS, *_FLOATS))}, found {dtype}")
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
    given = dtype_name(output_dtype, "attribute output_dtype") if output_dtype else None
    dtype = _check_target((given or "uint8") if y_zero_point is None else y_zero_point.dtype)
    if given not in (None, dtype):
        raise OnnxError(f"attribute output_dtype: expected {dtype}, the type of the zero point, found {given}")
    wide = dtype_name(precision, "attribute precision") if precision else y_scale.dtype if y_scale.is_float else "float32"
    scale = cast(parameter(y_scale, x, axis, block_size), wide)
    zero = constant(0, dtype) if y_zero_point is None else parameter(y_zero_point, x, axis, block_size)
    return emit("qnn.quantize", cast(x, wide), scale, zero, axis=axis, out_dtype=dtype, saturate=saturate, rounding="TONEVEN")


@converter(since=10, foldable=False)  # weights in floats would no longer make integer products
def DequantizeLinear(
    x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Tensor:
    zero = constant(0, x.dtype) if x_zero_point is None else parameter(x_zero_point, x, axis, block_size)
    dtype = dtype_name(output_dtype, "attribute output_dtype") if output_dtype else x_scale.dtype
    return emit("qnn.dequantize", x, cast(parameter(x_scale, x, axis, block_size), "float32"), zero, axis=axis, out_dtype=dtype)


def requantized(x: Tensor, scale: Tensor, y_scale: Tensor, y_zero: Tensor | None, dtype: str, axis: int) -> Tensor:
    """Sums in steps of `scale` as quantised numbers, rounded once."""
    zero = constant(0, dtype) if y_zero is None else number(y_zero)
    ways = {"rounding": "TONEVEN", "compute_dtype": "float32", "out_dtype": _check_target(dtype)}
    return emit("qnn.requantize", x, scale, constant(0, "int32"), number(y_scale), zero, axis=axis, **ways)


def centred(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """x minus its zero point, in int32, or float32 where x is a float; a vector of zero points goes along `axis`."""
    dtype = "float32" if x.dtype in _FLOATS else "int32"
    if zero is None:
        return cast(x, dtype)
    if zero.rank == 1 and zero.type.num_elements > 1:
        zero = reshape(zero, [d if i == axis_of(axis, x.rank) else 1 for i, d in enumerate(x.shape)])
    return emit("subtract", cast(x, dtype), cast(number(zero), dtype))


def _is_one(zero: Tensor | None) -> bool:
    return zero is None or zero.type.num_elements == 1


def integer_matmul(a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None) -> Tensor:
    """The product of quantised tensors in int32, of floats in float32; zero points of rows of a, of columns of b, or of each matrix."""
    if a.dtype not in _FLOATS and _is_one(a_zero) and (b_zero is None or b_zero.rank <= 1 or b_zero.type.num_elements == 1):
        return matmul(a, b, quantised_product(a_zero, b_zero))
    return matmul(centred(a, a_zero, -2), centred(b, b_zero, -1))


def integer_convolution(x: Tensor, w: Tensor, x_zero: Tensor | None, w_zero: Tensor | None, window: ConvAttributes) -> Tensor:
    """The convolution of quantised tensors in int32; the padding stands for the real value 0."""
    if not _is_one(x_zero):
        return convolution(centred(x, x_zero, 1), centred(w, w_zero, 0), **window)
    return convolution(x, w, quantised_product(x_zero, w_zero), 0 if x_zero is None else number(x_zero), **window)


@converter(since=10)
def MatMulInteger(a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None) -> Tensor:
    return integer_matmul(a, b, a_zero_point, b_zero_point)


@converter(since=10)
def QLinearMatMul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, y_scale: Tensor, y_zero: Tensor
) -> Tensor:
    scale = multiply(*(cast(number(s), "float32") for s in (a_scale, b_scale)))
    return requantized(integer_matmul(a, b, a_zero, b_zero), scale, cast(y_scale, "float32"), y_zero, y_zero.dtype, -1)


@converter(since=10)
def ConvInteger(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    **window: Unpack[ConvAttributes],
) -> Tensor:
    return integer_convolution(x, w, x_zero_point, w_zero_point, window)


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
    **window: Unpack[ConvAttributes],
) -> Tensor:
    product = with_bias(integer_convolution(x, w, x_zero, w_zero, window), b)
    scale = multiply(reshape(x_scale, ()), parameter(w_scale, product, 1))
    return requantized(product, scale, y_scale, y_zero, y_zero.dtype, 1)
