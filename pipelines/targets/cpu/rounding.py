"""A conversion of rounded floats to integers becomes one instruction, which rounds to the nearest whole number itself.

    fptosi(minimumf(maximumf(roundeven(%x) + 128, 0), 255))   ->   lrint(minimumf(maximumf(%x, -128), 127)) + 128

Limits that are whole numbers give the same before and after the rounding. A quantised result ends in these operations.
"""

from relayc.dialects.mlir import arith, ir, math
from relayc.dialects.operations import walk
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.number import constant_value
from relayc.pipelines.tir.values import vectors

_LEAST, _MOST = arith.MaximumFOp, arith.MinimumFOp
_WHOLE = 1 << 22
"""Whole numbers up to it, and their sums, are exact in f32."""


def convert_as_rounded(module: ir.Module) -> None:
    """Rewrites such conversions from f32 to i32 in place."""
    for op in walk(module.operation, arith.FPToSIOp):
        source, target = op.in_.type, op.out.type
        if emit.element_of(source) != ir.F32Type.get() or emit.element_of(target) != ir.IntegerType.get_signless(32):
            continue
        limits, value = [], op.in_
        while isinstance(value.owner, (_LEAST, _MOST)) and (limit := _whole(value.owner.rhs)) is not None:
            limits.append((value.owner, limit))
            value = value.owner.lhs
        moved = 0
        if isinstance(value.owner, arith.AddFOp) and {type(owner) for owner, _ in limits} == {_LEAST, _MOST}:
            moved = _whole(value.owner.rhs) or 0
            value = value.owner.lhs if moved else value
        if not isinstance(value.owner, math.RoundEvenOp):
            continue
        value = value.owner.operand
        with ir.InsertionPoint(op), op.operation.location:
            # The conversion of NaN is undefined. Limits that ignore NaN are one instruction each.
            fast = {"fastmath": emit.parsed("#arith.fastmath<nnan>")}
            for owner, limit in reversed(limits):
                name = "arith.maxnumf" if isinstance(owner, _LEAST) else "arith.minnumf"
                value = emit.create(name, [source], [value, emit.number(float(limit - moved), source)], fast)
            found = vectors.intrinsic("llvm.lrint", target, value)
            found = emit.arith("addi", found, emit.number(moved, target)) if moved else found
        op.out.replace_all_uses_with(found)
        op.operation.erase()


def _whole(value: ir.Value) -> int | None:
    """The value of a constant float, scalar or splat, that is a whole number up to `_WHOLE`; None for any other value."""
    number = constant_value(value)
    return int(number) if number is not None and abs(number) <= _WHOLE and number.is_integer() else None
