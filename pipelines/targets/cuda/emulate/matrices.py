"""ldmatrix and mma.sync: operations of a whole warp on fragments of matrices (PTX ISA, "Warp Level Matrix Instructions").

A matrix of ldmatrix has eight rows of 16 bytes, whose addresses eight lanes give; lane l gets word l % 4 of row l / 4, or, transposed, the
16-bit elements (2 * (l % 4), l / 4) and the one below.

mma.sync multiplies 16 rows of A by 8 columns of B, both 32 bytes deep. Word w of row r of A is word r / 8 + 2 * (w / 4) of lane
4 * (r % 8) + w % 4; word w of column n of B is word w / 4 of lane 4 * n + w % 4; lane l has the sums of rows l / 4 and l / 4 + 8 in columns
2 * (l % 4) and 2 * (l % 4) + 1. Products are exact, as on the device. Sums are rounded to f32 at every step of the depth; the device does
not guarantee this: it may add several products before it rounds.
"""

import re
from collections.abc import Sequence

from relayc.dialects.mlir import func, ir
from relayc.dialects.operations import keyword_of
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.pointers import at, load, word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import READS, WaitingThread

_WORDS, _ROWS = 4, 8
"""Of four bytes in 16; rows of a matrix of ldmatrix, and columns of B."""
_ROW_BYTES = 16
_SLOT = 8
"""Bytes from one value that a lane leaves to the next."""


@instruction("nvvm.ldmatrix", waits=True)
def load_matrices(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """1, 2 or 4 matrices of 8 x 8 elements of 16 bits."""
    if "m = 8, n = 8" not in str(op.attributes["shape"]) or "b16" not in str(op.attributes["eltType"]):
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected ldmatrix of 8 x 8 elements of 16 bits, found {op}")
    count = ir.IntegerAttr(op.attributes["num"]).value
    if thread.checks_races:
        gives = emit.compare("ult", thread.lane, word(count * _ROWS))
        thread.use_shared(op, op.operands[0], emit.select(gives, word(_ROW_BYTES), word(0)), READS)
    lanes = thread.exchange(op, [op.operands[0]])
    transposes = "col" in str(op.attributes["layout"])
    group, within = (emit.arith(name, thread.lane, word(_WORDS)) for name in ("divui", "remui"))
    i32 = ir.IntegerType.get_signless(32)
    found = []
    for number in range(count):
        first = word(number * _ROWS)
        if not transposes:
            row = lanes.read(0, emit.arith("addi", first, group))
            found.append(load(at(row, emit.arith("muli", within, word(4))), i32))
            continue
        halves = []
        for i in range(2):
            row = lanes.read(0, emit.arith("addi", emit.arith("addi", first, word(i)), emit.arith("muli", within, word(2))))
            half = load(at(row, emit.arith("muli", group, word(2))), ir.IntegerType.get_signless(16))
            halves.append(emit.create("arith.extui", [i32], [half]))
        found.append(emit.arith("ori", halves[0], emit.arith("shli", halves[1], emit.number(16, i32))))
    return [found[0] if len(found) == 1 else emit.struct(op.results[0].type, found)]


@instruction("nvvm.mma.sync", waits=True)
def multiply_add(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """16 x 8 sums of f16, bf16, tf32 or 8-bit integers, 32 bytes deep."""
    a, b = (_kind(op, f"multiplicand{name}PtxType") for name in "AB")
    bits, (rows, columns, depth) = _BITS.get(a, 0), map(int, re.findall(r"\d+", str(op.attributes["shape"])))
    if b not in _BITS or (rows, columns, depth * bits) != (16, 8, 256) or str(op.operands[6].type) not in ("f32", "i32"):
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected mma.sync of 16 x 8, 32 bytes deep, found {op}")
    i32 = ir.IntegerType.get_signless(32)
    words = [v if v.type == i32 else emit.create("llvm.bitcast", [i32], [v]) for v in list(op.operands)[:6]]
    sums = list(op.operands)[6:]
    lanes = thread.exchange(op, words)
    group, within = (emit.arith(name, thread.lane, word(_WORDS)) for name in ("divui", "remui"))
    columns_of = [emit.arith("addi", emit.arith("muli", within, word(2)), word(i)) for i in range(2)]
    pointers = [
        lanes.pointer(emit.arith("addi", emit.arith("muli", line, word(_WORDS)), word(i)))
        for line in (group, *columns_of)
        for i in range(_WORDS)
    ]
    name = f"__relayc_cuda.mma.{a}.{b}"
    function = thread.function(name, _multiply_add_text(name, a, b))
    call = func.CallOp([v.type for v in sums], ir.FlatSymbolRefAttr.get(function), [*pointers, *sums])
    return [emit.struct(op.results[0].type, list(call.results))]


_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8}
_FLOATS = {"f16": "f16", "bf16": "bf16", "tf32": "f32"}


def _kind(op: ir.Operation, attribute: str) -> str:
    """The PTX type of an operand; f16 unless the operation states it."""
    return keyword_of(op, attribute) if attribute in op.attributes else "f16"


def _multiply_add_text(name: str, a: str, b: str) -> str:
    """A function that returns the new sums, given the four lanes that have a row of A and the row eight below it, the four lanes of each of
    two columns of B, and four sums."""
    pointers = ", ".join(f"%{line}{i}: !llvm.ptr" for line in "abd" for i in range(_WORDS))
    is_float = a in _FLOATS
    type_ = "f32" if is_float else "i32"
    sums = [f"%c{i}" for i in range(4)]
    count = 32 // _BITS[a]
    lines = [f"func.func private @{name}({pointers}, {', '.join(f'{s}: {type_}' for s in sums)}) -> ({', '.join([type_] * 4)})"]
    lines += ["    attributes {no_inline} {", "  %cut = arith.constant -8192 : i32"]
    fresh = iter(range(1 << 20))

    def value(text: str) -> str:
        made = f"%v{next(fresh)}"
        lines.append(f"  {made} = {text}")
        return made

    def elements(line: str, at_word: int, register: int, kind: str) -> list[str]:
        """The elements of a word that a lane left, as the type of the sums."""
        place = value(f"llvm.getelementptr %{line}{at_word}[{register * _SLOT}] : (!llvm.ptr) -> !llvm.ptr, i8")
        if kind == "tf32":  # bits that a tf32 does not have do not count
            bits = value(f"llvm.load {place} : !llvm.ptr -> i32")
            return [value(f"arith.bitcast {value(f'arith.andi {bits}, %cut : i32')} : i32 to f32")]
        narrow = _FLOATS.get(kind, "i8")
        vector = value(f"llvm.load {place} {{alignment = 4 : i64}} : !llvm.ptr -> vector<{count}x{narrow}>")
        extension = "arith.extf" if is_float else "arith.extsi" if kind == "s8" else "arith.extui"
        wide = value(f"{extension} {vector} : vector<{count}x{narrow}> to vector<{count}x{type_}>")
        return [value(f"vector.extract {wide}[{i}] : {type_} from vector<{count}x{type_}>") for i in range(count)]

    for at_word in range(2 * _WORDS):
        half, lane = divmod(at_word, _WORDS)
        rows = [elements("a", lane, 2 * half + i, a) for i in range(2)]
        columns = [elements(line, lane, 4 + half, b) for line in "bd"]
        for k in range(count):
            for i in range(4):
                x, y = rows[i // 2][k], columns[i % 2][k]
                if is_float:
                    sums[i] = value(f"math.fma {x}, {y}, {sums[i]} : f32")
                else:
                    sums[i] = value(f"arith.addi {value(f'arith.muli {x}, {y} : i32')}, {sums[i]} : i32")
    lines += [f"  return {', '.join(sums)} : {', '.join([type_] * 4)}", "}"]
    return "\n".join(lines)
