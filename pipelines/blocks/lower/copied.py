"""Blocks that copy, read for copies that no thread waits for: what they copy, from where to where, and under which conditions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.blocks.indices import Extremal, Reader, equal, substitute
from relayc.pipelines.blocks.lower.storage import Use
from relayc.pipelines.blocks.tvmscript.predicates import PREDICATES
from relayc.pipelines.blocks.views import Access, Guard, ScheduleError
from relayc.pipelines.kernel.index import Index
from relayc.symbolic import Size


@dataclass(frozen=True)
class Copied:
    """What a block copies: an element at indices over its iterators to one at others, where all conditions hold, else zero."""

    source: ir.Value
    indices: tuple[Index, ...]
    target: ir.Value
    at: tuple[Index, ...]
    conditions: tuple[Guard, ...]


def read_copy(use: Use, sizes: Mapping[ir.Value, Size], wanted: str) -> Copied:
    """What a block copies. Raises ScheduleError, which says what is `wanted`, where it is no copy."""
    block = use.block
    accesses = {a.operation: a for a in use.accesses}
    stores = [a for a in use.accesses if a.is_store]
    if use.tensor is not None or block.init is not None or len(stores) != 1:
        raise ScheduleError(f"{block}: {wanted}, found another computation")
    (store,) = stores
    reader = Reader({a: Index.of(v) for a, v in zip(block.body.arguments, block.vars, strict=True)}, sizes)
    value, conditions = store.operation.operands[0], list[Guard]()
    while _is(value, "arith.select") and _is_zero(value.owner.operation.operands[2]):
        condition, value, _ = value.owner.operation.operands
        conditions += _conditions(condition, reader, use, wanted)
    load: Access | None = None if isinstance(value.owner, ir.Block) else accesses.get(value.owner.operation)
    if load is None:
        what = "an iterator" if isinstance(value.owner, ir.Block) else value.owner.operation.name
        raise ScheduleError(f"{block}: {wanted}, found {what}")
    indices = tuple(_unclipped(index, conditions) for index in load.indices)
    return Copied(load.buffer, indices, store.buffer, tuple(store.indices), tuple(conditions))


def _is(value: ir.Value, name: str) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == name


def _is_zero(value: ir.Value) -> bool:
    return _is(value, "arith.constant") and value.owner.operation.attributes["value"].value == 0


_LESS = ("slt", "ult")


def _conditions(value: ir.Value, reader: Reader, use: Use, wanted: str) -> Iterator[Guard]:
    """The comparisons of an index with a size that are all to hold."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is not None and op.name == "arith.andi":
        for part in op.operands:
            yield from _conditions(part, reader, use, wanted)
        return
    if op is not None and op.name == "arith.cmpi" and PREDICATES[op.name][ir.IntegerAttr(op.attributes["predicate"]).value] in _LESS:
        index, limit = map(reader.read, op.operands)
        if limit.is_constant:
            yield Guard(index, limit.const)
            return
    raise ScheduleError(f"{use.block}: {wanted}, under conditions that indices are below numbers, found {value}")


def _unclipped(index: Index, conditions: list[Guard]) -> Index:
    """An index where conditions hold: the smaller of what is below a size and of the largest number below that is the former."""
    for var in index.terms:
        if isinstance(var, Extremal) and var.kind == "min":
            for condition in conditions:
                for inside, most in ((var.a, var.b), (var.b, var.a)):
                    if equal(inside, condition.index) and equal(most, Index(condition.limit - 1)):
                        return _unclipped(substitute(index, {var: inside}), conditions)
    return index
