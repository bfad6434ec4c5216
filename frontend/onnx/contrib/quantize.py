"""Arithmetic on quantised numbers: what ONNX has no quantised operator for."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from typing_extensions import Unpack

from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.onnx import activation, pool, quantize
from relayc.frontend.onnx.contrib.conv import channels_last, channels_second
from relayc.frontend.onnx.contrib.domain import check_ranks, microsoft
from relayc.frontend.onnx.conv import ConvAttributes
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import add, cast, multiply, reshape, transpose


def _quantised(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: str) -> Tensor:
    """Numbers as quantised ones of a dtype."""
    zero = zero if zero is not None else constant(0, dtype)
    return quantize.QuantizeLinear(x, scale, zero)


@microsoft("QuantizeLinear")
def QuantizeLinear(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, axis: int = 1) -> Tensor:
    return quantize.QuantizeLinear(x, scale, zero, axis=axis)


@microsoft("DequantizeLinear")
def DequantizeLinear(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, axis: int = 1) -> Tensor:
    """What quantised numbers stand for, in the type of the scale."""
    return quantize.DequantizeLinear(x, scale, zero, axis=axis)


def _numbers(x: Tensor, scale: Tensor, zero: Tensor | None) -> tuple[Tensor, Tensor]:
    """The scale and zero point of x, each one number."""
    return reshape(scale, ()), constant(0, x.dtype) if zero is None else reshape(zero, ())


# ---- element by element, and pooling ------------------------------------------------------------------------------------------------


def _of_two(relay_name: str) -> Callable[..., Tensor]:
    def convert(
        a: Tensor,
        a_scale: Tensor,
        a_zero: Tensor | None,
        b: Tensor,
        b_scale: Tensor,
        b_zero: Tensor | None,
        c_scale: Tensor,
        c_zero: Tensor | None = None,
    ) -> Tensor:
        pairs = (a, a_scale, a_zero), (b, b_scale, b_zero), (a, c_scale, c_zero)
        parameters = [v for x, scale, zero in pairs for v in _numbers(x, scale, zero)]
        return emit(relay_name, a, b, *parameters, rounding="TONEVEN", compute_dtype="float32")

    return convert


microsoft("QLinearAdd")(_of_two("qnn.add"))
microsoft("QLinearMul")(_of_two("qnn.mul"))


@microsoft()
def QLinearSigmoid(x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None) -> Tensor:
    return emit("qnn.sigmoid", x, *_numbers(x, x_scale, x_zero), *_numbers(x, y_scale, y_zero), rounding="TONEVEN")


@microsoft()
def QLinearLeakyRelu(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None, *, alpha: float = 0.01
) -> Tensor:
    parameters = *_numbers(x, x_scale, x_zero), *_numbers(x, y_scale, y_zero)
    return emit("qnn.leaky_relu", x, *parameters, alpha=alpha, rounding="TONEVEN", compute_dtype="float32")


@microsoft()
def QLinearSoftmax(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor, *, axis: int = -1, opset: int
) -> Tensor:
    """As Softmax of the operator set `opset`."""
    found = activation.along_axis(activation.softmax, DequantizeLinear(x, x_scale, x_zero), axis, opset)
    return _quantised(found, y_scale, y_zero, x.dtype)


@microsoft()
def QLinearWhere(
    condition: Tensor,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    z_scale: Tensor,
    z_zero: Tensor,
) -> Tensor:
    found = emit("where", condition, DequantizeLinear(x, x_scale, x_zero), DequantizeLinear(y, y_scale, y_zero))
    return _quantised(found, z_scale, z_zero, x.dtype)


@microsoft()
def QLinearConcat(y_scale: Tensor, y_zero: Tensor, *inputs: Tensor, axis: int) -> Tensor:
    """Of tensors, each with its scale and zero point."""
    if not inputs or len(inputs) % 3:
        raise OnnxError(f"expected tensors, each with its scale and zero point, found {len(inputs)} inputs")
    parts = [
        _quantised(DequantizeLinear(x, scale, zero), y_scale, y_zero, y_zero.dtype)
        for x, scale, zero in zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    ]
    return emit("concatenate", *parts, axis=axis_of(axis, parts[0].rank))


def _pooled(x: Tensor, is_last: bool, compute: Callable[[Tensor], Tensor]) -> Tensor:
    return channels_last(compute(channels_second(x))) if is_last else compute(x)


@microsoft()
def QLinearGlobalAveragePool(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, y_scale: Tensor, y_zero: Tensor, *, channels_last: bool = False
) -> Tensor:
    found = _pooled(DequantizeLinear(x, x_scale, x_zero), channels_last, pool.GlobalAveragePool)
    return _quantised(found, y_scale, y_zero, x.dtype)


@microsoft()
def QLinearAveragePool(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
    *,
    channels_last: bool = False,
    count_include_pad: bool = False,
    **window: Unpack[pool.PoolAttributes],
) -> Tensor:
    average = partial(pool.AveragePool, count_include_pad=count_include_pad, **window)
    return _quantised(_pooled(DequantizeLinear(x, x_scale, x_zero), channels_last, average), y_scale, y_zero, x.dtype)


# ---- products -----------------------------------------------------------------------------------------------------------------------


def integer_product(a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None) -> Tensor:
    """What the product of two quantised tensors stands for, in the type of the scales; b may have those of each column."""
    product = quantize.integer_matmul(a, b, a_zero, b_zero)
    scale = multiply(reshape(a_scale, ()), quantize.number(b_scale))
    return emit("qnn.dequantize", product, scale, constant(0, "int32"), axis=-1, out_dtype=a_scale.dtype)


def _with_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else add(x, bias)


@microsoft()
def MatMulIntegerToFloat(
    a: Tensor,
    b: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero: Tensor | None = None,
    b_zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    return _with_bias(integer_product(a, a_scale, a_zero, b, b_scale, b_zero), bias)


@microsoft()
def DynamicQuantizeMatMul(a: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """The product of a, quantised to uint8 by its least and largest element (DynamicQuantizeLinear), and b."""
    zero = constant(np.float32(0))
    axes = tuple(range(a.rank))
    least, largest = (emit(f, emit(r, a, axis=axes), zero) for f, r in (("minimum", "min"), ("maximum", "max")))
    scale = emit("divide", emit("subtract", largest, least), constant(np.float32(255)))
    scale = emit("where", emit("equal", scale, zero), constant(np.float32(1)), scale)
    centre = cast(emit("round", emit("clip", emit("divide", emit("negative", least), scale), a_min=0.0, a_max=255.0)), "uint8")
    numbers = _quantised(a, scale, centre, "uint8")
    return _with_bias(integer_product(numbers, scale, centre, b, b_scale, b_zero), bias)


@microsoft()
def QGemm(
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    c: Tensor | None = None,
    y_scale: Tensor | None = None,
    y_zero: Tensor | None = None,
    *,
    alpha: float = 1.0,
    transA: bool = False,
    transB: bool = False,
) -> Tensor:
    """alpha * a x b + c, where c is in steps of alpha * a_scale * b_scale: quantised where y_scale is given, else floats."""
    check_ranks((2,), A=a, B=b)
    left, right = transpose(a, (1, 0)) if transA else a, transpose(b, (1, 0)) if transB else b
    sums = _with_bias(quantize.integer_matmul(left, right, a_zero, b_zero), c)
    scale = multiply(multiply(reshape(a_scale, ()), quantize.number(b_scale)), alpha)
    if y_scale is None:
        return emit("qnn.dequantize", sums, scale, constant(0, "int32"), axis=-1)
    return quantize.requantized(sums, scale, y_scale, y_zero, a.dtype if y_zero is None else y_zero.dtype, -1)


@microsoft()
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
    channels_last: bool = False,
    **window: Unpack[ConvAttributes],
) -> Tensor:
    def compute(y: Tensor) -> Tensor:
        return quantize.QLinearConv(y, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b, **window)

    return _pooled(x, channels_last, compute)


@microsoft()
def MulInteger(a: Tensor, a_zero: Tensor | None, b: Tensor, b_zero: Tensor | None = None) -> Tensor:
    """The product of quantised numbers, in int32."""
    return multiply(quantize.centred(a, a_zero, 0), quantize.centred(b, b_zero, 0))


@microsoft()
def ReduceSumInteger(data: Tensor, *, axes: Sequence[int], keepdims: bool) -> Tensor:
    """In 32 bits."""
    wide = cast(data, "uint32" if data.dtype == "uint8" else "int32")
    return emit("sum", wide, axis=tuple(axis_of(a, data.rank, "axes") for a in axes), keepdims=keepdims)
