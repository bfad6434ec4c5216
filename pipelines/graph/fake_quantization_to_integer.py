"""FakeQuantizationToInteger: floats that stand for quantised numbers are computed with in integers (Relay's FakeQuantizationToInteger).

Frontends write quantised operators as arithmetic: a dequantised tensor is cast<f32>(cast<s32>(x) - zero) * scale, a quantised one
cast<u8>(clip(round(y / scale) + zero)). The rules here move the scales behind the products, whose operands then are 8 bits wide:

- a convolution or product of two dequantised tensors, the weight constant, becomes cast<f32>(product<s32>(x, w) - zero * sums(w)) * scale;
  the sums of the weights are constants, and a padding is of the zero point;
- a bias joins the integers where it is a whole number of steps, as quantised biases are;
- a division by the scale of the result joins the factor, or those of two tensors that are added: what is left of a product is
  round(cast<f32>(sum) * factor) + zero, saturated;
- an operator that only moves elements, or takes the largest, works on the quantised numbers where scale and zero point stay the same.

Weights have to fit in s8 without their zero point, as symmetric ones do. Sums are exact, so a result is that of QLinearConv: it is rounded
once, where the unfused operators round more often.
"""

from dataclasses import dataclass

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.conv import Conv
from relayc.dialects.relay.dense import Dense, Matmul
from relayc.dialects.relay.linear import Linear
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.pool import MaxPool
from relayc.dialects.relay.scopes import size_attributes
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.transform import Concatenate, StridedSlice, Transpose
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.graph.fold_scale_axis import is_constant
from relayc.pipelines.graph.numpy_operators import evaluate
from relayc.pipelines.graph.pattern import DFPattern, Match, is_op, wildcard
from relayc.pipelines.graph.reshapes import along_axis, per_channel, reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("FakeQuantizationToInteger")

BYTES = ("int8", "uint8")
WHOLE = 1e-6
"""Relative error of a quantised bias in f32: its number of steps and the step are each rounded to 24 bits."""
MOST_STEPS = 1 << 30
"""Of a bias, so that there is room for the sum."""

_DATA, _ZERO, _SCALE, _SUM = wildcard(), wildcard(), wildcard(), wildcard()
_WIDE = is_op("cast")(_DATA).has_attr({"dtype": "int32"})
_CENTRED = (_WIDE - _ZERO) | _WIDE
_DEQUANTISED = is_op("cast")(_CENTRED).has_attr({"dtype": "float32"}) * _SCALE
_FACTOR, _DIVISOR, _OTHER = wildcard(), wildcard(), wildcard()
_REAL_SUM = is_op("cast")(_SUM).has_attr({"dtype": "float32"})
_SCALED = _REAL_SUM * _FACTOR


_type = TensorType.of


@dataclass(frozen=True)
class Quantised:
    """What a tensor stands for: (data - zero) * scale, with data of 8 bits; a zero of None is 0, a scale of None is 1."""

    data: ir.Value
    zero: ir.Value | None
    scale: ir.Value | None = None

    def has_steps_of(self, other: "Quantised", rw: Rewriter) -> bool:
        """Whether equal numbers stand for equal values in both, as is known."""
        if _type(self.data).dtype != _type(other.data).dtype:
            return False
        pairs = (self.scale, other.scale), (self.zero, other.zero)
        return all(_equal(a, b, rw) for a, b in pairs)


def _equal(a: ir.Value | None, b: ir.Value | None, rw: Rewriter) -> bool:
    if a == b:
        return True
    x, y = (np.zeros(()) if v is None else known(v, rw) for v in (a, b))
    return x is not None and y is not None and x.size == y.size == 1 and x.item() == y.item()


def known(value: ir.Value, rw: Rewriter) -> np.ndarray | None:
    """The elements of a value that constants make; None for any other."""
    found = rw.array(value)
    if found is not None or not is_constant(value):
        return found
    op = value.owner
    operands = [known(v, rw) for v in op.operation.operands]
    results = None if any(v is None for v in operands) or size_attributes(op) else evaluate(op, operands)  # type: ignore[arg-type]
    return results[0] if results is not None else None


def _is_bytes(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and _type(value).dtype in BYTES and _type(value).is_known


def _read(pattern: DFPattern, value: ir.Value, rw: Rewriter) -> Quantised | None:
    match = pattern.match(value, rw.users)
    if match is None or not _is_bytes(match[_DATA]):
        return None
    zero, scale = (match.get(part) for part in (_ZERO, _SCALE))
    return Quantised(match[_DATA], None if zero is None or _is_zero(zero, rw) else zero, scale)


def _is_zero(value: ir.Value, rw: Rewriter) -> bool:
    found = known(value, rw)
    return found is not None and not found.any()


# ---- products -------------------------------------------------------------------------------------------------------------------------


@RULES.on(Conv, Dense, Matmul)
def product(op: Linear, rw: Rewriter) -> Found:
    """A product of dequantised tensors, or of integers that are wider than they have to be -> a product of 8-bit integers."""
    result = _type(op.operation.results[0])
    if result.dtype not in ("float32", "int32") or not result.is_known:
        return None
    is_real = result.dtype == "float32"
    left, right = op.operation.operands
    scaled = _SCALED.match(right, rw.users) if is_real else None
    data = _read(_DEQUANTISED if is_real else _CENTRED, left, rw)
    if data is None or (is_real and scaled is None):
        return None
    weight = known(right if scaled is None else scaled[_SUM], rw)
    total = None if weight is None else _integer_product(op, data, weight, rw)
    if total is None or scaled is None or data.scale is None:
        return total
    axis = op.channel_axis(of_result=True)
    steps = per_channel(scaled[_FACTOR], _type(right).sizes, op.weight_channels(of_result=True).axis)
    if _type(data.scale).num_elements != 1 or steps is None or axis is None:
        return None
    factor = build("multiply", steps, reshape_to(data.scale, ()))
    shaped = reshape_to(factor, ()) if _type(factor).num_elements == 1 else along_axis(factor, axis, result.rank)
    return build("multiply", build("cast", total, dtype="float32"), shaped)


def _integer_product(op: Linear, data: Quantised, weight: np.ndarray, rw: Rewriter) -> ir.Value | None:
    """The product of (data - zero) and a constant weight in s32; None where the operands do not allow it."""
    axis, attrs, byte = op.channel_axis(of_result=True), op.attrs(), np.iinfo(np.int8)
    if weight.dtype != np.int32 or weight.size == 0 or weight.min() < byte.min or weight.max() > byte.max:
        return None
    if axis is None or (data.zero is not None and _type(data.zero).num_elements != 1):
        return None
    if isinstance(op, Conv) and data.zero is not None and any(op.padding):
        zero = known(data.zero, rw)
        if zero is None:
            return None
        attrs["pad_value"] = int(zero.item())
    total = build(op.relay_name, data.data, rw.mod.constant(weight.astype(np.int8)), **{**attrs, "out_dtype": "int32"})
    if data.zero is None:
        return total
    channel = op.weight_channels(of_result=True).axis
    sums = weight.sum(tuple(a for a in range(weight.ndim) if a != channel), dtype=np.int32)
    excess = build("multiply", rw.mod.constant(sums), reshape_to(data.zero, ()))
    return build("subtract", total, along_axis(excess, axis, _type(total).rank))


# ---- what follows them ----------------------------------------------------------------------------------------------------------------


def _scaled_sum(match: Match, value: ir.Value) -> bool:
    """Whether a scaled value is that of a sum of 32 bits by constants."""
    total = match[_SUM]
    return _type(total).dtype == "int32" and _type(total).sizes == _type(value).sizes and is_constant(match[_FACTOR])


@RULES.match(_SCALED + _OTHER)
def bias(match: Match, rw: Rewriter) -> Found:
    """cast(sum) * factor + bias -> cast(sum + n) * factor, where the bias is n * factor for whole numbers n."""
    scaled = match[_SCALED]
    found = known(match[_OTHER], rw)
    factor = known(match[_FACTOR], rw)
    if found is None or factor is None or not rw.used_once(scaled) or not _scaled_sum(match, match.root):
        return None
    wide, step = np.asarray(found, np.float64), np.asarray(factor, np.float64)
    with np.errstate(all="ignore"):
        steps = np.rint(wide / step)
    if not (np.isfinite(steps) & (np.abs(steps) < MOST_STEPS) & (np.abs(steps * step - wide) <= WHOLE * np.abs(wide))).all():
        return None
    total = match[_SUM]
    inner = rw.producer(total, "subtract")
    added = rw.mod.constant(steps.astype(np.int32))
    if inner is not None and rw.used_once(total) and is_constant(inner.rhs):
        total, added = inner.lhs, build("subtract", added, inner.rhs)
    return build("multiply", build("cast", build("add", total, added), dtype="float32"), match[_FACTOR])


@RULES.match(_SCALED / _DIVISOR)
def requantise(match: Match, rw: Rewriter) -> Found:
    """cast(sum) * factor / scale -> cast(sum) * (factor / scale)."""
    if not rw.used_once(match[_SCALED]) or not _scaled_sum(match, match.root) or not is_constant(match[_DIVISOR]):
        return None
    return build("multiply", match[_REAL_SUM], build("divide", match[_FACTOR], match[_DIVISOR]))


_LIMITED = is_op("nn.relu")(_SCALED) | is_op("clip")(_SCALED)


@RULES.match(_LIMITED / _DIVISOR)
def limit(match: Match, rw: Rewriter) -> Found:
    """relu(cast(sum) * factor) / scale -> relu(cast(sum) * factor / scale), and the same for clip; of one positive scale."""
    limited, divisor = match[_LIMITED].owner, known(match[_DIVISOR], rw)
    if divisor is None or divisor.size != 1 or not divisor.item() > 0 or not rw.used_once(match[_LIMITED]):
        return None
    if not _scaled_sum(match, match.root):
        return None
    attrs = {name: value / divisor.item() for name, value in limited.attrs().items()}
    return build(limited.relay_name, build("divide", match[_SCALED], match[_DIVISOR]), **attrs)


_OTHER_REAL_SUM = is_op("cast")(wildcard()).has_attr({"dtype": "float32"})
_OTHER_FACTOR = wildcard()
_TOTAL = _SCALED + _OTHER_REAL_SUM * _OTHER_FACTOR
_RECTIFIED = is_op("nn.relu")(_TOTAL)


@RULES.match((_TOTAL | _RECTIFIED) / _DIVISOR)
def requantise_sum(match: Match, rw: Rewriter) -> Found:
    """(a * factor + b * other) / scale -> a * (factor / scale) + b * (other / scale) for two integers, as QLinearAdd has it; relu stays."""
    total, divisor = match[_TOTAL], known(match[_DIVISOR], rw)
    factors = match[_FACTOR], match[_OTHER_FACTOR]
    if divisor is None or not (divisor > 0).all() or not all(map(is_constant, factors)) or not rw.used_once(total):
        return None
    if _type(total) != _type(match.root) or (_RECTIFIED in match and not rw.used_once(match[_RECTIFIED])):
        return None
    terms = zip((match[_REAL_SUM], match[_OTHER_REAL_SUM]), factors, strict=True)
    left, right = (build("multiply", real, build("divide", factor, match[_DIVISOR])) for real, factor in terms)
    found = build("add", left, right)
    return build("nn.relu", found) if _RECTIFIED in match else found


# ---- movement -------------------------------------------------------------------------------------------------------------------------

_REAL, _STEP, _TARGET_ZERO = wildcard(), wildcard(), wildcard()
_ROUNDED = is_op("round")(_REAL / _STEP)
_QUANTISED = is_op("cast")(is_op("clip")((_ROUNDED + _TARGET_ZERO) | _ROUNDED))


@RULES.match(_QUANTISED)
def movement(match: Match, rw: Rewriter) -> Found:
    """quantise(move(dequantise(x))) -> move(x) with one scale and zero point, for what moves elements or takes the largest of some."""
    if not _is_bytes(match.root):
        return None
    zero = match.get(_TARGET_ZERO)
    target = Quantised(match.root, None if zero is None or _is_zero(zero, rw) else zero, match[_STEP])
    same = _read(_DEQUANTISED, match[_REAL], rw)
    if same is not None:
        return same.data if same.has_steps_of(target, rw) and _type(same.data) == _type(match.root) else None
    op = match[_REAL].owner
    if not isinstance(op, Op) or isinstance(op, Constant) or not _moves(op) or len(op.operation.results) != 1:
        return None
    operands = [_read(_DEQUANTISED, v, rw) for v in op.operation.operands]
    if not operands or any(v is None or not v.has_steps_of(target, rw) for v in operands):
        return None
    return build(op.relay_name, *[v.data for v in operands if v is not None], **op.attrs())


def _moves(op: Op) -> bool:
    """Whether every element of the result is one of the operands', and the same one where all are mapped in order."""
    return op.is_view or isinstance(op, (MaxPool, Concatenate, StridedSlice, Transpose))


@module_pass(opt_level=2, name="FakeQuantizationToInteger")
def fake_quantization_to_integer(mod: IRModule, ctx: PassContext) -> IRModule:
    """Products of dequantised tensors become products of 8-bit integers, with the scales behind them."""
    RULES.apply(mod)
    return mod
