"""The copy of a panel of B whose columns are apart in memory, while steps of the reduction are contiguous: blocks of steps and columns are
transposed in registers. Read column by column, a line of each column would have to stay in the cache until its next step is copied, and
columns at a distance of a power of two share a few sets of the cache."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import COLUMN, Columns, Point, Steps, element
from relayc.pipelines.targets.cpu.strategies.contraction.plan import has_contiguous_columns
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.te.read.graph import memory_of
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size


def contiguous_steps(contraction: Contraction, steps: Steps) -> list[Var]:
    """Reduction loops that run through B's memory as one loop, innermost first; none where columns are contiguous. A loop that `steps`
    bounds, or whose extent depends on the call, can only be the outermost."""
    c, offset, found = contraction, contraction.b.offset, list[Var]()
    if len(c.columns) != 1 or has_contiguous_columns(c) or memory_of(c.b.node) is None or c.b.node.element.width < 8:
        return found
    by_pitch = {p: v for v in c.reduction if v.extent != 1 and isinstance(p := offset.coefficient(v), int)}
    pitch = 1 if 1 in by_pitch else -1  # all loops may go backwards
    while (v := by_pitch.get(pitch)) is not None:
        found.append(v)
        if v in steps or not isinstance(v.extent, int):
            break
        pitch *= v.extent
    return found


@dataclass(frozen=True)
class PanelCopy:
    """Copies steps of a panel to a buffer, with `place_of(steps)` the position of a step, `run` the contiguous loops, the other loops being
    at `point`; `one(steps)` copies a single step."""

    c: Contraction
    run: Sequence[Var]
    lanes: int
    columns: Columns
    point: Point
    evaluator: Evaluator
    buffer: ir.Value

    def copy(
        self, bounds: tuple[ir.Value | Size, ir.Value | Size], place_of: Callable[[Point], Index], one: Callable[[Point], None]
    ) -> None:
        """Emits the loops over the steps, where the outermost contiguous loop goes from one bound to the other."""
        inner = prod(v.extent for v in self.run[:-1])
        several = partial(self._several, place_of)
        low, high = bounds
        if isinstance(low, int) and isinstance(high, int) and isinstance(inner, int):
            done, end = low * inner, high * inner
            while done < end:
                count = min(self.lanes, 1 << ((end - done).bit_length() - 1))
                after = end - (end - done) % count
                self._loop(done, after, count, several if count > 1 else lambda at, _: one(self._steps(at)))
                done = after
            return
        values = [b if isinstance(b, ir.Value) else emit.index_constant(b) for b in bounds]
        begin, last = (emit.arith("muli", b, emit.index_constant(inner)) for b in values)
        left = emit.arith("remui", emit.arith("subi", last, begin), emit.index_constant(self.lanes))
        whole = emit.arith("subi", last, left)
        self._loop(begin, whole, self.lanes, several)
        self._loop(whole, last, 1, lambda at, _: one(self._steps(at)))

    def _loop(self, low: ir.Value | Size, end: ir.Value | Size, count: int, code: Callable[[Index, int], None]) -> None:
        var = Var.below(prod(v.extent for v in self.run), step=count, name="k")
        with emit.for_loop(low, end, count, var), self.evaluator.scope():
            code(Index.of(var), count)

    def _steps(self, at: Index) -> Point:
        """The steps of the contiguous loops at a place of the memory that they run through."""
        found: Point = {}
        for v in self.run[:-1]:
            at, step = self.evaluator.quotient_and_rest(at, v.extent)
            found[v] = step
        return {**found, self.run[-1]: at}

    def _several(self, place_of: Callable[[Point], Index], at: Index, count: int) -> None:
        """The steps from a place on, of all columns: full vectors of columns in a loop."""
        places = [self.evaluator.opaque(emit.materialize(place_of(self._steps(at + k)))) for k in range(count)]
        whole = sum(lanes for _, lanes in self.columns if lanes == self.lanes)
        if whole > self.lanes:
            with nest.loop(0, whole, self.evaluator, step=self.lanes, name="columns") as first:
                self._block(at, places, first, self.lanes)
        for start, lanes in self.columns:
            if start >= whole or whole == self.lanes:
                self._block(at, places, Index(start), lanes)

    def _block(self, at: Index, places: Sequence[Index], first: Index, lanes: int) -> None:
        """The steps of `lanes` columns from `first` on, by square blocks."""
        size = min(lanes, len(places))
        start = dict.fromkeys(self.run, Index())
        for step in range(0, len(places), size):
            for column in range(0, lanes, size):
                with self.evaluator.along(size) as lane:
                    inner = {**self.point, **start, self.run[0]: at + step + lane}
                    columns = [self.c.column_point(self.point[COLUMN] + first + column + i) for i in range(size)]
                    rows = [element(self.c.b, {**inner, **point}, self.evaluator) for point in columns]
                    for place, row in zip(places[step:], vectors.transpose(rows) if size > 1 else rows, strict=False):
                        self.evaluator.store(row, self.buffer, place + first + column + lane)
