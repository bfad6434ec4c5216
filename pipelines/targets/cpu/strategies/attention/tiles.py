"""The schedule of bf16 attention on AMX: both products on tiles, the softmax on whole rows of scores.

A task is some blocks of queries of one head. It first packs the head's keys and values in pairs (see `pairs`). For each block of two tiles
of queries it computes all scores into a buffer of the thread, turns each row into weights, which are rounded to bf16, and multiplies these
by the values; sums of both products stay in tile registers. Queries are scaled in f32 and rounded to bf16 as they are copied.
"""

from collections.abc import Callable, Sequence
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.attention.columns import ColumnAttention
from relayc.pipelines.targets.cpu.strategies.attention.kernel import ContextKernel, Version, emit_versions, has_few_rows, most_few_rows
from relayc.pipelines.targets.cpu.strategies.attention.parameters import default_parameters as column_parameters
from relayc.pipelines.targets.cpu.strategies.attention.rows import RowAttention
from relayc.pipelines.targets.cpu.strategies.attention.rows import default_parameters as row_parameters
from relayc.pipelines.targets.cpu.strategies.bf16.amx import MAX_ROWS, MAX_STEP, AmxSums
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock, tile_rows
from relayc.pipelines.targets.cpu.strategies.bf16.moves import transposed_groups
from relayc.pipelines.te.read.attention import KEY, QUERY, Attention, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, distinct, powers_of_two
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.attention import larger
from relayc.symbolic import Dim, Size, ceil_div, maximum, minimum

Combine = Callable[[ir.Value, ir.Value], ir.Value]
Value = Callable[[Index, int, ir.Value | None], ir.Value]
"""Elements of a row from a key on, one per lane; a mask selects the valid lanes."""

MAX_BYTES = 1 << 20
"""Memory of a task, which stays in the second-level cache; attention over more keys is left to the schedule that goes by blocks of them."""
SKEW = 640
"""Bytes between buffers whose sizes do not go with the number of keys."""
TASKS = 8
"""Tasks that there should be at least, so that threads get equal shares."""


def schedule_attention_tiles(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention whose query, key and value are bf16, of several queries, on a CPU with AMX; None for any other."""
    attention = match(kernel)
    if attention is None or has_few_rows(attention, target) or not _is_bf16(attention):
        return None
    if attention.depth % MAX_STEP or attention.width % COLUMNS:
        return None
    tasks = tuning.number("tasks", TASKS, lambda: _TileAttention(kernel, attention, target.lanes(32), TASKS).most_tasks())
    emission = _TileAttention(kernel, attention, target.lanes(32), tasks)
    if emission.bytes > MAX_BYTES:
        return None
    if isinstance(attention.rows, Dim) or isinstance(attention.shape[KEY], Dim):
        return emit_versions(kernel, _versions(emission, target), tuning)
    return emission.emit(tuning)


def _versions(emission: "_TileAttention", target: Target) -> list[Version]:
    """Versions with tiles for several queries and a number of keys that fits; other strategies for the rest."""
    kernel, attention, most_keys = emission.kernel, emission.a, emission.most_keys
    rows, keys = attention.rows, attention.shape[KEY]
    tiles = Version(emission, keys, most_keys)
    if isinstance(rows, int):
        return [tiles, Version(ColumnAttention(kernel, attention, column_parameters(attention, target, rows)))]
    lanes, few = target.lanes(attention.product.element.width), most_few_rows(attention, target)
    # Fewer queries than a vector has are few, too, where there are too many keys.
    more = minimum(maximum(keys - most_keys, 0) * lanes, lanes - 1 - few)
    most = few if more == 0 else lanes - 1
    single = RowAttention(kernel, attention, row_parameters(attention, target), most)
    return [
        Version(single, rows - more, few),
        tiles,
        Version(ColumnAttention(kernel, attention, column_parameters(attention, target, 2 * lanes))),
    ]


def _is_bf16(attention: Attention) -> bool:
    bf16 = ir.BF16Type.get()
    key, value = attention.product.structured.inputs[1], attention.context.structured.inputs[1]
    query = attention.product.structured.inputs[0]
    scaled = query.element == bf16 or (query.kind == "generic" and any(n.element == bf16 for n in query.structured.inputs))
    return key.element == bf16 and value.element == bf16 and scaled and attention.product.element == ir.F32Type.get()


class _TileAttention(ContextKernel):
    """Buffers of a thread: keys [key / 16, depth / 2, 16, 2], values [element / 16, key / 2, 16, 2], queries [row, depth], weights
    [row, key] in bf16; scores [row, key] and context [row, element] in f32. Keys are filled up to a multiple of a tile's depth."""

    uses_tiles = True

    def __init__(self, kernel: Kernel, attention: Attention, lanes: int, tasks: int) -> None:
        super().__init__(kernel, attention)
        self.lanes = lanes
        self.height = tile_rows(attention.rows, MAX_ROWS) if isinstance(attention.rows, int) else MAX_ROWS
        self.tiles = ceil_div(attention.rows, self.height)
        self.row_tiles = min(2, self.tiles) if isinstance(self.tiles, int) else 2
        self.query_blocks = ceil_div(self.tiles, self.row_tiles)
        self.padded = ceil_div(self.keys, MAX_STEP) * MAX_STEP
        self.most_keys = self._fitting_keys() if isinstance(self.keys, Dim) else ceil_div(self.keys, MAX_STEP) * MAX_STEP
        # The context is computed two tiles wide, or one where there is an odd number of them.
        self.context_tiles = 2 if self.width % (2 * COLUMNS) == 0 else 1
        self.bf16 = ir.BF16Type.get()
        self.tasks = tasks

    def most_tasks(self) -> list[int]:
        """Numbers of tasks that cut the queries of a head in 1, 2, 4, ... parts."""
        most = self.query_blocks if isinstance(self.query_blocks, int) else TASKS
        return distinct((self.heads * n for n in powers_of_two(1, max(1, most))), TASKS, lambda tasks: ceil_div(tasks, self.heads))

    @property
    def blocks(self) -> Size:
        # Without queries the one block of no tiles divides nothing.
        return minimum(maximum(self.query_blocks, 1), ceil_div(self.tasks, self.heads))

    def _fitting_keys(self) -> int:
        """How many keys, in whole steps, fit in the memory of a task."""
        self.most_keys = 0
        fixed = self.bytes
        self.most_keys = MAX_STEP
        return (MAX_BYTES - fixed) // (self.bytes - fixed) * MAX_STEP

    def _sizes(self) -> dict[str, tuple[int, int]]:
        """Elements of each buffer, and their bytes."""
        rows, keys = self.row_tiles * self.height, self.most_keys
        return {
            "keys": (keys * self.depth, 2),
            "values": (keys * self.width, 2),
            "queries": (rows * self.depth, 2),
            "weights": (rows * keys, 2),
            "scores": (rows * keys, 4),
            "context": (rows * self.width, 4),
            "totals": (rows, 4),
            **({"largest": (rows, 4)} if self.a.lse is not None else {}),
        }

    @property
    def bytes(self) -> int:
        return sum(count * size for count, size in self._sizes().values())

    def _buffers(self) -> dict[str, tuple[int, ir.Type]]:
        found = {}
        for name, (count, size) in self._sizes().items():
            # Sizes that go with the most keys are whole pages: neighbours would start at the same place in a page, and so in the cache.
            skew = SKEW // size if isinstance(self.keys, Dim) else 0
            found[name] = count + skew, self.bf16 if size == 2 else self.wide
        return found

    # ---- a task

    def _task(self, row: list[Index], block: Index) -> None:
        self._pack_keys(row)
        self._pack_values(row)
        self._clear_weights()
        each = ceil_div(self.query_blocks, self.blocks)
        # The last task may have fewer new blocks: of a known number it recomputes blocks of other tasks, and stores only new results.
        count: ir.Value | Size = each
        if isinstance(each, Dim):
            count = emit.smaller(emit.materialize(block * each * -1 + self.query_blocks), each)
        with nest.loop(0, count, self.evaluator, below=each, name="queries") as number:
            self._query_block(row, block * each + number)

    def _query_block(self, row: list[Index], number: Index) -> None:
        def each_row(body: Callable[[list[Index], Index], None]) -> None:
            with nest.loop(0, self.row_tiles, self.evaluator, name="tile") as tile:
                wanted = (number * self.row_tiles + tile) * self.height
                start = wanted
                first: ir.Value | int = 0
                end: ir.Value | int = self.height
                if isinstance(self.a.rows, Dim):  # what is in the other rows of the tile matters to nobody
                    end = emit.smaller(emit.materialize(wanted * -1 + self.a.rows), self.height)
                else:
                    start = emit.at_most(wanted, self.a.rows - self.height)
                    first = emit.materialize(wanted - start) if start is not wanted else 0
                with nest.loop(first, end, self.evaluator, below=self.height, name="row") as place:
                    at = [start + place if i == self.a.row_loop else index for i, index in enumerate(row)]
                    body(at, tile * self.height + place)

        each_row(self._copy_query)
        self._multiply_block(number, "queries", self.depth, "keys", 2, self.padded, "scores")
        each_row(self._softmax)
        self._multiply_block(number, "weights", self.padded, "values", self.context_tiles, self.width, "context")
        each_row(self._finish)

    def _multiply_block(self, number: Index, a: str, depth: Size, b: str, column_tiles: int, columns: Size, result: str) -> None:
        """`_multiply` for a block of queries: the last one of a symbolic number of them may be one tile."""
        if isinstance(self.a.rows, int):
            self._multiply(self.row_tiles, a, depth, b, column_tiles, columns, result)
            return
        left = emit.materialize(number * -(self.row_tiles * self.height) + self.a.rows)
        nest.when(
            emit.compare("sgt", left, emit.index_constant(self.height)),
            self.evaluator,
            lambda: self._multiply(self.row_tiles, a, depth, b, column_tiles, columns, result),
            lambda: self._multiply(1, a, depth, b, column_tiles, columns, result),
        )

    def _multiply(self, row_tiles: int, a: str, depth: Size, b: str, column_tiles: int, columns: Size, result: str) -> None:
        """result [row, column] = a [row, depth] x b, which is packed."""
        tiles = AmxSums(SumBlock(self.height, row_tiles, column_tiles), MAX_STEP)
        count = columns // tiles.block.width
        with nest.loop(0, count, self.evaluator, name="column") as column:
            rows = [Index(i * self.height * depth) for i in range(row_tiles)]
            starts = [(column * column_tiles + j) * (depth * COLUMNS) for j in range(column_tiles)]
            with nest.carrying(0, depth // MAX_STEP, self.evaluator, tiles.begin(), name="k") as (step, loop):
                along = step * MAX_STEP
                sums = list(loop.inner_iter_args)
                at = [r + along for r in rows], [s + along * COLUMNS for s in starts]
                emit.yield_values(tiles.step(self.buffers[a], at[0], depth, self.buffers[b], at[1], sums))
            tiles.end(list(loop.results), self.buffers[result], column * tiles.block.width, columns)

    # ---- operands in pairs

    def _pack_keys(self, row: list[Index]) -> None:
        """Keys in blocks of 16, transposed as pairs; the last key replaces missing ones, whose scores are not used."""
        node = self.a.product.structured

        def block(first: Index, key: Callable[[int], Index]) -> None:
            with nest.loop(0, self.depth, self.evaluator, step=MAX_STEP, name="d") as step:

                def read(i: int) -> ir.Value:
                    with self.evaluator.lanes(MAX_STEP) as lane:
                        point = [*row, key(i), step + lane]
                        value = self.evaluator.at(node.inputs[1], self.evaluator.apply(node.maps[1], point))
                    return emit.broadcast(value, MAX_STEP)

                for i, pairs in enumerate(transposed_groups(map(read, range(COLUMNS)), 2)):
                    vectors.store(pairs, self.buffers["keys"], first * self.depth + step * COLUMNS + i * 2 * COLUMNS)

        whole = self.keys // COLUMNS
        if whole != 0:
            with nest.loop(0, whole * COLUMNS, self.evaluator, step=COLUMNS, name="key") as start:
                block(start, lambda i: start + i)
        if isinstance(whole, Dim) or isinstance(self.padded, Dim):
            with nest.loop(whole * COLUMNS, self.padded, self.evaluator, step=COLUMNS, name="key") as start:
                block(start, lambda i: emit.at_most(start + i, self.keys - 1))
            return
        for first in range(whole * COLUMNS, self.padded, COLUMNS):
            with self.evaluator.scope():
                block(Index(first), lambda i, first=first: Index(min(first + i, self.keys - 1)))  # type: ignore[misc]

    def _pack_values(self, row: list[Index]) -> None:
        """Values of two keys by turns, zeros for those that are missing."""
        node = self.a.context.structured
        zero = emit.zero(emit.vector_of(COLUMNS, self.bf16))

        def pair(first: Index, keys: Sequence[Index | None]) -> None:
            with nest.loop(0, self.width, self.evaluator, step=COLUMNS, name="e") as column, self.evaluator.lanes(COLUMNS) as lane:
                halves = []
                for key in keys:
                    if key is None:
                        halves.append(zero)
                        continue
                    point = [*row, key, column + lane]
                    value = self.evaluator.at(node.inputs[1], self.evaluator.apply(node.maps[1], point))
                    halves.append(emit.broadcast(value, COLUMNS))
                at = column * self.padded + first * COLUMNS
                vectors.store(vectors.interleave(*halves), self.buffers["values"], at)

        whole = self.keys // 2
        if whole != 0:
            with nest.loop(0, whole, self.evaluator, name="pair") as number:
                key = number * 2
                pair(key, (key, key + 1))
        if isinstance(whole, Dim) or isinstance(self.padded, Dim):
            with nest.loop(whole * 2, self.keys, self.evaluator, step=2, name="pair") as last:
                pair(last, (last, None))
            with nest.loop(ceil_div(self.keys, 2) * 2, self.padded, self.evaluator, step=2, name="pair") as none:
                pair(none, (None, None))
            return
        for first in range(whole * 2, self.padded, 2):
            with self.evaluator.scope():
                pair(Index(first), (Index(first) if first < self.keys else None, None))

    def _clear_weights(self) -> None:
        """Weights of keys that are missing are 0 once and for all."""
        with nest.loop(0, self.row_tiles * self.height, self.evaluator, name="row") as number:
            if isinstance(self.keys, Dim) or isinstance(self.padded, Dim):  # all of the last step: other weights come later
                lanes = MAX_STEP // 2
                first = maximum(self.padded - MAX_STEP, 0)
                with nest.loop(first, self.padded, self.evaluator, step=lanes, name="key") as step:
                    zero = emit.zero(emit.vector_of(lanes, self.bf16))
                    vectors.store(zero, self.buffers["weights"], number * self.padded + step)
                return
            for start, lanes in vectors.pieces(self.padded - self.keys, 16):
                zero = emit.zero(emit.vector_of(lanes, self.bf16))
                vectors.store(zero, self.buffers["weights"], number * self.padded + self.keys + start)

    # ---- rows

    def _copy_query(self, row: list[Index], place: Index) -> None:
        with self._along(self.depth, self.lanes) as (start, lanes), self.evaluator.lanes(lanes) as lane:
            value = emit.broadcast(self._operand(self.a.product, 0, [*row, Index(), start + lane]), lanes)
            narrow = emit.convert(value, [("arith.truncf", self.bf16)])
            self._store("queries", place * self.depth + start + lane, narrow)

    def _softmax(self, row: list[Index], place: Index) -> None:
        """Scores of a row become weights; their sum is kept."""
        base = place * self.padded

        def score(start: Index, lanes: int, mask: ir.Value | None = None) -> ir.Value:
            with self.evaluator.along(lanes, mask) as lane:
                along = start + lane
                point = [*row, along]
                self.evaluator.remember(self.a.product, point, self._load("scores", base + along))
                found = emit.broadcast(self.evaluator.at(self.a.scores, point), lanes)
                if self.a.scores is not self.a.product:
                    self._store("scores", base + along, found)
                return found

        def weight(start: Index, lanes: int, mask: ir.Value | None = None) -> ir.Value:
            with self.evaluator.along(lanes, mask) as lane:
                along = start + lane
                found = self._weight(self._load("scores", base + along), emit.broadcast(largest, lanes))
                self._store("weights", base + along, emit.convert(found, [("arith.truncf", self.bf16)]))
                return found

        largest = self._across(score, self._initial(self.a.largest), larger)
        total = self._across(weight, emit.zero(self.wide), partial(emit.arith, "addf"))
        self._store("totals", place, total)
        if self.a.lse is not None:
            self._store("largest", place, largest)

    def _across(self, value: Value, initial: ir.Value, combine: Combine) -> ir.Value:
        """The values of a row combined: whole vectors in a loop, then halves of halves."""
        if isinstance(self.keys, Dim):
            return self._masked_across(self.keys, value, initial, combine)
        whole = self.keys // self.lanes * self.lanes
        pieces = [(whole + start, lanes) for start, lanes in vectors.pieces(self.keys - whole, self.lanes)]
        found = initial
        if whole:
            found = combine(vectors.across_halves(self._whole_vectors(whole, value, initial, combine), combine), found)
        for start, lanes in pieces:
            with self.evaluator.scope():
                found = combine(vectors.across_halves(value(Index(start), lanes, None), combine), found)
        return found

    def _masked_across(self, keys: Size, value: Value, initial: ir.Value, combine: Combine) -> ir.Value:
        """The same of a symbolic number of keys: whole vectors, then one of which some lanes count."""
        whole = keys // self.lanes * self.lanes
        several = self._whole_vectors(whole, value, initial, combine)
        last = Var(whole, whole, step=self.lanes, name="key")
        with emit.for_loop(whole, keys, self.lanes, last, [several]) as rest, self.evaluator.scope():
            mask = emit.first_lanes(emit.index_constant(keys - whole), self.lanes)
            found = rest.inner_iter_args[0]
            emit.yield_values([emit.select(mask, combine(value(Index.of(last), self.lanes, mask), found), found)])
        return vectors.across_halves(rest.results[0], combine)

    def _whole_vectors(self, count: Size, value: Value, initial: ir.Value, combine: Combine) -> ir.Value:
        """The values of the first `count` keys combined lane by lane."""
        start = [emit.broadcast(initial, self.lanes)]
        with nest.carrying(0, count, self.evaluator, start, step=self.lanes, name="key") as (key, loop):
            emit.yield_values([combine(value(key, self.lanes, None), loop.inner_iter_args[0])])
        return loop.results[0]

    def _finish(self, row: list[Index], place: Index) -> None:
        """Divides by the total and stores."""
        with self._along(self.width, min(self.lanes, COLUMNS)) as (start, lanes), self.evaluator.lanes(lanes) as lane:
            total, context = self._load("totals", place), self._load("context", place * self.width + start + lane)
            value = self._result(row[: QUERY + 1], start + lane, context, total)
            self.evaluator.store(value, self.output, self._place(row[: QUERY + 1], start + lane))
        if self.a.lse is not None:
            self._store_lse(row, self._load("largest", place), self._load("totals", place))
