"""Sums by multiply-adds of f32: each thread has a rectangle of the tile in registers."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.problem import divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.shared import BANK_CHUNKS, SharedMemory, SharedTile, added, element_of, load, store
from relayc.pipelines.targets.cuda.strategies.product.sums import Sums, Values
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.values import vectors

RUN = 4
"""Elements that a thread reads at once."""

Read = Callable[[int, ir.Value], list[list[ir.Value]]]
"""Loads the elements of an operand that a thread needs for RUN steps, by line and step. Arguments: which RUN steps, the stage."""


class ThreadTiles(Sums):
    """Each thread sums unit_rows by unit_columns.

    Lines along the depth are read by RUN steps of one line; a thread's lines are then as many apart as there are threads along them. Lines
    along rows or columns are read by RUN rows or columns of one step.
    """

    def __init__(self, tile: BlockTile, along_depth: Sequence[bool]) -> None:
        super().__init__(tile, ir.F32Type.get())
        self.along_depth = along_depth
        self.threads = tile.units
        self.counts = (tile.rows // tile.unit_rows, tile.columns // tile.unit_columns)
        self.own = (tile.unit_rows, tile.unit_columns)
        self.per_strip = 1 if along_depth[0] else RUN
        self.strips, self.strip_rows = tile.unit_rows // self.per_strip, self.counts[0] * self.per_strip

    def prepare(self, thread: Var, shared: SharedMemory, tiles: Sequence[SharedTile], starts: Sequence[int]) -> None:
        self.words = shared.elements(self.element)
        self.numbers = self._numbers(Index.of(thread))
        self.reads = [
            (self._along_depth if along else self._along_lines)(tiles[i], self.numbers[i], self.counts[i], self.own[i], starts[i])
            for i, along in enumerate(self.along_depth)
        ]

    def _numbers(self, thread: Index) -> tuple[Index, Index]:
        """A thread's place along the rows and columns. A warp is eight threads along the columns, by four: they read few lines of either
        operand, in different banks."""
        across = min(self.counts[1], BANK_CHUNKS)
        down = min(self.counts[0], WARP // across)
        warp, lane = divided(thread, across * down)
        inner_row, inner_column = divided(lane, across)
        outer_row, outer_column = divided(warp, self.counts[1] // across)
        return hoisted(outer_row * down + inner_row), hoisted(outer_column * across + inner_column)

    def _along_depth(self, tile: SharedTile, number: Index, count: int, own: int, start: int) -> Read:
        period = BANK_CHUNKS if count % BANK_CHUNKS else count
        apart = max(1, period // count)  # lines of a thread until chunks are permuted alike again
        places = {
            (i, chunk): added(tile.place(emit.materialize(number + i * count), emit.index_constant(chunk)), start)
            for i in range(min(apart, own))
            for chunk in range(tile.chunks)
        }

        def read(chunk: int, stage: ir.Value) -> list[list[ir.Value]]:
            found = []
            for i in range(own):
                at = added(added(stage, places[i % apart, chunk]), i // apart * apart * count * tile.pitch)
                vector = load(self.words, element_of(at, 4), RUN)
                found.append([vectors.extract(vector, k) for k in range(RUN)])
            return found

        return read

    def _along_lines(self, tile: SharedTile, number: Index, count: int, own: int, start: int) -> Read:
        place = added(tile.place(emit.index_constant(0), emit.materialize(number)), start)

        def read(steps: int, stage: ir.Value) -> list[list[ir.Value]]:
            found: list[list[ir.Value]] = [[] for _ in range(own)]
            at = element_of(added(stage, place), 4)
            for k in range(RUN):
                for i in range(own // RUN):
                    distance = (steps * RUN + k) * tile.pitch // tile.element_bytes + i * count * RUN
                    vector = load(self.words, added(at, distance), RUN)
                    for e in range(RUN):
                        found[i * RUN + e].append(vectors.extract(vector, e))
            return found

        return read

    def begin(self) -> list[ir.Value]:
        return [emit.zero(self.element)] * (self.own[0] * self.own[1])

    def step(self, stage: ir.Value, sums: Values) -> list[ir.Value]:
        found = list(sums)
        for steps in range(self.tile.depth // RUN):
            a, b = (read(steps, stage) for read in self.reads)
            for k in range(RUN):
                for i in range(self.own[0]):
                    for j in range(self.own[1]):
                        at = i * self.own[1] + j
                        found[at] = emit.multiply_add(a[i][k], b[j][k], found[at])
        return found

    def row_of(self, strip: int, row: Index) -> Index:
        return row + strip * self.strip_rows

    def stage(self, strip: int, sums: Values, buffer: ir.Value, pitch: int) -> None:
        (row, column), along = self.numbers, self.along_depth[1]
        at = emit.materialize(row * (self.per_strip * pitch) + (column if along else column * RUN))
        for i in range(self.per_strip):
            line = sums[(strip * self.per_strip + i) * self.own[1] :][: self.own[1]]
            if along:
                for j, value in enumerate(line):
                    store(value, buffer, added(at, i * pitch + j * self.counts[1]))
                continue
            for j in range(0, self.own[1], RUN):
                store(vectors.from_elements(line[j : j + RUN]), buffer, added(at, i * pitch + j * self.counts[1]))
