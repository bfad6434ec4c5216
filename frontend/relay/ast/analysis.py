"""Variables and type variables of an expression, and tests that it is well formed."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.base import node_of
from relayc.frontend.relay.ast.functor import children, post_order, pre_order, type_parts

if TYPE_CHECKING:
    from relayc.frontend.relay.ast.module import RelayModule

_Found = TypeVar("_Found")


def post_order_visit(expr: e.Expr, fvisit: Callable[[e.Expr], Any]) -> None:
    """Calls a function of every expression in an expression, after those in it, once for each node."""
    for node in post_order(expr):
        fvisit(node)


def _pre_order(expr: e.Expr) -> Iterator[e.Expr]:
    return pre_order([node_of(expr)], _with_patterns)


def _with_patterns(node: e.Expr) -> list[e.Expr]:
    """The expressions directly in one, and the variables of patterns before what uses them."""
    if not isinstance(node, e.Match):
        return children(node)
    return [node.data, *(part for clause in node.clauses for part in (*e.pattern_vars(clause.lhs), clause.rhs))]


def _once(values: Iterable[_Found]) -> list[_Found]:
    return list(dict.fromkeys(values))


def _bound_in(node: e.Expr) -> list[e.Var]:
    if isinstance(node, e.Function):
        return list(node.params)
    if isinstance(node, e.Let):
        return [node.var]
    if isinstance(node, e.Match):
        return [var for clause in node.clauses for var in e.pattern_vars(clause.lhs)]
    return []


def all_vars(expr: e.Expr) -> list[e.Var]:
    """The variables in an expression, those that are bound and never used too, in order."""
    return _once(node for node in _pre_order(expr) if isinstance(node, e.Var))


def bound_vars(node: "e.Expr | e.Pattern") -> list[e.Var]:
    """The variables that an expression or a pattern binds, in order."""
    if isinstance(node, e.Pattern):
        return e.pattern_vars(node)
    return _once(var for inner in _pre_order(node) for var in _bound_in(inner))


def free_vars(expr: e.Expr) -> list[e.Var]:
    """The variables that an expression uses and does not bind, in order."""
    bound = set(bound_vars(expr))
    return [var for var in all_vars(expr) if var not in bound]


# ---- type variables


def _types_in(node: e.Expr) -> list[t.Type]:
    if isinstance(node, e.Var):
        return [] if node.type_annotation is None else [node.type_annotation]
    if isinstance(node, e.Function):
        return [*node.type_params, *([] if node.ret_type is None else [node.ret_type])]
    return list(node.type_args) if isinstance(node, e.Call) else []


def _type_nodes(root: "e.Expr | t.Type") -> Iterator[t.Type]:
    types = [root] if isinstance(root, t.Type) else [type_ for node in _pre_order(root) for type_ in _types_in(node)]
    waiting = list(reversed(types))
    while waiting:
        node = waiting.pop()
        yield node
        parts = list(type_parts(node))
        if isinstance(node, t.FuncType):  # bindings come before uses
            parts = [*node.type_params, *node.arg_types, node.ret_type]
        waiting.extend(reversed(parts))


def all_type_vars(node: "e.Expr | t.Type", mod: "RelayModule | None" = None) -> list[t.TypeVar]:
    """The type variables in an expression or a type, in order."""
    return _once(part for part in _type_nodes(node) if isinstance(part, t.TypeVar))


def bound_type_vars(node: "e.Expr | t.Type", mod: "RelayModule | None" = None) -> list[t.TypeVar]:
    """The type variables that functions and function types in an expression or a type bind, in order."""
    binders: list[Any] = [] if isinstance(node, t.Type) else [n for n in _pre_order(node) if isinstance(n, e.Function)]
    binders += [part for part in _type_nodes(node) if isinstance(part, t.FuncType)]
    data = list(node.type_vars) if isinstance(node, e.TypeData) else []
    return _once([*data, *(var for binder in binders for var in binder.type_params)])


def free_type_vars(node: "e.Expr | t.Type", mod: "RelayModule | None" = None) -> list[t.TypeVar]:
    """The type variables that an expression or a type uses and does not bind, in order."""
    bound = set(map(id, bound_type_vars(node)))
    return [var for var in all_type_vars(node) if id(var) not in bound]


# ---- well-formedness


def well_formed(program: "e.Expr | RelayModule") -> bool:
    """Whether every variable is bound once at most, and is used only where its binding holds or nowhere bound."""
    functions = [program] if isinstance(program, e.Expr) else list(program.functions.values())
    return all(map(_is_well_formed, functions))


def _is_well_formed(root: e.Expr) -> bool:
    bound: set[e.Var] = set()
    live: set[e.Var] = set()
    free: set[e.Var] = set()
    seen: set[e.Expr] = set()
    waiting: list[tuple[str, Any]] = [("visit", root)]
    while waiting:
        action, item = waiting.pop()
        if action == "visit" and not isinstance(item, e.Var):
            if item in seen:
                continue
            seen.add(item)
        if action == "end":
            live.difference_update(item)
        elif action == "bind":
            if any(var in bound for var in item) or len(set(item)) < len(item):
                return False
            bound.update(item)
            live.update(item)
        elif isinstance(item, e.Var):
            if item not in live:
                free.add(item)
        elif isinstance(item, e.Let):
            names = [item.var]
            steps = [("bind", names), ("visit", item.value), ("visit", item.body), ("end", names)]
            waiting.extend(reversed(steps))
        elif isinstance(item, e.Function):
            waiting.extend(reversed([("bind", item.params), ("visit", item.body), ("end", item.params)]))
        elif isinstance(item, e.Match):
            steps = [("visit", item.data)]
            for clause in item.clauses:
                names = e.pattern_vars(clause.lhs)
                steps += [("bind", names), ("visit", clause.rhs), ("end", names)]
            waiting.extend(reversed(steps))
        else:
            waiting.extend(("visit", part) for part in reversed(children(item)))
    return not free & bound
