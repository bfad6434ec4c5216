"""The loop nests of the default strategy: outer loops in parallel, reductions of a row, inner loops with lanes (see `plan`)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.loops.plan import LoopParameters, NestPlan, Point
from relayc.pipelines.targets.cpu.strategies.loops.reduction import Reduction
from relayc.pipelines.targets.cpu.strategies.loops.transpose import Turned, emit_turned, smaller_tiles
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.te.read.graph import Node, nodes_of, sources
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.pipelines.tir.values.lanes import LaneCover, cover
from relayc.symbolic import Dim, Size, bounds, ceil_div, maximum, minimum, proves

Loops = dict[Var, Index]
"""Indices of loops of the output; other loops have one iteration."""
Parts = Mapping[Var, tuple[Index, Index]]
"""The start of a part of a loop, and its number of iterations."""

LANE_BLOCK = 1 << 13
"""Elements of the lane loop per iteration of a parallel loop, if their number is known only at run time."""


class Nest:
    """Emits one loop nest that writes one node to a flat buffer."""

    def __init__(self, plan: NestPlan, evaluator: Evaluator, parameters: LoopParameters, buffer: ir.Value) -> None:
        self.plan, self.evaluator, self.parameters, self.buffer = plan, evaluator, parameters, buffer
        self.unroll = parameters.unroll
        self.short_rows = False
        """Whether code is for rows of one masked vector at most."""

    def emit(self) -> None:
        loops = self.plan.rows if self.plan.reductions else self.plan.inner
        row = self._symbolic_row()
        if self.plan.turned is None and row is not None and self._lanes().masked:
            is_short = emit.below(Index(row - 1), self.plan.width)
            nest.when(is_short, self.evaluator, lambda: self._short(loops), lambda: self._parallel(loops))
            return
        if self.plan.turned is None:
            self._parallel(loops)
            return
        self._turned_where_large(self.plan.turned, smaller_tiles(self.plan.turned))

    def _turned_where_large(self, turned: Turned, smaller: list[Turned]) -> None:
        """Tiles if there are enough elements for one in both directions, otherwise smaller tiles, otherwise rows stored across."""
        loops = self.plan.inner
        lane_loop, turned_loop = loops[-1], loops[turned.position]

        def otherwise() -> None:
            if smaller:
                self._turned_where_large(smaller[0], smaller[1:])
                return
            self.unroll = 1
            self._parallel([*(loop for loop in loops[:-1] if loop is not turned_loop), lane_loop, turned_loop])
            self.unroll = self.parameters.unroll

        least = [(turned_loop.extent, turned.lanes * turned.across), (lane_loop.extent, turned.lanes * turned.along)]
        nest.at_least(least, self.evaluator, lambda: self._turned(turned), otherwise)

    @property
    def is_parallel(self) -> bool:
        """Whether the work is worth threads, or may be: then the running program decides."""
        return bounds(self.plan.work)[1] >= self.parameters.parallel_grain

    def _symbolic_row(self) -> Dim | None:
        """The elements of a row, if everything in it iterates over the same elements and their number is known only at run time."""
        plan = self.plan
        if not plan.lanes_along_reduction or len(plan.inner) > 1:
            return None
        extents = [loop.extent for loop in plan.inner]
        for reduction in plan.reductions:
            extents += [reduction.structured.extents[d] for d in reduction.structured.reduction_dims]
            if len(reduction.structured.reduction_dims) != 1:
                return None
        first = extents[0]
        return first if isinstance(first, Dim) and all(e == first for e in extents) else None

    def _short(self, loops: list[MergedLoop]) -> None:
        self.short_rows = True
        self._parallel(loops)
        self.short_rows = False

    def _parallel(self, loops: list[MergedLoop]) -> None:
        """Emits the outer loops, parallel if the work justifies it, with `_inside` within."""
        outer, last = (loops[:-1], loops[-1:]) if self.plan.lane_loop_is_outer else (loops, [])
        if not self.is_parallel:
            self._serial(outer, last, {})
            return
        if isinstance(self.plan.work, Dim):
            self._symbolic_tasks(outer, last)
            return
        taken = nest.leading([loop.extent for loop in outer], self.parameters.parallel_chunks)
        together, rest = outer[:taken], outer[taken:]
        if taken and (prod(loop.extent for loop in together) >= 4 or not last):
            variables = [Var.below(loop.extent, name="p") for loop in together]
            with nest.parallel(variables, self.evaluator):
                self._serial(rest, last, _point(together, variables))
        elif last:
            self._chunked(outer, last[0])
        else:
            self._serial(outer, last, {})

    def _symbolic_tasks(self, outer: list[MergedLoop], last: list[MergedLoop]) -> None:
        """One parallel loop where only the running program knows the extents: any of them may be the one with iterations enough.

        Over several loops its iterations are blocks of the innermost ones, as finding out where in the box one is takes divisions.
        """
        variables = [Var.below(loop.extent, name="p") for loop in outer]
        blocks: list[tuple[MergedLoop, Size, Var]] = []

        def cut(loop: MergedLoop, size: Size) -> Var:
            blocks.append((loop, size, Var.below(ceil_div(loop.extent, size), name="c")))
            return blocks[-1][2]

        if last and not self._is_checked(last[0]):
            extent, vector = last[0].extent, self.plan.width * self.parameters.unroll
            if not outer:
                variables.append(cut(last[0], maximum(vector, ceil_div(extent, self.parameters.parallel_chunks * vector) * vector)))
            elif not proves(lambda: extent <= LANE_BLOCK):
                variables.append(cut(last[0], LANE_BLOCK))
        if not variables:
            self._serial(outer, last, {})
            return
        whole = outer
        if len(variables) > 1:
            whole, row = outer[:-1], outer[-1]
            inside = self.plan.work // prod(loop.extent for loop in outer)
            variables[len(whole)] = cut(row, ceil_div(LANE_BLOCK, maximum(1, inside)))
        # Where one thread runs it after all, that costs 0.1 us: less than code for that alone is worth.
        with nest.parallel(variables, self.evaluator, self.plan.work, self.parameters.parallel_grain):
            parts = {}
            for loop, size, var in blocks:
                start = Index(0, {var: size})
                parts[loop.var] = start, emit.at_most(Index(loop.extent) - start, size)
            self._serial(outer[len(whole) :], last, _point(whole, variables[: len(whole)]), parts)

    def _is_checked(self, loop: MergedLoop) -> bool:
        return not self.plan.checked.isdisjoint(loop.members)

    def _turned(self, turned: Turned) -> None:
        """Tiles of the lanes' loop and the one that is turned against it; the last ones start early rather than ending early."""
        loops = self.plan.inner
        lane_loop, turned_loop = loops[-1], loops[turned.position]
        outer = [loop for i, loop in enumerate(loops[:-1]) if i != turned.position]
        across, along = turned.lanes * turned.across, turned.lanes * turned.along
        lane_tiles = ceil_div(lane_loop.extent, along)
        chunk = ceil_div(lane_tiles, ceil_div(lane_tiles, turned.chunk)) if isinstance(lane_tiles, int) else turned.chunk
        variables = [Var.below(loop.extent, name="p") for loop in outer]
        chunks, tile = Var.below(ceil_div(lane_tiles, chunk), name="c"), Var.below(ceil_div(turned_loop.extent, across), name="t")

        together, across_tiles = [*variables, chunks, tile], []
        if turned is not self.plan.turned and variables:
            # There is too little in a small tile for the divisions that find its place in the box of all.
            together, across_tiles = [*variables, chunks], [tile]
        with nest.tasks(together, self.evaluator, self.plan.work, self.parameters.parallel_grain):
            tiles: ir.Value | Size = chunk
            if isinstance(lane_tiles, Dim):
                tiles = emit.materialize(emit.at_most(Index(lane_tiles, {chunks: -chunk}), chunk))
            with nest.serial(across_tiles, self.evaluator), nest.loop(0, tiles, self.evaluator, below=chunk, name="l") as inner:
                point = _point(outer, variables)
                first = emit.at_most(Index(0, {tile: across}), turned_loop.extent - across)
                lanes = emit.at_most(Index(0, {chunks: chunk * along}) + inner * along, lane_loop.extent - along)
                with self.evaluator.scope():
                    assign = lambda at, lane: {**point, **turned_loop.at(at), **lane_loop.at(lane)}  # noqa: E731
                    emit_turned(turned, self.evaluator, first, lanes, assign, self._store)

    def _chunked(self, outer: list[MergedLoop], last: MergedLoop) -> None:
        """The lane loop itself cut in blocks that run in parallel; what is left over runs after them."""
        vector, extent = self.plan.width * self.parameters.unroll, last.extent
        block = ceil_div(extent, self.parameters.parallel_chunks * vector) * vector
        blocks = extent // block
        if self._is_checked(last) or blocks < 2:
            self._serial(outer, [last], {})
            return
        var = Var.below(blocks, name="p")
        with nest.parallel([var], self.evaluator):
            self._serial(outer, [last], {}, {last.var: (Index(0, {var: block}), Index(block))})
        if extent % block:
            self._serial(outer, [last], {}, {last.var: (Index(blocks * block), Index(extent % block))})

    def _serial(self, loops: list[MergedLoop], last: list[MergedLoop], point: Loops, parts: Parts | None = None) -> None:
        """Loops one within the other, of some of them a part."""
        parts = parts or {}
        with ExitStack() as stack:
            for loop in loops:
                start, count = parts.get(loop.var, (Index(), Index(loop.extent)))
                high = emit.materialize(count) if loop.var in parts else loop.extent
                at = stack.enter_context(nest.loop(0, high, self.evaluator, below=loop.extent, name="s"))
                point = {**point, **loop.at(start + at)}
            if last:
                self._lane_loop(last[0], point, self._inside, parts.get(last[0].var))
            else:
                self._inside([point])

    def _lane_loop(
        self, loop: MergedLoop, point: Loops, body: Callable[[list[Loops]], None], part: tuple[Index, Index] | None = None
    ) -> None:
        """A loop with lanes: whole vectors (several side by side), then the rest in shorter ones; padding checks only at the borders."""
        start, count = part or (Index(), Index(loop.extent))

        def block(first: Index, width: int, unroll: int, mask: ir.Value | None = None) -> None:
            with self.evaluator.along(width, mask) as lanes:
                body([{**point, **loop.at(start + first + k * width + lanes)} for k in range(unroll)])

        def some(first: Index, width: int, unroll: int, mask: ir.Value | None, values: list[ir.Value]) -> list[ir.Value]:
            block(first, width, unroll, mask)
            return values

        if not count.is_constant:
            cover(Index(), count, self._lanes_of(loop), self.evaluator, some)
            return
        extent = count.const
        low, high = self._unchecked_range(loop.var, extent)
        for begin, end, width in ((0, low, 1), (low, high, self.plan.width), (high, extent, 1)):
            if isinstance(begin, int) and isinstance(end, int):
                self._segment(begin, end, width, block)
            elif begin != end:
                cover(Index(begin), Index(end), LaneCover(1) if width == 1 else self._lanes_of(loop), self.evaluator, some)

    def _lanes_of(self, loop: MergedLoop) -> LaneCover:
        """How vectors cover a loop of symbolic extent: what is not stored side by side cannot be masked, and is stored one by one, of which
        more at a time are no faster: LLVM asks of each two what they have to do with each other."""
        store = self.plan.offset([Index.of(v) for v in self.plan.variables]).coefficient(loop.var)
        return self._lanes() if store == 1 else LaneCover(self.plan.width, 1)

    def _lanes(self) -> LaneCover:
        masks = self.parameters.mask_bits if self.plan.maskable and not self.plan.gathers_across else 0
        return LaneCover(self.plan.width, self.unroll, masks > 0, masks == 8, self.short_rows)

    def _unchecked_range(self, var: Var, extent: Size) -> tuple[Size, Size]:
        """Iterations of a loop, from the first to before the last, in which no padding is met."""
        low: Size = 0
        high = extent
        for index, limit in self.plan.accesses.bounds:
            c = index.coefficient(var)
            if c == 0:
                continue
            if not proves(lambda: c > 0):  # noqa: B023 (asked at once)
                return 0, 0
            rest_low, rest_high = (index - Index(0, {var: c})).bounds()
            low = maximum(low, -(rest_low // c))
            high = minimum(high, -((rest_high - limit) // c))
        low = minimum(low, extent)
        return low, maximum(low, high)

    def _segment(self, begin: int, end: int, width: int, block: Callable[[Index, int, int], None]) -> None:
        """`block(first, lanes, vectors)` for the elements from `begin` to `end`, in vectors of up to `width` lanes."""
        if end <= begin:
            return
        while end - begin < width:
            width //= 2
        unroll = min(self.unroll, (end - begin) // width) if width > 1 else 1
        step = width * unroll
        done = begin + (end - begin) // step * step
        if done - begin > step:
            with nest.loop(begin, done, self.evaluator, step=step, name="l") as first:
                block(first, width, unroll)
        else:
            with self.evaluator.scope():
                block(Index(begin), width, unroll)
        self._segment(done, end, width, block)

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
        # A short row stays in a register.
        stash, bound = None if self.short_rows else self.plan.stash, None
        for reduction in self.plan.reductions:
            if stash is not None and bound is None and stash in nodes_of(sources(reduction)):
                if self._symbolic_row() is not None and stash in reduction.structured.inputs:
                    # A masked load stalls on a recent store to the same memory: stored values are added up immediately.
                    self._reduce(reduction, [self._point(assigned)], self._storing(stash, reduction))
                    self.evaluator.bind(stash, self.buffer)
                    bound = stash
                    continue
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
            self._lane_loop(loop, assigned, body)
            return
        with nest.loop(0, loop.extent, self.evaluator, name="k") as var:
            self._inner_loops(rest, {**assigned, **loop.at(var)}, body)

    def _storing(self, stash: Node, reduction: Node) -> Callable[[Point], None]:
        """Returns a function that evaluates an input of a reduction at a point of the loops and stores its elements."""
        structured = reduction.structured
        amap = structured.maps[structured.inputs.index(stash)]

        def store(point: Point) -> None:
            at = self.evaluator.apply(amap, point)
            self.evaluator.store(self.evaluator.at(stash, at), self.buffer, self.plan.offset(at))

        return store

    def _reduce(self, node: Node, points: list[Point], visit: Callable[[Point], None] = lambda point: None) -> None:
        """Computes a reduction at the points where the output at `points` reads it, and remembers its values."""
        at = [found for p in points for found in self.plan.reduction_points(node, p)]
        unique = {tuple(i.key for i in p): p for p in at}
        if self.evaluator.width > 1 or not self.plan.lanes_along_reduction:
            found = Reduction(self.evaluator, node).across(list(unique.values()))
        else:
            found = [Reduction(self.evaluator, node, visit).along(p, self._lanes()) for p in unique.values()]
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


def _point(loops: Sequence[MergedLoop], variables: Sequence[Var]) -> Loops:
    """Indices of the members of loops, of each of which a variable counts the iterations."""
    return {v: i for loop, var in zip(loops, variables, strict=True) for v, i in loop.at(Index.of(var)).items()}
