"""Matches patterns with expressions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from relayc.dialects.relay.base import Pattern as FusionPattern
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.equality import structural_equal
from relayc.frontend.relay.ast.expr import Call, Constant, Expr, Function, If, Let, Op, Tuple, TupleGetItem, Var
from relayc.frontend.relay.ast.functor import children, post_order, pre_order
from relayc.frontend.relay.dataflow_pattern import patterns as p
from relayc.frontend.relay.inference import infer_expr
from relayc.frontend.relay.op.table import plain, signature

OP_PATTERN = "TOpPattern"
"""The attribute of operators that determines how they fuse."""


class Graph:
    """The expressions in an expression, each after its parts, and their users."""

    def __init__(self, root: Expr) -> None:
        self.nodes = list(post_order(root))
        self._users: dict[Expr, list[Expr]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for part in children(node):
                self._users[part].append(node)

    def users(self, node: Expr) -> Sequence[Expr]:
        """The expressions directly around one."""
        return self._users[node]

    def ends_in(self, node: Expr, last: Expr) -> bool:
        """Whether all that is computed of an expression is computed of another one, or is that."""
        found = pre_order([node], lambda each: [] if each is last else self._users[each])
        return all(each is last or self._users[each] for each in found)


class Matcher:
    """One match of a pattern.

    Attributes:
      found: the expressions that each pattern has matched: one, or several of those along a path.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.found: dict[p.DFPattern, list[Expr]] = {}
        self._order: list[p.DFPattern] = []
        self._reuses = True

    def match(self, pattern: p.DFPattern, expr: Expr) -> bool:
        """Whether a pattern matches an expression, consistently with earlier matches; `found` has the matched expressions."""
        known = self.found.get(pattern)
        if self._reuses and known:
            return expr is known[0]
        mark = len(self._order)
        if self._match(pattern, expr):
            self.found.setdefault(pattern, []).append(expr)
            self._order.append(pattern)
            return True
        self._forget(mark)
        return False

    def _forget(self, mark: int) -> None:
        while len(self._order) > mark:
            pattern = self._order.pop()
            self.found[pattern].pop()
            if not self.found[pattern]:
                del self.found[pattern]

    def _match(self, pattern: p.DFPattern, expr: Expr) -> bool:
        for cls in type(pattern).__mro__:
            if cls in _RULES:
                return _RULES[cls](self, pattern, expr)
        raise TypeError(f"expected a pattern, found {pattern!r}")

    def all(self, patterns: Sequence[p.DFPattern], exprs: Sequence[Expr]) -> bool:
        """Whether patterns match expressions one by one."""
        mark = len(self._order)
        if len(patterns) == len(exprs) and all(self.match(a, e) for a, e in zip(patterns, exprs, strict=True)):
            return True
        self._forget(mark)
        return False

    def leads_to_parent(self, pattern: p.DominatorPattern, expr: Expr) -> bool:
        """Whether all paths back from an expression match the path until they meet the parent. Variables and constants are no paths."""
        callee, reached = expr.op if isinstance(expr, Call) else None, False
        for part in children(expr):
            if part is callee:
                continue
            if not self.match(pattern.parent, part):
                if isinstance(part, (Var, Constant)):
                    continue
                if not self._on_path(pattern.path, part) or not self.leads_to_parent(pattern, part):
                    return False
            reached = True
        return reached

    def _on_path(self, path: p.DFPattern, expr: Expr) -> bool:
        """Whether the pattern of a path matches, whatever it has matched before."""
        self._reuses = False
        try:
            return self.match(path, expr)
        finally:
            self._reuses = True

    def parent_ends_in(self, pattern: p.DominatorPattern, expr: Expr) -> bool:
        """Whether a parent is used on paths to an expression only."""
        inside = list(post_order(expr))[:-1]
        return any(self.graph.ends_in(node, expr) and self.match(pattern.parent, node) for node in reversed(inside))


_Rule = Callable[[Matcher, Any, Expr], bool]
"""Whether a pattern of a class matches an expression."""


def _call(matcher: Matcher, pattern: p.CallPattern, expr: Expr) -> bool:
    if not isinstance(expr, Call):
        return False
    if matcher.match(pattern.op, expr.op):
        if pattern.args is None or matcher.all(pattern.args, expr.args):
            return True
        if (pattern.is_of("add") or pattern.is_of("multiply")) and matcher.all(pattern.args[::-1], expr.args):
            return True
    return any(matcher.match(form, expr) for form in _associated(pattern, expr))


def _associated(pattern: p.CallPattern, expr: Call) -> Iterator[p.CallPattern]:
    """Other forms of a * b / c: (a * b) / c and a * (b / c), where an expression has the other one."""
    found = expr.op.name if isinstance(expr.op, Op) else ""
    inner = {arg.op.name for arg in expr.args if isinstance(arg, Call) and isinstance(arg.op, Op)}
    args = pattern.args or ()
    if pattern.is_of("divide") and found == "multiply" and "divide" in inner:
        product = args[0]
        if isinstance(product, p.CallPattern) and product.is_of("multiply") and product.args is not None:
            for taken, other in (product.args, product.args[::-1]):
                yield p.CallPattern(product.op, (other, p.CallPattern(pattern.op, (taken, args[1]))))
    elif pattern.is_of("multiply") and found == "divide" and "multiply" in inner:
        for quotient, other in (args, args[::-1]):
            if isinstance(quotient, p.CallPattern) and quotient.is_of("divide") and quotient.args is not None:
                yield p.CallPattern(quotient.op, (p.CallPattern(pattern.op, (quotient.args[0], other)), quotient.args[1]))


def _function(matcher: Matcher, pattern: p.FunctionPattern, expr: Expr) -> bool:
    if not isinstance(expr, Function):
        return False
    return (pattern.params is None or matcher.all(pattern.params, expr.params)) and matcher.match(pattern.body, expr.body)


def _tuple(matcher: Matcher, pattern: p.TuplePattern, expr: Expr) -> bool:
    return isinstance(expr, Tuple) and (pattern.fields is None or matcher.all(pattern.fields, expr.fields))


def _field(matcher: Matcher, pattern: p.TupleGetItemPattern, expr: Expr) -> bool:
    return isinstance(expr, TupleGetItem) and pattern.index in (None, expr.index) and matcher.all(pattern.inner(), children(expr))


def _type_of(expr: Expr) -> t.Type | None:
    """The type of an expression; None if it has none."""
    try:
        return expr.checked_type_ or infer_expr(expr).checked_type
    except RelayError:
        return None


def _typed(holds: Callable[[Any, t.Type], bool]) -> _Rule:
    """The rule of a pattern that restricts another one to expressions of some types."""

    def rule(matcher: Matcher, pattern: Any, expr: Expr) -> bool:
        found = _type_of(expr)
        return found is not None and holds(pattern, found) and matcher.match(pattern.pattern, expr)

    return rule


def _with_attrs(matcher: Matcher, pattern: p.AttrPattern, expr: Expr) -> bool:
    return matcher.match(pattern.pattern, expr) and all(_has(expr, name, plain(value)) for name, value in pattern.attrs.items())


def _has(expr: Expr, name: str, value: Any) -> bool:
    """Whether an operator, a call or a function has an attribute of a value."""
    if isinstance(expr, Op):
        cls = signature(expr.name).cls
        return name == OP_PATTERN and int(FusionPattern.OPAQUE if cls is None else cls.pattern) == value
    attrs = expr.attrs if isinstance(expr, (Call, Function)) else None
    return attrs is not None and name in attrs and plain(attrs[name]) == value


def _dominated(matcher: Matcher, pattern: p.DominatorPattern, expr: Expr) -> bool:
    return matcher.match(pattern.child, expr) and matcher.leads_to_parent(pattern, expr) and matcher.parent_ends_in(pattern, expr)


_RULES: dict[type[p.DFPattern], _Rule] = {
    p.WildcardPattern: lambda matcher, pattern, expr: pattern.pattern is None or matcher.match(pattern.pattern, expr),
    p.ExprPattern: lambda _, pattern, expr: structural_equal(pattern.expr, expr),
    p.VarPattern: lambda _, pattern, expr: isinstance(expr, Var) and pattern.name in ("", expr.name_hint),
    p.ConstantPattern: lambda _, pattern, expr: isinstance(expr, Constant),
    p.CallPattern: _call,
    p.FunctionPattern: _function,
    p.IfPattern: lambda matcher, pattern, expr: isinstance(expr, If) and matcher.all(pattern.inner(), children(expr)),
    p.LetPattern: lambda matcher, pattern, expr: isinstance(expr, Let) and matcher.all(pattern.inner(), children(expr)),
    p.TuplePattern: _tuple,
    p.TupleGetItemPattern: _field,
    p.AltPattern: lambda matcher, pattern, expr: matcher.match(pattern.left, expr) or matcher.match(pattern.right, expr),
    p.TypePattern: _typed(lambda pattern, type_: structural_equal(pattern.type, type_)),
    p.DataTypePattern: _typed(lambda pattern, type_: isinstance(type_, t.TensorType) and type_.dtype == pattern.dtype),
    p.ShapePattern: _typed(lambda pattern, type_: isinstance(type_, t.TensorType) and type_.shape == pattern.shape),
    p.AttrPattern: _with_attrs,
    p.DominatorPattern: _dominated,
}
