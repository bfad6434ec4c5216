"""Types of calls of operators: by the rules that they are lowered with, on types."""

import itertools
from collections.abc import Mapping, Sequence, Set
from typing import Any

from relayc.dialects.relay.base import OPS
from relayc.dialects.relay.errors import RelayError, Unequal
from relayc.dialects.relay.names import ir_name, simpler
from relayc.dialects.relay.types import RelayType, TensorType, TupleType, flat_types
from relayc.dialects.relay.unify import substitute_type
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.expr import Call, Expr, Op
from relayc.frontend.relay.op.composed import Composed, types_of
from relayc.frontend.relay.op.registered import REGISTERED, Registered
from relayc.frontend.relay.op.rules import apply
from relayc.symbolic import Dim, Ranges, Size, name_of, symbol, symbols_of

_ANY = "any_"
"""Prefix of symbols for unknown dimensions."""


class _Types:
    """Finds types of operators: its values are types."""

    def emit(self, name: str, *operands: RelayType, **attributes: Any) -> Any:
        cls = OPS[ir_name(name)]
        values = cls.attribute_values(attributes)
        for spec in cls.attr_specs.values():
            spec.check(values[spec.name])
        found = cls.result_types(list(operands), values)
        return found[0] if len(found) == 1 else tuple(found)

    def compose(self, found: Composed, args: list[RelayType], attrs: dict[str, Any], exprs: Sequence[Expr]) -> Any:
        return types_of(found, args, attrs, exprs)

    def type_of(self, value: RelayType) -> RelayType:
        return value

    def fields(self, value: RelayType) -> Sequence[RelayType]:
        return value.fields if isinstance(value, TupleType) else [value]


def call_type(call: Call, args: Sequence[t.Type]) -> t.Type:
    """The type of a call of an operator. Raises RelayError.

    Sizes that are not known, or are symbols, are taken for equal where the operator needs that: the program checks them.
    """
    assert isinstance(call.op, Op)
    if call.op.name in REGISTERED:
        return _registered_type(call, REGISTERED[call.op.name], args)
    numbers = itertools.count(1)

    def fresh() -> Dim:
        return symbol(f"{_ANY}{next(numbers)}")

    values: list[RelayType] = [to_dialect(arg, fresh) for arg in args]
    known = {name for value in values for part in flat_types(value) for name in part.symbols if not name.startswith(_ANY)}
    attrs = {} if call.attrs is None else dict(call.attrs)
    known |= {name for value in attrs.values() for size in (value if isinstance(value, tuple) else (value,)) for name in _names(size)}
    tried: set[Size] = set()
    with Ranges():
        while True:
            try:
                return from_dialect(apply(_Types(), call.op.name, list(values), attrs, call.args), known)
            except Unequal as error:
                same: Mapping[str, Size] | None = _taken_for_equal(error.a, error.b, tried)
                if same is None:
                    raise
                values = [substitute_type(value, same) for value in values]


def _names(value: Any) -> Set[str]:
    """The symbols in a size; empty for anything else."""
    return symbols_of(value) if isinstance(value, Dim) else frozenset()


def _registered_type(call: Call, found: Registered, args: Sequence[t.Type]) -> t.Type:
    """The type of a call of an operator that a program has registered, by its relation."""
    type_ = None if found.relation is None else found.relation(list(args), call.attrs)
    if not isinstance(type_, t.Type):
        raise RelayError(f"{found.name}: expected a type by its relation, found {type_}")
    return type_


def _taken_for_equal(a: Size, b: Size, tried: set[Size]) -> dict[str, Size] | None:
    """The symbol to replace by another size so that two sizes are equal; None if neither is a free symbol."""
    kept = simpler(a, b)
    for other, size in ((b if kept == a else a, kept), (kept, b if kept == a else a)):
        name = name_of(other) if isinstance(other, Dim) else None
        if name is not None and other not in tried and not (isinstance(size, Dim) and name in symbols_of(size)):
            tried.add(other)
            return {name: size}
    return None


def to_dialect(type_: t.Type, fresh: Any) -> RelayType:
    """A tensor or tuple type as one of the dialect, with a symbol of `fresh` for each size of which nothing is known. Raises TypeError."""
    if isinstance(type_, t.TupleType):
        return TupleType(tuple(to_dialect(field, fresh) for field in type_.fields))
    if not isinstance(type_, t.TensorType):
        raise TypeError(f"expected tensors and tuples of them, found {type_}")
    try:
        return TensorType(tuple(fresh() if isinstance(d, t.Any) else d if isinstance(d, Dim) else int(d) for d in type_.shape), type_.dtype)
    except ValueError as error:
        raise TypeError(str(error)) from None


def from_dialect(type_: Any, known: Set[str]) -> t.Type:
    """A type of the dialect, or several of one tuple, as one of a program: of sizes with other symbols than these nothing is known."""
    if isinstance(type_, TensorType):
        return t.TensorType([d if d is not None and symbols_of(d) <= known else t.Any() for d in type_.shape], type_.dtype)
    return t.TupleType([from_dialect(field, known) for field in (type_.fields if isinstance(type_, TupleType) else type_)])
