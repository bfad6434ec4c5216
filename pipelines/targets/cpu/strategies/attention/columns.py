"""The schedule of attention with several queries: flash attention with the queries along the lanes.

A task is some tiles of queries of one head. Tiles are transposed once, so that both products read the query, the weights and the context
as vectors of queries, and the key and the value, where they lie, as elements that are broadcast: neither is packed, and the softmax has no
sums across lanes. For each block of keys and each tile the scores of the block are computed into a buffer of the thread that stays in the
first-level cache; the context so far is scaled by how much the largest score of each query has grown (Milakov and Gimelshein, Online
normalizer calculation for softmax; Dao et al., FlashAttention). Keys that a causal mask hides from all queries of a tile are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, affine_index, even_runs
from relayc.pipelines.targets.cpu.strategies.attention.kernel import AttentionKernel, Version, emit_versions, has_few_rows
from relayc.pipelines.targets.cpu.strategies.attention.rows import RowAttention
from relayc.pipelines.targets.cpu.strategies.attention.rows import default_parameters as few_parameters
from relayc.pipelines.targets.cpu.strategies.attention.strips import Counts, KeyBlock, Strips
from relayc.pipelines.te.read.access import Analysis, split_exactly
from relayc.pipelines.te.read.attention import KEY, QUERY, Attention, match
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, part_sizes, powers_of_two
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.attention import larger
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.symbolic import Dim, Size, ceil_div, maximum, minimum

PARALLEL_TASKS = 8
"""Iterations that the parallel loop should have at least, so that threads get equal shares."""
MAX_TILE_BYTES = 64 << 10
"""Memory for the queries and the context of a task."""
SET_SPAN = 4096
"""Bytes after which addresses fall into the same set of the first-level cache: a page, within which processors of x86-64 find the set."""
MAX_OVERLAPPING = 16
"""Keys of a strip of a symbolic number of keys where a tile is one vector: sums of more would be of no use to anything but large strips."""


@dataclass(frozen=True)
class AttentionParameters:
    """Tunable numbers.

    Attributes:
      lanes, vectors: of a tile of queries.
      height: keys (in the first product) or elements of a head (in the second) whose sums stay in registers, at most. Sums take up to
        three quarters of the registers: with more, loops of the products move or spill registers, as vectors of queries, broadcast
        elements and the largest scores so far want some.
      strips: of keys that a block has, each of up to `height`.
      tiles: of queries in a task, at most; a block of keys is used for all of them.
    """

    lanes: int
    vectors: int
    height: int
    strips: int
    tiles: int

    @property
    def width(self) -> int:
        """Queries of a tile."""
        return self.lanes * self.vectors


def default_parameters(attention: Attention, target: Target, rows: int) -> AttentionParameters:
    """Tiles for a number of queries whose sums fill most of the register file, from no more rows of the key at once than the first-level
    cache keeps; blocks whose scores fill half of that cache, of about the same size each."""
    element_bytes, keys = attention.product.element.width // 8, attention.shape[KEY]
    lanes = target.vector_bytes // element_bytes
    while lanes > rows:
        lanes //= 2
    vectors = min(2, ceil_div(rows, lanes))
    height = min(target.num_vector_registers * 3 // 4 // vectors, _rows_in_cache(attention, target))
    height = min(height, keys if isinstance(keys, int) else MAX_OVERLAPPING)
    width = lanes * vectors
    strips = max(1, target.l1_bytes // 2 // (width * element_bytes * height))
    if isinstance(keys, int):
        wanted = ceil_div(keys, height)
        strips = ceil_div(wanted, ceil_div(wanted, strips))
    tile_bytes = (attention.depth + attention.width) * width * element_bytes
    return AttentionParameters(lanes, vectors, height, strips, max(2, min(4, MAX_TILE_BYTES // tile_bytes)))


def _rows_in_cache(attention: Attention, target: Target) -> int:
    """How many successive rows of the key have their lines in the first-level cache at once: addresses that are a multiple of SET_SPAN
    apart share a set, which has one line for each SET_SPAN of the cache. Rows whose distance is only known in a call count as spread."""
    structured = attention.product.structured
    loops = [Var(0, extent - 1, name="r") for extent in structured.extents]
    analysis = Analysis()
    analysis.visit(structured.inputs[1], [affine_index(e, [Index.of(v) for v in loops], split_exactly) for e in structured.maps[1].results])
    strides = [(offset.coefficient(loops[KEY]), node.element.width // 8) for node, offset in analysis.found.offsets]
    sets = [SET_SPAN // gcd(SET_SPAN, stride * size) for stride, size in strides if isinstance(stride, int)]
    return max(1, target.l1_bytes // SET_SPAN) * min(sets, default=SET_SPAN)


def schedule_attention_columns(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention with several queries for each key; None for any other kernel."""
    attention = match(kernel)
    if attention is None or has_few_rows(attention, target):
        return None
    if isinstance(attention.rows, Dim):
        return emit_versions(kernel, symbolic_queries(kernel, attention, target, tuning), tuning)
    return ColumnAttention(kernel, attention, tuned_parameters(attention, target, tuning, attention.rows)).emit(tuning)


def tuned_parameters(attention: Attention, target: Target, tuning: Tuning, rows: int) -> AttentionParameters:
    """The parameters for a number of queries; `tuning` may set some of them."""
    keys, registers = attention.shape[KEY], target.num_vector_registers

    def heights(p: AttentionParameters) -> list[int]:
        most = (registers - 1 - p.vectors) // p.vectors
        return [n for n in part_sizes(keys if isinstance(keys, int) else MAX_OVERLAPPING) if n <= most]

    def strips(p: AttentionParameters) -> list[int]:
        # Scores of a block from a part of the first-level cache to half the second.
        bytes_ = p.width * attention.product.element.width // 8 * p.height
        most = max(1, target.l2_bytes // 2 // bytes_)
        return [n for n in (part_sizes(ceil_div(keys, p.height)) if isinstance(keys, int) else powers_of_two(1, 64)) if n <= min(64, most)]

    values = {"height": heights, "strips": strips, "tiles": lambda p: powers_of_two(2, 16)}
    return tuning.replace(default_parameters(attention, target, rows), ("height", "strips", "tiles"), values=values)


def symbolic_queries(kernel: Kernel, attention: Attention, target: Target, tuning: Tuning) -> list[Version]:
    """For a symbolic number of queries: at most those of one vector, and more."""
    rows, lanes = attention.rows, target.lanes(attention.product.element.width)
    few = RowAttention(kernel, attention, few_parameters(attention, target), lanes)
    several = ColumnAttention(kernel, attention, tuned_parameters(attention, target, tuning, 2 * lanes))
    return [Version(few, rows, lanes), Version(several)]


@dataclass
class _QueryTile:
    """A tile of queries: its number within the task and among all of its head, the indices of the head, and the query with which each
    vector starts."""

    number: Index
    of_head: Index
    row: list[Index]
    starts: list[Index]


@dataclass
class _Turned:
    """A tensor that the scores read across its rows (a mask): `offset` as a function of the loops, and the buffer in which a block of it
    is transposed."""

    node: Node
    offset: Index
    buffer: ir.Value | None = None


class ColumnAttention(AttentionKernel):
    """Buffers of a thread are rows of a tile's width. There are as many queries as lanes, at least."""

    def __init__(self, kernel: Kernel, attention: Attention, parameters: AttentionParameters) -> None:
        super().__init__(kernel, attention)
        self.p = parameters
        self.tiles: Size = ceil_div(attention.rows, parameters.width)
        self.strips = Strips.of(self.keys, parameters.height, parameters.strips)
        self.block_keys = self.strips.block_keys
        self.variables = [Var(0, e - 1, name="r") for e in attention.shape]
        self.turned = self._find_turned()

    @property
    def blocks(self) -> Size:
        """Tasks that the tiles of a head make. The last two tiles, which may overlap, are in one task."""
        wanted = ceil_div(self.tiles, self.p.tiles)
        outer = prod(extent for extent in (self.a.shape[i] for i in self.outer) if isinstance(extent, int))
        return maximum(1, minimum(maximum(wanted, ceil_div(PARALLEL_TASKS, outer)), self.tiles // 2))

    def _find_turned(self) -> list[_Turned]:
        """What the scores read before the causal mask with a stride along the queries and without along the keys."""
        analysis = Analysis([*self.kernel.args, self.a.product])
        analysis.visit(self.a.plain, [Index.of(v) for v in self.variables])
        found = analysis.found
        row, key = self.variables[self.a.row_loop], self.variables[KEY]
        if (isinstance(self.keys, int) and self.keys < self.p.lanes) or {row, key} & found.irregular:
            return []
        reads = [(n, o) for n, o in found.offsets if n is not self.a.product]
        return [_Turned(n, o) for n, o in reads if o.coefficient(row) not in (0, 1) and o.coefficient(key) == 1]

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
        for turned in self.turned:  # a vector of keys may start before a block, or end after it: see _turn
            turned.buffer = local_buffer((self.turned_before + self.block_keys + self.p.lanes) * self.p.width, turned.node.element)
        first = self._first_tile(block)
        count: ir.Value | int = self.block_tiles
        if self.tiles % self.blocks != 0:
            count = emit.arith("subi", emit.materialize(self._first_tile(block + 1)), emit.materialize(first))
        with self.evaluator.lanes(self.p.lanes) as lane:
            self.lane = lane
            self._each_tile(row, first, count, self._start_tile)
            number = Var(0, self.strips.blocks - 1, name="keys")
            with nest.serial([number], self.evaluator):
                keys = self.strips.block(Index.of(number) if number.high != 0 else Index())
                self._convert(row, keys)
                self._each_tile(row, first, count, lambda tile: self._tile(tile, keys))
            self._each_tile(row, first, count, self._finish_tile)

    def _first_tile(self, block: Index) -> Index:
        if self.tiles % self.blocks == 0:
            return block * self.block_tiles
        return self.evaluator.divide(block * self.tiles, self.blocks, "quotient")

    def _each_tile(self, row: list[Index], first: Index, count: ir.Value | int, body: Callable[[_QueryTile], None]) -> None:
        number = Var(0, self.block_tiles - 1, name="tile")
        with emit.for_loop(0, count, 1, number), self.evaluator.scope():
            p, place = self.p, Index.of(number) if self.block_tiles > 1 else Index()
            body(_QueryTile(place, first + place, row, [self._start(first + place, j) for j in range(p.vectors)]))

    def _each_vector(self, tile: _QueryTile, body: Callable[[Index | int, Index], None]) -> None:
        """`body(number, start)` for the vectors of a tile: in a loop where sizes are symbols, as code is emitted more than once then."""
        if not self.is_rolled:
            for j, start in enumerate(tile.starts):
                body(j, start)
            return
        number = Var(0, self.p.vectors - 1, name="j")
        with emit.for_loop(0, self.p.vectors, 1, number), self.evaluator.scope():
            body(Index.of(number), self._start(tile.of_head, Index.of(number)))

    def _start(self, tile: Index, j: Index | int) -> Index:
        """The query with which vector `j` of a tile starts."""
        return emit.at_most(tile * self.p.width + j * self.p.lanes, self.a.rows - self.p.lanes)

    @property
    def is_rolled(self) -> bool:
        """Whether what follows the products is done key by key, and element by element, when all of a block are there: where sizes are
        symbols, strips of all sizes have one code for it."""
        return not isinstance(self.a.rows, int)

    @property
    def turned_before(self) -> int:
        """Rows before the first key of a block in a buffer in which a tensor is transposed: a vector of keys may start there."""
        return max(self.p.lanes, self.strips.before)

    def _convert(self, row: list[Index], keys: KeyBlock) -> None:
        """Computes a block of key and value where their elements are not in memory as they are multiplied."""
        for name, node, extent in (("key", self.a.product, self.depth), ("value", self.a.context, self.width)):
            if name not in self.buffers:
                continue
            key = Var(0, self.block_keys - 1, name="k")
            with emit.for_loop(self.strips.first_kept(keys), self.strips.keys_of(keys, keys.counts), 1, key), self.evaluator.scope():

                def copy(start: Index, lanes: int, name: str = name, node: Node = node, extent: int = extent, key: Var = key) -> None:
                    with self.evaluator.along(lanes) as lane:
                        along = start + lane
                        value = self._operand(node, 1, [*row, keys.base + key, along])
                        self._store(name, (Index.of(key) + self.strips.before) * extent + along, value)

                self._along(extent, self.p.lanes, copy)

    # ---- a tile

    def _vector(self, name: str, row: Index, j: Index | int) -> ir.Value:
        """Vector `j` of a row of a buffer of the thread."""
        return self._load(name, self._lane_place(row, j))

    def _keep(self, name: str, row: Index, j: Index | int, value: ir.Value) -> None:
        self._store(name, self._lane_place(row, j), value)

    def _lane_place(self, row: Index, j: Index | int) -> Index:
        return row * self.p.width + j * self.p.lanes + self.lane

    def _row(self, tile: _QueryTile, start: Index, place: Index | int) -> list[Index]:
        """Indices (BATCH to QUERY) of a query of the vector that begins at one."""
        return [start + place if i == self.a.row_loop else index for i, index in enumerate(tile.row)]

    def _start_tile(self, tile: _QueryTile) -> None:
        """Transposes the queries; initialises the maximum scores, their totals and the context for no keys."""
        a, p = self.a, self.p

        def start_vector(j: Index | int, start: Index) -> None:
            self._transpose_queries(tile, j, start)
            for position, node in enumerate((a.largest, a.total)):
                self._keep("rows", tile.number * 2 + position, j, self._initial(node))

        self._each_vector(tile, start_vector)
        element = Var(0, self.width - 1, name="e")
        with emit.for_loop(0, self.width, 1, element), self.evaluator.scope():
            for j in range(p.vectors):
                self._keep("context", tile.number * self.width + element, j, self._initial(a.context))

    def _transpose_queries(self, tile: _QueryTile, j: Index | int, first: Index) -> None:
        def block(start: Index, lanes: int) -> None:
            if lanes == 1:
                point = [*self._row(tile, first, Index.of(self.lane)), Index(), start]
                columns = [self._operand(self.a.product, 0, point)]
            else:
                with self.evaluator.lanes(lanes) as lane:
                    points = [[*self._row(tile, first, i), Index(), start + lane] for i in range(lanes)]
                    columns = vectors.transpose([self._operand(self.a.product, 0, point) for point in points])
            for i, column in enumerate(columns):
                self._keep("query", tile.number * self.depth + start + i, j, column)

        self._along(self.depth, self.p.lanes, block)

    # ---- a tile and a block of keys

    def _tile(self, tile: _QueryTile, keys: KeyBlock) -> None:
        if self.a.causal is None:
            self._scores_and_context(tile, keys, [(keys.counts, self.a.scores)])
            return
        # Up to `free` keys are seen by every query of the tile, from `seen` on none.
        first = self._row(tile, tile.starts[0], 0)[QUERY]
        last = self._row(tile, tile.starts[-1], self.p.lanes - 1 if self.a.row_loop == QUERY else 0)[QUERY]
        free, seen = (q + (self.a.causal + 1) - keys.base for q in (first, last))
        unmasked = self.strips.below(keys, free, counts_last=False)
        masked = self.strips.below(keys, seen, counts_last=True)
        parts = [(unmasked, self.a.plain), (masked, self.a.scores)]
        any_seen = emit.compare("sgt", emit.arith("addi", *masked), emit.index_constant(0))
        nest.when(any_seen, self.evaluator, lambda: self._scores_and_context(tile, keys, parts))

    def _scores_and_context(self, tile: _QueryTile, keys: KeyBlock, parts: list[tuple[Counts, Node]]) -> None:
        """The contribution of a block of keys to a tile. Each part ends at a number of strips of each size, and has the node that computes
        the scores from the end of the previous part."""
        p = self.p
        count = self.strips.keys_of(keys, parts[-1][0])
        for turned in self.turned:
            self._turn_block(turned, tile, keys, count)
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
            element = Var(start, start + (number - 1) * size, step=size if start % size == 0 else 1, name="e")
            with emit.for_loop(start, start + number * size, size, element), self.evaluator.scope():
                self._add(tile, keys.base, count, Index.of(element), size, growth)
            start += number * size

    def _finish_scores(
        self, tile: _QueryTile, keys: KeyBlock, parts: list[tuple[Counts, Node]], count: ir.Value, largest: list[ir.Value]
    ) -> list[ir.Value]:
        """Turns products of a block into scores; returns the maximum."""
        begin: ir.Value | int = 0
        for counts, node in parts:
            end = count if counts is parts[-1][0] else self.strips.keys_of(keys, counts)
            key = Var(0, self.block_keys - 1, name="k")
            with emit.for_loop(begin, end, 1, key, largest) as loop, self.evaluator.scope():
                place = Index.of(key) + self.strips.before
                products = [self._vector("scores", place, j) for j in range(self.p.vectors)]
                emit.yield_values(self._score(tile, keys.base, [(Index.of(key), place)], node, products, list(loop.inner_iter_args)))
            begin, largest = end, list(loop.results)
        return largest

    def _runs(self) -> list[tuple[int, int]]:
        """Sizes of the runs of elements of the context whose sums stay in registers, and how many of each there are: one size where sizes
        are symbols and it is not much smaller."""
        size = max(n for n in range(1, self.p.height + 1) if self.width % n == 0)
        if not self.is_rolled or 2 * size <= self.p.height:
            return even_runs(self.width, self.p.height)
        return [(size, self.width // size)]

    def _turn_block(self, turned: _Turned, tile: _QueryTile, keys: KeyBlock, count: ir.Value) -> None:
        if isinstance(self.keys, int):
            self._turn(turned, tile, keys, count)
            return
        nest.when(
            emit.compare("sge", emit.index_constant(self.keys), emit.index_constant(self.p.lanes)),
            self.evaluator,
            lambda: self._turn(turned, tile, keys, count),
            lambda: self._turn_few(turned, tile, keys, count),
        )

    def _turn_few(self, turned: _Turned, tile: _QueryTile, keys: KeyBlock, count: ir.Value) -> None:
        """`_turn` for fewer keys than a vector has, which are one block."""
        p, key = self.p, Var(0, self.p.lanes - 1, name="k")
        with emit.for_loop(0, count, 1, key), self.evaluator.scope():

            def column(j: Index | int, first: Index) -> None:
                points = [[*self._row(tile, first, i), keys.base + key] for i in range(p.lanes)]
                found = vectors.from_elements([self.evaluator.load(turned.node, self._at(turned.offset, point)) for point in points])
                self.evaluator.store(found, turned.buffer, self._lane_place(Index.of(key) + self.turned_before, j))

            self._each_vector(tile, column)

    def _turn(self, turned: _Turned, tile: _QueryTile, keys: KeyBlock, count: ir.Value) -> None:
        """Transposes what the scores of a block of keys read across its rows. The last vector of all keys starts early rather
        than ending late, if need be before the block: that is what the buffer's first rows are for."""
        p = self.p
        step = Var(0, self.block_keys - 1, name="v")
        with emit.for_loop(self.strips.first_kept(keys), count, p.lanes, step), self.evaluator.scope():
            last = emit.materialize(keys.base * -1 + (self.keys - p.lanes))
            start = Index.of(
                Var(-self.turned_before, self.block_keys - 1, emit.arith("minsi", emit.materialize(Index.of(step)), last), name="start")
            )

            def block(j: Index | int, first: Index) -> None:
                with self.evaluator.lanes(p.lanes) as lane:
                    points = [[*self._row(tile, first, i), keys.base + start + lane] for i in range(p.lanes)]
                    rows = [self.evaluator.load(turned.node, self._at(turned.offset, point)) for point in points]
                for i, column in enumerate(vectors.transpose(rows)):
                    self.evaluator.store(column, turned.buffer, self._lane_place(start + self.turned_before + i, j))

            self._each_vector(tile, block)

    def _at(self, offset: Index, point: Sequence[Index]) -> Index:
        """An offset, a function of the loops BATCH to KEY, at a point."""
        return offset.at(dict(zip(self.variables, point, strict=True)))

    def _all_scores(
        self,
        tile: _QueryTile,
        keys: KeyBlock,
        strips: tuple[ir.Value | int, ir.Value],
        kind: int,
        first: Index,
        node: Node | None,
        largest: list[ir.Value],
    ) -> list[ir.Value]:
        """Scores of strips of one size, which begin at key `first` of the block; returns the maximum so far. Without a node that computes
        the scores, only the products."""
        strip = Var(0, self.p.strips - 1, name="s")
        with emit.for_loop(*strips, 1, strip, largest) as loop, self.evaluator.scope():
            start = self.strips.start(keys, kind, Index.of(strip), first)
            places = [self.strips.key(keys, kind, start + i) for i in range(self.strips.sizes[kind])]
            products = self._products(tile, keys.base, places)
            rows = [start + self.strips.before + i for i in range(len(places))]
            if node is not None:
                found = self._score(tile, keys.base, list(zip(places, rows, strict=True)), node, products, list(loop.inner_iter_args))
                emit.yield_values(found)
            else:
                for i, product in enumerate(products):
                    self._keep("scores", rows[i // self.p.vectors], i % self.p.vectors, product)
        return list(loop.results)

    def _products(self, tile: _QueryTile, base: Index, keys: list[Index]) -> list[ir.Value]:
        """Sums of the products of some keys and the queries of a tile, key by key."""
        a, p, size = self.a, self.p, len(keys)
        element = Var(0, self.depth - 1, name="d")
        with emit.for_loop(0, self.depth, 1, element, [self._initial(a.product)] * (size * p.vectors)) as loop, self.evaluator.scope():
            queries = [self._vector("query", tile.number * self.depth + element, j) for j in range(p.vectors)]
            factors = [self._factor("key", a.product, tile, base, key, Index.of(element)) for key in keys]
            emit.yield_values(_multiply_add(factors, queries, list(loop.inner_iter_args)))
        return list(loop.results)

    def _score(
        self,
        tile: _QueryTile,
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
                for turned in self.turned:
                    value = self.evaluator.load_from(turned.buffer, turned.node.element, self._lane_place(key + self.turned_before, j))
                    self.evaluator.remember_load(turned.node, self._at(turned.offset, point), value)
                self.evaluator.remember(a.product, point, products[i * p.vectors + j])
                score = self.evaluator.at(node, point)
                self._keep("scores", row, j, score)
                largest = [*largest[:j], larger(score, largest[j]), *largest[j + 1 :]]
        return largest

    def _factor(self, name: str, node: Node, tile: _QueryTile, base: Index, position: Index, element: Index) -> ir.Value:
        """An element of key or value, broadcast."""
        extent = self.depth if name == "key" else self.width
        if name in self.buffers:
            value = self._load(name, (position + self.strips.before) * extent + element)
        else:
            value = self._operand(node, 1, [*tile.row, base + position, element])
        return emit.broadcast(value, self.p.lanes)

    def _weights(self, tile: _QueryTile, count: ir.Value, largest: list[ir.Value], growth: list[ir.Value]) -> None:
        """Scores of a block become weights; the totals take them in."""
        totals = []
        for j, factor in enumerate(growth):
            self._keep("rows", tile.number * 2, j, largest[j])
            totals.append(emit.arith("mulf", self._vector("rows", tile.number * 2 + 1, j), factor))
        key = Var(0, self.block_keys - 1, name="k")
        with emit.for_loop(0, count, 1, key, totals) as loop, self.evaluator.scope():
            sums = []
            for j, total in enumerate(loop.inner_iter_args):
                place = Index.of(key) + self.strips.before
                weight = self._weight(self._vector("scores", place, j), largest[j])
                self._keep("scores", place, j, weight)
                sums.append(emit.arith("addf", total, weight))
            emit.yield_values(sums)
        for j, total in enumerate(loop.results):
            self._keep("rows", tile.number * 2 + 1, j, total)

    def _add(self, tile: _QueryTile, base: Index, count: ir.Value, start: Index, size: int, growth: list[ir.Value]) -> None:
        """Adds the contribution of a block of keys to `size` elements of the context."""
        p = self.p
        places = [(tile.number * self.width + start + i, j) for i in range(size) for j in range(p.vectors)]
        sums = [emit.arith("mulf", self._vector("context", row, j), growth[j]) for row, j in places]
        key = Var(0, self.block_keys - 1, name="k")
        with emit.for_loop(0, count, 1, key, sums) as loop, self.evaluator.scope():
            weights = [self._vector("scores", Index.of(key) + self.strips.before, j) for j in range(p.vectors)]
            factors = [self._factor("value", self.a.context, tile, base, Index.of(key), start + i) for i in range(size)]
            emit.yield_values(_multiply_add(factors, weights, list(loop.inner_iter_args)))
        for (row, j), value in zip(places, loop.results, strict=True):
            self._keep("context", row, j, value)

    # ---- the result

    def _finish_tile(self, tile: _QueryTile) -> None:
        """Divides by the totals, transposes back and stores."""
        self._each_vector(tile, lambda j, start: self._finish(tile, j, start))

    def _finish(self, tile: _QueryTile, j: Index | int, first: Index) -> None:
        row = self._row(tile, first, Index.of(self.lane))

        def context(element: Index) -> ir.Value:
            return self._vector("context", tile.number * self.width + element, j)

        def result(element: Index) -> ir.Value:
            return self._result(row, element, context(element), self._vector("rows", tile.number * 2 + 1, j))

        if self.is_rolled and self.kernel.results[0].element == self.wide:
            along = Var(0, self.width - 1, name="e")
            with emit.for_loop(0, self.width, 1, along), self.evaluator.scope():
                self._keep("context", tile.number * self.width + along, j, result(Index.of(along)))
            result = context

        def block(start: Index, lanes: int) -> None:
            if lanes == 1:
                self.evaluator.store(result(start), self.output, self._place(row, start))
                return
            for i, column in enumerate(vectors.transpose([result(start + i) for i in range(lanes)])):
                with self.evaluator.lanes(lanes) as lane:
                    self.evaluator.store(column, self.output, self._place(self._row(tile, first, i), start + lane))

        self._along(self.width, self.p.lanes, block)


def _multiply_add(factors: Sequence[ir.Value], vectors: Sequence[ir.Value], sums: Sequence[ir.Value]) -> list[ir.Value]:
    """Adds the products of every factor with every vector to the sums, which are in that order."""
    pairs = [(f, v) for f in factors for v in vectors]
    return [emit.multiply_add(f, v, s) for (f, v), s in zip(pairs, sums, strict=True)]
