"""Complex numbers as pairs of their parts, and Fourier transforms of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from relayc.frontend import fourier
from relayc.frontend.common.functions import atan2, hypot
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.steps import filled, reshape, row
from relayc.symbolic import Size


class Pair(NamedTuple):
    """A tensor of complex numbers: their parts, of one type."""

    real: Tensor
    imag: Tensor

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.real.shape

    @property
    def rank(self) -> int:
        return self.real.rank


def as_pair(x: Tensor | Pair) -> Pair:
    """Real numbers as complex ones."""
    return x if isinstance(x, Pair) else Pair(x, filled(x.shape, 0, x.dtype))


def joined(x: Tensor | Pair) -> Tensor:
    """The parts of numbers along a new last axis, which real numbers have one of."""
    return emit("stack", x.real, x.imag, axis=x.rank) if isinstance(x, Pair) else reshape(x, (*x.shape, 1))


def taken_apart(x: Tensor) -> Pair:
    """The complex numbers whose parts are along the last axis."""
    return Pair(*(row(x, i, x.rank - 1) for i in range(2)))


# ---- functions --------------------------------------------------------------------------------------------------------------------------


def _by_parts(relay_name: str, *operands: Pair) -> Pair:
    """An operator on the real parts, and on the imaginary ones."""
    return Pair(*(emit(relay_name, *parts) for parts in zip(*operands, strict=True)))


add, subtract, negative = (partial(_by_parts, name) for name in ("add", "subtract", "negative"))


def conjugate(x: Pair) -> Pair:
    return Pair(x.real, emit("negative", x.imag))


_of_elements: Callable[[Tensor, Tensor], Tensor] = partial(emit, "multiply")


def multiply(a: Pair, b: Pair, product: Callable[[Tensor, Tensor], Tensor] = _of_elements) -> Pair:
    """The products of complex numbers; `product` multiplies real ones, by elements or as matrices."""
    real = emit("subtract", product(a.real, b.real), product(a.imag, b.imag))
    return Pair(real, emit("add", product(a.real, b.imag), product(a.imag, b.real)))


def scaled(x: Pair, factor: Tensor) -> Pair:
    """x times real numbers."""
    return Pair(emit("multiply", x.real, factor), emit("multiply", x.imag, factor))


def divide(a: Pair, b: Pair) -> Pair:
    size = emit("add", emit("multiply", b.real, b.real), emit("multiply", b.imag, b.imag))
    found = multiply(a, conjugate(b))
    return Pair(emit("divide", found.real, size), emit("divide", found.imag, size))


def absolute(x: Pair) -> Tensor:
    """The length."""
    return hypot(x.real, x.imag)


def angle(x: Pair) -> Tensor:
    return atan2(x.imag, x.real)


def polar(size: Tensor, at: Tensor) -> Pair:
    """The numbers of a length and an angle."""
    return Pair(emit("multiply", size, emit("cos", at)), emit("multiply", size, emit("sin", at)))


def exp(x: Pair) -> Pair:
    return polar(emit("exp", x.real), x.imag)


def log(x: Pair) -> Pair:
    return Pair(emit("log", absolute(x)), angle(x))


def where(condition: Tensor, a: Pair, b: Pair) -> Pair:
    return Pair(emit("where", condition, a.real, b.real), emit("where", condition, a.imag, b.imag))


# ---- transforms -------------------------------------------------------------------------------------------------------------------------


def transform(x: Tensor | Pair, axes: Sequence[int], lengths: Sequence[Size], inverse: bool, is_half: bool) -> Pair:
    """The Fourier transform along some axes; the inverse one is divided by the lengths.

    Args:
      is_half: whether along the last one of the axes only the first length // 2 + 1 frequencies are wanted.
    """
    data, last = joined(x), len(axes) - 1
    for i in reversed(range(len(axes))):  # the last axis first: its rows are those that may be real
        wanted = lengths[i] // 2 + 1 if is_half and i == last else None
        data = _along(data, axes[i], partial(fourier.transform, length=lengths[i], inverse=inverse, frequencies=wanted))
    return taken_apart(data)


def real_inverse(x: Tensor | Pair, axes: Sequence[int], lengths: Sequence[Size]) -> Tensor:
    """The real numbers of which x is the transform, with the first length // 2 + 1 frequencies along the last one of the axes."""
    data = joined(x)
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        data = _along(data, axis, partial(fourier.transform, length=length, inverse=True))
    found = _along(data, axes[-1], partial(fourier.real_inverse, length=lengths[-1]))
    return reshape(found, found.shape[:-1])


def _along(x: Tensor, axis: int, compute: Callable[[Tensor], Tensor]) -> Tensor:
    rows, back = fourier.rows_of(x, axis)
    return back(compute(rows))
