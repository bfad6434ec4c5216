"""The loops of a scheduled function in tir: serial and parallel ones, and what vectorized and unrolled ones become.

Guards: a serial loop ends where all that is in it ends; where only some iterations of what is unrolled or vectorized inside are excluded,
the iterations without a guard are a loop by themselves. What is left of a guard is a mask along lanes, a branch around stores to memory,
and nothing at all where only buffers of this thread are written: what is computed there is not used.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.blocks.indices import substitute, variables
from relayc.pipelines.blocks.lower.bodies import Bodies, File, Lanes, Memory, State
from relayc.pipelines.blocks.lower.registers import Slot
from relayc.pipelines.blocks.lower.storage import Use
from relayc.pipelines.blocks.structure import Guard, Loop, ScheduleError
from relayc.pipelines.kernel.index import Index, Var, linearize
from relayc.pipelines.tir import emit, nest, vectors
from relayc.symbolic import Dim, Size, ceil_div, proves

MOST_UNROLLED = 1 << 12
"""Points of blocks that one loop nest may be unrolled to: code beyond would not fit the instruction cache, nor compile in time."""


@dataclass(frozen=True)
class LoopNode:
    """A loop with what is in it, in order."""

    loop: Loop
    children: "tuple[Node, ...]"

    def uses(self) -> "Iterator[Use]":
        for child in self.children:
            if isinstance(child, LoopNode):
                yield from child.uses()
            else:
                yield child


Node: TypeAlias = LoopNode | Use


@dataclass(frozen=True)
class Init:
    """The init of a block, for which the loops that its reduction runs along are at their start."""

    use: Use
    skipped: frozenset[str]


class Emission:
    """Emits the loops of a function.

    Args:
      bodies: emits blocks.
      guards: of each block, by name.
      lanes: how many elements of a type a vector of the target has.
      begin: emits the buffers of a thread at the start of the body of a parallel loop, which it is given by name.
    """

    def __init__(
        self,
        bodies: Bodies,
        guards: Mapping[str, Sequence[Guard]],
        lanes: Callable[[ir.Type], int],
        begin: Callable[[str, State], None],
    ) -> None:
        self.bodies, self.guards, self.lanes, self.begin = bodies, guards, lanes, begin

    def emit(self, nodes: Sequence[Node], state: State, init: Init | None = None) -> None:
        for node in nodes:
            if not isinstance(node, LoopNode):
                self._block(node, state, init)
            elif init is None or any(use is init.use for use in node.uses()):
                self._loop(node, state, init)

    # ---- loops

    def _loop(self, node: LoopNode, state: State, init: Init | None) -> None:
        loop = node.loop
        if init is not None and loop.name in init.skipped:
            self.emit(node.children, self._at(state, loop, Index()), init)
            return
        if init is None:
            for use in node.uses():
                begins = _reduction_loops(use)
                if use.block.init is not None and begins and begins[0] == loop.name:
                    self._loop(node, state, Init(use, frozenset(begins)))
        if loop.extent == 1:
            self.emit(node.children, self._at(state, loop, Index()), init)
        elif loop.kind == Kind.UNROLLED:
            for value in range(_number(loop)):
                self.emit(node.children, self._at(state, loop, Index(value)), init)
        elif loop.kind == Kind.VECTORIZED:
            self._vectorized(node, state, init)
        elif loop.kind == Kind.PARALLEL:
            self._parallel(node, state, init)
        elif loop.kind == Kind.SERIAL:
            self._serial(node, state, init)
        else:
            raise ScheduleError(f"loop {loop.name}: expected a loop of the CPU, found one that is bound to {loop.kind}")

    @staticmethod
    def _at(state: State, loop: Loop, value: Index) -> State:
        return replace(state, point={**state.point, loop.var: value})

    def _vectorized(self, node: LoopNode, state: State, init: Init | None) -> None:
        if state.lanes is not None:
            raise ScheduleError(f"vectorize: expected one vectorized loop around a block, found {node.loop.name} inside of another one")
        for start, width in self._pieces(node):
            if width == 1:
                self.emit(node.children, self._at(state, node.loop, Index(start)), init)
                continue
            lanes = self.bodies.lanes_of(width)
            inner = self._at(state, node.loop, Index.of(lanes.var) + start)
            self.emit(node.children, replace(inner, lanes=lanes), init)

    def _pieces(self, node: LoopNode) -> list[tuple[int, int]]:
        """(start, lanes) of the vectors of a vectorized loop."""
        elements = [
            a.buffer.type.element_type
            for use in node.uses()
            for a in use.accesses
            if not isinstance(a.buffer.type.element_type, ir.IndexType)
        ]
        return vectors.pieces(_number(node.loop), min(map(self.lanes, elements), default=1))

    def _parallel(self, node: LoopNode, state: State, init: Init | None) -> None:
        chain = [node]
        while len(chain[-1].children) == 1 and isinstance(child := chain[-1].children[0], LoopNode) and child.loop.kind == Kind.PARALLEL:
            chain.append(child)
        made: dict[Var, Var] = {n.loop.var: Var(0, n.loop.extent - 1, name=n.loop.name) for n in chain if n.loop.extent != 1}
        inner = chain[-1]
        point: dict[Var, Index] = {n.loop.var: Index.of(made[n.loop.var]) if n.loop.var in made else Index() for n in chain}
        point = {**state.point, **point}
        inside = replace(state, point=point)

        def body() -> None:
            with self.bodies.scope(), self._isolated():
                self.begin(inner.loop.name, inside)
                self._guarded(chain[-1].loop, inner, inside, init)

        with self._versions(node):
            emit.parallel_loop(list(made.values()), body)

    def _guarded(self, loop: Loop, node: LoopNode, state: State, init: Init | None) -> None:
        """What is in a parallel loop: by a branch, where the last iterations have guards that the others have not."""
        full = self._full_iterations(node, state, init)
        value = state.point[loop.var]
        if full is None or value.is_constant:
            self.emit(node.children, state, init)
            return
        var = next(iter(value.terms))
        condition = emit.compare("slt", emit.materialize(value), emit.index_constant(full))
        first, last = Var(0, full - 1, var.value, name=var.name), Var(full, var.high, var.value, name=var.name)

        def branch(var: Var) -> None:
            with self.bodies.scope(), self._isolated():
                self.emit(node.children, self._at(state, loop, self._last(var)), init)

        nest.when(condition, self.bodies.evaluator, lambda: branch(first), lambda: branch(last))

    @staticmethod
    def _last(var: Var) -> Index:
        """A variable as an index: a number where it has one value."""
        return Index(var.low) if isinstance(var.low, int) and var.low == var.high else Index.of(var)

    def _serial(self, node: LoopNode, state: State, init: Init | None) -> None:
        loop, extent = node.loop, node.loop.extent
        end = self._end(node, state, init)
        if end is not None:
            index, fact = end
            self._run(node, replace(state, facts=state.facts | {fact}), init, 0, index, Var(0, extent - 1, name=loop.name))
            return
        full = self._full_iterations(node, state, init)
        if full is None:
            self._run(node, state, init, 0, Index(extent), Var(0, extent - 1, name=loop.name))
            return
        if not proves(lambda: full <= 0):
            self._run(node, state, init, 0, Index(full), Var(0, full - 1, name=loop.name))
        if isinstance(full, int) and isinstance(extent, int) and extent - full == 1:
            self.emit(node.children, self._at(state, loop, Index(full)), init)
        else:
            self._run(node, state, init, full, Index(extent), Var(full, extent - 1, name=loop.name))

    def _run(self, node: LoopNode, state: State, init: Init | None, low: Size, high: Index, var: Var) -> None:
        """A loop from one number to another; what it writes to registers it carries."""
        if high.is_constant and isinstance(low, int) and isinstance(high.const, int) and high.const - low <= 1:
            if high.const > low:
                self.emit(node.children, self._at(state, node.loop, Index(low)), init)
            return
        carried = self._carried(node, state, init)
        inits = [file.registers.value(slot) for file, slot in carried]
        with self._versions(node):
            with emit.for_loop(emit.index_constant(low), emit.materialize(high), 1, var, inits) as made, self.bodies.scope():
                self._set(carried, made.inner_iter_args if inits else [])
                self.emit(node.children, self._at(state, node.loop, Index.of(var)), init)
                if inits:
                    emit.yield_values([file.registers.value(slot) for file, slot in carried])
            self._set(carried, made.results)

    @staticmethod
    def _set(carried: Sequence[tuple[File, Slot]], values: Sequence[ir.Value]) -> None:
        for (file, slot), value in zip(carried, values, strict=True):
            file.registers.values[slot] = value

    def _carried(self, node: LoopNode, state: State, init: Init | None) -> list[tuple[File, Slot]]:
        """What is written to registers in a loop; each slot is prepared."""
        found: dict[ir.Value, dict[Slot, None]] = {}
        self._slots([node], {v: i for v, i in state.point.items() if i.is_constant or state.lanes is not None}, state.lanes, init, found)
        carried = []
        for buffer, slots in found.items():
            file = self.bodies.storage[buffer]
            assert isinstance(file, File)
            file.registers.prepare(slots)
            carried += [(file, slot) for slot in slots]
        return carried

    def _slots(
        self,
        nodes: Sequence[Node],
        point: dict[Var, Index],
        lanes: Lanes | None,
        init: Init | None,
        found: dict[ir.Value, dict[Slot, None]],
    ) -> None:
        """The slots that stores write, in order: what is unrolled and vectorized as it will be, other loops as variables, which cancel."""
        for node in nodes:
            if isinstance(node, LoopNode):
                if init is not None and not any(use is init.use for use in node.uses()):
                    continue
                if not any(isinstance(self.bodies.storage[a.buffer], File) for use in node.uses() for a in use.accesses if a.is_store):
                    continue
                var, kind = node.loop.var, node.loop.kind
                if node.loop.extent == 1 or (init is not None and node.loop.name in init.skipped):
                    self._slots(node.children, {**point, var: Index()}, lanes, init, found)
                elif kind == Kind.UNROLLED:
                    for value in range(_number(node.loop)):
                        self._slots(node.children, {**point, var: Index(value)}, lanes, init, found)
                elif kind == Kind.VECTORIZED:
                    for start, width in self._pieces(node):
                        inner = self.bodies.lanes_of(width) if width > 1 else None
                        at = Index.of(inner.var) + start if inner is not None else Index(start)
                        self._slots(node.children, {**point, var: at}, inner, init, found)
                else:
                    self._slots(node.children, point, lanes, init, found)
            elif init is None or node is init.use:
                self._stored(node, point, lanes, found)

    def _stored(self, use: Use, point: Mapping[Var, Index], lanes: Lanes | None, found: dict[ir.Value, dict[Slot, None]]) -> None:
        for access in use.accesses:
            file = self.bodies.storage[access.buffer]
            if not access.is_store or not isinstance(file, File):
                continue
            local = [substitute(i - low, point) for i, low in zip(use.indices(access), file.lows, strict=True)]
            offset = linearize(local, file.shape)
            moves = lanes is not None and offset.coefficient(lanes.var) != 0
            if lanes is not None and moves:
                offset -= Index(0, {lanes.var: 1})
            if not offset.is_constant or not isinstance(offset.const, int):
                raise ScheduleError(f"block {use.block.name}: expected an element of a buffer in registers at a number, found {offset}")
            found.setdefault(access.buffer, {})[offset.const, lanes.width if lanes is not None and moves else 1] = None

    @contextmanager
    def _isolated(self) -> Iterator[None]:
        """What is in registers inside is not so outside: of the body of a parallel loop, or of a branch that only stores to memory."""
        files = [s for s in self.bodies.storage.values() if isinstance(s, File)]
        before = [file.registers.snapshot() for file in files]
        yield
        for file, values in zip(files, before, strict=True):
            file.registers.values = values

    @contextmanager
    def _versions(self, node: LoopNode) -> Iterator[None]:
        """What is loaded from buffers that a loop stores to is another value in each iteration, and after it."""
        stored = {a.buffer for use in node.uses() for a in use.accesses if a.is_store}
        memories = [m for m in map(self.bodies.storage.__getitem__, stored) if isinstance(m, Memory)]
        for memory in memories:
            memory.version += 1
        yield
        for memory in memories:
            memory.version += 1

    # ---- guards

    def _guards_of(self, node: LoopNode, state: State, init: Init | None) -> list[tuple[Use, Index, Size, Var]]:
        """Guards in a loop that depend on its variable: over emitted variables and those of loops inside."""
        found: list[tuple[Use, Index, Size, Var]] = []
        for use in node.uses():
            if init is not None and use is not init.use:
                continue
            for guard in self.guards[use.block.name]:
                if guard.index.coefficient(node.loop.var) != 0:
                    point = {v: i for v, i in state.point.items() if v != node.loop.var}
                    if init is not None:
                        point |= {loop.var: Index() for loop in use.loops if loop.name in init.skipped and loop.var != node.loop.var}
                    found.append((use, substitute(guard.index, point), guard.limit, node.loop.var))
        return found

    def _end(self, node: LoopNode, state: State, init: Init | None) -> tuple[Index, tuple[Hashable, Size]] | None:
        """Where a loop may end early, with what is known inside then: where all blocks in it have the same guard, which no inner loop takes
        part in."""
        guards = self._guards_of(node, state, init)
        uses = [use for use in node.uses() if init is None or use is init.use]
        if not guards or {id(use) for use, *_ in guards} != {id(use) for use in uses}:
            return None
        _, index, limit, var = guards[0]
        outside = set(self._outside(state))
        if index.coefficient(var) != 1 or not (variables(index) - {var}) <= outside:
            return None
        if any(i.key != index.key or n != limit for _, i, n, _ in guards):
            return None
        rest = index - Index(0, {var: 1})
        low, _ = rest.bounds()
        if not proves(lambda: low >= 0):
            return None
        end = emit.at_most(Index(limit) - rest, node.loop.extent)
        return end, (index.key, limit)

    @staticmethod
    def _outside(state: State) -> Iterator[Var]:
        for index in state.point.values():
            yield from index.terms

    def _full_iterations(self, node: LoopNode, state: State, init: Init | None) -> Size | None:
        """How many iterations of a loop have no guard at all, however the loops inside stand; None where all have none, or it is not
        known."""
        counts: list[Size] = []
        for _, index, limit, var in self._guards_of(node, state, init):
            factor = index.coefficient(var)
            rest = index - Index(0, {var: factor})
            _, high = rest.bounds()
            if not proves(lambda: factor >= 1):  # noqa: B023
                continue
            if any(v in set(self._outside(state)) for v in variables(rest)):
                continue
            counts.append(0 if proves(lambda: limit <= high) else ceil_div(limit - high, factor))  # noqa: B023
        least = next((c for c in counts if all(proves(lambda: c <= other) for other in counts)), None)  # noqa: B023
        extent = node.loop.extent
        return None if least is None or proves(lambda: least >= extent) else least

    # ---- blocks

    def _block(self, use: Use, state: State, init: Init | None) -> None:
        block = use.block
        if init is not None and use is not init.use:
            return
        bodies = self.bodies
        with bodies.along(state.lanes):
            points = [bodies.at(p, state.point) for p in use.points]
            open_: list[tuple[Index, Size]] = []
            mask: ir.Value | None = None
            for guard in self.guards[block.name]:
                index = bodies.at(guard.index, state.point)
                low, high = index.bounds()
                if proves(lambda: high < guard.limit) or self._is_fact(guard, state):  # noqa: B023
                    continue
                if proves(lambda: low >= guard.limit):  # noqa: B023
                    return
                if state.lanes is not None and index.coefficient(state.lanes.var) != 0:
                    mask = self._mask(index, guard.limit, state.lanes, mask)
                else:
                    open_.append((index, guard.limit))
            if mask is not None:
                assert state.lanes is not None
                with bodies.along(replace(state.lanes, mask=mask)):
                    self._open(use, state, points, open_, init)
            else:
                self._open(use, state, points, open_, init)

    @staticmethod
    def _is_fact(guard: Guard, state: State) -> bool:
        point = {v: i for v, i in state.point.items()}
        keys = {key for key, limit in state.facts if limit == guard.limit}
        if not keys:
            return False
        return any(substitute(guard.index, {v: i for v, i in point.items() if v != var}).key in keys for var in guard.index.terms)

    def _mask(self, index: Index, limit: Size, lanes: Lanes, before: ir.Value | None) -> ir.Value:
        """The lanes at which an index is below a limit."""
        if index.coefficient(lanes.var) != 1:
            raise ScheduleError(f"vectorize: expected a guard that ends lanes one after the other, found {index} < {limit}")
        count = Index(limit) - (index - Index(0, {lanes.var: 1}))
        key = ("mask", count.key, lanes.width)
        made = self.bodies.once(key, lambda: emit.first_lanes(emit.materialize(count), lanes.width))
        return made if before is None else emit.arith("andi", before, made)

    def _open(self, use: Use, state: State, points: Sequence[Index], guards: Sequence[tuple[Index, Size]], init: Init | None) -> None:
        """A block at a point that guards may exclude."""
        safe = bool(guards) and self._is_local(use)
        if not guards or safe:
            self._run_block(use, state, points, init, safe)
            return
        conditions = [emit.compare("slt", self.bodies.evaluator.index_value(i), emit.index_constant(limit)) for i, limit in guards]
        condition = conditions[0]
        for other in conditions[1:]:
            condition = emit.arith("andi", condition, other)

        def then() -> None:
            with self.bodies.scope(), self._isolated():
                self._run_block(use, state, points, init, False)

        for access in use.accesses:
            storage = self.bodies.storage[access.buffer]
            if access.is_store and isinstance(storage, Memory):
                storage.version += 1
        nest.when(condition, self.bodies.evaluator, then)

    def _is_local(self, use: Use) -> bool:
        """Whether a block writes registers only: nobody sees what it computes where it should not."""
        return all(isinstance(self.bodies.storage[a.buffer], File) for a in use.accesses if a.is_store)

    def _run_block(self, use: Use, state: State, points: Sequence[Index], init: Init | None, safe: bool) -> None:
        bodies, block = self.bodies, use.block
        lows = {a.buffer: [bodies.at(low, state.point) for low in bodies.storage[a.buffer].lows] for a in use.accesses}
        if block.init is not None and (init is not None or not _reduction_loops(use)):
            bodies.run(block.init, dict(zip(block.init.arguments, points, strict=True)), lows, safe, False)
        if init is None:
            bodies.run(block.body, dict(zip(block.body.arguments, points, strict=True)), lows, safe, block.is_reduction)


def _reduction_loops(use: Use) -> list[str]:
    """Names of the loops that the reduction of a block runs along, outermost first."""
    found = set[Var]().union(*(variables(use.points[i]) for i in use.block.reduction))
    return [loop.name for loop in use.loops if loop.var in found]


def _number(loop: Loop) -> int:
    if isinstance(loop.extent, Dim):
        raise ScheduleError(f"loop {loop.name}: expected an extent that is a number where it is {loop.kind}, found {loop.extent}")
    if loop.extent > MOST_UNROLLED:
        raise ScheduleError(f"loop {loop.name}: expected at most {MOST_UNROLLED} iterations where it is {loop.kind}, found {loop.extent}")
    return loop.extent
