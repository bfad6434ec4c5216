"""Sums by tensor cores: mma.sync of 16 rows by 8 columns, and the fragments of operands that its lanes hold."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.instructions import (
    COLUMNS,
    ROWS,
    Instruction,
    across_depth,
    along_depth,
    load_matrices,
    operand_words,
)
from relayc.pipelines.targets.cuda.strategies.product.problem import divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory, SharedTile, added, element_of, load, store
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.values import vectors

Values = Sequence[ir.Value]


class TensorCores:
    """The sums of a block's tile, in the registers of its threads: each warp sums tiles of 16 x 8, side by side.

    `prepare` computes the addresses that a thread reads. `step` adds the products of a stage. At the end the sums go to shared memory in
    strips of rows, and are stored from there.

    Attributes:
      threads: of a block.
      strips, strip_rows: the number of strips, and of rows in each.
    """

    def __init__(self, tile: BlockTile, instruction: Instruction, along_depth: Sequence[bool]) -> None:
        """
        Args:
          along_depth: of A and B, whether lines of shared memory run along the depth.
        """
        self.tile, self.element = tile, ir.Type.parse(instruction.sums)
        self.instruction, self.along_depth = instruction, along_depth
        self.threads = tile.units * WARP
        self.row_tiles, self.column_tiles = tile.unit_rows // ROWS, tile.unit_columns // COLUMNS
        self.warp_rows = tile.rows // tile.unit_rows
        self.strips, self.strip_rows = self.row_tiles, self.warp_rows * ROWS
        self.steps = tile.depth // instruction.depth

    def prepare(self, thread: Var, shared: SharedMemory, tiles: Sequence[SharedTile], starts: Sequence[int]) -> None:
        """Called at the start of a block with the tiles of A and B and their offsets in a stage."""
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

    # ---- fragments: a function of (step, tile of 16 lines) that loads the fragment from a stage

    def _lines(self, operand: int, first: Index, start: int) -> Callable[[int, int, ir.Value], list[ir.Value]]:
        """Lines along the depth: a matrix of eight lines by one chunk has the layout of a fragment."""
        tile = self.tiles[operand]
        places = [added(place, start) for place in along_depth(tile, self.lane, operand == 1, first, self.steps)]
        count = self._matrices(operand)

        def read(step: int, number: int, stage: ir.Value) -> list[ir.Value]:
            return load_matrices(self.shared.pointer(added(added(stage, places[step]), number * ROWS * tile.pitch)), count, False)

        return read

    def _transposed(self, operand: int, first: Index, start: int) -> Callable[[int, int, ir.Value], list[ir.Value]]:
        """Lines along rows or columns, of 16-bit elements: matrices are transposed on their way to lanes."""
        tile = self.tiles[operand]
        counts = self.row_tiles if operand == 0 else -(-self.column_tiles // 2)
        places = [added(place, start) for place in across_depth(tile, self.lane, operand == 1, first, counts)]
        count = self._matrices(operand)

        def read(step: int, number: int, stage: ir.Value) -> list[ir.Value]:
            at = added(added(stage, places[number]), step * self.instruction.depth * tile.pitch)
            return load_matrices(self.shared.pointer(at), count, True)

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
        """The number of matrices, of eight lines by one chunk, that a read returns: for 16 rows of A, for 16 columns of B, or for 8."""
        return 4 if operand == 0 or self.column_tiles > 1 else 2

    # ---- products

    def begin(self) -> list[ir.Value]:
        """The sums before the first step."""
        return [emit.zero(self.element)] * (self.row_tiles * self.column_tiles * 4)

    def step(self, stage: ir.Value, sums: Values) -> list[ir.Value]:
        """The sums with the products of a stage, which begins at a byte of shared memory."""
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
                    found[at : at + 4] = self.instruction.multiply_add(a, b, found[at : at + 4])
        return found

    def _operand(self, operand: int, step: int, number: int, stage: ir.Value) -> list[ir.Value]:
        kind = self.instruction.a if operand == 0 else self.instruction.b
        return operand_words(self.fragments[operand](step, number, stage), kind)

    # ---- the end

    def row_of(self, strip: int, row: Index) -> Index:
        """The row of the tile that a row of a strip is."""
        warp, within = divided(row, ROWS)
        return warp * self.tile.unit_rows + within + strip * ROWS

    def stage(self, strip: int, sums: Values, buffer: ir.Value, pitch: int) -> None:
        """Stores a strip to a buffer, whose rows are `pitch` elements apart."""
        row, pair = divided(self.lane, 4)
        first = (self.warp_row * ROWS + row) * pitch + self.warp_column * self.tile.unit_columns + pair * 2
        at = emit.materialize(first)
        for number in range(self.column_tiles):
            four = sums[(strip * self.column_tiles + number) * 4 :][:4]
            for half in range(2):
                place = added(at, number * COLUMNS + half * COLUMNS * pitch)
                store(vectors.from_elements(four[2 * half : 2 * half + 2]), buffer, place)
