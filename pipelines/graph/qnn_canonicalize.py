"""QnnCanonicalize: operators on quantised tensors as arithmetic on integers and floats (Relay's CanonicalizeOps of the namespace qnn).

    %1 = relay.qnn_requantize(%0, ...)   ->   %1 = cast<u8>(clip(round(cast<f32>(%0) * factor) + zero))

What they compute is said in one place, for this pass and for programs of Relay: relayc.frontend.relay.op.composed.qnn. A product of bytes
and a constant weight that fits in s8 without its zero point is one of 8-bit integers, and so are products of matrices of bytes, and
convolutions without groups by constant bytes.
"""

from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.names import build
from relayc.dialects.relay.qnn import centred
from relayc.dialects.relay.scopes import size_attributes
from relayc.dialects.relay.types import BYTES, TensorType, is_bytes, numpy_dtype
from relayc.pipelines.graph.conv_transpose_to_conv import CONV_TRANSPOSES, as_convolution, phase_weights
from relayc.pipelines.graph.fold_scale_axis import is_constant
from relayc.pipelines.graph.numpy_operators import Unfoldable, evaluate, numpy_operator
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("QnnCanonicalize")


def known(value: ir.Value, rw: Rewriter) -> np.ndarray | None:
    """The elements of a value that constants make; None for any other."""
    found = rw.array(value)
    if found is not None or not is_constant(value):
        return found
    op = value.owner
    operands = [known(v, rw) for v in op.operation.operands]
    results = None if any(v is None for v in operands) or size_attributes(op) else evaluate(op, operands)  # type: ignore[arg-type]
    return results[0] if results is not None else None


def centred_weights(weight: ir.Value, zero_point: ir.Value, channel: int, rw: Rewriter) -> np.ndarray | None:
    """Constant weights minus their constant zero point, in int8 (see `centred`); None for others."""
    array, zero = known(weight, rw), known(zero_point, rw)
    return None if array is None or zero is None else centred(array, zero, channel)


@numpy_operator("qnn_quantize")
def _quantize(op: Op, data: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """Of float32, to the nearest step and half to even: what `known` needs of weights that a trained model has in floats."""
    if data.dtype != np.float32 or op.rounding != "TONEVEN" or not op.saturate or op.out_dtype not in (*BYTES, "int16", "uint16"):
        raise Unfoldable
    scale, zero = (_along(op, data, v) for v in (scale, zero))
    limits = np.iinfo(op.out_dtype)
    with np.errstate(all="ignore"):
        found = np.rint(data / scale.astype(np.float32)) + zero.astype(np.float32)
    if np.isnan(found).any():
        raise Unfoldable
    return np.clip(found, limits.min, limits.max).astype(op.out_dtype)


@numpy_operator("qnn_dequantize")
def _dequantize(op: Op, data: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """Of integers: what `known` needs of a quantised bias."""
    if data.dtype.kind not in "iu" or zero.dtype.kind not in "iu":
        raise Unfoldable
    scale, zero = (_along(op, data, v) for v in (scale, zero))
    return np.asarray((data.astype(np.int32) - zero.astype(np.int32)).astype(np.float32) * scale.astype(np.float32))


def _along(op: Op, data: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Scales or zero points as they broadcast with the data."""
    if numbers.size == 1:
        return numbers.reshape(())
    return numbers.reshape([-1 if i == op.axis % data.ndim else 1 for i in range(data.ndim)]) if numbers.ndim == 1 else numbers


@RULES.on(*(f"q{name}" for name in CONV_TRANSPOSES))
def transposed(op: Op, rw: Rewriter) -> Found:
    """A transposed convolution of bytes by constant weights that fit in s8 -> a plain one, of quantised tensors too."""
    weight, zero = centred_weights(op.weight, op.kernel_zero_point, 1, rw), known(op.input_zero_point, rw)
    if weight is None or zero is None or zero.size != 1 or not is_bytes(op.data) or op.out_dtype != "int32":
        return None  # the zero point of the data is what it is padded with
    constant, none = rw.mod.constant(weight), rw.mod.constant(np.zeros((), np.int8))

    def convolution(op: Op, weights: ir.Value, **attrs: Any) -> ir.Value:
        parameters = [op.input_zero_point, none, op.input_scale, op.kernel_scale]
        return build(op.relay_name.removesuffix("_transpose"), op.data, weights, *parameters, **attrs)

    return as_convolution(op, lambda taps, phases: phase_weights(constant, op.groups, taps, phases, rw), rw, convolution=convolution)


@RULES.where(lambda operator: operator.relay_name.startswith("qnn."))
def canonical(op: Op, rw: Rewriter) -> Found:
    """An operator on quantised tensors -> what it is composed of."""
    # Late: the operators of Relay take a time to import that other models do not need.
    from relayc.frontend.converter import Tensor
    from relayc.frontend.relay.op.composed import COMPOSED, FunctionBuilder

    def tensor(value: ir.Value) -> Any:
        array = known(value, rw)
        return Tensor(TensorType.of(value), value=value, read=None if array is None else lambda: array)

    with FunctionBuilder(rw.mod, set()):
        found = COMPOSED[op.relay_name].function(*map(tensor, op.operation.operands), **op.attrs())
        return found.value


@RULES.on("add")
def bias(op: Op, rw: Rewriter) -> Found:
    """(sum - excess) + bias -> sum + (bias - excess), of constants: one addition after a product of 8-bit integers."""
    inner = rw.producer(op.lhs, "subtract")
    if inner is None or TensorType.of(op.result).dtype != "int32" or not (is_constant(inner.rhs) and is_constant(op.rhs)):
        return None
    if not rw.used_once(op.lhs) or TensorType.of(inner.lhs) != TensorType.of(op.result):
        return None
    return build("add", inner.lhs, build("subtract", op.rhs, inner.rhs))


@RULES.on("clip")
def limits(op: Op, rw: Rewriter) -> Found:
    """Narrower limits of integers that are saturated -> the limits of the saturation."""
    cast = rw.producer(op.data, "cast")
    inner = None if cast is None else rw.producer(cast.data, "clip")
    if inner is None or cast is None or not np.issubdtype(numpy_dtype(cast.dtype), np.integer) or not rw.used_once(op.data):
        return None
    type_, ends = np.iinfo(numpy_dtype(cast.dtype)), (inner.a_min, op.a_min, op.a_max, inner.a_max)
    if (
        None in ends
        or not all(float(end).is_integer() for end in ends)
        or not (type_.min <= ends[0] <= ends[1] <= ends[2] <= ends[3] <= type_.max)
    ):
        return None
    return build("cast", build("clip", inner.data, a_min=op.a_min, a_max=op.a_max), dtype=cast.dtype)


qnn_canonicalize = RULES.as_pass(0, "Operators on quantised tensors become arithmetic on integers and floats.")
