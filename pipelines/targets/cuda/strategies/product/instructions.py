"""Instructions of warps on tensor cores as operations: mma.sync, and the matrix loads that feed it.

The PTX ISA specifies which lane holds which element, in "Matrix Fragments for mma.m16n8k8", "m16n8k16" and "m16n8k32". In words of
four bytes the fragments of all element types are the same: a step reads 32 bytes of the depth, word `w` of row `r` of A is in lane
(r % 8) * 4 + w % 4, and a column of B has the layout of a row of A. Lane `l` has the sums of columns (l % 4) * 2 and (l % 4) * 2 + 1 in
rows l / 4 and l / 4 + 8.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cuda.strategies.product.problem import divided
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedTile
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES

ROWS, COLUMNS, STEP_BYTES = 16, 8, 32
"""Of an instruction."""
STEP_CHUNKS = STEP_BYTES // CHUNK_BYTES


@dataclass(frozen=True)
class Instruction:
    """An mma.sync.

    Attributes:
      a, b: element types of the operands, as PTX names them.
      bits: of an element.
      sums: element type of the sums.
    """

    a: str
    b: str
    bits: int
    sums: str

    @property
    def depth(self) -> int:
        """Steps of the depth."""
        return STEP_BYTES * 8 // self.bits

    @property
    def multiply_adds(self) -> int:
        return ROWS * COLUMNS * self.depth

    def multiply_add(self, a: Sequence[ir.Value], b: Sequence[ir.Value], sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The four sums of a lane with the products of the words of A and of B that it holds."""
        shape = f"#nvvm.shape<m = {ROWS}, n = {COLUMNS}, k = {self.depth}>"
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(a), len(b), len(sums)]),
            "shape": emit.parsed(shape),
            "layoutA": emit.parsed("#nvvm.mma_layout<row>"),
            "layoutB": emit.parsed("#nvvm.mma_layout<col>"),
        }
        attributes["multiplicandAPtxType"] = emit.parsed(f"#nvvm.mma_type<{self.a}>")
        attributes["multiplicandBPtxType"] = emit.parsed(f"#nvvm.mma_type<{self.b}>")
        if self.sums == "i32":
            attributes["intOverflowBehavior"] = emit.parsed("#nvvm.mma_int_overflow<wrapped>")
        type_ = ir.Type.parse(f"!llvm.struct<({', '.join([self.sums] * 4)})>")
        found = emit.create("nvvm.mma.sync", [type_], [*a, *b, *sums], attributes)
        return [emit.member(found, i, sums[0].type) for i in range(4)]


def operand_words(words: Sequence[ir.Value], kind: str) -> list[ir.Value]:
    """Words of four bytes (i32), as matrix loads give them, as an mma.sync takes them of an element type."""
    if kind == "tf32":
        return [_rounded_to_tf32(word) for word in words]
    if kind == "f16":
        type_ = emit.vector_of(2, ir.F16Type.get())
        return [emit.create("llvm.bitcast", [type_], [word]) for word in words]
    return list(words)


def operand_pair(pair: ir.Value) -> ir.Value:
    """A vector of two 16-bit floats as an operand of mma.sync: two bf16 floats are passed as one word."""
    return pair if pair.type.element_type == ir.F16Type.get() else as_word(pair)


def as_word(value: ir.Value) -> ir.Value:
    """32 bits as an i32."""
    i32 = ir.IntegerType.get_signless(32)
    return value if value.type == i32 else emit.create("llvm.bitcast", [i32], [value])


def _rounded_to_tf32(word: ir.Value) -> ir.Value:
    """The nearest tf32 of the bits of an f32, ties away from zero: an mma cuts the other bits off."""
    value = emit.create("arith.bitcast", [ir.F32Type.get()], [word])
    return emit.create("nvvm.convert.float.to.tf32", [word.type], [value], {"rnd": emit.parsed("#nvvm.fp_rnd_mode<rna>")})


# ---- matrix loads


def load_matrices(address: ir.Value, count: int, transposes: bool) -> list[ir.Value]:
    """ldmatrix of one, two or four matrices of eight lines by one chunk; lane `l` gives the address of line l % 8 of matrix l / 8."""
    i32 = ir.IntegerType.get_signless(32)
    attributes = {
        "num": ir.IntegerAttr.get(i32, count),
        "layout": emit.parsed(f"#nvvm.mma_layout<{'col' if transposes else 'row'}>"),
        "shape": emit.parsed("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
        "eltType": emit.parsed("#nvvm.ld_st_matrix_elt_type<b16>"),
    }
    type_ = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
    found = emit.create("nvvm.ldmatrix", [type_], [address], attributes)
    return [emit.member(found, i, i32) for i in range(count)]


def along_depth(tile: SharedTile, lane: Index, is_b: bool, first: Index, steps: int) -> list[ir.Value]:
    """Where a lane's matrix loads read a tile whose lines run along the depth: 16 lines from `first` on, of each step."""
    eight, one = divided(lane, 8)
    sixteen = divided(lane, 16)[0]
    middle = divided(eight, 2)[1]
    # The second matrix of A is the next eight rows, the second matrix of B is the next chunk.
    line, chunk = (one + sixteen * 8, middle) if is_b else (one + middle * 8, sixteen)
    at = emit.materialize(first + line)
    return [tile.place_from(at, chunk, s * STEP_CHUNKS) for s in range(steps)]


def across_depth(tile: SharedTile, lane: Index, is_b: bool, first: Index, count: int) -> list[ir.Value]:
    """The same where lines run along rows or columns, of 16-bit elements, and matrices are transposed: the first step of `count` groups of
    16 rows or columns from `first` on."""
    eight, one = divided(lane, 8)
    sixteen = divided(lane, 16)[0]
    middle = divided(eight, 2)[1]
    line, chunk = (one + middle * 8, sixteen) if is_b else (one + sixteen * 8, middle)
    at, per_chunk = emit.materialize(line), tile.chunk_elements
    first_chunk = divided(first, per_chunk)[0]
    return [tile.place_from(at, first_chunk + chunk, number * (ROWS // per_chunk)) for number in range(count)]
