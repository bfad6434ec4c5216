"""Complex numbers as pairs of their parts, and Fourier transforms of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from relayc.frontend import fourier
from relayc.frontend.common.functions import atan2
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.stablehlo import elementwise as _elementwise  # noqa: F401 (its converters get another form)
from relayc.frontend.stablehlo.registry import COMPLEX, CONVERTERS, ELEMENTWISE, Node, Pair, op
from relayc.frontend.steps import broadcast_to, filled, reshape, strided_slice


def _also_complex(name: str, compute: Callable[..., Any]) -> None:
    """Gives the converter of real numbers one of pairs beside it."""
    full = f"stablehlo.{name}"
    real = CONVERTERS[full]
    COMPLEX.add(full)
    assert full in ELEMENTWISE

    def convert(node: Node, *operands: Any) -> Any:
        if not any(isinstance(value, Pair) for value in operands):
            return real(node, *operands)
        return compute(*operands)

    CONVERTERS[full] = convert


def _multiply(a: Pair, b: Pair) -> Pair:
    real = emit("subtract", emit("multiply", a.real, b.real), emit("multiply", a.imag, b.imag))
    return Pair(real, emit("add", emit("multiply", a.real, b.imag), emit("multiply", a.imag, b.real)))


def _divide(a: Pair, b: Pair) -> Pair:
    size = emit("add", emit("multiply", b.real, b.real), emit("multiply", b.imag, b.imag))
    found = _multiply(a, Pair(b.real, emit("negative", b.imag)))
    return Pair(emit("divide", found.real, size), emit("divide", found.imag, size))


def _abs(x: Pair) -> Tensor:
    """The length, of parts divided by the larger one: squares do not overflow."""
    a, b = (emit("abs", part) for part in x)
    large, small = emit("maximum", a, b), emit("minimum", a, b)
    zero = emit("equal", large, filled((), 0, large.dtype))
    ratio = emit("divide", small, emit("where", zero, filled((), 1, large.dtype), large))
    root = emit("sqrt", emit("add", emit("multiply", ratio, ratio), filled((), 1, large.dtype)))
    return emit("multiply", large, root)


def _exp(x: Pair) -> Pair:
    size = emit("exp", x.real)
    return Pair(emit("multiply", size, emit("cos", x.imag)), emit("multiply", size, emit("sin", x.imag)))


_also_complex("add", lambda a, b: Pair(emit("add", a.real, b.real), emit("add", a.imag, b.imag)))
_also_complex("subtract", lambda a, b: Pair(emit("subtract", a.real, b.real), emit("subtract", a.imag, b.imag)))
_also_complex("multiply", _multiply)
_also_complex("divide", _divide)
_also_complex("negate", lambda x: Pair(emit("negative", x.real), emit("negative", x.imag)))
_also_complex("abs", _abs)
_also_complex("exponential", _exp)
_also_complex("log", lambda x: Pair(emit("log", _abs(x)), atan2(x.imag, x.real)))
_also_complex("select", lambda p, a, b: Pair(emit("where", p, a.real, b.real), emit("where", p, a.imag, b.imag)))


@op("real", complex_too=True)
def real(node: Node, x: Any) -> Tensor:
    return x.real if isinstance(x, Pair) else x


@op("imag", complex_too=True)
def imag(node: Node, x: Any) -> Tensor:
    return x.imag if isinstance(x, Pair) else filled(x.shape, 0, x.dtype)


@op("complex", complex_too=True)
def complex_(node: Node, a: Tensor, b: Tensor) -> Pair:
    return Pair(a, b)


_convert = CONVERTERS["stablehlo.convert"]


@op("convert", elementwise=True, complex_too=True)
def convert(node: Node, x: Any) -> Any:
    if isinstance(x, Pair) or node.dtype != "complex":
        return x if isinstance(x, Pair) and node.dtype == "complex" else _convert(node, x.real if isinstance(x, Pair) else x)
    width = "float64" if "f64" in str(node.op.results[0].type) else "float32"
    shape, _ = node.result()
    part = broadcast_to(emit("cast", x, dtype=width), tuple(1 if d is None else d for d in shape))
    return Pair(part, filled(part.shape, 0, width))


@op("fft", complex_too=True)
def fft(node: Node, x: Any) -> Any:
    kind, lengths = node.attribute("fft_type"), node.ints("fft_length")
    n = len(lengths)
    shape = x.shape
    data = emit("stack", x.real, x.imag, axis=len(shape)) if isinstance(x, Pair) else reshape(x, (*shape, 1))
    last = len(shape) - 1
    # The last axis has the transform of real numbers: it is transformed first forwards, and last backwards.
    others = [(len(shape) - n + i, lengths[i]) for i in range(n - 1)]
    inverse = kind in ("IFFT", "IRFFT")
    if kind == "RFFT":
        data = _along(data, last, lambda rows: fourier.transform(rows, lengths[-1], False, lengths[-1] // 2 + 1))
    elif kind in ("FFT", "IFFT"):
        data = _along(data, last, lambda rows: fourier.transform(rows, lengths[-1], inverse))
    elif kind != "IRFFT":
        raise ModelError(f"fft_type: expected FFT, IFFT, RFFT or IRFFT, found {kind}")
    for axis, length in others:
        data = _along(data, axis, partial(fourier.transform, length=length, inverse=inverse))
    if kind == "IRFFT":
        found = _along(data, last, lambda rows: fourier.real_inverse(rows, lengths[-1]))
        return reshape(found, found.shape[:-1])
    parts = [reshape(strided_slice(data, (i,), (i + 1,), (1,), (data.rank - 1,)), data.shape[:-1]) for i in range(2)]
    return Pair(*parts)


def _along(x: Tensor, axis: int, compute: Callable[[Tensor], Tensor]) -> Tensor:
    rows, back = fourier.rows_of(x, axis)
    return back(compute(rows))
