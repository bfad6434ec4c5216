"""Padding of tensors, in every mode and of sizes that only the program knows."""

from collections.abc import Sequence

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import binary, check_constant, filled, strided_slice, subtract
from relayc.symbolic import Dim, Size, bounds, maximum


def pad(x: Tensor, pads: Sequence[Size], value: Tensor | None, mode: str, axes: Sequence[int]) -> Tensor:
    """Adds to both ends of each axis, or takes away where `pads` is negative. `wrap` repeats what is left, as ONNX Runtime and torch do."""
    n = len(axes)
    if len(pads) != 2 * n:
        raise ModelError(f"pads: expected {2 * n} values, found {list(pads)}")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise ModelError(f"attribute mode: expected constant, reflect, edge or wrap, found {mode!r}")
    width: list[tuple[Size, Size]] = [(0, 0)] * x.rank
    for axis, before, after in zip(axes, pads[:n], pads[n:], strict=True):
        width[axis] = (before, after)
    if mode in ("constant", "wrap"):
        x = _cropped(x, width)
        width = [(maximum(before, 0), maximum(after, 0)) for before, after in width]
    if not _is_pad_of_relay(x, width, mode):
        return gathered_pad(x, width, mode)
    if all(pair == (0, 0) for pair in width):
        return x
    return emit("nn.pad", x, value or filled((), 0, x.dtype), pad_width=[w for pair in width for w in pair], pad_mode=mode)


def _is_pad_of_relay(x: Tensor, width: Sequence[tuple[Size, Size]], mode: str) -> bool:
    """Whether nn.pad can do it: no wrapping, no cropping of mirrored or repeated edges, no reflection longer than the axis."""
    if mode == "constant":
        return True
    if mode == "wrap":
        return False
    # That a reflection fits an axis of symbolic size is checked when the program runs.
    return all(
        bounds(w)[0] >= 0 and (isinstance(w, Dim) or mode == "edge" or w == 0 or isinstance(d, Dim) or w <= d - 1)
        for d, pair in zip(x.shape, width, strict=True)
        for w in pair
    )


def _cropped(x: Tensor, width: Sequence[tuple[Size, Size]]) -> Tensor:
    begin = [maximum(-before, 0) for before, _ in width]
    end = [d - maximum(-after, 0) for d, (_, after) in zip(x.shape, width, strict=True)]
    return strided_slice(x, begin, end, [1] * x.rank, range(x.rank))


def gathered_pad(x: Tensor, width: Sequence[tuple[Size, Size]], mode: str) -> Tensor:
    """Padding as a choice of positions along each axis, as numpy.pad makes it: `width` is of (before, after) for each."""
    for axis, (before, after) in enumerate(width):
        if before == 0 and after == 0:
            continue
        size = x.shape[axis]
        if not (isinstance(before, int) and isinstance(after, int) and isinstance(size, int)):
            x = _gathered_pad_of(x, axis, before, after, mode)
            continue
        check_constant([size + max(before, 0) + max(after, 0)], "int64")
        if not size:
            raise ModelError(f"pads: expected none along axis {axis}, which has no element to repeat, found {before} and {after}")
        width_here = (max(before, 0), max(after, 0))
        found = np.pad(np.arange(size), width_here, mode=mode)  # type: ignore[call-overload] # one of its modes
        chosen = found[max(-before, 0) : len(found) - max(-after, 0)]
        x = emit("take", x, constant(chosen, "int64"), axis=axis, mode="clip")
    return x


def _gathered_pad_of(x: Tensor, axis: int, before: Size, after: Size, mode: str) -> Tensor:
    """As `gathered_pad` along an axis of symbolic size: the positions are computed by the program."""
    size = size_tensor(x.shape[axis])
    at = subtract(positions(x.shape[axis] + before + after), size_tensor(before))
    if mode == "wrap":
        at = emit("floor_mod", at, size)
    elif mode == "reflect":
        # There and back takes twice the way between the ends.
        last = binary("subtract", size, 1)
        turned = emit("floor_mod", at, binary("maximum", binary("multiply", last, 2), 1))
        at = emit("minimum", turned, emit("subtract", binary("multiply", last, 2), turned))
    else:
        at = emit("minimum", binary("maximum", at, 0), binary("subtract", size, 1))
    return emit("take", x, at, axis=axis, mode="clip")
