"""The body of a block at a point: scalar operations, or vector operations if lanes run along an iterator."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import gcd
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, strides_of, weighted
from relayc.pipelines.tir.editing.intrinsics import Lines
from relayc.pipelines.tir.gpu.aligned import is_multiple
from relayc.pipelines.tir.gpu.swizzle import Swizzle
from relayc.pipelines.tir.lower.registers import Registers, Slot
from relayc.pipelines.tir.lower.steps import AccessOffset, LoweredStep, placed_steps
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.buffers import allocation_name
from relayc.pipelines.tir.tree.indices import Divided, Extremal, equal, largest, smallest, substitute
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.steps import COMMUTATIVE, Constant, combining_step, neutral
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, exact, proves


@dataclass
class Memory:
    """A buffer in memory.

    Attributes:
      buffer: flat.
      shape: of the stored region; lows: the index of its first element, over the loops around it.
      strides: of the dimensions, in elements; by default contiguous.
      offset: the position of the first element in `buffer`, over emitted values.
      version: incremented by each store, and at the start and end of loops that store: values loaded before are stale.
      lines: the permuted lines of the buffer, if any; strides are then the strides in a block of lines.
      swizzle: the permutation of its chunks, if any.
    """

    buffer: ir.Value
    shape: Sequence[Size]
    lows: Sequence[Index]
    strides: Sequence[Size] = ()
    offset: Index = field(default_factory=Index)
    version: int = 0
    lines: Lines | None = None
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        self.strides = self.strides or strides_of(self.shape)

    @property
    def size(self) -> Size:
        """Elements of the stored region, including padding."""
        if self.lines is not None:
            return self.lines.size
        return self.strides[0] * self.shape[0] if self.shape else 1


@dataclass
class File:
    """A buffer in registers: see Registers; `shape` and `lows` as in Memory.

    Attributes:
      around: the loops in each iteration of which it is created anew.
      memory: its home in memory, if it is in registers only while a loop runs.
      along: the vectorized loop whose iterations each have their own element; None otherwise.
    """

    registers: Registers
    shape: Sequence[Size]
    lows: Sequence[Index]
    around: Sequence[str]
    memory: Memory | None = None
    along: Var | None = None

    @property
    def strides(self) -> Sequence[Size]:
        return strides_of(self.shape) if self.memory is None else self.memory.strides

    def slot(self, start: int, width: int) -> Slot:
        """The slot of a vector of the loop `along`, or of one element: vectors of other widths use other slots."""
        assert self.along is not None
        return start + width * int(self.along.extent), width


Storage = Memory | File


@dataclass
class Lanes:
    """Lanes along a loop: the variable, the number of lanes, and the mask of active lanes (None: all)."""

    var: Var
    width: int
    mask: ir.Value | None = None


@dataclass(frozen=True)
class Shifted:
    """The value of a loop variable that is not an integer index while `unit` times it is."""

    base: Index
    unit: int


Point = Index | Shifted


@dataclass
class State:
    """The state of the emission.

    Attributes:
      point: the index of each loop variable of the source.
      run: a new object whenever a loop that is neither unrolled nor vectorized gets another value.
      lanes: of the enclosing vectorized loop; None outside.
      facts: guards that hold here: keys of indices with their limits.
      parts: for unrolled loops that are split into parts, by name: (start, lanes) of the values or vectors of the present part.
      mask: active lanes of these vectors (None: all).
    """

    point: dict[Var, Point]
    run: object = field(default_factory=object)
    lanes: Lanes | None = None
    facts: frozenset[tuple[Hashable, Size]] = frozenset()
    parts: Mapping[str, "Sequence[tuple[int | Index, int]]"] = field(default_factory=dict)
    mask: ir.Value | None = None

    def at(self, var: Var, value: Point, is_fixed: bool, lanes: Lanes | None = None) -> "State":
        """The state in which a loop variable has a value; `is_fixed` for an unrolled or vectorized loop."""
        run = self.run if is_fixed else object()
        return State({**self.point, var: value}, run, lanes or self.lanes, self.facts, self.parts, self.mask)


class Bodies:
    """Emits bodies of blocks. Values are shared within a scope: one basic block, and blocks that it dominates."""

    def __init__(self, storage: dict[ir.Value, Storage], evaluator: Evaluator | None = None) -> None:
        self.storage = storage
        self.evaluator = evaluator or Evaluator({})
        self.clipped: set[str] = set()
        """Names of blocks that run at all points: where guards exclude a point they load what the nearest included point does."""
        self.safe: set[str] = set()
        """Names of blocks that run at all points, and are safe there (see `run`): neighbouring elements share what they load."""
        self._lanes: dict[int, Lanes] = {}
        self._bases: dict[tuple[AccessOffset, object], Index] = {}
        self._programs: dict[tuple[str, bool], list[LoweredStep]] = {}
        self._held: list[Callable[[], None]] | None = None
        self._later: list[Callable[[], None]] | None = None

    def lanes_of(self, width: int) -> Lanes:
        """The lanes of vectors of a width. The object is cached, so that values computed for one vector are reused for another."""
        if width not in self._lanes:
            self._lanes[width] = Lanes(Var.below(width, name="lane"), width)
        return self._lanes[width]

    def along(self, lanes: Lanes | None) -> "_Along":
        """Context in which the evaluator reads and writes vectors along lanes."""
        return _Along(self.evaluator, lanes)

    # ---- indices

    def at(self, index: Index, point: Mapping[Var, Point]) -> Index:
        """An index of the source over emitted values; quotients and remainders that do not fold are emitted."""
        total = Index(index.const)
        for var, factor in index.terms.items():
            total += self._times(var, factor, point)
        return total

    def over(self, index: Index, point: Mapping[Var, Point]) -> Index:
        """An index whose variables that have values are replaced; emits nothing."""
        plain = {v: i for v, i in point.items() if isinstance(i, Index)}
        total = Index(index.const)
        for var, factor in index.terms.items():
            if isinstance(point.get(var), Shifted):
                total += self._times(var, factor, point)
            else:
                total += substitute(Index(0, {var: factor}), plain)
        return total

    def _times(self, var: Var, factor: Size, point: Mapping[Var, Point]) -> Index:
        if isinstance(var, Divided):
            return self.evaluator.divide(self.at(var.index, point), var.divisor, var.kind) * factor
        if isinstance(var, Extremal):
            a, b = self.at(var.a, point), self.at(var.b, point)
            found = smallest(a, b) if var.kind == "min" else largest(a, b)
            if any(isinstance(v, Extremal) for v in found.terms):
                found = self.evaluator.once((var.kind, a.key, b.key), lambda: self._extremal(var, a, b))
            return found * factor
        value = point[var]
        if isinstance(value, Index):
            return value * factor
        times = exact(factor, value.unit)
        assert times is not None  # see Guards.strip
        return value.base * times

    def _extremal(self, var: Extremal, a: Index, b: Index) -> Index:
        values = self._alike(self.evaluator.index_value(a), self.evaluator.index_value(b))
        return self.evaluator.opaque(emit.arith(f"{var.kind}si", *values), var.low, var.high, gcd(a.divisor, b.divisor) or 1)

    def _alike(self, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
        if emit.is_vector(a) or emit.is_vector(b):
            return emit.broadcast(a, self.evaluator.width), emit.broadcast(b, self.evaluator.width)
        return a, b

    # ---- memory

    def _offset(self, place: AccessOffset, state: State) -> tuple[Index, Size, int]:
        """The linear offset of an access in three parts: the part that depends on running loops, a constant, and the stride of a lane."""
        assert place.moving is not None
        key = place, state.run
        base = self._bases.get(key)
        if base is None:
            base = self._bases[key] = self.at(place.moving - place.moving.const, state.point)
        number, stride = place.moving.const, 0
        for var, factor in place.fixed:
            value = state.point[var]
            assert isinstance(value, Index)  # of a loop that is unrolled or vectorized
            number += value.const * factor
            for v, c in value.terms.items():
                if state.lanes is not None and v is state.lanes.var:
                    stride += factor
                else:  # of vectors that share one code
                    base += Index(0, {v: c * factor})
        return base, number, stride

    def _elements(self, place: AccessOffset, state: State, storage: File) -> tuple[int, int, int]:
        """The elements of a buffer in registers that an access covers: first element, count and stride."""
        if storage.along is not None:
            value = state.point[storage.along]
            assert isinstance(value, Index) and isinstance(value.const, int)  # of a vectorized loop
            return *storage.slot(value.const, self.evaluator.width if value.terms else 1), 1
        number: Size
        if place.moving is None:
            local = [self.over(i - low, state.point) for i, low in zip(place.indices, storage.lows, strict=True)]
            base, number, stride = weighted(local, strides_of(storage.shape)), 0, 0
        else:
            base, number, stride = self._offset(place, state)
        if storage.memory is not None and place.moving is not None:
            base = Index()  # loop-invariant
        if not base.is_constant or not isinstance(base.const, int) or not isinstance(number, int):
            name = allocation_name(place.access.buffer.owner.operation)
            raise ScheduleError(
                f"buffer {name} in registers: expected elements at numbers where what is unrolled and "
                f"vectorized has its values, found one at {list(place.indices)}"
            )
        return base.const + number, self.evaluator.width if stride else 1, stride

    def combination(self, use: Use) -> tuple[LoweredStep, AccessOffset] | None:
        """For a block that combines a value with one element by a commutative operation: the operation and the place of the element;
        otherwise None."""
        source = use.block.steps(False)
        stores = [s for s in source or () if s.name == "memref.store"]
        number = combining_step(source, stores[0]) if source is not None and len(stores) == 1 else None
        if source is None or number is None:
            return None
        steps = self.steps(use, False)
        place = steps[source.index(stores[0])].access
        assert place is not None  # it is a store
        return steps[number], place

    def base_of(self, place: AccessOffset, state: State) -> Index:
        """The part of the linear offset of an access that depends on running loops."""
        return self._offset(place, replace(state, point={**dict.fromkeys((var for var, _ in place.fixed), Index()), **state.point}))[0]

    def read_slot(self, memory: Memory, base: Index, slot: Slot) -> ir.Value:
        """Loads the elements of a slot from memory."""
        with self.along(self.lanes_of(slot[1])):
            return self.evaluator.load_from(memory.buffer, memory.buffer.type.element_type, self._slot_at(memory, base, slot))

    def write_slot(self, value: ir.Value, memory: Memory, base: Index, slot: Slot) -> None:
        """Stores a slot to its place in memory."""
        memory.version += 1
        with self.along(self.lanes_of(slot[1])):
            self.evaluator.store(value, memory.buffer, self._slot_at(memory, base, slot))

    def _slot_at(self, memory: Memory, base: Index, slot: Slot) -> Index:
        return self.placed(memory, base + slot[0] + self.evaluator.lane_index)

    def written_slots(self, use: Use, state: State) -> list[tuple[ir.Value, Slot]]:
        """The slots of registers that a block writes.

        Args:
          state: in which unrolled and vectorized loops have their values.
        """
        if use.tensor is not None:
            return use.tensor.written_slots(use, self, state)
        found = []
        for step in (*self.steps(use, True), *self.steps(use, False)):
            if step.name != "memref.store" or step.access is None:
                continue
            storage = self.storage[step.access.access.buffer]
            if isinstance(storage, File):
                with self.along(state.lanes):
                    first, lanes, stride = self._elements(step.access, state, storage)
                slots = [(first, lanes)] if stride in (0, 1) else [(first + i * stride, 1) for i in range(lanes)]
                found += [(step.access.access.buffer, slot) for slot in slots]
        return found

    def load(self, place: AccessOffset, state: State, safe: bool, point: Mapping[Var, Point]) -> ir.Value:
        """Loads an element, or a vector of elements, of a buffer. With `safe` an index out of bounds is clipped and gives any element.

        Args:
          point: the values of variables of indices: loops, and steps before.
        """
        source, evaluator = place.access.buffer, self.evaluator
        storage = self.storage[source]
        if isinstance(storage, File):
            return storage.registers.load(*self._elements(place, state, storage))
        if place.moving is not None and (not safe or evaluator.mask is not None):
            base, number, stride = self._offset(place, state)
            key: tuple[Hashable, ...] = (
                source,
                storage.version,
                base.key,
                number,
                stride,
                evaluator.width if stride else 1,
                evaluator.mask,
            )
            offset = lambda: base + number + Index(0, {evaluator.lane: stride}) if stride else base + number  # noqa: E731 (an argument)
        else:
            found = self._flat(place, point, storage, safe and evaluator.mask is None)
            key = (source, storage.version, found.key, evaluator.mask)
            offset = lambda: found  # noqa: E731 (an argument)
        load = lambda: evaluator.load_from(storage.buffer, storage.buffer.type.element_type, self.placed(storage, offset()))  # noqa: E731
        return self.evaluator.once((*key, storage.offset.key), load)

    def _flat(self, place: AccessOffset, point: Mapping[Var, Point], storage: Memory, clip: bool = False) -> Index:
        """The offset in the stored region of an access that is not linear in the loops; with `clip` each index is clipped to the region."""
        if place.flat is not None and not clip:
            return self.at(place.flat, point)
        indices = [self.at(i, point) for i in place.indices]
        local = [i - self.at(low, point) for i, low in zip(indices, storage.lows, strict=True)]
        kept = [self._clipped(i, extent) if clip else i for i, extent in zip(local, storage.shape, strict=True)]
        return weighted(kept, storage.strides)

    def placed(self, storage: Memory, offset: Index) -> Index:
        """The position in a buffer of an element at an offset in its stored region."""
        swizzle, evaluator = storage.swizzle, self.evaluator
        if swizzle is None:
            return offset + storage.offset
        start, stride = offset.without(evaluator.lane), offset.coefficient(evaluator.lane)
        is_run = stride == 0 or (stride == 1 and evaluator.width <= swizzle.chunk and is_multiple(start, evaluator.width))
        if not is_run or start.has_vector():
            start, stride = offset, 0
        assert isinstance(start.const, int)  # shared buffers have numbers as sizes
        whole = start.const // swizzle.period * swizzle.period
        step = evaluator.width if stride else 1

        def made() -> Index:
            return evaluator.opaque(swizzle.place(evaluator.index_value(start - whole)), step=step)

        found = evaluator.once(("swizzled", swizzle, (start - whole).key, step), made)
        return found + whole + Index(0, {evaluator.lane: stride} if stride else {}) + storage.offset

    def _clipped(self, index: Index, extent: Size) -> Index:
        """An index clipped to [0, extent)."""
        if index.is_within(0, extent - 1):
            return index
        if index.coefficient(self.evaluator.lane) != 0 or index.has_vector():
            value = self.evaluator.index_value(index)
            width = self.evaluator.width
            value = emit.arith("minsi", value, emit.broadcast(emit.index_constant(extent - 1), width))
            return self.evaluator.opaque(emit.arith("maxsi", value, emit.broadcast(emit.index_constant(0), width)), 0, extent - 1)
        return self.evaluator.once(("clipped", index.key, extent), lambda: self._clamped(index, extent))

    def _clamped(self, index: Index, extent: Size) -> Index:
        low, high = index.bounds()
        value = emit.materialize(index)
        if not proves(lambda: high < extent):
            value = emit.smaller(value, extent - 1)
        if not proves(lambda: low >= 0):
            value = emit.larger(value, 0)
        return self.evaluator.opaque(value, 0, extent - 1)

    def store(self, value: ir.Value, place: AccessOffset, state: State, point: Mapping[Var, Point]) -> None:
        storage, evaluator = self.storage[place.access.buffer], self.evaluator
        if isinstance(storage, File):
            first, lanes, stride = self._elements(place, state, storage)
            if lanes > 1 and evaluator.mask is not None:
                value = emit.select(evaluator.mask, emit.broadcast(value, lanes), storage.registers.load(first, lanes, stride))
            storage.registers.store(value, first, lanes, stride)
            return
        if place.moving is None:
            offset = self._flat(place, point, storage)
        else:
            base, number, stride = self._offset(place, state)
            offset = base + number + Index(0, {evaluator.lane: stride}) if stride else base + number
        at = self.placed(storage, offset)
        stored = partial(self._stored, value, storage, at, Lanes(evaluator.lane, evaluator.width, evaluator.mask))
        waiting = self._held if self._later is None else self._later
        if waiting is None:
            stored()
        else:
            waiting.append(stored)

    def _stored(self, value: ir.Value, storage: Memory, offset: Index, lanes: Lanes) -> None:
        storage.version += 1
        with self.along(lanes):
            if offset.has_vector() or (lanes.mask is not None and offset.coefficient(lanes.var) != 1):
                self._scatter(value, storage.buffer, offset)
            else:
                self.evaluator.store(value, storage.buffer, offset)

    @contextmanager
    def stores_last(self) -> Iterator[None]:
        """Context in which stores to memory are delayed until everything else is emitted: LLVM cannot move later loads before a store,
        because it does not know that they access different elements."""
        outer, self._held = self._held, []
        yield
        held, self._held = self._held, None
        for stored in held:
            stored()
        self._held = outer

    @contextmanager
    def stores_held(self) -> Iterator[list[Callable[[], None]]]:
        """Context in which stores to memory are not emitted: the caller emits them later."""
        outer, self._later = self._later, []
        yield self._later
        self._later = outer

    @contextmanager
    def stores_at_once(self) -> Iterator[None]:
        """Context, in a branch or a loop, in which stores are emitted immediately."""
        outer = self._held, self._later
        self._held = self._later = None
        yield
        self._held, self._later = outer

    def _scatter(self, value: ir.Value, buffer: ir.Value, offset: Index) -> None:
        """Stores the active lanes one by one."""
        evaluator, width = self.evaluator, self.evaluator.width
        value, places = emit.broadcast(value, width), emit.broadcast(evaluator.index_value(offset), width)
        for i in range(width):
            stored = lambda i=i: emit.create("memref.store", [], [vectors.extract(value, i), buffer, vectors.extract(places, i)])  # noqa: E731
            if evaluator.mask is None:
                stored()
            else:
                nest.when(vectors.extract(evaluator.mask, i), evaluator, stored)

    # ---- bodies

    def run(self, use: Use, state: State, is_init: bool, safe: bool) -> None:
        """Emits the init or the body of a block.

        Args:
          safe: whether it may run at points that a guard excludes: loads then give any element, and stores go to registers only.
        """
        _Body(self, state, safe or use.block.name in self.safe).run(self.steps(use, is_init))

    def steps(self, use: Use, is_init: bool) -> list[LoweredStep]:
        """The operations of the init or the body of a block, in order; empty if the block has no init."""
        key = use.block.name, is_init
        if key not in self._programs:
            if use.tensor is not None or (use.is_start and not is_init):
                return []
            kept = lambda buffer: (self.storage[buffer].strides, self.storage[buffer].lows)  # noqa: E731 (an argument)
            self._programs[key] = placed_steps(use, is_init, kept, use.block.name in self.clipped)
        return self._programs[key]


class _Along:
    """See Bodies.along."""

    def __init__(self, evaluator: Evaluator, lanes: Lanes | None) -> None:
        self.evaluator, self.lanes = evaluator, lanes

    def __enter__(self) -> None:
        e, lanes = self.evaluator, self.lanes
        self.saved = e.lane, e.width, e.mask
        if lanes is not None:
            e.lane, e.width, e.mask = lanes.var, lanes.width, lanes.mask

    def __exit__(self, *error: object) -> None:
        self.evaluator.lane, self.evaluator.width, self.evaluator.mask = self.saved


class _Body:
    """The body of a block at one point."""

    def __init__(self, bodies: Bodies, state: State, safe: bool) -> None:
        self.bodies, self.state, self.safe = bodies, state, safe
        self.values: list[Any] = []
        """Results of steps: True for a comparison that holds."""
        self.point: Mapping[Var, Point] = state.point
        """Loop variables, and variables for the results of steps."""
        self.evaluator = bodies.evaluator

    def run(self, steps: Sequence[LoweredStep]) -> None:
        self.steps = steps
        for step in steps:
            value = self._step(step)
            self.values.append(value)
            if step.var is not None:
                self.point = {**self.point, step.var: self.evaluator.opaque(value, -(1 << 40))}

    def _step(self, step: LoweredStep) -> ir.Value:
        if step.name == "memref.load":
            assert step.access is not None
            return self.bodies.load(step.access, self.state, self.safe, self.point)
        if step.name == "memref.store":
            self._store(step)
            return None
        if step.name == "arith.cmpi" and self._is_inside(step):
            return True
        if step.name in ("arith.select", "arith.andi"):
            held = [isinstance(v, int) and self.values[v] is True for v in step.operands[:2]]
            if held[0] or (held[1] and step.name == "arith.andi"):
                left = step.operands[1 if held[0] else 0]
                return self.values[left] if isinstance(left, int) else self.value(left)
        return self._made(step.name, step.type, [self.value(v) for v in step.operands], step.attributes, step.key)

    def _is_inside(self, step: LoweredStep) -> bool:
        """Whether a comparison of an index with a size, as padding is read, holds here."""
        index, limit = step.operands
        if not isinstance(index, Index) or not isinstance(limit, Index) or not limit.is_constant:
            return False
        return step.attributes == emit.predicate_of("arith.cmpi", "ult") and self.bodies.at(index, self.point).is_within(0, limit.const - 1)

    def _store(self, step: LoweredStep) -> None:
        place = step.access
        assert place is not None
        value = self.value(step.operands[0])
        if emit.is_vector(value) and not self._moves(place):
            value = self._across(step, place)
        self.bodies.store(value, place, self.state, self.point)

    def _moves(self, place: AccessOffset) -> bool:
        """Whether the accessed element differs between lanes."""
        storage = self.bodies.storage[place.access.buffer]
        if isinstance(storage, File) and storage.along is not None:
            return True
        if place.moving is not None:
            values = [self.state.point[var] for var, _ in place.fixed]
            return any(isinstance(v, Index) and v.terms for v in values)
        indices = [self.bodies.at(i, self.point) for i in (place.indices if place.flat is None else [place.flat])]
        return any(i.coefficient(self.evaluator.lane) != 0 or i.has_vector() for i in indices)

    def _across(self, step: LoweredStep, place: AccessOffset) -> ir.Value:
        """Combines the lanes that store to one element, with the operation by which the body combines a value with the element."""
        combine = self.steps[step.operands[0]]
        held = [i for i, v in enumerate(combine.operands) if self._is_load_of(v, place)]
        if len(held) != 1 or combine.name not in COMMUTATIVE:
            raise ScheduleError(f"vectorize: expected one operation that combines an element with another one, found {combine.name}")
        make = lambda a, b: emit.create(combine.name, [a.type], [a, b], combine.attributes)  # noqa: E731 (an argument)
        added = emit.broadcast(self.value(combine.operands[1 - held[0]]), self.evaluator.width)
        if self.evaluator.mask is not None:
            added = emit.select(self.evaluator.mask, added, emit.number(neutral(combine.name, combine.type), added.type))
        return make(self.value(combine.operands[held[0]]), vectors.across_halves(added, make))

    def _is_load_of(self, operand: Any, place: AccessOffset) -> bool:
        found = self.steps[operand].access if isinstance(operand, int) else None
        return found is not None and same_place(found, place)

    def value(self, operand: Any) -> ir.Value:
        """The value of an operand (see tir.tree.steps)."""
        if isinstance(operand, int):
            return emit.number(1, ir.IntegerType.get_signless(1)) if self.values[operand] is True else self.values[operand]
        if isinstance(operand, Constant):
            return emit.constant(operand.attribute, operand.type)
        index = self.bodies.at(operand, self.point)
        return self.evaluator.once(("value", index.key), lambda: self.evaluator.index_value(index))

    def _made(self, name: str, result: ir.Type, operands: list[ir.Value], attributes: dict[str, ir.Attribute], key: Hashable) -> ir.Value:
        """An operation on values, emitted once for the same operands."""
        make = lambda: self.evaluator.operation(name, result, operands, attributes)  # noqa: E731 (an argument)
        return self.evaluator.once((name, result, key, self.evaluator.width, *operands), make)


def same_place(a: AccessOffset, b: AccessOffset) -> bool:
    """Whether two accesses are of the same element."""
    return a.access.buffer == b.access.buffer and all(equal(i, j) for i, j in zip(a.indices, b.indices, strict=True))
