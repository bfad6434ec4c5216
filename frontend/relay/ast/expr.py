"""Expressions of Relay programs.

A node that several others hold is one value: programs are graphs. `==` of expressions is identity (see `structural_equal`); other
comparisons and arithmetic build calls of operators.
"""

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.base import NDArray, Node, Span, items, ndarray, store
from relayc.frontend.relay.ast.types import FuncType, TensorType, Type, TypeCall, TypeVar
from relayc.frontend.relay.operators import Operators


class Expr(Operators["Expr"], Node):
    """An expression.

    Attributes:
      span: its place in a source, if it has one.
      checked_type_: its type from the last inference; None before.
      virtual_device_: its location, if devices are planned.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    unset = ("checked_type_", "virtual_device_", "span")
    takes_span = True
    mutable: ClassVar[frozenset[str]] = frozenset({"checked_type_", "virtual_device_"})
    span: Span | None
    checked_type_: Type | None
    virtual_device_: Any

    @property
    def checked_type(self) -> Type:
        """Its type. Raises ValueError before inference."""
        if self.checked_type_ is None:
            raise ValueError(f"no type of {self} is known: run relay.transform.InferType first")
        return self.checked_type_

    def at(self, span: Span | None) -> "Expr":
        """The same expression at another place of a source."""
        new = type(self)(**{name: getattr(self, name) for name in self.parts}, span=span)
        new.virtual_device_, new.checked_type_ = self.virtual_device_, self.checked_type_
        return new

    def replace(self, **values: Any) -> "Expr":
        """The same expression with some parts replaced; itself if all parts are the same objects."""
        old = {name: getattr(self, name) for name in self.parts}
        if all(_is_same(old[name], value) for name, value in values.items()):
            return self
        new = type(self)(**(old | values), span=self.span)
        new.virtual_device_ = self.virtual_device_
        return new

    # ---- operators

    def __call__(self, *args: "Expr") -> "Call":
        return Call(self, args)

    def astype(self, dtype: str) -> "Expr":
        """The value in another element type."""
        return Call(Op.get("cast"), [self], Attrs({"dtype": str(dtype)}, "relay.attrs.CastAttrs"))

    def _apply(self, name: str, *operands: Any) -> "Expr":
        for value in operands:
            if isinstance(value, numbers.Number):
                raise TypeError(f'{name}: expected expressions, found the number {value}: convert it with "relay.const"')
            if not isinstance(value, Expr):
                raise TypeError(f"{name}: expected expressions, found {type(value).__name__}")
        return Call(Op.get(name), operands)


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
    return a is b


class Constant(Expr):
    """A tensor known when the program is written."""

    data: NDArray

    def __init__(self, data: Any, span: Span | None = None) -> None:
        store(self, span=span, data=data if isinstance(data, NDArray) else ndarray(data))

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return self.data.dtype.name

    @property
    def type(self) -> TensorType:
        """Shape and element type."""
        return TensorType(self.data.shape, self.dtype)


class Id(Node):
    """The identity of a variable: variables with the same identity are the same, whatever is known of their types."""

    name_hint: str

    def __str__(self) -> str:
        return self.name_hint

    __repr__ = __str__


class Var(Expr):
    """A local variable: a parameter, or what a let or a pattern binds."""

    vid: Id
    type_annotation: Type | None

    def __init__(self, vid: str | Id, type_annotation: Type | None = None, span: Span | None = None) -> None:
        store(self, span=span, vid=Id(vid) if isinstance(vid, str) else vid, type_annotation=type_annotation)

    @property
    def name_hint(self) -> str:
        """The name that it is printed with, unless the name is taken."""
        return self.vid.name_hint


class GlobalVar(Expr):
    """The name of a function of a module."""

    name_hint: str


class Op(Expr):
    """An operator. There is one object for each name."""

    name: str
    _known: ClassVar[dict[str, "Op"]] = {}

    def __new__(cls, name: str) -> "Op":
        found = cls._known.get(name)
        if found is None:
            found = cls._known[name] = super().__new__(cls)
            store(found, name=name)
        return found

    def __init__(self, name: str) -> None:
        """Does nothing: `__new__` initialises the object."""

    @staticmethod
    def get(name: str) -> "Op":
        """The operator of a name. Raises RelayError for an operator that is not supported."""
        if name not in Op._known:
            from relayc.frontend.relay.op.table import check_name

            check_name(name)
        return Op(name)

    # ---- what programs register (see relayc.frontend.relay.op.registered)

    @property
    def num_inputs(self) -> int:
        """How many operands it has."""
        from relayc.frontend.relay.op.table import signature

        return len(signature(self.name).operands)

    def _registered(self) -> Any:
        from relayc.frontend.relay.op.registered import REGISTERED

        if self.name not in REGISTERED:
            raise ValueError(f"operator {self.name}: expected one that a program has registered, found one of Relay")
        return REGISTERED[self.name]

    @property
    def support_level(self) -> int | None:
        """As it was set. Raises ValueError for an operator of Relay."""
        return self._registered().support_level

    def set_num_inputs(self, count: int) -> None:
        """Says how many operands it has. Raises ValueError for an operator of Relay, as the following do."""
        self._registered().num_inputs = count

    def add_argument(self, name: str, type_: str, description: str) -> None:
        """Names an operand."""
        self._registered().arguments.append(name)

    def set_attrs_type_key(self, key: str) -> None:
        """Sets the type of its attributes."""
        self._registered().attrs_type_key = key

    def set_support_level(self, level: int) -> None:
        """Sets its level."""
        self._registered().support_level = level

    def add_type_rel(self, rel_name: str, type_rel_func: Any = None) -> None:
        """Says the type of its result: by a relation of a name, or by a function of the types of operands and the attributes."""
        from relayc.frontend.relay.inference.relations import RELATIONS

        self._registered().relation = RELATIONS[rel_name] if type_rel_func is None else type_rel_func

    def get_attr(self, key: str) -> Any:
        """An attribute; None if it is not set."""
        from relayc.frontend.relay.op.registered import attribute

        return attribute(self.name, key)

    def set_attr(self, key: str, value: Any, plevel: int = 10) -> None:
        """Sets an attribute."""
        from relayc.frontend.relay.op.registered import register_op_attr

        register_op_attr(self.name, key, value)

    def reset_attr(self, key: str) -> None:
        """Takes an attribute away."""
        from relayc.frontend.relay.op.registered import reset_attribute

        reset_attribute(self.name, key)


class Call(Expr):
    """A call of an operator, a function or a constructor."""

    op: Expr
    args: tuple[Expr, ...]
    attrs: Attrs | None = None
    type_args: tuple[Type, ...] = ()


class Tuple(Expr):
    """Several values as one."""

    fields: tuple[Expr, ...]

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def astype(self, dtype: str) -> Expr:
        raise TypeError("astype: expected a tensor, found a tuple")


class TupleGetItem(Expr):
    """A field of a tuple."""

    tuple_value: Expr
    index: int


class Let(Expr):
    """A body in which a variable is a value; a function may name the variable itself."""

    var: Var
    value: Expr
    body: Expr

    def __init__(self, variable: Var | None = None, value: Any = None, body: Any = None, span: Span | None = None, **parts: Any) -> None:
        store(self, span=span, var=parts.get("var", variable), value=value, body=body)


class If(Expr):
    """One of two values by a scalar bool."""

    cond: Expr
    true_branch: Expr
    false_branch: Expr


class RefCreate(Expr):
    """A new reference to a value."""

    value: Expr


class RefRead(Expr):
    """Reads the value of a reference."""

    ref: Expr


class RefWrite(Expr):
    """Makes a reference refer to another value; its own value is the empty tuple."""

    ref: Expr
    value: Expr


class Function(Expr):
    """A function, which may use variables from around it."""

    params: tuple[Var, ...]
    body: Expr
    ret_type: Type | None
    type_params: tuple[TypeVar, ...]
    attrs: Attrs

    def __init__(
        self,
        params: Sequence[Var],
        body: Expr,
        ret_type: Type | None = None,
        type_params: Sequence[TypeVar] | None = None,
        attrs: Attrs | Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        given = attrs if isinstance(attrs, Attrs) else Attrs(attrs)
        store(self, span=span, params=items(params), body=body, ret_type=ret_type, type_params=items(type_params), attrs=given)

    def with_attr(self, name: str | Mapping[str, Any], value: Any = None) -> "Function":
        """The same function with an attribute, or several."""
        added = {name: value} if isinstance(name, str) else dict(name)
        return self.replace(attrs=Attrs({**self.attrs, **added}))  # type: ignore[return-value] # a function

    def without_attr(self, name: str) -> "Function":
        """The same function without an attribute."""
        kept = {key: value for key, value in self.attrs.items() if key != name}
        return self.replace(attrs=Attrs(kept))  # type: ignore[return-value] # a function


# ---- data types ----------------------------------------------------------------------------------------------------------------------


class Constructor(Expr):
    """A way to make a value of a data type: a function of its fields.

    Attributes:
      tag: its number among the constructors of the type; -1 until the type is made.
    """

    parts = ("name_hint", "inputs", "belong_to")
    mutable = Expr.mutable | {"tag"}
    name_hint: str
    inputs: tuple[Type, ...]
    belong_to: Type
    tag: int

    def __init__(self, name_hint: str, inputs: Sequence[Type], belong_to: Type, span: Span | None = None) -> None:
        store(self, span=span, name_hint=name_hint, inputs=items(inputs), belong_to=belong_to, tag=-1)


class TypeData(Type):
    """The definition of a data type: its parameters and constructors."""

    header: Type
    type_vars: tuple[TypeVar, ...]
    constructors: tuple[Constructor, ...]

    def __init__(self, header: Type, type_vars: Sequence[TypeVar], constructors: Sequence[Constructor]) -> None:
        store(self, header=header, type_vars=items(type_vars), constructors=items(constructors))
        for tag, constructor in enumerate(self.constructors):
            constructor.tag = tag


def constructor_type(constructor: Constructor, data: TypeData) -> FuncType:
    """The type of a constructor as a function."""
    return FuncType(constructor.inputs, TypeCall(data.header, data.type_vars), data.type_vars)


class Pattern(Node):
    """The pattern of a clause, against which a value is matched."""


class PatternWildcard(Pattern):
    """Matches anything."""


class PatternVar(Pattern):
    """Matches anything, and binds a variable to it."""

    var: Var


class PatternConstructor(Pattern):
    """Matches a value created by a constructor whose fields match."""

    constructor: Constructor
    patterns: tuple[Pattern, ...] = ()


class PatternTuple(Pattern):
    """Matches a tuple of fields that match."""

    patterns: tuple[Pattern, ...] = ()


class Clause(Node):
    """A pattern, and the result if it is the first that matches."""

    lhs: Pattern
    rhs: Expr


class Match(Expr):
    """The result of the first clause whose pattern matches a value; `complete`: whether there is a match for every value."""

    data: Expr
    clauses: tuple[Clause, ...]
    complete: bool = True


def rebuilt_pattern(
    pattern: Pattern, change: Callable[[Var], Expr], constructor: Callable[[Constructor], Constructor] = lambda given: given
) -> Pattern:
    """A pattern that binds what `change` makes of its variables.

    Args:
      constructor: makes the constructors in it.
    """
    if isinstance(pattern, PatternVar):
        return PatternVar(change(pattern.var))
    if not isinstance(pattern, (PatternConstructor, PatternTuple)):
        return pattern
    parts = [rebuilt_pattern(part, change, constructor) for part in pattern.patterns]
    return PatternTuple(parts) if isinstance(pattern, PatternTuple) else PatternConstructor(constructor(pattern.constructor), parts)


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables that a pattern binds, in order."""
    if isinstance(pattern, PatternVar):
        return [pattern.var]
    inner = pattern.patterns if isinstance(pattern, (PatternConstructor, PatternTuple)) else ()
    return [var for part in inner for var in pattern_vars(part)]
