"""Evaluates what depends on constants alone, with compiled code."""

import contextlib
from typing import Any

from relayc.frontend.relay.ast.build import bind
from relayc.frontend.relay.ast.expr import Call, Constant, Expr, Function, Let, Op, Tuple, TupleGetItem
from relayc.frontend.relay.ast.functor import children, post_order, rebuilt
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module

_KEPT = ("random.", "annotation.", "on_device", "device_copy")
"""Operators, or namespaces of them, that are not evaluated."""


def fold_constant(mod: RelayModule) -> RelayModule:
    """Evaluates what depends on constants alone.

    Operators without operands (zeros) stay: their results may be large. What fails when it is evaluated stays, too.
    """
    return infer_module(mod.map_functions(folded))


def folded(root: Any) -> Any:
    """An expression in which what depends on constants alone is evaluated."""
    known = _known(root)
    nodes = list(post_order(root))
    users = [part for node in nodes if node not in known for part in children(node)]
    wanted = [node for node in dict.fromkeys([*users, root]) if node in known and any(isinstance(n, Call) for n in post_order(node))]
    made: dict[Expr, Expr] = {}
    if wanted:
        from relayc.relay.executor import create_executor

        with contextlib.suppress(ValueError):  # what fails does so where the program runs
            results = create_executor("graph").evaluate(Function([], Tuple(wanted)))()
            made = dict(zip(wanted, map(_constant, results), strict=True))
    for node in nodes:
        if isinstance(node, Let) and isinstance(made[node.value], Constant):  # its variable is the constant
            made[node] = bind(made[node.body], {node.var: made[node.value]})
        elif node not in made:
            made[node] = rebuilt(node, iter([made[part] for part in children(node)]))
    return made[root]


def _known(root: Expr) -> set[Expr]:
    """The expressions that depend on constants alone."""
    known: set[Expr] = set()
    for node in post_order(root):
        operands = [part for part in children(node) if not isinstance(part, Op)]
        folds = isinstance(node, Call) and isinstance(node.op, Op) and bool(operands) and not node.op.name.startswith(_KEPT)
        is_value = folds or isinstance(node, (Tuple, TupleGetItem))
        if isinstance(node, Constant) or (is_value and all(part in known for part in operands)):
            known.add(node)
    return known


def _constant(value: Any) -> Expr:
    return Tuple(map(_constant, value)) if isinstance(value, list) else Constant(value)
