"""The remainder of a division of floats (C's fmod), exactly, by integer arithmetic: for devices without a function for it.

The mantissa of the dividend is shifted up to the exponent of the divisor bit by bit, and the divisor's mantissa subtracted if it is not
larger: as many steps as the exponents differ. f16, bf16 and f32 are computed in f64, which represents their remainders exactly.
"""

from relayc.dialects.mlir import arith, ir, math
from relayc.dialects.operations import walk
from relayc.pipelines.emission import emit

_MANTISSA, _EXPONENTS = 52, 0x7FF
_IMPLICIT = 1 << _MANTISSA
_MAGNITUDE = (1 << 63) - 1
_INFINITE = _EXPONENTS << _MANTISSA
_NAN = 0x7FF8 << 48


def expand_remainders(module: ir.Module) -> None:
    """Expands arith.remf, on scalars and one-dimensional vectors, in place."""
    with module.context:
        for op in walk(module.operation, arith.RemFOp):
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(_remainder(op.lhs, op.rhs))
            op.operation.erase()


def _remainder(x: ir.Value, y: ir.Value) -> ir.Value:
    if not isinstance(x.type, ir.VectorType):
        return _of_floats(x, y)
    flat = ir.VectorType(x.type)
    elements = []
    for i in range(flat.shape[0]):
        place = {"static_position": ir.DenseI64ArrayAttr.get([i])}
        elements.append(_of_floats(*(emit.create("vector.extract", [flat.element_type], [v], place) for v in (x, y))))
    return emit.create("vector.from_elements", [flat], elements)


def _of_floats(x: ir.Value, y: ir.Value) -> ir.Value:
    type_, f64 = x.type, ir.F64Type.get()
    if type_ == f64:
        return _of_doubles(x, y)
    # Not all devices convert f16 and bf16 to f64 in one step.
    steps = [f64] if isinstance(type_, ir.F32Type) else [ir.F32Type.get(), f64]
    wide = [emit.convert(v, [("arith.extf", step) for step in steps]) for v in (x, y)]
    return emit.convert(_of_doubles(*wide), [("arith.truncf", step) for step in [*reversed(steps[:-1]), type_]])


def _number(value: int) -> ir.Value:
    signed = value - (1 << 64) if value >= 1 << 63 else value
    return emit.number(signed, ir.IntegerType.get_signless(64))


def _parts(magnitude: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Exponent and mantissa m with its highest bit at _MANTISSA, so that the number is m * 2**(exponent + c), for nonzero numbers."""
    exponent = emit.arith("shrui", magnitude, _number(_MANTISSA))
    is_normal = emit.compare("ne", exponent, _number(0))
    fraction = emit.arith("andi", magnitude, _number(_IMPLICIT - 1))
    zeros = math.ctlz(emit.arith("ori", fraction, _number(1)))
    shift = emit.arith("subi", zeros, _number(63 - _MANTISSA))
    normalized = emit.arith("shli", fraction, shift)
    mantissa = emit.select(is_normal, emit.arith("ori", fraction, _number(_IMPLICIT)), normalized)
    return emit.select(is_normal, exponent, emit.arith("subi", _number(1), shift)), mantissa


def _less(m: ir.Value, divisor: ir.Value) -> ir.Value:
    """m, minus the divisor unless it is larger."""
    rest = emit.arith("subi", m, divisor)
    return emit.select(emit.compare("sge", rest, _number(0)), rest, m)


def _of_doubles(x: ir.Value, y: ir.Value) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    bits = [emit.create("arith.bitcast", [i64], [v]) for v in (x, y)]
    sign = emit.arith("andi", bits[0], _number(1 << 63))
    a, b = (emit.arith("andi", v, _number(_MAGNITUDE)) for v in bits)
    (a_exponent, a_mantissa), (b_exponent, b_mantissa) = _parts(a), _parts(b)
    # A smaller dividend is the remainder itself; results for infinities, NaN and a divisor of 0 are replaced below.
    steps = emit.arith("maxsi", emit.arith("subi", a_exponent, b_exponent), _number(0))
    one = emit.index_constant(1)
    count = emit.create("arith.index_cast", [ir.IndexType.get()], [steps])
    loop = emit.serial_loop([emit.index_constant(0), count, one], [a_mantissa])
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(body):
        rest = _less(body.arguments[1], b_mantissa)
        emit.yield_values([emit.arith("shli", rest, _number(1))])
    found = _pack(_less(loop.results[0], b_mantissa), b_exponent)
    found = emit.select(emit.compare("ult", a, b), a, found)
    valid = emit.all_of(
        [emit.compare("ult", a, _number(_INFINITE)), emit.compare("ule", b, _number(_INFINITE)), emit.compare("ne", b, _number(0))]
    )
    found = emit.select(valid, emit.arith("ori", found, sign), _number(_NAN))
    return emit.create("arith.bitcast", [x.type], [found])


def _pack(mantissa: ir.Value, exponent: ir.Value) -> ir.Value:
    """The bits of a number from a mantissa below 2**(_MANTISSA + 1) and an exponent; rounding is never needed."""
    zeros = math.ctlz(emit.arith("ori", mantissa, _number(1)))
    shift = emit.arith("subi", zeros, _number(63 - _MANTISSA))
    # A subnormal number is shifted at most to exponent 1, where it has no implicit bit.
    reach = emit.arith("maxsi", emit.arith("subi", exponent, _number(1)), _number(0))
    moved = emit.arith("minsi", shift, reach)
    back = emit.arith("maxsi", emit.arith("subi", _number(1), exponent), _number(0))
    fraction = emit.arith("shrui", emit.arith("shli", mantissa, moved), back)
    field = emit.arith("subi", emit.arith("maxsi", exponent, _number(1)), moved)
    # The implicit bit in the fraction increments the exponent field.
    field = emit.arith("shli", emit.arith("subi", field, _number(1)), _number(_MANTISSA))
    packed = emit.arith("addi", field, fraction)
    return emit.select(emit.compare("eq", mantissa, _number(0)), _number(0), packed)
