"""Discrete Fourier transforms as steps on tensors, of rows [batch, n, parts]: real, or real and imaginary part of each element.

A short transform is a product with a constant matrix, a longer one of a length with small factors is the operator `fft`. Any other length
n becomes a convolution, which is two transforms of a power of two of at least 2 n - 1 elements (Bluestein). Of a length that is an
expression the program finds the factors, and chooses.
"""

from collections.abc import Callable
from functools import lru_cache
from math import log2, pi, prod
from typing import TypeAlias

import numpy as np

from relayc.dialects.relay import If, TensorType
from relayc.dialects.relay.fourier import PLAN, plan_of
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.sizes import new_symbols, positions, size_tensor
from relayc.frontend.steps import add, binary, cast, filled, multiply, reshape, strided_slice, subtract, transpose
from relayc.symbolic import Size, maximum, minimum

Complex: TypeAlias = np.ndarray

# What an element costs, in multiply-adds of a product: by factors that have code of their own; beside that by each other factor, times its
# size; by a convolution, for each element of its lines, times the logarithm of their length.
_BY_FACTORS, _BY_FACTOR, _BY_CONVOLUTION = 100, 5, 23


# ---- tables ---------------------------------------------------------------------------------------------------------------------------


def _roots(n: int, product: np.ndarray) -> Complex:
    """exp(-2 pi i product / n), where the product may be large."""
    return np.exp(-2j * pi / n * (product % n))


@lru_cache(maxsize=64)
def _matrix(n: int) -> Complex:
    """The transform of length n as a matrix, [element, frequency]."""
    at = np.arange(n, dtype=np.int64)
    return _roots(n, np.outer(at, at))


def _pairs(z: Complex) -> np.ndarray:
    return np.stack([z.real, z.imag], -1)


def _table(z: Complex, dtype: str) -> Tensor:
    return constant(np.stack([z.real, z.imag]), dtype)


def _root_table(length: Size, dtype: str) -> Tensor:
    """The roots that `fft` wants."""
    if isinstance(length, int):
        return _table(_roots(length, np.arange(length)), dtype)
    return emit("fft_roots", positions(length), size_tensor(length), dtype=dtype)


def _plan_of(length: Size) -> Tensor:
    return _padded(plan_of(length)) if isinstance(length, int) else emit("fft_plan", size_tensor(length))


def _padded(plan: list[int]) -> Tensor:
    return constant(plan + [0] * (PLAN - len(plan)), "int64")


# ---- transforms -----------------------------------------------------------------------------------------------------------------------


def transform(x: Tensor, length: Size, inverse: bool, frequencies: Size | None = None) -> Tensor:
    """The transform of length `length`, which the rows of x are cut or filled up with zeros to.

    Args:
      x: [batch, n, 1 or 2]: real, or real and imaginary part of each element.
      inverse: whether it is the inverse one, divided by the length.
      frequencies: how many of the first frequencies are wanted; all where None.

    Returns:
      [batch, frequencies, 2].
    """
    wanted = length if frequencies is None else frequencies
    if isinstance(length, int) and isinstance(wanted, int) and _is_short(length, _parts(x) * 2 * wanted, _parts(x) == 1):
        matrix = _matrix(length)[:, :wanted]
        matrix = matrix.conj() / length if inverse else matrix
        # What an element's real part, and its imaginary one, contribute to both parts of each frequency.
        weights = np.stack([_pairs(matrix), _pairs(1j * matrix)], 1)[:, : x.shape[2]]
        return _product(x, weights.reshape(length, -1, 2 * wanted), wanted, 2)
    return _long(x, length, wanted, inverse, False)


def real_inverse(x: Tensor, length: Size) -> Tensor:
    """The real rows of which the first length // 2 + 1 frequencies of the transform are x.

    Args:
      x: [batch, frequencies, 1 or 2], as `transform` takes it; imaginary parts that those of real rows do not have are left out.

    Returns:
      [batch, length, 1].
    """
    if isinstance(length, int) and _is_short(length, _parts(x) * (length // 2 + 1), True):
        matrix = _matrix(length).conj()[: length // 2 + 1] * (_counts(length, "float64").array[:, None] / length)
        weights = np.stack([matrix.real, -matrix.imag], 1)[:, : x.shape[2]]
        return _product(x, weights, length, 1)
    return _long(x, length, length, True, True)


def _parts(x: Tensor) -> int:
    parts = x.shape[2]
    assert isinstance(parts, int)  # by the converters
    return parts


def _is_short(length: int, weights: int, halved: bool) -> bool:
    """Whether a product takes no longer than anything else.

    Args:
      weights: of each element.
      halved: whether the rows are real on one side.
    """
    left, _, *factors = plan_of(_lines(length, halved))
    if left == 1:
        return weights <= _BY_FACTORS + _BY_FACTOR * sum(f for f in factors if f > 5 and f % 2)
    long = _long_enough(length)
    return weights * length <= _BY_CONVOLUTION * long * log2(long)


def _lines(length: int, halved: bool) -> int:
    """Elements of the lines that `fft` makes of rows."""
    return length // 2 if halved and length % 2 == 0 else length


def _long_enough(length: int) -> int:
    """The power of two for a convolution."""
    return 1 << (2 * length - 2).bit_length()


def _product(x: Tensor, weights: np.ndarray, elements: int, parts: int) -> Tensor:
    """Rows times weights [n, parts of x, elements * parts] as [batch, elements, parts]."""
    x = resized(x, 1, weights.shape[0])
    table = constant(np.ascontiguousarray(weights).reshape(-1, elements * parts), x.dtype)
    return reshape(emit("nn.matmul", reshape(x, (x.shape[0], table.shape[0])), table), (x.shape[0], elements, parts))


def _long(x: Tensor, length: Size, frequencies: Size, inverse: bool, to_real: bool) -> Tensor:
    """By the factors of the length, or, where it has none, by a convolution."""
    halved = to_real or x.shape[2] == 1
    if isinstance(length, int):
        plan = plan_of(_lines(length, halved))
        if plan[0] == 1:
            return _factored(x, length, frequencies, inverse, to_real, _padded(plan))
        return _convolved(x, length, frequencies, inverse, to_real)
    length = maximum(length, 0)
    number = size_tensor(length)
    if halved:
        number = emit("right_shift", number, subtract(constant(1, "int64"), binary("bitwise_and", number, 1)))
    plan, rows = emit("fft_plan", number), Tensor(x.type, value=x.value)
    # A transform of no elements has nothing to compute either.
    has_factors = reshape(binary("less", strided_slice(plan, [0], [1], [1], [0]), 2), ())
    found = If.create(
        has_factors.value,
        lambda: _factored(rows, length, frequencies, inverse, to_real, plan).value,
        lambda: _convolved(rows, length, frequencies, inverse, to_real).value,
    )
    return Tensor(TensorType.of(found), value=found)


def _factored(x: Tensor, length: Size, frequencies: Size, inverse: bool, to_real: bool, plan: Tensor) -> Tensor:
    sizes = {"length": length, "frequencies": frequencies}
    return emit("fft", x, _root_table(length, x.dtype), plan, **sizes, inverse=inverse, to_real=to_real)


def _convolved(x: Tensor, length: Size, frequencies: Size, inverse: bool, to_real: bool) -> Tensor:
    """j k is (j^2 + k^2 - (k - j)^2) / 2: between two products with exp(-pi i j^2 / n) stands a convolution with its inverse."""
    x = strided_slice(x, [0], [minimum(x.shape[1], length)], [1], [1])
    if to_real:
        # Of a sum with its conjugate the real part is left: frequencies that stand for two count twice, the others are 0.
        x = resized(x, 1, length // 2 + 1)
        x = emit("multiply", x, reshape(_counts(length, x.dtype), (length // 2 + 1, 1)))
    if isinstance(length, int):
        chirp, kernel = _known_chirps(length, inverse, x.dtype)
    else:
        chirp, kernel = _computed_chirps(length, inverse, x.dtype)
    long = chirp.shape[1]
    roots, plan = _root_table(long, x.dtype), _plan_of(long)
    spectrum = emit("fft", x, roots, plan, chirp, length=long, frequencies=long, is_power_of_two=True)
    found = emit("fft", spectrum, roots, plan, kernel, chirp, length=long, frequencies=frequencies, inverse=True, is_power_of_two=True)
    return strided_slice(found, [0], [1], [1], [2]) if to_real else found


def _known_chirps(length: int, inverse: bool, dtype: str) -> tuple[Tensor, Tensor]:
    """exp(-pi i j^2 / n), of the inverse transform its conjugate, [2, long], around 0: with its first elements at the end, too; and the
    transform of the kernel that is its conjugate, divided by n for the inverse transform."""
    long, at = _long_enough(length), np.arange(length, dtype=np.int64)
    chirp = np.zeros(long, complex)
    chirp[:length] = _roots(2 * length, at * at)
    chirp[long - length + 1 :] = chirp[length - 1 : 0 : -1]
    if inverse:
        chirp = chirp.conj()
    return _table(chirp, dtype), _table(np.fft.fft(chirp.conj()) / (length if inverse else 1), dtype)


def _computed_chirps(length: Size, inverse: bool, dtype: str) -> tuple[Tensor, Tensor]:
    """The same of a length that is an expression."""
    number = size_tensor(length)
    ones = multiply(subtract(number, constant(1, "int64")), 2)
    for shift in (1, 2, 4, 8, 16, 32):
        ones = emit("bitwise_or", ones, binary("right_shift", ones, shift))
    (more,) = new_symbols(reshape(add(emit("subtract", ones, number), 1), (1,)), "padding")
    long = length + more
    at = positions(long)
    away = emit("minimum", at, emit("subtract", size_tensor(long), at))
    parts = emit("fft_roots", emit("multiply", away, away), multiply(number, 2), dtype=dtype)
    parts = emit("where", emit("less", away, number), parts, constant(0.0, dtype))
    conjugate = emit("multiply", parts, constant([[1.0], [-1.0]], dtype))
    chirp, kernel = (conjugate, parts) if inverse else (parts, conjugate)
    rows, sizes = reshape(transpose(kernel, (1, 0)), (1, long, 2)), {"length": long, "frequencies": long}
    spectrum = emit("fft", rows, _root_table(long, dtype), _plan_of(long), **sizes, is_power_of_two=True)
    spectrum = transpose(reshape(spectrum, (long, 2)), (1, 0))
    return chirp, emit("divide", spectrum, cast(number, dtype)) if inverse else spectrum


def _counts(length: Size, dtype: str) -> Tensor:
    """For how many frequencies of real rows each of the first ones stands."""
    count = length // 2 + 1
    if isinstance(length, int):
        return constant([1.0 if 2 * k in (0, length) else 2.0 for k in range(count)], dtype)
    twice = multiply(positions(count), 2)
    alone = emit("logical_or", binary("equal", twice, 0), emit("equal", twice, size_tensor(length)))
    return emit("where", alone, filled((), 1, dtype), filled((), 2, dtype))


# ---- forms ----------------------------------------------------------------------------------------------------------------------------


def resized(x: Tensor, axis: int, size: Size) -> Tensor:
    """x with `size` elements along an axis: what is behind them is cut off, and what is missing is 0."""
    kept = minimum(x.shape[axis], size)
    x = strided_slice(x, [0], [kept], [1], [axis])
    if kept == size:
        return x
    width: list[Size] = [0] * (2 * x.rank)
    width[2 * axis + 1] = size - kept
    return emit("nn.pad", x, filled((), 0, x.dtype), pad_width=tuple(width))


def rows_of(x: Tensor, axis: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """[batch, n, parts] of a tensor [..., parts] with n along `axis`, and what brings a result of that form back."""
    order = (*(a for a in range(x.rank - 1) if a != axis), axis, x.rank - 1)
    moved = transpose(x, order)

    def back(found: Tensor) -> Tensor:
        whole = reshape(found, (*moved.shape[:-2], *found.shape[1:]))
        return transpose(whole, [order.index(a) for a in range(x.rank)])

    return reshape(moved, (prod(moved.shape[:-2]), *moved.shape[-2:])), back
