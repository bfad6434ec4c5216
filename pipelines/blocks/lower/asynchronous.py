"""Blocks that copy from memory to shared memory without a thread waiting: a vector of 4, 8 or 16 bytes at a time.

What is copied may be there under conditions, as pad_einsum has it: zeros are written where one of them does not hold. A condition is the
same for all elements of a vector.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.blocks.indices import Extremal, Reader, equal, substitute
from relayc.pipelines.blocks.lower.bodies import Bodies, Memory, State
from relayc.pipelines.blocks.lower.storage import Use
from relayc.pipelines.blocks.tvmscript.predicates import PREDICATES
from relayc.pipelines.blocks.views import Access, Guard, ScheduleError
from relayc.pipelines.gpu.aligned import is_multiple
from relayc.pipelines.gpu.copies import GLOBAL, SHARED, copy_asynchronously, pointer
from relayc.pipelines.kernel.index import Index, Var, weighted
from relayc.pipelines.tir import emit
from relayc.symbolic import Size, proves

SIZES = (4, 8, 16)
"""Bytes of a copy."""
_WANTED = "expected a copy from global to shared memory, of what software_pipeline_async_stages names"


@dataclass(frozen=True)
class _Copy:
    """What a block copies: an element at indices over its iterators to one at others, where all conditions hold, else zero."""

    source: ir.Value
    indices: tuple[Index, ...]
    target: ir.Value
    at: tuple[Index, ...]
    conditions: tuple[Guard, ...]


def emit_copy(use: Use, bodies: Bodies, state: State) -> None:
    """Begins the copy of a block at a point, along lanes if there are some. Raises ScheduleError where it is none."""
    found = _read(use, bodies.sizes)
    if bodies.evaluator.mask is not None:
        raise ScheduleError(f"{use.block}: {_WANTED}, of whole vectors, found a guard along the lanes of one")
    width = 1 if state.lanes is None else state.lanes.width
    size = width * found.source.type.element_type.width // 8
    if size not in SIZES:
        raise ScheduleError(f"{use.block}: {_WANTED}, of 4, 8 or 16 bytes at a time, found {size}: vectorize says how many")
    ends = [
        _start(use, bodies, state, buffer, indices, width) for buffer, indices in ((found.target, found.at), (found.source, found.indices))
    ]
    point: dict[Var, Index] = dict(zip(use.block.vars, use.points, strict=True))
    there = []
    for condition in found.conditions:
        first = _first(use, bodies.at(substitute(condition.index, point), state.point), condition.limit, state, width)
        _, high = first.bounds()
        if not proves(lambda: high < condition.limit):  # noqa: B023
            there.append(emit.compare("slt", emit.materialize(first), emit.index_constant(condition.limit)))
    (to, at), (source, begin) = ends
    copy_asynchronously(pointer(to, at, SHARED), pointer(source, begin, GLOBAL), size, emit.all_of(there) if there else None)


def _start(use: Use, bodies: Bodies, state: State, buffer: ir.Value, indices: tuple[Index, ...], width: int) -> tuple[ir.Value, Index]:
    """The memory of a buffer, and its element that the first lane accesses."""
    storage = bodies.storage[buffer]
    if not isinstance(storage, Memory):
        raise ScheduleError(f"{use.block}: {_WANTED}, found one of a buffer in registers")
    point: dict[Var, Index] = dict(zip(use.block.vars, use.points, strict=True))
    local = [substitute(i, point) - low for i, low in zip(indices, storage.lows, strict=True)]
    offset = bodies.at(weighted(local, storage.strides), state.point) + storage.offset
    lane = bodies.evaluator.lane
    if width > 1 and (offset.coefficient(lane) != 1 or offset.without(lane).has_vector()):
        raise ScheduleError(f"{use.block}: {_WANTED}, of elements side by side, found lanes at {offset}")
    start = offset.without(lane) if width > 1 else offset
    if not is_multiple(start, width):
        apart = ", ".join(map(str, storage.strides))
        raise ScheduleError(f"{use.block}: {_WANTED}, between multiples of {width} elements, found neighbours {apart} elements apart")
    return storage.buffer, start


def _first(use: Use, index: Index, limit: Size, state: State, width: int) -> Index:
    """What a condition compares of the first lane, where it holds for all lanes or for none."""
    lane = None if state.lanes is None else state.lanes.var
    if lane is None or (index.coefficient(lane) == 0 and not index.has_vector()):
        return index
    start = index.without(lane)
    whole = is_multiple(start, width) and proves(lambda: limit % width == 0)
    if index.coefficient(lane) != 1 or start.has_vector() or not whole:
        raise ScheduleError(f"{use.block}: {_WANTED}, of {width} elements that are there or not, found them up to {limit} at {index}")
    return start


# ---- reading a block


def _read(use: Use, sizes: Mapping[ir.Value, Size]) -> _Copy:
    """What a block copies. Raises ScheduleError."""
    block = use.block
    accesses = {a.operation: a for a in use.accesses}
    stores = [a for a in use.accesses if a.is_store]
    if use.tensor is not None or block.init is not None or len(stores) != 1:
        raise ScheduleError(f"{block}: {_WANTED}, found another computation")
    (store,) = stores
    reader = Reader({a: Index.of(v) for a, v in zip(block.body.arguments, block.vars, strict=True)}, sizes)
    value, conditions = store.operation.operands[0], list[Guard]()
    while _is(value, "arith.select") and _is_zero(value.owner.operation.operands[2]):
        condition, value, _ = value.owner.operation.operands
        conditions += _conditions(condition, reader, use)
    load: Access | None = None if isinstance(value.owner, ir.Block) else accesses.get(value.owner.operation)
    if load is None:
        what = "an iterator" if isinstance(value.owner, ir.Block) else value.owner.operation.name
        raise ScheduleError(f"{block}: {_WANTED}, found {what}")
    indices = tuple(_unclipped(index, conditions) for index in load.indices)
    return _Copy(load.buffer, indices, store.buffer, tuple(store.indices), tuple(conditions))


def _is(value: ir.Value, name: str) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == name


def _is_zero(value: ir.Value) -> bool:
    return _is(value, "arith.constant") and value.owner.operation.attributes["value"].value == 0


_LESS = ("slt", "ult")


def _conditions(value: ir.Value, reader: Reader, use: Use) -> Iterator[Guard]:
    """The comparisons of an index with a size that are all to hold."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is not None and op.name == "arith.andi":
        for part in op.operands:
            yield from _conditions(part, reader, use)
        return
    if op is not None and op.name == "arith.cmpi" and PREDICATES[op.name][ir.IntegerAttr(op.attributes["predicate"]).value] in _LESS:
        index, limit = map(reader.read, op.operands)
        if limit.is_constant:
            yield Guard(index, limit.const)
            return
    raise ScheduleError(f"{use.block}: {_WANTED}, under conditions that indices are below numbers, found {value}")


def _unclipped(index: Index, conditions: list[Guard]) -> Index:
    """An index where conditions hold: the smaller of what is below a size and of the largest number below that is the former."""
    for var in index.terms:
        if isinstance(var, Extremal) and var.kind == "min":
            for condition in conditions:
                for inside, most in ((var.a, var.b), (var.b, var.a)):
                    if equal(inside, condition.index) and equal(most, Index(condition.limit - 1)):
                        return _unclipped(substitute(index, {var: inside}), conditions)
    return index
