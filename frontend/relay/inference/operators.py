"""Types of calls of operators: by the rules that they are lowered with, on types."""

from collections.abc import Mapping, Sequence
from typing import Any

from relayc.dialects.relay.base import OPS
from relayc.dialects.relay.errors import Unequal
from relayc.dialects.relay.names import ir_name, simpler
from relayc.dialects.relay.types import RelayType, TensorType, TupleType
from relayc.dialects.relay.unify import substitute_type
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.expr import Call, Op
from relayc.frontend.relay.op.rules import apply
from relayc.symbolic import Dim, Ranges, Size, name_of, symbol, symbols_of

_ANY = "any_"
"""How symbols begin that are dimensions of which nothing is known."""


class _Types:
    """Finds types of operators: its values are types."""

    def emit(self, name: str, *operands: RelayType, **attributes: Any) -> Any:
        cls = OPS[ir_name(name)]
        found = cls.result_types(list(operands), cls.attribute_values(attributes))
        return found[0] if len(found) == 1 else tuple(found)

    def type_of(self, value: RelayType) -> RelayType:
        return value

    def fields(self, value: RelayType) -> Sequence[RelayType]:
        return value.fields if isinstance(value, TupleType) else [value]


def call_type(call: Call, args: Sequence[t.Type]) -> t.Type:
    """The type of a call of an operator. Raises RelayError.

    Sizes that are not known, or are symbols, are taken for equal where the operator needs that: the program checks them.
    """
    assert isinstance(call.op, Op)
    count = 0

    def fresh() -> Dim:
        nonlocal count
        count += 1
        return symbol(f"{_ANY}{count}")

    values: list[RelayType] = [to_dialect(arg, fresh) for arg in args]
    attrs = {} if call.attrs is None else dict(call.attrs)
    tried: set[Size] = set()
    with Ranges():
        while True:
            try:
                return from_dialect(apply(_Types(), call.op.name, list(values), attrs, call.args))
            except Unequal as error:
                same: Mapping[str, Size] | None = _taken_for_equal(error.a, error.b, tried)
                if same is None:
                    raise
                values = [substitute_type(value, same) for value in values]


def _taken_for_equal(a: Size, b: Size, tried: set[Size]) -> dict[str, Size] | None:
    """The symbol that stands for another size where two sizes are equal; None where neither is a symbol that is still free."""
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


def from_dialect(type_: Any) -> t.Type:
    """A type of the dialect, or several of one tuple, as one of a program."""
    if isinstance(type_, TensorType):
        return t.TensorType([t.Any() if _is_unknown(d) else d for d in type_.shape], type_.dtype)
    return t.TupleType([from_dialect(field) for field in (type_.fields if isinstance(type_, TupleType) else type_)])


def _is_unknown(size: Size | None) -> bool:
    return size is None or (isinstance(size, Dim) and any(name.startswith(_ANY) for name in symbols_of(size)))
