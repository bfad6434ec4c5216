"""Discrete Fourier transforms as steps on tensors: products with constant matrices, of which long transforms take several.

A complex tensor is one of *planes* [batch, 2, n], real and imaginary parts; a real one has a single plane. A transform of a length n = a b
is one of length a of the columns of [a, b], a product with constants exp(i t), and one of length b of the rows (Cooley and Tukey).
With factors of 16 to 64 these are small matrix products, which take less time than more steps of less arithmetic. A long prime length
becomes a convolution, of a power of two (Bluestein).
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, isqrt, log2, pi, prod
from typing import TypeAlias

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import add, binary, cast, filled, multiply, reshape, strided_slice, subtract, transpose
from relayc.symbolic import Size, minimum

Complex: TypeAlias = np.ndarray

DIRECT = 128
"""Up to this length one product is as fast as two of a factor each."""
_LONGEST_FACTOR = 64
_LONGEST_PRIME = 512
"""A prime length up to which the product is taken rather than three transforms of at least twice the length."""


def _roots(n: int, sign: int, product: np.ndarray) -> Complex:
    """exp(sign 2 pi i product / n), where the product may be large."""
    return np.exp(sign * 2j * pi / n * (product % n))


@lru_cache(maxsize=64)
def _matrix(n: int, sign: int) -> Complex:
    """The transform of length n as a matrix, [element, frequency]."""
    at = np.arange(n, dtype=np.int64)
    return _roots(n, sign, np.outer(at, at))


def _planes_matrix(matrix: Complex, planes: int) -> np.ndarray:
    """A complex matrix [n, m] as the real one [planes n, 2 m] that a row of planes is multiplied with."""
    rows = [np.concatenate([matrix.real, matrix.imag], 1), np.concatenate([-matrix.imag, matrix.real], 1)]
    return np.concatenate(rows[:planes])


def _factor(n: int) -> int:
    """A short factor of n, of at least its root if there is one; 1 for a prime. The products have as many columns."""
    long = next((d for d in range(isqrt(n - 1) + 1, _LONGEST_FACTOR + 1) if n % d == 0), 0)
    return long or next(d for d in range(min(isqrt(n), _LONGEST_FACTOR), 0, -1) if n % d == 0)


def _times(x: Tensor, table: Complex) -> Tensor:
    """Planes [batch, 1 or 2, ...] times complex constants [...]."""
    real = constant(np.stack([table.real, table.imag if x.shape[1] == 1 else table.real])[None], x.dtype)
    found = emit("multiply", x, real)
    if x.shape[1] == 1:
        return found
    return emit("add", found, emit("multiply", _turned(x), constant(table.imag[None, None], x.dtype)))


def _turned(x: Tensor) -> Tensor:
    """Planes [batch, 2, ...] times i."""
    signs = np.reshape([-1, 1], (2, *[1] * (x.rank - 2)))
    return emit("multiply", emit("reverse", x, axis=1), constant(signs, x.dtype))


def spectrum(x: Tensor, sign: int) -> Tensor:
    """sum over n of exp(sign 2 pi i k n / N) x[n] for each k, along the last axis, of a known length.

    Args:
      x: planes [batch, 1 or 2, n], float32 or float64.
      sign: -1 for the transform, 1 for its inverse, which is not divided by n here.

    Returns:
      Planes [batch, 2, n].
    """
    batch, planes, length = x.shape
    assert isinstance(length, int) and isinstance(planes, int)  # by the converters
    if length <= DIRECT:
        return _product(x, sign, length)
    first = _factor(length)
    if first == 1:
        return _product(x, sign, length) if length <= _LONGEST_PRIME else _by_convolution(x, sign)
    second = length // first
    left = constant(_planes_matrix(_matrix(first, sign), planes).T[None], x.dtype)
    y = emit("nn.batch_matmul", left, reshape(x, (batch, planes * first, second)), transpose_b=False)
    z = _times(reshape(y, (batch, 2, first, second)), _roots(length, sign, np.outer(np.arange(first), np.arange(second))))
    if second > DIRECT:
        rows = reshape(transpose(z, (0, 2, 1, 3)), (batch * first, 2, second))
        found = transpose(reshape(spectrum(rows, sign), (batch, first, 2, second)), (0, 2, 3, 1))
        return reshape(found, (batch, 2, length))
    # The columns of each plane by themselves, so that the product can read them where they are.
    left = constant(_planes_matrix(_matrix(second, sign), 1).T[None], x.dtype)
    parts = emit("nn.batch_matmul", left, reshape(z, (batch * 2, first, second)), transpose_b=True)
    parts = reshape(parts, (batch, 2, 2, length))
    of_real, of_imaginary = (reshape(strided_slice(parts, [i], [i + 1], [1], [1]), (batch, 2, length)) for i in (0, 1))
    return emit("add", of_real, _turned(of_imaginary))


def _product(x: Tensor, sign: int, frequencies: int) -> Tensor:
    """The first frequencies by one product."""
    batch, planes, length = x.shape
    assert isinstance(length, int) and isinstance(planes, int)
    matrix = constant(_planes_matrix(_matrix(length, sign)[:, :frequencies], planes), x.dtype)
    found = emit("nn.matmul", reshape(x, (batch, planes * length)), matrix)
    return reshape(found, (batch, 2, frequencies))


def _by_convolution(x: Tensor, sign: int) -> Tensor:
    """k n is (k^2 + n^2 - (k - n)^2) / 2: a convolution with exp(-sign pi i n^2 / N), between two products with its inverse."""
    length = x.shape[2]
    assert isinstance(length, int)
    long = 1 << ceil(log2(2 * length - 1))
    at = np.arange(length, dtype=np.int64)
    chirp = _roots(2 * length, sign, at * at)
    kernel = np.zeros(long, complex)
    kernel[:length] = chirp.conj()
    kernel[long - length + 1 :] = chirp.conj()[:0:-1]
    padded = resized(_times(x, chirp), 2, long)
    found = spectrum(_times(spectrum(padded, -1), np.fft.fft(kernel) / long), 1)
    return _times(resized(found, 2, length), chirp)


def resized(x: Tensor, axis: int, size: Size) -> Tensor:
    """x with `size` elements along an axis: what is behind them is cut off, and what is missing is 0."""
    kept = minimum(x.shape[axis], size)
    x = strided_slice(x, [0], [kept], [1], [axis])
    if kept == size:
        return x
    width: list[Size] = [0] * (2 * x.rank)
    width[2 * axis + 1] = size - kept
    return emit("nn.pad", x, filled((), 0, x.dtype), pad_width=tuple(width))


# ---- the forms that operators have ---------------------------------------------------------------------------------------------------


def transform(x: Tensor, length: Size, inverse: bool, frequencies: Size | None = None) -> Tensor:
    """The transform of length `length`, which the rows of x are cut or filled up with zeros to.

    Args:
      x: [batch, n, 1 or 2]: real, or real and imaginary part of each element.
      inverse: whether it is the inverse one, divided by the length.
      frequencies: how many of the first frequencies are wanted; all where None.

    Returns:
      [batch, frequencies, 2].
    """
    x, sign = resized(x, 1, length), 1 if inverse else -1
    wanted = length if frequencies is None else frequencies
    if not isinstance(length, int):
        return _pairs(_computed(_planes(x), length, wanted, sign, inverse))
    assert isinstance(wanted, int)
    if length <= 2 * DIRECT:
        # One product on elements as they are: of half the frequencies it is half of the arithmetic.
        batch, _, parts = x.shape
        assert isinstance(parts, int)
        matrix = _matrix(length, sign)[:, :wanted] / (length if inverse else 1)
        interleaved = _planes_matrix(matrix, parts).reshape(parts, length, 2, wanted).transpose(1, 0, 3, 2)
        weights = constant(np.ascontiguousarray(interleaved).reshape(length * parts, 2 * wanted), x.dtype)
        return reshape(emit("nn.matmul", reshape(x, (batch, length * parts)), weights), (batch, wanted, 2))
    found = _pairs(resized(spectrum(_planes(x), sign), 2, wanted))
    return multiply(found, 1 / length) if inverse else found


def real_inverse(x: Tensor, length: Size) -> Tensor:
    """The real rows of which the first length // 2 + 1 frequencies of the transform are x.

    Args:
      x: [batch, frequencies, 1 or 2], as `transform` takes it; imaginary parts that those of real rows do not have are left out.

    Returns:
      [batch, length, 1].
    """
    half = length // 2 + 1
    planes = _planes(resized(x, 1, half))
    batch, count, _ = planes.shape
    if not isinstance(length, int):
        real = _computed(_weighted(planes, length), length, length, 1, True)
        return reshape(strided_slice(real, [0], [1], [1], [1]), (batch, length, 1))
    weights = np.full(length // 2 + 1, 2.0)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    if length <= 2 * DIRECT:
        matrix = (_matrix(length, 1)[: length // 2 + 1] * weights[:, None]) / length
        table = _planes_matrix(matrix, int(count))[:, :length]
        flat = reshape(planes, (batch, count * half))
        return reshape(emit("nn.matmul", flat, constant(table, x.dtype)), (batch, length, 1))
    # Of a sum with its conjugate the real part is left: frequencies that stand for two count twice, the others are 0.
    found = spectrum(resized(multiply_by(planes, weights / length), 2, length), 1)
    return reshape(strided_slice(found, [0], [1], [1], [1]), (batch, length, 1))


def multiply_by(x: Tensor, factors: np.ndarray) -> Tensor:
    """x times constants along its last axis."""
    return emit("multiply", x, constant(factors, x.dtype))


def _planes(x: Tensor) -> Tensor:
    """[batch, n, parts] as planes."""
    batch, length, parts = x.shape
    return reshape(x, (batch, 1, length)) if parts == 1 else transpose(x, (0, 2, 1))


def _pairs(x: Tensor) -> Tensor:
    """Planes as [batch, n, 2]."""
    return transpose(x, (0, 2, 1))


def _float_of(size: Size, dtype: str) -> Tensor:
    return cast(size_tensor(size), dtype)


def _computed(x: Tensor, length: Size, wanted: Size, sign: int, divided: bool) -> Tensor:
    """A transform of a length that is an expression, by a product with a matrix that the program computes; x may have fewer elements."""
    batch, planes, count = x.shape
    rows, columns = (positions(n) for n in (count, wanted))
    product = emit("multiply", reshape(rows, (count, 1)), reshape(columns, (1, wanted)))
    cosines, sines = _circle(product, length, x.dtype)
    sines = sines if sign > 0 else emit("negative", sines)
    flat = reshape(x, (batch * planes, count))
    cosine, sine = (reshape(emit("nn.matmul", flat, table), (batch, planes, wanted)) for table in (cosines, sines))
    if planes == 1:
        found = emit("concatenate", cosine, sine, axis=1)
    else:
        (a, b), (c, d) = ([strided_slice(t, [i], [i + 1], [1], [1]) for i in (0, 1)] for t in (cosine, sine))
        found = emit("concatenate", subtract(a, d), add(b, c), axis=1)
    return emit("divide", found, _float_of(length, x.dtype)) if divided else found


def _circle(step: Tensor, length: Size, dtype: str) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi step / length, of integers: exact at each quarter of the circle, as both are computed of a part of a quarter."""
    period = emit("maximum", size_tensor(length), constant(1, "int64"))
    quarters = multiply(emit("floor_mod", step, period), 4)
    which = emit("floor_divide", quarters, period)
    part = emit("divide", multiply(cast(emit("floor_mod", quarters, period), dtype), pi / 2), cast(period, dtype))
    along, across = emit("cos", part), emit("sin", part)
    is_odd = binary("equal", binary("bitwise_and", which, 1), 1)
    is_right = binary("less", binary("bitwise_and", add(which, 1), 3), 2)  # those numbered 3 and 0
    is_upper = binary("less", which, 2)
    cosine, sine = emit("where", is_odd, across, along), emit("where", is_odd, along, across)
    return emit("where", is_right, cosine, emit("negative", cosine)), emit("where", is_upper, sine, emit("negative", sine))


def _weighted(x: Tensor, length: Size) -> Tensor:
    """The frequencies of real rows, each as often as it counts."""
    at = positions(x.shape[-1])
    twice = emit("multiply", at, constant(2, "int64"))
    single: Callable[[Size], Tensor] = lambda n: emit("equal", twice, size_tensor(n))  # noqa: E731 (an argument)
    alone = emit("logical_or", single(0), single(length))
    return emit("multiply", x, emit("where", alone, filled((), 1, x.dtype), filled((), 2, x.dtype)))


def rows_of(x: Tensor, axis: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """[batch, n, parts] of a tensor [..., parts] with n along `axis`, and what brings a result of that form back."""
    order = (*(a for a in range(x.rank - 1) if a != axis), axis, x.rank - 1)
    moved = transpose(x, order)

    def back(found: Tensor) -> Tensor:
        whole = reshape(found, (*moved.shape[:-2], *found.shape[1:]))
        return transpose(whole, [order.index(a) for a in range(x.rank)])

    return reshape(moved, (prod(moved.shape[:-2]), *moved.shape[-2:])), back
