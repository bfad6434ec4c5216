"""Elementwise computations, reductions and what is made of them along rows (softmax, normalisations), by primitives.

The plan is that of the default strategy (see `loops.plan`): which loops are rows, which are merged, where the lanes run. What reads
whole rows is computed in them; all else is computed where it is read.

It is asked by name: its code is as fast as that of the default strategy (`bench gate loops rows`), but to schedule a kernel takes 1.8
times the time: loops and blocks are made, moved and looked at before anything is emitted.
"""

from collections.abc import Sequence
from functools import partial
from math import prod

from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import linearize
from relayc.pipelines.targets.cpu.strategies.loops.plan import LoopParameters, NestPlan, plan_nest
from relayc.pipelines.targets.cpu.strategies.loops.reduction import UNROLL_LIMIT, UNROLLED_LOADS
from relayc.pipelines.targets.cpu.strategies.loops.strategy import loop_parameters
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.tir.schedule.references import LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.schedule.written_strategy import schedule_built_in
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.pipelines.tir.tree.views import Block
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Dim, Size, bounds, ceil_div, guess

LANE_BLOCK = 1 << 13
"""Elements times operations of a task where the running program knows how many there are."""
VECTORS, ELEMENTS = 2, 16
"""What is enough side by side where the running program knows how many elements there are, and nothing is added up: vectors, and elements.
More of them store no faster, and the code for them comes on top of that for one vector and that for what is left over."""


def schedule_rows(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules kernels of elementwise operations and reductions along the same rows. None for others."""
    parameters = loop_parameters(kernel, target, tuning)
    if any(n.kind in ("concat", "pad", "table") or n.size == 0 for n in kernel.nodes()):
        return None
    plans = [plan_nest(node, kernel.args, parameters, partial(linearize, shape=node.shape)) for node in kernel.results]
    if any(plan.turned is not None or _has_split_lanes(plan) for plan in plans):
        return None
    kept = {*kernel.results, *(node for plan in plans for node in _inside(plan))}
    return schedule_built_in(partial(_write, plans, parameters), kernel, target, tuning, kept)


def _has_split_lanes(plan: NestPlan) -> bool:
    """Whether lanes run along several dimensions of what is computed before the result: its elements in a vector are no box."""
    inside = any(n.structured is not plan.node.operation for n in plan.reductions)
    return inside and plan.lane_loop_is_outer and bool(plan.rows) and len(plan.rows[-1].members) > 1


def _write(plans: Sequence[NestPlan], parameters: LoopParameters, s: Schedule) -> None:
    origins = s.nest.origins
    kept = {origins[node] for plan in plans for node in _inside(plan)}
    for block in s.nest.blocks().values():
        if block.name not in kept and not any(map(s.nest.is_output, block.outputs())):
            s.compute_inline(block.name)
    blocks = s.nest.blocks()
    for plan, output in zip(plans, s.nest.outputs, strict=True):
        (writer,) = s.nest.writers(output)
        inside = {origins[node] for node in _inside(plan)} - {writer.name}
        _Rows(s, plan, parameters, writer, [name for name in blocks if name in inside]).schedule()


def _inside(plan: NestPlan) -> list[Node]:
    """The tensors that are computed in the rows of a result."""
    return [node for node in (*plan.reductions, plan.stash) if node is not None]


class _Rows:
    """The nest of one result.

    Attributes:
      inside: blocks that are computed in its rows, in the order of the text.
    """

    def __init__(self, s: Schedule, plan: NestPlan, parameters: LoopParameters, writer: Block, inside: Sequence[str]) -> None:
        self.s, self.plan, self.parameters, self.writer, self.inside = s, plan, parameters, writer, inside
        self.tile = plan.width * parameters.unroll

    def schedule(self) -> None:
        s, plan = self.s, self.plan
        all_loops = s.get_loops(self.writer.name)
        node = plan.node
        dims = node.structured.output_dims(node.position) if self.writer.is_reduction else range(len(node.shape))
        loops = [all_loops[0 if d is None else d] for d in dims]  # of None there is one element
        steps = [all_loops[d] for d in node.structured.reduction_dims if self.writer.extents[d] != 1] if self.writer.is_reduction else []
        order = [loops[plan.variables.index(v)] for merged in (*plan.rows, *plan.inner) for v in merged.members]
        if [*order, *steps] != [loop for loop in all_loops if loop in order or loop in steps]:
            s.reorder(*order, *steps)
        rows, inner = ([self._merged(loops, loop) for loop in found] for found in (plan.rows, plan.inner))
        if plan.lane_loop_is_outer:
            self._lanes_outside(rows, inner, steps)
        else:
            self._lanes_inside(rows, inner, steps)

    def _merged(self, loops: Sequence[LoopRV], merged: MergedLoop) -> LoopRV:
        found = [loops[self.plan.variables.index(v)] for v in merged.members]
        return found[0] if len(found) == 1 else self.s.fuse(*found)

    def _lanes_outside(self, rows: list[LoopRV], inner: list[LoopRV], steps: list[LoopRV]) -> None:
        """Lanes along the last row, or of all loops where there are no reductions."""
        s, plan = self.s, self.plan
        outer = rows if plan.reductions else inner
        inside = inner if plan.reductions else []
        if not outer:
            return
        extents = [p.extent for p in (plan.rows if plan.reductions else plan.inner)]
        *first, last = outer
        together, chunk = self._together(extents)
        first = self._in_parallel(first, extents[:-1], together)
        tiles, lanes, width = first[-1:], last, self.tile
        if isinstance(extents[-1], Dim) and not plan.reductions:
            width = min(width, max(plan.width * VECTORS, ELEMENTS))
        if chunk:
            task, tile, lanes = s.split(last, [None, chunk // width, width])
            self._parallel(task)
            tiles = [task, tile]
        elif not isinstance(extents[-1], int) or extents[-1] > width:
            tile, lanes = s.split(last, [None, width])
            tiles = [tile]
        if inside or steps:
            s.reorder(*inside, *steps, lanes)
        for name in reversed(self.inside):
            made = s.compute_at(name, tiles[-1]) if tiles else s.get_loops(name)
            s.set_scope(name, 0, "local")
            along = self._steps(name)
            loops, steps_of = s.nest.loops(), {step.name for step in along}
            across = [loop for loop in made if loops[loop.name].extent != 1 and loop.name not in steps_of]
            if across and along:
                s.reorder(*along, *across)
            self._unroll(name, along)
            if across:
                s.vectorize(across[-1])
        s.vectorize(lanes)

    def _lanes_inside(self, rows: list[LoopRV], inner: list[LoopRV], steps: list[LoopRV]) -> None:
        """A row at a time: lanes along its reductions and along what is computed of them."""
        s, plan = self.s, self.plan
        extents = [p.extent for p in plan.rows]
        if bounds(plan.work)[1] >= self.parameters.parallel_grain:
            rows = self._in_parallel(rows, extents, self._leading(extents))
        for name in reversed(self.inside):
            if rows:
                s.compute_at(name, rows[-1])
            s.set_scope(name, 0, "local")
            block = s.nest.blocks()[name]
            if block.is_reduction:
                if plan.lanes_along_reduction:
                    self._lanes(self._joined(block, self._steps(name)))
                else:
                    self._unroll(name, self._steps(name))
            else:
                self._lanes([loop for loop in s.get_loops(name) if loop.name not in {row.name for row in rows}])
        if steps and plan.lanes_along_reduction:
            self._lanes(self._joined(self.writer, steps))
        elif inner:
            self._lanes(inner)

    def _unroll(self, name: str, steps: Sequence[LoopRV]) -> None:
        """Writes out the steps of a reduction where they are few."""
        extents = [self.s.nest.loops()[step.name].extent for step in steps]
        total = prod(extents)
        if isinstance(total, int) and total <= UNROLL_LIMIT and total * self._loads(name) <= UNROLLED_LOADS:
            for step in steps:
                self.s.unroll(step)

    def _loads(self, name: str) -> int:
        """Loads of a step of a reduction, in all vectors side by side; those that no vector load has the stride of count once per lane."""
        along = self.plan.accesses.strides(self.plan.rows[-1].var) if self.plan.rows else set()
        one = 1 if all(stride in (-1, 0, 1, 2) for stride in along) else self.plan.width
        return one * self.parameters.unroll * len(self.s.nest.blocks()[name].loads())

    def _lanes(self, loops: Sequence[LoopRV]) -> None:
        """Lanes along the last of some loops."""
        if not loops:
            return
        extent = self.s.nest.loops()[loops[-1].name].extent
        if isinstance(extent, int) and extent <= self.tile:
            self.s.vectorize(loops[-1])
        else:
            self.s.vectorize(self.s.split(loops[-1], [None, self.tile])[1])

    def _steps(self, name: str) -> list[LoopRV]:
        """The loops that a reduction runs along, without those of one step."""
        block = self.s.nest.blocks()[name]
        loops = self.s.nest.loops_around(block)
        points = block.points(loops)
        along = {v for i in block.reduction for v in points[i].terms}
        return [LoopRV(loop.name) for loop in loops if loop.var in along and loop.extent != 1]

    def _joined(self, block: Block, loops: list[LoopRV]) -> list[LoopRV]:
        """The loops of a reduction, of which the last ones are one where all that is read runs on from each into the next."""
        block = self.s.nest.blocks()[block.name]
        vars_ = [block.vars[i] for i in block.reduction if block.extents[i] != 1]
        if not loops or len(vars_) != len(loops):
            return loops
        offsets = [linearize(a.indices, self.s.nest.shape(a.buffer)) for a in block.loads() if a.buffer not in block.outputs()]
        first = len(loops) - 1
        while first and all(o.coefficient(vars_[first - 1]) == o.coefficient(vars_[first]) * vars_[first].extent for o in offsets):
            first -= 1
        if first == len(loops) - 1:
            return loops
        return [*loops[:first], self.s.fuse(*loops[first:])]

    def _in_parallel(self, loops: list[LoopRV], extents: Sequence[Size], count: int) -> list[LoopRV]:
        """Runs the first `count` loops in parallel; gives all loops.

        Where the running program knows the extents of several, its tasks are blocks of the last one: finding out which iteration one is
        takes divisions.
        """
        inside = guess(self.plan.work) // max(1, guess(prod(extents[:count]))) if count > 1 and isinstance(self.plan.work, Dim) else 0
        made = list(loops)
        if 0 < inside < LANE_BLOCK:
            made[count - 1 : count] = self.s.split(loops[count - 1], [None, ceil_div(LANE_BLOCK, inside)])
        for loop in made[:count]:
            self._parallel(loop)
        return made

    def _parallel(self, loop: LoopRV) -> None:
        self.s.parallel(loop)
        plan = self.plan
        if isinstance(plan.work, Dim):
            # Of points, to each of which there are several operations.
            points = plan.node.size + sum(prod(n.structured.extents) for n in plan.reductions)
            self.s.annotate(loop, "grain", max(1, self.parameters.parallel_grain * guess(points) // guess(plan.work)))

    def _leading(self, extents: Sequence[Size]) -> int:
        """How many of the outermost loops may run in parallel: where the running program knows the extents any may be the one with
        iterations enough."""
        return len(extents) if isinstance(self.plan.work, Dim) else nest.leading(extents, self.parameters.parallel_chunks)

    def _together(self, extents: Sequence[Size]) -> tuple[int, int]:
        """How many of the outer loops run in parallel, and elements of the last one that do (0: none)."""
        if bounds(self.plan.work)[1] < self.parameters.parallel_grain:
            return 0, 0
        *outer, last = extents
        count = self._leading(outer)
        if isinstance(self.plan.work, Dim):
            return (count, 0) if count else (0, 128 * self.tile)
        if (count and prod(outer[:count]) >= 4) or isinstance(last, Dim):
            return count, 0
        chunk = max(self.tile, ceil_div(last, self.parameters.parallel_chunks * self.tile) * self.tile)
        return (0, chunk) if last // chunk >= 2 else (0, 0)
