"""The patterns, and the functions that make them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.base import Node, store
from relayc.frontend.relay.ast.expr import Expr, Op
from relayc.frontend.relay.ast.types import Type
from relayc.frontend.relay.operators import Operators


class DFPattern(Operators["DFPattern"], Node):
    """A pattern. A pattern that occurs in several places matches a single expression.

    Arithmetic on patterns builds patterns of operator calls; calling a pattern builds a pattern of a call of the matched callee.
    """

    parts: ClassVar[tuple[str, ...]] = ()

    def inner(self) -> list["DFPattern"]:
        """The patterns directly in this one, in order."""
        found: list[DFPattern] = []
        for name in self.parts:
            value = getattr(self, name)
            found += [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, DFPattern)]
        return found

    def _apply(self, name: str, *operands: Any) -> "DFPattern":
        return is_op(name)(*operands)

    def __call__(self, *args: "DFPattern | None") -> "CallPattern":
        """A call of the matched callee with arguments that match patterns; with None, any arguments."""
        return CallPattern(self, None if args == (None,) else args)

    def __or__(self, other: "DFPattern") -> "AltPattern":
        return AltPattern(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> "AttrPattern":
        """This pattern, restricted to expressions with some attributes."""
        return AttrPattern(self, Attrs(attrs))

    def has_type(self, ttype: Type) -> "TypePattern":
        """This, of a type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> "DataTypePattern":
        """This, of an element type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> "ShapePattern":
        """This, of a shape."""
        return ShapePattern(self, shape)

    def optional(self, option_constructor: Callable[["DFPattern"], "DFPattern"]) -> "AltPattern":
        """This pattern, or the result of a function of it."""
        return AltPattern(self, option_constructor(self))

    def dominates(self, parent: "DFPattern", path: "DFPattern | None" = None) -> "DominatorPattern":
        """This pattern, if all uses of a parent pass along a path and end in it."""
        return DominatorPattern(parent, wildcard() if path is None else path, self)

    def match(self, expr: Expr) -> bool:
        """Whether an expression matches."""
        from relayc.frontend.relay.dataflow_pattern.rewriting import match

        return match(self, expr)

    def partition(self, expr: Expr, attrs: Mapping[str, Any] | None = None, check: Callable[[Expr], bool] = lambda expr: True) -> Expr:
        """See `rewriting.partition`."""
        from relayc.frontend.relay.dataflow_pattern.rewriting import partition

        return partition(self, expr, attrs, check)

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(str(getattr(self, name)) for name in self.parts)})"

    __repr__ = __str__


class WildcardPattern(DFPattern):
    """Matches any expression, or an expression that matches the pattern it is redirected to."""

    mutable = frozenset({"pattern"})
    pattern: DFPattern | None
    parts = ()

    def __init__(self) -> None:
        self.pattern = None

    def inner(self) -> list[DFPattern]:
        return [] if self.pattern is None else [self.pattern]

    def redirect_to(self, pat: DFPattern) -> None:
        """Redirects this pattern to another one, which may contain it."""
        self.pattern = pat


class ExprPattern(DFPattern):
    """Matches expressions of the same structure."""

    expr: Expr


class VarPattern(DFPattern):
    """Matches a variable by name, or any variable if the name is empty."""

    name: str

    def __init__(self, name_hint: str = "") -> None:
        store(self, name=name_hint)


class ConstantPattern(DFPattern):
    """Matches a constant."""


class CallPattern(DFPattern):
    """Matches a call; `args` None are any arguments. Operands of add and multiply match in both orders."""

    op: DFPattern
    args: tuple[DFPattern, ...] | None

    def is_of(self, name: str) -> bool:
        """Whether it is a call of an operator."""
        return isinstance(self.op, ExprPattern) and isinstance(self.op.expr, Op) and self.op.expr.name == name

    def __call__(self, *args: DFPattern | None) -> "CallPattern":
        """A call of the matched callee, or this pattern with arguments if it has none."""
        return CallPattern(self.op, args) if self.args is None and args != (None,) else super().__call__(*args)


class FunctionPattern(DFPattern):
    """Matches a function; `params` None matches any parameters."""

    params: tuple[DFPattern, ...] | None
    body: DFPattern


class IfPattern(DFPattern):
    """Matches a branch."""

    cond: DFPattern
    true_branch: DFPattern
    false_branch: DFPattern


class LetPattern(DFPattern):
    """Matches a let."""

    var: DFPattern
    value: DFPattern
    body: DFPattern


class TuplePattern(DFPattern):
    """Matches a tuple; `fields` None matches any fields."""

    fields: tuple[DFPattern, ...] | None

    def __getitem__(self, index: int) -> DFPattern:
        assert self.fields is not None
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields or ())


class TupleGetItemPattern(DFPattern):
    """Matches a field of a tuple; `index` None is any field."""

    tuple: DFPattern
    index: int | None

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        store(self, tuple=tuple_value, index=None if index in (None, -1) else index)


class AltPattern(DFPattern):
    """Matches an expression that matches one of two patterns."""

    left: DFPattern
    right: DFPattern


class TypePattern(DFPattern):
    """Matches expressions of a type."""

    pattern: DFPattern
    type: Type

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        store(self, pattern=pattern, type=ttype)


class DataTypePattern(DFPattern):
    """Matches tensors of an element type."""

    pattern: DFPattern
    dtype: str


class ShapePattern(DFPattern):
    """Matches tensors of a shape."""

    pattern: DFPattern
    shape: tuple[Any, ...]


class AttrPattern(DFPattern):
    """Matches operators, calls and functions with attributes."""

    pattern: DFPattern
    attrs: Attrs


class DominatorPattern(DFPattern):
    """Matches a child to which all paths from a parent lead, through expressions that match a path."""

    parent: DFPattern
    path: DFPattern
    child: DFPattern


# ---- the functions that make them ----------------------------------------------------------------------------------------------------

is_constant, is_expr, is_tuple, is_tuple_get_item = ConstantPattern, ExprPattern, TuplePattern, TupleGetItemPattern
is_if, is_let, wildcard, dominates = IfPattern, LetPattern, WildcardPattern, DominatorPattern


def is_var(name: str = "") -> VarPattern:
    """A variable, of a name or of any."""
    return VarPattern(name)


def is_op(op_name: str) -> ExprPattern:
    """An operator. Raises UnsupportedOperator."""
    return ExprPattern(Op.get(op_name))


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Any expression, or a match of a pattern, with a type."""
    return TypePattern(wildcard() if pattern is None else pattern, ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """Anything, or what a pattern matches, of an element type."""
    return DataTypePattern(wildcard() if pattern is None else pattern, dtype)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> ShapePattern:
    """Any expression, or a match of a pattern, with a shape."""
    return ShapePattern(wildcard() if pattern is None else pattern, shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """Any expression, or a match of a pattern, with attributes."""
    return AttrPattern(wildcard() if pattern is None else pattern, Attrs(attrs))
