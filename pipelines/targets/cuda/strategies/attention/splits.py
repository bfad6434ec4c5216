"""Attention of few queries for each key, as in decoding: bound by the memory that keys and values are read from.

The keys of a head are split over several blocks of the launch, and in a block over groups of lanes, each of which has a softmax of its own
over its keys. Lanes of a group are elements of a head, so that keys and values go from memory to registers, each once. The groups of a
block become one by shuffles and shared memory; where there are several splits, a second launch combines what they left in the workspace.
"""

from dataclasses import dataclass
from itertools import product

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.emit import add_floats
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cuda.strategies.attention.kernel import GpuAttention
from relayc.pipelines.te.read.attention import KEY, Attention
from relayc.pipelines.te.read.graph import Node, NotStructured
from relayc.pipelines.tir.gpu.aligned import VECTOR_BYTES
from relayc.pipelines.tir.gpu.launch import WARP, Launch, barrier, launch, reduce_lanes, shuffle
from relayc.pipelines.tir.strategy.scheduled import KernelFunction
from relayc.pipelines.tir.strategy.tuning import power_of_two_from, powers_of_two
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.attention import larger
from relayc.pipelines.tir.values.buffers import view
from relayc.symbolic import Size, ceil_div

COMBINE_THREADS = 128
MOST_ELEMENTS = 128
"""Of queries and of context, each, that a thread keeps in registers."""


@dataclass(frozen=True)
class SplitParameters:
    """Tunable numbers.

    Attributes:
      splits: of the keys.
      warps: of a block.
      rows: of a block.
      keys: that a group of lanes reads at a time.
    """

    splits: int
    warps: int
    rows: int
    keys: int


@dataclass(frozen=True)
class _Pieces:
    """How the lanes of a group cover the elements of a head: `count` vectors of `lanes` elements each, those of a group side by side."""

    extent: int
    lanes: int
    count: int
    group: int

    def start(self, lane: Index, piece: int) -> Index:
        """The first element of a piece, which may lie beyond the head."""
        return (lane + piece * self.group) * self.lanes

    def is_whole(self, piece: int) -> bool:
        """Whether all lanes have elements of a piece."""
        return (piece + 1) * self.group * self.lanes <= self.extent


class Splits(GpuAttention):
    """The workspace holds contexts [split, head, row, element], then largest scores and totals [split, head, row]."""

    def __init__(self, attention: Attention, parameters: SplitParameters, most_rows: Size) -> None:
        """`most_rows` is as many as this is ever run with, where others may be there."""
        super().__init__(attention)
        self.p = parameters
        self.most_rows = most_rows
        key, value = (n.structured.inputs[1].element.width for n in (attention.product, attention.context))
        depth, width = (min(VECTOR_BYTES * 8 // bits, n & -n) for bits, n in ((key, self.depth), (value, self.width)))
        self.group = min(WARP, power_of_two_from(ceil_div(self.depth, depth)))
        self.of_depth = _Pieces(self.depth, depth, ceil_div(self.depth, depth * self.group), self.group)
        self.of_width = _Pieces(self.width, width, ceil_div(self.width, width * self.group), self.group)
        self.threads = parameters.warps * WARP
        self.groups = self.threads // self.group
        registers = max(pieces.count * pieces.lanes for pieces in (self.of_depth, self.of_width)) * parameters.rows
        if registers > MOST_ELEMENTS:
            raise NotStructured(f"{parameters.rows} rows of {max(self.depth, self.width)} elements, which do not stay in registers")

    @property
    def shared_bytes(self) -> int:
        return self._shared * self.wide.width // 8

    @property
    def _shared(self) -> int:
        return self.p.warps * self.p.rows * (self.width + 2)

    @property
    def workspace_bytes(self) -> Size:
        """0 where there is one split."""
        return self._partial_rows * (self.width + 2) * (self.wide.width // 8) if self.p.splits > 1 else 0

    @property
    def _partial_rows(self) -> Size:
        return self.heads * self.most_rows * self.p.splits

    def begin(self, body: KernelFunction) -> None:
        super().begin(body)
        self.workspace = body.workspace

    def emit(self) -> None:
        """The launches, at the ambient insertion point in the function."""
        if self.p.splits > 1:
            assert self.workspace is not None  # asked for in workspace_bytes
            count, size = self._partial_rows, self.wide.width // 8
            sizes = (count * self.width, count, count)
            starts = (0, count * self.width * size, count * (self.width + 1) * size)
            self.partial = [view(self.workspace, start, n, self.wide) for start, n in zip(starts, sizes, strict=True)]
        blocks = ceil_div(self.rows, self.p.rows)
        grid = [self.heads * blocks * self.p.splits]
        with launch(grid, self.threads, [(self._shared, self.wide)]) as made, self.evaluator.scope():
            place, split = self.evaluator.quotient_and_rest(Index.of(made.block[0]), self.p.splits)
            head, block = self.evaluator.quotient_and_rest(place, blocks)
            self._block(made, split, head, block * self.p.rows)
        if self.p.splits > 1:
            items = self.heads * self.rows * self.width
            with launch([ceil_div(items, COMBINE_THREADS)], COMBINE_THREADS) as made, self.evaluator.scope():
                item = Index.of(made.block[0]) * COMBINE_THREADS + made.thread
                nest.when(emit.below(item, items), self.evaluator, lambda: self._combine(emit.at_most(item, items - 1)))

    # ---- one split

    def _block(self, made: Launch, split: Index, head: Index, first: Index) -> None:
        rows = range(self.p.rows)
        group, lane = self.evaluator.quotient_and_rest(Index.of(made.thread), self.group)
        points = [self.row_point(head, emit.at_most(first + i, self.rows - 1)) for i in rows]
        queries = [
            [self._piece(self.a.product, 0, [*p, Index()], self.of_depth, lane, c) for c in range(self.of_depth.count)] for p in points
        ]
        seen = self.seen(first, self.p.rows)
        each = emit.create("arith.ceildivui", [seen.type], [seen, emit.index_constant(self.p.splits)])
        start = emit.arith("muli", emit.materialize(split), each)
        end = emit.arith("minsi", emit.arith("addi", start, each), seen)
        zero = emit.zero(self.wide if self.of_width.lanes == 1 else emit.vector_of(self.of_width.lanes, self.wide))
        count = self.of_width.count
        begin = [self._initial(self.a.largest)] * len(rows) + [self._initial(self.a.total)] * len(rows) + [zero] * (len(rows) * count)
        step = self.groups * self.p.keys
        key = Var(0, self.keys, name="key")
        # All lanes of a warp shuffle, so its groups take the same number of steps.
        with emit.for_loop(start, end, step, key, begin) as loop, self.evaluator.scope():
            values = list(loop.inner_iter_args)
            emit.yield_values(self._step(points, queries, lane, group + key, end, values))
        found = list(loop.results)
        for distance in powers_of_two(self.group, WARP // 2):
            found = self._merged(found, [self._shuffled(v, distance) for v in found])
        self._finish(made, split, head, first, lane, found)

    def _shuffled(self, value: ir.Value, distance: int) -> ir.Value:
        if not emit.is_vector(value):
            return shuffle("xor", value, distance)
        return vectors.from_elements([shuffle("xor", vectors.extract(value, i), distance) for i in range(value.type.shape[0])])

    def _piece(self, node: Node, position: int, point: list[Index], pieces: _Pieces, lane: Index, piece: int) -> ir.Value:
        """Elements of an operand that a lane has; zeros behind the last."""
        start = pieces.start(lane, piece)
        whole = pieces.is_whole(piece)
        inside = None if whole else emit.below(start, pieces.extent)
        at = start
        if not whole:
            last = pieces.extent - pieces.lanes
            at = Index.of(Var(0, last, emit.smaller(emit.materialize(start), last), step=pieces.lanes, name="piece"))
        with self.evaluator.along(pieces.lanes) as element:
            value = emit.broadcast(self._operand(node, position, [*point, at + element]), pieces.lanes)
        return value if inside is None else emit.select(inside, value, emit.zero(value.type))

    def _step(
        self, points: list[list[Index]], queries: list[list[ir.Value]], lane: Index, first: Index, end: ir.Value, values: list[ir.Value]
    ) -> list[ir.Value]:
        """Largest scores, totals and contexts of a group with some more keys."""
        rows, count = len(points), self.of_width.count
        largest, totals, context = values[:rows], values[rows : 2 * rows], values[2 * rows :]
        head = points[0][:KEY]
        keys = [first + u * self.groups for u in range(self.p.keys)]
        bounded = [emit.at_most(k, self.keys - 1) for k in keys]
        loaded = [[self._piece(self.a.product, 1, [*head, k], self.of_depth, lane, c) for c in range(self.of_depth.count)] for k in bounded]
        brought = [[self._piece(self.a.context, 1, [*head, k], self.of_width, lane, c) for c in range(count)] for k in bounded]
        for i, point in enumerate(points):
            scores = []
            for k, key in zip(keys, loaded, strict=True):
                total = emit.zero(key[0].type)
                for a, b in zip(queries[i], key, strict=True):
                    total = emit.multiply_add(a, b, total)
                found = reduce_lanes(vectors.across_lanes(total, add_floats), add_floats, self.group)
                scores.append(self.score(point, k, found, end))
            grown = largest[i]
            for score in scores:
                grown = larger(score, grown)
            scale = self.weight(largest[i], grown)
            largest[i], totals[i] = grown, emit.arith("mulf", totals[i], scale)
            weights = [self.weight(score, grown) for score in scores]
            for weight in weights:
                totals[i] = emit.arith("addf", totals[i], weight)
            for c in range(count):
                at, lanes = i * count + c, self.of_width.lanes
                context[at] = emit.arith("mulf", context[at], emit.broadcast(scale, lanes))
                for weight, value in zip(weights, brought, strict=True):
                    context[at] = emit.multiply_add(emit.broadcast(weight, lanes), value[c], context[at])
        return [*largest, *totals, *context]

    def _merged(self, some: list[ir.Value], others: list[ir.Value]) -> list[ir.Value]:
        """Two softmaxes over different keys as one: largest scores, totals and contexts."""
        rows, count = self.p.rows, self.of_width.count
        found = list(some)
        for i in range(rows):
            grown = larger(others[i], some[i])
            scales = [self.weight(values[i], grown) for values in (some, others)]
            found[i] = grown
            for at in (rows + i, *range(2 * rows + i * count, 2 * rows + (i + 1) * count)):
                a, b = (
                    emit.arith("mulf", values[at], emit.broadcast(scale, values[at].type.shape[0] if emit.is_vector(values[at]) else 1))
                    for values, scale in zip((some, others), scales, strict=True)
                )
                found[at] = emit.arith("addf", a, b)
        return found

    # ---- warps of a block

    def _finish(self, made: Launch, split: Index, head: Index, first: Index, lane: Index, found: list[ir.Value]) -> None:
        """Writes what a block found: its result, or its part of the workspace."""
        (shared,) = made.shared
        rows, count, pitch = self.p.rows, self.of_width.count, self.width + 2
        warp, place = self.evaluator.quotient_and_rest(Index.of(made.thread), WARP)

        with nest.if_all([emit.below(place, self.group)], self.evaluator):
            for i, c in product(range(rows), range(count)):
                start = self.of_width.start(lane, c)
                base = (warp * rows + i) * pitch
                with nest.if_all([] if self.of_width.is_whole(c) else [emit.below(start, self.width)], self.evaluator):
                    value = found[2 * rows + i * count + c]
                    for e in range(self.of_width.lanes):
                        one = vectors.extract(value, e) if emit.is_vector(value) else value
                        emit.create("memref.store", [], [one, shared, emit.materialize(base + start + e)])
                if c == 0:
                    for n in range(2):
                        at = emit.materialize(base + self.width + n)
                        with nest.if_all([emit.compare("eq", emit.materialize(lane), emit.index_constant(0))], self.evaluator):
                            emit.create("memref.store", [], [found[n * rows + i], shared, at])
        barrier()
        item = Var.below(rows * self.width, name="item")
        with emit.for_loop(made.thread.value, rows * self.width, self.threads, item), self.evaluator.scope():
            row, element = self.evaluator.quotient_and_rest(Index.of(item), self.width)
            at = emit.at_most(first + row, self.rows - 1)
            with nest.if_inside([(first + row, self.rows, rows)], self.evaluator):
                bases = [(row + w * rows) * pitch for w in range(self.p.warps)]
                parts = [[_load(shared, base + e) for e in (element, Index(self.width), Index(self.width + 1))] for base in bases]
                context, largest, total = self._sum(parts)
                if self.p.splits == 1:
                    self.store_result(self.row_point(head, at), element, context, total)
                    return
                partial = self._partial_row(split, head, at)
                emit.create("memref.store", [], [context, self.partial[0], emit.materialize(partial * self.width + element)])
                with nest.if_all([emit.compare("eq", emit.materialize(element), emit.index_constant(0))], self.evaluator):
                    for value, buffer in zip((largest, total), self.partial[1:], strict=True):
                        emit.create("memref.store", [], [value, buffer, emit.materialize(partial)])

    def _partial_row(self, split: Index, head: Index, row: Index) -> Index:
        return linearize([split, head, row], [self.p.splits, self.heads, self.most_rows])

    def _sum(self, parts: list[list[ir.Value]]) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Context, largest score and total of several parts."""
        grown = parts[0][1]
        for _, largest, _ in parts[1:]:
            grown = larger(largest, grown)
        scales = [self.weight(largest, grown) for _, largest, _ in parts]
        context, total = (
            vectors.pairwise([emit.arith("mulf", part[n], scale) for part, scale in zip(parts, scales, strict=True)], add_floats)
            for n in (0, 2)
        )
        return context, grown, total

    # ---- all splits

    def _combine(self, item: Index) -> None:
        """An element of the result, of the parts that the splits left."""
        rest, element = self.evaluator.quotient_and_rest(item, self.width)
        head, row = self.evaluator.quotient_and_rest(rest, self.rows)
        split = Var.below(self.p.splits, name="split")
        start = [self._initial(n) for n in (self.a.context, self.a.largest, self.a.total)]
        with emit.for_loop(0, self.p.splits, 1, split, start) as loop, self.evaluator.scope():
            at = self._partial_row(Index.of(split), head, row)
            part = [_load(b, i) for b, i in zip(self.partial, (at * self.width + element, at, at), strict=True)]
            emit.yield_values(self._sum([list(loop.inner_iter_args), part]))
        context, _, total = loop.results
        self.store_result(self.row_point(head, row), element, context, total)


def _load(buffer: ir.Value, at: Index) -> ir.Value:
    return emit.create("memref.load", [buffer.type.element_type], [buffer, emit.materialize(at)])
