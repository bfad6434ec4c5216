"""Windows that slide over spatial axes: what convolutions and poolings share.

Spatial attributes may be given in Relay's short forms: one value for all axes, or for padding one value, one per axis (both sides), or
two per axis (all the values before, then all after, as in ONNX).
"""

from typing import Any, overload

from relayc.dialects.relay.base import Ints, Size, Sizes, check
from relayc.dialects.relay.conditions import require_at_least
from relayc.symbolic import ceil_div, maximum, minimum, proves

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
AXES = {1: "one axis", 2: "two axes", 3: "three axes"}
"""Letters of the spatial axes by their number."""

Pairs = tuple[tuple[int, int], ...]


@overload
def per_axis(values: Ints, n: int, name: str, least: int = ...) -> Ints: ...
@overload
def per_axis(values: Sizes, n: int, name: str, least: int = ...) -> Sizes: ...


def per_axis(values: Sizes, n: int, name: str, least: int = 1) -> Any:
    """`values` with one entry for each of `n` axes. Raises RelayError for another number of them or a value below `least`."""
    check(len(values) in (1, n), name, f"1 or {n} values" if n > 1 else "1 value", values)
    for value in values:
        require_at_least(least, value, name, f"values of at least {least}", values)
    return tuple(values) * n if len(values) == 1 else tuple(values)


def padding_pairs(padding: Ints, n: int) -> Pairs:
    """(before, after) for each of `n` axes. Raises RelayError for another number of values or a negative one."""
    allowed = sorted({1, n, 2 * n})
    check(len(padding) in allowed, "padding", " or ".join(map(str, allowed)) + " values", padding)
    check(all(p >= 0 for p in padding), "padding", "values of at least 0", padding)
    if len(padding) == 2 * n:
        return tuple(zip(padding[:n], padding[n:], strict=True))
    return tuple((p, p) for p in per_axis(padding, n, "padding", least=0))


@overload
def extent(kernel: int, dilation: int) -> int: ...
@overload
def extent(kernel: Size, dilation: int) -> Size: ...


def extent(kernel: Size, dilation: int) -> Size:
    """Elements that a dilated window spans."""
    return dilation * (kernel - 1) + 1


def windows(
    size: Size | None, kernel: Size | None, stride: int, dilation: int, pads: tuple[int, int], ceil_mode: bool, axis: str
) -> Size | None:
    """Number of windows along an axis of `size` elements (None if it cannot be known).

    With `ceil_mode` a last window that hangs over the end counts too, unless it would start in the padding after the data (the rule of ONNX
    MaxPool-22 and AveragePool-22). Raises RelayError if not one window fits.
    """
    if size is None or kernel is None:
        return None
    padded, span = size + sum(pads), extent(kernel, dilation)
    if ceil_mode:
        count = ceil_div(padded - span, stride) + 1
        starting = ceil_div(size + pads[0], stride)
        if proves(lambda: span <= pads[1]):
            # It may be that more than one window starts in the padding after the data: the last one goes.
            count = count - maximum(0, minimum(1, count - starting))
        elif not proves(lambda: pads[1] + stride <= span):
            count = minimum(count, starting)
    else:
        count = (padded - span) // stride + 1
    require_at_least(1, count, f"window along axis {axis}", f"at most {padded} elements (data {size} with padding {pads})", span)
    return count
