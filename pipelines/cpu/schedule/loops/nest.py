"""The loop nests of the default strategy: outer loops in parallel, reductions of a row, inner loops with lanes (see `plan`)."""

from collections.abc import Callable
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.loops.plan import LoopParameters, NestPlan, Point
from relayc.pipelines.cpu.schedule.loops.reduction import Reduction
from relayc.pipelines.cpu.schedule.loops.transpose import Turned, emit_turned
from relayc.pipelines.kernel.access import MergedLoop
from relayc.pipelines.kernel.graph import Node, sources
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit, nest
from relayc.pipelines.tir.evaluator import Evaluator
from relayc.symbolic import ceil_div

Loops = dict[Var, Index]
"""Indices of loops of the output; of others there is one iteration."""


class Nest:
    """Emits one loop nest that writes one node to a flat buffer."""

    def __init__(self, plan: NestPlan, evaluator: Evaluator, parameters: LoopParameters, buffer: ir.Value) -> None:
        self.plan, self.evaluator, self.parameters, self.buffer = plan, evaluator, parameters, buffer

    def emit(self) -> None:
        if self.plan.turned is not None:
            self._turned(self.plan.turned)
        else:
            self._parallel(self.plan.rows if self.plan.reductions else self.plan.inner)

    @property
    def is_parallel(self) -> bool:
        return self.plan.work >= self.parameters.parallel_grain

    def _parallel(self, loops: list[MergedLoop]) -> None:
        """Emits the outer loops, in parallel where the work is worth it, with `_inside` within."""
        outer, last = (loops[:-1], loops[-1:]) if self.plan.lane_loop_is_outer else (loops, [])
        if not self.is_parallel:
            self._serial(outer, last, {})
            return
        taken = nest.leading([loop.extent for loop in outer], self.parameters.parallel_chunks)
        together, rest = outer[:taken], outer[taken:]
        if taken and (prod(loop.extent for loop in together) >= 4 or not last):
            variables = [Var(0, loop.extent - 1, name="p") for loop in together]

            def body() -> None:
                point: Loops = {}
                for loop, var in zip(together, variables, strict=True):
                    point.update(loop.at(Index.of(var)))
                self._serial(rest, last, point)

            nest.parallel(variables, self.evaluator, body)
        elif last:
            self._chunked(outer, last[0])
        else:
            self._serial(outer, last, {})

    def _turned(self, turned: Turned) -> None:
        """Tiles of the lanes' loop and the one that is turned against it; the last ones start early rather than ending early."""
        loops = self.plan.inner
        lane_loop, turned_loop = loops[-1], loops[turned.position]
        outer = [loop for i, loop in enumerate(loops[:-1]) if i != turned.position]
        across, along = turned.lanes * turned.across, turned.lanes * turned.along
        lane_tiles = ceil_div(lane_loop.extent, along)
        chunk = ceil_div(lane_tiles, ceil_div(lane_tiles, turned.chunk))
        variables = [Var(0, loop.extent - 1, name="p") for loop in outer]
        chunks, tile = Var(0, ceil_div(lane_tiles, chunk) - 1, name="c"), Var(0, ceil_div(turned_loop.extent, across) - 1, name="t")
        inner = Var(0, chunk - 1, name="l")

        def block() -> None:
            point: Loops = {}
            for loop, var in zip(outer, variables, strict=True):
                point.update(loop.at(Index.of(var)))
            first = emit.at_most(Index(0, {tile: across}), turned_loop.extent - across)
            lanes = emit.at_most(Index(0, {chunks: chunk * along, inner: along}), lane_loop.extent - along)
            with self.evaluator.scope():
                assign = lambda at, lane: {**point, **turned_loop.at(at), **lane_loop.at(lane)}  # noqa: E731
                emit_turned(turned, self.evaluator, first, lanes, assign, self._store)

        def chunk_of_lanes() -> None:
            with nest.serial([inner], self.evaluator):
                block()

        nest.tasks([*variables, chunks, tile], self.evaluator, self.is_parallel, chunk_of_lanes)

    def _chunked(self, outer: list[MergedLoop], last: MergedLoop) -> None:
        """The lane loop itself cut in blocks that run in parallel; what is left over runs after them."""
        vector = self.plan.width * self.parameters.unroll
        block = max(vector, ceil_div(last.extent, self.parameters.parallel_chunks * vector) * vector)
        blocks = last.extent // block
        if blocks < 2 or not self.plan.checked.isdisjoint(last.members):
            self._serial(outer, [last], {})
            return
        var = Var(0, blocks - 1, name="p")
        whole, left = MergedLoop(last.members, block), MergedLoop(last.members, last.extent % block)
        nest.parallel([var], self.evaluator, lambda: self._serial(outer, [whole], {}, Index(0, {var: block})))
        if left.extent:
            self._serial(outer, [left], {}, Index(blocks * block))

    def _serial(self, loops: list[MergedLoop], last: list[MergedLoop], point: Loops, start: Index | None = None) -> None:
        variables = [Var(0, loop.extent - 1, name="s") for loop in loops]
        with nest.serial(variables, self.evaluator):
            for loop, var in zip(loops, variables, strict=True):
                point = {**point, **loop.at(Index.of(var))}
            if last:
                self._lane_loop(last[0], start or Index(), point, self._inside)
            else:
                self._inside([point])

    def _lane_loop(self, loop: MergedLoop, start: Index, point: Loops, body: Callable[[list[Loops]], None]) -> None:
        """A loop with lanes: whole vectors (several side by side), then the rest in shorter ones; padding checks only at the borders."""
        low, high = self._unchecked_range(loop.var, loop.extent)

        def block(first: Index, width: int, unroll: int) -> None:
            with self.evaluator.along(width) as lanes:
                body([{**point, **loop.at(start + first + k * width + lanes)} for k in range(unroll)])

        for begin, end, width in ((0, low, 1), (low, high, self.plan.width), (high, loop.extent, 1)):
            self._segment(begin, end, width, block)

    def _unchecked_range(self, var: Var, extent: int) -> tuple[int, int]:
        """Iterations of a loop, from the first to before the last, in which no padding is met."""
        low, high = 0, extent
        for index, limit in self.plan.accesses.bounds:
            c = index.coefficient(var)
            if c > 0:
                rest_low, rest_high = (index - Index(0, {var: c})).bounds()
                low = max(low, -(rest_low // c))
                high = min(high, -((rest_high - limit) // c))
            elif c < 0:
                return 0, 0
        low = min(low, extent)
        return low, max(low, high)

    def _segment(self, begin: int, end: int, width: int, block: Callable[[Index, int, int], None]) -> None:
        """`block(first, lanes, vectors)` for the elements from `begin` to `end`, in vectors of up to `width` lanes."""
        while width > 1 and end - begin < width:
            width //= 2
        if end <= begin:
            return
        unroll = max(1, min(self.parameters.unroll, (end - begin) // width)) if width > 1 else 1
        step = width * unroll
        done = begin + (end - begin) // step * step
        if done - begin > step:
            var = Var(begin, done - step, step=step if begin % step == 0 else 1, name="l")
            with emit.for_loop(begin, done, step, var), self.evaluator.scope():
                block(Index.of(var), width, unroll)
        else:
            with self.evaluator.scope():
                block(Index(begin), width, unroll)
        self._segment(done, end, width if width == 1 or end - done >= width else width // 2, block)

    # ---- inside the outer loops

    def _point(self, assigned: Loops) -> Point:
        return [assigned.get(v, Index()) for v in self.plan.variables]

    def _inside(self, assigned: list[Loops]) -> None:
        """Everything within the row loops: reductions of the row(s), then the inner loops or the store."""
        if not self.plan.reductions:
            self._store(assigned)
        elif self.plan.inner:
            for one in assigned:
                with self.evaluator.scope():
                    self._row(one)
        else:
            for reduction in self.plan.reductions:
                self._reduce(reduction, [self._point(a) for a in assigned])
            self._store(assigned)

    def _row(self, assigned: Loops) -> None:
        stash, bound = self.plan.stash, None
        for reduction in self.plan.reductions:
            if stash is not None and bound is None and _depends(reduction, stash):
                self._inner_loops(self.plan.inner, assigned, lambda points: self._write(stash, points))
                self.evaluator.bind(stash, self.buffer)
                bound = stash
            self._reduce(reduction, [self._point(assigned)])
        self._inner_loops(self.plan.inner, assigned, self._store)
        if bound is not None:
            del self.evaluator.buffers[bound]

    def _inner_loops(self, loops: list[MergedLoop], assigned: Loops, body: Callable[[list[Loops]], None]) -> None:
        row_lanes = self.evaluator.width > 1
        if not loops:
            body([assigned])
            return
        loop, *rest = loops
        if not rest and not row_lanes:
            self._lane_loop(loop, Index(), assigned, body)
            return
        var = Var(0, loop.extent - 1, name="k")
        with nest.serial([var], self.evaluator):
            self._inner_loops(rest, {**assigned, **loop.at(Index.of(var))}, body)

    def _reduce(self, node: Node, points: list[Point]) -> None:
        """Computes a reduction at the points where the output at `points` reads it, and remembers its values."""
        at = [found for p in points for found in self.plan.reduction_points(node, p)]
        unique = {tuple(i.key for i in p): p for p in at}
        if self.evaluator.width > 1 or not self.plan.lanes_along_reduction:
            found = Reduction(self.evaluator, node).across(list(unique.values()))
        else:
            found = [Reduction(self.evaluator, node).along(p, self.plan.width) for p in unique.values()]
        for point, values in zip(unique.values(), found, strict=True):
            for sibling in self.plan.siblings(node):
                self.evaluator.remember(sibling, point, values[sibling.position])

    def _store(self, assigned: list[Loops]) -> None:
        self._write(self.plan.node, assigned)

    def _write(self, node: Node, assigned: list[Loops]) -> None:
        points = [self._point(a) for a in assigned]
        values = [self.evaluator.at(node, p) for p in points]
        for point, value in zip(points, values, strict=True):
            self.evaluator.store(value, self.buffer, self.plan.offset(point))


def _depends(node: Node, wanted: Node) -> bool:
    return any(s is wanted or _depends(s, wanted) for s in sources(node))
