"""Rewrites matches of patterns, or moves them into functions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.frontend.relay.ast.equality import structural_equal
from relayc.frontend.relay.ast.expr import Call, Constant, Expr, Function, If, Let, Op, Tuple, TupleGetItem, Var
from relayc.frontend.relay.ast.functor import after_parts, children, post_order, rewritten, with_parts
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.dataflow_pattern import patterns as p
from relayc.frontend.relay.dataflow_pattern.matching import Graph, Matcher
from relayc.frontend.relay.inference import infer_expr

PARTITIONED = "PartitionedFromPattern"
"""The attribute of functions created by `partition`: the operators in it."""
_MOST_ROUNDS = 100


@dataclass
class Group:
    """A match: its last expression, what each pattern matched, and the function that it is.

    Attributes:
      args: the inputs, in the order of the function's parameters.
    """

    root: Expr
    found: Mapping[p.DFPattern, Sequence[Expr]]
    function: Function
    args: Sequence[Expr]


def match(pattern: p.DFPattern, expr: Expr) -> bool:
    """Whether an expression matches a pattern."""
    return Matcher(Graph(expr)).match(pattern, expr)


def groups_of(pattern: p.DFPattern, root: Expr) -> dict[Expr, Group]:
    """The matches in an expression by their last expressions: matches are disjoint, and only their last expressions are used outside."""
    graph = Graph(root)
    order = list(after_parts(pattern, p.DFPattern.inner))
    taken: set[Expr] = set()
    made: dict[Expr, Group] = {}
    for expr in reversed(graph.nodes):
        if expr in taken:
            continue
        if isinstance(expr, Function) and PARTITIONED in expr.attrs:
            taken.update(post_order(expr))
            continue
        matcher = Matcher(graph)
        if matcher.match(pattern, expr):
            group = _group(order, matcher, expr, len(made), taken)
            if group is not None:
                made[expr] = group
    return made


def _group(order: Sequence[p.DFPattern], matcher: Matcher, root: Expr, number: int, taken: set[Expr]) -> Group | None:
    """The match as a group, whose expressions are then marked as taken; None if there is no match."""
    inner: set[Expr] = set()  # what is no input: along paths, and in functions
    for pattern in order:
        matched = matcher.found.get(pattern, ())
        if isinstance(pattern, p.DominatorPattern):
            inner.update(expr for part in (pattern.parent, pattern.path) for expr in matcher.found.get(part, ()))
        elif isinstance(pattern, p.FunctionPattern):
            inner.update(node for function in matched for node in post_order(function))
    inputs: dict[Expr, Var] = {}
    for pattern in order:
        for expr in _inputs(pattern, matcher.found.get(pattern, ())):
            if expr not in inner and expr not in inputs and not isinstance(expr, (Op, Function)) and not _is_embedded(expr, pattern):
                inputs[expr] = Var(f"FunctionVar_{number}_{len(inputs)}")
    inputs.pop(root, None)
    nodes = _extracted(root, inputs)
    for node in nodes:
        if node in inputs or isinstance(node, (Op, Function, Constant)):
            continue
        if node in taken:
            return None
        if node is not root and not all(user in nodes or matcher.graph.ends_in(user, root) for user in matcher.graph.users(node)):
            return None
    taken.update(node for node in nodes if node not in inputs and not isinstance(node, (Op, Constant)))
    name = "".join(_name(node) for node in nodes if node not in inputs)
    function = Function(list(inputs.values()), nodes[root], None, None, {PARTITIONED: name})
    return Group(root, {key: list(value) for key, value in matcher.found.items()}, function, list(inputs))


def _inputs(pattern: p.DFPattern, matched: Sequence[Expr]) -> Iterator[Expr]:
    """The matched expressions that are inputs: those whose patterns have no subpatterns, and arguments and fields without a pattern."""
    for expr in matched:
        if isinstance(pattern, p.TuplePattern) and pattern.fields is None and isinstance(expr, Tuple):
            yield from expr.fields
        elif isinstance(pattern, p.CallPattern) and pattern.args is None and isinstance(expr, Call):
            yield from expr.args
        elif not pattern.inner():
            yield expr


def _is_embedded(expr: Expr, pattern: p.DFPattern) -> bool:
    """Whether a pattern says that an expression is a constant, which stays in the function."""
    is_constant = isinstance(pattern, p.ConstantPattern) or (isinstance(pattern, p.ExprPattern) and isinstance(pattern.expr, Constant))
    return isinstance(expr, Constant) and is_constant


def _extracted(root: Expr, inputs: Mapping[Expr, Var]) -> dict[Expr, Expr]:
    """The expressions in one, up to inputs, each with what it is with variables in their place."""
    made: dict[Expr, Expr] = {}
    for node in post_order(root, lambda node: [] if node in inputs else children(node)):
        made[node] = inputs[node] if node in inputs else with_parts(node, made)
    return made


def _name(expr: Expr) -> str:
    """What an expression is in the name of its function."""
    if isinstance(expr, Call):
        return f"{expr.op.name}_" if isinstance(expr.op, Op) else "FunctionCall_"
    if isinstance(expr, TupleGetItem):
        return f"TupleGetItem{expr.index}_"
    return {Tuple: "Tuple_", If: "If_", Let: "Let_"}.get(type(expr), "")


def _replaced(pattern: p.DFPattern, root: Expr, change: Callable[[Group, Expr, Mapping[Expr, Expr]], Expr]) -> Expr:
    """Replaces each match: `change` receives it, its last expression with changed parts, and what the expressions before have become."""
    groups = groups_of(pattern, root)
    made: dict[Expr, Expr] = {}
    return rewritten(root, lambda pre, post: change(groups[pre], post, made) if pre in groups else post, made)


def partition(
    pattern: p.DFPattern, expr: Expr, attrs: Mapping[str, Any] | None = None, check: Callable[[Expr], bool] = lambda expr: True
) -> Expr:
    """An expression in which each match of a pattern is a call of a function of its own.

    Args:
      attrs: attributes of these functions.
      check: whether a match, by its last expression, is made a function.
    """

    def called(group: Group, post: Expr, made: Mapping[Expr, Expr]) -> Expr:
        if not check(group.root):
            return post
        function = group.function.with_attr(attrs) if attrs else group.function
        return Call(function, [made[arg] for arg in group.args])

    return _replaced(pattern, expr, called)


class DFPatternCallback:
    """A rewrite of what a pattern matches; the subclass sets `pattern` and defines `callback`.

    Args:
      require_type: whether types are inferred before.
      rewrite_once: whether it is done no more once it has changed anything.
    """

    pattern: p.DFPattern

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def rewrite(self, expr: Expr) -> Expr:
        """Rewrites all matches in an expression."""
        return rewrite(self, expr)

    def callback(self, pre: Expr, post: Expr, node_map: Mapping[p.DFPattern, Sequence[Expr]]) -> Expr:
        """What takes the place of a match.

        Args:
          pre: the last expression of the match.
          post: the same, with what is in it rewritten.
          node_map: what each pattern has matched, rewritten.
        """
        raise NotImplementedError


def rewrite(callbacks: "DFPatternCallback | Sequence[DFPatternCallback]", expr: Expr, mod: RelayModule | None = None) -> Expr:
    """Rewrites all matches repeatedly until nothing changes. Raises TypeInferenceError."""
    waiting = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    for _ in range(_MOST_ROUNDS):
        before = expr
        for each in list(waiting):
            if each.require_type:
                expr = infer_expr(expr, mod)
            new = _rewritten(each, expr)
            if each.rewrite_once and not structural_equal(new, expr):
                waiting.remove(each)
            expr = new
        if not waiting or structural_equal(before, expr):
            break
    return expr


def _rewritten(callback: DFPatternCallback, expr: Expr) -> Expr:
    def change(group: Group, post: Expr, made: Mapping[Expr, Expr]) -> Expr:
        now = {**made, group.root: post}
        return callback.callback(group.root, post, {pattern: [now[e] for e in found] for pattern, found in group.found.items()})

    return _replaced(callback.pattern, expr, change)
