"""Recognizes blocks that are asynchronous copies: source, target and predicates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.script.predicates import PREDICATES
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import Extremal, equal, substitute
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.steps import Constant, Step


@dataclass(frozen=True)
class Copied:
    """The copy of a block: target[at] = source[indices] where all conditions hold, otherwise 0; indices are over the iterators."""

    source: ir.Value
    indices: tuple[Index, ...]
    target: ir.Value
    at: tuple[Index, ...]
    conditions: tuple[Guard, ...]


def read_copy(use: Use, wanted: str) -> Copied:
    """The copy that a block makes. Raises ScheduleError, with the expectation `wanted`, if the block is not a copy."""
    block, steps = use.block, use.block.steps(False) or []
    stores = [step for step in steps if step.name == "memref.store"]
    if use.tensor is not None or block.has_init or len(stores) != 1:
        raise ScheduleError(f"{block}: {wanted}, found another computation")
    store, (value,), conditions = stores[0].access, stores[0].operands, list[Guard]()
    while isinstance(value, int) and steps[value].name == "arith.select" and _is_zero(steps[value].operands[2]):
        condition, value, _ = steps[value].operands
        conditions += _conditions(condition, steps, use, wanted)
    load = steps[value].access if isinstance(value, int) else None
    if load is None or store is None:
        raise ScheduleError(f"{block}: {wanted}, found {steps[value].name if isinstance(value, int) else 'an iterator or a constant'}")
    indices = tuple(_unclipped(index, conditions) for index in load.indices)
    return Copied(load.buffer, indices, store.buffer, tuple(store.indices), tuple(conditions))


def _is_zero(operand: Any) -> bool:
    return isinstance(operand, Constant) and operand.attribute.value == 0


_LESS = ("slt", "ult")


def _conditions(operand: Any, steps: Sequence[Step], use: Use, wanted: str) -> Iterator[Guard]:
    """The comparisons of an index with a size whose conjunction is the predicate."""
    step = steps[operand] if isinstance(operand, int) else None
    if step is not None and step.name == "arith.andi":
        for part in step.operands:
            yield from _conditions(part, steps, use, wanted)
        return
    if step is not None and step.name == "arith.cmpi":
        predicate = PREDICATES[step.name][ir.IntegerAttr(step.attributes["predicate"]).value]
        index, limit = step.operands
        if predicate in _LESS and isinstance(index, Index) and isinstance(limit, Index) and limit.is_constant:
            yield Guard(index, limit.const)
            return
    found = "others" if step is None else step.name
    raise ScheduleError(f"{use.block}: {wanted}, under conditions that indices are below numbers, found {found}")


def _unclipped(index: Index, conditions: list[Guard]) -> Index:
    """Removes a min(index, size - 1) where a condition ensures index < size."""
    for var in index.terms:
        if isinstance(var, Extremal) and var.kind == "min":
            for condition in conditions:
                for inside, most in ((var.a, var.b), (var.b, var.a)):
                    if equal(inside, condition.index) and equal(most, Index(condition.limit - 1)):
                        return _unclipped(substitute(index, {var: inside}), conditions)
    return index
