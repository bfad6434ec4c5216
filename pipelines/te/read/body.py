"""The body of a linalg operation as a list of operations on elements, read once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index
from relayc.symbolic import Size


class NotStructured(Exception):
    """The kernel holds an operation that the loop schedules do not support; the fallback lowers it."""


class Constant(NamedTuple):
    """A constant operand."""

    attribute: ir.Attribute
    type: ir.Type


class LoopIndex(NamedTuple):
    """A loop index as an operand."""

    dim: int


class Operation(NamedTuple):
    """An operation on elements.

    Attributes:
      operands: for each the number of a value, a Constant, a LoopIndex, an Index for a size, or the node of a tensor.
      type: of its only result.
      source: the operation in the body.
    """

    name: str
    operands: tuple[Any, ...]
    type: ir.Type
    source: ir.Operation

    @property
    def attributes(self) -> dict[str, ir.Attribute]:
        """Its attributes by name, read lazily: reading them takes longer than the rest, and few callers need them."""
        return dict(self.source.attributes.items())


@dataclass(frozen=True)
class Body:
    """The computation at a point. Values are numbered: the arguments, then the results of the operations.

    Attributes:
      arguments: the number of arguments.
      yielded: the results, as operands.
      used: numbers of the arguments that are operands.
      indices: loops whose index is used.
      captured: tensors that are read at computed indices.
      size: the number of operations in the block, including those that became operands.
    """

    arguments: int
    operations: list[Operation]
    yielded: tuple[Any, ...]
    used: set[int]
    indices: list[int]
    captured: dict[ir.Value, Any]
    size: int

    def makes(self, operand: Any) -> Operation | None:
        """The operation whose result an operand is; None if no operation computes it."""
        return self.operations[operand - self.arguments] if isinstance(operand, int) and operand >= self.arguments else None

    def operands_of(self, operand: Any, name: str) -> tuple[Any, ...]:
        """The operands of the operation that computes an operand. Raises NotStructured unless it has the given name."""
        made = self.makes(operand)
        if made is None or made.name != name:
            raise NotStructured(f"expected {name}, found {operand if made is None else made.name}")
        return made.operands


def read_body(block: ir.Block, tensors: Mapping[ir.Value, Any], sizes: Mapping[ir.Value, Size]) -> Body:
    """The body of a linalg operation.

    Args:
      tensors: nodes of the tensors that it may read at computed indices.
      sizes: values that are sizes.

    Raises NotStructured if it holds more than operations on elements.
    """
    known: dict[ir.Value, Any] = {argument: number for number, argument in enumerate(block.arguments)}
    count = len(known)
    operations: list[Operation] = []
    indices: list[int] = []
    used: set[int] = set()
    captured: dict[ir.Value, Any] = {}

    def operand(value: ir.Value) -> Any:
        found = known.get(value)
        if found is None and value in tensors:
            found = known[value] = captured[value] = tensors[value]
        elif found is None:
            found = known[value] = _outside(value, sizes)
        elif isinstance(found, int) and found < count:
            used.add(found)
        return found

    *views, end = block.operations
    for view in views:
        op = view.operation
        name = op.name
        if len(op.regions):
            raise NotStructured(f"{name} in the body of {block.owner.operation.name}")
        result = op.results[0]
        if name == "arith.constant":
            known[result] = _constant(op)
        elif name == "linalg.index":
            known[result] = LoopIndex(ir.IntegerAttr(op.attributes["dim"]).value)
            indices.append(known[result].dim)
        else:
            operations.append(Operation(name, tuple(map(operand, op.operands)), result.type, op))
            known[result] = count + len(operations) - 1
    return Body(count, operations, tuple(map(operand, end.operation.operands)), used, indices, captured, len(views) + 1)


def _outside(value: ir.Value, sizes: Mapping[ir.Value, Size]) -> Any:
    """A size, or a constant that is defined outside a body, as an operand."""
    return Index(sizes[value]) if value in sizes else _constant(value.owner.operation)


def _constant(op: ir.Operation) -> Any:
    """An arith.constant as an operand."""
    attribute, type_ = op.attributes["value"], op.results[0].type
    return Index(ir.IntegerAttr(attribute).value) if isinstance(type_, ir.IndexType) else Constant(attribute, type_)
