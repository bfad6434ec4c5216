"""Operators of complex numbers, which are pairs of their parts: those of torch.fft, functions, and operators of real numbers by parts."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod, sqrt
from typing import Any

from relayc.frontend.common import complex as complex_
from relayc.frontend.common.complex import Pair, as_pair
from relayc.frontend.common.products import matmul
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.pytorch import create, elementwise, indexing, reduce, shape
from relayc.frontend.pytorch.operands import operand
from relayc.frontend.pytorch.registry import CONVERTERS, Converter, aten, call, node
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import broadcast_to, cast, filled
from relayc.symbolic import Size

_FAMILIES = (create, elementwise, indexing, reduce, shape)
"""The modules whose converters are applied to each part."""

# ---- by parts ---------------------------------------------------------------------------------------------------------------------------

_BY_PARTS = (
    *("view", "_unsafe_view", "unsqueeze", "squeeze", "expand", "permute"),
    *("cat", "slice", "select", "narrow_copy", "split", "split_with_sizes", "unsafe_split", "unbind"),
    *("diagonal", "unfold", "as_strided", "repeat", "flip", "roll"),
    *("alias", "clone", "detach", "lift_fresh_copy", "lift_fresh"),
    *("index_select", "take", "gather", "index", "_unsafe_index", "slice_scatter", "diagonal_scatter"),
    *("index_put", "_unsafe_index_put", "scatter", "scatter_add", "copy", "constant_pad_nd"),
    *("full", "full_like", "new_full", "scalar_tensor", "where", "sum", "mean", "cumsum", "add", "sub", "neg"),
    *(form for name in ("zeros", "empty") for form in (name, f"{name}_like", f"new_{name}")),
)
"""What moves elements, and what is a sum of elements."""
_ELEMENTS = ("self", "other", "tensors", "src", "source", "values", "value", "fill_value", "s")
"""The arguments of such operators that are numbers with two parts."""


def _part(value: Any, i: int) -> Any:
    """The real (0) or the imaginary part (1) of an argument; that of real numbers is 0."""
    if isinstance(value, Pair):
        return value[i]
    if isinstance(value, tuple):
        return tuple(_part(v, i) for v in value)
    if isinstance(value, complex):
        return value.imag if i else value.real
    if i == 0 or value is None:
        return value
    return filled(value.shape, 0, value.dtype) if isinstance(value, Tensor) else 0


def _by_parts(convert: Converter, /, **arguments: Any) -> Any:
    real, imag = (call(convert, {k: _part(v, i) if k in _ELEMENTS else v for k, v in arguments.items()}, {}) for i in range(2))
    return tuple(map(Pair, real, imag)) if isinstance(real, tuple) else Pair(real, imag)


for _name in _BY_PARTS:
    aten(_name, of_complex=True)(partial(_by_parts, CONVERTERS[f"aten.{_name}"]))


# ---- parts ------------------------------------------------------------------------------------------------------------------------------


def _pair(x: Any) -> Pair:
    """An operand, real or complex, with parts of the dtype of the result."""
    if isinstance(x, complex):
        return Pair(operand(x.real), operand(x.imag))
    return Pair(*map(operand, x)) if isinstance(x, Pair) else as_pair(operand(x))


@aten("_to_copy", "prims.convert_element_type", of_complex=True, a="self")
def to_copy(self: Any) -> Any:
    return _pair(self) if node().is_complex else elementwise.to_dtype(self.real, node().dtype)


aten("ones", "ones_like", "new_ones", of_complex=True)(lambda: as_pair(filled(node().sizes, 1, node().dtype)))
aten("view_as_real", of_complex=True, self="x")(complex_.joined)
aten("view_as_complex", of_complex=True, self="x")(complex_.taken_apart)
aten("conj_physical", "_conj", "_conj_physical", of_complex=True, self="x")(complex_.conjugate)
aten("polar", of_complex=True, abs="size", angle="at")(complex_.polar)


@aten("complex", of_complex=True)
def of_parts(real: Tensor, imag: Tensor) -> Pair:
    return Pair(*(broadcast_to(part, node().sizes) for part in (real, imag)))


# ---- functions --------------------------------------------------------------------------------------------------------------------------

_UNARY: dict[str, Callable[[Pair], Any]] = {
    **{"abs": complex_.absolute, "angle": complex_.angle, "exp": complex_.exp, "log": complex_.log},
    "reciprocal": lambda x: complex_.divide(_pair(1), x),
}
for _name, _compute in _UNARY.items():
    aten(_name, of_complex=True, self="x")(_compute)


@aten("mul", of_complex=True)
def mul(self: Any, other: Any) -> Pair:
    for x, factor in ((self, other), (other, self)):
        if not isinstance(factor, (Pair, complex)):
            return complex_.scaled(_pair(x), operand(factor))
    return complex_.multiply(_pair(self), _pair(other))


@aten("pow.Tensor_Scalar", of_complex=True)
def power(self: Any, exponent: Any) -> Pair:
    x = _pair(self)
    return complex_.multiply(x, x) if exponent == 2 else complex_.exp(mul(complex_.log(x), exponent))


@aten("div", of_complex=True)
def div(self: Any, other: Any) -> Pair:
    if isinstance(other, (Pair, complex)):
        return complex_.divide(_pair(self), _pair(other))
    return Pair(*(emit("divide", part, operand(other)) for part in _pair(self)))


@aten("eq", "ne", of_complex=True)
def eq(self: Any, other: Any) -> Tensor:
    dtype = next(x.real.dtype for x in (self, other) if isinstance(x, Pair))
    parts = [[operand(_part(x, i), dtype) for x in (self, other)] for i in range(2)]
    same, both = ("equal", "logical_and") if node().operator == "aten.eq" else ("not_equal", "logical_or")
    return emit(both, *(emit(same, *part) for part in parts))


@aten("mm", "bmm", "matmul", "mv", "dot", "vdot", of_complex=True, mat2="other", vec="other", tensor="other")
def matmul_(self: Any, other: Any) -> Pair:
    a, b = as_pair(self), as_pair(other)
    a = complex_.conjugate(a) if node().operator == "aten.vdot" else a
    return complex_.multiply(a, b, matmul)


# ---- Fourier transforms -----------------------------------------------------------------------------------------------------------------


def _factor(normalization: int, count: Size, is_divided: bool) -> Tensor | None:
    """What a transform of `count` elements is multiplied with, None for 1.

    Args:
      normalization: torch's: 0 divides by nothing, 1 by the root of the count, 2 by the count.
      is_divided: whether it is divided by the count already.
    """
    power = 2 * is_divided - normalization  # of the root
    if power == 0:
        return None
    dtype = node().dtype
    if isinstance(count, int):
        return constant(sqrt(count) ** power, dtype)
    number = cast(size_tensor(count), dtype)
    found = number if power in (2, -2) else emit("sqrt", number)
    return found if power in (1, 2) else emit("divide", constant(1.0, dtype), found)


def _lengths(x: Any, dim: Sequence[int], last: Size | None = None) -> tuple[list[int], list[Size]]:
    axes = [axis_of(d, x.rank) for d in dim]
    lengths = [x.shape[a] for a in axes]
    return axes, lengths if last is None else [*lengths[:-1], last]


def _transformed(x: Any, dim: Sequence[int], normalization: int, inverse: bool, is_half: bool) -> Pair:
    axes, lengths = _lengths(x, dim)
    found = complex_.transform(x, axes, lengths, inverse, is_half)
    factor = _factor(normalization, prod(lengths), inverse)
    return found if factor is None else complex_.scaled(found, factor)


@aten("_fft_r2c", of_complex=True)
def fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Pair:
    return _transformed(self, dim, normalization, False, onesided)


@aten("_fft_c2c", of_complex=True)
def fft_c2c(self: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    return _transformed(self, dim, normalization, not forward, False) if dim else self


@aten("_fft_c2r", of_complex=True)
def fft_c2r(self: Pair, dim: Sequence[int], normalization: int, last_dim_size: Size) -> Tensor:
    axes, lengths = _lengths(self, dim, last_dim_size)
    found = complex_.real_inverse(self, axes, lengths)
    factor = _factor(normalization, prod(lengths), True)
    return found if factor is None else emit("multiply", found, factor)
