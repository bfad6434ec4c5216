"""Floating-point arithmetic on scalars and vectors alike, with Python's operators.

A `Number` wraps an MLIR value of type f32, f64 or a vector of them; its operators emit arith operations at the ambient insertion point. A
Python number is a constant, splat over the vector. Sums and products have the `contract` flag: LLVM contracts them to fused multiply-adds
if the target has these, so results here must not depend on whether `a * b + c` is rounded once or twice.
"""

import math as pymath
import struct
from collections.abc import Callable, Sequence
from typing import Union

from relayc.dialects.mlir import arith, ir, math
from relayc.operators import Arithmetic, forward
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.emit import element_of, like

Operand = Union["Number", float]
_OPERATIONS = {"add": arith.addf, "subtract": arith.subf, "multiply": arith.mulf, "divide": arith.divf}


def contract() -> ir.Attribute:
    """The fast-math flag that permits contraction of a product and a sum."""
    return ir.Attribute.parse("#arith.fastmath<contract>")


def constant_value(value: ir.Value) -> float | None:
    """The value of a constant float, scalar or splat; None for any other value."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


class Bits:
    """The bits of a Number, as signless integers of its width."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    def _apply(self, name: str, _: "Bits", other: "Bits | int") -> "Bits":
        return Bits(getattr(arith, name)(self.value, other.value if isinstance(other, Bits) else emit.number(other, self.value.type)))

    __add__: Callable[["Bits", "Bits | int"], "Bits"] = forward("addi")
    __sub__: Callable[["Bits", "Bits | int"], "Bits"] = forward("subi")
    __and__: Callable[["Bits", "Bits | int"], "Bits"] = forward("andi")
    __or__: Callable[["Bits", "Bits | int"], "Bits"] = forward("ori")
    __xor__: Callable[["Bits", "Bits | int"], "Bits"] = forward("xori")
    __lshift__: Callable[["Bits", int], "Bits"] = forward("shli")
    __rshift__: Callable[["Bits", int], "Bits"] = forward("shrui")  # logical: zeros come in

    def is_nonzero(self) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.ne, self.value, emit.number(0, self.value.type))

    def at_least(self, low: int) -> ir.Value:
        """i1: whether the bits, as an unsigned number, are at least `low`."""
        return arith.cmpi(arith.CmpIPredicate.uge, self.value, emit.number(low, self.value.type))

    def equals(self, value: int) -> ir.Value:
        """i1: whether the bits equal `value`."""
        return arith.cmpi(arith.CmpIPredicate.eq, self.value, emit.number(value, self.value.type))

    def widen(self, width: int) -> "Bits":
        """Zero-extended to `width` bits."""
        return Bits(arith.extui(like(self.value.type, ir.IntegerType.get_signless(width)), self.value))

    def narrow(self, width: int) -> "Bits":
        """The low `width` bits."""
        return Bits(arith.trunci(like(self.value.type, ir.IntegerType.get_signless(width)), self.value))

    @property
    def _float(self) -> ir.Type:
        return like(self.value.type, ir.F64Type.get() if element_of(self.value.type).width == 64 else ir.F32Type.get())

    def number(self) -> "Number":
        """The float of these bits."""
        return Number(arith.bitcast(self._float, self.value))

    def signed_number(self) -> "Number":
        """The bits, as a signed number, converted to a float of this width."""
        return Number(arith.sitofp(self._float, self.value))


class Number(Arithmetic["Number"]):
    """An f32 or f64, or a vector of them."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def is_double(self) -> bool:
        return element_of(self.value.type).width == 64

    def of(self, other: Operand) -> "Number":
        """`other` as a Number of this type."""
        return other if isinstance(other, Number) else Number(emit.number(other, self.value.type))

    def _apply(self, name: str, *operands: Operand) -> "Number":
        return Number(_OPERATIONS[name](*(self.of(operand).value for operand in operands), fastmath=contract()))

    def compare(self, predicate: str, other: Operand) -> ir.Value:
        """i1 of a comparison, `predicate` named as in arith.cmpf (olt, oeq, uno, ...)."""
        return arith.cmpf(getattr(arith.CmpFPredicate, predicate.upper()), self.value, self.of(other).value)

    def abs(self) -> "Number":
        return Number(math.absf(self.value))

    def sqrt(self) -> "Number":
        return Number(math.sqrt(self.value))

    def floor(self) -> "Number":
        return Number(math.floor(self.value))

    def with_sign_of(self, other: "Number") -> "Number":
        return Number(math.copysign(self.value, other.value))

    def at_least(self, low: float) -> "Number":
        """The larger of this and a constant; NaN stays NaN. One instruction on CPUs whose max returns its second operand for NaN."""
        bound = self.of(low)
        return select(bound.compare("ogt", self), bound, self)

    def at_most(self, high: float) -> "Number":
        """The smaller of this and a constant; NaN stays NaN."""
        bound = self.of(high)
        return select(bound.compare("olt", self), bound, self)

    def bits(self) -> Bits:
        width = element_of(self.value.type).width
        return Bits(arith.bitcast(like(self.value.type, ir.IntegerType.get_signless(width)), self.value))

    def double(self) -> "Number":
        return Number(arith.extf(like(self.value.type, ir.F64Type.get()), self.value))

    def single(self) -> "Number":
        return Number(arith.truncf(like(self.value.type, ir.F32Type.get()), self.value))


def select(flag: ir.Value, a: Operand, b: Operand) -> Number:
    """`a` where the flag is set, otherwise `b`; one of the two must be a Number."""
    number = a if isinstance(a, Number) else b
    assert isinstance(number, Number), "one of the two is a Number"
    return Number(arith.select(flag, number.of(a).value, number.of(b).value))


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """The sum of coefficients[i] * x**i by Horner's rule."""
    result = x.of(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def float_bits(value: float, width: int) -> int:
    """Bits of a float of `width` bits as a signed integer."""
    return struct.unpack("<q" if width == 64 else "<i", struct.pack("<d" if width == 64 else "<f", value))[0]


INF, NAN = pymath.inf, pymath.nan
