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
from relayc.pipelines.tir.lower.copied import read_copy
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.indices import substitute, together
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Size, proves

SIZES = (4, 8, 16)
"""Bytes of one copy."""
_WANTED = "expected a copy from global to shared memory, of what software_pipeline_async_stages names"


def emit_copy(use: Use, bodies: Bodies, state: State) -> None:
    """Starts the copy of a block at a point, vectorized along lanes if there are some. Raises ScheduleError if the block is not a copy."""
    found = read_copy(use, _WANTED, fills=True)
    if bodies.evaluator.mask is not None:
        raise ScheduleError(f"{use.block}: {_WANTED}, of whole vectors, found a guard along the lanes of one")
    width = 1 if state.lanes is None else state.lanes.width
    size = width * found.source.type.element_type.width // 8
    if size not in SIZES:
        raise ScheduleError(f"{use.block}: {_WANTED}, of 4, 8 or 16 bytes at a time, found {size}: vectorize says how many")
    ends = [
        _start(use, bodies, state, buffer, indices, width) for buffer, indices in ((found.target, found.at), (found.source, found.indices))
    ]
    checks = []
    for padding in found.padding:
        conditions = []
        for condition in padding.conditions:
            first = _first(use, bodies.at(substitute(condition.index, use.point), state.point), condition.limit, state, width)
            if not first.is_within(0, condition.limit - 1):
                conditions.append(emit.compare("ult", emit.materialize(first), emit.index_constant(condition.limit)))
        if conditions:
            checks.append((emit.all_of(conditions), padding.value))
    (to, at), (source, begin) = ends

    def copy(there: ir.Value | None = None) -> None:
        copy_asynchronously(pointer(to, at, SHARED), pointer(source, begin, GLOBAL), size, there)

    def fill() -> None:
        element = to.type.element_type
        *outer, (_, inner) = checks
        value = emit.number(inner, element)
        for condition, other in reversed(outer):
            value = emit.select(condition, value, emit.number(other, element))
        bodies.evaluator.store(value, to, at + bodies.evaluator.lane_index)

    there = emit.all_of([condition for condition, _ in checks]) if checks else None
    if there is None or all(value == 0 for _, value in checks):
        copy(there)
    else:
        nest.when(there, bodies.evaluator, copy, fill)


def _start(use: Use, bodies: Bodies, state: State, buffer: ir.Value, indices: tuple[Index, ...], width: int) -> tuple[ir.Value, Index]:
    """The memory of a buffer, and the element that the first lane accesses."""
    storage = bodies.storage[buffer]
    if not isinstance(storage, Memory):
        raise ScheduleError(f"{use.block}: {_WANTED}, found one of a buffer in registers")
    local = [substitute(i, use.point) - low for i, low in zip(indices, storage.lows, strict=True)]
    offset = bodies.placed(storage, bodies.at(together(weighted(local, storage.strides)), state.point))
    lane = bodies.evaluator.lane
    start = offset.without(lane)
    if width > 1 and (offset.coefficient(lane) != 1 or start.has_vector()):
        raise ScheduleError(f"{use.block}: {_WANTED}, of elements side by side, found lanes at {offset}")
    if not is_multiple(start, width):
        apart = ", ".join(map(str, storage.strides))
        raise ScheduleError(f"{use.block}: {_WANTED}, between multiples of {width} elements, found neighbours {apart} elements apart")
    return storage.buffer, start


def _first(use: Use, index: Index, limit: Size, state: State, width: int) -> Index:
    """The index of the first lane, where the comparison with the limit has the same result for all lanes."""
    lane = None if state.lanes is None else state.lanes.var
    if lane is None or (index.coefficient(lane) == 0 and not index.has_vector()):
        return index
    start = index.without(lane)
    whole = is_multiple(start, width) and proves(lambda: limit % width == 0)
    if index.coefficient(lane) != 1 or start.has_vector() or not whole:
        raise ScheduleError(f"{use.block}: {_WANTED}, of {width} elements that are there or not, found them up to {limit} at {index}")
    return start
