"""Keys: integers that are, compared without a sign, in the order of the elements that they stand for."""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit

_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}
"""The bits of infinity: what is above them is NaN. Element types of floats that can be sorted."""


def bits(value: int, width: int) -> ir.Value:
    """A constant of so many bits, which are those of a number without a sign."""
    return emit.number(value - (1 << width) if value >> (width - 1) else value, ir.IntegerType.get_signless(width))


@dataclass(frozen=True)
class Key:
    """The keys of an element type. All NaN are one, and come after infinity; both zeros are one.

    Attributes:
      dtype: with its sign.
      width: bits of an element, and of a key.
      descending: whether keys are in the opposite order.
    """

    dtype: str
    width: int
    descending: bool

    @property
    def is_known(self) -> bool:
        """Whether elements have keys."""
        return self.dtype in _INFINITY or (self.dtype.startswith(("int", "uint")) and self.width in (8, 16, 32, 64))

    @property
    def is_reversible(self) -> bool:
        """Whether an element can be recovered from its key."""
        return self.dtype not in _INFINITY

    def of(self, value: ir.Value) -> ir.Value:
        """The key of an element."""
        if self.dtype in _INFINITY:
            key = self._of_float(value)
        else:
            key = value if self.dtype.startswith("uint") else emit.arith("xori", value, self._sign)
        return self._turned(key)

    def element(self, key: ir.Value) -> ir.Value:
        """The element of a key that is reversible."""
        key = self._turned(key)
        return key if self.dtype.startswith("uint") else emit.arith("xori", key, self._sign)

    @property
    def _sign(self) -> ir.Value:
        return bits(1 << (self.width - 1), self.width)

    def _turned(self, key: ir.Value) -> ir.Value:
        return emit.arith("xori", key, bits((1 << self.width) - 1, self.width)) if self.descending else key

    def _of_float(self, value: ir.Value) -> ir.Value:
        """Inverts all bits of negative floats, whose bits grow with the magnitude, and the sign of other floats."""
        integer = ir.IntegerType.get_signless(self.width)
        sign, infinity = 1 << (self.width - 1), _INFINITY[self.dtype]
        pattern = emit.create("arith.bitcast", [integer], [value])
        magnitude = emit.arith("andi", pattern, bits(sign - 1, self.width))
        is_negative = emit.compare("slt", pattern, bits(0, self.width))
        flipped = emit.select(is_negative, bits(2 * sign - 1, self.width), bits(sign, self.width))
        key = emit.arith("xori", pattern, flipped)
        key = emit.select(emit.compare("eq", magnitude, bits(0, self.width)), bits(sign, self.width), key)
        return emit.select(emit.compare("ugt", magnitude, bits(infinity, self.width)), bits(sign | infinity | 1, self.width), key)
