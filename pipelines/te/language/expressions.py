"""Expressions: elements of computed tensors, as trees over loop indices, sizes, constants and elements of other tensors.

Python's operators build them. `//` and `%` round down, as in Python; `/` is for floats. A comparison is an expression of dtype bool, which
`if_then_else`, `all` and `any` take. An expression of only indices, sizes and integers is an index (`is_index`): it is computed in MLIR's
index type, whatever its dtype, and analysed (see `indices`).
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from relayc.dialects.relay.errors import RelayError, check
from relayc.pipelines.emission.index import Var as LoopVar
from relayc.pipelines.te.language.dtypes import check_computed, check_dtype, common_dtype, is_integer
from relayc.pipelines.te.language.operators import Operators
from relayc.pipelines.te.rules import scalar
from relayc.symbolic import Dim, Size, is_name, maximum, minimum, symbol

if TYPE_CHECKING:
    from relayc.pipelines.te.language.reductions import CommReducer
    from relayc.pipelines.te.language.tensors import Tensor

INDEX_DTYPES = ("int32", "int64")
_OF_SIZES: dict[str, Callable[[Size, Size], Size]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "floor_mod": operator.mod,
    "minimum": minimum,
    "maximum": maximum,
}
_INDEX_OPERATIONS = (*_OF_SIZES, "truncdiv", "truncmod")
_SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "floor_mod": "%",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
"""Operators in the text of expressions; other operations are printed as calls."""
_LEVELS = 8
"""Depth to which expressions are printed."""


class Expr(Operators["Expr"]):
    """An expression.

    Attributes:
      name: of a variable, or of the function that computes its value.
      dtype: of its value.
      is_index: whether it consists of only indices, sizes and integers.
      operands: the expressions of which it is computed.
    """

    name: str
    is_index: bool = False
    operands: "tuple[Expr, ...]" = ()

    def text(self, levels: int) -> str:
        """Its text, with `...` below the given depth."""
        return f"{self.name}({_listed(self.operands, levels)})" if self.operands else self.name

    def __str__(self) -> str:
        return self.text(_LEVELS)

    def astype(self, dtype: str) -> "Expr":
        """Casts to another dtype, as `cast`."""
        return cast(dtype, self)

    def _apply(self, name: str, *operands: "ExprLike") -> "Expr":
        return binary(name, *operands)

    def _bitwise(self, name: str, a: "ExprLike", b: "ExprLike") -> "Expr":
        return bitwise(name, a, b)

    def _compare(self, name: str, a: "ExprLike", b: "ExprLike") -> "Expr":
        return compare(name, a, b)

    def _unary(self, name: str, value: "ExprLike") -> "Expr":
        if name == "bitwise_not" and self.dtype == "bool":
            return logical_not(self)
        # The analysis of indices reads 0 - x.
        return binary("subtract", 0, self) if name == "negative" and self.is_index else unary(name, self)

    def equal(self, other: "ExprLike") -> "Expr":
        """`==`, by name."""
        return compare("eq", self, other)

    def __bool__(self) -> bool:
        raise TypeError(f"{self}: expected a number where Python asks whether it is true, found an expression (te.if_then_else, te.all)")

    def __repr__(self) -> str:
        return str(self)


ExprLike: TypeAlias = Any
"""An expression or a number."""


class Const(Expr):
    """A constant of a dtype."""

    def __init__(self, value: float | int | bool, dtype: str) -> None:
        self.value, self.dtype = value, dtype
        self.is_index = dtype in INDEX_DTYPES or dtype == "bool"

    def text(self, levels: int) -> str:
        return str(self.value)


class SizeExpr(Expr):
    """A size that is an expression over symbols, such as `n + 1`."""

    is_index = True

    def __init__(self, size: Dim, dtype: str = "int32") -> None:
        self.size, self.dtype = size, dtype

    def text(self, levels: int) -> str:
        return str(self.size)


class Var(SizeExpr):
    """A symbolic size: variables of the same name are the same size."""

    def __init__(self, name: str, dtype: str) -> None:
        super().__init__(symbol(name), dtype)
        self.name = name


class IterVar(Expr):
    """An index: of a loop over a result's dimension, or of a reduction (`reduce_axis`).

    Attributes:
      name: of the loop.
      low, extent: its first value, and the number of its values.
      position: the number of the loop, from 0.
      is_reduction: whether it is a reduction axis.
    """

    is_index = True
    dtype = "int32"

    def __init__(self, name: str, low: Size, extent: Size, is_reduction: bool) -> None:
        self.name, self.low, self.extent, self.is_reduction = name, low, extent, is_reduction
        self.position = LoopVar(0, extent - 1, name=name)

    @property
    def var(self) -> "IterVar":
        """The axis itself (TVM distinguishes the variable from the axis)."""
        return self

    @property
    def dom(self) -> tuple[ExprLike, ExprLike]:
        """Its first value, and the number of its values."""
        return size_expr(self.low), size_expr(self.extent)


class Argument(Expr):
    """An argument of the function that combines two values of a reduction."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype


class Operation(Expr):
    """An operation on values of one dtype: `name` is the Relay operator's, or one of te's own."""

    def __init__(self, name: str, operands: Sequence[Expr], dtype: str, is_index: bool = False) -> None:
        self.name, self.operands, self.dtype, self.is_index = name, tuple(operands), dtype, is_index

    def text(self, levels: int) -> str:
        if self.name in _SYMBOLS and len(self.operands) == 2:
            return f" {_SYMBOLS[self.name]} ".join(_inner(x, levels) for x in self.operands)
        return super().text(levels)


class Compare(Operation):
    """A comparison, bool: "eq", "ne", "lt", "le", "gt" or "ge" of two values of one dtype."""

    def __init__(self, name: str, operands: Sequence[Expr]) -> None:
        super().__init__(name, operands, "bool", all(x.is_index for x in operands))

    def __bool__(self) -> bool:
        if self.name not in ("eq", "ne"):
            return super().__bool__()
        a, b = self.operands
        sizes = [size_of(x) for x in (a, b)]
        same = a is b or (None not in sizes and sizes[0] == sizes[1])
        return same == (self.name == "eq")


class Cast(Expr):
    """A conversion to another dtype, whose name it has."""

    def __init__(self, value: Expr, dtype: str) -> None:
        self.name, self.value, self.operands, self.dtype = dtype, value, (value,), dtype
        self.is_index = value.is_index and value.dtype in INDEX_DTYPES and dtype in INDEX_DTYPES


class Select(Expr):
    """One of two values by a condition.

    Attributes:
      guards: whether loads of the value not selected may be out of bounds, and are then not executed.
    """

    def __init__(self, condition: Expr, taken: Expr, other: Expr, guards: bool) -> None:
        self.name, self.guards, self.dtype = "if_then_else" if guards else "select", guards, taken.dtype
        self.condition, self.taken, self.other = self.operands = condition, taken, other
        self.is_index = all(x.is_index for x in self.operands) and self.dtype in INDEX_DTYPES


class TensorElement(Expr):
    """An element of a tensor."""

    def __init__(self, tensor: "Tensor", indices: Sequence[Expr]) -> None:
        self.tensor, self.dtype = tensor, tensor.dtype
        self.indices = self.operands = tuple(indices)

    def text(self, levels: int) -> str:
        return f"{self.tensor.name}[{_listed(self.indices, levels)}]"


class Reduce(Expr):
    """A value of a reduction: `sources`, one for each value that is reduced together, combined over `axes`.

    Attributes:
      init: the initial values; None for the identity of the reducer.
      position: which of the values it is.
    """

    def __init__(
        self, reducer: "CommReducer", sources: tuple[Expr, ...], axes: Sequence[IterVar], init: Sequence[Expr] | None, position: int
    ) -> None:
        self.reducer, self.sources, self.axes, self.init, self.position = reducer, sources, tuple(axes), init, position
        self.dtype, self.operands = sources[position].dtype, (*sources, *(init or ()))

    def text(self, levels: int) -> str:
        return f"{self.reducer.name}({_listed(self.sources, levels)}, axis=[{', '.join(axis.name for axis in self.axes)}])"


def _inner(x: Expr, levels: int) -> str:
    compound = (isinstance(x, Operation) and x.name in _SYMBOLS) or (isinstance(x, SizeExpr) and not isinstance(x, Var))
    text = _part(x, levels)
    return f"({text})" if compound and text != "..." else text


def _part(x: Expr, levels: int) -> str:
    """The text of an operand, printed to the given depth."""
    return x.text(levels - 1) if levels > 0 or not x.operands else "..."


def _listed(parts: Sequence[Expr], levels: int) -> str:
    return ", ".join(_part(x, levels) for x in parts)


Part = TypeVar("Part")


class Described:
    """`WHAT of OPERANDS`, for an error, formatted lazily because most are never printed."""

    def __init__(self, what: str, *operands: Expr) -> None:
        self.what, self.operands = what, operands

    def __str__(self) -> str:
        return f"{self.what} of {' and '.join(map(str, self.operands))}"


def children_first(root: Part, children: Callable[[Part], Sequence[Part]], is_done: Callable[[Part], bool]) -> Iterator[Part]:
    """The parts of a graph that are not done, each after its `children`; the caller completes each before the next.

    Iterative, because chains of operations may be deeper than Python's recursion limit.
    """
    pending = [(root, False)]
    while pending:
        x, is_ready = pending.pop()
        if is_done(x):
            continue
        if is_ready:
            yield x
            continue
        pending.append((x, True))
        pending += [(child, False) for child in reversed(children(x))]


# ---- making expressions


def var(name: str = "n", dtype: str = "int32") -> Var:
    """A symbolic size. Its value follows from the shapes of the arguments of a call.

    Raises RelayError for a name that is not valid for a symbol, and a dtype other than int32 and int64.
    """
    check(isinstance(name, str) and is_name(name), "te.var", "a name such as n", repr(name))
    check(dtype in INDEX_DTYPES, f"te.var {name}", "int32 or int64 (a number is a placeholder of shape ())", dtype)
    return Var(name, dtype)


size_var = var
"""`var`: every symbol is a size, and no size is negative."""


def const(value: float | int | bool, dtype: str | None = None) -> Const:
    """A number as an expression; without a dtype int32, float32 or bool, by its Python type.

    Raises RelayError for a number that the dtype cannot represent.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int32"
    check_dtype(dtype, "te.const")
    check(isinstance(value, (bool, int, float)), "te.const", "a number", repr(value))
    if is_integer(dtype):
        low, high = scalar.limits(dtype)
        whole = isinstance(value, (bool, int)) or value.is_integer()
        check(whole and low <= value <= high, "te.const", f"a number that {dtype} holds", value)
        return Const(int(value), dtype)
    return Const(bool(value) if dtype == "bool" else float(value), dtype)


def expr(value: ExprLike, what: str = "te") -> Expr:
    """A value as an expression. Raises RelayError if it is not one.

    Args:
      what: its position, for the error.
    """
    if hasattr(value, "as_element"):
        return value.as_element()
    if isinstance(value, Expr):
        return value
    if isinstance(value, (bool, int, float, np.generic)):
        number = value.item() if isinstance(value, np.generic) else value
        return const(number, "int64" if type(number) is int and not -(1 << 31) <= number < 1 << 31 else None)
    raise RelayError(f"{what}: expected an expression or a number, found {value!r}")


def _beside(value: ExprLike, other: ExprLike, what: str) -> Expr:
    """An operand; a Python number takes the dtype of the other operand if it is representable."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)) or isinstance(other, (bool, int, float, np.generic)):
        return expr(value, what)
    dtype = expr(other, what).dtype
    if isinstance(value, float) and not scalar.is_float(dtype):
        return const(value)
    if dtype == "bool" and not isinstance(value, bool):
        return expr(value, what)
    if type(value) is int and dtype in INDEX_DTYPES and expr(other, what).is_index:
        return expr(value, what)
    return const(value, dtype)


def matched(a: ExprLike, b: ExprLike, what: str) -> tuple[Expr, Expr]:
    """Two operands in their common dtype (see `dtypes`)."""
    left, right = _beside(a, b, what), _beside(b, a, what)
    dtype = common_dtype(left.dtype, right.dtype, Described(what, left, right))
    return cast(dtype, left), cast(dtype, right)


def cast(dtype: str, value: ExprLike) -> Expr:
    """Casts a value to another dtype: floats are truncated to integers; a bool is whether the value is not 0."""
    check_dtype(dtype, "te.cast")
    value = expr(value, "te.cast")
    if value.dtype == dtype:
        return value
    if isinstance(value, SizeExpr) and dtype in INDEX_DTYPES:
        return SizeExpr(value.size, dtype)
    if isinstance(value, Const) and (scalar.is_float(dtype) or (value.is_index and dtype in INDEX_DTYPES)):
        return const(value.value, dtype)
    return Cast(value, dtype)


def binary(name: str, a: ExprLike, b: ExprLike) -> Expr:
    """An arithmetic operation. Raises RelayError for dtypes without a common one, and for a dtype that the operation does not support."""
    left, right = matched(a, b, name)
    dtype = left.dtype
    check_computed(dtype, Described(name, left, right))
    is_boolean = dtype == "bool"
    check(not is_boolean, Described(name, left, right), "operands that are numbers (te.cast, te.all, te.any)", "bool")
    if name == "divide":
        wanted = "floats (// and % round down; te.truncdiv and te.truncmod towards 0)"
        check(scalar.is_float(dtype), Described("/", left, right), wanted, dtype)
    if name in ("truncdiv", "truncmod", "floor_mod", "floor_divide") and isinstance(right, Const):
        check(right.value != 0, Described(name, left), "a divisor other than 0", right)
    is_index = name in _INDEX_OPERATIONS and dtype in INDEX_DTYPES and left.is_index and right.is_index
    if is_index:
        folded = _folded(name, left, right)
        if folded is not None:
            return size_expr_of(folded, dtype)
    return Operation(name, [left, right], dtype, is_index)


def _folded(name: str, a: Expr, b: Expr) -> Size | None:
    """The size that an operation on sizes gives; None if an operand is not a size, or the result is not known."""
    x, y = size_of(a), size_of(b)
    if x is None or y is None or name not in _OF_SIZES:
        return None
    if name.startswith("floor") and not (isinstance(y, Dim) or y > 0):
        return None
    return _OF_SIZES[name](x, y)


def bitwise(name: str, a: ExprLike, b: ExprLike) -> Expr:
    """An operation on the bits of integers; for bools & and | are `all` and `any`."""
    left, right = matched(a, b, name)
    what = Described(name, left, right)
    if left.dtype == "bool" and not name.endswith("shift"):
        if name == "bitwise_xor":
            return Compare("ne", [left, right])
        return Operation("and" if name == "bitwise_and" else "or", [left, right], "bool", left.is_index and right.is_index)
    check(is_integer(left.dtype), what, "integers", left.dtype)
    if name.endswith("shift") and isinstance(right, Const):
        bits = scalar.bits(left.dtype)
        check(0 <= right.value < bits, what, f"a shift by 0 to {bits - 1}", right)
    return Operation(name, [left, right], left.dtype)


def compare(name: str, a: ExprLike, b: ExprLike) -> Expr:
    """A comparison: "eq", "ne", "lt", "le", "gt" or "ge"."""
    left, right = matched(a, b, _SYMBOLS[name])
    check_computed(left.dtype, Described(_SYMBOLS[name], left, right))
    return Compare(name, [left, right])


def unary(name: str, x: ExprLike) -> Expr:
    """An operation on one value with a result of the same dtype."""
    x = expr(x, name)
    check_computed(x.dtype, Described(name, x))
    check(x.dtype != "bool", Described(name, x), "a number (te.cast)", "bool")
    return Operation(name, [x], x.dtype)


def condition(x: ExprLike, what: str) -> Expr:
    """A condition. Raises RelayError for an expression that is not bool."""
    x = expr(x, what)
    check(x.dtype == "bool", what, "a condition, of dtype bool", f"{x} of dtype {x.dtype}")
    return x


def logical_not(x: ExprLike) -> Expr:
    """Whether a condition does not hold."""
    x = condition(x, "not")
    return Operation("not", [x], "bool", x.is_index)


def if_then_else(cond: ExprLike, t: ExprLike, f: ExprLike) -> Expr:
    """`t` where `cond` holds, otherwise `f`. The value not selected is not loaded where it is out of bounds.

    Raises RelayError for a condition that is not bool, and for values without a common dtype.
    """
    return _select(cond, t, f, "te.if_then_else", True)


def select(cond: ExprLike, t: ExprLike, f: ExprLike) -> Expr:
    """`t` where `cond` holds, otherwise `f`; both are computed, so their loads must be in bounds (TVM's tir.Select)."""
    return _select(cond, t, f, "te.select", False)


def _select(cond: ExprLike, t: ExprLike, f: ExprLike, what: str, guards: bool) -> Expr:
    cond = condition(cond, what)
    taken, other = matched(t, f, what)
    if isinstance(cond, Const):
        return taken if cond.value else other
    return Select(cond, taken, other, guards)


# ---- sizes


def size_of(x: Expr) -> Size | None:
    """The size of an expression: a number or an expression over symbols; None if it is not a size."""
    if isinstance(x, Const) and x.dtype in INDEX_DTYPES:
        return int(x.value)
    return x.size if isinstance(x, SizeExpr) else None


def size_expr_of(size: Size, dtype: str) -> Expr:
    """A size as an expression of a dtype."""
    if isinstance(size, int):
        return Const(size, dtype)
    return SizeExpr(size, dtype)


def size_expr(size: Size) -> ExprLike:
    """A size in the public form: a number, or an expression."""
    return SizeExpr(size) if isinstance(size, Dim) else size


def read_size(value: ExprLike, what: str) -> Size:
    """A nonnegative size from a caller. Raises RelayError for other values."""
    size = None
    if isinstance(value, (Expr, int, np.integer)) and not isinstance(value, bool):
        size = size_of(expr(value))
    if size is None or (isinstance(size, int) and size < 0):
        raise RelayError(f"{what}: expected a number that is not negative or an expression over te.var, found {value}")
    return size
