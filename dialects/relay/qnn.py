"""Operators on quantised tensors (Relay's namespace qnn): integers that stand for the real numbers (data - zero point) * scale.

Scales and zero points are operands. Each is one number, a vector along an attribute `axis` of the data, or a tensor that broadcasts to the
data. No kernel computes these operators: the pass QnnCanonicalize writes them as arithmetic on integers and floats.

`rounding` specifies what becomes of halves: UPWARD, TONEAREST (away from zero), or TONEVEN, which is ONNX's. `compute_dtype` is the type of
the arithmetic: int64 is fixed point. "None" leaves either to Relay's configuration.
"""

import numpy as np

from relayc.dialects.relay.attributes import AttrSpec, attr_spec
from relayc.dialects.relay.base import OPS, Ints, Op, Operand, TensorType, View, check, declare
from relayc.dialects.relay.conditions import require_equal
from relayc.dialects.relay.kinds import FLOAT, Kind
from relayc.dialects.relay.names import ir_name
from relayc.dialects.relay.shapes import broadcast_shapes, normalize_axis
from relayc.dialects.relay.types import MLIR_NAMES

RELAY_ROUNDINGS = ("UPWARD", "TONEAREST")
ROUNDINGS: tuple[str, ...] = (*RELAY_ROUNDINGS, "TONEVEN")
COMPUTE_DTYPES = ("int64", "float32", "float64")
QUANTIZED = Kind(
    "an integer element type, or floats of 8 bits or less",
    lambda t: t.dtype not in ("bool", "string") and not (t.is_float and t.is_computed),
)


def _check_parameters(data: TensorType, axis: int, scale: TensorType, zero: TensorType, what: str) -> None:
    """A scale and a zero point fit the data. Raises RelayError."""
    FLOAT.require(f"{what}_scale", scale)
    for name, found in ((f"{what}_scale", scale), (f"{what}_zero_point", zero)):
        if found.num_elements == 1 and found.rank <= 1:
            continue
        if found.rank != 1:
            check(found.rank <= data.rank, f"rank of {name}", f"at most {data.rank}, that of data", found.rank)
        elif data.rank:
            at = normalize_axis(axis, data.rank)
            require_equal(found.shape[0], data.shape[at], name, f"{data.shape[at]} elements for axis {at} of data {data}", found)
        else:
            check(False, name, "one number for data of rank 0", found)


def _check_ways(op: View) -> None:
    """The attributes that specify how results are rounded. Raises RelayError."""
    check(op.rounding in ("None", *ROUNDINGS), "rounding", f"one of {', '.join(ROUNDINGS)}", op.rounding)
    check(op.compute_dtype in ("None", *COMPUTE_DTYPES), "compute_dtype", f"one of {', '.join(COMPUTE_DTYPES)}", op.compute_dtype)


def _result(data: TensorType, dtype: str) -> TensorType:
    check(dtype in MLIR_NAMES, "out_dtype", f"one of {', '.join(MLIR_NAMES)}", dtype)
    return data.with_dtype(dtype)


class Quantize(Op, name="qnn_quantize", relay_name="qnn.quantize"):
    """round(data / scale) + zero point, saturated (Relay qnn.quantize; ONNX QuantizeLinear with TONEVEN).

    data [...] of floats -> [...] of `out_dtype`. Floats of 8 bits are rounded by the conversion; without `saturate` they may be infinite.
    """

    data: Operand
    output_scale: Operand
    output_zero_point: Operand
    out_dtype: str = "int8"
    axis: int = -1
    rounding: str = "TONEAREST"
    saturate: bool = True

    @staticmethod
    def infer(op: View) -> TensorType:
        FLOAT.require("data", op.data)
        check(op.rounding in ROUNDINGS[1:], "rounding", f"one of {', '.join(ROUNDINGS[1:])}", op.rounding)
        _check_parameters(op.data, op.axis, op.output_scale, op.output_zero_point, "output")
        return _result(op.data, op.out_dtype)


class Dequantize(Op, name="qnn_dequantize", relay_name="qnn.dequantize"):
    """(data - zero point) * scale in float32, as `out_dtype` (Relay qnn.dequantize; ONNX DequantizeLinear)."""

    data: Operand
    input_scale: Operand
    input_zero_point: Operand
    out_dtype: str = "float32"
    axis: int = -1

    @staticmethod
    def infer(op: View) -> TensorType:
        QUANTIZED.require("data", op.data)
        _check_parameters(op.data, op.axis, op.input_scale, op.input_zero_point, "input")
        FLOAT.require("out_dtype", _result(op.data, op.out_dtype))
        return _result(op.data, op.out_dtype)


class Requantize(Op, name="qnn_requantize", relay_name="qnn.requantize"):
    """(data - zero point) * (input scale / output scale) + output zero point, rounded once and saturated (Relay qnn.requantize)."""

    data: Operand
    input_scale: Operand
    input_zero_point: Operand
    output_scale: Operand
    output_zero_point: Operand
    axis: int = -1
    rounding: str = "None"
    compute_dtype: str = "None"
    out_dtype: str = "int8"

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_ways(op)
        _check_parameters(op.data, op.axis, op.input_scale, op.input_zero_point, "input")
        _check_parameters(op.data, op.axis, op.output_scale, op.output_zero_point, "output")
        return _result(op.data, op.out_dtype)


# ---- products -------------------------------------------------------------------------------------------------------------------------


class Product(Op):
    """The integers (data - zero point) x (weight - zero point): what the operator `plain` computes of real numbers, without the scales.

    The scale of a result is the product of both scales. A padding stands for the real number 0.
    """

    data: Operand
    weight: Operand
    input_zero_point: Operand
    kernel_zero_point: Operand
    input_scale: Operand
    kernel_scale: Operand
    plain = ""

    @classmethod
    def infer(cls, op: View) -> TensorType:
        values = vars(op)
        operands = [values[name] for name in cls.operand_names]
        for name, found in zip(cls.operand_names[:2], operands, strict=False):
            check(not found.is_float and found.is_computed, name, "integers", found)
        for name, found in zip(cls.operand_names[2:], operands[2:], strict=True):
            check(found.rank <= 1, f"rank of {name}", "0 or 1", found.rank)
        attrs = {name: values[name] for name in cls.attr_specs}
        (result,) = OPS[ir_name(cls.plain)].result_types([v.with_dtype("int32") for v in operands[:2]], {**_OMITTED, **attrs})
        assert isinstance(result, TensorType)
        return result


def centred(weight: np.ndarray, zero_point: np.ndarray, axis: int) -> np.ndarray | None:
    """Integer weights minus their zero point (one number, or one for each index along `axis`), in int8; None if they do not fit in it."""
    if weight.size == 0 or weight.dtype.kind not in "iu" or zero_point.size not in (1, weight.shape[axis]):
        return None
    shape = [-1 if zero_point.size > 1 and i == axis % weight.ndim else 1 for i in range(weight.ndim)]
    found: np.ndarray = weight - zero_point.astype(np.int64).reshape(shape)
    byte = np.iinfo(np.int8)
    return found.astype(np.int8) if byte.min <= found.min() and found.max() <= byte.max else None


_OMITTED = {"pad_value": 0}
"""Attributes of operators on real numbers that these have not: the value is that of the zero point."""


def _specs(plain: str) -> dict[str, AttrSpec]:
    found = {name: spec for name, spec in OPS[ir_name(plain)].attr_specs.items() if name not in _OMITTED}
    return {**found, "out_dtype": attr_spec("out_dtype", str, "int32", "out_dtype")}


_PRODUCTS = {
    **{f"nn.conv{n}d": "ConvInteger" for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": "" for n in (1, 2, 3)},
    **{"nn.dense": "", "nn.matmul": "MatMulInteger", "nn.batch_matmul": "MatMulInteger"},
}
"""ONNX's names of the products of quantised tensors."""
for _plain, _onnx in _PRODUCTS.items():
    _doc = f"{_plain} of quantised tensors (Relay {_plain.replace('nn.', 'qnn.')}{f'; ONNX {_onnx}' if _onnx else ''}), in int32."
    declare(Product, {f"q{_plain}": _doc}, attr_specs=_specs(_plain), plain=_plain)


# ---- element by element ---------------------------------------------------------------------------------------------------------------


class _Binary(Op):
    """Of two quantised tensors that broadcast; the result has the element type of lhs, or `out_dtype`."""

    lhs: Operand
    rhs: Operand
    lhs_scale: Operand
    lhs_zero_point: Operand
    rhs_scale: Operand
    rhs_zero_point: Operand
    output_scale: Operand
    output_zero_point: Operand
    lhs_axis: int = -1
    rhs_axis: int = -1
    rounding: str = "None"
    compute_dtype: str = "None"
    out_dtype: str = ""

    @staticmethod
    def infer(op: View) -> TensorType:
        _check_ways(op)
        _check_parameters(op.lhs, op.lhs_axis, op.lhs_scale, op.lhs_zero_point, "lhs")
        _check_parameters(op.rhs, op.rhs_axis, op.rhs_scale, op.rhs_zero_point, "rhs")
        found = TensorType(broadcast_shapes(op.lhs.shape, op.rhs.shape), op.lhs.dtype)
        _check_parameters(found, -1, op.output_scale, op.output_zero_point, "output")
        return _result(found, op.out_dtype or found.dtype)


declare(
    _Binary,
    {
        "qnn.add": "The sum of quantised tensors, quantised (Relay qnn.add; com.microsoft QLinearAdd with TONEVEN).",
        "qnn.subtract": "The difference of quantised tensors, quantised (Relay qnn.subtract).",
        "qnn.mul": "The product of quantised tensors by elements, quantised (Relay qnn.mul; com.microsoft QLinearMul with TONEVEN).",
    },
)


class _Function(Op):
    """A function of the real numbers that a quantised tensor stands for, quantised to its element type."""

    x: Operand
    scale: Operand
    zero_point: Operand
    output_scale: Operand
    output_zero_point: Operand
    rounding: str = "TONEAREST"
    ways = ROUNDINGS[1:]

    @classmethod
    def infer(cls, op: View) -> TensorType:
        check(op.rounding in cls.ways, "rounding", f"one of {', '.join(cls.ways)}", op.rounding)
        for scale, zero, what in ((op.scale, op.zero_point, "input"), (op.output_scale, op.output_zero_point, "output")):
            _check_parameters(op.x, -1, scale, zero, what)
        return op.x


FUNCTIONS = ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log", "abs")
"""Relay's functions of real numbers that there are of quantised tensors too."""
declare(_Function, {f"qnn.{name}": f"{name} of a quantised tensor, quantised (Relay qnn.{name})." for name in (*FUNCTIONS, "hardswish")})


class Softmax(_Function, name="qnn_softmax", relay_name="qnn.softmax"):
    """softmax of a quantised tensor along an axis, quantised (Relay qnn.softmax; com.microsoft QLinearSoftmax with TONEVEN)."""

    axis: int = -1


class LeakyRelu(_Function, name="qnn_leaky_relu", relay_name="qnn.leaky_relu"):
    """A quantised tensor, below zero times `alpha`, quantised (Relay qnn.leaky_relu; com.microsoft QLinearLeakyRelu with TONEVEN)."""

    alpha: float
    rounding: str = "None"
    compute_dtype: str = "None"
    ways = ("None", *ROUNDINGS)


class AvgPool2d(Op, name="qnn_avg_pool2d", relay_name="qnn.avg_pool2d"):
    """Means of the windows of a quantised tensor, rounded once (Relay qnn.avg_pool2d); attributes as of nn.avg_pool2d."""

    data: Operand
    scale: Operand
    zero_point: Operand
    output_scale: Operand
    output_zero_point: Operand
    pool_size: Ints
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: str = "NHWC"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False

    @staticmethod
    def infer(op: View) -> TensorType:
        for scale, zero, what in ((op.scale, op.zero_point, "input"), (op.output_scale, op.output_zero_point, "output")):
            check(scale.num_elements == zero.num_elements == 1, f"{what}_scale and {what}_zero_point", "one number", scale)
            _check_parameters(op.data, -1, scale, zero, what)
        check(op.out_layout in ("", op.layout), "out_layout", f"the layout {op.layout}", op.out_layout)
        attrs = {name: vars(op)[name] for name in OPS[ir_name("nn.avg_pool2d")].attr_specs}
        (found,) = OPS[ir_name("nn.avg_pool2d")].result_types([op.data.with_dtype("float32")], attrs)
        assert isinstance(found, TensorType)
        return found.with_dtype(op.data.dtype)
