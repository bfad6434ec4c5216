"""Conversions that PTX has and other dialects have not."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import Thread

_LOW_BITS = 13
"""Bits of the mantissa of an f32 that a tf32 does not have."""
_NAN = 0x7FFFFFFF
_INFINITY = 0x7F800000


@instruction("nvvm.convert.float.to.tf32")
def to_tf32(op: ir.Operation, thread: Thread) -> Sequence[ir.Value]:
    """cvt.rna.tf32.f32: rounds to nearest, ties away from zero; every NaN becomes the canonical NaN of PTX."""
    if "rna" not in str(op.attributes["rnd"]):
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected rounding to the nearest, ties away, found {op}")
    i32 = ir.IntegerType.get_signless(32)
    bits = emit.create("arith.bitcast", [i32], [op.operands[0]])
    rounded = emit.arith("addi", bits, emit.number(1 << (_LOW_BITS - 1), i32))
    rounded = emit.arith("andi", rounded, emit.number(-(1 << _LOW_BITS), i32))
    magnitude = emit.arith("andi", bits, emit.number(_NAN, i32))
    is_nan = emit.compare("ugt", magnitude, emit.number(_INFINITY, i32))
    return [emit.select(is_nan, emit.number(_NAN, i32), rounded)]
