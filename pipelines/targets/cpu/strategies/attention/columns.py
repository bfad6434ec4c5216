"""The schedule of attention with several queries: flash attention with the queries along the lanes.

A task is some tiles of queries of one head. Tiles are transposed once, so that both products read the query, the weights and the context
as vectors of queries, and the key and the value, where they lie, as elements that are broadcast: neither is packed, and the softmax has no
sums across lanes. For each block of keys and each tile the scores of the block are computed into a buffer of the thread that stays in the
first-level cache; the context so far is scaled by how much the largest score of each query has grown (Milakov and Gimelshein, Online
normalizer calculation for softmax; Dao et al., FlashAttention). Keys that a causal mask hides from all queries of a tile are left out.
"""

from collections.abc import Callable

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, even_runs
from relayc.pipelines.targets.cpu.strategies.attention.kernel import ContextKernel, Version, emit_versions, has_few_rows
from relayc.pipelines.targets.cpu.strategies.attention.parameters import AttentionParameters, tuned_parameters
from relayc.pipelines.targets.cpu.strategies.attention.query_tiles import Parts, QueryTile, QueryTiles, multiply_add
from relayc.pipelines.targets.cpu.strategies.attention.rows import RowAttention
from relayc.pipelines.targets.cpu.strategies.attention.rows import default_parameters as few_parameters
from relayc.pipelines.targets.cpu.strategies.attention.strips import KeyBlock, Strips
from relayc.pipelines.te.read.attention import KEY, Attention, match
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.attention import larger
from relayc.symbolic import Dim, Size, ceil_div, maximum, minimum

PARALLEL_TASKS = 8
"""Iterations that the parallel loop should have at least, so that threads get equal shares."""


def schedule_attention_columns(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention with several queries for each key; None for any other kernel."""
    attention = match(kernel)
    if attention is None or has_few_rows(attention, target):
        return None
    if isinstance(attention.rows, Dim):
        return emit_versions(kernel, symbolic_queries(kernel, attention, target, tuning), tuning)
    return ColumnAttention(kernel, attention, tuned_parameters(attention, target, tuning, attention.rows)).emit(tuning)


def symbolic_queries(kernel: Kernel, attention: Attention, target: Target, tuning: Tuning) -> list[Version]:
    """For a symbolic number of queries: at most those of one vector, and more."""
    rows, lanes = attention.rows, target.lanes(attention.product.element.width)
    few = RowAttention(kernel, attention, few_parameters(attention, target), lanes)
    several = ColumnAttention(kernel, attention, tuned_parameters(attention, target, tuning, 2 * lanes))
    return [Version(few, rows, lanes), Version(several)]


class ColumnAttention(QueryTiles, ContextKernel):
    """Buffers of a thread have the tiles of a task as their outermost extent."""

    def __init__(self, kernel: Kernel, attention: Attention, parameters: AttentionParameters) -> None:
        super().__init__(kernel, attention, parameters, Strips.of(attention.shape[KEY], parameters.height, parameters.strips))

    @property
    def blocks(self) -> Size:
        """Tasks that the tiles of a head make. The last two tiles, which may overlap, are in one task."""
        wanted = ceil_div(self.tiles, self.p.tiles)
        return maximum(1, minimum(maximum(wanted, ceil_div(PARALLEL_TASKS, self.heads)), self.tiles // 2))

    @property
    def block_tiles(self) -> int:
        """Tiles of a task, at most."""
        tiles, blocks = self.tiles, self.blocks
        # A task has at least two tiles, or three if there are three.
        return ceil_div(tiles, blocks) if isinstance(tiles, int) and isinstance(blocks, int) else max(3, self.p.tiles)

    # ---- a task

    def _buffers(self) -> dict[str, int]:
        width = self.p.width
        sizes = {
            "query": self.block_tiles * self.depth * width,
            "context": self.block_tiles * self.width * width,
            "rows": self.block_tiles * 2 * width,
            "scores": (self.strips.before + self.block_keys) * width,
        }
        for name, node, extent in (("key", self.a.product, self.depth), ("value", self.a.context, self.width)):
            if not self._is_read_in_place(node):  # computed once for all tiles of the task
                sizes[name] = (self.strips.before + self.block_keys) * extent
        return sizes

    def _task(self, row: list[Index], block: Index) -> None:
        """Some tiles of queries of one head."""
        self._turned_buffers()
        first = self._first_tile(block)
        count: ir.Value | int = self.block_tiles
        if self.tiles % self.blocks != 0:
            count = emit.arith("subi", emit.materialize(self._first_tile(block + 1)), emit.materialize(first))
        with self.evaluator.lanes(self.p.lanes) as lane:
            self.lane = lane
            self._each_tile(row, first, count, self._start_tile)
            with nest.loop(0, self.strips.blocks, self.evaluator, name="keys") as number:
                keys = self.strips.block(number if self.strips.blocks != 1 else Index())
                self._convert(row, keys)
                self._each_tile(row, first, count, lambda tile: self._tile(tile, keys))
            self._each_tile(row, first, count, self._finish_tile)

    def _first_tile(self, block: Index) -> Index:
        if self.tiles % self.blocks == 0:
            return block * self.block_tiles
        return self.evaluator.divide(block * self.tiles, self.blocks, "quotient")

    def _each_tile(self, row: list[Index], first: Index, count: ir.Value | int, body: Callable[[QueryTile], None]) -> None:
        with nest.loop(0, count, self.evaluator, below=self.block_tiles, name="tile") as number:
            p, place = self.p, number if self.block_tiles > 1 else Index()
            body(QueryTile(place, first + place, row, [self._start(first + place, j) for j in range(p.vectors)]))

    # ---- a tile

    def _start_tile(self, tile: QueryTile) -> None:
        """Transposes the queries; initialises the maximum scores, their totals and the context for no keys."""
        a, p = self.a, self.p

        def start_vector(j: Index | int, start: Index) -> None:
            self._transpose("query", a.product, self.depth, tile, j, start)
            for position, node in enumerate((a.largest, a.total)):
                self._keep("rows", tile.number * 2 + position, j, self._initial(node))

        self._each_vector(tile, start_vector)
        with nest.loop(0, self.width, self.evaluator, name="e") as element:
            for j in range(p.vectors):
                self._keep("context", tile.number * self.width + element, j, self._initial(a.context))

    # ---- a tile and a block of keys

    def _tile(self, tile: QueryTile, keys: KeyBlock) -> None:
        self._seen(tile, keys, lambda parts: self._scores_and_context(tile, keys, parts))

    def _scores_and_context(self, tile: QueryTile, keys: KeyBlock, parts: Parts) -> None:
        """The contribution of a block of keys to a tile. Each part ends at a number of strips of each size, and has the node that computes
        the scores from the end of the previous part."""
        p = self.p
        count = self.strips.keys_of(keys, parts[-1][0])
        self._turn_block(tile, keys, count)
        before = [self._vector("rows", tile.number * 2, j) for j in range(p.vectors)]
        if self.is_rolled:
            for kind, _, first in self.strips.kinds(keys):
                self._all_scores(tile, keys, (0, parts[-1][0][kind]), kind, first, None, [])
            largest = self._finish_scores(tile, keys, parts, count, before)
        else:
            largest = before
            for kind, _, first in self.strips.kinds(keys):
                begin: ir.Value | int = 0
                for counts, node in parts:
                    largest = self._all_scores(tile, keys, (begin, counts[kind]), kind, first, node, largest)
                    begin = counts[kind]
        growth = [self._weight(b, m) for b, m in zip(before, largest, strict=True)]
        self._weights(tile, count, largest, growth)
        start = 0
        for size, number in self._runs():
            with nest.loop(start, start + number * size, self.evaluator, step=size, name="e") as element:
                self._add(tile, keys.base, count, element, size, growth)
            start += number * size

    def _finish_scores(self, tile: QueryTile, keys: KeyBlock, parts: Parts, count: ir.Value, largest: list[ir.Value]) -> list[ir.Value]:
        """Turns products of a block into scores; returns the maximum."""
        begin: ir.Value | int = 0
        for counts, node in parts:
            end = count if counts is parts[-1][0] else self.strips.keys_of(keys, counts)
            with nest.carrying(begin, end, self.evaluator, largest, below=self.block_keys, name="k") as (key, loop):
                place = key + self.strips.before
                products = [self._vector("scores", place, j) for j in range(self.p.vectors)]
                emit.yield_values(self._score(tile, keys.base, [(key, place)], node, products, list(loop.inner_iter_args)))
            begin, largest = end, list(loop.results)
        return largest

    def _runs(self) -> list[tuple[int, int]]:
        """Sizes of the runs of elements of the context whose sums stay in registers, and how many of each there are: one size where sizes
        are symbols and it is not much smaller."""
        size = max(n for n in range(1, self.p.height + 1) if self.width % n == 0)
        if not self.is_rolled or 2 * size <= self.p.height:
            return even_runs(self.width, self.p.height)
        return [(size, self.width // size)]

    def _all_scores(
        self,
        tile: QueryTile,
        keys: KeyBlock,
        strips: tuple[ir.Value | int, ir.Value],
        kind: int,
        first: Index,
        node: Node | None,
        largest: list[ir.Value],
    ) -> list[ir.Value]:
        """Scores of strips of one size, which begin at key `first` of the block; returns the maximum so far. Without a node that computes
        the scores, only the products."""
        begin, end = strips
        with nest.carrying(begin, end, self.evaluator, largest, below=self.p.strips, name="s") as (strip, loop):
            start = self.strips.start(keys, kind, strip, first)
            places = [self.strips.key(keys, kind, start + i) for i in range(self.strips.sizes[kind])]
            products = self._products("query", "key", self.a.product, tile, keys.base, places)
            rows = [start + self.strips.before + i for i in range(len(places))]
            if node is not None:
                found = self._score(tile, keys.base, list(zip(places, rows, strict=True)), node, products, list(loop.inner_iter_args))
                emit.yield_values(found)
            else:
                for i, product in enumerate(products):
                    self._keep("scores", rows[i // self.p.vectors], i % self.p.vectors, product)
        return list(loop.results)

    def _score(
        self,
        tile: QueryTile,
        base: Index,
        keys: list[tuple[Index, Index]],
        node: Node,
        products: list[ir.Value],
        largest: list[ir.Value],
    ) -> list[ir.Value]:
        """Scores of some keys, each with its row of the buffer, from their products; gives the largest so far."""
        a, p = self.a, self.p
        for i, (key, row) in enumerate(keys):
            for j in range(p.vectors):
                point = [*self._row(tile, tile.starts[j], Index.of(self.lane)), base + key]
                self._remember_turned(point, key, j)
                self.evaluator.remember(a.product, point, products[i * p.vectors + j])
                score = self.evaluator.at(node, point)
                self._keep("scores", row, j, score)
                largest = [*largest[:j], larger(score, largest[j]), *largest[j + 1 :]]
        return largest

    def _weights(self, tile: QueryTile, count: ir.Value, largest: list[ir.Value], growth: list[ir.Value]) -> None:
        """Scores of a block become weights; the totals take them in."""
        totals = []
        for j, factor in enumerate(growth):
            self._keep("rows", tile.number * 2, j, largest[j])
            totals.append(emit.arith("mulf", self._vector("rows", tile.number * 2 + 1, j), factor))
        with nest.carrying(0, count, self.evaluator, totals, below=self.block_keys, name="k") as (key, loop):
            sums = []
            for j, total in enumerate(loop.inner_iter_args):
                place = key + self.strips.before
                weight = self._weight(self._vector("scores", place, j), largest[j])
                self._keep("scores", place, j, weight)
                sums.append(emit.arith("addf", total, weight))
            emit.yield_values(sums)
        for j, total in enumerate(loop.results):
            self._keep("rows", tile.number * 2 + 1, j, total)

    def _add(self, tile: QueryTile, base: Index, count: ir.Value, start: Index, size: int, growth: list[ir.Value]) -> None:
        """Adds the contribution of a block of keys to `size` elements of the context."""
        p = self.p
        places = [(tile.number * self.width + start + i, j) for i in range(size) for j in range(p.vectors)]
        sums = [emit.arith("mulf", self._vector("context", row, j), growth[j]) for row, j in places]
        with nest.carrying(0, count, self.evaluator, sums, below=self.block_keys, name="k") as (key, loop):
            weights = [self._vector("scores", key + self.strips.before, j) for j in range(p.vectors)]
            factors = [self._factor("value", self.a.context, tile, base, key, start + i) for i in range(size)]
            emit.yield_values(multiply_add(factors, weights, list(loop.inner_iter_args)))
        for (row, j), value in zip(places, loop.results, strict=True):
            self._keep("context", row, j, value)

    # ---- the result

    def _finish_tile(self, tile: QueryTile) -> None:
        """Divides by the totals, transposes back and stores."""
        self._each_vector(tile, lambda j, start: self._finish(tile, j, start))

    def _finish(self, tile: QueryTile, j: Index | int, first: Index) -> None:
        row = self._row(tile, first, Index.of(self.lane))
        if self.a.lse is not None:
            self._store_lse(row, self._vector("rows", tile.number * 2, j), self._vector("rows", tile.number * 2 + 1, j))

        def context(element: Index) -> ir.Value:
            return self._vector("context", tile.number * self.width + element, j)

        def result(element: Index) -> ir.Value:
            return self._result(row, element, context(element), self._vector("rows", tile.number * 2 + 1, j))

        if self.is_rolled and self.kernel.results[0].element == self.wide:
            with nest.loop(0, self.width, self.evaluator, name="e") as along:
                self._keep("context", tile.number * self.width + along, j, result(along))
            result = context

        with self._along(self.width, self.p.lanes) as (start, lanes):
            if lanes == 1:
                self.evaluator.store(result(start), self.output, self._place(row, start))
                return
            for i, column in enumerate(vectors.transpose([result(start + i) for i in range(lanes)])):
                with self.evaluator.lanes(lanes) as lane:
                    self.evaluator.store(column, self.output, self._place(self._row(tile, first, i), start + lane))
