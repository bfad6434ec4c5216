"""Composed operators preserved during a pass on the dialect: the pass sees each as a packed function with known types.

Otherwise the pass, and the program that it returns, would have the compositions of the operators.
"""

from collections.abc import Callable

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import post_order, replace_calls
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.external import GENERATORS
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.composed import COMPOSED
from relayc.frontend.relay.op.composed.annotation import IDENTITIES

_KEPT = "relayc.kept"
"""The attribute Compiler of the functions that calls of composed operators are."""
_FORMS = ("_like", "reverse_reshape")
"""Parts of the names of operators that are other forms of an operator, with the shape specified differently."""
GENERATORS[_KEPT] = lambda function: str(function.attrs["global_symbol"])


def with_kept(mod: RelayModule, change: Callable[[RelayModule], RelayModule]) -> RelayModule:
    """Applies a function to a typed module without composed operators, except other forms of operators of the dialect (reshape_like)."""
    calls: dict[str, tuple[e.Function, e.Call]] = {}
    hidden = mod.map_functions(lambda function: replace_calls(function, lambda call, new: _hidden(call, new, calls)))
    if not calls:
        return change(mod)
    for name, (function, _) in calls.items():
        hidden[name] = function
    found = change(infer_module(hidden))
    shown = RelayModule({}, found.type_definitions, found.attrs)
    for var, function in found.functions.items():
        if var.name_hint not in calls:
            shown[var] = replace_calls(function, lambda _, new: _shown(new, calls))
    return shown


def has_other_forms(function: e.Expr) -> bool:
    """Whether a function has calls of operators that are others by another name, which a pass on the dialect gives."""
    return any(isinstance(node, e.Op) and node.name.endswith(_FORMS) for node in post_order(function))


def _is_kept(call: e.Call) -> bool:
    if not isinstance(call.op, e.Op) or call.op.name not in COMPOSED or call.op.name in IDENTITIES or call.op.name.endswith(_FORMS):
        return False
    types = [leaf for expr in (*call.args, call) for leaf in t.leaves(expr.checked_type)]
    return all(isinstance(type_, t.TensorType) and all(isinstance(d, int) for d in type_.shape) for type_ in types)


def _hidden(call: e.Call, new: e.Call, calls: dict[str, tuple[e.Function, e.Call]]) -> e.Expr | None:
    """A call of a function that is a composed operator; constants stay in it. Adds the function and its call to `calls`."""
    if not _is_kept(call):
        return None
    params = {i: e.Var(f"p{i}", arg.checked_type) for i, arg in enumerate(call.args) if not isinstance(arg, e.Constant)}
    body = call.replace(args=tuple(params.get(i, arg) for i, arg in enumerate(call.args)))
    name = f"kept_{len(calls)}"
    attrs = {"Compiler": _KEPT, "Primitive": 1, "global_symbol": name}
    calls[name] = e.Function(list(params.values()), body, call.checked_type, None, attrs), call
    return e.Call(e.GlobalVar(name), [new.args[i] for i in params], None, None, call.span)


def _shown(new: e.Call, calls: dict[str, tuple[e.Function, e.Call]]) -> e.Expr | None:
    """The call of a composed operator that the call of a function stands for."""
    if not isinstance(new.op, e.GlobalVar) or new.op.name_hint not in calls:
        return None
    call, flat = calls[new.op.name_hint][1], iter(new.args)
    args = (arg if isinstance(arg, e.Constant) else t.structured(arg.checked_type, flat, e.Tuple) for arg in call.args)
    return call.replace(args=tuple(args))
