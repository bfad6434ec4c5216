"""SimplifyExpr for what the dialect has no operators for, or computes in another way: it runs before the pass of the dialect."""

from typing import Any

import numpy as np

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.build import const
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.op.functions import call
from relayc.frontend.relay.passes.operators import name_of, replaced

_ORDERS = ("argmax", "argmin", "argsort")
"""Operators that only compare the elements of their operand."""


def simplify(mod: RelayModule) -> RelayModule:
    """Names types by attributes in the place of tensors, compares quantized numbers, merges constants of sums and products.

    x + x and c / sqrt(x) become products. As in Relay, results of floats may round in another way.
    """
    return replaced(mod, _simpler)


def _simpler(before: e.Call, new: e.Call) -> e.Expr | None:
    name, args = name_of(new), new.args
    if name in ("full_like", "collapse_sum_like"):
        type_ = before.args[0 if name == "full_like" else 1].checked_type
        if not isinstance(type_, t.TensorType) or not all(isinstance(d, int) for d in type_.shape):
            return None
        if name == "full_like":
            return call("full", [args[1]], {"shape": type_.shape, "dtype": type_.dtype})
        return call("collapse_sum_to", [args[0]], {"shape": type_.shape})
    if name in _ORDERS and name_of(args[0]) == "qnn.dequantize":
        source: Any = args[0]
        scale = source.args[1]
        is_positive = isinstance(scale, e.Constant) and scale.data.size == 1 and scale.data.numpy().item() > 0
        return new.replace(args=(source.args[0],)) if is_positive else None
    if name == "divide" and name_of(args[1]) == "sqrt" and isinstance(args[0], e.Constant) and args[0].data.size == 1:
        root = call("rsqrt", [args[1].args[0]])  # type: ignore[attr-defined]
        return root if args[0].data.numpy().item() == 1 and not args[0].data.shape else call("multiply", [args[0], root])
    if name in ("add", "multiply") and (merged := _merged(new)) is not None:
        return merged
    if name == "add" and before.args[0] is before.args[1]:
        type_ = before.checked_type
        if isinstance(type_, t.TensorType) and type_.dtype.startswith("float"):
            return call("multiply", [args[0], const(2.0, type_.dtype)])
    return None


def _with_constant(expr: e.Expr, name: str) -> tuple[e.Expr, np.ndarray] | None:
    """The operands of a sum or product of an expression and a constant."""
    if name_of(expr) != name:
        return None
    lhs, rhs = expr.args  # type: ignore[attr-defined]
    if isinstance(lhs, e.Constant) == isinstance(rhs, e.Constant):
        return None
    return (rhs, lhs.data.numpy()) if isinstance(lhs, e.Constant) else (lhs, rhs.data.numpy())


def _merged(expr: e.Expr) -> e.Expr | None:
    """(x + b) + c -> x + (b + c); (x * b) * c -> x * (b * c); (x + b) * c -> x * c + b * c."""
    name = str(name_of(expr))
    outer = _with_constant(expr, name)
    if outer is None or outer[1].dtype == bool:
        return None
    inner, c = outer
    same = _with_constant(inner, name)
    if same is not None:
        return call(name, [same[0], e.Constant(np.asarray(same[1] + c if name == "add" else same[1] * c))])
    total = _with_constant(inner, "add") if name == "multiply" else None
    if total is None:
        return None
    scaled = call("multiply", [total[0], e.Constant(c)])
    return call("add", [_merged(scaled) or scaled, e.Constant(np.asarray(total[1] * c))])
