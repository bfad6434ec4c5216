"""Recognizes the reduction operation in the body of a block."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.tree.indices import equal, variables
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import COMMUTATIVE, Constant, Recorder, Step, combining_step, constant_of, neutral, numbered_operands

_COMPARISONS = ("arith.cmpf", "arith.cmpi", "arith.andi", "arith.ori", "arith.xori")


@dataclass(frozen=True)
class ReducedElement:
    """One of the elements to which a block reduces.

    Attributes:
      load, store: the numbers of the steps that access the element.
      value: the operand combined with it in a step; None for a multiply-add.
      number: of the step that computes the new element: a commutative operation, or a selection between element and value.
      operation: this step.
    """

    load: int
    store: int
    value: Any
    number: int
    operation: Step

    @property
    def combiner(self) -> str | None:
        """The commutative operation on element and value; None for a selection."""
        name = self.operation.name
        return "arith.addf" if name == "math.fma" else None if name == "arith.select" else name

    def identity(self) -> Constant | None:
        """The neutral element; None if unknown."""
        name, type_ = self.combiner, self.operation.type
        return None if name is None else constant_of(neutral(name, type_), type_)


@dataclass(frozen=True)
class Reducer:
    """The reduction of a block.

    Attributes:
      steps: of the body.
      parts: the elements, in the order of their stores.
      numbers: of the combining steps, in order.
    """

    steps: Sequence[Step]
    parts: Sequence[ReducedElement]
    numbers: Sequence[int]

    @property
    def is_commutative(self) -> bool:
        """Whether each element is reduced by one commutative operation."""
        return all(part.combiner is not None for part in self.parts)

    @property
    def operations(self) -> list[Step]:
        """The combining steps."""
        return [self.steps[number] for number in self.numbers]

    @property
    def text(self) -> str:
        return " and ".join(step.name for step in self.operations)

    def combine(self, record: Recorder, elements: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Records steps that combine elements with values, all operands; returns the results."""
        if self.is_commutative:
            return [
                record.make(str(part.combiner), _type(part.operation), [a, b], _flags(part.operation))
                for part, a, b in zip(self.parts, elements, values, strict=True)
            ]
        known: dict[Any, Any] = {}
        for part, element, value in zip(self.parts, elements, values, strict=True):
            known |= {part.load: element, _key(part.value): value}
        operands = numbered_operands(self.steps)
        for number in self.numbers:
            step, before = self.steps[number], operands[number]
            # A value that is combined with several elements stands for what is combined with the one beside it.
            beside = {_key(p.value): value for p, value in zip(self.parts, values, strict=True) if p.load in before}
            given = [beside.get(_key(v), known.get(_key(v), v)) for v in before]
            known[number] = record.make(step.name, _type(step), given, step.attributes)
        return [known[part.number] for part in self.parts]


def _key(operand: Any) -> Any:
    """Equal for equal operands."""
    return operand.key if isinstance(operand, Index) else operand


def _type(step: Step) -> ir.Type:
    assert step.type is not None  # no store
    return step.type


def _flags(step: Step) -> dict[str, ir.Attribute]:
    return {} if step.name == "math.fma" else step.attributes


def adds_up(block: Block) -> bool:
    """Whether each stored element of a block is combined with a value by one commutative operation, judged by its steps."""
    steps = block.steps(False)
    return steps is not None and all(combining_step(steps, s) is not None for s in steps if s.name == "memref.store")


def find_reducer(block: Block) -> Reducer:
    """The reduction of a block. Raises ScheduleError unless its body combines each stored element with a value."""
    steps = block.steps(False)
    if steps is None:
        raise ScheduleError(f"expected {block} to combine elements with values, found blocks")
    operands = numbered_operands(steps)
    stores = [number for number, s in enumerate(steps) if s.access is not None and s.access.is_store]
    loads = [_load(block, steps, number) for number in stores]
    combining, numbers = set(loads), list[int]()
    for number, step in enumerate(steps):
        if step.access is None and any(_depends(v, steps, combining) for v in operands[number]):
            numbers.append(number)
            combining.add(number)
    parts = [_part(block, steps, operands, load, store, combining) for load, store in zip(loads, stores, strict=True)]
    known = {_key(p.value) for p in parts if p.value is not None} | combining
    mine = [p.number for p in parts]
    for number in numbers:
        if number not in mine and (steps[number].name not in _COMPARISONS or any(_key(v) not in known for v in operands[number])):
            raise ScheduleError(f"expected {block} to combine elements with values, found {steps[number].name}")
    return Reducer(steps, parts, numbers)


def _load(block: Block, steps: Sequence[Step], store: int) -> int:
    """The step that loads the element that another step stores."""
    written = steps[store].access
    assert written is not None
    found = []
    for number, step in enumerate(steps):
        a = step.access
        if a is not None and not a.is_store and a.buffer == written.buffer and all(map(equal, a.indices, written.indices)):
            found.append(number)
    if len(found) != 1:
        raise ScheduleError(f"expected {block} to load each element that it reduces once, found {len(found)} loads")
    return found[0]


def _depends(operand: Any, steps: Sequence[Step], numbers: Collection[int]) -> bool:
    """Whether an operand is, or is computed from, the result of some steps."""
    if isinstance(operand, Index):
        return not variables(operand).isdisjoint(steps[n].var for n in numbers)
    return isinstance(operand, int) and operand in numbers


def _part(
    block: Block, steps: Sequence[Step], operands: Sequence[Sequence[Any]], load: int, store: int, combining: Collection[int]
) -> ReducedElement:
    (stored,) = operands[store]
    step = steps[stored] if isinstance(stored, int) and stored in combining and stored != load else None
    if step is not None:
        given = operands[stored]
        if step.name == "math.fma" and given[2] == load and not any(_depends(v, steps, combining) for v in given[:2]):
            return ReducedElement(load, store, None, stored, step)
        pair = given[1:] if step.name == "arith.select" else given
        if step.name == "arith.select" or step.name in COMMUTATIVE:
            others = [v for v in pair if _key(v) != load]
            if len(others) == 1 and not _depends(others[0], steps, combining):
                return ReducedElement(load, store, others[0], stored, step)
    found = step.name if step is not None else "none"
    raise ScheduleError(f"expected {block} to combine each element with a value by a commutative operation, found {found}")
