"""Values of a script: results of its expressions while it is read, with Python's operators.

A Python number stays a number. An `IndexExpr` consists of loop variables, iterators and sizes; it is emitted at its uses, so that points
and guards can be derived from it. A `Scalar` is a computed value. A `Flag` is a condition.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.errors import RelayError, check
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.language.dtypes import check_computed, check_dtype, common_dtype, is_integer
from relayc.pipelines.te.language.operators import Operators
from relayc.pipelines.te.language.scalars import operation
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.literal import INDEX_DTYPE
from relayc.pipelines.tir.script.building import written
from relayc.pipelines.tir.tree.indices import divide, largest, opaque, smallest
from relayc.symbolic import Dim, Size, bounds, proves

ExprLike: TypeAlias = Any
"""An expression, a size, or a number."""

INDEX = "index"
_OF_INDICES = {"add": operator.add, "subtract": operator.sub, "minimum": smallest, "maximum": largest}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Expr(Operators["Expr"]):
    """A value of a script. `dtype` is TVM's dtype; "index" for indices and sizes, and "bool" for conditions."""

    def astype(self, dtype: str) -> "Expr":
        """Casts to another dtype, as `cast`."""
        return cast(self, dtype)

    def _apply(self, name: str, *operands: ExprLike) -> "Expr":
        return binary(name, *operands)

    def _bitwise(self, name: str, a: ExprLike, b: ExprLike) -> "Expr":
        return bitwise(name, a, b)

    def _compare(self, name: str, a: ExprLike, b: ExprLike) -> "Expr":
        return compare(name, a, b)

    def _unary(self, name: str, value: ExprLike) -> "Expr":
        if name == "bitwise_not" and self.dtype == "bool":
            return negated(self)
        return negative(self) if name == "negative" else unary(name, self)

    def __bool__(self) -> bool:
        raise RelayError("expected a condition that is known while the script is read, found one of its values (T.if_then_else, T.And)")


class IndexExpr(Expr):
    """An expression of loop variables, iterators and sizes."""

    dtype = INDEX

    def __init__(self, index: Index) -> None:
        self.index = index

    def __repr__(self) -> str:
        return str(self.index)


class Scalar(Expr):
    """A computed value; a bool loaded from memory is an i8."""

    def __init__(self, value: ir.Value, dtype: str) -> None:
        self.value, self.dtype = value, dtype

    def __repr__(self) -> str:
        return f"a value of {self.dtype}"


class Flag(Expr):
    """A condition.

    Attributes:
      emit: emits it as an i1 at the ambient insertion point.
      less: pairs of indices, the first less than the second in each, if the condition is the conjunction of these; otherwise None.
    """

    dtype = "bool"

    def __init__(self, emit: Callable[[], ir.Value], less: Sequence[tuple[Index, Index]] | None = None) -> None:
        self.emit, self.less = emit, less

    def __repr__(self) -> str:
        return "a condition"


# ---- kinds of values


def is_number(x: object) -> bool:
    """Whether a value is a number of Python or numpy."""
    return isinstance(x, (bool, int, float, np.integer, np.floating, np.bool_))


def index_of(x: ExprLike) -> Index | None:
    """A value as an index; None if it is not one."""
    if isinstance(x, IndexExpr):
        return x.index
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return Index(int(x))
    if isinstance(x, Dim):
        return Index(x)
    size = getattr(x, "size", None)
    return Index(size) if isinstance(size, Dim) else None  # a variable of relayc.te


def size_of(x: ExprLike, what: str) -> Size:
    """A value as a size. Raises RelayError unless it is a nonnegative number or an expression over symbols."""
    index = index_of(x)
    if index is None or index.terms or bounds(index.const)[1] < 0:
        raise RelayError(f"{what}: expected a number that is not negative, or an expression over sizes, found {x!r}")
    return index.const


def as_index(x: ExprLike, what: str) -> Index:
    """A value as an index; computed integers are converted. Raises RelayError for a value that is not an integer."""
    index = index_of(x)
    if index is not None:
        return index
    check(isinstance(x, Scalar) and is_integer(x.dtype), what, "an index", repr(x))
    cast_ = arith.IndexCastUIOp if scalar.is_unsigned(x.dtype) else arith.IndexCastOp
    return opaque(cast_(ir.IndexType.get(), x.value).result)


def constant(value: Any, dtype: str) -> ir.Value:
    """A number as a value of a dtype. Raises RelayError if the dtype cannot represent it."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_integer(dtype):
        low, high = scalar.limits(dtype)
        whole = isinstance(value, (bool, int)) or value.is_integer()
        check(whole and low <= value <= high, f"T.{dtype}", f"a number that {dtype} holds", value)
        value = int(value)
    elif dtype == "bool":
        value = bool(value)
    type_ = scalar.te_element(dtype)
    if scalar.is_float(dtype):
        return emit.number(float(value), type_)
    check(is_integer(dtype) or dtype == "bool", f"T.{dtype}", "a dtype that is computed in", dtype)
    bits = scalar.bits(dtype)
    return emit.number(value - (1 << bits) if value >= 1 << (bits - 1) else value, type_)


def expr(x: ExprLike, what: str) -> Expr:
    """A value as an expression; a number as an int32, float32 or bool. Raises RelayError for other values."""
    if isinstance(x, Expr):
        return x
    if isinstance(x, (bool, np.bool_)):
        return truth(bool(x))
    index = index_of(x)
    if index is not None:
        return IndexExpr(index)
    check(is_number(x), what, "an expression or a number", repr(x))
    return Scalar(constant(x, "float32"), "float32")


def truth(value: bool) -> Flag:
    """A constant condition."""
    return Flag(lambda: emit.number(int(value), ir.IntegerType.get_signless(1)))


def condition(x: ExprLike, what: str) -> Flag:
    """A value as a condition. Raises RelayError unless it is a condition or a bool."""
    if isinstance(x, Flag):
        return x
    if isinstance(x, (bool, np.bool_)):
        return truth(bool(x))
    check(isinstance(x, Scalar) and x.dtype == "bool", what, "a condition", repr(x))
    return Flag(lambda: scalar.to_flag(x.value))


# ---- conversions


def cast(x: ExprLike, dtype: str) -> Expr:
    """Casts a value to another dtype: floats are truncated to integers; a bool is whether the value is not 0."""
    if dtype == INDEX:
        return IndexExpr(as_index(x, "T.cast"))
    check_dtype(dtype, "T.cast")
    if is_number(x) and not isinstance(x, (bool, np.bool_)):
        return Scalar(constant(x, dtype), dtype)
    found = expr(x, "T.cast")
    if dtype == "bool":
        return found if found.dtype == "bool" else compare("ne", found, 0)
    return Scalar(_converted(found, dtype), dtype)


def _converted(x: Expr, dtype: str) -> ir.Value:
    type_ = scalar.te_element(dtype)
    if isinstance(x, IndexExpr):
        if is_integer(dtype):
            return arith.IndexCastOp(type_, written(x.index)).result
        return scalar.convert(arith.IndexCastOp(scalar.te_element(INDEX_DTYPE), written(x.index)).result, INDEX_DTYPE, dtype)
    if isinstance(x, Flag):
        if is_integer(dtype):
            return arith.ExtUIOp(type_, x.emit()).result
        return scalar.convert(scalar.to_bool(x.emit()), "bool", dtype)
    assert isinstance(x, Scalar)
    check_dtype(x.dtype, "T.cast")
    return scalar.convert(x.value, x.dtype, dtype)


def reinterpret(dtype: str, x: ExprLike) -> Expr:
    """The bits of a value reinterpreted as another dtype of the same width."""
    check_dtype(dtype, "T.reinterpret")
    type_ = scalar.te_element(dtype)
    value = value_of(x, "T.reinterpret")
    return Scalar(value if value.type == type_ else arith.BitcastOp(type_, value).result, dtype)


def value_of(x: ExprLike, what: str) -> ir.Value:
    """The operand of an operation for a value: an index as index, a condition as i1, a number as int32 or float32."""
    found = expr(x, what)
    if isinstance(found, IndexExpr):
        return written(found.index)
    if isinstance(found, Flag):
        return found.emit()
    assert isinstance(found, Scalar)
    return found.value


def stored(x: ExprLike, dtype: str, what: str) -> ir.Value:
    """A value as an element of a buffer. Raises RelayError for another dtype; numbers and indices are converted to the buffer's dtype."""
    if is_number(x) and not isinstance(x, (bool, np.bool_)):
        return constant(x, dtype)
    found = expr(x, what)
    if isinstance(found, Flag) and dtype == "bool":
        return scalar.to_bool(found.emit())
    if isinstance(found, IndexExpr) and is_integer(dtype):
        return _converted(found, dtype)
    fits = isinstance(found, Scalar) and found.value.type == scalar.te_element(dtype)
    check(fits, what, f"a value of {dtype} (T.cast)", found.dtype)
    assert isinstance(found, Scalar)
    return found.value


# ---- operations


def _in_common(a: ExprLike, b: ExprLike, what: str) -> tuple[ir.Value, ir.Value, str]:
    """Two operands converted to their common dtype. A number takes the dtype of the other operand; so does an index if that is wide
    enough."""
    dtypes = [_dtype_beside(x, y) for x, y in ((a, b), (b, a))]
    dtype = common_dtype(dtypes[0], dtypes[1], what)
    left, right = (_value_in(x, dtype) for x in (a, b))
    return left, right, dtype


def _dtype_beside(x: ExprLike, other: ExprLike) -> str:
    beside = other.dtype if isinstance(other, Expr) else None
    if isinstance(x, (float, np.floating)):
        return beside if beside is not None and scalar.is_float(beside) else "float32"
    if is_number(x) or isinstance(x, IndexExpr) or not isinstance(x, Expr):
        if beside is None or beside == INDEX or beside == "bool":
            return INDEX_DTYPE if not isinstance(x, bool) else "bool"
        narrow = is_integer(beside) and scalar.bits(beside) < 32 and not is_number(x)
        return "int32" if narrow else beside
    return x.dtype


def _value_in(x: ExprLike, dtype: str) -> ir.Value:
    if dtype == "bool":
        return condition(x, "operand").emit()
    return constant(x, dtype) if is_number(x) else _converted(expr(x, "operand"), dtype)


def binary(name: str, a: ExprLike, b: ExprLike) -> Expr:
    """An arithmetic operation on two values. Raises RelayError for dtypes that differ, or that the operation does not support."""
    left, right = index_of(a), index_of(b)
    if left is not None and right is not None:
        found = _of_indices(name, left, right)
        if found is not None:
            return IndexExpr(found)
    for x in (a, b):
        check(isinstance(x, Expr) or is_number(x) or index_of(x) is not None, name, "expressions and numbers", repr(x))
    if name.startswith("trunc") and (isinstance(b, IndexExpr) or is_number(b)):
        check(index_of(b) is None or index_of(b).const != 0, name, "a divisor other than 0", 0)  # type: ignore[union-attr]
    x, y, dtype = _in_common(a, b, name)
    check_computed(dtype, name)
    check(dtype != "bool", name, "numbers (T.cast, T.And, T.Or)", "a condition")
    if name == "divide":
        check(scalar.is_float(dtype), "/", "floats (// and % round down; T.truncdiv and T.truncmod towards 0)", dtype)
    if name in ("truncdiv", "truncmod"):
        check(is_integer(dtype), name, "integers", dtype)
    return Scalar(operation(name, [x, y], dtype), dtype)


def _of_indices(name: str, a: Index, b: Index) -> Index | None:
    """An operation on indices; None if it must be computed on numbers."""
    if name in _OF_INDICES:
        return _OF_INDICES[name](a, b)
    if name == "multiply":
        if a.is_constant:
            return b * a.const
        return a * b.const if b.is_constant else opaque(arith.MulIOp(written(a), written(b)).result)
    if name in ("floor_divide", "floor_mod", "truncdiv", "truncmod"):
        # A symbol may be 0, but then no loop runs.
        positive = b.is_constant and b.const != 0 and bounds(b.const)[0] >= 0
        check(positive, name, "a divisor that is a size other than 0", str(b))
        low, _ = a.bounds()
        if name.startswith("trunc"):
            check(proves(lambda: low >= 0), name, "a dividend that is not negative (// and % round down)", str(a))
        return divide(a, b.const)[name in ("floor_mod", "truncmod")]
    return None


def bitwise(name: str, a: ExprLike, b: ExprLike) -> Expr:
    """An operation on the bits of integers; for conditions & and | are `both` and `either`."""
    if any(isinstance(x, Expr) and x.dtype == "bool" for x in (a, b)):
        check(name in ("bitwise_and", "bitwise_or"), name, "integers", "a condition")
        return (both if name == "bitwise_and" else either)(a, b)
    x, y, dtype = _in_common(a, b, name)
    check(is_integer(dtype), name, "integers", dtype)
    return Scalar(operation(name, [x, y], dtype), dtype)


def compare(name: str, a: ExprLike, b: ExprLike) -> Flag:
    """A comparison: "eq", "ne", "lt", "le", "gt" or "ge"."""
    left, right = index_of(a), index_of(b)
    if left is not None and right is not None:
        one = Index(1)
        less = {
            "lt": [(left, right)],
            "le": [(left, right + one)],
            "gt": [(right, left)],
            "ge": [(right, left + one)],
            "eq": [(left, right + one), (right, left + one)],
        }.get(name)
        return Flag(lambda: scalar.compare(name, written(left), written(right), INDEX_DTYPE), less)
    if isinstance(a, Scalar) and isinstance(b, (bool, int)) and a.dtype == "bool":
        # A bool in memory is a byte.
        x, y, dtype = a.value, constant(int(b), "int8"), "int8"
    else:
        x, y, dtype = _in_common(a, b, _SIGNS[name])
        check_computed(dtype, _SIGNS[name])
    if dtype == "bool":
        check(name in ("eq", "ne"), _SIGNS[name], "numbers", "conditions")
    return Flag(lambda: scalar.compare(name, x, y, dtype))


def both(a: ExprLike, b: ExprLike) -> Flag:
    """Whether both conditions hold."""
    x, y = condition(a, "and"), condition(b, "and")
    less = [*x.less, *y.less] if x.less is not None and y.less is not None else None
    return Flag(lambda: scalar.both(x.emit(), y.emit()), less)


def either(a: ExprLike, b: ExprLike) -> Flag:
    """Whether one of two conditions holds."""
    x, y = condition(a, "or"), condition(b, "or")
    return Flag(lambda: scalar.either(x.emit(), y.emit()))


def negated(a: ExprLike) -> Flag:
    """Whether a condition does not hold."""
    x = condition(a, "not")
    return Flag(lambda: emit.arith("xori", x.emit(), emit.number(1, ir.IntegerType.get_signless(1))))


def negative(x: ExprLike) -> Expr:
    """-x."""
    index = index_of(x)
    if index is not None:
        return IndexExpr(index * -1)
    return unary("negative", x)


def unary(name: str, x: ExprLike) -> Expr:
    """An operation on one number with a result of the same dtype."""
    found = expr(x, name)
    if isinstance(found, IndexExpr):
        found = cast(found, INDEX_DTYPE)
    check(isinstance(found, Scalar) and found.dtype != "bool", name, "a number (T.cast)", repr(found))
    assert isinstance(found, Scalar)
    check_computed(found.dtype, name)
    return Scalar(operation(name, [found.value], found.dtype), found.dtype)


def select(cond: ExprLike, a: ExprLike, b: ExprLike, what: str) -> Expr:
    """`a` if a condition holds, otherwise `b`; both are computed."""
    flag = condition(cond, what)
    left, right = index_of(a), index_of(b)
    if left is not None and right is not None:
        return IndexExpr(opaque(scalar.select(flag.emit(), written(left), written(right))))
    if all(isinstance(x, (bool, np.bool_)) or (isinstance(x, Expr) and x.dtype == "bool") for x in (a, b)):
        x, y = condition(a, what), condition(b, what)
        return Flag(lambda: scalar.select(flag.emit(), x.emit(), y.emit()))
    left_value, right_value, dtype = _in_common(a, b, what)
    return Scalar(scalar.select(flag.emit(), left_value, right_value), dtype)
