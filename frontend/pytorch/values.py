"""Between torch and relayc: dtypes, sizes and numbers of graphs (sympy expressions), and weights as arrays that share their memory."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import sympy
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from relayc.dialects.relay.types import TensorType
from relayc.frontend.common.complex import Pair
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import Inexact, Ratio, size_tensor
from relayc.frontend.steps import cast
from relayc.symbolic import FAR, Dim, Range, Size, maximum, minimum

_NAMES = (
    *("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
DTYPES: dict[Any, str] = {getattr(torch, name): name for name in _NAMES if hasattr(torch, name)}
"""The names of torch's dtypes; what is not there (torch's quantised types) is not supported."""
PARTS: dict[Any, str] = {torch.complex32: "float16", torch.complex64: "float32", torch.complex128: "float64"}
"""The dtypes of the parts of complex numbers."""


def dtype_name(dtype: Any) -> str:
    """Raises ModelError for a dtype that relayc does not have."""
    if dtype not in DTYPES:
        raise ModelError(f"expected a dtype out of {', '.join(DTYPES.values())}, found {str(dtype).removeprefix('torch.')}")
    return DTYPES[dtype]


def element_dtype(dtype: Any) -> str:
    """The name of a dtype, of complex numbers that of their parts. Raises ModelError as `dtype_name`."""
    return PARTS.get(dtype) or dtype_name(dtype)


def is_complex(value: Any) -> bool:
    """Whether a value of a graph is a tensor of complex numbers."""
    return isinstance(value, torch.Tensor) and value.dtype in PARTS


# ---- sizes and numbers ------------------------------------------------------------------------------------------------------------------


def is_expression(given: Any) -> bool:
    """Whether a value of a graph is a number that depends on sizes."""
    return isinstance(given, (torch.SymInt, torch.SymFloat, torch.SymBool, sympy.Basic))


def expression_of(given: Any) -> Any:
    """The sympy expression of a number of a graph."""
    return given.node.expr if isinstance(given, (torch.SymInt, torch.SymFloat, torch.SymBool)) else sympy.sympify(given)


class Symbols(dict[str, Any]):
    """What stands for the symbols of a graph: a size, or a scalar Tensor where a symbol is no whole number."""

    def size(self, given: Any) -> Size:
        """A whole number of a graph. Raises ModelError where it is no expression that relayc has."""
        if isinstance(given, (int, Dim)) and not isinstance(given, bool):
            return given
        expression = expression_of(given)
        try:
            found = self._value(expression)
        except Inexact:
            raise ModelError(f"expected a size that is an exact expression, found {expression}") from None
        if isinstance(found, Ratio) and found.den == 1:
            found = found.num
        if isinstance(found, Ratio):
            raise ModelError(f"expected a size that is a whole number, found {expression}")
        return found

    def shape(self, fake: Any) -> tuple[Size, ...]:
        """That of a fake tensor."""
        return tuple(map(self.size, fake.shape))

    def _value(self, e: Any) -> Size | Ratio:
        if e.is_Integer:
            return int(e)
        if e.is_Symbol:
            if isinstance(self.get(str(e)), Tensor) or str(e) not in self:
                raise ModelError(f"expected a size, found {e}, which is no whole number of an input or of data")
            return self[str(e)]
        if e.is_Number:
            return Ratio.number(float(e))
        kind = type(e).__name__
        args = [self._value(a) for a in e.args]
        if kind == "Pow" and isinstance(args[1], int) and 0 < args[1] < 16:
            return reduce(_multiplied, [args[0]] * args[1])
        if kind in _SIZES:
            return _SIZES[kind](*args)
        raise ModelError(f"expected a size made of sums, products, quotients, minima and maxima, found {e}")

    def tensor(self, given: Any, dtype: str) -> Tensor:
        """A number of a graph as a scalar."""
        e = expression_of(given)
        if not e.free_symbols:
            return constant(bool(e) if e in (sympy.true, sympy.false) else float(e) if not e.is_Integer else int(e), dtype)
        return cast(self._computed(e), dtype)

    def _computed(self, e: Any) -> Tensor:
        """A number as one that the program computes: of a size in int64, any other in float64, a truth value in bool."""
        if e.is_Symbol and isinstance(self.get(str(e)), Tensor):
            return self[str(e)]
        kind = type(e).__name__
        if kind in _COMPARISONS:
            a, b = (self._computed(sympy.sympify(x)) for x in e.args)
            dtype = "int64" if a.dtype == b.dtype == "int64" else "float64"
            return emit(_COMPARISONS[kind], cast(a, dtype), cast(b, dtype))
        if kind in ("And", "Or"):
            return reduce(lambda a, b: emit(f"logical_{kind.lower()}", a, b), map(self._computed, e.args))
        if kind == "Not":
            return emit("logical_not", self._computed(e.args[0]))
        if e.is_Number:
            return constant(int(e), "int64") if e.is_Integer else constant(float(e), "float64")
        if not kind.startswith(("Float", "IntTrue", "OpaqueUnaryFn", "ToFloat", "Pow")) and e.is_integer is not False:
            try:
                return size_tensor(self.size(e))
            except ModelError:
                pass
        args = [cast(self._computed(a), "float64") for a in e.args]
        unary = kind.removeprefix("OpaqueUnaryFn_")
        if unary in _UNARY:
            return emit(unary, *args)
        if kind == "ToFloat":
            return args[0]
        if kind in _NUMBERS:
            return reduce(lambda a, b: emit(_NUMBERS[kind], a, b), args)
        raise ModelError(f"expected a number made of sizes by arithmetic, found {e}")


def _multiplied(a: Size | Ratio, b: Size | Ratio) -> Size | Ratio:
    return _ratio(a) * _ratio(b) if isinstance(a, Ratio) or isinstance(b, Ratio) else a * b


def _added(a: Size | Ratio, b: Size | Ratio) -> Size | Ratio:
    return _ratio(a) + _ratio(b) if isinstance(a, Ratio) or isinstance(b, Ratio) else a + b


def _ratio(a: Size | Ratio) -> Ratio:
    return a if isinstance(a, Ratio) else Ratio(a)


_SIZES: Mapping[str, Callable[..., Size | Ratio]] = {
    "Add": lambda *args: reduce(_added, args),
    "Mul": lambda *args: reduce(_multiplied, args),
    **dict.fromkeys(("FloorDiv", "CleanDiv", "IntDiv"), lambda a, b: a // b),
    **dict.fromkeys(("Mod", "PythonMod"), lambda a, b: a % b),
    "ModularIndexing": lambda base, divisor, modulus: base // divisor % modulus,
    **dict.fromkeys(("Max", "max"), lambda *args: maximum(*args)),
    **dict.fromkeys(("Min", "min"), lambda *args: minimum(*args)),
    "Identity": lambda a: a,
    "ToFloat": _ratio,
    **dict.fromkeys(("IntTrueDiv", "FloatTrueDiv"), lambda a, b: _ratio(a) / _ratio(b)),
    **dict.fromkeys(("FloorToInt", "TruncToInt", "floor"), lambda a: _ratio(a).floor().num),
    **dict.fromkeys(("CeilToInt", "ceiling"), lambda a: _ratio(a).ceil().num),
}
_COMPARISONS = {
    **{"Equality": "equal", "Eq": "equal", "Unequality": "not_equal", "Ne": "not_equal"},
    **{"StrictLessThan": "less", "LessThan": "less_equal", "StrictGreaterThan": "greater", "GreaterThan": "greater_equal"},
}
_UNARY = ("sqrt", "exp", "log", "log2", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan")
_NUMBERS = {
    **{"Add": "add", "Mul": "multiply", "Pow": "power", "FloatPow": "power"},
    **{"IntTrueDiv": "divide", "FloatTrueDiv": "divide", "Max": "maximum", "Min": "minimum"},
}


def range_of(constraint: Any) -> Range:
    """What torch knows of a symbol. Sizes of 2 or more are what it takes for granted of sizes unless told: programs run at 1, too."""
    low = int(constraint.lower) if constraint.lower.is_Integer else 0
    high = int(constraint.upper) if constraint.upper.is_Integer else FAR
    return Range(1 if low == 2 else low, min(high, FAR))


# ---- weights ----------------------------------------------------------------------------------------------------------------------------

_UNKNOWN_TO_NUMPY = {"bfloat16": "int16", **{name: "uint8" for name in _NAMES if name.startswith("float8")}}


def array_of(tensor: Any) -> np.ndarray:
    """The memory of a tensor on the CPU as an array; a copy where it is elsewhere or not contiguous."""
    with unset_fake_temporarily():
        found = tensor.detach().cpu().contiguous()
        name = dtype_name(found.dtype)
        if name not in _UNKNOWN_TO_NUMPY:
            return found.resolve_conj().resolve_neg().numpy()
        bits: np.ndarray = found.view(getattr(torch, _UNKNOWN_TO_NUMPY[name])).numpy()
        return bits.view(getattr(ml_dtypes, name))


def weight(name: str, tensor: Any) -> Tensor | Pair:
    """A tensor that the program holds; it is read when an operator uses it."""
    if is_complex(tensor):
        return Pair(*(_real_weight(f"{name}_{part}", getattr(tensor, part)) for part in Pair._fields))
    return _real_weight(name, tensor)


def _real_weight(name: str, tensor: Any) -> Tensor:
    type_ = TensorType(tuple(tensor.shape), dtype_name(tensor.dtype))
    return Tensor(type_, read=lambda: array_of(tensor), name=name)
