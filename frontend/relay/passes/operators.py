"""Calls of operators that other calls take the place of."""

from collections.abc import Callable

import numpy as np

from relayc.dialects.relay.types import numpy_dtype
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.functor import replace_calls
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.functions import call

_FAST = {"exp": "fast_exp", "tanh": "fast_tanh", "erf": "fast_erf", "nn.softmax": "nn.fast_softmax"}


def replaced(mod: RelayModule, change: Callable[[e.Call, e.Call], e.Expr | None]) -> RelayModule:
    """A module with types in which calls, which `change` is given with types, are replaced (`replace_calls`)."""
    return infer_module(infer_module(mod).map_functions(lambda function: replace_calls(function, change)))


def name_of(expr: e.Expr) -> str | None:
    """The operator of a call; None for any other expression."""
    return expr.op.name if isinstance(expr, e.Call) and isinstance(expr.op, e.Op) else None


def fast_math(mod: RelayModule) -> RelayModule:
    """exp, tanh, erf and softmax -> the operators that Relay has for results of less accuracy. relayc computes these as accurately."""
    return replaced(mod, lambda _, new: new.replace(op=e.Op.get(_FAST[str(name_of(new))])) if name_of(new) in _FAST else None)


def div_to_mul(mod: RelayModule) -> RelayModule:
    """x / c -> x * (1 / c) for float constants: a result may differ in its last bit."""

    def change(_: e.Call, new: e.Call) -> e.Expr | None:
        if name_of(new) != "divide" or not isinstance(new.args[1], e.Constant):
            return None
        divisor = new.args[1].data.numpy()
        if divisor.dtype.kind != "f" or not divisor.all():
            return None
        return call("multiply", [new.args[0], e.Constant(np.reciprocal(divisor))])

    return replaced(mod, change)


def canonicalize_cast(mod: RelayModule) -> RelayModule:
    """A cast to a wider type that several calls read -> a cast for each of them: it fuses with the call, and less is written to memory."""

    def change(before: e.Call, new: e.Call) -> e.Expr | None:
        own = {old: arg.at(arg.span) for old, arg in zip(before.args, new.args, strict=True) if _widens(old)}
        return new.replace(args=tuple(own.get(old, arg) for old, arg in zip(before.args, new.args, strict=True))) if own else None

    return replaced(mod, change)


def _widens(expr: e.Expr) -> bool:
    if not isinstance(expr, e.Call) or name_of(expr) != "cast":
        return False
    types = expr.args[0].checked_type, expr.checked_type
    sizes = [numpy_dtype(type_.dtype).itemsize for type_ in types if isinstance(type_, t.TensorType)]
    return sizes[0] < sizes[-1]


def defuse_ops(mod: RelayModule) -> RelayModule:
    """The body of a function in the place of its call, where the function stands there: FuseOps undone."""

    def change(_: e.Call, new: e.Call) -> e.Expr | None:
        if not isinstance(new.op, e.Function):
            return None
        return bind(e.Function([], new.op.body), dict(zip(new.op.params, new.args, strict=True))).body  # type: ignore[attr-defined]

    return replaced(mod, change)
