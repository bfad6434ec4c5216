"""decompose_reduction and rfactor: the init of a reduction, or its partial results, become a block of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import OPAQUE, PARALLEL, REDUCTION
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.dependence import Dependence, check_once, dependence
from relayc.pipelines.tir.analysis.elements import check_elements
from relayc.pipelines.tir.analysis.reducers import ReducedElement, Reducer, find_reducer
from relayc.pipelines.tir.editing.bodies import check_plain, point_at, take_init
from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute, variables
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError, blocks_of
from relayc.pipelines.tir.tree.steps import Copy, Recorder
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size


@primitive
def decompose_reduction(nest: Nest, block: str, loop: str) -> list[str]:
    """Moves the init of a block into a block NAME_init, right before a loop around it.

    The new block has its own loops, NAME_init, for the loops from `loop` inwards that determine the element. The block keeps its name.
    """
    found, top = find_block(nest, block), find_loop(nest, loop)
    described = dependence(found)
    if not found.has_init:
        raise ScheduleError(f"expected a reduction that has not been decomposed, found {found} without an init")
    depth = next((i for i, around in enumerate(described.loops) if around.name == loop), None)
    if depth is None:
        raise ScheduleError(f"expected one of the loops around {found}, {', '.join(a.name for a in described.loops)}, found {loop}")
    check_elements(found)
    check_once(described, described.loops[depth:])
    _check(nest, described, depth)
    kept = [a for a in described.loops[depth:] if described.kinds(a) - {REDUCTION}]
    made = nest.new_loops([(f"{a.name}_init", a.extent) for a in kept], found.operation.location)
    # The other loops are at their start in the init.
    point: dict[Var, Index] = {a.var: Index() for a in described.loops[depth:]}
    point |= {a.var: Index.of(b.var) for a, b in zip(kept, made, strict=True)}
    parallel = [i for i, kind in enumerate(found.iterators) if kind != REDUCTION]
    points = [substitute(found.points[i], point) for i in parallel]
    guards = [Guard(substitute(g.index, point), g.limit) for g in found.guards]
    start = take_init(nest, found, nest.free_block(f"{block}_init"), parallel)
    nest.insert(start, made, points, guards, top, behind=False)
    return [start.name]


def _check(nest: Nest, described: Dependence, depth: int) -> None:
    """Checks that the init may run before the loop at this depth, for all elements that the loop computes."""
    block, loops = described.block, described.loops
    for around in loops[:depth]:
        if described.has(REDUCTION, around):
            raise ScheduleError(
                f"expected a loop around all steps, found {loops[depth].name} inside of {around.name}, along which they run"
            )
    for inside in loops[depth:]:
        kinds = described.kinds(inside)
        if REDUCTION in kinds and len(kinds) > 1:
            raise ScheduleError(f"expected loops of elements or of steps, found {inside.name}, which is both")
    iterators = block.vars if block.init is None or not block.starts else block.iterators_in(block.init)
    indices = [index for b in blocks_of(block.starts) for index in (*b.points, *(g.index for g in b.guards))]
    for step in block.steps(True) or ():
        indices += [*(v for v in step.operands if isinstance(v, Index)), *(step.access.indices if step.access is not None else ())]
    used = {v for index in indices for v in variables(index)}
    if missing := [i for i in block.reduction if iterators[i] in used]:
        raise ScheduleError(f"expected an init that is the same at all steps, found one that depends on iterator {missing[0]}")
    reads = {a.buffer for a in block.accesses() if a.is_init and not a.is_store}
    for other in blocks_of([loops[depth]]):
        if other.name != block.name and (shared := reads & set(other.outputs())):
            where = nest.buffer_name(next(iter(shared)))
            raise ScheduleError(f"expected an init that {loops[depth].name} changes nothing of, found one of {where}, which {other} writes")
    for other in blocks_of([loops[depth]]):
        if other.name == block.name:
            break
        if set(block.outputs()) & {*other.inputs(), *other.outputs()}:
            raise ScheduleError(f"expected {block} to be the first that uses what it writes in {loops[depth].name}, found {other}")


@primitive
def rfactor(nest: Nest, loop: str, factor_axis: int) -> list[str]:
    """Factors the one reduction that runs along a loop: each iteration of the loop gets its own partial results.

    A block NAME_rf, in place of the block, stores them to buffers BUFFER_rf, with one more axis; the block NAME combines them afterwards,
    in its own loops.
    """
    return _Factoring(nest, find_loop(nest, loop), factor_axis).run()


@dataclass(frozen=True)
class _Partial:
    """The partial results of an element: the reduced element, its buffer `whole` and indices over the iterators, and name and shape of the
    buffer of the partial results."""

    part: ReducedElement
    whole: ir.Value
    indices: Sequence[Index]
    name: str
    shape: Sequence[Size]


class _Factoring:
    def __init__(self, nest: Nest, loop: Loop, axis: int) -> None:
        self.nest, self.loop = nest, loop
        blocks = blocks_of([loop])
        if len(blocks) != 1:
            raise ScheduleError(f"expected a loop around one block, found {' and '.join(map(str, blocks)) or 'none'}")
        self.block: Block = blocks[0]
        self.found: Dependence = dependence(self.block)
        self.loops = list(self.found.loops)
        self.points, self.guards = self.block.points, self.block.guards
        self.top = self._check()
        self.reducer: Reducer = find_reducer(self.block)
        self.partials = [self._partial(part, axis) for part in self.reducer.parts]

    def _check(self) -> int:
        """The depth of the outermost loop of the reduction."""
        block, loop = self.block, self.loop
        check_elements(block)
        check_plain(block)
        if OPAQUE in block.iterators or not block.has_init:
            raise ScheduleError(f"expected a reduction with an init, and no opaque iterators, found {block}")
        if self.found.kinds(loop) != {REDUCTION}:
            raise ScheduleError(f"expected a loop that a reduction runs along, and nothing else, found {loop.name}")
        top = next(i for i, a in enumerate(self.loops) if self.found.has(REDUCTION, a))
        for inside in self.loops[top:]:
            if len(self.found.kinds(inside)) > 1:
                raise ScheduleError(f"expected loops of elements or of steps, found {inside.name}, which is both")
            if not self.found.kinds(inside) and inside.extent != 1:
                raise ScheduleError(f"expected each loop to move {block}, found {inside.name}, which repeats it")
        check_once(self.found, self.loops[top:])
        others = [b for b in blocks_of([self.loops[top]]) if b.name != block.name]
        if others:
            raise ScheduleError(f"expected {block} alone in {self.loops[top].name}, found {others[0]}")
        return top

    def _partial(self, part: ReducedElement, axis: int) -> _Partial:
        store = self.reducer.steps[part.store].access
        assert store is not None
        shape = list(self.nest.shape(store.buffer))
        if not -len(shape) - 1 <= axis <= len(shape):
            raise ScheduleError(f"factor_axis: expected a number from {-len(shape) - 1} to {len(shape)}, found {axis}")
        self.axis = axis if axis >= 0 else axis + len(shape) + 1
        shape.insert(self.axis, self.loop.extent)
        name = self.nest.free_buffer(f"{self.nest.buffer_name(store.buffer)}_rf")
        return _Partial(part, store.buffer, store.indices, name, shape)

    def run(self) -> list[str]:
        nest, block = self.nest, self.block
        inner = [a for a in self.loops[self.top :] if self.found.has(PARALLEL, a)]
        name = nest.free_block(f"{block.name}_rf")
        first = nest.inside[0]
        with block.operation.location:
            buffers = [nest.add_buffer(p.name, p.shape, p.whole.type.element_type, before=first) for p in self.partials]
            made = nest.new_loops([(a.name, a.extent) for a in (*inner, self.loop)], block.operation.location)
            self._combine(inner, made, buffers)
            self._factor(name, buffers)
        return [name]

    # ---- the combining block

    def _combine(self, inner: Sequence[Loop], made: Sequence[Loop], buffers: Sequence[ir.Value]) -> None:
        """Adds the block that combines partial results, in the loops `made`."""
        block = self.block
        parallel = block.parallel
        # Where the block has no step there is no partial result: the first partial result is at the start of all other loops.
        point: dict[Var, Index] = {a.var: Index() for a in self.loops[self.top :]}
        point |= {a.var: Index.of(b.var) for a, b in zip((*inner, self.loop), made, strict=True)}
        guards = [Guard(substitute(g.index, point), g.limit) for g in self.guards]
        points = [*(substitute(self.points[i], point) for i in parallel), Index.of(made[-1].var)]
        kinds, extents = [PARALLEL] * len(parallel) + [REDUCTION], [*(block.extents[i] for i in parallel), self.loop.extent]

        def body(record: Recorder, at: Sequence[Index]) -> None:
            own = point_at(block.vars, parallel, at[:-1])
            places = [[substitute(i, own) for i in p.indices] for p in self.partials]
            elements = [record.load(p.whole, place) for p, place in zip(self.partials, places, strict=True)]
            values = [record.load(b, self._inserted(place, at[-1])) for b, place in zip(buffers, places, strict=True)]
            for p, place, value in zip(self.partials, places, self.reducer.combine(record, elements, values), strict=True):
                record.store(value, p.whole, place)

        def init(record: Recorder, at: Sequence[Index]) -> None:
            Copy(record, point_at(block.vars, parallel, at[:-1])).run(block.steps(True) or ())

        combining = self.nest.new_block(block.name, kinds, extents, body, init)
        self.nest.insert(combining, made, points, guards, self.loops[self.top], behind=True)

    # ---- the block of partial results

    def _factor(self, name: str, buffers: Sequence[ir.Value]) -> None:
        """Replaces the block by the block of partial results."""
        old = self.block
        # Iterators: parallel iterators, the loop, and a new step for each other loop that determines the same steps as the loop.
        mixed = [i for i in old.reduction if self.loop.var in variables(self.points[i])]
        kept = [i for i in range(len(old.iterators)) if i not in mixed]
        decided = {v for i in mixed for v in variables(self.points[i])}
        steps = [a for a in self.loops if a.var in decided and a.name != self.loop.name]
        kinds = [*(old.iterators[i] for i in kept), PARALLEL, *[REDUCTION] * len(steps)]
        extents = [*(old.extents[i] for i in kept), self.loop.extent, *(a.extent for a in steps)]
        factor = len(kept)
        redirected = {number: b for p, b in zip(self.partials, buffers, strict=True) for number in (p.part.load, p.part.store)}

        def body(record: Recorder, at: Sequence[Index]) -> None:
            inside: dict[Var, Index] = {a.var: v for a, v in zip((self.loop, *steps), at[factor:], strict=True)}
            copy = Copy(record, point_at(old.vars, kept, at[:factor]) | {old.vars[i]: substitute(self.points[i], inside) for i in mixed})
            for number, step in enumerate(self.reducer.steps):
                if step.access is None or number not in redirected:
                    copy.step(step)
                    continue
                buffer, place, found = redirected[number], self._inserted(copy.indices(step.access), at[factor]), None
                if step.access.is_store:
                    record.store(copy.operand(step.operands[0]), buffer, place)
                else:
                    found = record.load(buffer, place)
                copy.replace(step, found)

        def init(record: Recorder, at: Sequence[Index]) -> None:
            own = point_at(old.vars, kept, at[:factor])
            begins = self._begins(record, own)
            for p, buffer in zip(self.partials, buffers, strict=True):
                place = self._inserted([substitute(i, own) for i in p.indices], at[factor])
                record.store(p.part.identity() or begins[p.whole], buffer, place)

        made = self.nest.new_block(name, kinds, extents, body, init)
        self.nest.replace(old, made)
        made.place([*(self.points[i] for i in kept), *(Index.of(a.var) for a in (self.loop, *steps))], self.guards)
        old.operation.erase()

    def _inserted(self, indices: Sequence[Index], factor: Index) -> list[Index]:
        return [*indices[: self.axis], factor, *indices[self.axis :]]

    def _begins(self, record: Recorder, iterators: dict[Var, Index]) -> dict[ir.Value, Any]:
        """Records the initial values of selections (such as argmax), by buffers; a selection may start several times."""
        found: dict[ir.Value, Any] = {}
        copy = Copy(record, iterators)
        for step in self.block.steps(True) or () if not self.reducer.is_commutative else ():
            if step.access is not None and step.access.is_store:
                found[step.access.buffer] = copy.operand(step.operands[0])
                copy.replace(step, None)
            else:
                copy.step(step)
        return found
