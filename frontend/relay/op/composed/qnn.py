"""Operators on quantized tensors, (data - zero point) * scale, in arithmetic on integers and floats.

These functions write out calls in programs of Relay, and by the pass QnnCanonicalize the operators of the dialect. `qnn_products` has the
products. Scales and zero points are scalars, or have a value for each element of an axis.
"""

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from ml_dtypes import iinfo

from relayc.dialects.relay.attributes import REQUIRED
from relayc.dialects.relay.errors import check
from relayc.dialects.relay.kinds import FLOAT
from relayc.dialects.relay.narrow import widened
from relayc.dialects.relay.qnn import COMPUTE_DTYPES, FUNCTIONS, RELAY_ROUNDINGS
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.relay.op.composed.terms import Term
from relayc.frontend.steps import cast, cast_as, reshape

WAYS = ("rounding", "compute_dtype")
"""The attributes that the configuration is for."""
_CONFIG: contextvars.ContextVar[tuple[str, str]] = contextvars.ContextVar("relayc_requantize", default=("UPWARD", "int64"))


@contextmanager
def requantize_config(rounding: str = "UPWARD", compute_dtype: str = "int64") -> Iterator[None]:
    """How requantize rounds, and what it computes in, where the operator does not say it, of programs lowered inside `with`."""
    check(rounding in RELAY_ROUNDINGS, "rounding", f"one of {', '.join(RELAY_ROUNDINGS)}", rounding)
    check(compute_dtype in COMPUTE_DTYPES, "compute_dtype", f"one of {', '.join(COMPUTE_DTYPES)}", compute_dtype)
    token = _CONFIG.set((rounding, compute_dtype))
    try:
        yield
    finally:
        _CONFIG.reset(token)


# ---- to and from real numbers ----------------------------------------------------------------------------------------------------------


def along(parameter: Tensor, data: Tensor, axis: int) -> Tensor:
    """A scalar, a value for each element of an axis, or for blocks of elements, as it broadcasts to data."""
    if parameter.rank == 0 or parameter.shape == (1,):
        return reshape(parameter, ())
    if parameter.rank > 1:
        return parameter
    at = axis_of(axis, data.rank)
    return reshape(parameter, [data.shape[at], *(1,) * (data.rank - at - 1)])


def _limits(dtype: str, of: str) -> tuple[Any, Any]:
    """The least and the largest number of an integer type that a type of a computation has."""
    limits = iinfo(dtype)
    if not of.startswith("float") or limits.bits < 32:
        return limits.min, limits.max
    return limits.min, np.nextafter(np.array(limits.max, of), np.array(0, of)).item()


def _saturated(x: Term, dtype: str) -> Tensor:
    """Whole numbers, limited to those of an integer type."""
    if dtype == x.tensor.dtype:
        return x.tensor
    low, high = _limits(dtype, x.tensor.dtype)
    return cast(emit("clip", x.tensor, a_min=float(low), a_max=float(high)), dtype)


def is_zero(zero: Tensor) -> bool:
    return zero.is_known and not widened(zero.array).any()


def _nearest(x: Tensor, zero: Tensor, axis: int, dtype: str, saturate: bool = True) -> Tensor:
    """round(x) + zero point, with halves to even, as the nearest number of `dtype`, as ONNX has it; x is in float32 or wider.

    Floats of 8 bits are rounded by the conversion, and without `saturate` may become infinite.
    """
    is_real = dtype.startswith("float")
    found = x if is_real else emit("round", x)
    if not is_zero(zero):
        found = emit("add", found, cast(along(zero, x, axis), x.dtype))
    return cast_as(found, dtype, saturate) if is_real else _saturated(Term(found), dtype)


def minus_zero_point(data: Tensor, zero: Tensor, axis: int, dtype: str) -> Term:
    """data - zero point in a wider type."""
    if is_zero(zero):
        return Term(cast(data, dtype))
    return Term(cast(data, dtype)) - Term(cast(along(zero, data, axis), dtype))


@composed("qnn.dequantize", "data input_scale input_zero_point axis out_dtype")
def dequantize(data: Tensor, input_scale: Tensor, input_zero_point: Tensor, *, out_dtype: str = "float32", axis: int = -1) -> Tensor:
    """(data - zero point) * scale."""
    return (_real(data, input_zero_point, axis) * Term(cast(along(input_scale, data, axis), "float32"))).cast(out_dtype).tensor


@composed("qnn.quantize", "data output_scale output_zero_point axis out_dtype")
def quantize(
    data: Tensor,
    output_scale: Tensor,
    output_zero_point: Tensor,
    *,
    out_dtype: str = "int8",
    axis: int = -1,
    rounding: str = "TONEAREST",
    saturate: bool = True,
) -> Tensor:
    """round(data / scale) + zero point, with halves away from zero or to even (TONEVEN), limited to the numbers of the element type."""
    FLOAT.require("data", data.type)
    steps = emit("divide", data, cast(along(output_scale, data, axis), data.dtype))
    if rounding == "TONEVEN":
        return _nearest(cast(steps, "float32"), output_zero_point, axis, out_dtype, saturate)
    found, zero = Term(steps), along(output_zero_point, data, axis)
    below_half = np.nextafter(np.array(0.5, data.dtype), np.array(0, data.dtype)).item()  # 0.5 makes 1 of the number before 0.5
    whole = emit("add", emit("trunc", (found + Term(emit("sign", found.tensor)) * below_half).tensor), cast(zero, data.dtype))
    return _saturated(Term(whole), out_dtype)


_CODES = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
"""Element types as operands of the simulated operators."""


def code_of(dtype: str) -> int:
    """The number that stands for an element type in operands of the simulated operators. Raises RelayError."""
    check(dtype in _CODES, "dtype", f"one of {', '.join(_CODES)}", dtype)
    return _CODES[dtype]


@composed("qnn.simulated_quantize")
def simulated_quantize(data: Tensor, out_dtype: Tensor, output_scale: Tensor, output_zero_point: Tensor, *, axis: int = -1) -> Tensor:
    """As quantize, in the element type of the data; the program says the type by a number: 0 leaves the data as it is."""
    scale, zero = (Term(cast(along(p, data, axis), data.dtype)) for p in (output_scale, output_zero_point))
    code = Term(out_dtype)
    found = Term(emit("round", (Term(data) / scale).tensor)) + zero
    limited = found
    for dtype, number in list(_CODES.items())[1:]:
        low, high = _limits(dtype, data.dtype)
        limited = code.eq(number).where(found.max(low).min(high), limited)
    return code.eq(0).where(Term(data), limited).tensor


@composed("qnn.simulated_dequantize")
def simulated_dequantize(data: Tensor, in_dtype: Tensor, input_scale: Tensor, input_zero_point: Tensor, *, axis: int = -1) -> Tensor:
    """As dequantize, of data in a floating-point type; 0 as the number of the type leaves the data as it is."""
    scale, zero = (Term(cast(along(p, data, axis), data.dtype)) for p in (input_scale, input_zero_point))
    return Term(in_dtype).eq(0).where(Term(data), (Term(data) - zero) * scale).tensor


@composed("relay.op.annotation.simulated_quantize")
def annotated_quantize(
    data: Tensor, dom_scale: Tensor, clip_min: Tensor, clip_max: Tensor, *, kind: int, sign: bool = True, rounding: str = "round"
) -> Tensor:
    """data / scale, limited and rounded, times the scale; the data as it is where `kind` is 0, an identity."""
    check(0 <= kind <= 3, "kind", "0 to 3", kind)
    check(sign, "sign", "numbers with a sign", sign)
    check(rounding == "round", "rounding", "round", rounding)
    for tensor, what in ((dom_scale, "dom_scale"), (clip_min, "clip_min"), (clip_max, "clip_max")):
        check(tensor.rank == 0, what, "a scalar", tensor.type)
    if kind == 0:
        return data
    scale, low, high = (Term(cast(t, data.dtype)) for t in (dom_scale, clip_min, clip_max))
    whole = Term(emit("round", (Term(data) / scale).min(high).max(low).tensor))
    return (whole * scale).tensor


# ---- to another scale --------------------------------------------------------------------------------------------------------------------


@composed("qnn.requantize")
def requantize(
    data: Tensor,
    input_scale: Tensor,
    input_zero_point: Tensor,
    output_scale: Tensor,
    output_zero_point: Tensor,
    *,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str = "int8",
) -> Tensor:
    """(data - zero point) * input scale / output scale + zero point, rounded and limited to the numbers of the element type.

    In int64 the quotient of the scales is a number of 31 bits and a shift; so it is where the program's constants say the scales, and
    `compute_dtype` says nothing else. Halves are rounded up (UPWARD), away from zero (TONEAREST), or to even (TONEVEN), then in float32.
    """
    if rounding == "TONEVEN":
        factor = _ratio(input_scale, output_scale, data, axis)
        return _nearest((_real(data, input_zero_point, axis) * factor).tensor, output_zero_point, axis, out_dtype)
    scales = [np.float64(s.array) if s.is_known else None for s in (input_scale, output_scale)]
    ratio = None if scales[0] is None or scales[1] is None else _shaped(scales[0], data, axis) / _shaped(scales[1], data, axis)
    zero = Term(along(output_zero_point, data, axis))
    is_up, kind = _ways(rounding, compute_dtype)
    if ratio is not None and np.all(ratio == 1):
        return _saturated(minus_zero_point(data, input_zero_point, axis, "int64") + zero.cast("int64"), out_dtype)
    if ratio is not None and kind == "int64":
        found = _fixed_point(minus_zero_point(data, input_zero_point, axis, "int64"), ratio, is_up)
        return _saturated(found + zero.cast("int64"), out_dtype)
    kind = "float32" if kind == "int64" else kind
    factor = _ratio(input_scale, output_scale, data, axis, kind) if ratio is None else Term(constant(ratio, kind))
    found = minus_zero_point(data, input_zero_point, axis, kind) * factor
    above = Term(emit("floor", (found + 0.5).tensor))
    rounded = above if is_up else (found >= 0).where(above, Term(emit("ceil", (found - 0.5).tensor)))
    return _saturated(rounded + zero.cast(kind), out_dtype)


def _ratio(scale: Tensor, by: Tensor, data: Tensor, axis: int, dtype: str = "float32") -> Term:
    """The quotient of two scales of data."""
    return Term(cast(along(scale, data, axis), dtype)) / Term(cast(along(by, data, axis), dtype))


def _real(data: Tensor, zero: Tensor, axis: int) -> Term:
    """data - zero point, subtracted in int32, or of floats in float32, in float32."""
    return minus_zero_point(data, zero, axis, "float32" if data.dtype.startswith("float") else "int32").cast("float32")


def configured(rounding: str, compute_dtype: str) -> tuple[str, str]:
    """How to round and what to compute in, by the configuration where an operator does not say it."""
    given = zip((rounding, compute_dtype), _CONFIG.get(), strict=True)
    return tuple(of if said in ("None", "") else said for said, of in given)  # type: ignore[return-value] # two


def _ways(rounding: str, compute_dtype: str) -> tuple[bool, str]:
    """Whether halves are rounded up, and what is computed in. Raises RelayError."""
    rounding, compute_dtype = configured(rounding, compute_dtype)
    check(rounding in RELAY_ROUNDINGS, "rounding", f"one of {', '.join(RELAY_ROUNDINGS)}", rounding)
    check(compute_dtype in COMPUTE_DTYPES, "compute_dtype", f"one of {', '.join(COMPUTE_DTYPES)}", compute_dtype)
    return rounding == "UPWARD", compute_dtype


def _shaped(values: np.ndarray, data: Tensor, axis: int) -> np.ndarray:
    """A value, those for the elements of an axis, or for blocks of elements, as they broadcast to data."""
    if np.size(values) == 1:
        return np.reshape(values, ())
    if np.ndim(values) > 1:
        return values
    at = axis_of(axis, data.rank)
    return np.reshape(values, [-1 if i == at else 1 for i in range(data.rank)])


def _fixed_point(x: Term, ratio: np.ndarray, is_up: bool) -> Term:
    """int64 numbers times a ratio, which is a whole number of 31 bits, shifted."""
    fraction, exponent = np.frexp(ratio)
    factor = np.round(fraction * 2.0**31).astype(np.int64)
    exponent, factor = np.where(factor == 1 << 31, exponent + 1, exponent), np.where(factor == 1 << 31, 1 << 30, factor)
    right = 31 + np.maximum(-exponent, 0)
    left = np.maximum(exponent, 0)
    shifted = Term(emit("left_shift", x.tensor, constant(left, "int64"))) if left.any() else x
    product = shifted * Term(constant(factor, "int64"))
    half = Term(constant(1 << (right - 1).astype(np.int64), "int64"))
    added = half if is_up else (x >= 0).where(half, half - 1)
    return Term(emit("right_shift", (product + added).tensor, constant(right, "int64")))


# ---- element by element ------------------------------------------------------------------------------------------------------------------


def _binary(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Registers an operator of two quantized tensors: a function of both, their scales and the attributes of requantize that gives it."""
    names = "lhs rhs lhs_scale lhs_zero_point rhs_scale rhs_zero_point output_scale output_zero_point"

    def register(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @composed(name, operands=names)
        def binary(
            *operands: Tensor,
            lhs_axis: int = -1,
            rhs_axis: int = -1,
            rounding: str = "None",
            compute_dtype: str = "None",
            out_dtype: str = "",
        ) -> Tensor:
            lhs, rhs, lhs_scale, lhs_zero, rhs_scale, rhs_zero, scale, zero = operands
            ways = {"rounding": rounding, "compute_dtype": compute_dtype, "out_dtype": out_dtype or lhs.dtype}
            return function((lhs, lhs_scale, lhs_zero, lhs_axis), (rhs, rhs_scale, rhs_zero, rhs_axis), scale, zero, **ways)

        return binary

    return register


_Side = tuple[Tensor, Tensor, Tensor, int]
"""A quantized tensor: data, scale, zero point and the axis of several of these."""


def _sum(lhs: _Side, rhs: _Side, scale: Tensor, zero: Tensor, *, name: str, **ways: Any) -> Tensor:
    """The sum or the difference: both are brought to the scale of the result."""
    dtype = ways.pop("out_dtype")
    if ways["rounding"] == "TONEVEN":
        a, b = (_real(x, z, axis) * _ratio(s, scale, x, axis) for x, s, z, axis in (lhs, rhs))
        return _nearest(emit(name, a.tensor, b.tensor), zero, -1, dtype)
    none = constant(0, "int32")
    a, b = (Term(requantize(x, s, z, scale, none, axis=axis, out_dtype="int32", **ways)) for x, s, z, axis in (lhs, rhs))
    return _saturated(Term(emit(name, a.tensor, b.tensor)) + Term(cast(reshape(zero, ()), "int32")), dtype)


for _name in ("add", "subtract"):
    _binary(f"qnn.{_name}")(partial(_sum, name=_name))


@_binary("qnn.mul")
def _multiply(lhs: _Side, rhs: _Side, scale: Tensor, zero: Tensor, **ways: Any) -> Tensor:
    """The product, brought to the scale of the result."""
    a, b = (minus_zero_point(x, z, axis, "int32") for x, _, z, axis in (lhs, rhs))
    of_product = _known_product(*(_spread(s, x, axis) for x, s, _, axis in (lhs, rhs)))
    return requantize((a * b).tensor, of_product, constant(0, "int32"), scale, zero, **ways)


def _spread(scale: Tensor, data: Tensor, axis: int) -> Tensor:
    """A scale of data as it broadcasts to the data, known where it is."""
    return constant(_shaped(scale.array, data, axis), "float32") if scale.is_known else along(scale, data, axis)


def _known_product(a: Tensor, b: Tensor) -> Tensor:
    if a.is_known and b.is_known:
        return constant(np.float32(a.array) * np.float32(b.array), "float32")
    return emit("multiply", a, b)


@composed("qnn.concatenate")
def concatenate(
    data: tuple[Tensor, ...],
    input_scales: tuple[Tensor, ...],
    input_zero_points: tuple[Tensor, ...],
    output_scale: Tensor,
    output_zero_point: Tensor,
    *,
    axis: int,
) -> Tensor:
    """Tensors one after the other along an axis, each brought to the scale of the result."""
    parts = [
        requantize(x, scale, zero, output_scale, output_zero_point, axis=axis, out_dtype=x.dtype)
        for x, scale, zero in zip(data, input_scales, input_zero_points, strict=True)
    ]
    return emit("concatenate", *parts, axis=axis)


def _same_name(name: str) -> Callable[[Term], Tensor]:
    return lambda x: emit(name, x.tensor)


UNARY: dict[str, Callable[[Term], Tensor]] = {
    **{name: _same_name(name) for name in FUNCTIONS},
    "hardswish": lambda x: (x * (x + 3.0).max(0.0).min(6.0) / 6.0).tensor,
}


def _unary(name: str, function: Callable[[Term], Tensor]) -> None:
    @composed(f"qnn.{name}")
    def unary(
        x: Tensor, scale: Tensor, zero_point: Tensor, output_scale: Tensor, output_zero_point: Tensor, *, rounding: str = "TONEAREST"
    ) -> Tensor:
        real = function(Term(dequantize(x, scale, zero_point)))  # of bytes, the pass ByteTables makes a table
        return quantize(real, output_scale, output_zero_point, out_dtype=x.dtype, rounding=rounding)


for _name, _function in UNARY.items():
    _unary(_name, _function)


@composed("qnn.leaky_relu", "x alpha scale zero_point output_scale output_zero_point")
def leaky_relu(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    output_scale: Tensor,
    output_zero_point: Tensor,
    *,
    alpha: float,
    rounding: str = "None",
    compute_dtype: str = "None",
) -> Tensor:
    """x where it is above zero, else alpha * x."""
    if rounding == "TONEVEN":
        found = emit("nn.leaky_relu", dequantize(x, scale, zero_point), alpha=alpha)
        return quantize(found, output_scale, output_zero_point, out_dtype=x.dtype, rounding=rounding)
    ways = {"rounding": rounding, "compute_dtype": compute_dtype, "out_dtype": x.dtype}
    scales = scale, _known_product(scale, constant(alpha, "float32"))
    above, below = (Term(requantize(x, of, zero_point, output_scale, output_zero_point, **ways)) for of in scales)
    return (Term(cast(x, "int32")) < Term(cast(zero_point, "int32"))).where(below, above).tensor


@composed("qnn.softmax")
def softmax(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    output_scale: Tensor,
    output_zero_point: Tensor,
    *,
    axis: int = -1,
    rounding: str = "TONEAREST",
) -> Tensor:
    """The softmax of the real numbers along an axis."""
    found = emit("nn.softmax", dequantize(x, scale, zero_point), axis=axis)
    return quantize(found, output_scale, output_zero_point, out_dtype=x.dtype, rounding=rounding)


_QUANTIZED_POOL = "data input_scale input_zero_point output_scale output_zero_point"


@composed(
    "qnn.avg_pool2d",
    f"{_QUANTIZED_POOL} pool_size strides padding dilation ceil_mode count_include_pad layout out_layout",
    operands=_QUANTIZED_POOL,
    attributes={
        **{"pool_size": REQUIRED, "strides": (1, 1), "dilation": (1, 1), "padding": (0, 0), "layout": "NHWC", "out_layout": ""},
        **{"ceil_mode": False, "count_include_pad": False},
    },
)
def avg_pool2d(data: Tensor, scale: Tensor, zero_point: Tensor, output_scale: Tensor, output_zero_point: Tensor, **attrs: Any) -> Tensor:
    """The means of windows, rounded once; the sums of a window are exact below 2^24."""
    from relayc.frontend.relay.op.table import signature

    attrs = signature("nn.avg_pool2d").attributes(attrs)
    attrs.pop("out_layout")
    means = emit("nn.avg_pool2d", minus_zero_point(data, zero_point, -1, "float32").tensor, **attrs)
    factor = Term(cast(scale, "float32")) / Term(cast(output_scale, "float32"))
    found = Term(emit("round", (Term(means) * factor).tensor)) + Term(cast(output_zero_point, "float32"))
    return _saturated(found, data.dtype)
