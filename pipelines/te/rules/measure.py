"""Numbers that rules compute from sizes: at compile time if the sizes are static, otherwise in code, in float64 as Python would."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from relayc.dialects.mlir import arith, math
from relayc.operators import Arithmetic
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, index_constant
from relayc.symbolic import Size

F64 = "float64"
_OPERATIONS = {"add": arith.addf, "subtract": arith.subf, "multiply": arith.mulf, "divide": arith.divf}


@dataclass(frozen=True)
class Computed(Arithmetic["Computed"]):
    """A number that is computed where a body uses it: `emit` emits it as a scalar of float64."""

    emit: Callable[[], Value]

    def _apply(self, name: str, *operands: "Measure") -> "Computed":
        a, b = operands
        return Computed(lambda: _OPERATIONS[name](scalar_of(a, F64), scalar_of(b, F64)))


@dataclass(frozen=True)
class Condition:
    """A comparison that is computed where a body uses it: `emit` emits it as an i1."""

    emit: Callable[[], Value]


Measure: TypeAlias = float | Computed


def measure(size: Size) -> Measure:
    """A size as a number for arithmetic."""
    if isinstance(size, int):
        return size
    # Via 32 bits: conversions of 64-bit integers have no vector form before AVX-512.
    as_int = lambda: arith.index_cast(scalar.te_element("int32"), index_constant(size))  # noqa: E731 (an argument, not a definition)
    return Computed(lambda: scalar.convert(as_int(), "int32", F64))


def absolute(value: Measure) -> Measure:
    """|value|."""
    return Computed(lambda: math.absf(value.emit())) if isinstance(value, Computed) else abs(value)


def less(a: Measure, b: Measure) -> bool | Condition:
    """a < b."""
    if isinstance(a, Computed) or isinstance(b, Computed):
        return Condition(lambda: scalar.compare("lt", scalar_of(a, F64), scalar_of(b, F64), F64))
    return a < b


def where(condition: bool | Condition, a: Measure, b: Measure) -> Measure:
    """a where the condition holds, otherwise b."""
    if isinstance(condition, bool) or a is b:
        return a if condition else b
    return Computed(lambda: scalar.select(condition.emit(), scalar_of(a, F64), scalar_of(b, F64)))


def scalar_of(value: Measure, dtype: str) -> Value:
    """A number as a scalar of a float dtype."""
    return scalar.convert(value.emit(), F64, dtype) if isinstance(value, Computed) else scalar.constant(value, dtype)
