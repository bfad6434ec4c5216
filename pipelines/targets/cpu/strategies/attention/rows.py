"""The schedule of attention with few queries for each key, as in decoding: bound by the memory that key and value are read from.

A task is a head. Lanes run along the elements of a head, so that key and value are read once, in order. Scores of a few keys at a time are
summed up across lanes by a transpose, and kept in a buffer of the thread for a block of keys; the context so far is scaled by how much the
largest score has grown, as in `columns`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.emit import add_floats
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.attention.kernel import ContextKernel, has_few_rows, most_few_rows
from relayc.pipelines.te.read.attention import KEY, QUERY, QUERY_HEAD, Attention, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, distinct, powers_of_two
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.attention import larger
from relayc.symbolic import Dim, Size, ceil_div, maximum, minimum

BLOCK_BYTES = 8 << 10
"""Memory for the scores of a query."""
MAX_BYTES = 64 << 10
"""Memory for the scores of a symbolic number of queries."""
MAX_GROUP = 8
"""Query heads that are computed together if they share a key and the number of queries is symbolic."""
FEW_KEYS = 3
"""Keys, of a symbolic number of them, that are taken one by one rather than as a vector, which takes as long."""
TOGETHER = 4
"""Queries for which a value is read once, where their number is symbolic."""


@dataclass(frozen=True)
class RowParameters:
    """Tunable numbers.

    Attributes:
      depth_lanes, width_lanes: lanes along the elements of a head of key and of value; the former are also keys taken at a time.
      keys: of a block, a multiple of `depth_lanes`.
      sums: vectors of the context that stay in registers.
    """

    depth_lanes: int
    width_lanes: int
    keys: int
    sums: int


def default_parameters(attention: Attention, target: Target) -> RowParameters:
    """Whole vectors that divide a head."""
    element_bytes = attention.product.element.width // 8
    depth, width = (min(target.vector_bytes // element_bytes, n & -n) for n in (attention.depth, attention.width))
    return RowParameters(depth, width, BLOCK_BYTES // element_bytes, target.num_vector_registers // 2)


def schedule_attention_rows(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules an attention with so few queries for each key that lanes along them would be idle; None for any other kernel."""
    attention = match(kernel)
    if attention is None or not has_few_rows(attention, target):
        return None
    values: dict[str, Callable[[RowParameters], list[int]]] = {
        "keys": lambda p: _block_keys(attention, target, p),
        "sums": lambda p: powers_of_two(1, target.num_vector_registers - 4),
    }
    parameters = tuning.replace(default_parameters(attention, target), ("keys", "sums"), values=values)
    return RowAttention(kernel, attention, parameters, most_few_rows(attention, target)).emit(tuning)


def _block_keys(attention: Attention, target: Target, p: RowParameters) -> list[int]:
    """Keys of a block whose scores take up to the first-level cache: beyond all keys one number is as good as another."""
    keys = attention.shape[KEY]
    most = target.l1_bytes // (attention.product.element.width // 8)
    candidates = powers_of_two(p.depth_lanes, most)
    if isinstance(keys, Dim):
        return candidates
    whole = ceil_div(keys, p.depth_lanes) * p.depth_lanes
    return distinct(candidates, p.keys, lambda n: min(n, whole))


def _row_loops(attention: Attention) -> list[int]:
    """The loops over rows that a task takes together. A symbolic number of queries may be one: heads that share a key are as good then."""
    group = attention.shape[QUERY_HEAD]
    both = isinstance(attention.rows, Dim) and isinstance(group, int) and 1 < group <= MAX_GROUP
    return [QUERY_HEAD, QUERY] if both else [attention.row_loop]


class RowAttention(ContextKernel):
    """Buffers of a thread have the rows of a task as their outermost extent.

    Attributes:
      rows: of a task.
      most_rows: how many they are at most.
    """

    blocks = 1

    def __init__(self, kernel: Kernel, attention: Attention, parameters: RowParameters, most: int) -> None:
        """A symbolic number of queries is `most` at most."""
        super().__init__(kernel, attention, _row_loops(attention))
        extents = [attention.shape[i] for i in self.row_loops]
        self.rows = prod(extents)
        self.most_rows = prod(extent if isinstance(extent, int) else most for extent in extents)
        lanes = parameters.depth_lanes
        self.p = replace(parameters, keys=max(1, parameters.keys // lanes) * lanes)
        # Keys beyond the last that any query sees are left out.
        last = attention.shape[QUERY] - 1 + attention.causal if attention.causal is not None else self.keys - 1
        self.seen = maximum(0, minimum(self.keys, last + 1))
        self.block_keys: Size = self.p.keys
        if isinstance(self.seen, int):
            self.block_keys = min(self.p.keys, ceil_div(max(1, self.seen), lanes) * lanes)
        self.most_scores = self.most_rows * self.block_keys
        if isinstance(self.rows, Dim):
            # Fewer keys for more rows, so that the scores take as much memory.
            self.most_scores = max(min(self.most_scores, MAX_BYTES // (self.wide.width // 8)), self.most_rows * lanes)
            self.block_keys = minimum(self.block_keys, maximum(self.most_scores // maximum(self.rows, 1) // lanes, 1) * lanes)
        self.key_blocks = ceil_div(self.seen, self.block_keys)

    def _buffers(self) -> dict[str, int]:
        rows = self.most_rows
        return {
            "query": rows * self.depth,
            "context": rows * self.width,
            "rows": rows * 3,
            "scores": self.most_scores,
        }

    def _row(self, row: list[Index], place: "_RowPosition") -> list[Index]:
        return [place.loops.get(i, index) for i, index in enumerate(row)]

    @contextmanager
    def _each_row(self) -> Iterator["_RowPosition"]:
        """Loops over the rows."""
        variables = [Var.below(self.a.shape[i], name="row") for i in self.row_loops]
        with nest.serial(variables, self.evaluator):
            loops = [Index.of(v) for v in variables]
            yield _RowPosition(linearize(loops, [v.extent for v in variables]), dict(zip(self.row_loops, loops, strict=True)))

    def _task(self, row: list[Index], block: Index) -> None:
        """A head."""
        with self._each_row() as place:
            self._start(row, place)
        with nest.loop(0, self.key_blocks, self.evaluator, name="keys") as keys:
            base = keys * self.block_keys if self.key_blocks not in (0, 1) else Index()
            count = emit.smaller(emit.materialize(base * -1 + self.seen), self.block_keys)
            self._scores(row, base, count)
            with self._each_row() as place:
                self._weights(place.number, count)
            self._add_contexts(row, base, count)
        with self._each_row() as place:
            self._finish(row, place)

    def _start(self, row: list[Index], place: "_RowPosition") -> None:
        """The query as the product takes it; the largest score, the total and the context of no key."""
        number = place.number
        with self._along(self.depth, self.p.depth_lanes) as (start, lanes), self.evaluator.along(lanes) as lane:
            along = start + lane
            query = self._operand(self.a.product, 0, [*self._row(row, place), Index(), along])
            self._store("query", number * self.depth + along, query)
        with self._along(self.width, self.p.width_lanes) as (start, lanes), self.evaluator.along(lanes) as lane:
            along = start + lane
            self._store("context", number * self.width + along, self._initial(self.a.context))
        for i, node in enumerate((self.a.largest, self.a.total)):
            self._store("rows", number * 3 + i, self._initial(node))

    # ---- a block of keys

    def _scores(self, row: list[Index], base: Index, count: ir.Value) -> None:
        """Scores of a block of keys, as many at a time as there are lanes, then one by one; what is left of the last vector is -inf."""
        lanes = self.p.depth_lanes
        if isinstance(self.seen, Dim) and lanes > 1:
            self._symbolic_scores(row, base, count)
            return
        whole = emit.arith("muli", emit.arith("divui", count, emit.index_constant(lanes)), emit.index_constant(lanes))
        with nest.loop(0, whole, self.evaluator, step=lanes, below=self.block_keys, name="k") as several, self._each_row() as place:
            self._some_scores(row, place, base, several, lanes)
        if lanes == 1:
            return
        with nest.loop(whole, count, self.evaluator, below=self.block_keys, name="k") as key, self._each_row() as place:
            self._some_scores(row, place, base, key, 1)
        end = emit.arith("muli", emit.arith("ceildivsi", count, emit.index_constant(lanes)), emit.index_constant(lanes))
        with nest.loop(count, end, self.evaluator, below=self.block_keys, name="k") as key, self._each_row() as place:
            never = emit.number(float("-inf"), self.wide)
            self._store("scores", place.number * self.block_keys + key, never)

    def _symbolic_scores(self, row: list[Index], base: Index, count: ir.Value) -> None:
        """The same of a symbolic number of keys. Where more than a few are left they are a vector, too, which starts early: a score that is
        computed twice is the same both times."""
        lanes = self.p.depth_lanes
        width, rest = emit.index_constant(lanes), emit.arith("remui", count, emit.index_constant(lanes))
        last = emit.arith("subi", count, width)
        with self._each_row() as place, self.evaluator.lanes(lanes) as lane:
            end = emit.arith("muli", emit.arith("divui", emit.arith("subi", count, emit.index_constant(1)), width), width)
            never = emit.number(float("-inf"), emit.vector_of(lanes, self.wide))
            self._store("scores", place.number * self.block_keys + Index(0, {Var(0, self.block_keys, end): 1}) + lane, never)
        is_early = emit.arith(
            "andi", emit.compare("sgt", rest, emit.index_constant(FEW_KEYS)), emit.compare("sge", last, emit.index_constant(0))
        )
        whole = emit.select(is_early, count, emit.arith("subi", count, rest))
        with nest.loop(0, whole, self.evaluator, step=lanes, below=self.block_keys, name="k") as several:
            start = Index.of(Var(0, self.block_keys - lanes, emit.arith("minsi", emit.materialize(several), last), name="start"))
            with self._each_row() as place:
                self._some_scores(row, place, base, start, lanes)
        with nest.loop(whole, count, self.evaluator, below=self.block_keys, name="k") as key, self._each_row() as place:
            self._some_scores(row, place, base, key, 1)

    def _some_scores(self, row: list[Index], place: "_RowPosition", base: Index, start: Index, keys: int) -> None:
        """Scores of a query and one key, or as many keys as there are lanes."""
        lanes, number = self.p.depth_lanes, place.number
        with self.evaluator.along(lanes) as lane:
            zero = self._initial(self.a.product)
            with nest.carrying(0, self.depth, self.evaluator, [zero] * keys, step=lanes, name="d") as (step, loop):
                along = step + lane
                query = self._load("query", number * self.depth + along)
                found = [self._operand(self.a.product, 1, [*row, base + start + i, along]) for i in range(keys)]
                emit.yield_values([emit.multiply_add(k, query, s) for k, s in zip(found, loop.inner_iter_args, strict=True)])
            sums = list(loop.results)
            product = vectors.pairwise(vectors.transpose(sums), add_floats) if keys > 1 else vectors.across_lanes(sums[0], add_floats)
        with self.evaluator.along(keys) as lane:
            point = [*self._row(row, place), base + start + lane]
            self.evaluator.remember(self.a.product, point, product)
            score = emit.broadcast(self.evaluator.at(self.a.scores, point), keys)
            self._store("scores", number * self.block_keys + start + lane, score)

    def _weights(self, number: Index, count: ir.Value) -> None:
        """Scores of a block become weights; the total takes them in."""
        lanes = self.p.depth_lanes
        place = number * self.block_keys
        before = self._load("rows", number * 3)

        def each_vector(first: ir.Value) -> AbstractContextManager[tuple[Index, emit.Serial]]:
            start = [emit.broadcast(first, lanes)]
            return nest.carrying(0, count, self.evaluator, start, step=lanes, below=self.block_keys, name="k")

        with self.evaluator.along(lanes) as lane:
            with each_vector(before) as (key, loop):
                emit.yield_values([larger(self._load("scores", place + key + lane), loop.inner_iter_args[0])])
            largest = vectors.across_lanes(loop.results[0], larger)
            growth = self._weight(before, largest)
            with each_vector(emit.zero(self.wide)) as (key, loop):
                weight = self._weight(self._load("scores", place + key + lane), emit.broadcast(largest, lanes))
                self._store("scores", place + key + lane, weight)
                emit.yield_values([add_floats(loop.inner_iter_args[0], weight)])
            total = vectors.across_lanes(loop.results[0], add_floats)
        self._store("rows", number * 3, largest)
        self._store("rows", number * 3 + 1, emit.arith("addf", emit.arith("mulf", self._load("rows", number * 3 + 1), growth), total))
        self._store("rows", number * 3 + 2, growth)

    def _add_contexts(self, row: list[Index], base: Index, count: ir.Value) -> None:
        """Adds the contribution of a block of keys to the context: all rows together, so that each value is read once; groups of rows if
        their number is symbolic."""
        if isinstance(self.rows, int):
            self._add_context(row, base, count, Index(), self.rows)
            return
        whole = self.rows // TOGETHER
        for first, number, rows in ((0, whole, TOGETHER), (whole * TOGETHER, self.rows - whole * TOGETHER, 1)):
            if number == 0:
                continue
            with nest.loop(0, number, self.evaluator, name="rows") as some:
                self._add_context(row, base, count, some * rows + first, rows)

    def _add_context(self, row: list[Index], base: Index, count: ir.Value, first_row: Index, rows: int) -> None:
        """Adds the contribution of a block of keys to the context of some rows, for `width` vectors at a time."""
        lanes = self.p.width_lanes
        width = max(1, min(self.p.sums // rows, self.width // lanes))
        while self.width // lanes % width:
            width -= 1
        with nest.loop(0, self.width, self.evaluator, step=width * lanes, name="e") as first, self.evaluator.along(lanes) as lane:
            starts = [first + lane + j * lanes for j in range(width)]
            places = [(first_row + r, s) for r in range(rows) for s in starts]
            sums = []
            for r, s in places:
                growth = emit.broadcast(self._load("rows", r * 3 + 2), lanes)
                sums.append(emit.arith("mulf", self._load("context", r * self.width + s), growth))
            with nest.carrying(0, count, self.evaluator, sums, below=self.block_keys, name="k") as (key, loop):
                values = [self._operand(self.a.context, 1, [*row, base + key, s]) for s in starts]
                weights = [emit.broadcast(self._load("scores", (first_row + r) * self.block_keys + key), lanes) for r in range(rows)]
                pairs = [(w, v) for w in weights for v in values]
                emit.yield_values([emit.multiply_add(w, v, s) for (w, v), s in zip(pairs, loop.inner_iter_args, strict=True)])
            for (r, s), value in zip(places, loop.results, strict=True):
                self._store("context", r * self.width + s, value)

    def _finish(self, row: list[Index], place: "_RowPosition") -> None:
        """Divides by the total and stores."""
        at, number = self._row(row, place), place.number
        with self._along(self.width, self.p.width_lanes) as (start, lanes), self.evaluator.along(lanes) as lane:
            along = start + lane
            total, context = self._load("rows", number * 3 + 1), self._load("context", number * self.width + along)
            self.evaluator.store(self._result(at, along, context, total), self.output, self._place(at, along))
        if self.a.lse is not None:
            self._store_lse(at, self._load("rows", number * 3), self._load("rows", number * 3 + 1))


@dataclass(frozen=True)
class _RowPosition:
    """A row: its number in the buffers, and its indices in the loops over rows."""

    number: Index
    loops: dict[int, Index]
