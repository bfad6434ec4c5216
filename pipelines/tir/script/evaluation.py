"""Expressions of a script: evaluated in place, by Python's operators on the values of `values`."""

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.tir.script import values
from relayc.pipelines.tir.script.building import Building
from relayc.pipelines.tir.script.source import Source, kind_of
from relayc.pipelines.tir.script.specs import ARGUMENTS, GUARDED, REGIONS
from relayc.pipelines.tir.script.values import Expr

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _extreme(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        if not any(isinstance(a, Expr) for a in args):
            return getattr(builtins, name)(*args)
        found = args[0]
        for other in args[1:]:
            found = values.binary(f"{name}imum", found, other)
        return found

    return function


BUILTINS: dict[str, Any] = {**vars(builtins), "min": _extreme("min"), "max": _extreme("max")}
"""Names with a default meaning; abs dispatches on its argument."""


class ScriptExpressions(ast.NodeVisitor):
    """Evaluates expressions.

    Args:
      lookup: the value of a name; raises KeyError for an unknown one.
    """

    def __init__(self, source: Source, lookup: Callable[[str], Any]) -> None:
        self.source, self.lookup = source, lookup
        self.building: Building | None = None

    def __call__(self, node: ast.expr) -> Any:
        """The value of an expression. Raises ScriptError."""
        with self.source.at(node):
            return self.visit(node)

    def generic_visit(self, node: ast.AST) -> Any:
        raise self.source.error(node, f"expected an expression of a script, found {kind_of(node)}")

    @contextmanager
    def guarded(self, guarded: bool = True) -> Iterator[None]:
        """Context in which values loaded are unused where they are out of bounds."""
        if self.building is None or not guarded:
            yield
            return
        self.building.guarded += 1
        try:
            yield
        finally:
            self.building.guarded -= 1

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        try:
            return self.lookup(node.id)
        except KeyError:
            raise RelayError(f"expected a name that is known here, found {node.id}") from None

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner = self(node.value)
        try:
            return getattr(owner, node.attr)
        except AttributeError:
            what = ast.unparse(node.value)
            raise RelayError(f"{what}: expected a name that it has, found {what}.{node.attr}") from None

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self(node.value)[self(node.slice)]

    def visit_Slice(self, node: ast.Slice) -> slice:
        return slice(*(None if part is None else self(part) for part in (node.lower, node.upper, node.step)))

    def visit_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._elements(node.elts))

    def visit_List(self, node: ast.List) -> list[Any]:
        return self._elements(node.elts)

    def _elements(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += list(self(node.value))
            else:
                found.append(self(node))
        return found

    def visit_Dict(self, node: ast.Dict) -> dict[Any, Any]:
        if any(key is None for key in node.keys):
            raise RelayError("expected keys and values, found **")
        return {self(key): self(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None}

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if type(node.op) not in BINARY:
            raise RelayError(f"expected an operator of a script, found {type(node.op).__name__}")
        left = self(node.left)
        return BINARY[type(node.op)](left, self(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self(node.operand)
        if isinstance(node.op, ast.Not):
            return values.negated(value) if isinstance(value, Expr) else not value
        return _UNARY[type(node.op)](value)

    def visit_Compare(self, node: ast.Compare) -> Any:
        found: Any = None
        left = self(node.left)
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            if type(kind) not in _COMPARISONS:
                raise RelayError(f"expected a comparison of values, found {type(kind).__name__.lower()}")
            right = self(right_node)
            made = _COMPARISONS[type(kind)](left, right)
            found = made if found is None else _both(found, made)
            left = right
        return found

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        found = self(node.values[0])
        for part in node.values[1:]:
            if not isinstance(found, Expr) and bool(found) != is_and:
                return found
            with self.guarded(isinstance(found, Expr)):
                other = self(part)
            found = _both(found, other) if is_and else _either(found, other)
        return found

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        condition = self(node.test)
        if not isinstance(condition, Expr):
            return self(node.body if condition else node.orelse)
        with self.guarded():
            taken, other = self(node.body), self(node.orelse)
        return values.select(condition, taken, other, "if else")

    def visit_Call(self, node: ast.Call) -> Any:
        function = self(node.func)
        kind = ARGUMENTS.get(function) if callable(function) else None
        if self.building is not None and kind == REGIONS:
            self.building.says_regions = True
            try:
                return function(*self._elements(node.args))
            finally:
                self.building.says_regions = False
        args: list[Any] = []
        for i, part in enumerate(node.args):
            with self.guarded(kind == GUARDED and i > 0):
                args += self._elements([part])
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            with self.guarded(kind == GUARDED):
                value = self(keyword.value)
            keywords |= {keyword.arg: value} if keyword.arg is not None else _mapping(value)
        if not callable(function):
            raise RelayError(f"expected a function, found {function!r}")
        return function(*args, **keywords)


def _both(a: Any, b: Any) -> Any:
    return values.both(a, b) if isinstance(a, Expr) or (isinstance(b, Expr) and a) else a and b


def _either(a: Any, b: Any) -> Any:
    return values.either(a, b) if isinstance(a, Expr) else a or b


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RelayError(f"expected a dictionary behind **, found {value!r}")
    return value
