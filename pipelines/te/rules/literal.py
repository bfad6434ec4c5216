"""Compile-time values of operands, and index arithmetic on scalars."""

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.elements import dense_array, uniform_element
from relayc.dialects.relay.structure import Constant
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, index_constant
from relayc.symbolic import Size

INDEX_DTYPE = "int64"
"""How `scalar` reads a value of index type: as a signed integer."""


def literal(op: Op, index: int) -> float | int | bool | None:
    """The value of operand `index` if it is a uniform constant in the IR; otherwise None."""
    owner = op.operation.operands[index].owner
    constant = owner.opview if isinstance(owner, ir.Operation) else owner
    if not isinstance(constant, Constant) or constant.key is not None:
        return None
    return uniform_element(dense_array(constant.attributes["value"]))


def index_of(value: Value, dtype: str) -> Value:
    """An integer scalar as an index."""
    cast = arith.index_castui if scalar.is_unsigned(dtype) else arith.index_cast
    return cast(ir.IndexType.get(), value)


def index_of_float(whole: Value) -> Value:
    """An integral float within int32 as an index."""
    return arith.index_cast(ir.IndexType.get(), arith.fptosi(scalar.te_element("int32"), whole))


def less(a: Value, b: Value) -> Value:
    """i1: a < b, of two indices."""
    return scalar.compare("lt", a, b, INDEX_DTYPE)


def divide(a: Value, b: Value) -> Value:
    """a // b, of two nonnegative indices; a divisor of 0 counts as 1."""
    return arith.divui(a, arith.maxui(b, index_constant(1)))


def equal(a: Value, b: Value) -> Value:
    """i1: a = b, of two indices."""
    return scalar.compare("eq", a, b, INDEX_DTYPE)


def integer_of(index: Value, dtype: str) -> Value:
    """An index as a scalar of any numeric dtype."""
    wide = arith.index_cast(scalar.te_element(INDEX_DTYPE), index)
    return scalar.convert(wide, INDEX_DTYPE, dtype)


def number(size: Size, dtype: str) -> Value:
    """A size as a scalar of any numeric dtype."""
    return scalar.constant(size, dtype) if isinstance(size, int) else integer_of(index_constant(size), dtype)


def is_within(index: Value, size: Size) -> Value:
    """i1: 0 <= index < size, by one unsigned comparison, in which negative numbers are large."""
    return arith.cmpi(arith.CmpIPredicate.ult, index, index_constant(size))


def clamped(index: Value, size: Size) -> Value:
    """The index clipped to [0, size)."""
    return arith.minsi(arith.maxsi(index, index_constant(0)), index_constant(size - 1))


def position(value: Value, dtype: str, size: Size) -> Value:
    """An element of an index tensor as a position in an axis of `size`: negative ones count from the end, others are clipped."""
    index = index_of(value, dtype)
    if not scalar.is_unsigned(dtype):
        from_end = arith.addi(index, index_constant(size))
        index = scalar.select(scalar.compare("lt", index, index_constant(0), INDEX_DTYPE), from_end, index)
    return clamped(index, size)
