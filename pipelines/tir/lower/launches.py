"""The code of a thread of a launch: the loops of a function that are not bound to axes, between barriers of the thread block.

Guards become branches, as far outside as all blocks inside share them and no barrier is inside. Registers written in a branch are its
results, so that nothing is computed where it is not used.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.editing.intrinsics import Asynchronous
from relayc.pipelines.tir.gpu import bulk_copies as bulk
from relayc.pipelines.tir.gpu.copies import commit_copies, wait_for_copies
from relayc.pipelines.tir.gpu.launch import barrier
from relayc.pipelines.tir.lower.asynchronous import AsynchronousCopy
from relayc.pipelines.tir.lower.barriers import Barriers
from relayc.pipelines.tir.lower.bodies import Bodies, File, Memory, State
from relayc.pipelines.tir.lower.box_rings import FREE, PHASE, TURN, BoxRing, following
from relayc.pipelines.tir.lower.boxes import BoxCopy
from relayc.pipelines.tir.lower.guards import Guards, holding
from relayc.pipelines.tir.lower.loops import LoopEmitter
from relayc.pipelines.tir.lower.pipelines import Pipelined, unfinished_in
from relayc.pipelines.tir.lower.registers import Registers, Slot
from relayc.pipelines.tir.lower.shared_steps import ThreadGroup
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.threads import Across
from relayc.pipelines.tir.lower.tree import Init, LoopNode, Node, loops_in, uses_in
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import variables
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.steps import neutral
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Size, proves

_Slots = dict[ir.Value, dict[Slot, None]]


class LaunchEmission(LoopEmitter):
    """Emits the code of a thread of a launch.

    Args:
      barriers: of the launch.
      threads: the thread block.
      private: buffers of which each thread has its own.
      boxes: the rings of loops with copies of boxes running ahead.
    """

    def __init__(
        self,
        bodies: Bodies,
        guards: Guards,
        target: Target,
        barriers: Barriers,
        threads: ThreadGroup,
        private: Collection[ir.Value],
        boxes: Mapping[Pipelined, BoxRing],
    ) -> None:
        super().__init__(bodies, guards, target, lambda name, state: None)
        self.barriers, self.threads, self.private, self.boxes = barriers, threads, private, boxes
        self.is_asynchronous = False
        self._started: dict[str, AsynchronousCopy] = {}
        """The copies by the names of their blocks."""
        self._rings: dict[Pipelined, File] = {}
        self._unfinished: list[Use] = []
        """Tensor intrinsics whose results are completed by the enclosing loop."""

    def emit(self, nodes: Sequence[Node], state: State, init: Init | None = None) -> None:
        left = [n for n in nodes if init is None or any(use is init.use for use in uses_in([n]))]
        while left:
            node = left[0]
            if init is None and self.barriers.stands_before(node):
                if self.boxes:
                    bulk.fence_memory()  # boxes may overwrite memory that threads wrote
                self._wait()
            common = self._common_guards(node, state, init)
            count = 1
            while count < len(left) and common and self._joins(left[count], common, state, init):
                count += 1
            group, left = left[:count], left[count:]
            self._emit_under(list(common.values()), group, state, init)

    def _wait(self) -> None:
        """Emits a barrier; values loaded before it are stale."""
        barrier()
        for storage in self.bodies.storage.values():
            if isinstance(storage, Memory):
                storage.version += 1

    def _joins(self, node: Node, common: dict[Hashable, Guard], state: State, init: Init | None) -> bool:
        """Whether a node belongs to the branch of the nodes before it."""
        if init is None and self.barriers.stands_before(node):
            return False
        return self._common_guards(node, state, init).keys() == common.keys()

    def _emit_under(self, guards: Sequence[Guard], nodes: Sequence[Node], state: State, init: Init | None) -> None:
        if not guards:
            super().emit(nodes, state, init)
            return
        inside = replace(state, facts=state.facts | {holding(guard) for guard in guards})
        conditions = [self._condition(guard, state) for guard in guards]
        self._branch(conditions, nodes, state, init, lambda: super(LaunchEmission, self).emit(nodes, inside, init))

    def _width(self, node: LoopNode) -> int:
        """Lanes limited by the widest element type in memory of the device: vectors in shared memory and registers may take several
        accesses."""
        memories = [self.bodies.storage[a.buffer] for use in node.uses for a in use.accesses]
        types = [m.buffer.type for m in memories if isinstance(m, Memory) and m.buffer.type.memory_space is None]
        return self.target.lanes(max(t.element_type.width for t in types)) if types else super()._width(node)

    def _condition(self, guard: Guard, state: State) -> ir.Value:
        return self._is_below(self.bodies.at(guard.index, state.point), guard.limit)

    def _is_below(self, index: Index, limit: Size) -> ir.Value:
        return emit.compare("slt", self.bodies.evaluator.index_value(index), emit.index_constant(limit))

    def _common_guards(self, node: Node, state: State, init: Init | None) -> dict[Hashable, Guard]:
        """The guards common to all blocks in a loop that are known at its start; none for a loop with barriers, or for a single block."""
        if state.lanes is not None or not isinstance(node, LoopNode) or self.barriers.stands_in(node):
            return {}
        known = {var for var, value in state.point.items() if isinstance(value, Index)}
        found: dict[Hashable, Guard] | None = None  # of the blocks visited so far
        for use in node.uses:
            if init is not None and use is not init.use:
                continue
            own: dict[Hashable, Guard] = {holding(g): g for g in self.guards.at_start(use, init) if self._is_open(g, known, state)}
            found = own if found is None else {key: g for key, g in found.items() if key in own}
        return found or {}

    def _is_open(self, guard: Guard, known: set[Var], state: State) -> bool:
        """Whether a guard depends only on known variables, and is not known to hold."""
        if not variables(guard.index) <= known or self.guards.is_fact(guard, state):
            return False
        _, high = self.bodies.over(guard.index, state.point).bounds()
        return not proves(lambda: high < guard.limit)

    # ---- branches

    def _branch(
        self, conditions: Sequence[ir.Value], nodes: Sequence[Node], state: State, init: Init | None, code: Callable[[], None]
    ) -> None:
        """Emits code for nodes under conditions. Registers that it writes keep their values where a condition is false."""
        found: _Slots = {}
        self._slots(nodes, state, init, found)
        carried: list[tuple[File, Slot]] = []
        for buffer, slots in found.items():
            file = self.bodies.storage[buffer]
            assert isinstance(file, File)
            file.registers.prepare(slots)
            carried += [(file, slot) for slot in slots]
        before = [file.registers.value(slot) for file, slot in carried]
        uses = uses_in(nodes)

        def inside() -> list[ir.Value]:
            with self.bodies.evaluator.scope(), self.bodies.stores_at_once():
                code()
            return [file.registers.value(slot) for file, slot in carried]

        for use in uses:
            self._changed(use)
        if carried:
            self._set(carried, nest.either(emit.all_of(conditions), self.bodies.evaluator, inside, before))
        else:
            nest.when(emit.all_of(conditions), self.bodies.evaluator, lambda: _ignored(inside()))
        for use in uses:
            self._changed(use)

    def _open(self, use: Use, state: State, guards: Sequence[tuple[Index, Size]], init: Init | None) -> None:
        if not guards:
            self._run_block(use, state, init, False)
            return
        conditions = [self._is_below(index, limit) for index, limit in guards]
        self._branch(conditions, [use], state, init, lambda: self._run_block(use, state, init, False))

    # ---- loops

    def _loop(self, node: LoopNode, state: State, init: Init | None) -> None:
        if not isinstance(node, Across):
            super()._loop(node, state, init)
        elif init is not None:
            self.emit(node.children, state, init)
        else:
            self._across(node, state)

    def _as_it_runs(self, node: LoopNode, state: State, init: Init | None) -> None:
        if isinstance(node, Pipelined) and init is None:
            if node in self.boxes:
                self._with_boxes(node, self.boxes[node], state)
            else:
                self._pipelined(node, state)
        else:
            super()._as_it_runs(node, state, init)

    def _serial(self, node: LoopNode, state: State, init: Init | None) -> None:
        if init is None and self.barriers.stands_in(node):
            self._run(node, state, init, 0, Index(node.loop.extent), Var.below(node.loop.extent, name=node.loop.name))
        else:
            super()._serial(node, state, init)

    # ---- software pipelined loops

    def _pipelined(self, node: Pipelined, state: State) -> None:
        for number in range(node.ahead):
            self._copy_ahead(node, state, Index(number), Index(number))
        index = ir.IndexType.get()
        self._rings[node] = File(Registers(index), [2], [Index()], ())
        self._rings[node].registers.values = {TURN: emit.index_constant(0), FREE: emit.index_constant(node.ahead)}
        self._run(node, state, None, 0, Index(node.loop.extent), Var.below(node.loop.extent, name=node.loop.name))
        if node.is_asynchronous:
            wait_for_copies(0)  # empty groups

    def _carried(self, node: LoopNode, state: State, init: Init | None) -> list[tuple[File, Slot]]:
        found = super()._carried(node, state, init)
        if init is not None:
            return found
        if node in self._rings:
            found += [(self._rings[node], slot) for slot in (TURN, FREE)]
        rings = [self.boxes[n] for n in loops_in([node], Pipelined) if n in self.boxes]
        return [*found, *((ring.places, slot) for ring in rings for slot in (TURN, FREE, PHASE))]

    def _contents(self, node: LoopNode, state: State, init: Init | None) -> None:
        if not isinstance(node, Pipelined) or init is not None:
            super()._contents(node, state, init)
            return
        if node in self.boxes:
            self._turn_of_boxes(node, self.boxes[node], state)
            return
        number, places = state.point[node.loop.var], self._rings[node].registers.values
        assert isinstance(number, Index)
        turn, free = (Index.of(Var(0, node.ahead, places[slot], name="turn")) for slot in (TURN, FREE))
        if node.is_asynchronous:
            wait_for_copies(node.ahead - 1)
        self._wait()
        if node.is_asynchronous:
            self._copy_ahead(node, state, number + node.ahead, free, (True,))
        # Copies through registers need no branch: after the last iteration they copy its elements again, to where nothing reads.
        with self.bodies.stores_held() as held:
            self._copies(node, state, emit.at_most(number + node.ahead, node.loop.extent - 1), free, (False,))
        with self._in_ring(node, turn):
            self.emit(node.rest, state)
        for stored in held:
            stored()
        places.update({FREE: places[TURN], TURN: following(places[TURN], node.ahead)})

    # ---- software pipelined copies of boxes

    def _with_boxes(self, node: Pipelined, ring: BoxRing, state: State) -> None:
        """A loop with copies of boxes running ahead. Tensor intrinsics started in an iteration complete during the next one; then the place
        that they read is free."""
        place = ring.now(TURN)
        for number in range(node.ahead):
            self._copy_ahead(node, state, Index(number), ring.place(place))
            place = following(place, node.ahead)
        before, self._unfinished = self._unfinished, unfinished_in(node)
        if node.loop.extent == 1:
            self._contents(node, self._at(state, node, Index()), None)
        else:
            self._run(node, state, None, 0, Index(node.loop.extent), Var.below(node.loop.extent, name=node.loop.name))
        self._finish(0)
        self._unfinished = before

    def _turn_of_boxes(self, node: Pipelined, ring: BoxRing, state: State) -> None:
        number = state.point[node.loop.var]
        assert isinstance(number, Index)
        ring.wait()
        with self._in_ring(node, ring.place(ring.now(TURN))):
            self.emit(node.rest, state)
        self._commit()
        self._finish(1)
        self._wait()
        self._copy_ahead(node, state, number + node.ahead, ring.place(ring.now(FREE)))
        ring.advance()

    def _commit(self) -> None:
        """Commits the group of operations started in an iteration."""
        for begun in self._kinds():
            begun.commit()

    def _finish(self, keep: int) -> None:
        """Waits for the operations started in a loop, except the last `keep` groups."""
        for begun in self._kinds():
            begun.wait(keep)

    def _kinds(self) -> list[Asynchronous]:
        found = (use.tensor.intrin.asynchronous for use in self._unfinished if use.tensor is not None)
        return list(dict.fromkeys(kind for kind in found if kind is not None))

    def _copy_ahead(self, node: Pipelined, state: State, number: Index, turn: Index, kinds: Sequence[bool] = (True, False)) -> None:
        """Emits copies for an iteration to a place in the ring, if the loop has an iteration of this number.

        Args:
          kinds: of the copies: whether they are asynchronous.
        """
        extent = node.loop.extent
        low, high = number.bounds()
        if proves(lambda: high < extent):
            self._copies(node, state, number, turn, kinds)
        elif not proves(lambda: low >= extent):
            value = emit.materialize(number)
            inside = Index.of(Var(low, extent - 1, value, name=node.loop.name))
            condition = emit.compare("slt", value, emit.index_constant(extent))
            nest.when(condition, self.bodies.evaluator, self._alone(lambda: self._copies(node, state, inside, turn, kinds)))
        if node.is_asynchronous:
            commit_copies()

    def _copies(self, node: Pipelined, state: State, number: Index, turn: Index, kinds: Sequence[bool]) -> None:
        inside = self._at(state, node, number)
        with self._in_ring(node, turn), self.bodies.evaluator.scope():
            if node in self.boxes:
                self.boxes[node].copy(inside, turn, lambda box: self._begin_of(box, inside))
                return
            for is_asynchronous in kinds:
                self.is_asynchronous = is_asynchronous
                self.emit(node.copies_by(is_asynchronous), inside)
        self.is_asynchronous = False

    @staticmethod
    def _begin_of(box: BoxCopy, state: State) -> State:
        """The state in which the loops of a copy of a box are at their start."""
        return replace(state, point={**state.point, **{loop.var: Index() for loop in box.loops}})

    @contextmanager
    def _in_ring(self, node: Pipelined, turn: Index) -> Iterator[None]:
        """Context in which the ring's buffers are the buffers at one place."""
        memories = [m for m in map(self.bodies.storage.get, node.buffers) if isinstance(m, Memory)]
        before = [memory.offset for memory in memories]
        for memory in memories:
            memory.offset += turn * memory.size
            memory.version += 1
        yield
        for memory, offset in zip(memories, before, strict=True):
            memory.offset = offset
            memory.version += 1

    def _run_block(self, use: Use, state: State, init: Init | None, safe: bool) -> None:
        if self.is_asynchronous:
            name = use.block.name
            if name not in self._started:
                self._started[name] = AsynchronousCopy(use, self.bodies)
            self._started[name].emit(state)
            return
        super()._run_block(use, state, init, safe)
        begun = use.tensor.intrin.asynchronous if use.tensor is not None and not use.is_start else None
        if begun is not None and not any(other is use for other in self._unfinished):
            begun.commit()
            begun.wait(0)

    # ---- reductions shared by threads

    def _across(self, node: Across, state: State) -> None:
        """Each thread reduces its own steps, then the threads combine their results; the element gets the total."""
        use, bodies = node.use, self.bodies
        combination = bodies.combination(use)
        if combination is None:
            raise ScheduleError(
                f"{use.block}: expected one element that is combined with a value where threads share the steps, found others"
            )
        operation, place = combination
        buffer = place.access.buffer
        storage = bodies.storage[buffer]
        if use.has_init:
            start = Init(use, frozenset(use.reduction_loops))
            if buffer in self.private:
                self.emit(node.children, state, start)
            else:
                self._by_first(node, use, lambda: self.emit(node.children, state, start))
        if isinstance(storage, Memory):
            if place.moving is None:
                raise ScheduleError(
                    f"{use.block}: expected an element at an index that is linear in the loops, found {list(place.indices)}"
                )
            file = File(Registers(buffer.type.element_type), storage.shape, storage.lows, (), storage)
            bodies.storage[buffer] = file
        else:
            file = storage
        found: _Slots = {}
        self._slots(node.children, state, None, found)
        slots = list(found[buffer])
        file.registers.prepare(slots)
        before = [file.registers.value(slot) for slot in slots]
        for slot in slots:
            file.registers.values[slot] = emit.number(neutral(operation.name, operation.type), file.registers.type_of(slot))
        self.emit(node.children, state)
        combine = lambda a, b: emit.create(operation.name, [a.type], [a, b], operation.attributes)  # noqa: E731 (an argument)
        values = [self.threads.reduced(file.registers.value(slot), node.axes, combine) for slot in slots]
        if isinstance(storage, File):
            for slot, value, old in zip(slots, values, before, strict=True):
                file.registers.values[slot] = combine(old, value)
            return
        bodies.storage[buffer] = storage

        def stored() -> None:
            base = bodies.base_of(place, state)
            for slot, value in zip(slots, values, strict=True):
                bodies.write_slot(combine(bodies.read_slot(storage, base, slot), value), storage, base, slot)

        if buffer in self.private:
            self._stored_where_open(use, state, stored)
        else:
            self._by_first(node, use, lambda: self._stored_where_open(use, state, stored))

    def _by_first(self, node: Across, use: Use, code: Callable[[], None]) -> None:
        """Emits code that only the first of the threads sharing a reduction runs."""
        zero = emit.index_constant(0)
        self._when([emit.compare("eq", self.threads.number(axis), zero) for axis in node.axes], use, code)

    def _stored_where_open(self, use: Use, state: State, code: Callable[[], None]) -> None:
        """Emits code under the guards of a block that do not depend on the steps of its reduction."""
        known = {var for var, value in state.point.items() if isinstance(value, Index)}
        start = Init(use, frozenset(use.reduction_loops))
        steps = {loop.var for loop in use.loops if loop.name in start.skipped}
        open_ = [g for g in self.guards.of(use) if self._is_open(g, known, state) and variables(g.index).isdisjoint(steps)]
        if not open_:
            code()
            return
        nest.when(emit.all_of([self._condition(g, state) for g in open_]), self.bodies.evaluator, code)


def _ignored(values: object) -> None:
    """The results of a branch that writes no registers."""
