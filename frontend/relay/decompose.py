"""Operators that are composed of others, written out in programs of the Relay language."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference.operators import to_dialect
from relayc.frontend.relay.op.composed import Composed, compose
from relayc.frontend.relay.op.table import signature
from relayc.frontend.relay.passes.operators import name_of, replaced
from relayc.frontend.relay.raising import raised
from relayc.symbolic import symbol


def decomposed(mod: RelayModule, wanted: Callable[[str], bool]) -> RelayModule:
    """A module in which calls of composed operators with the wanted names are replaced by their compositions. Raises RelayError."""

    def written(before: e.Call, new: e.Call) -> e.Expr | None:
        name = name_of(before)
        return written_out(before, new.args) if name is not None and wanted(name) and signature(name).composed is not None else None

    return replaced(mod, written)


def written_out(call: e.Call, args: Sequence[e.Expr]) -> e.Expr:
    """What a call of a composed operator, whose arguments have types, is composed of, on other arguments of these types."""
    found = signature(str(name_of(call)))
    assert found.composed is not None
    return composed_on(found.composed, found.attributes(call.attrs or {}), call.args, args)


def composed_on(found: Composed, attrs: Mapping[str, Any], typed: Sequence[e.Expr], args: Sequence[e.Expr]) -> e.Expr:
    """What a composed operator is composed of, on arguments of the types of the `typed` ones. Raises RelayError."""
    numbers = iter(range(1 << 30))
    types = [to_dialect(arg.checked_type, lambda: symbol(f"any_{next(numbers)}")) for arg in typed]
    function = raised(compose(found, types, attrs, typed))["main"]
    flat = [part for arg, type_ in zip(args, types, strict=True) for part in _fields(arg, type_)]
    return bind(e.Function([], function.body), dict(zip(function.params, flat, strict=True))).body  # type: ignore[attr-defined]


def _fields(arg: e.Expr, type_: Any) -> list[e.Expr]:
    if not hasattr(type_, "fields"):
        return [arg]
    return list(arg.fields) if isinstance(arg, e.Tuple) else [e.TupleGetItem(arg, i) for i in range(len(type_.fields))]
