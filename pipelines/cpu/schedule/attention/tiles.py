"""The schedule of bf16 attention on AMX: both products on tiles, the softmax on whole rows of scores.

A task is some blocks of queries of one head. It first packs the head's keys and values in pairs (see `pairs`). For each block of two tiles
of queries it computes all scores into a buffer of the thread, turns each row into weights, which are rounded to bf16, and multiplies these
by the values; sums of both products stay in tile registers. Queries are scaled in f32 and rounded to bf16 as they are copied.
"""

from collections.abc import Callable, Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.attention.emission import Emission, arith, has_few_rows, larger
from relayc.pipelines.cpu.schedule.bf16.amx import MAX_ROWS, MAX_STEP, Tiles
from relayc.pipelines.cpu.schedule.bf16.copies import interleave
from relayc.pipelines.cpu.schedule.bf16.layout import COLUMNS, Block, tile_rows
from relayc.pipelines.cpu.schedule.contraction.microkernel import column_vectors
from relayc.pipelines.kernel.attention import QUERY, Attention, match
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit

Value = ir.Value

MAX_BYTES = 1 << 20
"""Memory of a task, which stays in the second-level cache; attention over more keys is left to the schedule that goes by blocks of them."""
TASKS = 8
"""Tasks that there should be at least, so that threads get equal shares."""


def schedule_attention_tiles(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention whose query, key and value are bf16, of several queries, on a CPU with AMX; None for any other."""
    if not (target.has("amx-tile") and target.has("amx-bf16")):
        return None
    attention = match(kernel)
    if attention is None or has_few_rows(attention, target) or not _is_bf16(attention):
        return None
    emission = _Tiles(kernel, attention, target.lanes(32), tuning.number("tasks", TASKS))
    if attention.depth % MAX_STEP or attention.width % COLUMNS or emission.bytes > MAX_BYTES:
        return None
    scheduled = emission.emit(tuning)
    scheduled.uses_tiles = True
    return scheduled


def _is_bf16(attention: Attention) -> bool:
    bf16 = ir.BF16Type.get()
    key, value = attention.product.structured.inputs[1], attention.context.structured.inputs[1]
    query = attention.product.structured.inputs[0]
    scaled = query.element == bf16 or (query.kind == "generic" and any(n.element == bf16 for n in query.structured.inputs))
    return key.element == bf16 and value.element == bf16 and scaled and attention.product.element == ir.F32Type.get()


class _Tiles(Emission):
    """Buffers of a thread: keys [key / 16, depth / 2, 16, 2], values [element / 16, key / 2, 16, 2], queries [row, depth], weights
    [row, key] in bf16; scores [row, key] and context [row, element] in f32. Keys are filled up to a multiple of a tile's depth."""

    def __init__(self, kernel: Kernel, attention: Attention, lanes: int, tasks: int) -> None:
        super().__init__(kernel, attention)
        self.lanes = lanes
        self.height = tile_rows(attention.rows, MAX_ROWS)
        self.tiles = -(-attention.rows // self.height)
        self.row_tiles = min(2, self.tiles)
        self.query_blocks = -(-self.tiles // self.row_tiles)
        self.padded = -(-self.keys // MAX_STEP) * MAX_STEP
        # The context is computed two tiles wide, or one where there is an odd number of them.
        self.context_tiles = 2 if self.width % (2 * COLUMNS) == 0 else 1
        self.bf16 = ir.BF16Type.get()
        self.tasks = tasks

    @property
    def blocks(self) -> int:
        heads = prod(self.a.shape[i] for i in self.outer)
        return min(self.query_blocks, -(-self.tasks // heads))

    def _sizes(self) -> dict[str, tuple[int, int]]:
        """Elements of each buffer, and their bytes."""
        rows = self.row_tiles * self.height
        return {
            "keys": (self.padded * self.depth, 2),
            "values": (self.padded * self.width, 2),
            "queries": (rows * self.depth, 2),
            "weights": (rows * self.padded, 2),
            "scores": (rows * self.padded, 4),
            "context": (rows * self.width, 4),
            "totals": (rows, 4),
        }

    @property
    def bytes(self) -> int:
        return sum(count * size for count, size in self._sizes().values())

    def _buffers(self) -> dict[str, tuple[int, ir.Type]]:
        return {name: (count, self.bf16 if size == 2 else self.wide) for name, (count, size) in self._sizes().items()}

    # ---- a task

    def _task(self, row: list[Index], block: Index) -> None:
        self._pack_keys(row)
        self._pack_values(row)
        self._clear_weights()
        each = -(-self.query_blocks // self.blocks)
        number = Var(0, each - 1, name="queries")
        with emit.for_loop(0, each, 1, number), self.evaluator.scope():
            # The last task may have fewer blocks of its own: it computes those of others again, and stores only what is new.
            self._query_block(row, block * each + number)

    def _query_block(self, row: list[Index], number: Index) -> None:
        tile = Var(0, self.row_tiles - 1, name="tile")

        def each_row(body: Callable[[list[Index], Index], None]) -> None:
            with emit.for_loop(0, self.row_tiles, 1, tile), self.evaluator.scope():
                wanted = (number * self.row_tiles + tile) * self.height
                start = emit.at_most(wanted, self.a.rows - self.height)
                first = emit.materialize(wanted - start) if start is not wanted else 0
                place = Var(0, self.height - 1, name="row")
                with emit.for_loop(first, self.height, 1, place), self.evaluator.scope():
                    at = [start + place if i == self.a.row_loop else index for i, index in enumerate(row)]
                    body(at, Index.of(tile) * self.height + place)

        each_row(self._copy_query)
        self._multiply("queries", self.depth, "keys", 2, self.padded, "scores")
        each_row(self._softmax)
        self._multiply("weights", self.padded, "values", self.context_tiles, self.width, "context")
        each_row(self._finish)

    def _multiply(self, a: str, depth: int, b: str, column_tiles: int, columns: int, result: str) -> None:
        """result [row, column] = a [row, depth] x b, which is packed."""
        tiles = Tiles(Block(self.height, self.row_tiles, column_tiles), MAX_STEP)
        count = columns // tiles.block.width
        column = Var(0, count - 1, name="column")
        with emit.for_loop(0, count, 1, column), self.evaluator.scope():
            rows = [Index(i * self.height * depth) for i in range(self.row_tiles)]
            starts = [(Index.of(column) * column_tiles + j) * (depth * COLUMNS) for j in range(column_tiles)]
            step = Var(0, depth // MAX_STEP - 1, name="k")
            with emit.for_loop(0, depth // MAX_STEP, 1, step, tiles.begin()) as loop, self.evaluator.scope():
                along = Index.of(step) * MAX_STEP
                sums = list(loop.inner_iter_args)
                at = [r + along for r in rows], [s + along * COLUMNS for s in starts]
                emit.yield_values(tiles.step(self.buffers[a], at[0], depth, self.buffers[b], at[1], sums))
            tiles.end(list(loop.results), self.buffers[result], Index.of(column) * tiles.block.width, columns)

    # ---- operands in pairs

    def _pack_keys(self, row: list[Index]) -> None:
        """Keys in blocks of 16, transposed as pairs; the last key stands for those that are missing, whose scores nobody reads."""
        node = self.a.product.structured
        pairs = emit.vector_of(COLUMNS, ir.IntegerType.get_signless(32))
        wide = emit.vector_of(2 * COLUMNS, self.bf16)

        def block(first: Index, key: Callable[[int], Index]) -> None:
            step = Var(0, self.depth - MAX_STEP, step=MAX_STEP, name="d")
            with emit.for_loop(0, self.depth, MAX_STEP, step), self.evaluator.scope():
                columns = []
                for i in range(COLUMNS):
                    with self.evaluator.lanes(MAX_STEP) as lane:
                        point = [*row, key(i), Index.of(step) + lane]
                        value = self.evaluator.at(node.inputs[1], self.evaluator.apply(node.maps[1], point))
                    columns.append(emit.create("vector.bitcast", [pairs], [emit.broadcast(value, MAX_STEP)]))
                for i, pair in enumerate(emit.transpose(columns)):
                    value = emit.create("vector.bitcast", [wide], [pair])
                    at = first * self.depth + Index.of(step) * COLUMNS + i * 2 * COLUMNS
                    emit.create("vector.store", [], [value, self.buffers["keys"], emit.materialize(at)])

        whole = self.keys // COLUMNS
        if whole:
            start = Var(0, (whole - 1) * COLUMNS, step=COLUMNS, name="key")
            with emit.for_loop(0, whole * COLUMNS, COLUMNS, start), self.evaluator.scope():
                block(Index.of(start), lambda i: Index.of(start) + i)
        for first in range(whole * COLUMNS, self.padded, COLUMNS):
            with self.evaluator.scope():
                block(Index(first), lambda i, first=first: Index(min(first + i, self.keys - 1)))  # type: ignore[misc]

    def _pack_values(self, row: list[Index]) -> None:
        """Values of two keys by turns, zeros for those that are missing."""
        node = self.a.context.structured
        zero = emit.zero(emit.vector_of(COLUMNS, self.bf16))

        def pair(first: Index, keys: Sequence[Index | None]) -> None:
            column = Var(0, self.width - COLUMNS, step=COLUMNS, name="e")
            with emit.for_loop(0, self.width, COLUMNS, column), self.evaluator.lanes(COLUMNS) as lane:
                halves = []
                for key in keys:
                    if key is None:
                        halves.append(zero)
                        continue
                    point = [*row, key, Index.of(column) + lane]
                    value = self.evaluator.at(node.inputs[1], self.evaluator.apply(node.maps[1], point))
                    halves.append(emit.broadcast(value, COLUMNS))
                at = Index.of(column) * self.padded + first * COLUMNS
                emit.create("vector.store", [], [interleave(*halves), self.buffers["values"], emit.materialize(at)])

        whole = self.keys // 2
        if whole:
            number = Var(0, whole - 1, name="pair")
            with emit.for_loop(0, whole, 1, number), self.evaluator.scope():
                key = Index.of(number) * 2
                pair(key, (key, key + 1))
        for first in range(whole * 2, self.padded, 2):
            with self.evaluator.scope():
                pair(Index(first), (Index(first) if first < self.keys else None, None))

    def _clear_weights(self) -> None:
        """Weights of keys that are missing are 0 once and for all."""
        number = Var(0, self.row_tiles * self.height - 1, name="row")
        with emit.for_loop(0, number.high + 1, 1, number):
            for start, lanes in column_vectors(self.padded - self.keys, 16):
                at = Index.of(number) * self.padded + self.keys + start
                zero = emit.zero(emit.vector_of(lanes, self.bf16))
                emit.create("vector.store", [], [zero, self.buffers["weights"], emit.materialize(at)])

    # ---- rows

    def _copy_query(self, row: list[Index], place: Index) -> None:
        def copy(start: Index, lanes: int) -> None:
            with self.evaluator.lanes(lanes) as lane:
                value = emit.broadcast(self._operand(self.a.product, 0, [*row, Index(), start + lane]), lanes)
                narrow = emit.create("arith.truncf", [emit.vector_of(lanes, self.bf16)], [value])
                self._store("queries", place * self.depth + start + lane, narrow)

        self._along(self.depth, self.lanes, copy)

    def _softmax(self, row: list[Index], place: Index) -> None:
        """Scores of a row become weights; their sum is kept."""
        base = place * self.padded
        whole = self.keys // self.lanes * self.lanes
        pieces = [(whole + start, lanes) for start, lanes in column_vectors(self.keys - whole, self.lanes)]

        def score(start: Index, lanes: int) -> Value:
            with self.evaluator.lanes(lanes) as lane:
                along = start + (Index.of(lane) if lanes > 1 else Index())
                point = [*row, along]
                self.evaluator.remember(self.a.product, point, self._load("scores", base + along))
                found = emit.broadcast(self.evaluator.at(self.a.scores, point), lanes)
                if self.a.scores is not self.a.product:
                    self._store("scores", base + along, found)
                return found

        def weight(start: Index, lanes: int, largest: Value) -> Value:
            with self.evaluator.lanes(lanes) as lane:
                along = start + (Index.of(lane) if lanes > 1 else Index())
                found = self._weight(self._load("scores", base + along), emit.broadcast(largest, lanes))
                type_ = emit.vector_of(lanes, self.bf16) if lanes > 1 else self.bf16
                self._store("weights", base + along, emit.create("arith.truncf", [type_], [found]))
                return found

        largest = self._across(whole, pieces, score, self._initial(self.a.largest), larger)
        add = lambda a, b: arith("addf", a, b)  # noqa: E731 (an argument, not a definition)
        total = self._across(whole, pieces, lambda start, lanes: weight(start, lanes, largest), emit.zero(self.wide), add)
        self._store("totals", place, total)

    def _across(self, whole: int, pieces, value: Callable[[Index, int], Value], initial: Value, combine) -> Value:
        """The values of a row combined: vectors in a loop up to `whole`, then the pieces that are left."""
        found = initial
        if whole:
            step = Var(0, whole - self.lanes, step=self.lanes, name="key")
            with emit.for_loop(0, whole, self.lanes, step, [emit.broadcast(initial, self.lanes)]) as loop, self.evaluator.scope():
                emit.yield_values([combine(value(Index.of(step), self.lanes), loop.inner_iter_args[0])])
            found = combine(across(loop.results[0], combine), found)
        for start, lanes in pieces:
            with self.evaluator.scope():
                found = combine(across(value(Index(start), lanes), combine), found)
        return found

    def _finish(self, row: list[Index], place: Index) -> None:
        """Divides by the total and stores."""

        def store(start: Index, lanes: int) -> None:
            with self.evaluator.lanes(lanes) as lane:
                total, context = self._load("totals", place), self._load("context", place * self.width + start + lane)
                value = self._result(row[: QUERY + 1], start + lane, context, total)
                self.evaluator.store(value, self.output, self._place(row[: QUERY + 1], start + lane))

        self._along(self.width, min(self.lanes, COLUMNS), store)


def across(vector: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """The lanes of a vector combined into one element, halves with halves."""
    if not emit.is_vector(vector):
        return vector
    element = vector.type.element_type
    while (width := vector.type.shape[0]) > 1:
        half = width // 2
        masks = [{"mask": ir.DenseI64ArrayAttr.get(list(range(first, first + half)))} for first in (0, half)]
        vector = combine(*(emit.create("vector.shuffle", [emit.vector_of(half, element)], [vector, vector], mask) for mask in masks))
    return emit.create("vector.extract", [element], [vector], {"static_position": ir.DenseI64ArrayAttr.get([0])})
