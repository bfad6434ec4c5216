"""Recognizes the reduction operation in the body of a block."""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.tir.tree.indices import equal
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import COMMUTATIVE, Access, combining_step, neutral

_COMPARISONS = ("arith.cmpf", "arith.cmpi", "arith.andi", "arith.ori", "arith.xori")


@dataclass(frozen=True)
class ReducedElement:
    """One of the elements to which a block reduces.

    Attributes:
      load, store: the accesses of the element in the body.
      value: the value combined with it in a step.
      operation: computes the new element: a commutative operation, or a selection between element and value.
    """

    load: ir.Operation
    store: Access
    value: ir.Value | None
    operation: ir.Operation

    @property
    def combiner(self) -> str | None:
        """The commutative operation on element and value; None for a selection."""
        name = self.operation.name
        return "arith.addf" if name == "math.fma" else None if name == "arith.select" else name

    def identity(self) -> ir.Value | None:
        """The neutral element, at the ambient insertion point; None if unknown."""
        name, type_ = self.combiner, self.operation.results[0].type
        if name is None:
            return None
        return emit.number(neutral(name, type_), type_)


@dataclass(frozen=True)
class Reducer:
    """The reduction of a block.

    Attributes:
      parts: the elements, in the order of their stores.
      operations: the combining operations, in order.
    """

    parts: Sequence[ReducedElement]
    operations: Sequence[ir.Operation]

    @property
    def is_commutative(self) -> bool:
        """Whether each element is reduced by one commutative operation."""
        return all(part.combiner is not None for part in self.parts)

    @property
    def text(self) -> str:
        return " and ".join(op.name for op in self.operations)

    def combine(self, elements: Sequence[ir.Value], values: Sequence[ir.Value]) -> list[ir.Value]:
        """Combines elements with values, at the ambient insertion point."""
        if self.is_commutative:
            return [
                emit.create(str(part.combiner), [a.type], [a, b], _flags(part.operation))
                for part, a, b in zip(self.parts, elements, values, strict=True)
            ]
        known: dict[ir.Value, ir.Value] = {}
        for part, element, value in zip(self.parts, elements, values, strict=True):
            known[part.load.results[0]] = element
            if part.value is not None:
                known[part.value] = value
        for op in self.operations:
            before = list(op.operands)
            # A value that is combined with several elements stands for what is combined with the one beside it.
            beside = {p.value: value for p, value in zip(self.parts, values, strict=True) if p.load.results[0] in before}
            operands = [beside.get(v, known.get(v, v)) for v in before]
            known[op.results[0]] = emit.create(op.name, [op.results[0].type], operands, dict(op.attributes.items()))
        return [known[part.operation.results[0]] for part in self.parts]


def _flags(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {} if op.name == "math.fma" else dict(op.attributes.items())


def adds_up(block: Block) -> bool:
    """Whether each stored element of a block is combined with a value by one commutative operation, judged by its steps."""
    steps = block.steps(False)
    return steps is not None and all(combining_step(steps, s) is not None for s in steps if s.name == "memref.store")


def find_reducer(block: Block) -> Reducer:
    """The reduction of a block. Raises ScheduleError unless its body combines each stored element with a value."""
    block.fill()
    accesses = [a for a in block.accesses() if not a.is_init]
    stores = [a for a in accesses if a.is_store]
    loads: dict[int, ir.Operation] = {}
    combining: set[ir.Value] = set()
    for position, store in enumerate(stores):
        same = [a.operation for a in accesses if not a.is_store and a.buffer == store.buffer and all(map(equal, a.indices, store.indices))]
        if len(same) != 1:
            raise ScheduleError(f"expected {block} to load each element that it reduces once, found {len(same)} loads")
        loads[position] = same[0]
        combining.add(same[0].results[0])
    operations = []
    for view in block.body.operations:
        op = view.operation
        if op.name not in ("memref.load", "memref.store") and any(v in combining for v in op.operands):
            operations.append(op)
            combining.update(op.results)
    parts = [_part(block, loads[i], store, combining) for i, store in enumerate(stores)]
    known = {p.value for p in parts if p.value is not None} | combining
    mine = [p.operation for p in parts]
    for op in operations:
        if op not in mine and (op.name not in _COMPARISONS or any(v not in known for v in op.operands)):
            raise ScheduleError(f"expected {block} to combine elements with values, found {op.name}")
    return Reducer(parts, operations)


def _part(block: Block, load: ir.Operation, store: Access, combining: set[ir.Value]) -> ReducedElement:
    element, stored = load.results[0], store.operation.operands[0]
    op = stored.owner.operation if stored in combining and stored != element else None
    if op is not None:
        operands = list(op.operands)
        if op.name == "math.fma" and operands[2] == element and not {*operands[:2]} & combining:
            return ReducedElement(load, store, None, op)
        pair = operands[1:] if op.name == "arith.select" else operands
        if op.name == "arith.select" or op.name in COMMUTATIVE:
            others = [v for v in pair if v != element]
            if len(others) == 1 and others[0] not in combining:
                return ReducedElement(load, store, others[0], op)
    found = op.name if op is not None else "none"
    raise ScheduleError(f"expected {block} to combine each element with a value by a commutative operation, found {found}")
