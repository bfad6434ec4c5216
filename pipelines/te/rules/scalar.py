"""Scalar arithmetic by Relay dtype name: selects the arith or math operation of an operator for a type.

Every function takes te scalars (bool is an i8 that holds 0 or 1, integers are signless) and the dtype name that determines their meaning.
Narrow types have constants and conversions only. The rules are ONNX's and numpy's: integer division truncates (ONNX Div), floor_mod has the
divisor's sign, maximum and minimum propagate NaN, comparisons give 0 or 1.
"""

import math as pymath
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from relayc.dialects.mlir import arith, ir, math
from relayc.dialects.relay.narrow import converted, is_narrow_float, wide_dtype
from relayc.dialects.relay.types import element_type, is_narrow, signless_dtype
from relayc.pipelines.te.rules.narrow import narrowed_float, narrowed_integer, widened

Value: TypeAlias = ir.Value
FLOAT_BITS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
_CMP_F = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def is_float(dtype: str) -> bool:
    return dtype in FLOAT_BITS


def is_unsigned(dtype: str) -> bool:
    return dtype == "bool" or dtype.startswith("uint")


def te_element(dtype: str) -> ir.Type:
    """The te element type of a dtype: signless, bool and narrow types as i8."""
    return element_type(signless_dtype(dtype))


def bits(dtype: str) -> int:
    """Width of an integer dtype in bits (8 for bool, 64 for the numbers of strings)."""
    return 8 if dtype == "bool" else 64 if dtype == "string" else int(dtype.lstrip("uint"))


def constant(value: float | int | bool, dtype: str) -> Value:
    """A scalar constant; an unsigned value keeps its bits."""
    type_ = te_element(dtype)
    if is_narrow(dtype):
        return constant(int(converted(np.asarray(value), dtype).view(np.uint8)), "uint8")
    if is_float(dtype):
        return arith.constant(type_, ir.FloatAttr.get(type_, float(value)))
    value, width = int(value), bits(dtype)
    if value >= 1 << (width - 1):
        value -= 1 << width
    return arith.constant(type_, ir.IntegerAttr.get(type_, value))


def limits(dtype: str) -> tuple[float | int, float | int]:
    """Lowest and highest value: infinities for floats."""
    if is_float(dtype):
        return -pymath.inf, pymath.inf
    if dtype == "bool":
        return 0, 1
    width = bits(dtype)
    return (0, (1 << width) - 1) if is_unsigned(dtype) else (-(1 << (width - 1)), (1 << (width - 1)) - 1)


def to_bool(flag: Value) -> Value:
    """i1 -> te bool."""
    return arith.extui(te_element("bool"), flag)


def to_flag(value: Value, dtype: str = "bool") -> Value:
    """A te scalar as i1: whether it is nonzero (true for NaN)."""
    return compare("ne", value, constant(0, dtype), dtype)


def compare(predicate: str, a: Value, b: Value, dtype: str) -> Value:
    """i1 of a PREDICATE b, PREDICATE in eq ne lt le gt ge; with NaN all but ne are false."""
    if is_float(dtype):
        return arith.cmpf(getattr(arith.CmpFPredicate, _CMP_F[predicate].upper()), a, b)
    name = predicate if predicate in ("eq", "ne") else ("u" if is_unsigned(dtype) else "s") + predicate
    return arith.cmpi(getattr(arith.CmpIPredicate, name), a, b)


def both(a: Value, b: Value) -> Value:
    """i1: a and b."""
    return arith.andi(a, b)


def either(a: Value, b: Value) -> Value:
    """i1: a or b."""
    return arith.ori(a, b)


def negated(flag: Value) -> Value:
    """i1: not flag."""
    return arith.xori(flag, arith.constant(flag.type, ir.IntegerAttr.get(flag.type, 1)))


def comes_before(b: Value, a: Value, dtype: str, descending: bool = False) -> Value:
    """i1: whether b comes strictly before a in sorted order. NaN is the largest value."""
    decided = compare("gt" if descending else "lt", b, a, dtype)
    if not is_float(dtype):
        return decided
    first, last = (b, a) if descending else (a, b)
    first_nan, last_nan = (compare("ne", v, v, dtype) for v in (first, last))
    return either(decided, both(first_nan, negated(last_nan)))


def select(flag: Value, a: Value, b: Value) -> Value:
    return arith.select(flag, a, b)


def _pick(float_op: Callable, signed: Callable, unsigned: Callable | None = None) -> Callable[[Value, Value, str], Value]:
    def pick(a: Value, b: Value, dtype: str) -> Value:
        op = float_op if is_float(dtype) else (unsigned or signed) if is_unsigned(dtype) else signed
        return op(a, b)

    return pick


add = _pick(arith.addf, arith.addi)
subtract = _pick(arith.subf, arith.subi)
multiply = _pick(arith.mulf, arith.muli)
divide = _pick(arith.divf, arith.divsi, arith.divui)
remainder = _pick(arith.remf, arith.remsi, arith.remui)
maximum = _pick(arith.maximumf, arith.maxsi, arith.maxui)
minimum = _pick(arith.minimumf, arith.minsi, arith.minui)


def negative(a: Value, dtype: str) -> Value:
    return arith.negf(a) if is_float(dtype) else subtract(constant(0, dtype), a, dtype)


def absolute(a: Value, dtype: str) -> Value:
    if is_float(dtype):
        return math.absf(a)
    return a if is_unsigned(dtype) else math.absi(a)


def convert(value: Value, source: str, target: str, saturate: bool = True, round_mode: str = "up") -> Value:
    """Cast between dtypes as ONNX Cast: float to integer truncates, anything to bool tests for nonzero.

    `saturate` and `round_mode` apply to conversions to narrow floats (see the operator cast).
    """
    if source == target:
        return value
    if is_narrow(source):
        return convert(widened(value, source), wide_dtype(source), target, saturate, round_mode)
    if is_narrow_float(target):
        # For double rounding the first step must round to odd.
        single = _rounded_to_odd(value) if source == "float64" else convert(value, source, "float32")
        return narrowed_float(single, target, saturate, round_mode)
    if is_narrow(target):
        whole = "int32" if is_float(source) else source
        return narrowed_integer(convert(convert(value, source, whole), whole, "int8"), target)
    type_ = te_element(target)
    if target == "bool":
        return to_bool(to_flag(value, source))
    if is_float(source) and is_float(target):
        if FLOAT_BITS[source] < FLOAT_BITS[target]:
            return arith.extf(type_, value)
        if FLOAT_BITS[source] - FLOAT_BITS[target] == 48:
            return convert(_rounded_to_odd(value), "float32", target)
        if FLOAT_BITS[source] > FLOAT_BITS[target]:
            return arith.truncf(type_, value)
        return convert(convert(value, source, "float32"), "float32", target)  # no operation converts the two 16-bit types
    if is_float(target):
        return (arith.uitofp if is_unsigned(source) else arith.sitofp)(type_, value)
    if is_float(source):
        # Through 64 bits: narrower conversions of values out of range are undefined in LLVM, while numpy wraps them.
        wide = ir.IntegerType.get_signless(64)
        if target == "uint64":
            return arith.fptoui(wide, value)
        value = arith.fptosi(wide if bits(target) > 32 or target == "uint32" else ir.IntegerType.get_signless(32), value)
        return value if value.type == type_ else arith.trunci(type_, value)
    if bits(source) > bits(target):
        return arith.trunci(type_, value)
    if bits(source) < bits(target):
        return (arith.extui if is_unsigned(source) else arith.extsi)(type_, value)
    return value


def _rounded_to_odd(value: Value) -> Value:
    """Rounds f64 to f32 to odd (the inexact result with its last bit set): rounding that again to 16 bits is correct.

    Hardware and LLVM convert f64 to 16-bit floats through library functions that not every system has.
    """
    near = convert(value, "float64", "float32")
    back = convert(near, "float32", "float64")
    bits_ = arith.bitcast(te_element("int32"), near)
    one = constant(1, "int32")
    too_far = compare("gt", absolute(back, "float64"), absolute(value, "float64"), "float64")
    odd = arith.ori(select(too_far, subtract(bits_, one, "int32"), bits_), one)
    return arith.bitcast(te_element("float32"), select(compare("ne", back, value, "float64"), odd, bits_))
