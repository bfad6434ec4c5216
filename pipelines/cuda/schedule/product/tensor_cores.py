"""Sums by tensor cores: mma.sync of 16 rows by 8 columns, and the fragments of operands that its lanes hold.

Which lane holds which element says the PTX ISA, "Matrix Fragments for mma.m16n8k8", "m16n8k16" and "m16n8k32". In words of four bytes the
fragments of all element types are alike: a step reads 32 bytes of the depth, word `w` of row `r` of A is in lane (r % 8) * 4 + w % 4, and a
column of B is as a row of A.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.cuda.schedule.product.problem import divided, hoisted
from relayc.pipelines.cuda.schedule.product.shared import CHUNK, SharedMemory, SharedTile, added, element_of, load, store
from relayc.pipelines.cuda.schedule.product.sums import Sums, Values
from relayc.pipelines.cuda.schedule.product.tile import Tile
from relayc.pipelines.gpu.launch import WARP
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit, vectors

ROWS, COLUMNS, STEP_BYTES = 16, 8, 32
"""Of an instruction."""
_STEP_CHUNKS = STEP_BYTES // CHUNK


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


class TensorCores(Sums):
    """Each warp sums tiles of 16 x 8, side by side."""

    def __init__(self, tile: Tile, instruction: Instruction, along_depth: Sequence[bool]) -> None:
        """
        Args:
          along_depth: of A and B, whether lines of shared memory run along the depth.
        """
        super().__init__(tile, ir.Type.parse(instruction.sums))
        self.instruction, self.along_depth = instruction, along_depth
        self.threads = tile.units * WARP
        self.row_tiles, self.column_tiles = tile.unit_rows // ROWS, tile.unit_columns // COLUMNS
        self.warp_rows = tile.rows // tile.unit_rows
        self.strips, self.strip_rows = self.row_tiles, self.warp_rows * ROWS
        self.steps = tile.depth // instruction.depth

    def prepare(self, thread: Var, shared: SharedMemory, tiles: Sequence[SharedTile], starts: Sequence[int]) -> None:
        self.shared, self.tiles = shared, tiles
        warp, lane = map(hoisted, divided(Index.of(thread), WARP))
        self.lane = lane
        column, row = map(hoisted, divided(warp, self.warp_rows))
        self.warp_row, self.warp_column = row, column
        makers = [self._lines if along else self._words if self._is_words else self._transposed for along in self.along_depth]
        units = (row * self.tile.unit_rows, column * self.tile.unit_columns)
        self.fragments = [make(i, units[i], starts[i]) for i, make in enumerate(makers)]

    @property
    def _is_words(self) -> bool:
        return self.instruction.bits == 32

    # ---- fragments: a function of (step, tile of 16 lines) that emits what a stage holds of it

    def _lines(self, operand: int, first: Index, start: int) -> Callable[[int, int, ir.Value], list[ir.Value]]:
        """Lines along the depth: a matrix of eight lines by one chunk is as lanes want it."""
        tile, lane = self.tiles[operand], self.lane
        eight, one = divided(lane, 8)
        sixteen = divided(lane, 16)[0]
        middle = divided(eight, 2)[1]
        # The second matrix of A is the next eight rows, that of B the next chunk.
        line, chunk = (one + middle * 8, sixteen) if operand == 0 else (one + sixteen * 8, middle)
        at = emit.materialize(first + line)
        places = [added(tile.place(at, emit.materialize(chunk + s * _STEP_CHUNKS)), start) for s in range(self.steps)]
        count = self._matrices(operand)

        def read(step: int, number: int, stage: ir.Value) -> list[ir.Value]:
            return self._matrix_load(added(added(stage, places[step]), number * ROWS * tile.pitch), count, False)

        return read

    def _transposed(self, operand: int, first: Index, start: int) -> Callable[[int, int, ir.Value], list[ir.Value]]:
        """Lines along rows or columns, of 16-bit elements: matrices are transposed on their way to lanes."""
        tile, lane = self.tiles[operand], self.lane
        eight, one = divided(lane, 8)
        sixteen = divided(lane, 16)[0]
        middle = divided(eight, 2)[1]
        line, chunk = (one + sixteen * 8, middle) if operand == 0 else (one + middle * 8, sixteen)
        at, per_chunk = emit.materialize(line), tile.chunk_elements
        counts = self.row_tiles if operand == 0 else -(-self.column_tiles // 2)
        first_chunk = divided(first, per_chunk)[0]
        places = [
            added(tile.place(at, emit.materialize(first_chunk + chunk + number * (ROWS // per_chunk))), start) for number in range(counts)
        ]
        count = self._matrices(operand)

        def read(step: int, number: int, stage: ir.Value) -> list[ir.Value]:
            return self._matrix_load(added(added(stage, places[number]), step * self.instruction.depth * tile.pitch), count, True)

        return read

    def _words(self, operand: int, first: Index, start: int) -> Callable[[int, int, ir.Value], list[ir.Value]]:
        """Lines along rows or columns, of 32-bit elements: word by word."""
        tile, lane = self.tiles[operand], self.lane
        group, within = divided(lane, 4)
        counts = 2 * (self.row_tiles if operand == 0 else -(-self.column_tiles // 2))
        places = []
        for number in range(counts):
            chunk, rest = divided(hoisted(first + group) + number * 8, tile.chunk_elements)
            place = tile.place(emit.materialize(within), emit.materialize(chunk))
            places.append(added(added(place, emit.materialize(rest * 4)), start))
        words = self.shared.elements(ir.IntegerType.get_signless(32))

        def read(step: int, number: int, stage: ir.Value) -> list[ir.Value]:
            found = []
            for j in range(self._matrices(operand)):
                half, later = (j % 2, j // 2) if operand == 0 else (j // 2, j % 2)
                lines = step * self.instruction.depth + later * 4
                at = added(added(stage, places[2 * number + half]), lines * tile.pitch)
                found.append(load(words, element_of(at, 4), 1))
            return found

        return read

    def _matrices(self, operand: int) -> int:
        """Matrices of eight lines by one chunk that a read gives: those of 16 rows of A, of 16 columns of B or of 8."""
        return 4 if operand == 0 or self.column_tiles > 1 else 2

    def _matrix_load(self, offset: ir.Value, count: int, transposes: bool) -> list[ir.Value]:
        i32 = ir.IntegerType.get_signless(32)
        attributes = {
            "num": ir.IntegerAttr.get(i32, count),
            "layout": emit.parsed(f"#nvvm.mma_layout<{'col' if transposes else 'row'}>"),
            "shape": emit.parsed("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
            "eltType": emit.parsed("#nvvm.ld_st_matrix_elt_type<b16>"),
        }
        type_ = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
        found = emit.create("nvvm.ldmatrix", [type_], [self.shared.pointer(offset)], attributes)
        return [_member(found, i, i32) for i in range(count)]

    # ---- products

    def begin(self) -> list[ir.Value]:
        return [emit.zero(self.element)] * (self.row_tiles * self.column_tiles * 4)

    def step(self, stage: ir.Value, sums: Values) -> list[ir.Value]:
        found = list(sums)
        for step in range(self.steps):
            rows = [self._operand(0, step, number, stage) for number in range(self.row_tiles)]
            columns: list[list[ir.Value]] = []
            for number in range(-(-self.column_tiles // 2)):
                pair = self._operand(1, step, number, stage)
                columns += [pair[at : at + 2] for at in range(0, len(pair), 2)]
            for i, a in enumerate(rows):
                for j, b in enumerate(columns):
                    at = (i * self.column_tiles + j) * 4
                    found[at : at + 4] = self._multiply_add(a, b, found[at : at + 4])
        return found

    def _operand(self, operand: int, step: int, number: int, stage: ir.Value) -> list[ir.Value]:
        words = self.fragments[operand](step, number, stage)
        kind = self.instruction.a if operand == 0 else self.instruction.b
        if kind == "tf32":
            return [_rounded_to_tf32(word) for word in words]
        if kind == "f16":
            type_ = emit.vector_of(2, ir.F16Type.get())
            return [emit.create("llvm.bitcast", [type_], [word]) for word in words]
        return words

    def _multiply_add(self, a: Values, b: Values, sums: Values) -> list[ir.Value]:
        instruction = self.instruction
        shape = f"#nvvm.shape<m = {ROWS}, n = {COLUMNS}, k = {instruction.depth}>"
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(a), len(b), len(sums)]),
            "shape": emit.parsed(shape),
            "layoutA": emit.parsed("#nvvm.mma_layout<row>"),
            "layoutB": emit.parsed("#nvvm.mma_layout<col>"),
        }
        attributes["multiplicandAPtxType"] = emit.parsed(f"#nvvm.mma_type<{instruction.a}>")
        attributes["multiplicandBPtxType"] = emit.parsed(f"#nvvm.mma_type<{instruction.b}>")
        if instruction.sums == "i32":
            attributes["intOverflowBehavior"] = emit.parsed("#nvvm.mma_int_overflow<wrapped>")
        type_ = ir.Type.parse(f"!llvm.struct<({', '.join([instruction.sums] * 4)})>")
        found = emit.create("nvvm.mma.sync", [type_], [*a, *b, *sums], attributes)
        return [_member(found, i, self.element) for i in range(4)]

    # ---- the end

    def row_of(self, strip: int, row: Index) -> Index:
        warp, within = divided(row, ROWS)
        return warp * self.tile.unit_rows + within + strip * ROWS

    def stage(self, strip: int, sums: Values, buffer: ir.Value, pitch: int) -> None:
        row, pair = divided(self.lane, 4)
        first = (self.warp_row * ROWS + row) * pitch + self.warp_column * self.tile.unit_columns + pair * 2
        at = emit.materialize(first)
        for number in range(self.column_tiles):
            four = sums[(strip * self.column_tiles + number) * 4 :][:4]
            for half in range(2):
                place = added(at, number * COLUMNS + half * COLUMNS * pitch)
                store(vectors.from_elements(four[2 * half : 2 * half + 2]), buffer, place)


def _member(struct: ir.Value, position: int, type_: ir.Type) -> ir.Value:
    return emit.create("llvm.extractvalue", [type_], [struct], {"position": ir.DenseI64ArrayAttr.get([position])})


def _rounded_to_tf32(word: ir.Value) -> ir.Value:
    """The nearest tf32 of the bits of an f32, ties away from zero: an mma cuts the other bits off."""
    value = emit.create("arith.bitcast", [ir.F32Type.get()], [word])
    return emit.create("nvvm.convert.float.to.tf32", [word.type], [value], {"rnd": emit.parsed("#nvvm.fp_rnd_mode<rna>")})
