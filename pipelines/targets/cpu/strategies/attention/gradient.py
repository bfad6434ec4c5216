"""The schedule of the derivatives of attention: flash attention backwards, with the queries along the lanes.

A task is a head of the key. For each tile of queries of its heads of the query and each block of keys, the weights are computed again from
the logarithm of the sum of the exponentials of the scores, with the derivatives of the scores; both stay in buffers of the thread in the
first-level cache (Dao et al., FlashAttention, algorithm 4). The products with them have lanes along the elements of a head and are added to
the results in memory: what belongs to keys strip by strip, what belongs to queries for a whole block of keys. Keys that a causal mask hides
from all queries of a tile are left out.
"""

from collections.abc import Callable
from dataclasses import replace

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, even_parts, even_runs, linearize
from relayc.pipelines.targets.cpu.strategies.attention.kernel import Version, emit_versions
from relayc.pipelines.targets.cpu.strategies.attention.parameters import AttentionParameters, default_parameters, tuned_parameters
from relayc.pipelines.targets.cpu.strategies.attention.query_tiles import Parts, QueryTile, QueryTiles, multiply_add
from relayc.pipelines.targets.cpu.strategies.attention.strips import EvenStrips, KeyBlock, SingleStrips, Strips
from relayc.pipelines.te.read.attention import KEY, QUERY, QUERY_HEAD, AttentionGradient, match_gradient
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.te.read.reduction import multiply_add_casts
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Dim

COLUMNS = 4
"""Vectors along the elements of a head whose sums stay in registers together, at most: of more, fewer rows would."""
NUMBERS = ("height", "strips")
"""That may be set."""


def schedule_attention_gradient(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules the derivatives of attention; None for any other kernel."""
    attention = match_gradient(kernel)
    if attention is None:
        return None
    rows = attention.rows
    if isinstance(rows, int):
        return GradientAttention(kernel, attention, tuned_parameters(attention, target, tuning, rows, NUMBERS), target).emit(tuning)
    lanes = target.lanes(attention.product.element.width)
    several = tuned_parameters(attention, target, tuning, 2 * lanes, NUMBERS)
    few = replace(default_parameters(attention, target, 1), height=several.height)
    versions = [Version(GradientAttention(kernel, attention, few, target), rows, lanes - 1)]
    return emit_versions(kernel, [*versions, Version(GradientAttention(kernel, attention, several, target))], tuning)


class GradientAttention(QueryTiles):
    """Buffers of a thread, beside those of `QueryTiles`: query and grad of a tile with the elements and with the queries outermost, weights
    and derivatives of scores of a block of keys, keys outermost."""

    a: AttentionGradient
    blocks = 1

    def __init__(self, kernel: Kernel, attention: AttentionGradient, parameters: AttentionParameters, target: Target) -> None:
        keys = attention.shape[KEY]
        kind: type[SingleStrips | EvenStrips] = SingleStrips if isinstance(keys, Dim) else EvenStrips
        strips: Strips = kind(keys, parameters.height, parameters.strips)  # type: ignore[arg-type]
        super().__init__(kernel, attention, parameters, strips, [QUERY_HEAD, QUERY])
        self.sums, self.element_lanes = target.num_vector_registers * 3 // 4, target.lanes(self.wide.width)

    def _buffers(self) -> dict[str, int]:
        width, keys = self.p.width, self.block_keys
        sizes = {"query": self.depth * width, "query_rows": self.depth * width, "grad": self.width * width, "grad_rows": self.width * width}
        sizes |= {"weights": keys * width, "scores": keys * width}
        for name, node, extent in (("key", self.a.product, self.depth), ("value", self.a.of_weights, self.width)):
            if not self._is_read_in_place(node):
                sizes[name] = keys * extent
        return sizes

    # ---- a task

    def _task(self, row: list[Index], block: Index) -> None:
        """A head of the key."""
        a = self.a
        self._turned_buffers()
        for node, output in zip((a.d_query, a.d_key, a.d_value), self.outputs, strict=True):
            self._clear(node, output, row[:QUERY_HEAD])
        head, tile = Var.below(a.shape[QUERY_HEAD], name="head"), Var.below(self.tiles, name="tile")
        has_heads = a.row_loop == QUERY and a.shape[QUERY_HEAD] != 1
        with nest.serial([head, tile] if has_heads else [tile], self.evaluator), self.evaluator.along(self.p.lanes) as lane:
            self.lane = lane
            if has_heads:
                row = [*row[:QUERY_HEAD], Index.of(head), *row[QUERY:]]
            number = Index.of(tile) if self.tiles != 1 else Index()
            self._tile(QueryTile(Index(), number, row, [self._start(number, j) for j in range(self.p.vectors)]))

    def _clear(self, node: Node, output: ir.Value, head: list[Index]) -> None:
        """Sets what a result has of a head to 0."""
        rows = [Var.below(extent, name="row") for extent in node.shape[len(head) : -1]]
        with (
            nest.serial(rows, self.evaluator),
            self._along(self._extent(node), self.p.lanes) as (start, lanes),
            self.evaluator.along(lanes) as lane,
        ):
            place = linearize([*head, *map(Index.of, rows), start + lane], node.shape)
            self.evaluator.store(emit.broadcast(emit.zero(node.element), lanes), output, place)

    def _extent(self, node: Node) -> int:
        """Elements of a head of a result."""
        return self.width if node is self.a.d_value else self.depth

    def _tile(self, tile: QueryTile) -> None:
        a = self.a
        for name, node, extent in (("query", a.product, self.depth), ("grad", a.of_weights, self.width)):
            for j, start in enumerate(tile.starts):
                self._transpose(name, node, extent, tile, j, start)
        self._copy_rows("query_rows", a.d_key, tile)
        self._copy_rows("grad_rows", a.d_value, tile)
        with nest.loop(0, self.strips.blocks, self.evaluator, name="keys") as number:
            keys = self.strips.block(number if self.strips.blocks != 1 else Index())
            self._convert(tile.row, keys)
            self._seen(tile, keys, lambda parts: self._block(tile, keys, parts))

    def _copy_rows(self, name: str, node: Node, tile: QueryTile) -> None:
        """The second operand of a product of the queries of a tile, as it is multiplied."""
        extent, structured, casts = self._extent(node), node.structured, multiply_add_casts(node.structured)
        for j, first in enumerate(tile.starts):
            with (
                nest.loop(0, self.p.lanes, self.evaluator, name="q") as query,
                self._along(extent, self.p.lanes) as (start, lanes),
                self.evaluator.along(lanes) as lane,
            ):
                point = [*self._row(tile, first, query), Index(), start + lane]
                value = self.evaluator.at(structured.inputs[1], self.evaluator.apply(structured.maps[1], point))
                value = emit.convert(emit.broadcast(value, lanes), casts[1] if casts is not None else [])
                self._store(name, (query + j * self.p.lanes) * extent + start + lane, value)

    # ---- a tile and a block of keys

    def _block(self, tile: QueryTile, keys: KeyBlock, parts: Parts) -> None:
        counts = parts[-1][0]
        count = self.strips.keys_of(keys, counts)
        self._turn_block(tile, keys, count)
        of_rows = [self._of_row(tile, j) for j in range(self.p.vectors)]
        for kind, _, first in self.strips.kinds(keys):
            self._all_products(tile, keys, counts[kind], kind, first)
        begin: ir.Value | int = 0
        for ends, node in parts:
            end = count if ends is counts else self.strips.keys_of(keys, ends)
            self._weights(tile, keys.base, (begin, end), node, of_rows)
            begin = end
        for kind, size, first in self.strips.kinds(keys):
            with nest.loop(0, counts[kind], self.evaluator, below=self.p.strips, name="s") as strip:
                self._add_to_keys(tile, keys.base, self.strips.start(keys, kind, strip, first), size)
        self._add_to_queries(tile, keys.base, count)

    def _of_row(self, tile: QueryTile, j: int) -> ir.Value:
        """What is subtracted from the scores of a vector of queries: inf for those that the vector before has, too, so that they have no
        weight."""
        start, lanes, rows = tile.starts[j], self.p.lanes, self.a.rows
        value = emit.broadcast(self.evaluator.at(self.a.of_row, self._row(tile, start, Index.of(self.lane))), lanes)
        if self.p.width == 1 or (isinstance(rows, int) and rows % self.p.width == 0):
            return value
        before = emit.arith("subi", emit.materialize(tile.of_head * self.p.width + j * lanes), emit.materialize(start))
        return emit.select(emit.first_lanes(before, lanes), emit.number(float("inf"), value.type), value)

    def _all_products(self, tile: QueryTile, keys: KeyBlock, count: ir.Value, kind: int, first: Index) -> None:
        """The products of query and key, and of grad and value, of strips of one size."""
        with nest.loop(0, count, self.evaluator, below=self.p.strips, name="s") as strip:
            start = self.strips.start(keys, kind, strip, first)
            places = [start + i for i in range(self.strips.sizes[kind])]
            for target, vector, factor, node in (
                ("weights", "query", "key", self.a.product),
                ("scores", "grad", "value", self.a.of_weights),
            ):
                for i, product in enumerate(self._products(vector, factor, node, tile, keys.base, places)):
                    self._keep(target, places[i // self.p.vectors], i % self.p.vectors, product)

    def _weights(self, tile: QueryTile, base: Index, keys: tuple[ir.Value | int, ir.Value], node: Node, of_rows: list[ir.Value]) -> None:
        """Products become weights and derivatives of scores; `node` computes the scores of the keys."""
        a, (begin, end) = self.a, keys
        with nest.loop(begin, end, self.evaluator, below=self.block_keys, name="k") as place:
            for j, of_row in enumerate(of_rows):
                point = [*self._row(tile, tile.starts[j], Index.of(self.lane)), base + place]
                self._remember_turned(point, place, j)
                self.evaluator.remember(a.product, point, self._vector("weights", place, j))
                self.evaluator.remember(a.of_weights, point, self._vector("scores", place, j))
                weight = self._weight(emit.broadcast(self.evaluator.at(node, point), self.p.lanes), of_row)
                self.evaluator.remember(a.weights, point, weight)
                self._keep("weights", place, j, weight)
                self._keep("scores", place, j, self.evaluator.at(a.of_scores, point))

    def _add_to_keys(self, tile: QueryTile, base: Index, start: Index, size: int) -> None:
        """Adds the contribution of a tile to the derivatives of the keys and values of a strip."""
        a, head = self.a, tile.row[:QUERY_HEAD]
        for node, output, name, rows in (
            (a.d_value, self.outputs[2], "weights", "grad_rows"),
            (a.d_key, self.outputs[1], "scores", "query_rows"),
        ):
            extent = self._extent(node)

            def factor(query: Index, element: Index, rows: str = rows, extent: int = extent) -> ir.Value:
                return self._load(rows, query * extent + element)

            for runs in self._runs(extent):
                first = 0
                for number in even_parts(size, self._most_rows(runs[1])):
                    keys = [start + first + i for i in range(number)]
                    places = [linearize([*head, base + key, Index()], node.shape) for key in keys]
                    self._add(output, places, runs, (name, [key * self.p.width for key in keys], 1), self.p.width, factor)
                    first += number

    def _add_to_queries(self, tile: QueryTile, base: Index, count: ir.Value) -> None:
        """Adds the contribution of a block of keys to the derivatives of the queries of a tile, vector by vector: a query that two vectors
        have is not added to by both at once."""
        a, width, lanes = self.a, self.p.width, self.p.lanes

        def factor(key: Index, element: Index) -> ir.Value:
            if "key" in self.buffers:
                return self._load("key", key * self.depth + element)
            return self._operand(a.product, 1, [*tile.row, base + key, element])

        for runs in self._runs(self.depth):
            for j, first in enumerate(tile.starts):
                begin = 0
                for size, number in even_runs(lanes, self._most_rows(runs[1])):
                    with nest.loop(begin, begin + number * size, self.evaluator, step=size, name="q") as query:
                        queries = [query + i for i in range(size)]
                        points = [[*self._row(tile, first, q), Index()] for q in queries]
                        places = [linearize(point, a.d_query.shape) for point in points]
                        self._add(self.outputs[0], places, runs, ("scores", [q + j * lanes for q in queries], width), count, factor)
                    begin += number * size

    def _runs(self, extent: int) -> list[tuple[int, int, int, int]]:
        """Runs of vectors along the elements of a head whose sums stay in registers: the first element, vectors of a run, runs, lanes."""
        lanes = min(self.element_lanes, extent & -extent)
        found, first = [], 0
        for size, number in even_runs(extent // lanes, COLUMNS):
            found.append((first, size, number, lanes))
            first += size * number * lanes
        return found

    def _most_rows(self, vectors: int) -> int:
        return max(1, self.sums // vectors)

    def _add(
        self,
        output: ir.Value,
        places: list[Index],
        runs: tuple[int, int, int, int],
        coefficients: tuple[str, list[Index], int],
        count: ir.Value | int,
        factor: Callable[[Index, Index], ir.Value],
    ) -> None:
        """Adds products to rows of a result, which begin at `places`.

        Args:
          runs: of vectors along the elements, as in `_runs`.
          coefficients: a buffer, where those of each row begin there, and their stride.
          count: of the products that are summed up; `factor(i, element)` gives those of number i.
        """
        begin, size, number, lanes = runs
        name, starts, stride = coefficients
        with (
            nest.loop(begin, begin + number * size * lanes, self.evaluator, step=size * lanes, name="e") as column,
            self.evaluator.along(lanes) as lane,
        ):
            elements = [column + lane + i * lanes for i in range(size)]
            sums = [self.evaluator.load_from(output, self.wide, place + element) for place in places for element in elements]
            with nest.carrying(0, count, self.evaluator, sums, below=count if isinstance(count, int) else self.block_keys) as (at, loop):
                factors = [factor(at, element) for element in elements]
                weights = [emit.broadcast(self._load(name, start + at * stride), lanes) for start in starts]
                emit.yield_values(multiply_add(weights, factors, list(loop.inner_iter_args)))
            found = iter(loop.results)
            for place in places:
                for element in elements:
                    self.evaluator.store(next(found), output, place + element)
