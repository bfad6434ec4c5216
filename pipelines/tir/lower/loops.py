"""The loops of a scheduled function in tir: serial and parallel loops, and the code of vectorized and unrolled ones.

Guards: a serial loop is clipped if all blocks in it end together; if a guard excludes only some iterations of inner unrolled or vectorized
loops, the iterations without guard become a separate loop. The remaining guards are those of blocks (see blocks.py).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import groupby
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.lower.blocks import BlockEmitter
from relayc.pipelines.tir.lower.bodies import Bodies, File, Memory, Point, Shifted, State
from relayc.pipelines.tir.lower.guards import Guards, Strip, holding
from relayc.pipelines.tir.lower.lane_sums import LaneSums, lanes_of_reduction
from relayc.pipelines.tir.lower.registers import Registers, Slot
from relayc.pipelines.tir.lower.steps import AccessOffset
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.tree import Init, LoopNode, Node, number_of
from relayc.pipelines.tir.tree.indices import equal, variables
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.lanes import LaneCover, cover
from relayc.symbolic import Dim, Size, proves

GRAIN = "grain"
"""Annotation of a parallel loop of symbolic extents: the number of block points, over all iterations, from which it runs on several
threads."""
MOST_SUMS = 32
"""Limit of the accumulators in memory that are kept in registers while a loop updates them: more would spill."""


class LoopEmitter(BlockEmitter):
    """Emits the loops of a function.

    Args:
      bodies: emits blocks.
      guards: of each block.
      target: gives the vector widths.
      begin: emits the buffers of a thread at the start of the body of a parallel loop, whose name it receives.
    """

    def __init__(
        self,
        bodies: Bodies,
        guards: Guards,
        target: Target,
        begin: Callable[[str, State], None],
    ) -> None:
        super().__init__(bodies, guards)
        self.target, self.begin = target, begin
        self._cut: dict[LoopNode, list[tuple[int, int]]] = {}
        self._sums: LaneSums | None = None
        """The reduction along lanes that is being emitted."""

    def emit(self, nodes: Sequence[Node], state: State, init: Init | None = None) -> None:
        for node in nodes:
            if not isinstance(node, LoopNode):
                self._block(node, state, init)
            elif init is None or any(use is init.use for use in node.uses):
                self._loop(node, state, init)

    # ---- loops

    def _loop(self, node: LoopNode, state: State, init: Init | None) -> None:
        loop = node.loop
        if init is not None and loop.name in init.skipped:
            self.emit(node.children, self._at(state, node, Index()), init)
            return
        if init is None:
            for use in node.begins:
                self._loop(node, state, Init(use, frozenset(use.reduction_loops)))
            may_be_lanes = node.reduces and loop.extent != 1 and state.lanes is None and not self._adds_to_lanes(node)
            lanes = lanes_of_reduction(node, self.bodies) if may_be_lanes else None
            if lanes is not None:
                self._guarded_sums(node, state, *lanes)
                return
        self._as_it_runs(node, state, init)

    @staticmethod
    def _is_elementwise(node: LoopNode) -> bool:
        """Whether a loop is vectorized and contains one block that is not a reduction."""
        if node.kind != Kind.VECTORIZED or len(node.children) != 1 or isinstance(use := node.children[0], LoopNode):
            return False
        return use.tensor is None and not use.block.has_init

    def _adds_to_lanes(self, node: LoopNode) -> bool:
        """Whether the blocks in a loop already accumulate into lanes."""
        files = (self.bodies.storage.get(a.buffer) for use in node.uses for a in use.accesses if a.is_store)
        return any(isinstance(f, File) and f.along is not None for f in files)

    def _guarded_sums(self, node: LoopNode, state: State, use: Use, var: Var) -> None:
        """A guarded reduction along lanes: the combined lanes are added to the element in memory where its guards hold."""
        bodies = self.bodies
        combination = bodies.combination(use)
        assert combination is not None  # it accumulates into lanes
        inner = {loop.var for loop in use.loops[[loop.name for loop in use.loops].index(node.loop.name) :]}
        outside = [g for g in self.guards.of(use) if variables(g.index).isdisjoint(inner) and not self.guards.is_fact(g, state)]
        found = [(g, bodies.at(g.index, state.point)) for g in outside]
        if not found or isinstance(bodies.storage[combination[1].access.buffer], File):
            self._lane_sums(node, state, use, var)
            return
        conditions = [emit.compare("slt", bodies.evaluator.index_value(i), emit.index_constant(g.limit)) for g, i in found]
        inside = replace(state, facts=state.facts | {holding(g) for g, _ in found})
        self._when(conditions, use, lambda: self._lane_sums(node, inside, use, var))

    def _lane_sums(self, node: LoopNode, state: State, use: Use, var: Var) -> None:
        """A reduction along vector lanes, which are combined after the loop."""
        sums = self._sums = LaneSums(use, var, self.bodies, state)
        self._as_it_runs(node, state, None)
        self._sums = None
        sums.finish()

    def _as_it_runs(self, node: LoopNode, state: State, init: Init | None) -> None:
        loop = node.loop
        if loop.extent == 1:
            self.emit(node.children, self._at(state, node, Index()), init)
        elif (strip := self._strip_of(node, state, init)) is not None:
            self._strip(node, state, *strip)
        elif node.kind in (Kind.UNROLLED, Kind.VECTORIZED):
            self._each(node, state, init)
        elif node.kind == Kind.PARALLEL:
            self._parallel(node, state, init)
        elif node.kind == Kind.SERIAL:
            self._serial(node, state, init)
        else:
            raise ScheduleError(f"loop {loop.name}: expected a loop of the CPU, found one that is bound to {node.kind}")

    def _each(self, node: LoopNode, state: State, init: Init | None) -> None:
        """Emits an unrolled or vectorized loop."""
        if node.kind == Kind.VECTORIZED and state.lanes is not None:
            raise ScheduleError(f"vectorize: expected one vectorized loop around a block, found {node.loop.name} inside of another one")
        # Vectorized iterations are independent: an iteration does not load elements that another one stores.
        for _, alike in groupby(self._written_out(node, state), key=lambda inner: inner.lanes and inner.lanes.width):
            with self.bodies.stores_last() if self._is_elementwise(node) else nullcontext():
                for inner in alike:
                    self.emit(node.children, inner, init)

    @staticmethod
    def _at(state: State, node: LoopNode, value: Index) -> State:
        """The state in which a loop has a value."""
        return state.at(node.loop.var, value, node.loop.extent != 1 and node.kind in (Kind.UNROLLED, Kind.VECTORIZED))

    def _written_out(self, node: LoopNode, state: State) -> Iterator[State]:
        """The states for the values of an unrolled loop, or for the vectors of a vectorized one."""
        parts = state.parts.get(node.loop.name)
        for start, width in self._pieces(node) if parts is None else parts:
            if width == 1:
                yield self._at(state, node, Index.of(start))
            else:
                lanes = self.bodies.lanes_of(width)
                masked = lanes if state.mask is None else replace(lanes, mask=state.mask)
                yield state.at(node.loop.var, Index.of(lanes.var) + start, True, masked)

    def _pieces(self, node: LoopNode) -> list[tuple[int, int]]:
        """(start, lanes) of the values of an unrolled loop, or of the vectors of a vectorized one."""
        if node not in self._cut:
            self._cut[node] = vectors.pieces(number_of(node.loop), 1 if node.kind == Kind.UNROLLED else self._width(node))
        return self._cut[node]

    def _width(self, node: LoopNode) -> int:
        """Lanes of the vectors in a loop: limited by its widest element type."""
        return min((self.target.lanes(a.buffer.type.element_type.width) for use in node.uses for a in use.accesses), default=1)

    def _parallel(self, node: LoopNode, state: State, init: Init | None) -> None:
        chain = [node]
        while len(chain[-1].children) == 1 and isinstance(child := chain[-1].children[0], LoopNode):
            if child.kind != Kind.PARALLEL and child.loop.extent != 1:
                break
            chain.append(child)
        made: dict[Var, Var] = {n.loop.var: Var.below(n.loop.extent, name=n.loop.name) for n in chain if n.loop.extent != 1}
        point: dict[Var, Point] = {n.loop.var: Index.of(made[n.loop.var]) if n.loop.var in made else Index() for n in chain}
        inside = replace(state, point={**state.point, **point}, run=object())
        with self._versions(node), nest.parallel(list(made.values()), self.bodies.evaluator, *self._work(node)), self._isolated():
            self.begin([n.loop.name for n in chain if n.loop.extent != 1][-1], inside)
            self._iteration(chain, inside, init)

    @staticmethod
    def _work(node: LoopNode) -> tuple[Size, int]:
        """The operations of all iterations of a parallel loop, and the threshold from which it runs in parallel, if it has the
        annotation."""
        if GRAIN not in node.loop.annotations:
            return 0, 0
        total: Size = 0
        for use in node.uses:
            position = [loop.name for loop in use.loops].index(node.loop.name)
            is_outermost = all(loop.extent == 1 for loop in use.loops[:position])
            total += prod(use.block.extents if is_outermost else [loop.extent for loop in use.loops[position:]])
        return total, ir.IntegerAttr(node.loop.annotations[GRAIN]).value

    def _iteration(self, chain: Sequence[LoopNode], state: State, init: Init | None) -> None:
        """One iteration of nested parallel loops: in a branch if the last iterations have guards."""
        node, *inner = chain
        value, full = state.point[node.loop.var], self.guards.full_iterations(node, state, init)

        def inside(state: State) -> None:
            if inner:
                self._iteration(inner, state, init)
            else:
                self.emit(node.children, state, init)

        if full is None or not isinstance(value, Index) or value.is_constant or (isinstance(full, Dim) and self._ends_inside(node)):
            inside(state)
            return
        var = next(iter(value.terms))
        first, last = Var.below(full, var.value, name=var.name), Var(full, var.high, var.value, name=var.name)

        def last_iterations() -> None:
            tail = self._tail(node, state, init)
            if tail is not None:
                self._versions_of_tail(tail, node, state, inside)
            else:
                inside(self._at(state, node, self._last(last)))

        condition = emit.compare("slt", emit.materialize(value), emit.index_constant(full))
        branches = [lambda: inside(self._at(state, node, Index.of(first))), last_iterations]
        nest.when(condition, self.bodies.evaluator, *[self._alone(branch) for branch in branches])

    def _ends_inside(self, node: LoopNode) -> bool:
        """Whether a guard of a parallel loop clips a loop inside it; the code of a tensor intrinsic has no such loop."""
        if any(guard.index.coefficient(node.loop.var) != 0 for use in node.uses if use.tensor is not None for guard in use.tensor.guards):
            return False
        guards = [guard for use in node.uses for guard in self.guards.of(use) if guard.index.coefficient(node.loop.var) != 0]
        serial = {loop.var for use in node.uses for loop in use.loops if loop.kind == Kind.SERIAL and loop.extent != 1}
        return all(not serial.isdisjoint(guard.index.terms) for guard in guards)

    @staticmethod
    def _last(var: Var) -> Index:
        """A variable as an index: a constant if it has only one value."""
        return Index(var.low) if isinstance(var.low, int) and var.low == var.high else Index.of(var)

    def _serial(self, node: LoopNode, state: State, init: Init | None) -> None:
        loop, extent = node.loop, node.loop.extent
        end = self.guards.end(node, state, init)
        if end is not None:
            index, fact = end
            self._run(node, replace(state, facts=state.facts | {fact}), init, 0, index, Var.below(extent, name=loop.name))
            return
        full = self.guards.full_iterations(node, state, init)
        if full is None:
            self._run(node, state, init, 0, Index(extent), Var.below(extent, name=loop.name))
            return
        self._run(node, state, init, 0, Index(full), Var.below(full, name=loop.name))
        tail = self._tail(node, state, init)
        if isinstance(full, int) and isinstance(extent, int) and extent - full == 1:
            self.emit(node.children, self._at(state, node, Index(full)), init)
        elif tail is not None:
            self._versions_of_tail(tail, node, state, lambda state: self.emit(node.children, state, init))
        else:
            self._run(node, state, init, full, Index(extent), Var(full, extent - 1, name=loop.name))

    # ---- vectors up to a bound known at run time

    def _strip_of(self, node: LoopNode, state: State, init: Init | None) -> tuple[Strip, LaneCover] | None:
        """The elements of vectorized loops that a guard bounds, and how vectors cover them; None without such a guard, or if a loop carries
        registers of fixed elements."""
        if init is not None or state.lanes is not None or node.kind not in (Kind.SERIAL, Kind.VECTORIZED):
            return None
        strip, width = self.guards.strip(node, state, Kind.VECTORIZED), self._width(node)
        if strip is None or width == 1 or strip.tile % width:
            return None
        if self._carried_files(node) and (self._sums is None or self.guards.strip(node, self._sums.state, Kind.VECTORIZED) is None):
            return None
        bits = self.target.mask_bits if self._may_be_masked(node) else 0
        return strip, LaneCover(width, strip.tile // width, bits > 0, bits == 8)

    def _carried_files(self, node: LoopNode) -> list[File]:
        """The buffers in registers that a loop writes and that live across its iterations."""
        stored = dict.fromkeys(a.buffer for use in node.uses for a in use.accesses if a.is_store)
        files = [f for f in map(self.bodies.storage.get, stored) if isinstance(f, File)]
        return [f for f in files if f.along is not None or node.kind == Kind.VECTORIZED or node.loop.name not in f.around]

    def _may_be_masked(self, node: LoopNode) -> bool:
        """Whether vectors in a loop can be masked: only for contiguous stores; for reductions that load at computed indices, masked vectors
        with idle lanes would not be faster."""
        for use in node.uses:
            for step in (s for which in (True, False) for s in self.bodies.steps(use, which)):
                place = step.access
                if place is None:
                    continue
                storage = self.bodies.storage[place.access.buffer]
                if place.access.buffer.type.element_type.width < self.target.mask_bits:
                    return False
                if step.type is None and isinstance(storage, Memory) and (place.moving is None or any(c != 1 for _, c in place.fixed)):
                    return False
                if step.type is not None and place.moving is None and use.block.is_reduction and self._sums is None:
                    return False
        return True

    def _strip(self, node: LoopNode, state: State, strip: Strip, lanes: LaneCover) -> None:
        """Emits full tiles, single vectors and the remainder."""
        tile, left, over_tiles = strip.tile, strip.left, node.kind == Kind.SERIAL
        state = replace(state, facts=state.facts | strip.known)
        inside: Callable[[State], None] = lambda state: self.emit(node.children, state) if over_tiles else self._each(node, state, None)  # noqa: E731
        if left.is_constant and isinstance(left.const, int):
            full = left.const // tile if over_tiles else 0
            self._run(node, state, None, 0, Index(full), Var.below(full, name=node.loop.name))
            if rest := vectors.pieces(left.const % tile, lanes.width):
                inside(self._part(strip, rest, self._at(state, node, Index(full)) if over_tiles else state))
            return
        sums = self._sums if self._carried_files(node) else None

        def block(first: Index, width: int, unroll: int, mask: ir.Value | None, values: list[ir.Value]) -> list[ir.Value]:
            at = Index() if over_tiles else first
            inner = replace(state, run=object(), mask=mask)
            if over_tiles:
                inner.point = {**state.point, node.loop.var: Shifted(first, tile)}
            slots = [(sums.file, sums.file.slot(k * width, width)) for k in range(unroll)] if sums else []
            self._set(slots, values)
            with self.bodies.evaluator.scope(), self._anew(node):
                inside(self._part(strip, [(at + k * width, width) for k in range(unroll)], inner))
            return [file.registers.value(slot) for file, slot in slots]

        left = emit.at_most(left, tile * (node.loop.extent if over_tiles else 1))
        with self._versions(node):
            if sums:
                sums.add(left, lanes, block)
            else:
                cover(Index(), left, lanes, self.bodies.evaluator, block)

    @staticmethod
    def _part(strip: Strip, parts: Sequence[tuple[int | Index, int]], state: State) -> State:
        """The state in which the vectorized loops of a strip have only these vectors."""
        return replace(state, parts={**state.parts, **dict.fromkeys(strip.loops, parts)})

    # ---- remainder after the last full tile of a symbolic extent

    def _tail(self, node: LoopNode, state: State, init: Init | None) -> Strip | None:
        """The strip of a loop over unrolled tiles whose remainder can be split into smaller tiles, each in a branch; None if registers
        would be carried out of a branch."""
        found = self.guards.strip(node, state, Kind.UNROLLED, init)
        has_symbols = found is not None and found.left.is_constant and isinstance(found.left.const, Dim)
        return found if has_symbols and not self._carried(node, state, init) else None

    def _versions_of_tail(self, tail: Strip, node: LoopNode, state: State, inside: Callable[[State], None]) -> None:
        """Emits tiles of half the height, a quarter, down to one, each under a branch on the corresponding bit of the remainder."""
        limit, full = tail.left.const, tail.left.const // tail.tile * tail.tile
        left, start = emit.index_constant(limit - full), emit.index_constant(full)
        rows = 1 << ((tail.tile - 1).bit_length() - 1)
        while rows:
            bit = emit.arith("andi", left, emit.index_constant(rows))
            first = Index.of(Var(0, limit - rows, start, name="row"))
            point: dict[Var, Point] = {**state.point, node.loop.var: Shifted(first, tail.tile)}
            inner = self._part(tail, vectors.pieces(rows, 1), replace(state, point=point, run=object()))
            nest.when(emit.compare("ne", bit, emit.index_constant(0)), self.bodies.evaluator, self._alone(lambda: inside(inner)))  # noqa: B023
            start = emit.arith("addi", start, bit)
            rows //= 2

    def _run(self, node: LoopNode, state: State, init: Init | None, low: Size, high: Index, var: Var) -> None:
        """Emits a loop from `low` to `high`; it carries the registers that it writes."""
        if high.is_constant and isinstance(low, int) and isinstance(high.const, int) and high.const - low <= 1:
            if high.const > low:
                self.emit(node.children, self._at(state, node, Index(low)), init)
            return
        with self._accumulators(node, state, init):
            self._emit_run(node, state, init, low, high, var)

    def _emit_run(self, node: LoopNode, state: State, init: Init | None, low: Size, high: Index, var: Var) -> None:
        carried = self._carried(node, state, init)
        inits = [file.registers.value(slot) for file, slot in carried]
        with self._versions(node):
            loop = emit.for_loop(emit.index_constant(low), emit.materialize(high), 1, var, inits)
            with self._anew(node), loop as made, self.bodies.evaluator.scope(), self.bodies.stores_at_once():
                self._set(carried, made.inner_iter_args if inits else [])
                inside = self._at(state, node, Index.of(var))
                if node.prefetch is not None and init is None:
                    node.prefetch.emit(node.loop, node.uses, self.bodies, inside)
                self._contents(node, inside, init)
                if inits:
                    emit.yield_values([file.registers.value(slot) for file, slot in carried])
            self._set(carried, made.results)

    def _contents(self, node: LoopNode, state: State, init: Init | None) -> None:
        """Emits the contents of a serial loop, in one iteration."""
        self.emit(node.children, state, init)

    @contextmanager
    def _accumulators(self, node: LoopNode, state: State, init: Init | None) -> Iterator[None]:
        """Context in which accumulators in memory are kept in registers while a loop runs, if it updates only a few and the same ones in
        each iteration."""
        bodies = self.bodies
        held = [] if init is not None else [f for use in node.uses if (f := self._sums_of(use, node, state)) is not None]
        files: list[tuple[ir.Value, File, Index]] = []
        for buffer, place in held:
            memory = bodies.storage[buffer]
            assert isinstance(memory, Memory)
            file = File(Registers(buffer.type.element_type), memory.shape, memory.lows, (), memory)
            bodies.storage[buffer] = file
            found: dict[ir.Value, dict[Slot, None]] = {}
            self._slots([node], state, init, found)
            if len(found[buffer]) > MOST_SUMS:
                bodies.storage[buffer] = memory
                continue
            base = bodies.base_of(place, state)
            for slot in found[buffer]:
                file.registers.values[slot] = bodies.read_slot(memory, base, slot)
            files.append((buffer, file, base))
        yield
        for buffer, file, base in files:
            assert file.memory is not None
            bodies.storage[buffer] = file.memory
            for slot, value in file.registers.values.items():
                bodies.write_slot(value, file.memory, base, slot)

    def _sums_of(self, use: Use, node: LoopNode, state: State) -> tuple[ir.Value, AccessOffset] | None:
        """The buffer of a reduction whose accumulators are the same in all iterations of a loop, and its place; None if they differ, a
        guard may exclude some, or another block in the loop uses the buffer."""
        if not use.block.is_reduction:
            return None
        inner = use.loops[[loop.name for loop in use.loops].index(node.loop.name) + 1 :]
        if any(loop.extent != 1 and loop.kind not in (Kind.UNROLLED, Kind.VECTORIZED) for loop in inner):
            return None
        stores = [s.access for s in self.bodies.steps(use, False) if s.name == "memref.store" and s.access is not None]
        if len(stores) != 1 or not isinstance(self.bodies.storage[stores[0].access.buffer], Memory):
            return None
        place, buffer = stores[0], stores[0].access.buffer
        others = [s.access for s in self.bodies.steps(use, False) if s.access is not None and s.access.access.buffer == buffer]
        if any(not equal(a, b) for other in others for a, b in zip(other.indices, place.indices, strict=True)):
            return None
        if any(a.buffer == buffer for other in node.uses if other is not use for a in other.accesses):
            return None
        if place.moving is None or place.moving.coefficient(node.loop.var) != 0:
            return None
        for guard in self.guards.of(use):
            _, high = self.bodies.over(guard.index, {v: i for v, i in state.point.items() if v != node.loop.var}).bounds()
            if not proves(lambda: high < guard.limit):  # noqa: B023
                return None
        return buffer, place

    @staticmethod
    def _set(carried: Sequence[tuple[File, Slot]], values: Sequence[ir.Value]) -> None:
        for (file, slot), value in zip(carried, values, strict=True):
            file.registers.values[slot] = value

    def _carried(self, node: LoopNode, state: State, init: Init | None) -> list[tuple[File, Slot]]:
        """The registers that a loop writes; each slot is prepared."""
        found: dict[ir.Value, dict[Slot, None]] = {}
        self._slots([node], state, init, found)
        carried = []
        for buffer, slots in found.items():
            file = self.bodies.storage[buffer]
            assert isinstance(file, File)
            if node.loop.name in file.around:
                continue  # a new buffer in each iteration
            file.registers.prepare(slots)
            carried += [(file, slot) for slot in slots]
        return carried

    def _slots(self, nodes: Sequence[Node], state: State, init: Init | None, found: dict[ir.Value, dict[Slot, None]]) -> None:
        """Collects the slots that stores write, in order, over all values of unrolled and vectorized loops; other loops write the same
        slots."""
        for node in nodes:
            if isinstance(node, LoopNode):
                if not any(self._writes_registers(use, init) for use in node.uses):
                    continue
                if node.loop.extent == 1 or (init is not None and node.loop.name in init.skipped):
                    self._slots(node.children, self._at(state, node, Index()), init, found)
                elif node.kind in (Kind.UNROLLED, Kind.VECTORIZED):
                    for inner in self._written_out(node, state):
                        self._slots(node.children, inner, init, found)
                else:
                    self._slots(node.children, state, init, found)
            elif self._writes_registers(node, init):
                for buffer, slot in self.bodies.written_slots(node, state):
                    found.setdefault(buffer, {})[slot] = None

    def _writes_registers(self, use: Use, init: Init | None) -> bool:
        return (init is None or use is init.use) and any(
            isinstance(self.bodies.storage.get(a.buffer), File) for a in use.accesses if a.is_store
        )

    @contextmanager
    def _anew(self, node: LoopNode) -> Iterator[None]:
        """Context in which register buffers local to an iteration of a loop start and end empty."""
        files = [s for s in self.bodies.storage.values() if isinstance(s, File) and node.loop.name in s.around]
        for file in files:
            file.registers.values = {}
        yield
        for file in files:
            file.registers.values = {}

    @contextmanager
    def _versions(self, node: LoopNode) -> Iterator[None]:
        """Context that invalidates values loaded from buffers that a loop stores to, in each iteration and after the loop."""
        stored = {a.buffer for use in node.uses for a in use.accesses if a.is_store}
        memories = [m for m in map(self.bodies.storage.get, stored) if isinstance(m, Memory)]
        for memory in memories:
            memory.version += 1
        yield
        for memory in memories:
            memory.version += 1
