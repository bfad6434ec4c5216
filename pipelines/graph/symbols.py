"""Which symbols operations of a program name, and which are known where: what may move, and what is a number at compile time.

A symbol is defined by the types of a function's arguments or of a region's, by an operation that says so (`relay.define_sizes`,
`relay.match_shape`), or by the type of a result: that of a branch or a loop may name symbols that stand nowhere before it.

The types of what a call takes and gives are in the words of its callee; `relay.cast_shape` stands between these and the caller's.
"""

from collections.abc import Iterable, Iterator

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import flat_types, type_of
from relayc.symbolic import Dim, symbol, symbols_of

_ANY = symbol("any")


def symbols_of_values(values: Iterable[ir.Value]) -> set[str]:
    """The symbols in the types of some values; values that are no tensors name none."""
    return {name for value in values if isinstance(value.type, (ir.RankedTensorType, ir.TupleType)) for name in _of_type(value)}


def _of_type(value: ir.Value) -> Iterator[str]:
    if isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape:
        return
    for type_ in flat_types(type_of(value)):
        yield from type_.symbols


def _symbolic_attributes(operator: type[Op]) -> tuple[str, ...]:
    """Names of the attributes of an operator that may hold expressions."""
    if operator not in _ATTRIBUTES:
        found = (spec.name for spec in operator.attr_specs.values() if spec.kind.check(_ANY) or spec.kind.check((_ANY,)))
        _ATTRIBUTES[operator] = tuple(found)
    return _ATTRIBUTES[operator]


_ATTRIBUTES: dict[type[Op], tuple[str, ...]] = {}


def symbols_of_attributes(op: ir.OpView) -> set[str]:
    """The symbols in the attributes of an operation that say sizes."""
    found: set[str] = set()
    for name in _symbolic_attributes(type(op)) if isinstance(op, Op) else ():
        value = getattr(op, name)
        for size in value if isinstance(value, tuple) else (value,):
            if isinstance(size, Dim):
                found |= symbols_of(size)
    return found


def symbols_named(op: ir.OpView) -> set[str]:
    """All symbols that an operation and those in its regions name: in types, attributes, and as what they define."""
    found = symbols_of_values((*op.operation.operands, *op.operation.results)) | symbols_of_attributes(op) | set(defined_names(op))
    for region in op.operation.regions:
        for block in region.blocks:
            found |= symbols_of_values(block.arguments)
            for inner in block.operations:
                found |= symbols_named(inner)
    return found


def defined_names(op: ir.OpView) -> tuple[str, ...]:
    """The symbols that an operation says it defines by their names."""
    return tuple(op.names) if isinstance(op, Op) and op.operation.name == "relay.define_sizes" else ()


def is_foreign(value: ir.Value) -> bool:
    """Whether the type of a value is in the words of a function that is called: an argument cast for it, or a result to be cast."""
    if not isinstance(value, ir.OpResult):
        return False
    name = value.owner.operation.name
    users = {"relay.cast_shape": "func.call", "func.call": "relay.cast_shape"}.get(name)
    return users is not None and all(use.owner.operation.name == users for use in value.uses)


def symbols_before(operation: ir.Operation) -> set[str]:
    """The symbols that are known where an operation stands: those that the arguments and operations before it name."""
    found: set[str] = set()
    block: ir.Block | None = operation.block
    while block is not None:
        found |= symbols_of_values(block.arguments)
        for op in block.operations:
            if op.operation == operation:
                break
            found |= symbols_of_values(r for r in op.operation.results if not is_foreign(r)) | set(defined_names(op))
        operation = block.owner.operation
        block = operation.block if operation.name != "func.func" else None
    return found
