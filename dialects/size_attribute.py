"""Sizes, integers or expressions over symbols, as MLIR attributes."""

from relayc.dialects.mlir import ir
from relayc.symbolic import Dim, Size, parse


def in_64_bits(number: int) -> int:
    """Raises OverflowError."""
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError
    return int(number)


def i64_attribute(number: int) -> ir.IntegerAttr:
    """Raises OverflowError for a number that does not fit an i64."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), in_64_bits(number))


def size_attribute(size: Size) -> ir.Attribute:
    """A size as an attribute: an integer of 64 bits, or the text of an expression."""
    return ir.StringAttr.get(str(size)) if isinstance(size, Dim) else i64_attribute(size)


def read_size_attribute(attribute: ir.Attribute) -> Size:
    """The size that an attribute holds. Raises TypeError or ValueError."""
    return parse(attribute.value) if isinstance(attribute, ir.StringAttr) else ir.IntegerAttr(attribute).value
