"""What a target has no instruction for, expanded: without this LLVM would call a function of the C library or of libgcc for each element.

Fused multiply-adds become a product and a sum where there is no FMA; conversions between f16 and f32 become integer arithmetic where there
is no F16C.
"""

from relayc.dialects.mlir import arith, ir
from relayc.dialects.operations import find_operations
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.emit import element_of, like
from relayc.pipelines.emission.index import Index
from relayc.pipelines.emission.number import Bits, Number
from relayc.pipelines.targets.cpu.target import CpuTarget
from relayc.pipelines.tir.values import vectors

_FMA = ("math.fma", "vector.fma")
_CONVERSIONS = ("arith.extf", "arith.truncf")
_LOOK_UP = "vector.gather"

_REGISTER = 64
_PERMUTE = "llvm.x86.avx512.vpermi2var.qi.512"
_SHUFFLE = "llvm.x86.avx2.pshuf.b"
_FEWEST = 8
"""Elements from which pshufb takes fewer instructions than loads do."""

# Of f16 in bits: sign, exponent of infinity. Of f32: what stands for the same; the exponents of the least number that is infinite in f16
# and of the least normal one.
_SIGN, _INFINITE = 0x8000, 0x7C00
_INFINITE_F32, _TOO_LARGE_F32, _NORMAL_F32 = 0xFF << 23, (127 + 16) << 23, (127 - 14) << 23


def expand_for(module: ir.Module, target: CpuTarget) -> None:
    """Expands in place what the target lacks instructions for. bf16 and f16 must not be extended to f64 in one step."""
    lacking = (_LOOK_UP, *(() if target.has_fma else _FMA), *(() if target.has_f16_conversion else _CONVERSIONS))

    def is_lacking(op: ir.Operation) -> bool:
        return op.name in lacking and (op.name in (*_FMA, _LOOK_UP) or _is_f16(op.operands[0].type) or _is_f16(op.results[0].type))

    with module.context:
        for op in find_operations(module.operation, is_lacking):
            with op.location, ir.InsertionPoint(op):
                found_value = _looked_up(op, target) if op.name == _LOOK_UP else _expanded(op)
                op.results[0].replace_all_uses_with(found_value)
            op.erase()


def _is_f16(type_: ir.Type) -> bool:
    return isinstance(element_of(type_), ir.F16Type)


def _expanded(op: ir.Operation) -> ir.Value:
    if op.name in _FMA:
        a, b, c = (Number(v) for v in op.operands)
        return (a * b + c).value
    if op.name == "arith.extf":
        return _extended(op.operands[0]).value
    return _truncated(Number(op.operands[0]), op.results[0].type)


def _looked_up(op: ir.Operation, target: CpuTarget) -> ir.Value:
    """Elements of a table of 256 bytes: AVX512-VBMI holds the table in four registers, AVX2 in sixteen parts of 16 bytes; without
    them each element is a load of its own."""
    buffer, offsets = op.operands[0], op.operands[2]
    width, byte = offsets.type.shape[0], buffer.type.element_type
    permutes = target.has("avx512vbmi") and target.vector_bytes == _REGISTER
    lanes = _REGISTER if permutes else _REGISTER // 2
    if width > _REGISTER or not (permutes or (target.has("avx2") and width >= _FEWEST)):
        places = [vectors.extract(offsets, i) for i in range(width)]
        return vectors.from_elements([emit.create("memref.load", [byte], [buffer, at]) for at in places])
    at = emit.create("arith.index_cast", [emit.vector_of(width, byte)], [offsets])
    parts = []
    for first in range(0, width, lanes):
        part = vectors.shuffle(at, at, [min(i, width - 1) for i in range(first, first + lanes)])
        found = (_permuted if permutes else _of_sixteen)(buffer, part)
        parts.append(vectors.shuffle(found, found, range(min(lanes, width - first))))
    return parts[0] if len(parts) == 1 else vectors.shuffle(parts[0], parts[1], range(width))


def _permuted(buffer: ir.Value, at: ir.Value) -> ir.Value:
    """The low seven bits choose from two registers, the sign from the two halves of the table."""
    quarters = [vectors.load(buffer, Index(start), _REGISTER) for start in range(0, 256, _REGISTER)]
    low, high = (vectors.intrinsic(_PERMUTE, at.type, a, at, b) for a, b in (quarters[:2], quarters[2:]))
    return emit.select(emit.compare("slt", at, emit.zero(at.type)), high, low)


def _of_sixteen(buffer: ir.Value, at: ir.Value) -> ir.Value:
    """The low four bits choose from each sixteenth of the table, the others, moved to the sign one after the other, from these results."""
    lanes, word = at.type.shape[0], ir.IntegerType.get_signless(16)
    low = emit.arith("andi", at, emit.number(15, at.type))
    found = []
    for start in range(0, 256, 16):
        sixteen = vectors.load(buffer, Index(start), 16)
        found.append(vectors.intrinsic(_SHUFFLE, at.type, vectors.shuffle(sixteen, sixteen, [i % 16 for i in range(lanes)]), low))
    words = vectors.bitcast(at, word)
    for bit in (4, 5, 6, 7):
        moved = vectors.bitcast(emit.arith("shli", words, emit.number(7 - bit, words.type)), at.type.element_type)
        chosen = emit.compare("slt", moved, emit.zero(at.type))
        found = [emit.select(chosen, b, a) for a, b in zip(found[::2], found[1::2], strict=True)]
    return found[0]


def _extended(value: ir.Value) -> Number:
    """f16 to f32: exponent and mantissa in their new places are the number times 2**-112, subnormal ones included."""
    bits = Bits(arith.bitcast(like(value.type, ir.IntegerType.get_signless(16)), value)).widen(32)
    sign, magnitude = bits & _SIGN, bits & (_SIGN - 1)
    finite = ((magnitude << 13).number() * 2.0**112).bits()
    other = (magnitude << 13) | _INFINITE_F32
    return (_select(magnitude.at_least(_INFINITE), other, finite) | (sign << 16)).number()


def _truncated(x: Number, type_: ir.Type) -> ir.Value:
    """f32 to f16, rounded to nearest, ties to even; NaN stays NaN."""
    bits = x.bits()
    magnitude = bits & 0x7FFFFFFF
    # Half an ulp of the result, less one where the bit above is even; a carry moves the exponent on, up to that of infinity.
    normal = (magnitude + ((magnitude >> 13) & 1) + 0xFFF - ((127 - 15) << 23)) >> 13
    # Added to 1/2 a number below 2**-14 is rounded to a multiple of 2**-24, which is the last place of a subnormal one.
    half = 126 << 23
    subnormal = (magnitude.number() + 0.5).bits() - half
    infinite = Bits(emit.number(_INFINITE, magnitude.value.type))
    special = _select(magnitude.at_least(_INFINITE_F32 + 1), Bits(emit.number(_INFINITE | 0x200, magnitude.value.type)), infinite)
    found = _select(magnitude.at_least(_TOO_LARGE_F32), special, _select(magnitude.at_least(_NORMAL_F32), normal, subnormal))
    return arith.bitcast(type_, (found | ((bits >> 16) & _SIGN)).narrow(16).value)


def _select(flag: ir.Value, a: Bits, b: Bits) -> Bits:
    return Bits(arith.select(flag, a.value, b.value))
