"""Quantised arithmetic, in integers and floats of the relay dialect: exact where ONNX is."""

from ml_dtypes import iinfo
from typing_extensions import Unpack

from relayc.dialects.relay.narrow import widened
from relayc.dialects.relay.types import DTYPES, is_narrow
from relayc.frontend.common.products import matmul
from relayc.frontend.converter import Tensor, assume, axis_of, emit
from relayc.frontend.onnx.conv import ConvAttributes, convolution
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.steps import cast, cast_as, multiply, reshape
from relayc.symbolic import Size


def _along(parameter: Tensor, x: Tensor, axis: int, block_size: int = 0) -> Tensor:
    """A scale or zero point (a scalar, one per position along `axis`, or one per block) in a shape that broadcasts with x."""
    if parameter.type.num_elements == 1 and parameter.rank <= 1:
        return reshape(parameter, ())
    axis = axis_of(axis, x.rank)
    if block_size:
        return _per_block(parameter, x, axis, block_size)
    return reshape(assume(parameter, (x.shape[axis],)), _vector(x, axis))


def _vector(x: Tensor, axis: int) -> list[Size]:
    return [d if i == axis else 1 for i, d in enumerate(x.shape)]


def _per_block(parameter: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    repeated = emit("repeat", parameter, repeats=block_size, axis=axis)
    return emit("strided_slice", repeated, begin=(0,), end=(x.shape[axis],), strides=(1,), axes=(axis,))


_INTEGERS = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2")
_FLOATS = tuple(name for name in DTYPES if is_narrow(name) and name.startswith("float") and name != "float8_e8m0fnu")


def _quantized(x: Tensor, dtype: str, zero: Tensor | None, saturate: bool = True) -> Tensor:
    """x in steps of 1 plus the zero point, as the nearest number of `dtype`; x is in float32 or wider.

    Numbers beyond the range of `dtype` become its limits, or where `saturate` is not set what cast makes of them.
    """
    rounded = x if dtype in _FLOATS else emit("round", x)
    shifted = rounded if zero is None else emit("add", rounded, cast(zero, x.dtype))
    if dtype in _FLOATS:
        return cast_as(shifted, dtype, saturate)
    info = iinfo(dtype)
    return cast(emit("clip", shifted, a_min=float(info.min), a_max=float(info.max)), dtype)


def _needed(zero: Tensor | None) -> Tensor | None:
    """A zero point; None for one that is known to be 0 everywhere, as those of floats are, or not given."""
    if zero is None or (zero.dtype in _FLOATS and zero.is_known and zero.foldable and not widened(zero.array).any()):
        return None
    return zero


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
    scale = cast(_along(y_scale, x, axis, block_size), wide)
    zero = _needed(y_zero_point)
    if zero is not None:
        zero = _along(zero, x, axis, block_size)
    return _quantized(cast(emit("divide", cast(x, wide), scale), "float32"), dtype, zero, saturate)


@converter(since=10, foldable=False)  # weights in floats would no longer make integer products
def DequantizeLinear(
    x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Tensor:
    scale = _along(x_scale, x, axis, block_size)
    wide, zero = cast(x, _wide(x)), _needed(x_zero_point)
    if zero is not None:
        wide = emit("subtract", wide, cast(_along(zero, x, axis, block_size), wide.dtype))
    found = emit("multiply", cast(wide, "float32"), cast(scale, "float32"))
    return cast(found, dtype_name(output_dtype, "attribute output_dtype") if output_dtype else x_scale.dtype)


def _wide(x: Tensor) -> str:
    """The type in which a zero point is taken from quantised numbers."""
    return "float32" if x.dtype in _FLOATS else "int32"


def centred(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """x minus its zero point, in int32, or float32 where x is a float; a vector of zero points goes along `axis`."""
    wide, zero = cast(x, _wide(x)), _needed(zero)
    if zero is None:
        return wide
    zero = cast(zero, wide.dtype)
    if zero.rank == 1 and zero.type.num_elements > 1:
        return emit("subtract", wide, reshape(zero, _vector(x, axis_of(axis, x.rank))))
    return emit("subtract", wide, reshape(zero, ()) if zero.type.num_elements == 1 else zero)


@converter(since=10)
def MatMulInteger(a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None) -> Tensor:
    return matmul(centred(a, a_zero_point, -2), centred(b, b_zero_point, -1))


@converter(since=10)
def QLinearMatMul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, y_scale: Tensor, y_zero: Tensor
) -> Tensor:
    product = cast(matmul(centred(a, a_zero, -2), centred(b, b_zero, -1)), "float32")
    zero = _needed(y_zero)
    scales = [cast(reshape(s, ()) if s.type.num_elements == 1 else s, "float32") for s in (a_scale, b_scale, y_scale)]
    scaled = emit("divide", multiply(product, multiply(scales[0], scales[1])), scales[2])
    if zero is not None and zero.type.num_elements == 1:
        zero = reshape(zero, ())
    return _quantized(scaled, _check_target(y_zero.dtype), zero)


@converter(since=10)
def ConvInteger(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    **window: Unpack[ConvAttributes],
) -> Tensor:
    # The padding is that of the centred data, so that it stands for the real value 0.
    data, weight = centred(x, x_zero_point, 1), centred(w, w_zero_point, 0)
    return convolution(data, weight, **window)


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
    data, weight = centred(x, x_zero, 1), centred(w, w_zero, 0)
    product = convolution(data, weight, **window)
    if b is not None:
        product = emit("nn.bias_add", product, b, axis=1)
    wide = cast(product, "float32")
    scale = emit("multiply", reshape(x_scale, ()), _along(w_scale, wide, 1))
    return _quantized(emit("divide", emit("multiply", wide, scale), reshape(y_scale, ())), _check_target(y_zero.dtype), reshape(y_zero, ()))
