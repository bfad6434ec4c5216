"""exp as softmax needs it: of vectors of numbers that are not positive.

Fewer operations than what ExpandMath makes of math.exp: no bound above, one constant for ln(2), a polynomial of one degree less.
"""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit

LOG2E, LN2 = 1.4426950408889634, 0.6931471805599453
LEAST = -88.0
"""Here and below the result is 0."""
MAGIC = 1.5 * 2.0**23 + 127
"""Adding this to a number rounds it to an integer; the low bits then hold that plus the bias of the exponent."""
TERMS = (0.4999923149447287, 0.1666711471506030, 0.0418901572126499, 0.008312512951008244)
"""Minimax fit of (e**r - 1 - r) / r**2 for |r| <= ln(2) / 2: e**r errs by 1.05e-7 of itself."""


def exp_below_zero(x: ir.Value) -> ir.Value:
    """e**x of a vector of f32 with x <= 0 (also -inf, which gives 0; NaN gives NaN), within 2.5e-7 + 5e-9 * |x| of itself.

    Scalars, and other types than f32, get math.exp.
    """
    type_ = x.type
    if not emit.is_vector(x) or not isinstance(type_.element_type, ir.F32Type):
        return emit.create("math.exp", [type_], [x])
    bits = emit.like(type_, ir.IntegerType.get_signless(32))

    def number(value: float) -> ir.Value:
        return emit.number(value, type_)

    least = number(LEAST)
    x = emit.select(emit.compare("ogt", least, x), least, x)  # x if it is NaN
    shifted = emit.multiply_add(x, number(LOG2E), number(MAGIC))
    exponent = emit.arith("subf", shifted, number(MAGIC))
    rest = emit.multiply_add(exponent, number(-LN2), x)
    *terms, last = TERMS
    result = number(last)
    for term in (*terms[::-1], 1.0, 1.0):
        result = emit.multiply_add(result, rest, number(term))
    count = emit.number(23, bits)
    power = emit.arith("shli", emit.create("arith.bitcast", [bits], [shifted]), count)
    return emit.arith("mulf", result, emit.create("arith.bitcast", [type_], [power]))
