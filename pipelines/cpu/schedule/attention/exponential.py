"""exp as softmax needs it: of vectors of numbers that are not positive.

Fewer operations than what ExpandMath makes of math.exp: no bound above, one constant for ln(2), a polynomial of one degree less.
"""

from relayc.dialects.mlir import ir
from relayc.pipelines.tir import emit

Value = ir.Value

LOG2E, LN2 = 1.4426950408889634, 0.6931471805599453
LEAST = -88.0
"""Here and below the result is 0."""
MAGIC = 1.5 * 2.0**23 + 127
"""Adding this to a number rounds it to an integer; the low bits then hold that plus the bias of the exponent."""
TERMS = (0.4999923149447287, 0.1666711471506030, 0.0418901572126499, 0.008312512951008244)
"""Minimax fit of (e**r - 1 - r) / r**2 for |r| <= ln(2) / 2: e**r errs by 1.05e-7 of itself."""


def exp_below_zero(x: Value) -> Value:
    """e**x of a vector of f32 with x <= 0 (also -inf, which gives 0; NaN gives NaN), within 2.5e-7 + 5e-9 * |x| of itself.

    Scalars, and other types than f32, get math.exp.
    """
    type_ = x.type
    if not emit.is_vector(x) or not isinstance(type_.element_type, ir.F32Type):
        return emit.create("math.exp", [type_], [x])
    bits = emit.vector_of(type_.shape[0], ir.IntegerType.get_signless(32))

    def number(value: float) -> Value:
        return emit.constant(ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(type_.element_type, value)), type_)

    def fma(a: Value, b: Value, c: Value) -> Value:
        return emit.create("vector.fma", [type_], [a, b, c])

    least = number(LEAST)
    greater = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)}  # ogt: x where it is NaN
    flags = emit.create("arith.cmpf", [emit.vector_of(type_.shape[0], ir.IntegerType.get_signless(1))], [least, x], greater)
    x = emit.create("arith.select", [type_], [flags, least, x])
    shifted = fma(x, number(LOG2E), number(MAGIC))
    exponent = emit.create("arith.subf", [type_], [shifted, number(MAGIC)])
    rest = fma(exponent, number(-LN2), x)
    *terms, last = TERMS
    result = number(last)
    for term in (*terms[::-1], 1.0, 1.0):
        result = fma(result, rest, number(term))
    count = emit.constant(ir.DenseElementsAttr.get_splat(bits, ir.IntegerAttr.get(bits.element_type, 23)), bits)
    power = emit.create("arith.shli", [bits], [emit.create("arith.bitcast", [bits], [shifted]), count])
    return emit.create("arith.mulf", [type_], [result, emit.create("arith.bitcast", [type_], [power])])
