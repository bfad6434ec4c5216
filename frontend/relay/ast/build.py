"""Short ways to make expressions: variables, constants, scopes of lets, and substitution."""

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relayc.dialects.relay.errors import check
from relayc.frontend.relay.ast.analysis import free_vars
from relayc.frontend.relay.ast.base import Span, ndarray, node_of
from relayc.frontend.relay.ast.expr import Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from relayc.frontend.relay.ast.functor import ExprMutator
from relayc.frontend.relay.ast.types import IncompleteType, TensorType, Type


def var(
    name_hint: str, type_annotation: Type | str | None = None, shape: Any = None, dtype: str = "float32", span: Span | None = None
) -> Var:
    """A variable: of a type, of the scalar type of an element type's name, of a shape and element type, or of a type to be found.

    Raises ValueError if both a type and a shape are given.
    """
    if type_annotation is not None and shape is not None:
        raise ValueError(f"var {name_hint}: expected a type or a shape, found both")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation, span)


def const(value: Any, dtype: Any = None, span: Span | None = None) -> Constant:
    """A constant of numbers, lists of them or arrays.

    Args:
      dtype: of its elements: a name, or a type that has it. By default Python's numbers are int32 (int64 where they need it), float32 and
        bool; arrays keep theirs.
    """
    name = None if dtype is None else dtype.dtype if isinstance(dtype, TensorType) else str(getattr(dtype, "__name__", dtype))
    if isinstance(value, (numbers.Number, list, tuple)) and not isinstance(value, np.generic):
        found = np.array(value)
        if not name:
            fits = found.dtype.kind != "i" or found.size == 0 or (found.min() >= -(1 << 31) and found.max() < 1 << 31)
            name = {"int64": "int32" if fits else "int64", "float64": "float32"}.get(found.dtype.name)
        value = found
    return Constant(ndarray(value, name or None), span)


def bind(expr: Expr, binds: Mapping[Var, Expr]) -> Expr:
    """An expression in which expressions take the place of variables.

    Of a function, these are no parameters any more, and variables that the expressions bring along are new ones.
    """
    mutator = ExprMutator()
    mutator.memo_map.update(binds.items())
    if not isinstance(expr, Function):
        return mutator.visit(expr)
    body = mutator.visit(expr.body)
    found = Function([p for p in expr.params if p not in binds], body, expr.ret_type, expr.type_params, expr.attrs, expr.span)
    before = set(free_vars(expr))
    added = [v for v in free_vars(found) if v not in before]
    return Function([*found.params, *added], body, expr.ret_type, expr.type_params, expr.attrs, expr.span) if added else found


def bind_params_by_name(function: Function, params: Mapping[str, Any]) -> Function:
    """A function with constants in the place of the parameters of some names. Raises RelayError if several parameters have the name."""
    binds: dict[Var, Expr] = {}
    for name, value in params.items():
        found = [p for p in function.params if p.name_hint == name]
        check(len(found) < 2, f"parameter {name}", "one of the name", len(found))
        if found:
            binds[found[0]] = value if isinstance(value, Expr) else const(value)
    result = bind(function, binds)
    assert isinstance(result, Function)
    return result


class TupleWrapper:
    """The several results of a call; each is taken out of the tuple as it is used. As an expression, they are the tuple."""

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> Expr:
        """The tuple."""
        return self.tuple_value

    asobject = astuple

    def astext(self) -> str:
        """The tuple as text."""
        return self.tuple_value.astext()

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"expected an index of {self.size} results, found {index}")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"


def as_expr(value: Any) -> Expr:
    """An expression of what stands for one: results of a call, a list of expressions as a tuple. Raises TypeError."""
    value = node_of(value)
    if isinstance(value, (list, tuple)):
        return Tuple([as_expr(v) for v in value])
    if not isinstance(value, Expr):
        raise TypeError(f"expected an expression, found {type(value).__name__}")
    return value


def in_lets(bindings: Sequence[tuple[Var, Expr]], body: Expr) -> Expr:
    """A body in which variables are bound to values, the first one outermost."""
    for variable, value in reversed(bindings):
        body = Let(variable, value, body)
    return body


class ScopeBuilder:
    """Builds nested lets and branches line by line.

    scope = relay.ScopeBuilder()
    with scope.if_scope(cond):
        y = scope.let("y", relay.exp(x))
        scope.ret(y)
    with scope.else_scope():
        scope.ret(x)
    expr = scope.get()
    """

    def __init__(self) -> None:
        self._bindings: list[list[tuple[Var, Expr]]] = [[]]
        self._results: list[Expr | None] = [None]
        self._branch: tuple[Expr, Expr] | None = None

    def _end(self) -> Expr:
        found = self.get()
        self._bindings.pop()
        self._results.pop()
        return found

    def _begin(self) -> None:
        self._bindings.append([])
        self._results.append(None)

    def type_of(self, value: Expr) -> Type:
        """The known type of an expression before inference."""
        known = value.type_annotation if isinstance(value, Var) else value.type if isinstance(value, Constant) else value.checked_type_
        return known or IncompleteType()

    def let(self, variable: Var | str | tuple[str, Type], value: Any) -> Var:
        """Binds a variable, or a new one of a name (and a type), to a value; gives the variable."""
        if isinstance(variable, tuple):
            variable = Var(variable[0], variable[1])
        found = Var(variable) if isinstance(variable, str) else variable
        self._bindings[-1].append((found, as_expr(value)))
        return found

    @contextmanager
    def if_scope(self, cond: Expr) -> Iterator[None]:
        """The branch for a true condition, a scalar bool."""
        self._begin()
        yield
        self._branch = cond, self._end()

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The other branch; the results of both are that of the scope around."""
        if self._branch is None:
            raise RuntimeError("else_scope: expected an if_scope before it")
        branch, self._branch = self._branch, None
        self._begin()
        yield
        self.ret(If(*branch, self._end()))

    def ret(self, value: Any) -> None:
        """Sets the result of the scope. Raises RuntimeError if it is already set."""
        if self._results[-1] is not None:
            raise RuntimeError("scope: expected one result, found a second one")
        self._results[-1] = as_expr(value)

    def get(self) -> Expr:
        """The expression that has been built. Raises RuntimeError if it has no result."""
        body = self._results[-1]
        if body is None:
            raise RuntimeError("scope: expected a result (ret), found none")
        return in_lets(self._bindings[-1], body)


def while_loop(cond: Callable[..., Expr], loop_vars: Sequence[Expr], loop_bodies: Callable[..., Sequence[Expr]]) -> Expr:
    """A loop as a function of the first values of its variables; it gives the tuple of the last ones.

    Args:
      cond: of the variables, whether another round is made.
      loop_vars: variables and other expressions, which give names and types of the loop's variables.
      loop_bodies: of the variables, their values in the next round.
    """
    scope, loop = ScopeBuilder(), Var("while_loop")
    names = [value.name_hint if isinstance(value, Var) else f"arg{i}" for i, value in enumerate(loop_vars)]
    inner = [Var(name, scope.type_of(value), value.span) for name, value in zip(names, map(as_expr, loop_vars), strict=True)]
    with scope.if_scope(cond(*inner)):
        scope.ret(loop(*map(as_expr, loop_bodies(*inner))))
    with scope.else_scope():
        scope.ret(Tuple(inner))
    return Let(loop, Function(inner, scope.get()), loop)
