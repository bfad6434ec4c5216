"""Operators of quantised models: those of PT2E (quantized_decomposed) and torchao, and fake quantisation.

They are qnn.quantize and qnn.dequantize, of which FakeQuantizationToInteger makes products of integers. Scales and zero points are numbers,
or tensors of one element or of one for each position along an axis. Torch multiplies by the reciprocal of the scale, where qnn.quantize
divides: numbers halfway between two steps may go to the other one.
"""

from typing import Any, NamedTuple

import numpy as np

from relayc.frontend.common.quantized import of_blocks, parameter
from relayc.frontend.converter import Tensor, constant, emit, scalar
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.operands import operand, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.pytorch.values import dtype_name
from relayc.frontend.steps import cast, divide, filled, reshape
from relayc.symbolic import Size

_INTEGERS = ("uint8", "int8", "uint16", "int16", "int32")


def _zero(given: Any) -> Tensor:
    """A zero point in int32. Raises ModelError for one that is not known to be a whole number."""
    if isinstance(given, Tensor) and given.is_float:
        if not (given.is_known and (given.array == np.rint(given.array)).all()):
            raise ModelError(f"expected whole numbers as zero points, found {given.label} of type {given.dtype}")
        return constant(given.array.astype(np.int32))
    return operand(0 if given is None else given, "int32")


class Steps(NamedTuple):
    """The scale in float32 and the zero point in int32 of a tensor, as qnn.quantize takes them: vectors go along `axis`."""

    scale: Tensor
    zero: Tensor
    axis: int = 0


def _steps(x: Tensor, scale: Any, zero_point: Any, axis: int = 0) -> Steps:
    """Of numbers or tensors, of one element or of one for each position along `axis`."""
    return Steps(parameter(operand(scale, "float32"), x, axis), parameter(_zero(zero_point), x, axis), axis)


def _quantised(x: Tensor, steps: Steps, low: Any, high: Any, dtype: str) -> Tensor:
    """The numbers of x's steps from `low` to `high`. Raises ModelError for a dtype that is not one of `_INTEGERS`."""
    if dtype not in _INTEGERS:
        raise ModelError(f"expected numbers of steps of type {', '.join(_INTEGERS)}, found {dtype}")
    scale, zero, axis = steps
    numbers = emit("qnn.quantize", cast(x, "float32"), scale, zero, axis=axis, out_dtype=dtype, rounding="TONEVEN")
    low, high = (int(scalar(end, "quant_min and quant_max")) if isinstance(end, Tensor) else end for end in (low, high))
    limits = np.iinfo(dtype)
    if (low, high) == (limits.min, limits.max):
        return numbers
    return emit("clip", numbers, a_min=float(low), a_max=float(high))


def _real(numbers: Tensor, steps: Steps, dtype: str | None = None) -> Tensor:
    """What numbers of steps stand for, in `dtype`: by default that of the node's result."""
    scale, zero, axis = steps
    return emit("qnn.dequantize", numbers, scale, zero, axis=axis, out_dtype=dtype or node().dtype)


# ---- quantized_decomposed ---------------------------------------------------------------------------------------------------------------


_QUANTIZE = ("quantized_decomposed.quantize_per_tensor", "quantized_decomposed.quantize_per_channel")
_DEQUANTIZE = ("quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_channel")


@aten(*_QUANTIZE, scale="scales", zero_point="zero_points")
def quantize(input: Tensor, scales: Any, zero_points: Any, quant_min: Any, quant_max: Any, axis: int = 0) -> Tensor:
    return _quantised(input, _steps(input, scales, zero_points, axis), quant_min, quant_max, node().dtype)


@aten(*_DEQUANTIZE, scale="scales", zero_point="zero_points")
def dequantize(input: Tensor, scales: Any, zero_points: Any, axis: int = 0) -> Tensor:
    return _real(input, _steps(input, scales, zero_points, axis))


@aten("quantized_decomposed.quantize_per_token")
def quantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int) -> Tensor:
    """Each row has a scale and a zero point, which are [..., 1]."""
    return _quantised(input, Steps(cast(scales, "float32"), cast(zero_points, "int32")), quant_min, quant_max, node().dtype)


@aten("quantized_decomposed.dequantize_per_token")
def dequantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor) -> Tensor:
    return _real(input, Steps(cast(scales, "float32"), cast(zero_points, "int32")))


@aten("quantized_decomposed.dequantize_per_channel_group")
def dequantize_per_channel_group(input: Tensor, scales: Tensor, zero_points: Tensor | None, group_size: int) -> Tensor:
    """The rows of a matrix in groups, each with a scale and a zero point."""
    return dequantize_affine(input, (1, group_size), scales, zero_points)


@aten("quantized_decomposed.choose_qparams", "quantized_decomposed.choose_qparams_symmetric")
def choose_qparams(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any) -> tuple[Tensor, Tensor]:
    """The scale float64 [1] and the zero point int64 [1] of all elements and zero."""
    axes, zero = tuple(range(input.rank)), constant(0, input.dtype)
    low, high = (emit(f, emit(r, input, axis=axes), zero) for f, r in (("minimum", "min"), ("maximum", "max")))
    is_symmetric = node().operator.endswith("symmetric")
    if is_symmetric:
        high = emit("maximum", high, emit("negative", low))
        step = divide(high, (quant_max - quant_min) / 2)
        centre = filled((), 128 if dtype_name(dtype) == "uint8" else 0, "int64")
    else:
        step = divide(emit("subtract", high, low), float(quant_max - quant_min))
    step = emit("maximum", cast(step, "float32"), constant(eps, "float32"))
    if not is_symmetric:
        below = emit("round", emit("divide", cast(low, "float32"), step))
        whole = emit("subtract", constant(quant_min, "float32"), below)
        centre = cast(emit("clip", whole, a_min=float(quant_min), a_max=float(quant_max)), "int64")
    return reshape(cast(step, "float64"), (1,)), reshape(centre, (1,))


# ---- torchao ---------------------------------------------------------------------------------------------------------------------------


@aten("torchao.dequantize_affine")
def dequantize_affine(input: Tensor, block_size: tuple[Size, ...], scale: Tensor, zero_point: Tensor | None) -> Tensor:
    """(input - zero_point) * scale, where each block of the input has a scale and a zero point."""
    counts = [1 if block == size else size // block for size, block in zip(input.shape, block_size, strict=True)]
    along = [i for i, count in enumerate(counts) if count != 1]
    zero = _zero(zero_point)

    def shaped(given: Tensor) -> Tensor:
        if len(along) == 0 or given.type.num_elements == 1:
            return reshape(given, ())
        if len(along) == 1 and block_size[along[0]] == 1:
            return reshape(given, (counts[along[0]],))
        return of_blocks(reshape(given, counts), input, block_size)

    return _real(input, Steps(shaped(cast(scale, "float32")), shaped(zero), along[0] if along else 0))


# ---- fake quantisation -----------------------------------------------------------------------------------------------------------------


def _fake(x: Tensor, scale: Any, zero_point: Any, low: int, high: int, axis: int = 0) -> tuple[Tensor, Tensor | None]:
    """x rounded to steps from `low` to `high`, and which elements are between these, where the node's second result is used."""
    limits = ((name, np.iinfo(name)) for name in _INTEGERS)
    dtype = next((name for name, of in limits if of.min <= low and high <= of.max), None)
    if dtype is None:
        raise ModelError(f"expected quant_min and quant_max of 32 bits, found {low} and {high}")
    steps = _steps(x, scale, zero_point, axis)
    rounded = _real(_quantised(x, steps, low, high, dtype), steps, x.dtype)
    if not isinstance(node().dtype, tuple) or not node().used(1):
        return rounded, None
    wide = emit("qnn.quantize", cast(x, "float32"), steps.scale, steps.zero, axis=axis, out_dtype="int32", rounding="TONEVEN")
    inside = emit("greater_equal", wide, constant(low, "int32")), emit("less_equal", wide, constant(high, "int32"))
    return rounded, emit("logical_and", *inside)


_FAKE = ("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine")


@aten(*_FAKE, *(f"{name}_cachemask" for name in _FAKE))
def fake_quantize(self: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, axis: int = 0) -> Any:
    found = _fake(self, scale, zero_point, quant_min, quant_max, axis)
    return found if isinstance(node().dtype, tuple) else found[0]


@aten("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_where_enabled(
    self: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor | None]:
    """Fake quantisation; elements stay unchanged where `fake_quant_enabled`, one number, is 0."""
    found, inside = _fake(self, scale, zero_point, quant_min, quant_max)
    if fake_quant_enabled.is_known and fake_quant_enabled.array.item():
        return found, inside
    enabled = cast(reshape(fake_quant_enabled, ()), "bool")
    return where(enabled, found, self), None if inside is None else emit("logical_or", inside, emit("logical_not", enabled))
