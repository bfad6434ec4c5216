"""What convolutions, poolings and resizings share: spatial axes and padding, with the names that ONNX has for the attributes."""

from collections.abc import Sequence

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.steps import filled
from relayc.symbolic import FAR, Dim, Size, ceil_div, maximum

SPATIAL_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def spatial_rank(x: Tensor, what: str = "X") -> int:
    """Number of spatial axes of data in ONNX's order N, C, D1, ... Raises ModelError where Relay has no operator for it."""
    n = x.rank - 2
    if n not in SPATIAL_LAYOUTS:
        raise ModelError(f"input {what}: expected one to three spatial axes, found shape {list(x.shape)}")
    return n


def window_padding(
    auto_pad: str, pads: Sequence[int] | None, size: Sequence[Size], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[Size, ...]:
    """Padding of a sliding window, all begins then all ends (the attributes auto_pad and pads of Conv and the poolings)."""
    n = len(size)
    if auto_pad == "NOTSET":
        return explicit_padding(pads, n)
    if auto_pad == "VALID":
        return (0,) * (2 * n)
    total: list[Size] = []
    for d, k, s, r in zip(size, kernel, strides, dilations, strict=True):
        extent = (k - 1) * r + 1
        total.append(maximum((ceil_div(d, s) - 1) * s + extent - d, 0))
    return split_padding(auto_pad, total)


def explicit_padding(pads: Sequence[int] | None, n: int) -> tuple[int, ...]:
    """The attribute pads of a window over `n` axes, all begins then all ends; 0 where there is none. Raises ModelError."""
    found = tuple(pads) if pads is not None else (0,) * (2 * n)
    if len(found) != 2 * n:
        raise ModelError(f"attribute pads: expected {2 * n} values, found {list(found)}")
    return found


def split_padding(auto_pad: str, total: Sequence[Size]) -> tuple[Size, ...]:
    """Total padding per axis as begins and ends: SAME_UPPER has the odd one at the end, SAME_LOWER at the beginning."""
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"attribute auto_pad: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER, found {auto_pad!r}")
    less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    return (*less, *more) if auto_pad == "SAME_UPPER" else (*more, *less)


def padded(x: Tensor, padding: tuple[Size, ...], value: float | Tensor = 0) -> tuple[Tensor, tuple[int, ...]]:
    """x and the padding of its windows: what depends on symbolic sizes is added to x, as windows have padding in numbers alone."""
    numbers = tuple(p for p in padding if not isinstance(p, Dim))
    if len(numbers) == len(padding):
        return x, numbers
    n = len(padding) // 2
    width = (0, 0, 0, 0, *(p for pair in zip(padding[:n], padding[n:], strict=True) for p in pair))
    return emit("nn.pad", x, value if isinstance(value, Tensor) else filled((), value, x.dtype), pad_width=width), (0,) * len(padding)


def per_axis(values: Sequence[int] | None, n: int, what: str, default: int = 1) -> tuple[int, ...]:
    """An attribute with one entry per spatial axis. Raises ModelError for another number of them."""
    found = (default,) * n if values is None else tuple(values)
    if len(found) != n:
        raise ModelError(f"attribute {what}: expected {n} value(s), found {list(found)}")
    if max(found, default=0) > FAR:
        raise ModelError(f"attribute {what}: expected values of at most {FAR}, found {list(found)}")
    return found
