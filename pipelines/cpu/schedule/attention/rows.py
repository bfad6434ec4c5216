"""The schedule of attention with few queries for each key, as in decoding: bound by the memory that key and value are read from.

A task is a head. Lanes run along the elements of a head, so that key and value are read once, in order. Scores of a few keys at a time are
summed up across lanes by a transpose, and kept in a buffer of the thread for a block of keys; the context so far is scaled by how much the
largest score has grown, as in `columns`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.attention.emission import Emission, has_few_rows, larger
from relayc.pipelines.kernel.attention import QUERY, Attention, match
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit, nest, vectors
from relayc.symbolic import ceil_div

BLOCK_BYTES = 8 << 10
"""Memory for the scores of a query."""


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
    parameters = tuning.replace(default_parameters(attention, target), ("keys", "sums"))
    keys = max(1, parameters.keys // parameters.depth_lanes) * parameters.depth_lanes
    return _Rows(kernel, attention, replace(parameters, keys=keys)).emit(tuning)


class _Rows(Emission):
    """Buffers of a thread have the rows of the row loop as their outermost extent."""

    blocks = 1

    def __init__(self, kernel: Kernel, attention: Attention, parameters: RowParameters) -> None:
        super().__init__(kernel, attention)
        self.p = parameters
        # Keys beyond the last that any query sees are left out.
        last = attention.shape[QUERY] - 1 + attention.causal if attention.causal is not None else self.keys - 1
        self.seen = max(0, min(self.keys, last + 1))
        self.block_keys = min(self.p.keys, ceil_div(max(1, self.seen), self.p.depth_lanes) * self.p.depth_lanes)
        self.key_blocks = ceil_div(self.seen, self.block_keys)

    def _buffers(self) -> dict[str, int]:
        rows = self.a.rows
        return {
            "query": rows * self.depth,
            "context": rows * self.width,
            "rows": rows * 3,
            "scores": rows * self.block_keys,
        }

    def _row(self, row: list[Index], place: Index | int) -> list[Index]:
        return [Index.of(place) if i == self.a.row_loop else index for i, index in enumerate(row)]

    @contextmanager
    def _each_row(self) -> Iterator[Index]:
        """A loop over the rows."""
        row = Var(0, self.a.rows - 1, name="row")
        with nest.serial([row], self.evaluator):
            yield Index.of(row)

    def _task(self, row: list[Index], block: Index) -> None:
        """A head."""
        with self._each_row() as number:
            self._start(row, number)
        keys = Var(0, self.key_blocks - 1, name="keys")
        with nest.serial([keys], self.evaluator):
            base = Index(0, {keys: self.block_keys}) if self.key_blocks > 1 else Index()
            count = emit.smaller(emit.materialize(base * -1 + self.seen), self.block_keys)
            self._scores(row, base, count)
            with self._each_row() as number:
                self._weights(number, count)
            self._add_context(row, base, count)
        with self._each_row() as number:
            self._finish(row, number)

    def _start(self, row: list[Index], number: Index) -> None:
        """The query as the product takes it; the largest score, the total and the context of no key."""

        def query(start: Index, lanes: int) -> None:
            with self.evaluator.along(lanes) as lane:
                along = start + lane
                self._store(
                    "query", number * self.depth + along, self._operand(self.a.product, 0, [*self._row(row, number), Index(), along])
                )

        def context(start: Index, lanes: int) -> None:
            with self.evaluator.along(lanes) as lane:
                along = start + lane
                self._store("context", number * self.width + along, self._initial(self.a.context))

        self._along(self.depth, self.p.depth_lanes, query)
        self._along(self.width, self.p.width_lanes, context)
        for i, node in enumerate((self.a.largest, self.a.total)):
            self._store("rows", number * 3 + i, self._initial(node))

    # ---- a block of keys

    def _scores(self, row: list[Index], base: Index, count: ir.Value) -> None:
        """Scores of a block of keys, as many at a time as there are lanes, then one by one; what is left of the last vector is -inf."""
        lanes = self.p.depth_lanes
        whole = emit.arith("muli", emit.arith("divui", count, emit.index_constant(lanes)), emit.index_constant(lanes))
        several = Var(0, self.block_keys - lanes, step=lanes, name="k")
        with emit.for_loop(0, whole, lanes, several), self.evaluator.scope(), self._each_row() as number:
            self._some_scores(row, number, base, Index.of(several), lanes)
        if lanes == 1:
            return
        key = Var(0, self.block_keys - 1, name="k")
        with emit.for_loop(whole, count, 1, key), self.evaluator.scope(), self._each_row() as number:
            self._some_scores(row, number, base, Index.of(key), 1)
        end = emit.arith("muli", emit.arith("ceildivsi", count, emit.index_constant(lanes)), emit.index_constant(lanes))
        with emit.for_loop(count, end, 1, key), self.evaluator.scope(), self._each_row() as number:
            never = emit.number(float("-inf"), self.wide)
            self._store("scores", number * self.block_keys + key, never)

    def _some_scores(self, row: list[Index], number: Index, base: Index, start: Index, keys: int) -> None:
        """Scores of a query and one key, or as many keys as there are lanes."""
        lanes = self.p.depth_lanes
        step = Var(0, self.depth - lanes, step=lanes, name="d")
        with self.evaluator.along(lanes) as lane:
            zero = self._initial(self.a.product)
            with emit.for_loop(0, self.depth, lanes, step, [zero] * keys) as loop, self.evaluator.scope():
                along = Index.of(step) + lane
                query = self._load("query", number * self.depth + along)
                found = [self._operand(self.a.product, 1, [*row, base + start + i, along]) for i in range(keys)]
                emit.yield_values([emit.multiply_add(k, query, s) for k, s in zip(found, loop.inner_iter_args, strict=True)])
            sums = list(loop.results)
            product = vectors.pairwise(vectors.transpose(sums), _add) if keys > 1 else vectors.across_lanes(sums[0], _add)
        with self.evaluator.along(keys) as lane:
            point = [*self._row(row, number), base + start + lane]
            self.evaluator.remember(self.a.product, point, product)
            score = emit.broadcast(self.evaluator.at(self.a.scores, point), keys)
            self._store("scores", number * self.block_keys + start + lane, score)

    def _weights(self, number: Index, count: ir.Value) -> None:
        """Scores of a block become weights; the total takes them in."""
        lanes = self.p.depth_lanes
        place = number * self.block_keys
        before = self._load("rows", number * 3)
        key = Var(0, self.block_keys - lanes, step=lanes, name="k")
        with self.evaluator.along(lanes) as lane:
            along = Index.of(key) + lane
            with emit.for_loop(0, count, lanes, key, [emit.broadcast(before, lanes)]) as loop, self.evaluator.scope():
                emit.yield_values([larger(self._load("scores", place + along), loop.inner_iter_args[0])])
            largest = vectors.across_lanes(loop.results[0], larger)
            growth = self._weight(before, largest)
            with emit.for_loop(0, count, lanes, key, [emit.broadcast(emit.zero(self.wide), lanes)]) as loop, self.evaluator.scope():
                weight = self._weight(self._load("scores", place + along), emit.broadcast(largest, lanes))
                self._store("scores", place + along, weight)
                emit.yield_values([_add(loop.inner_iter_args[0], weight)])
            total = vectors.across_lanes(loop.results[0], _add)
        self._store("rows", number * 3, largest)
        self._store("rows", number * 3 + 1, emit.arith("addf", emit.arith("mulf", self._load("rows", number * 3 + 1), growth), total))
        self._store("rows", number * 3 + 2, growth)

    def _add_context(self, row: list[Index], base: Index, count: ir.Value) -> None:
        """Adds to the context what a block of keys gives: all rows for `width` vectors at a time, so that each value is read once."""
        rows, lanes = self.a.rows, self.p.width_lanes
        width = max(1, min(self.p.sums // rows, self.width // lanes))
        while self.width // lanes % width:
            width -= 1
        first = Var(0, self.width - width * lanes, step=width * lanes, name="e")
        with emit.for_loop(0, self.width, width * lanes, first), self.evaluator.along(lanes) as lane:
            starts = [Index.of(first) + lane + j * lanes for j in range(width)]
            places = [(Index(r), s) for r in range(rows) for s in starts]
            sums = []
            for r, s in places:
                growth = emit.broadcast(self._load("rows", r * 3 + 2), lanes)
                sums.append(emit.arith("mulf", self._load("context", r * self.width + s), growth))
            key = Var(0, self.block_keys - 1, name="k")
            with emit.for_loop(0, count, 1, key, sums) as loop, self.evaluator.scope():
                values = [self._operand(self.a.context, 1, [*row, base + key, s]) for s in starts]
                weights = [emit.broadcast(self._load("scores", Index(r * self.block_keys) + key), lanes) for r in range(rows)]
                pairs = [(w, v) for w in weights for v in values]
                emit.yield_values([emit.multiply_add(w, v, s) for (w, v), s in zip(pairs, loop.inner_iter_args, strict=True)])
            for (r, s), value in zip(places, loop.results, strict=True):
                self._store("context", r * self.width + s, value)

    def _finish(self, row: list[Index], number: Index) -> None:
        """Divides by the total and stores."""
        at = self._row(row, number)

        def store(start: Index, lanes: int) -> None:
            with self.evaluator.along(lanes) as lane:
                along = start + lane
                total, context = self._load("rows", number * 3 + 1), self._load("context", number * self.width + along)
                self.evaluator.store(self._result(at, along, context, total), self.output, self._place(at, along))

        self._along(self.width, self.p.width_lanes, store)


def _add(a: ir.Value, b: ir.Value) -> ir.Value:
    return emit.arith("addf", a, b)
