"""Rewrites values in terms of sizes with other names."""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.sizes import MatchShape
from relayc.dialects.relay.tuples import fields_of, make_tuple
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, type_of


def restated(value: ir.Value, type_: RelayType) -> ir.Value:
    """A value that takes the place of one of another type, whose sizes are the same ones in other words.

    The symbols of `type_` that have no value yet are defined by what it builds, at the ambient insertion point.
    """
    found = type_of(value)
    if found == type_:
        return value
    if isinstance(found, TensorType) and isinstance(type_, TensorType):
        return MatchShape(value, shape=type_.sizes).result if type_.is_known else value
    assert isinstance(found, TupleType) and isinstance(type_, TupleType)
    return make_tuple([restated(field, t) for field, t in zip(fields_of(value), type_.fields, strict=True)])
