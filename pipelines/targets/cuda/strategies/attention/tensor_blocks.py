"""Attention on tensor cores, of 16-bit floats or of f32 as tf32: a block has some rows of a head, and walks over tiles of the keys that
these see.

A warp has 16 rows, or 32, by itself. Its queries stay in registers as the fragments that mma.sync takes; of large heads, where these are
too many, in shared memory, where a lane finds its own again. Tiles of keys and of their values come to shared memory in stages, ahead of
their use. The sums of the first product are in the lanes where the second one wants its first operand: rounded they are the weights'
fragments, and go through no memory. Of tf32, of which a lane wants elements 4 apart where it has neighbours, the second product takes keys
in the order in which lanes have them: values are read word by word. Between the products is the softmax so far, in f32. The scale of the
queries comes after the first product, so that queries are multiplied as they are.

Tiles whose keys all rows of the block see go first, without a look at the causal mask or at the number of keys; what no row sees is not
read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from relayc.dialects.mlir import arith, ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.emit import add_floats
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.attention.copies import copy_of
from relayc.pipelines.targets.cuda.strategies.attention.kernel import LOG2E, GpuAttention, exp2
from relayc.pipelines.targets.cuda.strategies.product.instructions import (
    COLUMNS,
    ROWS,
    STEP_CHUNKS,
    Instruction,
    across_depth,
    along_depth,
    as_word,
    load_matrices,
    operand_pair,
    operand_words,
)
from relayc.pipelines.targets.cuda.strategies.product.problem import divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory, added, after, element_of, load, store
from relayc.pipelines.te.read.attention import QUERY, Attention
from relayc.pipelines.te.read.graph import Node
from relayc.pipelines.tir.gpu.copies import SHARED, as_pointer, commit_copies, wait_for_copies
from relayc.pipelines.tir.gpu.launch import WARP, Launch, barrier, launch, reduce_lanes
from relayc.pipelines.tir.gpu.swizzle import BANK_CHUNKS, CHUNK_BYTES
from relayc.pipelines.tir.values import nest, vectors
from relayc.symbolic import ceil_div, proves

PLACES = BANK_CHUNKS // STEP_CHUNKS
"""Places in a line that a lane reads at: the next ones are all banks further."""
WORD = 4
"""Bytes."""
QUAD = 4
"""Lanes that have a row of sums together."""
HALVES = ROWS // COLUMNS
"""Rows of a tile of an instruction that a lane has sums of."""


@dataclass(frozen=True)
class TensorParameters:
    """Tunable numbers.

    Attributes:
      warps: of a block.
      rows: of a warp, a multiple of an instruction's.
      keys: of a tile, a multiple of 16.
      stages: tiles of keys and values in shared memory.
    """

    warps: int
    rows: int
    keys: int
    stages: int


@dataclass(frozen=True)
class Queries:
    """What the first product is of.

    Attributes:
      node: the queries before they are scaled.
      scale: what scores are multiplied by instead of queries.
    """

    node: Node
    scale: float

    @property
    def element_bytes(self) -> int:
        """Of queries, keys and values."""
        width: int = self.node.element.width
        return width // 8


def queries_of(attention: Attention, is_tf32: bool) -> Queries | None:
    """The queries of an attention whose scores are sums of products of 16-bit floats in f32; None for any other.

    Args:
      is_tf32: whether f32 may be rounded to tf32.
    """
    scaled, f32 = attention.product.structured.inputs[0], ir.F32Type.get()
    if [n.element for product in (attention.product, attention.context) for n in (product, *product.structured.inputs)] == [f32] * 6:
        return _queries_of_f32(scaled) if is_tf32 else None
    if scaled.kind != "generic" or scaled.is_reduction or len(scaled.structured.inputs) != 1:
        return None
    structured = scaled.structured
    identity = ir.AffineMap.get_identity(len(scaled.shape))
    operations = [op.operation for op in structured.block.operations if op.operation.name != "arith.constant"]
    names = [op.name for op in operations]
    if [*structured.maps, *structured.output_maps] != [identity] * 2 or attention.product.element != f32:
        return None
    query = structured.inputs[0]
    second = [node.structured.inputs[1].element for node in (attention.product, attention.context)]
    if query.element not in (ir.F16Type.get(), ir.BF16Type.get()) or second != [query.element] * 2:
        return None
    if names == ["arith.extf", "linalg.yield"]:
        return Queries(query, 1.0)
    if names != ["arith.extf", "arith.mulf", "linalg.yield"]:
        return None
    factor = _factor(operations[1], operations[0].results[0])
    return None if factor is None else Queries(query, factor)


def _factor(multiplication: ir.Operation, value: ir.Value) -> float | None:
    """The number that a value is multiplied by; None where it is another value."""
    others = [v.owner for v in multiplication.operands if v != value]
    if len(others) != 1 or isinstance(others[0], ir.Block) or others[0].operation.name != arith.ConstantOp.OPERATION_NAME:
        return None
    found: float = others[0].operation.attributes["value"].value
    return found


def _queries_of_f32(scaled: Node) -> Queries:
    """Queries of f32, and their scale where they are multiplied by a number alone."""
    if scaled.kind == "generic" and not scaled.is_reduction and len(scaled.structured.inputs) == 1:
        structured, identity = scaled.structured, ir.AffineMap.get_identity(len(scaled.shape))
        operations = [op.operation for op in structured.block.operations if op.operation.name != "arith.constant"]
        are_scaled = [op.name for op in operations] == ["arith.mulf", "linalg.yield"]
        factor = _factor(operations[0], structured.block.arguments[0]) if are_scaled else None
        if factor is not None and [*structured.maps, *structured.output_maps] == [identity] * 2:
            return Queries(structured.inputs[0], factor)
    return Queries(scaled, 1.0)


class TensorBlocks(GpuAttention):
    """Registers of a thread have, for each 16 rows of its warp, the words of the queries, and sums of f32: of scores [8 keys, 4] and of the
    context [8 elements, 4]; of the four sums two are neighbours in a row, and two of the row 8 after it."""

    def __init__(
        self, attention: Attention, queries: Queries, parameters: TensorParameters, is_asynchronous: bool, keeps_queries: bool
    ) -> None:
        """
        Args:
          is_asynchronous: whether the target copies from memory to shared memory by itself.
          keeps_queries: whether queries stay in registers.
        """
        super().__init__(attention)
        self.q, self.p, self.keeps_queries = queries, parameters, keeps_queries
        name = "tf32" if queries.node.element == self.wide else str(queries.node.element)
        self.instruction = Instruction(name, name, queries.node.element.width, str(self.wide))
        self.is_tf32 = name == "tf32"
        self.block_rows = parameters.warps * parameters.rows
        self.threads = parameters.warps * WARP
        self.row_tiles = parameters.rows // ROWS
        self.key_tiles, self.column_tiles = parameters.keys // COLUMNS, self.width // COLUMNS
        self.steps = ceil_div(self.depth, self.instruction.depth)
        start, self.copies = 0, []
        # Lanes that read words of the values read lines two apart, which meet no bank twice where lines are padded.
        operands = ((attention.product, False), (attention.context, self.is_tf32))
        sizes = [copy_of(n, is_asynchronous, is_padded, parameters.keys, 1, 0, (0, 0)).tile.size for n, is_padded in operands]
        self.stage_bytes = sum(sizes)
        for (node, is_padded), size in zip(operands, sizes, strict=True):
            stages = parameters.stages, self.stage_bytes
            self.copies.append(copy_of(node, is_asynchronous, is_padded, parameters.keys, self.threads, start, stages))
            start += size
        self.is_plain = attention.plain is attention.product and queries.scale > 0
        """Whether scores without a causal mask are the scaled sums: then the scale goes with the exponential."""

    @property
    def shared_bytes(self) -> int:
        """Of a block: the stages, and after them the queries that registers do not keep, a chunk for each thread after the other."""
        queries = 0 if self.keeps_queries else self.row_tiles * self.steps * self.threads * CHUNK_BYTES
        return self._ring_bytes + queries

    @property
    def _ring_bytes(self) -> int:
        return self.stage_bytes * self.p.stages

    def emit(self) -> None:
        """The launch, at the ambient insertion point in the function."""
        blocks = ceil_div(self.rows, self.block_rows)
        shared = [(self.shared_bytes, ir.IntegerType.get_signless(8))]
        with launch([self.heads * blocks], self.threads, shared) as made, self.evaluator.scope():
            head, block = self.evaluator.quotient_and_rest(Index.of(made.block[0]), blocks)
            # Rows that see the most keys come first: the last blocks of the launch are short.
            self._block(made, head, hoisted((block * -1 + (blocks - 1)) * self.block_rows))

    def _block(self, made: Launch, head: Index, first: Index) -> None:
        self.shared = SharedMemory.of(made.shared[0])
        warp, lane = map(hoisted, divided(Index.of(made.thread), WARP))
        row, self.own_pair = map(hoisted, divided(lane, QUAD))
        self.own = hoisted(first + warp * self.p.rows + row)
        self.points = [
            [self._row_point(head, self.own + i * ROWS + half * COLUMNS) for half in range(HALVES)] for i in range(self.row_tiles)
        ]
        for copy in self.copies:
            copy.prepare(made.thread, self.shared, self.points[0][0], self.evaluator)
        keys, values = self.copies
        self.key_places = self._addresses(along_depth(keys.tile, lane, True, Index(), min(self.steps, PLACES)))
        if self.is_tf32:
            # Of a step a lane has the keys whose weights it has, two neighbours, of one element.
            place = hoisted(self.own_pair * 2 * values.tile.pitch + row * WORD + values.start)
            self.value_places = [emit.materialize(place)]
        else:
            count = min(ceil_div(self.column_tiles, 2), PLACES)
            self.value_places = self._addresses(across_depth(values.tile, lane, True, Index(), count))
        self.words = self.shared.elements(ir.IntegerType.get_signless(32))
        self.queries = [[self._query_words(i, s) for s in range(self.steps)] for i in range(self.row_tiles)]
        if not self.keeps_queries:
            self._put_queries_by(Index.of(made.thread))
        largest, totals, context = self._walk(first)
        self._store(largest, totals, context)

    def _addresses(self, places: list[ir.Value]) -> list[ir.Value]:
        return [added(self.shared.base, place) for place in places]

    def _row_point(self, head: Index, row: Index) -> list[Index]:
        """The point of a row; of the last one for those behind it."""
        return self.row_point(head, emit.at_most(row, self.rows - 1))

    def _query_words(self, i: int, step: int) -> list[ir.Value]:
        """The words of A of a step of the head: of both rows, then of both 4 words later."""
        structured, found, count = self.a.product.structured, [], WORD // self.q.element_bytes
        for later in range(2):
            element = step * self.instruction.depth + later * QUAD * count
            for point in self.points[i]:
                if element >= self.depth:
                    word = emit.zero(self.wide if self.is_tf32 else emit.vector_of(count, self.q.node.element))
                else:
                    with self.evaluator.along(count) as one:
                        at = [*point, Index(), self.own_pair * count + element + one]
                        word = emit.broadcast(self.evaluator.at(self.q.node, self.evaluator.apply(structured.maps[0], at)), count)
                found.append(self._multiplied(word))
        return found

    def _multiplied(self, word: ir.Value) -> ir.Value:
        """A word of elements, as products take it."""
        return operand_words([as_word(word)], "tf32")[0] if self.is_tf32 else operand_pair(word)

    def _put_queries_by(self, thread: Index) -> None:
        """Stores the words of the queries where only the thread itself reads them."""
        self.own_words = emit.materialize((thread * CHUNK_BYTES + self._ring_bytes).split(WORD)[0])  # type: ignore[index]
        for i, step in product(range(self.row_tiles), range(self.steps)):
            store(vectors.from_elements(list(map(as_word, self.queries[i][step]))), self.words, self._place_of_words(i, step))

    def _place_of_words(self, i: int, step: int) -> ir.Value:
        return added(self.own_words, (i * self.steps + step) * self.threads * (CHUNK_BYTES // WORD))

    def _words_of_query(self, i: int, step: int) -> list[ir.Value]:
        """The words of A of a step of the head."""
        if self.keeps_queries:
            return self.queries[i][step]
        found = load(self.words, self._place_of_words(i, step), CHUNK_BYTES // WORD)
        return operand_words([vectors.extract(found, n) for n in range(CHUNK_BYTES // WORD)], self.instruction.a)

    # ---- tiles of keys

    def _walk(self, first: Index) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
        """Largest scores and totals (each lane of its keys) of the rows of a lane, and their context."""
        ahead, count = self.p.stages - 1, self.row_tiles * HALVES
        whole, tiles = self._tiles(first)
        self.tiles = tiles
        for number in range(ahead):
            self._issue(emit.index_constant(number), emit.index_constant(number * self.stage_bytes))
        values = [self._initial(self.a.largest)] * count + [self._initial(self.a.total)] * count
        values += [emit.zero(self.wide)] * (self.row_tiles * self.column_tiles * 4)
        for start, end, all_seen in ((0, whole, True), (whole, tiles, False)):
            if start is end:
                continue
            turn = Var.below(ceil_div(self.keys, self.p.keys), name="turn")
            with emit.for_loop(start, end, 1, turn, values) as loop, self.evaluator.scope():
                emit.yield_values(self._turn(turn, list(loop.inner_iter_args), all_seen))
            values = list(loop.results)
        return self._split(values)

    def _split(self, values: list[ir.Value]) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
        """Largest scores, totals and contexts."""
        count = self.row_tiles * HALVES
        return values[:count], values[count : 2 * count], values[2 * count :]

    def _tiles(self, first: Index) -> tuple[ir.Value, ir.Value]:
        """How many tiles have only keys that all rows of the block see, and how many have keys that some see (index)."""
        size = self.p.keys
        if self.a.causal is None:
            whole, tiles = emit.index_constant(self.keys // size), emit.index_constant(ceil_div(self.keys, size))
            return (tiles, tiles) if proves(lambda: self.keys % size == 0) else (whole, tiles)
        seen = self.seen(first, self.block_rows)
        tiles = emit.create("arith.ceildivui", [seen.type], [seen, emit.index_constant(size)])
        return emit.arith("divui", self.seen_by_all(first, self.block_rows), emit.index_constant(size)), tiles

    def _issue(self, turn: ir.Value, stage: ir.Value) -> None:
        """Starts the copies of a turn, where there is one."""
        first = hoisted(Index.of(Var.below(ceil_div(self.keys, self.p.keys), turn, name="turn")) * self.p.keys)
        with nest.if_all([emit.compare("slt", turn, self.tiles)], self.evaluator):
            for each in self.copies:
                each.issue(first, stage)
        commit_copies()

    def _turn(self, turn: Var, values: list[ir.Value], all_seen: bool) -> list[ir.Value]:
        """Largest scores, totals and contexts after a tile of keys."""
        ahead = self.p.stages - 1
        largest, totals, context = self._split(values)
        wait_for_copies(ahead - 1)
        barrier()
        # The stage that the turn before was about: all threads are done with it.
        later = emit.arith("addi", turn.value, emit.index_constant(ahead))
        self._issue(later, self._stage_of(later))
        stage = self._stage_of(turn.value)
        words = []
        for i, sums in enumerate(self._scores(stage)):
            own = slice(i * HALVES, (i + 1) * HALVES)
            of_tile = slice(i * self.column_tiles * 4, (i + 1) * self.column_tiles * 4)
            scores = [self._row_of_scores(i, half, sums, hoisted(Index.of(turn) * self.p.keys), all_seen) for half in range(HALVES)]
            found = [self._softmax(*row) for row in zip(scores, largest[own], totals[own], strict=True)]
            largest[own], totals[own] = [f.largest for f in found], [f.total for f in found]
            context[of_tile] = [emit.arith("mulf", x, found[n % 4 // 2].scale) for n, x in enumerate(context[of_tile])]
            words.append([word for pairs in zip(*(f.weights for f in found), strict=True) for word in self._weights(pairs)])
        return [*largest, *totals, *self._add_values(stage, words, context)]

    def _weights(self, pairs: Sequence[ir.Value]) -> list[ir.Value]:
        """The words of A of 8 keys: the weights of a lane of both rows."""
        if self.is_tf32:
            return [self._multiplied(vectors.extract(pair, n)) for n in range(2) for pair in pairs]
        return [operand_pair(self._rounded(pair)) for pair in pairs]

    def _stage_of(self, turn: ir.Value) -> ir.Value:
        """Where the stage of a turn begins, in bytes. It is computed, as registers that a loop carries are scarce."""
        number = _as_i32(turn)
        place = emit.arith(
            "muli", emit.arith("remui", number, emit.number(self.p.stages, number.type)), emit.number(self.stage_bytes, number.type)
        )
        return emit.create("arith.index_castui", [ir.IndexType.get()], [place])

    # ---- products

    def _scores(self, stage: ir.Value) -> list[list[ir.Value]]:
        """The sums of queries and keys: for each 16 rows four of each 8 keys."""
        keys = self.copies[0]
        found = [[emit.zero(self.wide)] * (self.key_tiles * 4) for _ in range(self.row_tiles)]
        for step in range(self.steps):
            queries = [self._words_of_query(i, step) for i in range(self.row_tiles)]
            for j in range(0, self.key_tiles, 2):
                words = self._matrices(self.key_places, stage, step, keys.start + j * COLUMNS * keys.tile.pitch, False)
                for i, sums in enumerate(found):
                    for later in range(2):
                        at = slice((j + later) * 4, (j + later) * 4 + 4)
                        sums[at] = self.instruction.multiply_add(queries[i], words[2 * later : 2 * later + 2], sums[at])
        return found

    def _matrices(self, places: list[ir.Value], stage: ir.Value, number: int, more: int, transposes: bool) -> list[ir.Value]:
        """The words of B of 16 lines and two chunks: the pair of a number, some bytes after the place of the lane in the stage. What is a
        number is added last, where the instruction does it."""
        address = as_pointer(added(stage, places[number % PLACES]), SHARED)
        constant = number // PLACES * BANK_CHUNKS * CHUNK_BYTES + more
        return operand_words(load_matrices(after(address, constant), 4, transposes), self.instruction.b)

    def _add_values(self, stage: ir.Value, weights: list[list[ir.Value]], context: list[ir.Value]) -> list[ir.Value]:
        """The context with the values of a tile; `weights` are the words of A, for each 16 rows four of each step."""
        values, found = self.copies[1], list(context)
        for step in range(self.p.keys // self.instruction.depth):
            for j in range(0, self.column_tiles, 2):
                line = step * self.instruction.depth * values.tile.pitch
                if self.is_tf32:
                    words = self._words_of_values(stage, line + j * COLUMNS * WORD, min(2, self.column_tiles - j))
                else:
                    words = self._matrices(self.value_places, stage, j // 2, values.start + line, True)
                for i, own in enumerate(weights):
                    for later in range(min(2, self.column_tiles - j)):
                        at = slice((i * self.column_tiles + j + later) * 4, (i * self.column_tiles + j + later) * 4 + 4)
                        found[at] = self.instruction.multiply_add(own[4 * step : 4 * step + 4], words[2 * later : 2 * later + 2], found[at])
        return found

    def _words_of_values(self, stage: ir.Value, more: int, tiles: int) -> list[ir.Value]:
        """The words of B of 8 keys and some tiles of 8 elements, which begin some bytes after the place of the lane in the stage."""
        at, pitch = added(stage, self.value_places[0]), self.copies[1].tile.pitch
        places = [more + tile * COLUMNS * WORD + later * pitch for tile in range(tiles) for later in range(2)]
        return operand_words([load(self.words, element_of(added(at, place), WORD), 1) for place in places], "tf32")

    # ---- softmax

    def _row_of_scores(self, i: int, half: int, sums: list[ir.Value], first: Index, all_seen: bool) -> list[ir.Value]:
        """The scores that a lane has of a row of a tile whose keys begin at `first`."""
        pairs = [
            (sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1], first + self.own_pair * 2 + j * COLUMNS) for j in range(self.key_tiles)
        ]
        point = self.points[i][half]
        if all_seen and self.is_plain:
            return [x for a, b, _ in pairs for x in (a, b)]
        if all_seen:
            return [x for a, b, key in pairs for x in self._pair_of_scores(point, key, a, b)]
        left = emit.arith("subi", self._end(point), _as_i32(emit.materialize(first)))
        return [self._checked(point, key + n % 2, x, left, n) for n, (key, x) in enumerate((key, x) for *two, key in pairs for x in two)]

    def _pair_of_scores(self, point: Sequence[Index], key: Index, a: ir.Value, b: ir.Value) -> list[ir.Value]:
        """Two neighbouring scores without the causal mask, of keys that are there."""
        with self.evaluator.along(2) as one:
            at = [*point, key + one]
            sums = self._scaled(vectors.from_elements([a, b]))
            self.evaluator.remember(self.a.product, at, sums)
            found = emit.broadcast(self.evaluator.at(self.a.plain, at), 2)
        return [vectors.extract(found, lane) for lane in range(2)]

    def _end(self, point: Sequence[Index]) -> ir.Value:
        """The first key that a row does not see, or that is not there, before which a lane has its first (i32)."""
        causal = self.a.causal

        def end() -> ir.Value:
            seen = emit.index_constant(self.keys)
            if causal is not None:
                seen = emit.larger(emit.smaller(emit.materialize(point[QUERY] + causal + 1), self.keys), 0)
            return _as_i32(emit.arith("subi", seen, emit.materialize(self.own_pair * 2)))

        return self.evaluator.once(("end", id(point)), end)

    def _checked(self, point: Sequence[Index], key: Index, value: ir.Value, left: ir.Value, number: int) -> ir.Value:
        """A lane's score of a number of a key: -inf where the row does not see it. `left` are the keys of the tile from the lane's first on
        that the row sees (i32)."""
        place = number // 2 * COLUMNS + number % 2
        inside = emit.compare("sgt", left, emit.number(place, left.type))
        if not self.is_plain:
            at = [*point, emit.at_most(key, self.keys - 1)]
            with self.evaluator.scope():
                self.evaluator.remember(self.a.product, at, self._scaled(value))
                value = self.evaluator.at(self.a.plain, at)
        return emit.select(inside, value, emit.number(float("-inf"), self.wide))

    def _scaled(self, sums: ir.Value) -> ir.Value:
        return sums if self.q.scale == 1.0 else emit.arith("mulf", sums, emit.number(self.q.scale, sums.type))

    def _softmax(self, scores: list[ir.Value], largest: ir.Value, total: ir.Value) -> "_Row":
        """A row with some more scores."""
        grown = _maximum(reduce_lanes(vectors.pairwise(scores, _maximum), _maximum, QUAD), largest)
        factor = emit.number(LOG2E * (self.q.scale if self.is_plain else 1.0), self.wide)

        def weight(score: ir.Value) -> ir.Value:
            return exp2(emit.arith("mulf", emit.arith("subf", score, grown), factor))

        scale, weights = weight(largest), [weight(score) for score in scores]
        # Four chains: one alone would wait for itself.
        chains = [emit.arith("mulf", total, scale), *weights[1:4]]
        chains[0] = emit.arith("addf", chains[0], weights[0])
        for n, more in enumerate(weights[4:]):
            chains[n % 4] = emit.arith("addf", chains[n % 4], more)
        pairs = [vectors.from_elements(weights[n : n + 2]) for n in range(0, len(weights), 2)]
        return _Row(grown, scale, vectors.pairwise(chains, add_floats), pairs)

    def _rounded(self, pair: ir.Value) -> ir.Value:
        return emit.convert(pair, [("arith.truncf", self.q.node.element)])

    # ---- results

    def _store(self, largest: list[ir.Value], totals: list[ir.Value], context: list[ir.Value]) -> None:
        for n, total in enumerate(totals):
            i, half = divmod(n, HALVES)
            found = reduce_lanes(total, add_floats, QUAD)
            with nest.if_inside([(self.own + i * ROWS + half * COLUMNS, self.rows, self.block_rows)], self.evaluator):
                self._store_row(i, half, found, context)

    def _store_row(self, i: int, half: int, total: ir.Value, context: list[ir.Value]) -> None:
        for j in range(self.column_tiles):
            at = (i * self.column_tiles + j) * 4 + 2 * half
            with self.evaluator.along(2) as one:
                self.store_result(
                    self.points[i][half], self.own_pair * 2 + j * COLUMNS + one, vectors.from_elements(context[at : at + 2]), total
                )


@dataclass(frozen=True)
class _Row:
    """A row after a tile: its largest score, what its context so far is to be scaled by, its total, and its new weights in pairs."""

    largest: ir.Value
    scale: ir.Value
    total: ir.Value
    weights: list[ir.Value]


def _as_i32(value: ir.Value) -> ir.Value:
    """An index that 32 bits hold."""
    return emit.create("arith.index_cast", [ir.IntegerType.get_signless(32)], [value])


def _maximum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The larger of two scores; the other one where one is NaN, whose weight then becomes NaN too."""
    return emit.arith("maxnumf", a, b)
