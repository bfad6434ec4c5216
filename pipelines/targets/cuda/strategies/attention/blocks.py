"""Attention of any element type by multiply-adds of threads: a block has some rows of a head, and walks over the keys that these see.

Blocks of keys and of their values come to shared memory as the products take them. A warp has some of the rows: in the first product
its lanes are keys, in the second elements of a head. The weights between them, and the largest score and the total of each row, are of the
softmax so far: the context so far is scaled by how much the largest score has grown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.attention.kernel import GpuAttention
from relayc.pipelines.te.read.attention import ELEMENT, KEY, Attention
from relayc.pipelines.te.read.graph import Node, NotStructured
from relayc.pipelines.tir.gpu import aligned
from relayc.pipelines.tir.gpu.launch import WARP, Launch, barrier, launch, reduce_lanes
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.attention import larger
from relayc.symbolic import ceil_div, proves


@dataclass(frozen=True)
class BlockParameters:
    """Tunable numbers.

    Attributes:
      warps: of a block.
      rows: of a warp.
      keys: of a block, a multiple of the lanes of a warp.
    """

    warps: int
    rows: int
    keys: int


class BlockAttention(GpuAttention):
    """Shared memory has queries [row, depth], keys [key, depth], values [key, width] and weights [row, key]; depth is filled up with zeros
    to whole vectors, and a row of queries or keys takes one vector more, so that lanes read from different banks."""

    def __init__(self, attention: Attention, parameters: BlockParameters) -> None:
        super().__init__(attention)
        self.p = parameters
        self.lanes = aligned.VECTOR_BYTES * 8 // self.wide.width
        self.steps = ceil_div(self.depth, self.lanes)
        self.pitch = (self.steps + 1) * self.lanes
        self.columns = ceil_div(self.width, WARP)
        self.block_rows = parameters.warps * parameters.rows
        self.threads = parameters.warps * WARP

    @property
    def buffers(self) -> list[tuple[int, ir.Type]]:
        """Elements and type of the buffers in shared memory."""
        keys, width = self.p.keys, self.columns * WARP
        return [(n, self.wide) for n in (self.block_rows * self.pitch, keys * self.pitch, keys * width, self.block_rows * keys)]

    @property
    def shared_bytes(self) -> int:
        return sum(count for count, _ in self.buffers) * self.wide.width // 8

    def emit(self) -> None:
        """The launch, at the ambient insertion point in the function."""
        blocks = ceil_div(self.rows, self.block_rows)
        with launch([self.heads * blocks], self.threads, self.buffers) as made, self.evaluator.scope():
            head, block = self.evaluator.quotient_and_rest(Index.of(made.block[0]), blocks)
            # Rows that see the most keys come first: the last blocks of the launch are short.
            self._block(made, head, (block * -1 + (blocks - 1)) * self.block_rows)

    def _block(self, made: Launch, head: Index, first: Index) -> None:
        self.queries, self.key_tile, self.value_tile, self.weights = made.shared
        warp, self.lane = self.evaluator.quotient_and_rest(Index.of(made.thread), WARP)
        self.thread, self.head, self.first = made.thread, head, first
        self.own = warp * self.p.rows
        self._fill(self.queries, self.block_rows, self._query)
        self.row_points = [self._row(first + self.own + i) for i in range(self.p.rows)]
        seen = self.seen(first, self.block_rows)
        rows, columns = range(self.p.rows), range(self.columns)
        start = [self._initial(self.a.largest)] * self.p.rows + [self._initial(self.a.total)] * self.p.rows
        start += [self._initial(self.a.context)] * (self.p.rows * self.columns)
        key = Var(0, self.keys, step=self.p.keys, name="key")
        with emit.for_loop(0, seen, self.p.keys, key, start) as loop, self.evaluator.scope():
            largest, totals, context = self._split(loop.inner_iter_args)
            emit.yield_values(self._step(Index.of(key), largest, totals, context))
        _, totals, context = self._split(loop.results)
        for i in rows:
            total = reduce_lanes(totals[i], emit.add_floats)
            with nest.if_inside([(self.first + self.own + i, self.rows, self.block_rows)], self.evaluator):
                self._finish(i, total, [context[i * self.columns + j] for j in columns])

    def _split(self, values: object) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
        found, rows = list(values), self.p.rows  # type: ignore[call-overload]
        return found[:rows], found[rows : 2 * rows], found[2 * rows :]

    def _row(self, row: Index) -> list[Index]:
        """The point of a row; of the last one for those behind it."""
        return self.row_point(self.head, emit.at_most(row, self.rows - 1))

    # ---- shared memory

    def _fill(self, buffer: ir.Value, count: int, value: Callable[[Index, Index, int], ir.Value]) -> None:
        """Writes `count` rows of vectors along the depth: `value(row, first element, lanes)`, zeros behind the last element."""
        item = Var.below(count * self.steps, name="item")
        with emit.for_loop(self.thread.value, count * self.steps, self.threads, item), self.evaluator.scope():
            row, step = self.evaluator.quotient_and_rest(Index.of(item), self.steps)
            place = row * self.pitch + step * self.lanes
            if self.depth % self.lanes == 0:
                aligned.store(emit.broadcast(value(row, step * self.lanes, self.lanes), self.lanes), buffer, place)
                return
            zero = emit.zero(self.wide)
            for lane in range(self.lanes):
                element = step * self.lanes + lane
                inside = emit.below(element, self.depth)
                some = nest.either(inside, self.evaluator, lambda element=element: [value(row, element, 1)], [zero])  # type: ignore[misc]
                emit.create("memref.store", [], [some[0], buffer, emit.materialize(place + lane)])

    def _query(self, row: Index, element: Index, lanes: int) -> ir.Value:
        return self._elements(self.a.product, 0, [*self._row(self.first + row), Index()], element, ELEMENT, lanes)

    def _elements(self, node: Node, position: int, point: list[Index], element: Index, loop: int, lanes: int) -> ir.Value:
        with self.evaluator.along(lanes) as lane:
            at = [*point, element + lane]
            return emit.broadcast(self._operand(node, position, at), lanes)

    def _load_tile(self, first: Index) -> None:
        """Keys from one on, and their values."""
        head = self.row_points[0][:KEY]

        def key(row: Index, element: Index, lanes: int) -> ir.Value:
            return self._elements(self.a.product, 1, [*head, emit.at_most(first + row, self.keys - 1)], element, ELEMENT, lanes)

        self._fill(self.key_tile, self.p.keys, key)
        whole = self.width % self.lanes == 0
        lanes = self.lanes if whole else 1
        steps = self.width // lanes
        item = Var.below(self.p.keys * steps, name="item")
        with emit.for_loop(self.thread.value, self.p.keys * steps, self.threads, item), self.evaluator.scope():
            row, step = self.evaluator.quotient_and_rest(Index.of(item), steps)
            point = [*head, emit.at_most(first + row, self.keys - 1)]
            value = self._elements(self.a.context, 1, point, step * lanes, ELEMENT, lanes)
            place = row * (self.columns * WARP) + step * lanes
            if lanes == 1:
                emit.create("memref.store", [], [value, self.value_tile, emit.materialize(place)])
            else:
                aligned.store(value, self.value_tile, place)

    # ---- a block of keys

    def _step(self, first: Index, largest: list[ir.Value], totals: list[ir.Value], context: list[ir.Value]) -> list[ir.Value]:
        """Largest scores, totals (each lane of its keys) and contexts with the keys of a block."""
        barrier()
        self._load_tile(first)
        barrier()
        scores = self._scores(first)
        groups = self.p.keys // WARP
        for i in range(self.p.rows):
            own = scores[i * groups : (i + 1) * groups]
            tile = own[0]
            for other in own[1:]:
                tile = larger(other, tile)
            grown = larger(reduce_lanes(tile, larger), largest[i])
            scale = self.weight(largest[i], grown)
            largest[i] = grown
            totals[i] = emit.arith("mulf", totals[i], scale)
            for j, score in enumerate(own):
                weight = self.weight(score, grown)
                totals[i] = emit.arith("addf", totals[i], weight)
                place = (self.own + i) * self.p.keys + self.lane + j * WARP
                emit.create("memref.store", [], [weight, self.weights, emit.materialize(place)])
            for j in range(self.columns):
                at = i * self.columns + j
                context[at] = emit.arith("mulf", context[at], scale)
        barrier()
        return [*largest, *totals, *self._add_values(context)]

    def _scores(self, first: Index) -> list[ir.Value]:
        """Scores of the rows of a warp (outer) and the keys of a lane (inner)."""
        rows, groups = self.p.rows, self.p.keys // WARP
        step = Var(0, (self.steps - 1) * self.lanes, step=self.lanes, name="element")
        zeros = [self._initial(self.a.product)] * (rows * groups)
        with emit.for_loop(0, self.steps * self.lanes, self.lanes, step, zeros) as loop:
            sums = list(loop.inner_iter_args)
            keys = [aligned.load(self.key_tile, (self.lane + j * WARP) * self.pitch + step, self.lanes) for j in range(groups)]
            for i in range(rows):
                query = aligned.load(self.queries, (self.own + i) * self.pitch + step, self.lanes)
                for j, lane in product(range(groups), range(self.lanes)):
                    at = i * groups + j
                    sums[at] = emit.multiply_add(vectors.extract(query, lane), vectors.extract(keys[j], lane), sums[at])
            emit.yield_values(sums)
        end = None if proves(lambda: self.keys % self.p.keys == 0) else emit.index_constant(self.keys)
        return [
            self.score(point, first + self.lane + j * WARP, loop.results[i * groups + j], end)
            for i, point in enumerate(self.row_points)
            for j in range(groups)
        ]

    def _add_values(self, context: list[ir.Value]) -> list[ir.Value]:
        """The context of the rows of a warp (outer) and the elements of a lane (inner) with the values of the block."""
        rows, columns = self.p.rows, range(self.columns)
        key = Var(0, self.p.keys - self.lanes, step=self.lanes, name="key")
        with emit.for_loop(0, self.p.keys, self.lanes, key, context) as loop:
            sums = list(loop.inner_iter_args)
            weights = [aligned.load(self.weights, (self.own + i) * self.p.keys + key, self.lanes) for i in range(rows)]
            for lane in range(self.lanes):
                start = (Index.of(key) + lane) * (self.columns * WARP) + self.lane
                values = [emit.create("memref.load", [self.wide], [self.value_tile, emit.materialize(start + j * WARP)]) for j in columns]
                for i, j in product(range(rows), columns):
                    at = i * self.columns + j
                    sums[at] = emit.multiply_add(vectors.extract(weights[i], lane), values[j], sums[at])
            emit.yield_values(sums)
        return list(loop.results)

    # ---- results

    def _finish(self, i: int, total: ir.Value, context: list[ir.Value]) -> None:
        for j, value in enumerate(context):
            element = self.lane + j * WARP
            if (j + 1) * WARP <= self.width:
                self.store_result(self.row_points[i], element, value, total)
                continue
            bounded = self.evaluator.opaque(emit.materialize(element), 0, self.width - 1)
            with nest.if_all([emit.below(element, self.width)], self.evaluator):
                self.store_result(self.row_points[i], bounded, value, total)


def fitted(attention: Attention, parameters: BlockParameters, shared_bytes: int) -> BlockParameters:
    """The numbers with which a block fits in shared memory: fewer keys, then fewer rows. Raises NotStructured where none do."""
    most = ceil_div(parameters.keys, WARP) * WARP
    for keys, rows in [(k, parameters.rows) for k in range(most, 0, -WARP)] + [(WARP, r) for r in range(parameters.rows - 1, 0, -1)]:
        found = BlockParameters(parameters.warps, rows, keys)
        if BlockAttention(attention, found).shared_bytes <= shared_bytes:
            return found
    raise NotStructured(f"heads of {attention.depth} elements, whose blocks do not fit in {shared_bytes} bytes of shared memory")
