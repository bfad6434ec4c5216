"""Composed operators kept as they are while a pass on the dialect runs: to the pass each is a packed function, of which it knows the types.

Without this, the pass and the program that it gives have what the operators are composed of.
"""

import itertools
from collections.abc import Callable
from typing import Any

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import ExprMutator, children, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.external import GENERATORS
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.composed import COMPOSED
from relayc.frontend.relay.op.composed.annotation import IDENTITIES

_KEPT = "relayc.kept"
"""The attribute Compiler of the functions that calls of composed operators are."""
_FORMS = ("_like", "reverse_reshape")
"""How operators are called that are others, in which a shape is named in another way."""
GENERATORS[_KEPT] = lambda function: str(function.attrs["global_symbol"])


def with_kept(mod: RelayModule, change: Callable[[RelayModule], RelayModule]) -> RelayModule:
    """What a function makes of a typed module, without composed operators but for other forms of those of the dialect (reshape_like)."""
    mutator = _Hide()
    hidden = mod.map_functions(mutator.visit)
    if not mutator.calls:
        return change(mod)
    for name, (function, _) in mutator.calls.items():
        hidden[name] = function
    found = change(infer_module(hidden))
    shown = RelayModule({}, found.type_definitions, found.attrs)
    for var, function in found.functions.items():
        if var.name_hint not in mutator.calls:
            shown[var] = _shown(function, mutator.calls)
    return shown


def has_other_forms(function: e.Expr) -> bool:
    """Whether a function has calls of operators that are others by another name, which a pass on the dialect gives."""
    return any(isinstance(node, e.Op) and node.name.endswith(_FORMS) for node in post_order(function))


def _is_kept(call: e.Call) -> bool:
    if not isinstance(call.op, e.Op) or call.op.name not in COMPOSED or call.op.name in IDENTITIES or call.op.name.endswith(_FORMS):
        return False
    return all(map(_is_static, [*(arg.checked_type for arg in call.args), call.checked_type]))


def _is_static(type_: t.Type) -> bool:
    if isinstance(type_, t.TupleType):
        return all(map(_is_static, type_.fields))
    return isinstance(type_, t.TensorType) and all(isinstance(d, int) for d in type_.shape)


class _Hide(ExprMutator):
    """Makes functions of composed operators; constants stay in them.

    Attributes:
      calls: by the name of the function, the function and the call that it is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, tuple[e.Function, e.Call]] = {}
        self._numbers = itertools.count()

    def visit_call(self, call: e.Call) -> e.Expr:
        args = [self.visit(arg) for arg in call.args]
        if not _is_kept(call):
            return call.replace(op=self.visit(call.op), args=tuple(args))
        params = {i: e.Var(f"p{i}", arg.checked_type) for i, arg in enumerate(call.args) if not isinstance(arg, e.Constant)}
        body = call.replace(args=tuple(params.get(i, arg) for i, arg in enumerate(call.args)))
        name = f"kept_{next(self._numbers)}"
        attrs = {"Compiler": _KEPT, "Primitive": 1, "global_symbol": name}
        self.calls[name] = e.Function(list(params.values()), body, call.checked_type, None, attrs), call
        return e.Call(e.GlobalVar(name), [args[i] for i in params], None, None, call.span)


def _shown(function: e.Expr, calls: dict[str, tuple[e.Function, e.Call]]) -> Any:
    made: dict[e.Expr, e.Expr] = {}
    for node in post_order(function):
        new = made[node] = rebuilt(node, iter([made[part] for part in children(node)]))
        if isinstance(new, e.Call) and isinstance(new.op, e.GlobalVar) and new.op.name_hint in calls:
            call, flat = calls[new.op.name_hint][1], iter(new.args)
            args = [arg if isinstance(arg, e.Constant) else _like(arg.checked_type, flat) for arg in call.args]
            made[node] = call.replace(args=tuple(args))
    return made[function]


def _like(type_: t.Type, flat: Any) -> e.Expr:
    """Tensors in the tuples of a type."""
    return e.Tuple([_like(field, flat) for field in type_.fields]) if isinstance(type_, t.TupleType) else next(flat)
