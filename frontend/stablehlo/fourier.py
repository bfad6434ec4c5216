"""Operators of complex numbers, and Fourier transforms."""

from collections.abc import Callable
from typing import Any

from relayc.frontend.common import complex as complex_
from relayc.frontend.stablehlo import elementwise as _elementwise  # noqa: F401 (its converters get another form)
from relayc.frontend.stablehlo.registry import CONVERTERS, Node, Pair, op
from relayc.frontend.steps import broadcast_to, cast, filled


def _also_complex(name: str, compute: Callable[..., Any]) -> None:
    """Gives the converter of real numbers one of pairs beside it."""
    real = CONVERTERS[f"stablehlo.{name}"]

    @op(name, elementwise=True, complex_too=True)
    def convert(node: Node, *operands: Any) -> Any:
        return compute(*operands) if any(isinstance(value, Pair) for value in operands) else real(node, *operands)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"add": complex_.add, "subtract": complex_.subtract, "multiply": complex_.multiply, "divide": complex_.divide},
    **{"negate": complex_.negative, "abs": complex_.absolute, "exponential": complex_.exp, "log": complex_.log},
    "select": complex_.where,
}
for _name, _compute in _FUNCTIONS.items():
    _also_complex(_name, _compute)


op("real", complex_too=True)(lambda node, x: complex_.as_pair(x).real)
op("imag", complex_too=True)(lambda node, x: complex_.as_pair(x).imag)
op("complex", complex_too=True)(lambda node, a, b: Pair(a, b))

_convert = CONVERTERS["stablehlo.convert"]


@op("convert", complex_too=True)
def convert(node: Node, x: Any) -> Any:
    if node.dtype != "complex":
        return _convert(node, x.real if isinstance(x, Pair) else x)
    width = "float64" if "f64" in str(node.op.results[0].type) else "float32"
    if isinstance(x, Pair):
        return Pair(*(cast(part, width) for part in x))
    shape, _ = node.result()
    part = broadcast_to(cast(x, width), tuple(1 if d is None else d for d in shape))
    return Pair(part, filled(part.shape, 0, width))


@op("fft", complex_too=True)
def fft(node: Node, x: Any) -> Any:
    kind, lengths = node.attribute("fft_type"), node.ints("fft_length")
    axes = [len(x.shape) - len(lengths) + i for i in range(len(lengths))]
    if kind == "IRFFT":
        return complex_.real_inverse(x, axes, lengths)
    return complex_.transform(x, axes, lengths, kind == "IFFT", kind == "RFFT")
