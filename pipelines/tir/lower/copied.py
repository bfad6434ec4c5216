"""Recognizes blocks that are asynchronous copies: source, target and predicates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.emit import PREDICATES
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import Divided, Extremal, equal, largest, substitute, variables
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.steps import Constant, Step
from relayc.symbolic import maximum, proves


@dataclass(frozen=True)
class Padding:
    """The value that a copy writes where not all of some conditions hold."""

    conditions: tuple[Guard, ...]
    value: int | float


@dataclass(frozen=True)
class Copied:
    """The copy of a block: target[at] = source[indices] where all conditions hold, otherwise the value of the first padding whose
    conditions do not hold; indices are over the iterators."""

    source: ir.Value
    indices: tuple[Index, ...]
    target: ir.Value
    at: tuple[Index, ...]
    padding: tuple[Padding, ...]

    @property
    def conditions(self) -> tuple[Guard, ...]:
        """Those under which the copy reads an element."""
        return tuple(condition for padding in self.padding for condition in padding.conditions)


def read_copy(use: Use, wanted: str, fills: bool = False) -> Copied:
    """The copy that a block makes.

    Args:
      fills: whether padding may have other values than 0.

    Raises ScheduleError, with the expectation `wanted`, if the block is not a copy.
    """
    block, steps = use.block, use.block.steps(False) or []
    stores = [step for step in steps if step.name == "memref.store"]
    if use.tensor is not None or block.has_init or len(stores) != 1:
        raise ScheduleError(f"{block}: {wanted}, found another computation")
    store, (value,), padding = stores[0].access, stores[0].operands, list[Padding]()
    while isinstance(value, int) and steps[value].name == "arith.select" and _is_number(steps[value].operands[2], fills):
        condition, value, other = steps[value].operands
        padding.append(Padding(tuple(_conditions(condition, steps, use, wanted)), other.attribute.value))
    load = steps[value].access if isinstance(value, int) else None
    if load is None or store is None:
        raise ScheduleError(f"{block}: {wanted}, found {steps[value].name if isinstance(value, int) else 'an iterator or a constant'}")
    conditions = {condition: largest(condition.index, Index()) for found in padding for condition in found.conditions}
    indices = tuple(_unclipped(index, conditions) for index in load.indices)
    if not set[Var]().union(*map(variables, indices)) <= set(block.vars):
        raise ScheduleError(f"{block}: {wanted}, found an index that is loaded: {', '.join(map(str, indices))}")
    checked = (Padding(tuple(Guard(_unclipped(c.index, conditions), c.limit) for c in found.conditions), found.value) for found in padding)
    return Copied(load.buffer, indices, store.buffer, tuple(store.indices), tuple(checked))


def _is_number(operand: Any, fills: bool) -> bool:
    """Whether an operand is 0, or with `fills` any number."""
    return isinstance(operand, Constant) and (fills or operand.attribute.value == 0)


def _conditions(operand: Any, steps: Sequence[Step], use: Use, wanted: str) -> Iterator[Guard]:
    """The comparisons whose conjunction is the predicate: each says that an index is at least 0 and below a size."""
    step = steps[operand] if isinstance(operand, int) else None
    if step is not None and step.name == "arith.andi":
        for part in step.operands:
            yield from _conditions(part, steps, use, wanted)
        return
    if step is not None and step.name == "arith.cmpi":
        predicate = PREDICATES[step.name][ir.IntegerAttr(step.attributes["predicate"]).value]
        index, limit = step.operands
        if isinstance(index, Index) and isinstance(limit, Index) and limit.is_constant:
            low, _ = index.bounds()
            if predicate == "ult" or (predicate == "slt" and proves(lambda: low >= 0)):
                yield Guard(index, limit.const)
                return
    found = "others" if step is None else step.name
    raise ScheduleError(f"{use.block}: {wanted}, under conditions that indices are below numbers, found {found}")


def _unclipped(index: Index, conditions: Mapping[Guard, Index]) -> Index:
    """Removes a min(index, size - 1), max(index, 0), or min(max(index, 0), size - 1), where a condition ensures 0 <= index < size.

    Args:
      conditions: each with max(index, 0).
    """
    found: dict[Var, Index] = {}
    for var in _clips(index):
        for condition, low in conditions.items():
            last = condition.limit - 1
            for inside, bound in ((var.a, var.b), (var.b, var.a)):
                if var.kind == "max":
                    is_clip = equal(bound, Index()) and equal(inside, condition.index)
                else:
                    is_last = equal(bound, Index(last)) or equal(bound, Index(maximum(last, 0)))
                    is_clip = is_last and (equal(inside, condition.index) or equal(inside, low))
                if is_clip:
                    found.setdefault(var, condition.index)
    return _unclipped(substitute(index, found), conditions) if found else index


def _clips(index: Index) -> Iterator[Extremal]:
    """The minima and maxima in an index, in quotients and remainders too."""
    for var in index.terms:
        if isinstance(var, Extremal):
            yield var
        elif isinstance(var, Divided):
            yield from _clips(var.index)
