"""Operators that are composed of others, written out in programs of the Relay language."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.functor import ExprMutator
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.inference.operators import to_dialect
from relayc.frontend.relay.op.composed import Composed, compose
from relayc.frontend.relay.op.table import signature
from relayc.frontend.relay.raising import raised
from relayc.symbolic import symbol


def decomposed(mod: RelayModule, wanted: Callable[[str], bool]) -> RelayModule:
    """A module in which calls of composed operators of the wanted names are what they are composed of. Raises RelayError."""
    return infer_module(infer_module(mod).map_functions(_Decompose(wanted).visit))


class _Decompose(ExprMutator):
    def __init__(self, wanted: Callable[[str], bool]) -> None:
        super().__init__()
        self._wanted = wanted

    def visit_call(self, call: e.Call) -> e.Expr:
        args = [self.visit(arg) for arg in call.args]
        if not isinstance(call.op, e.Op) or not self._wanted(call.op.name) or signature(call.op.name).composed is None:
            return call.replace(op=self.visit(call.op), args=tuple(args))
        return written_out(call, args)


def written_out(call: e.Call, args: list[e.Expr]) -> e.Expr:
    """What a call of a composed operator, whose arguments have types, is composed of, on other arguments of these types."""
    assert isinstance(call.op, e.Op)
    found = signature(call.op.name)
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
