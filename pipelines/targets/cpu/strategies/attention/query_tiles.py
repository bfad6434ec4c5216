"""What schedules of attention with several queries have in common: queries along the lanes, in tiles, and keys in blocks.

Tiles are transposed once, so that products read the query as vectors of queries, and the key and the value, where they lie, as elements
that are broadcast: neither is packed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.attention.kernel import AttentionKernel
from relayc.pipelines.targets.cpu.strategies.attention.parameters import AttentionParameters
from relayc.pipelines.targets.cpu.strategies.attention.strips import Counts, KeyBlock, Strips
from relayc.pipelines.te.read.access import Analysis
from relayc.pipelines.te.read.attention import KEY, QUERY, Scores
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.symbolic import Size, ceil_div

Parts = list[tuple[Counts, Node]]
"""Each part of a block of keys ends at a number of strips of each size, and has the node that computes the scores from the end of the
previous part."""


@dataclass
class QueryTile:
    """A tile of queries: its number within the task and among all of its head, the indices of the head, and the query with which each
    vector starts."""

    number: Index
    of_head: Index
    row: list[Index]
    starts: list[Index]


@dataclass
class Turned:
    """A tensor that the scores read across its rows (a mask): `offset` as a function of the loops, and the buffer in which a block of it
    is transposed."""

    node: Node
    offset: Index
    buffer: ir.Value | None = None


class QueryTiles(AttentionKernel):
    """Buffers of a thread are rows of a tile's width. There are as many queries as lanes, at least."""

    lane: Var | Index

    def __init__(
        self, kernel: Kernel, attention: Scores, parameters: AttentionParameters, strips: Strips, row_loops: Sequence[int] = ()
    ) -> None:
        super().__init__(kernel, attention, row_loops)
        self.p = parameters
        self.tiles: Size = ceil_div(attention.rows, parameters.width)
        self.strips = strips
        self.block_keys = strips.block_keys
        self.variables = [Var.below(e, name="r") for e in attention.shape]
        self.turned = self._find_turned()

    def _find_turned(self) -> list[Turned]:
        """What the scores read before the causal mask with a stride along the queries and without along the keys."""
        analysis = Analysis([*self.kernel.args, self.a.product])
        analysis.visit(self.a.plain, [Index.of(v) for v in self.variables])
        found = analysis.found
        row, key = self.variables[self.a.row_loop], self.variables[KEY]
        if (isinstance(self.keys, int) and self.keys < self.p.lanes) or {row, key} & found.irregular:
            return []
        reads = [(n, o) for n, o in found.offsets if n is not self.a.product]
        return [Turned(n, o) for n, o in reads if o.coefficient(row) not in (0, 1) and o.coefficient(key) == 1]

    @property
    def is_rolled(self) -> bool:
        """Whether what follows the products is done key by key, and element by element, when all of a block are there: where sizes are
        symbols, strips of all sizes have one code for it."""
        return not isinstance(self.a.rows, int)

    @property
    def turned_before(self) -> int:
        """Rows before the first key of a block in a buffer in which a tensor is transposed: a vector of keys may start there."""
        return max(self.p.lanes, self.strips.before)

    def _each_vector(self, tile: QueryTile, body: Callable[[Index | int, Index], None]) -> None:
        """`body(number, start)` for the vectors of a tile: in a loop where sizes are symbols, as code is emitted more than once then."""
        if not self.is_rolled:
            for j, start in enumerate(tile.starts):
                body(j, start)
            return
        with nest.loop(0, self.p.vectors, self.evaluator, name="j") as number:
            body(number, self._start(tile.of_head, number))

    def _start(self, tile: Index, j: Index | int) -> Index:
        """The query with which vector `j` of a tile starts."""
        return emit.at_most(tile * self.p.width + j * self.p.lanes, self.a.rows - self.p.lanes)

    def _convert(self, row: list[Index], keys: KeyBlock) -> None:
        """Computes a block of key and value where their elements are not in memory as they are multiplied."""
        for name, node, extent in (("key", self.a.product, self.depth), ("value", self.a.by_value, self.width)):
            if name not in self.buffers:
                continue
            first, end = self.strips.first_kept(keys), self.strips.keys_of(keys, keys.counts)
            with (
                nest.loop(first, end, self.evaluator, below=self.block_keys, name="k") as key,
                self._along(extent, self.p.lanes) as (start, lanes),
                self.evaluator.along(lanes) as lane,
            ):
                along = start + lane
                value = self._operand(node, 1, [*row, keys.base + key, along])
                self._store(name, (key + self.strips.before) * extent + along, value)

    # ---- a tile

    def _vector(self, name: str, row: Index, j: Index | int) -> ir.Value:
        """Vector `j` of a row of a buffer of the thread."""
        return self._load(name, self._lane_place(row, j))

    def _keep(self, name: str, row: Index, j: Index | int, value: ir.Value) -> None:
        self._store(name, self._lane_place(row, j), value)

    def _lane_place(self, row: Index, j: Index | int) -> Index:
        return row * self.p.width + j * self.p.lanes + self.lane

    def _row(self, tile: QueryTile, start: Index, place: Index | int) -> list[Index]:
        """Indices (BATCH to QUERY) of a query of the vector that begins at one."""
        return [start + place if i == self.a.row_loop else index for i, index in enumerate(tile.row)]

    def _transpose(self, name: str, node: Node, extent: int, tile: QueryTile, j: Index | int, first: Index) -> None:
        """Vector `j` of a tile of the first operand of a product into a buffer: rows of an element of all queries."""
        with self._along(extent, self.p.lanes) as (start, lanes):
            if lanes == 1:
                point = [*self._row(tile, first, Index.of(self.lane)), Index(), start]
                columns = [self._operand(node, 0, point)]
            else:
                with self.evaluator.lanes(lanes) as lane:
                    points = [[*self._row(tile, first, i), Index(), start + lane] for i in range(lanes)]
                    columns = vectors.transpose([self._operand(node, 0, point) for point in points])
            for i, column in enumerate(columns):
                self._keep(name, tile.number * extent + start + i, j, column)

    def _seen(self, tile: QueryTile, keys: KeyBlock, body: Callable[[Parts], None]) -> None:
        """`body` of the keys of a block that a tile sees, if it sees any."""
        if self.a.causal is None:
            body([(keys.counts, self.a.scores)])
            return
        # Up to `free` keys are seen by every query of the tile, from `seen` on none.
        first = self._row(tile, tile.starts[0], 0)[QUERY]
        last = self._row(tile, tile.starts[-1], self.p.lanes - 1 if self.a.row_loop == QUERY else 0)[QUERY]
        free, seen = (q + (self.a.causal + 1) - keys.base for q in (first, last))
        unmasked = self.strips.below(keys, free, counts_last=False)
        masked = self.strips.below(keys, seen, counts_last=True)
        parts = [(unmasked, self.a.plain), (masked, self.a.scores)]
        any_seen = emit.compare("sgt", emit.arith("addi", *masked), emit.index_constant(0))
        nest.when(any_seen, self.evaluator, lambda: body(parts))

    def _turned_buffers(self) -> None:
        """Allocates the buffers of what is transposed."""
        for turned in self.turned:  # a vector of keys may start before a block, or end after it: see _turn
            turned.buffer = local_buffer((self.turned_before + self.block_keys + self.p.lanes) * self.p.width, turned.node.element)

    def _turn_block(self, tile: QueryTile, keys: KeyBlock, count: ir.Value) -> None:
        """Transposes what the scores of a tile and the first `count` keys of a block read across its rows."""
        for turned in self.turned:
            if isinstance(self.keys, int):
                self._turn(turned, tile, keys, count)
                continue
            nest.when(
                emit.compare("sge", emit.index_constant(self.keys), emit.index_constant(self.p.lanes)),
                self.evaluator,
                lambda turned=turned: self._turn(turned, tile, keys, count),  # type: ignore[misc]
                lambda turned=turned: self._turn_few(turned, tile, keys, count),  # type: ignore[misc]
            )

    def _turn_few(self, turned: Turned, tile: QueryTile, keys: KeyBlock, count: ir.Value) -> None:
        """`_turn` for fewer keys than a vector has, which are one block."""
        p = self.p
        with nest.loop(0, count, self.evaluator, below=p.lanes, name="k") as key:

            def column(j: Index | int, first: Index) -> None:
                points = [[*self._row(tile, first, i), keys.base + key] for i in range(p.lanes)]
                found = vectors.from_elements([self.evaluator.load(turned.node, self._at(turned.offset, point)) for point in points])
                self.evaluator.store(found, turned.buffer, self._lane_place(key + self.turned_before, j))

            self._each_vector(tile, column)

    def _turn(self, turned: Turned, tile: QueryTile, keys: KeyBlock, count: ir.Value) -> None:
        """Transposes what the scores of a block of keys read across its rows. The last vector of all keys starts early rather
        than ending late, if need be before the block: that is what the buffer's first rows are for."""
        p = self.p
        with nest.loop(self.strips.first_kept(keys), count, self.evaluator, step=p.lanes, below=self.block_keys, name="v") as step:
            last = emit.materialize(keys.base * -1 + (self.keys - p.lanes))
            start = Index.of(Var(-self.turned_before, self.block_keys - 1, emit.arith("minsi", emit.materialize(step), last), name="start"))

            def block(j: Index | int, first: Index) -> None:
                with self.evaluator.lanes(p.lanes) as lane:
                    points = [[*self._row(tile, first, i), keys.base + start + lane] for i in range(p.lanes)]
                    rows = [self.evaluator.load(turned.node, self._at(turned.offset, point)) for point in points]
                for i, column in enumerate(vectors.transpose(rows)):
                    self.evaluator.store(column, turned.buffer, self._lane_place(start + self.turned_before + i, j))

            self._each_vector(tile, block)

    def _remember_turned(self, point: Sequence[Index], key: Index, j: Index | int) -> None:
        """What was transposed is what the scores at a point, of a key of the block, read in vector `j`."""
        for turned in self.turned:
            value = self.evaluator.load_from(turned.buffer, turned.node.element, self._lane_place(key + self.turned_before, j))
            self.evaluator.remember_load(turned.node, self._at(turned.offset, point), value)

    def _at(self, offset: Index, point: Sequence[Index]) -> Index:
        """An offset, a function of the loops BATCH to KEY, at a point."""
        return offset.at(dict(zip(self.variables, point, strict=True)))

    def _products(self, vector: str, factor: str, node: Node, tile: QueryTile, base: Index, keys: list[Index]) -> list[ir.Value]:
        """Sums of the products of some keys and the queries of a tile, key by key: of the rows of a buffer and of key or value."""
        p, size, extent = self.p, len(keys), self.depth if factor == "key" else self.width
        with nest.carrying(0, extent, self.evaluator, [self._initial(node)] * (size * p.vectors), name="d") as (element, loop):
            queries = [self._vector(vector, tile.number * extent + element, j) for j in range(p.vectors)]
            factors = [self._factor(factor, node, tile, base, key, element) for key in keys]
            emit.yield_values(multiply_add(factors, queries, list(loop.inner_iter_args)))
        return list(loop.results)

    def _factor(self, name: str, node: Node, tile: QueryTile, base: Index, position: Index, element: Index) -> ir.Value:
        """An element of key or value, broadcast."""
        extent = self.depth if name == "key" else self.width
        if name in self.buffers:
            value = self._load(name, (position + self.strips.before) * extent + element)
        else:
            value = self._operand(node, 1, [*tile.row, base + position, element])
        return emit.broadcast(value, self.p.lanes)


def multiply_add(factors: Sequence[ir.Value], vectors: Sequence[ir.Value], sums: Sequence[ir.Value]) -> list[ir.Value]:
    """Adds the products of every factor with every vector to the sums, which are in that order."""
    pairs = [(f, v) for f in factors for v in vectors]
    return [emit.multiply_add(f, v, s) for (f, v), s in zip(pairs, sums, strict=True)]
