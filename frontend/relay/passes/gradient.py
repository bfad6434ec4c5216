"""The gradient of a function: with its result, the derivatives of the sum of its elements by each parameter.

Graphs are differentiated backwards, from the result. What lets bind is a part of the graph, calls of known functions are their bodies, and
branches have gradients of their own.
"""

from collections.abc import Callable
from typing import Any

from relayc.dialects.relay.errors import RelayError, check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.analysis import free_vars
from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.functor import ExprMutator, post_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_expr
from relayc.frontend.relay.op.functions import op
from relayc.frontend.relay.passes.gradients import gradient_of_call
from relayc.frontend.relay.passes.normal_forms import basic_block_form, graph_form
from relayc.frontend.relay.passes.unused import reaches

MODES = ("higher_order", "first_order")


def gradient(expr: e.Expr, mod: RelayModule | None = None, mode: str = "higher_order") -> e.Function:
    """A function of the same parameters that gives the result and a tuple of the gradients by these.

    Args:
      expr: a function on tensors, or the name of one of `mod`.
      mode: one of Relay's modes; both give the same.

    Raises:
      RelayError: an operator without a gradient, or what is no graph: references, data types, recursion.
    """
    check(mode in MODES, "gradient: mode", f"one of {', '.join(MODES)}", repr(mode))
    function = mod[expr] if isinstance(expr, e.GlobalVar) and mod is not None else expr
    if not isinstance(function, e.Function):
        raise RelayError(f"gradient: expected a function, found {type(function).__name__}")
    body = function.body
    while True:  # functions are known where lets are gone, and lets in them come with their bodies
        inner = _Inline(mod).visit(graph_form(body))
        if inner is body:
            break
        body = inner
    typed = infer_expr(e.Function(function.params, body, function.ret_type, function.type_params), mod)
    assert isinstance(typed, e.Function)
    found = _backward(typed.body, _filled(typed.body.checked_type, op.ones))
    grads = [found.get(p.vid) for p in typed.params]
    filled = [_zeros(p.checked_type) if grad is None else grad for p, grad in zip(typed.params, grads, strict=True)]
    made = e.Function(typed.params, e.Tuple([typed.body, e.Tuple(filled)]), None, typed.type_params, function.attrs)
    normal = basic_block_form(made)  # branches of the function and of its gradients share values
    assert isinstance(normal, e.Function)
    return normal


class _Inline(ExprMutator):
    """Puts the bodies of functions in the place of their calls."""

    def __init__(self, mod: RelayModule | None) -> None:
        super().__init__()
        self._mod = mod

    def visit_call(self, call: e.Call) -> e.Expr:
        callee = call.op
        if isinstance(callee, e.GlobalVar) and self._mod is not None:
            is_recursive = reaches(self._mod, callee.name_hint, callee.name_hint)
            check(not is_recursive, "gradient", "functions that do not call themselves", callee.name_hint)
            callee = self._mod[callee]
        if not isinstance(callee, (e.Op, e.Function)):
            raise RelayError(f"gradient: expected calls of operators and functions that are known, found {type(callee).__name__}")
        args = tuple(self.visit(arg) for arg in call.args)
        if isinstance(callee, e.Op):
            return call.replace(args=args)
        return bind(e.Function([], callee.body), dict(zip(callee.params, args, strict=True))).body  # type: ignore[attr-defined]


def _filled(type_: t.Type, fill: Callable[..., e.Expr]) -> Any:
    """A gradient of one number: of a tuple, a list of those of its fields."""
    if isinstance(type_, t.TupleType):
        return [_filled(field, fill) for field in type_.fields]
    if not isinstance(type_, t.TensorType):
        raise RelayError(f"gradient: expected tensors and tuples of them, found {type_}")
    return fill(type_.shape, type_.dtype)


def _zeros(type_: t.Type) -> e.Expr:
    return _whole(_filled(type_, op.zeros), type_)


def _backward(root: e.Expr, seed: Any) -> dict[e.Id, e.Expr]:
    """The gradients by free variables of a typed expression, from the gradient of its result."""
    grads: dict[Any, Any] = {root: seed}

    def add(expr: e.Expr, grad: Any) -> None:
        if grad is not None and not isinstance(expr, e.Constant):
            key = expr.vid if isinstance(expr, e.Var) else expr
            grads[key] = _sum(grads.get(key), grad)

    if isinstance(root, e.Var):
        return {root.vid: _whole(seed, root.checked_type)}
    inner = {node for branch in post_order(root) if isinstance(branch, e.If) for node in _inside(branch)}
    for node in reversed([n for n in post_order(root) if n not in inner or n is root]):
        grad = None if isinstance(node, (e.Var, e.Op)) else grads.pop(node, None)
        if grad is None:
            continue
        if isinstance(node, e.Tuple):
            for i, part in enumerate(node.fields):
                add(part, grad[i] if isinstance(grad, list) else e.TupleGetItem(grad, i))
        elif isinstance(node, e.TupleGetItem):
            count = len(node.tuple_value.checked_type.fields)  # type: ignore[attr-defined]
            add(node.tuple_value, [grad if i == node.index else None for i in range(count)])
        elif isinstance(node, e.If):
            for var, part in _of_branches(node, grad):
                add(var, part)
        elif isinstance(node, e.Call) and isinstance(node.op, e.Op):
            _call(node, grad, add)
        elif not isinstance(node, e.Constant):
            raise RelayError(f"gradient: expected a graph of operators, found {type(node).__name__}")
    types = {v.vid: v.checked_type for v in free_vars(root)}
    return {key: _whole(grad, types[key]) for key, grad in grads.items() if isinstance(key, e.Id)}


def _call(node: e.Call, grad: Any, add: Any) -> None:
    parts = iter(gradient_of_call(node, grad))
    for arg in node.args:
        type_ = arg.checked_type
        add(arg, [next(parts) for _ in type_.fields] if isinstance(type_, t.TupleType) else next(parts))


def _inside(branch: e.If) -> set[e.Expr]:
    """The expressions of branches; those that are used outside of them too have their gradients there by the variables in them."""
    return {node for part in (branch.true_branch, branch.false_branch) for node in post_order(part)}


def _of_branches(node: e.If, grad: Any) -> list[tuple[e.Var, e.Expr]]:
    """The gradients by the variables in the branches of an if."""
    sides = [_backward(branch, grad) for branch in (node.true_branch, node.false_branch)]
    variables = {v.vid: v for v in free_vars(e.Tuple([node.true_branch, node.false_branch]))}
    found: list[tuple[e.Var, e.Expr]] = []
    for vid in dict.fromkeys([*sides[0], *sides[1]]):
        then, otherwise = (side.get(vid) or _zeros(variables[vid].checked_type) for side in sides)
        found.append((variables[vid], e.If(node.cond, then, otherwise)))
    return found


def _sum(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, list) or isinstance(b, list):
        count = len(a if isinstance(a, list) else b)
        sides = [v if isinstance(v, list) else [e.TupleGetItem(v, i) for i in range(count)] for v in (a, b)]
        return [_sum(x, y) for x, y in zip(*sides, strict=True)]
    return a + b


def _whole(grad: Any, type_: t.Type) -> e.Expr:
    """A gradient as an expression, with zeros for fields that have none."""
    if isinstance(grad, list):
        assert isinstance(type_, t.TupleType)
        return e.Tuple([_zeros(part) if g is None else _whole(g, part) for g, part in zip(grad, type_.fields, strict=True)])
    return grad
