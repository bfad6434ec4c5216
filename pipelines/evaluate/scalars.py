"""What the operations of arith and math compute, on numpy arrays: every function works element by element and gives the type of its result.

Integers are signed, an i1 is a bool, an index has 64 bits. Where MLIR gives an operation no meaning, it has one here: a quotient by 0 is 0,
so is what is shifted by more bits than there are, and a conversion to an integer saturates and takes NaN for 0.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import MLIR_NAMES, numpy_dtype

Function = Callable[..., Any]

_DTYPES = {text: numpy_dtype(name) for name, text in MLIR_NAMES.items() if name != "string"} | {"index": np.dtype(np.int64)}


def dtype_of(type_: ir.Type) -> np.dtype:
    """The dtype of the elements of a scalar type; signless integers count as signed."""
    return _DTYPES[str(type_)]


def poisoned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Memory that nothing has written: NaN, or large numbers."""
    if dtype.kind in "iu":
        return np.full(shape, np.iinfo(dtype).max - 6, dtype)
    return np.full(shape, True if dtype.kind == "b" else np.nan, dtype)


def unsigned(x: Any) -> Any:
    """The bits of signed integers as unsigned ones."""
    return x if x.dtype.kind == "b" else x.view(f"u{x.dtype.itemsize}")


# ---- integers -------------------------------------------------------------------------------------------------------------------------


def _divided(a: Any, b: Any, function: Function) -> Any:
    return np.where(b == 0, 0, function(a, np.where(b == 0, 1, b)))


def _quotient(a: Any, b: Any) -> Any:
    """Rounded towards zero, as arith.divsi."""
    floor = np.floor_divide(a, b)
    return floor + ((a - floor * b != 0) & (floor < 0)).astype(a.dtype)


def _ceiling(a: Any, b: Any) -> Any:
    """Rounded up, as arith.ceildivsi; the negative of the least number is no number."""
    floor = np.floor_divide(a, b)
    return floor + (a - floor * b != 0).astype(a.dtype)


def _shifted(function: Function) -> Function:
    def shift(a: Any, b: Any) -> Any:
        inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
        return np.where(inside, function(a, np.where(inside, b, 0).astype(a.dtype)), 0)

    return shift


def _of_bits(function: Function) -> Function:
    return lambda *operands: function(*map(unsigned, operands))


def _leading_zeros(x: Any) -> Any:
    bits, left = 8 * x.dtype.itemsize, unsigned(x)
    count = np.full(np.shape(x), bits)
    for place in range(bits):
        count = np.where(left >> np.array(place, left.dtype) & 1, bits - 1 - place, count)
    return count


_INTEGERS: dict[str, Function] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "floordivsi": lambda a, b: _divided(a, b, np.floor_divide),
    "ceildivsi": lambda a, b: _divided(a, b, _ceiling),
    "divsi": lambda a, b: _divided(a, b, _quotient),
    "remsi": lambda a, b: _divided(a, b, lambda a, b: a - _quotient(a, b) * b),
    "divui": _of_bits(lambda a, b: _divided(a, b, np.floor_divide)),
    "remui": _of_bits(lambda a, b: _divided(a, b, np.remainder)),
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": _of_bits(np.minimum),
    "maxui": _of_bits(np.maximum),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": _shifted(np.left_shift),
    "shrsi": _shifted(np.right_shift),
    "shrui": _of_bits(_shifted(np.right_shift)),
    "absi": np.abs,
    "ctpop": _of_bits(np.bitwise_count),
    "ctlz": _leading_zeros,
    "index_cast": lambda x: x,
    "index_castui": unsigned,
    "extsi": lambda x: x,
    "extui": unsigned,
    "trunci": lambda x: x,
}
"""Of which the result takes the low bits. An i1 is 0 or -1 there."""

# ---- floats ---------------------------------------------------------------------------------------------------------------------------

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _number(pick: Function) -> Function:
    """The minimum or maximum that takes NaN for no number."""
    return lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, pick(a, b)))


_FLOATS: dict[str, Function] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "negf": np.negative,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": _number(np.maximum),
    "minnumf": _number(np.minimum),
    "extf": lambda x: x,
    "truncf": lambda x: x,
    "sitofp": lambda x: x,
    "uitofp": unsigned,
    "fma": lambda a, b, c: np.float64(a) * np.float64(b) + np.float64(c),
    "rsqrt": lambda x: 1 / np.sqrt(np.float64(x)),
    "erf": lambda x: _erf(np.float64(x)),
    "absf": np.abs,
    "powf": np.power,
    "fpowi": lambda x, n: np.power(np.float64(x), n),
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "roundeven": np.rint,
    "round": lambda x: np.copysign(np.floor(np.abs(np.float64(x)) + 0.5), x),
}
_FLOATS |= {n: getattr(np, n) for n in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "floor", "ceil", "trunc")}
_FLOATS |= {n: getattr(np, n) for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
_FLOATS |= {n: getattr(np, n.replace("a", "arc", 1)) for n in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}

_ORDERS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
_ORDERED = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)
"""Of floats. With NaN all but the last one are false, as arith's ordered ones are."""


def _compared_integers(predicate: int) -> Function:
    order = _ORDERS[predicate if predicate < 6 else predicate - 4]
    return order if predicate < 6 else _of_bits(order)


def _compared_floats(predicate: int) -> Function:
    if predicate in (1, 2, 3, 4, 5, 13):
        return _ORDERED[(predicate - 1) % 7]

    def compare(a: Any, b: Any) -> Any:
        no_number = np.isnan(a) | np.isnan(b)
        if predicate in (0, 7, 14, 15):
            return {0: no_number & False, 7: ~no_number, 14: no_number, 15: no_number | True}[predicate]
        ordered = _ORDERED[(predicate - 1) % 7](a, b)
        return ordered & ~no_number if predicate < 8 else ordered | no_number

    return compare


def _to_integer(is_unsigned: bool, dtype: np.dtype) -> Function:
    limits = np.iinfo(f"u{dtype.itemsize}" if is_unsigned else dtype)

    def convert(x: Any) -> Any:
        wide = np.maximum(np.trunc(np.where(np.isnan(x), 0.0, np.float64(x))), limits.min)
        fits = wide < float(limits.max + 1)
        return np.where(fits, np.where(fits, wide, 0).astype(limits.dtype), limits.dtype.type(limits.max))

    return convert


def function_of(op: ir.Operation) -> Function | None:
    """What an operation of arith or math computes of its operands, numpy scalars or arrays that broadcast; None for any other one."""
    dialect, _, name = op.name.partition(".")
    if dialect not in ("arith", "math") or len(op.results) != 1 or not len(op.operands):
        return None
    dtype, source = dtype_of(op.results[0].type), dtype_of(op.operands[0].type)
    if name == "select":
        return lambda flag, a, b: np.where(flag, a, b)
    if name in ("cmpi", "cmpf"):
        return (_compared_integers if name == "cmpi" else _compared_floats)(ir.IntegerAttr(op.attributes["predicate"]).value)
    if name == "bitcast":
        return lambda x: x.view(dtype)
    if name in ("fptosi", "fptoui"):
        return _cast(_to_integer(name == "fptoui", dtype), dtype)
    function = _INTEGERS.get(name) or _FLOATS.get(name)
    if function is None:
        return None
    if isinstance(function, np.ufunc) and dtype == source and dtype.kind != "b":
        return function
    if source.kind == "b" and name in _INTEGERS and name not in ("extui", "index_castui"):
        return _cast(lambda *flags: function(*(-flag.astype(np.int8) for flag in flags)), dtype)
    return _cast(function, dtype)


def _cast(function: Function, dtype: np.dtype) -> Function:
    if dtype.kind == "b":
        return lambda *operands: (np.asarray(function(*operands)) & 1).astype(bool)
    return lambda *operands: np.asarray(function(*operands)).astype(dtype, copy=False)


def constant_of(op: ir.Operation) -> Any:
    """The value of an arith.constant of a scalar type."""
    type_, attribute = op.results[0].type, op.attributes["value"]
    if isinstance(type_, ir.IndexType):
        return np.int64(ir.IntegerAttr(attribute).value)
    return np.bool_(attribute.value) if str(type_) == "i1" else dtype_of(type_).type(attribute.value)
