"""Blocks that copy from global to shared memory asynchronously, in vectors of 4, 8 or 16 bytes.

A copy may have predicates, as pad_einsum creates them. Where a predicate is false, the copy writes zeros; other numbers are stored. A
predicate has the same value for all elements of a vector.
"""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, weighted
from relayc.pipelines.tir.gpu.aligned import is_multiple
from relayc.pipelines.tir.gpu.copies import GLOBAL, SHARED, copy_asynchronously, pointer
from relayc.pipelines.tir.lower.bodies import Bodies, Memory, State
from relayc.pipelines.tir.lower.copied import Padding, read_copy
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute, together
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Size, proves

SIZES = (4, 8, 16)
"""Bytes of one copy."""
_WANTED = "expected a copy from global to shared memory, of what software_pipeline_async_stages names"


class AsynchronousCopy:
    """The copy that a block starts at each of its points.

    Raises ScheduleError if the block is not a copy.
    """

    def __init__(self, use: Use, bodies: Bodies) -> None:
        self.use, self.bodies = use, bodies
        found = read_copy(use, _WANTED, fills=True)
        self.size = found.source.type.element_type.width // 8
        self.target, self.source = self._place(found.target, found.at), self._place(found.source, found.indices)
        self.padding = [
            Padding(tuple(Guard(substitute(c.index, use.point), c.limit) for c in padding.conditions), padding.value)
            for padding in found.padding
        ]

    def _place(self, buffer: ir.Value, indices: tuple[Index, ...]) -> tuple[Memory, Index]:
        """The memory of a buffer, and the offset in its stored region over the loops."""
        storage = self.bodies.storage[buffer]
        if not isinstance(storage, Memory):
            raise ScheduleError(f"{self.use.block}: {_WANTED}, found one of a buffer in registers")
        local = [substitute(i, self.use.point) - low for i, low in zip(indices, storage.lows, strict=True)]
        return storage, together(weighted(local, storage.strides))

    def emit(self, state: State) -> None:
        """Starts the copy at a point, vectorized along lanes if there are some."""
        evaluator = self.bodies.evaluator
        if evaluator.mask is not None:
            raise ScheduleError(f"{self.use.block}: {_WANTED}, of whole vectors, found a guard along the lanes of one")
        width = 1 if state.lanes is None else state.lanes.width
        size = width * self.size
        if size not in SIZES:
            raise ScheduleError(f"{self.use.block}: {_WANTED}, of 4, 8 or 16 bytes at a time, found {size}: vectorize says how many")
        (to, at), (source, begin) = (self._start(*place, state, width) for place in (self.target, self.source))
        checks = []
        for padding in self.padding:
            conditions = []
            for condition in padding.conditions:
                first = self._first(self.bodies.at(condition.index, state.point), condition.limit, state, width)
                if not first.is_within(0, condition.limit - 1):
                    conditions.append(emit.compare("ult", emit.materialize(first), emit.index_constant(condition.limit)))
            if conditions:
                checks.append((emit.all_of(conditions), padding.value))

        def copy(there: ir.Value | None = None) -> None:
            copy_asynchronously(pointer(to, at, SHARED), pointer(source, begin, GLOBAL), size, there)

        def fill() -> None:
            element = to.type.element_type
            *outer, (_, inner) = checks
            value = emit.number(inner, element)
            for condition, other in reversed(outer):
                value = emit.select(condition, value, emit.number(other, element))
            evaluator.store(value, to, at + evaluator.lane_index)

        there = emit.all_of([condition for condition, _ in checks]) if checks else None
        if there is None or all(value == 0 for _, value in checks):
            copy(there)
        else:
            nest.when(there, evaluator, copy, fill)

    def _start(self, storage: Memory, offset: Index, state: State, width: int) -> tuple[ir.Value, Index]:
        """A buffer, and its element that the first lane accesses."""
        offset = self.bodies.placed(storage, self.bodies.at(offset, state.point))
        lane = self.bodies.evaluator.lane
        start = offset.without(lane)
        if width > 1 and (offset.coefficient(lane) != 1 or start.has_vector()):
            raise ScheduleError(f"{self.use.block}: {_WANTED}, of elements side by side, found lanes at {offset}")
        if not is_multiple(start, width):
            apart = ", ".join(map(str, storage.strides))
            raise ScheduleError(
                f"{self.use.block}: {_WANTED}, between multiples of {width} elements, found neighbours {apart} elements apart"
            )
        return storage.buffer, start

    def _first(self, index: Index, limit: Size, state: State, width: int) -> Index:
        """The index of the first lane, where the comparison with the limit has the same result for all lanes."""
        lane = None if state.lanes is None else state.lanes.var
        if lane is None or (index.coefficient(lane) == 0 and not index.has_vector()):
            return index
        start = index.without(lane)
        whole = is_multiple(start, width) and proves(lambda: limit % width == 0)
        if index.coefficient(lane) != 1 or start.has_vector() or not whole:
            raise ScheduleError(
                f"{self.use.block}: {_WANTED}, of {width} elements that are there or not, found them up to {limit} at {index}"
            )
        return start
