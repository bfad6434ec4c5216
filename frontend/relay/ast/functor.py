"""Visitors of expressions and types: a method for each kind of node.

Where a subclass of ExprVisitor or ExprMutator leaves the method of a kind of node as it is, nodes of this kind are visited without nested
calls: programs may be deeper than Python's stack. Methods of subclasses call `visit` as they like.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from relayc.frontend.relay.ast.base import Node
from relayc.frontend.relay.ast.expr import Call, Clause, Expr
from relayc.frontend.relay.ast.types import Type
from relayc.trampoline import Call as TrampolineCall
from relayc.trampoline import each, trampoline

N = TypeVar("N")

_EXPR_METHODS = {
    "Constant": "visit_constant",
    "Var": "visit_var",
    "GlobalVar": "visit_global_var",
    "Op": "visit_op",
    "Call": "visit_call",
    "Tuple": "visit_tuple",
    "TupleGetItem": "visit_tuple_getitem",
    "Let": "visit_let",
    "If": "visit_if",
    "Function": "visit_function",
    "RefCreate": "visit_ref_create",
    "RefRead": "visit_ref_read",
    "RefWrite": "visit_ref_write",
    "Constructor": "visit_constructor",
    "Match": "visit_match",
}
_TYPE_METHODS = {
    "TypeVar": "visit_type_var",
    "IncompleteType": "visit_incomplete_type",
    "TensorType": "visit_tensor_type",
    "FuncType": "visit_func_type",
    "TupleType": "visit_tuple_type",
    "RefType": "visit_ref_type",
    "GlobalTypeVar": "visit_global_type_var",
    "TypeCall": "visit_type_call",
    "TypeData": "visit_type_data",
    "TypeRelation": "visit_type_relation",
}


def children(expr: Expr) -> list[Expr]:
    """The expressions directly in an expression, in the order in which they are visited; of a match, the results of its clauses."""
    found: list[Expr] = []
    for name in expr.parts:
        value = getattr(expr, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Clause):
                found.append(part.rhs)
            elif isinstance(part, Expr):
                found.append(part)
    return found


def rebuilt(expr: Expr, parts: Iterator[Expr]) -> Expr:
    """An expression with others in the place of its `children`; itself where these are the same objects."""

    def put(part: Any) -> Any:
        if isinstance(part, Clause):
            rhs = next(parts)
            return part if rhs is part.rhs else Clause(part.lhs, rhs)
        return next(parts) if isinstance(part, Expr) else part

    values = {name: getattr(expr, name) for name in expr.parts}
    return expr.replace(**{name: tuple(map(put, v)) if isinstance(v, tuple) else put(v) for name, v in values.items()})


def with_parts(expr: Expr, made: Mapping[Expr, Expr]) -> Expr:
    """An expression with what has been made of its `children` in their place; itself where these are the same objects."""
    return rebuilt(expr, iter([made[part] for part in children(expr)]))


def pre_order(roots: Iterable[Any], parts: Callable[[Any], Iterable[N]]) -> Iterator[N]:
    """The nodes reachable from some nodes by `parts`, each once, before its parts."""
    seen: set[N] = set()
    waiting = list(roots)[::-1]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node
            waiting.extend(list(parts(node))[::-1])


def after_parts(root: N, parts: Callable[[N], list[N]]) -> Iterator[N]:
    """The nodes reachable from one by `parts`, each once, after its parts."""
    seen: set[N] = set()
    waiting: list[tuple[N, bool]] = [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting.extend((part, False) for part in reversed(parts(node)))


def post_order(expr: Expr, parts: Callable[[Expr], list[Expr]] = children) -> Iterator[Expr]:
    """Every expression in an expression once, after its parts, which `parts` returns."""
    return after_parts(expr, parts)


def rewritten(expr: Expr, change: Callable[[Expr, Expr], Expr], made: dict[Expr, Expr] | None = None) -> Expr:
    """An expression after a function of every expression in it once, and of the same one on parts that have been changed.

    Args:
      made: replacements that are there before, and where others are noted.
    """
    made = {} if made is None else made
    for node in post_order(expr):
        if node not in made:
            made[node] = change(node, with_parts(node, made))
    return made[expr]


def replace_calls(expr: Expr, change: Callable[[Call, Call], Expr | None]) -> Expr:
    """Replaces calls in an expression.

    Args:
      change: receives a call, and the same call with replaced arguments; returns the replacement, None for the latter.
    """

    def of(node: Expr, new: Expr) -> Expr:
        found = change(node, new) if isinstance(node, Call) and isinstance(new, Call) else None
        return new if found is None else found

    return rewritten(expr, of)


class ExprFunctor:
    """Calls a method for each kind of expression; the subclass defines them. Results are kept by node in `memo_map`."""

    def __init__(self) -> None:
        self.memo_map: dict[Expr, Any] = {}

    def visit(self, expr: Expr) -> Any:
        """The result of the method for this kind of expression; computed once for each node."""
        if expr not in self.memo_map:
            self.memo_map[expr] = self._method(expr)(expr)
        return self.memo_map[expr]

    def _method(self, expr: Expr) -> Callable[[Expr], Any]:
        return getattr(self, method_of(expr))

    def _undefined(self, expr: Expr) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: no method for {type(expr).__name__}")


def method_of(expr: Expr) -> str:
    """The name of the method that visits a kind of expression. Raises TypeError for what is no expression."""
    for cls in type(expr).__mro__:
        if cls.__name__ in _EXPR_METHODS:
            return _EXPR_METHODS[cls.__name__]
    raise TypeError(f"expected an expression, found {type(expr).__name__}")


class ExprVisitor(ExprFunctor):
    """Visits every expression once; ignores the results of methods."""

    def visit(self, expr: Expr) -> None:
        waiting = [expr]
        while waiting:
            node = waiting.pop()
            if node in self.memo_map:
                continue
            self.memo_map[node] = None
            if getattr(type(self), method_of(node)) is ExprVisitor._visit_parts:
                waiting.extend(reversed(children(node)))
            else:
                self._method(node)(node)

    def _visit_parts(self, expr: Expr) -> None:
        for part in children(expr):
            self.visit(part)


class ExprMutator(ExprFunctor):
    """Transforms an expression node by node; the result is the same object if nothing changes."""

    def visit(self, expr: Expr) -> Expr:
        return trampoline(self._visit(expr))

    def _visit(self, expr: Expr) -> TrampolineCall[Expr]:
        if expr in self.memo_map:
            return self.memo_map[expr]
        if getattr(type(self), method_of(expr)) is ExprMutator._rebuild:
            parts = yield each(self._visit(part) for part in children(expr))
            found = rebuilt(expr, iter(parts))
        else:
            found = self._method(expr)(expr)
        self.memo_map[expr] = found
        return found

    def _rebuild(self, expr: Expr) -> Expr:
        return rebuilt(expr, iter([self.visit(part) for part in children(expr)]))


for _name in _EXPR_METHODS.values():
    setattr(ExprFunctor, _name, ExprFunctor._undefined)
    setattr(ExprVisitor, _name, ExprVisitor._visit_parts)
    setattr(ExprMutator, _name, ExprMutator._rebuild)


# ---- types ---------------------------------------------------------------------------------------------------------------------------


class TypeFunctor:
    """Calls a method for each kind of type; the subclass defines them."""

    def visit(self, type_: Type) -> Any:
        """The result of the method for this kind of type."""
        name = _TYPE_METHODS.get(type(type_).__name__)
        if name is None:
            raise TypeError(f"expected a type, found {type(type_).__name__}")
        return getattr(self, name)(type_)

    def _undefined(self, type_: Type) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: no method for {type(type_).__name__}")


class TypeVisitor(TypeFunctor):
    """Visits the types in a type."""

    def _visit_parts(self, type_: Type) -> None:
        for part in type_parts(type_):
            self.visit(part)


class TypeMutator(TypeFunctor):
    """Transforms a type; the result is the same object if nothing changes."""

    def _rebuild(self, type_: Type) -> Type:
        return rebuilt_type(type_, self.visit)


for _name in _TYPE_METHODS.values():
    setattr(TypeFunctor, _name, TypeFunctor._undefined)
    setattr(TypeVisitor, _name, TypeVisitor._visit_parts)
    setattr(TypeMutator, _name, TypeMutator._rebuild)


def type_parts(type_: Node) -> Iterator[Type]:
    """The types directly in a type."""
    for name in type_.parts:
        value = getattr(type_, name)
        yield from (part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Type))


def rebuilt_type(type_: Type, change: Callable[[Type], Any]) -> Type:
    """A type with `change` applied to the types directly in it; itself if these are the same objects."""

    def put(value: Any) -> Any:
        return change(value) if isinstance(value, Type) else value

    old = [getattr(type_, name) for name in type_.parts]
    new = [tuple(map(put, value)) if isinstance(value, tuple) else put(value) for value in old]
    same = all(a is b or (isinstance(a, tuple) and all(x is y for x, y in zip(a, b, strict=True))) for a, b in zip(old, new, strict=True))
    return type_ if same else type(type_)(*new)
