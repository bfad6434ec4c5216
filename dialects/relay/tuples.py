"""Tuples: several values as one, of type `tuple<...>`, made of its fields and taken apart into them."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.relay.structure import TupleGetItem


def fields_of(value: ir.Value) -> tuple[ir.Value, ...]:
    """The fields of a tuple, each taken out by a `tuple_get_item` at the ambient insertion point."""
    return tuple(TupleGetItem(value, index=i).result for i in range(ir.TupleType(value.type).num_types))


def make_tuple(values: Sequence[ir.Value]) -> ir.Value:
    """A tuple of values, made at the ambient insertion point."""
    type_ = ir.TupleType.get_tuple([v.type for v in values])
    return ir.Operation.create("builtin.unrealized_conversion_cast", [type_], list(values)).result


def tuple_fields(value: ir.Value) -> list[ir.Value] | None:
    """The fields that a tuple was created from; None if unknown."""
    owner = value.owner
    made = isinstance(value.type, ir.TupleType) and not isinstance(owner, ir.Block) and owner.name == "builtin.unrealized_conversion_cast"
    return list(owner.operands) if made else None
