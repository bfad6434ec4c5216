"""The schedule of attention with several queries: flash attention with the queries along the lanes.

A task is some tiles of queries of one head. Tiles are transposed once, so that both products read the query, the weights and the context
as vectors of queries, and the key and the value, where they lie, as elements that are broadcast: neither is packed, and the softmax has no
sums across lanes. For each block of keys and each tile the scores of the block are computed into a buffer of the thread that stays in the
first-level cache; the context so far is scaled by how much the largest score of each query has grown (Milakov and Gimelshein, Online
normalizer calculation for softmax; Dao et al., FlashAttention). Keys that a causal mask hides from all queries of a tile are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.cpu.schedule.attention.emission import Emission, arith, compare, has_few_rows, larger
from relayc.pipelines.kernel.access import Analysis
from relayc.pipelines.kernel.attention import KEY, QUERY, Attention, match
from relayc.pipelines.kernel.graph import Kernel, Node
from relayc.pipelines.kernel.index import Index, Var, even_parts
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit

Value = ir.Value

PARALLEL_TASKS = 8
"""Iterations that the parallel loop should have at least, so that threads get equal shares."""
MAX_TILE_BYTES = 64 << 10
"""Memory for the queries and the context of a task."""


@dataclass(frozen=True)
class AttentionParameters:
    """Tunable numbers.

    Attributes:
      lanes, vectors: of a tile of queries.
      height: keys (in the first product) or elements of a head (in the second) whose sums stay in registers, at most.
      groups: of keys that a block has, each of up to `height`.
      tiles: of queries in a task, at most; a block of keys is used for all of them.
    """

    lanes: int
    vectors: int
    height: int
    groups: int
    tiles: int

    @property
    def width(self) -> int:
        """Queries of a tile."""
        return self.lanes * self.vectors


def default_parameters(attention: Attention, target: Target) -> AttentionParameters:
    """Tiles that fill the register file (sums, vectors of queries, one broadcast element); blocks whose scores fill half the first-level
    cache, of about the same size each."""
    element_bytes = attention.product.element.width // 8
    rows = attention.rows
    lanes = target.vector_bytes // element_bytes
    while lanes > rows:
        lanes //= 2
    vectors = min(2, -(-rows // lanes))
    height = min((target.num_vector_registers - 1 - vectors) // vectors, attention.shape[KEY])
    width = lanes * vectors
    groups = -(-attention.shape[KEY] // height)
    most = max(1, target.l1_bytes // 2 // (width * element_bytes * height))
    tile_bytes = (attention.depth + attention.width) * width * element_bytes
    return AttentionParameters(lanes, vectors, height, -(-groups // -(-groups // most)), max(2, min(4, MAX_TILE_BYTES // tile_bytes)))


def schedule_attention_columns(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention with several queries for each key; None for any other kernel."""
    attention = match(kernel)
    if attention is None or has_few_rows(attention, target):
        return None
    parameters = tuning.replace(default_parameters(attention, target), height="height", groups="groups", tiles="tiles")
    return _Columns(kernel, attention, parameters).emit(tuning)


@dataclass
class _Tile:
    """A tile of queries: its number within the task, the indices of its head, and the query with which each vector starts."""

    number: Index
    row: list[Index]
    starts: list[Index]


@dataclass
class _Block:
    """A block of keys: the first one, how many groups of the larger and of the smaller size it has."""

    base: Index
    larger: Value
    smaller: Value


@dataclass
class _Turned:
    """A tensor that the scores read across its rows (a mask): `offset` as a function of the loops, and the buffer in which a block of it
    is transposed."""

    node: Node
    offset: Index
    buffer: Value | None = None


class _Columns(Emission):
    """Buffers of a thread are rows of a tile's width."""

    def __init__(self, kernel: Kernel, attention: Attention, parameters: AttentionParameters) -> None:
        super().__init__(kernel, attention)
        self.p = parameters
        self.tiles = -(-attention.rows // parameters.width)
        # Groups of two sizes that differ by one: none has so few keys that their sums wait for each other.
        sizes = even_parts(self.keys, parameters.height)
        self.size = sizes[0]
        self.larger, self.smaller = sizes.count(self.size), len(sizes) - sizes.count(self.size)
        self.key_blocks = -(-len(sizes) // parameters.groups)
        self.block_keys = min(self.keys, parameters.groups * self.size)
        self.variables = [Var(0, e - 1, name="r") for e in attention.shape]
        self.turned = self._find_turned()

    @property
    def blocks(self) -> int:
        """Tasks that the tiles of a head make. The last two tiles, which may overlap, are in one task."""
        wanted = -(-self.tiles // self.p.tiles)
        outer = prod(self.a.shape[i] for i in self.outer)
        return max(1, min(max(wanted, -(-PARALLEL_TASKS // outer)), self.tiles // 2))

    def _find_turned(self) -> list[_Turned]:
        """What the scores read with a stride along the queries and without along the keys."""
        analysis = Analysis([*self.kernel.args, self.a.product])
        analysis.visit(self.a.plain, [Index.of(v) for v in self.variables])
        row, key = self.variables[self.a.row_loop], self.variables[KEY]
        if self.keys < self.p.lanes or {row, key} & analysis.found.irregular:
            return []
        reads = [(n, o) for n, o in analysis.found.offsets if n is not self.a.product]
        return [_Turned(n, o) for n, o in reads if o.coefficient(row) not in (0, 1) and o.coefficient(key) == 1]

    @property
    def block_tiles(self) -> int:
        """Tiles of a task, at most."""
        return -(-self.tiles // self.blocks)

    # ---- a task

    def _buffers(self) -> dict[str, int]:
        width = self.p.width
        sizes = {
            "query": self.block_tiles * self.depth * width,
            "context": self.block_tiles * self.width * width,
            "rows": self.block_tiles * 2 * width,
            "scores": self.block_keys * width,
        }
        for name, node, extent in (("key", self.a.product, self.depth), ("value", self.a.context, self.width)):
            if not self._is_read_in_place(node):  # computed once for all tiles of the task
                sizes[name] = self.block_keys * extent
        return sizes

    def _task(self, row: list[Index], block: Index) -> None:
        """Some tiles of queries of one head."""
        for turned in self.turned:  # a vector of keys may start before a block, or end after it: see _turn
            turned.buffer = emit.local_buffer((self.block_keys + 2 * self.p.lanes) * self.p.width, turned.node.element)
        first = self._first_tile(block)
        count: Value | int = self.block_tiles
        if self.tiles % self.blocks:
            count = arith("subi", emit.materialize(self._first_tile(block + 1)), emit.materialize(first))
        with self.evaluator.lanes(self.p.lanes) as lane:
            self.lane = lane
            self._each_tile(row, first, count, self._start_tile)
            number = Var(0, self.key_blocks - 1, name="keys")
            with emit.for_loop(0, self.key_blocks, 1, number), self.evaluator.scope():
                keys = self._block(Index.of(number) if self.key_blocks > 1 else Index())
                self._convert(row, keys)
                self._each_tile(row, first, count, lambda tile: self._tile(tile, keys))
            self._each_tile(row, first, count, self._finish_tile)

    def _first_tile(self, block: Index) -> Index:
        if self.tiles % self.blocks == 0:
            return block * self.block_tiles
        return self.evaluator.divide(block * self.tiles, self.blocks, "quotient")

    def _each_tile(self, row: list[Index], first: Index, count: Value | int, body: Callable[[_Tile], None]) -> None:
        number = Var(0, self.block_tiles - 1, name="tile")
        with emit.for_loop(0, count, 1, number), self.evaluator.scope():
            p, place = self.p, Index.of(number) if self.block_tiles > 1 else Index()
            starts = [emit.at_most((first + place) * p.width + j * p.lanes, self.a.rows - p.lanes) for j in range(p.vectors)]
            body(_Tile(place, row, starts))

    def _block(self, number: Index) -> _Block:
        """A block of keys: all groups of the larger size come before those of the smaller."""
        groups = number * self.p.groups
        larger = _clamped(groups * -1 + self.larger, self.p.groups)
        every = _clamped(groups * -1 + (self.larger + self.smaller), self.p.groups)
        base = groups * self.size
        if (self.key_blocks - 1) * self.p.groups > self.larger:
            before = arith("maxsi", emit.materialize(groups - self.larger), emit.index_constant(0))
            base -= Var(0, self.smaller, before, name="smaller")
        return _Block(base, larger, arith("subi", every, larger))

    def _convert(self, row: list[Index], keys: _Block) -> None:
        """Computes a block of key and value where their elements are not in memory as they are multiplied."""
        for name, node, extent in (("key", self.a.product, self.depth), ("value", self.a.context, self.width)):
            if name not in self.buffers:
                continue
            key = Var(0, self.block_keys - 1, name="k")
            with emit.for_loop(0, self._keys(keys.larger, keys.smaller), 1, key), self.evaluator.scope():

                def copy(start: Index, lanes: int, name: str = name, node: Node = node, extent: int = extent, key: Var = key) -> None:
                    with self.evaluator.lanes(lanes) as lane:
                        along = start + lane if lanes > 1 else start
                        value = self._operand(node, 1, [*row, keys.base + key, along])
                        self._store(name, Index.of(key) * extent + along, value)

                self._along(extent, self.p.lanes, copy)

    # ---- a tile

    def _vector(self, name: str, row: Index, j: int) -> Value:
        """Vector `j` of a row of a buffer of the thread."""
        return self._load(name, self._lane_place(row, j))

    def _keep(self, name: str, row: Index, j: int, value: Value) -> None:
        self._store(name, self._lane_place(row, j), value)

    def _lane_place(self, row: Index, j: int) -> Index:
        return row * self.p.width + j * self.p.lanes + self.lane

    def _row(self, tile: _Tile, j: int, place: Index | int) -> list[Index]:
        """Indices (BATCH to QUERY) of a query of vector `j`."""
        return [tile.starts[j] + place if i == self.a.row_loop else index for i, index in enumerate(tile.row)]

    def _start_tile(self, tile: _Tile) -> None:
        """Transposes the queries; sets the largest scores, their totals and the context to what no key gives."""
        a, p = self.a, self.p
        for j in range(p.vectors):
            self._transpose_queries(tile, j)
            for position, node in enumerate((a.largest, a.total)):
                self._keep("rows", tile.number * 2 + position, j, self._initial(node))
        element = Var(0, self.width - 1, name="e")
        with emit.for_loop(0, self.width, 1, element), self.evaluator.scope():
            for j in range(p.vectors):
                self._keep("context", tile.number * self.width + element, j, self._initial(a.context))

    def _transpose_queries(self, tile: _Tile, j: int) -> None:
        def block(start: Index, lanes: int) -> None:
            if lanes == 1:
                point = [*self._row(tile, j, Index.of(self.lane)), Index(), start]
                columns = [self._operand(self.a.product, 0, point)]
            else:
                with self.evaluator.lanes(lanes) as lane:
                    points = [[*self._row(tile, j, i), Index(), start + lane] for i in range(lanes)]
                    columns = emit.transpose([self._operand(self.a.product, 0, point) for point in points])
            for i, column in enumerate(columns):
                self._keep("query", tile.number * self.depth + start + i, j, column)

        self._along(self.depth, self.p.lanes, block)

    # ---- a tile and a block of keys

    def _keys(self, larger: Value, smaller: Value) -> Value:
        """Keys of some groups of each size."""
        keys = arith("muli", larger, emit.index_constant(self.size))
        return arith("addi", keys, arith("muli", smaller, emit.index_constant(self.size - 1))) if self.smaller else keys

    def _tile(self, tile: _Tile, keys: _Block) -> None:
        if self.a.causal is None:
            self._scores_and_context(tile, keys, [(keys.larger, keys.smaller, self.a.scores)])
            return
        # Up to `free` keys are seen by every query of the tile, from `seen` on none.
        first, last = self._row(tile, 0, 0)[QUERY], self._row(tile, -1, self.p.lanes - 1 if self.a.row_loop == QUERY else 0)[QUERY]
        free, seen = (q + (self.a.causal + 1) - keys.base for q in (first, last))
        unmasked = self._groups(keys, free, ceil=False)
        masked = self._groups(keys, seen, ceil=True)
        any_seen = compare("sgt", arith("addi", *masked), emit.index_constant(0))
        branch = scf.IfOp(any_seen)
        with ir.InsertionPoint(branch.then_block), self.evaluator.scope():
            self._scores_and_context(tile, keys, [(*unmasked, self.a.plain), (*masked, self.a.scores)])
            scf.YieldOp([])

    def _groups(self, keys: _Block, limit: Index, ceil: bool) -> tuple[Value, Value]:
        """How many groups of each size of a block lie below a limit (with `ceil`, begin below it)."""
        found = []
        value = emit.materialize(limit)
        for size, count in ((self.size, keys.larger), (self.size - 1, keys.smaller)):
            if found:
                value = arith("subi", value, arith("muli", keys.larger, emit.index_constant(self.size)))
            if not size:
                found.append(count)
                continue
            groups = arith("ceildivsi" if ceil else "floordivsi", value, emit.index_constant(size))
            found.append(arith("minsi", arith("maxsi", groups, emit.index_constant(0)), count))
        return found[0], found[1]

    def _scores_and_context(self, tile: _Tile, keys: _Block, parts: list[tuple[Value, Value, Node]]) -> None:
        """What a block of keys adds to a tile. Each part reaches up to a number of groups of each size, and says what the scores are from
        where the one before ended."""
        p = self.p
        count = self._keys(*parts[-1][:2])
        for turned in self.turned:
            self._turn(turned, tile, keys, count)
        before = [self._vector("rows", tile.number * 2, j) for j in range(p.vectors)]
        largest = before
        offset = arith("muli", keys.larger, emit.index_constant(self.size))
        for kind, (size, start) in enumerate(((self.size, None), (self.size - 1, offset))):
            if kind == 1 and not self.smaller:
                continue
            begin: Value | int = 0
            for part in parts:
                largest = self._all_scores(tile, keys, (begin, part[kind]), size, start, part[2], largest)
                begin = part[kind]
        growth = [self._weight(b, m) for b, m in zip(before, largest, strict=True)]
        self._weights(tile, count, largest, growth)
        start = 0
        sizes = even_parts(self.width, p.height)
        for size in dict.fromkeys(sizes):
            number = sizes.count(size)
            element = Var(start, start + (number - 1) * size, step=size if start % size == 0 else 1, name="e")
            with emit.for_loop(start, start + number * size, size, element), self.evaluator.scope():
                self._add(tile, keys.base, count, Index.of(element), size, growth)
            start += number * size

    def _turn(self, turned: _Turned, tile: _Tile, keys: _Block, count: Value) -> None:
        """Transposes what the scores of a block of keys read across its rows. The last vector of all keys starts early rather
        than ending late, if need be before the block: that is what the buffer's first rows are for."""
        p = self.p
        step = Var(0, self.block_keys - 1, name="v")
        with emit.for_loop(0, count, p.lanes, step), self.evaluator.scope():
            last = emit.materialize(keys.base * -1 + (self.keys - p.lanes))
            start = Index.of(Var(-p.lanes, self.block_keys - 1, arith("minsi", emit.materialize(Index.of(step)), last), name="start"))
            for j in range(p.vectors):
                with self.evaluator.lanes(p.lanes) as lane:
                    points = [[*self._row(tile, j, i), keys.base + start + lane] for i in range(p.lanes)]
                    rows = [self.evaluator.load(turned.node, self._at(turned.offset, point)) for point in points]
                for i, column in enumerate(emit.transpose(rows)):
                    self.evaluator.store(column, turned.buffer, self._lane_place(start + p.lanes + i, j))

    def _at(self, offset: Index, point: Sequence[Index]) -> Index:
        """An offset, a function of the loops BATCH to KEY, at a point."""
        place = dict(zip(self.variables, point, strict=True))
        return offset.at(place)

    def _all_scores(
        self,
        tile: _Tile,
        keys: _Block,
        groups: tuple[Value | int, Value],
        size: int,
        offset: Value | None,
        node: Node,
        largest: list[Value],
    ) -> list[Value]:
        """Scores of groups of one size; gives the largest so far."""
        group = Var(0, self.p.groups - 1, name="g")
        with emit.for_loop(*groups, 1, group, largest) as loop, self.evaluator.scope():
            start = Index(0, {group: size})
            if offset is not None:
                start += Var(0, self.block_keys - 1, offset, name="offset")
            emit.yield_values(self._scores(tile, keys.base, start, size, node, list(loop.inner_iter_args)))
        return list(loop.results)

    def _scores(self, tile: _Tile, base: Index, start: Index, size: int, node: Node, largest: list[Value]) -> list[Value]:
        """Scores of one group of keys, from `start` of the block on, to the buffer; gives the largest so far."""
        a, p = self.a, self.p
        element = Var(0, self.depth - 1, name="d")
        with emit.for_loop(0, self.depth, 1, element, [self._initial(a.product)] * (size * p.vectors)) as loop, self.evaluator.scope():
            queries = [self._vector("query", tile.number * self.depth + element, j) for j in range(p.vectors)]
            factors = [self._factor("key", a.product, tile, base, start + i, Index.of(element)) for i in range(size)]
            emit.yield_values(_multiply_add(factors, queries, list(loop.inner_iter_args)))
        products = list(loop.results)
        for i in range(size):
            for j in range(p.vectors):
                point = [*self._row(tile, j, Index.of(self.lane)), base + start + i]
                for turned in self.turned:
                    value = self.evaluator.load_from(turned.buffer, turned.node.element, self._lane_place(start + i + p.lanes, j))
                    self.evaluator.remember_load(turned.node, self._at(turned.offset, point), value)
                self.evaluator.remember(a.product, point, products[i * p.vectors + j])
                score = self.evaluator.at(node, point)
                self._keep("scores", start + i, j, score)
                largest = [*largest[:j], larger(score, largest[j]), *largest[j + 1 :]]
        return largest

    def _factor(self, name: str, node: Node, tile: _Tile, base: Index, position: Index, element: Index) -> Value:
        """An element of key or value, broadcast."""
        extent = self.depth if name == "key" else self.width
        if name in self.buffers:
            value = self._load(name, position * extent + element)
        else:
            value = self._operand(node, 1, [*tile.row, base + position, element])
        return emit.broadcast(value, self.p.lanes)

    def _weights(self, tile: _Tile, count: Value, largest: list[Value], growth: list[Value]) -> None:
        """Scores of a block become weights; the totals take them in."""
        totals = []
        for j, factor in enumerate(growth):
            self._keep("rows", tile.number * 2, j, largest[j])
            totals.append(emit.create("arith.mulf", [factor.type], [self._vector("rows", tile.number * 2 + 1, j), factor]))
        key = Var(0, self.block_keys - 1, name="k")
        with emit.for_loop(0, count, 1, key, totals) as loop, self.evaluator.scope():
            sums = []
            for j, total in enumerate(loop.inner_iter_args):
                weight = self._weight(self._vector("scores", Index.of(key), j), largest[j])
                self._keep("scores", Index.of(key), j, weight)
                sums.append(emit.create("arith.addf", [total.type], [total, weight]))
            emit.yield_values(sums)
        for j, total in enumerate(loop.results):
            self._keep("rows", tile.number * 2 + 1, j, total)

    def _add(self, tile: _Tile, base: Index, count: Value, start: Index, size: int, growth: list[Value]) -> None:
        """Adds to `size` elements of the context what a block of keys gives."""
        p = self.p
        places = [(tile.number * self.width + start + i, j) for i in range(size) for j in range(p.vectors)]
        sums = [emit.create("arith.mulf", [growth[j].type], [self._vector("context", row, j), growth[j]]) for row, j in places]
        key = Var(0, self.block_keys - 1, name="k")
        with emit.for_loop(0, count, 1, key, sums) as loop, self.evaluator.scope():
            weights = [self._vector("scores", Index.of(key), j) for j in range(p.vectors)]
            factors = [self._factor("value", self.a.context, tile, base, Index.of(key), start + i) for i in range(size)]
            emit.yield_values(_multiply_add(factors, weights, list(loop.inner_iter_args)))
        for (row, j), value in zip(places, loop.results, strict=True):
            self._keep("context", row, j, value)

    # ---- the result

    def _finish_tile(self, tile: _Tile) -> None:
        """Divides by the totals, transposes back and stores."""
        for j in range(self.p.vectors):
            self._finish(tile, j)

    def _finish(self, tile: _Tile, j: int) -> None:
        row = self._row(tile, j, Index.of(self.lane))

        def result(element: Index) -> Value:
            context = self._vector("context", tile.number * self.width + element, j)
            return self._result(row, element, context, self._vector("rows", tile.number * 2 + 1, j))

        def block(start: Index, lanes: int) -> None:
            if lanes == 1:
                self.evaluator.store(result(start), self.output, self._place(row, start))
                return
            for i, column in enumerate(emit.transpose([result(start + i) for i in range(lanes)])):
                with self.evaluator.lanes(lanes) as lane:
                    self.evaluator.store(column, self.output, self._place(self._row(tile, j, i), start + lane))

        self._along(self.width, self.p.lanes, block)


def _clamped(index: Index, most: int) -> Value:
    """An index, but not less than 0 nor more than `most`."""
    low, high = index.bounds()
    value = emit.materialize(index)
    if high > most:
        value = arith("minsi", value, emit.index_constant(most))
    return arith("maxsi", value, emit.index_constant(0)) if low < 0 else value


def _multiply_add(factors: Sequence[Value], vectors: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
    """Adds the products of every factor with every vector to the sums, which are in that order."""
    pairs = [(f, v) for f in factors for v in vectors]
    return [emit.multiply_add(f, v, s) for (f, v), s in zip(pairs, sums, strict=True)]
