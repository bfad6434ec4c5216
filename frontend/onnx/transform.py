"""Shape and data movement."""

from collections.abc import Sequence
from math import prod

import numpy as np

from relayc.frontend.converter import Tensor, axes_of, axis_of, constant, emit, ints
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import broadcast_shape, broadcast_to, check_constant, filled, reshape, strided_slice, transpose


@converter()
def Reshape(data: Tensor, shape: Tensor, *, allowzero: bool = False) -> Tensor:
    """0 copies the size of the data (unless allowzero), one -1 is what is left."""
    wanted = list(ints(shape, "shape"))
    if not allowzero:
        if any(d == 0 and i >= data.rank for i, d in enumerate(wanted)):
            raise OnnxError(f"input shape: expected zeros for axes of data {list(data.shape)}, found {wanted}")
        wanted = [data.shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    unknown = [i for i, d in enumerate(wanted) if d == -1]
    if len(unknown) == 1:
        others = prod(d for d in wanted if d != -1)
        wanted[unknown[0]] = prod(data.shape) // others if others else 0
    if any(d < 0 for d in wanted):
        raise OnnxError(f"input shape: expected sizes and at most one -1, found {list(ints(shape, 'shape'))}")
    return reshape(data, wanted)


@converter()
def Flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    if axis == x.rank:
        return reshape(x, (prod(x.shape), 1))
    axis = axis_of(axis, x.rank)
    return reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@converter()
def Transpose(data: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    axes = tuple(reversed(range(data.rank))) if perm is None else axes_of(perm, data.rank)
    if len(axes) != data.rank:
        raise OnnxError(f"attribute perm: expected {data.rank} axes, found {list(perm or ())}")
    return transpose(data, axes)


def _squeeze(data: Tensor, axes: Sequence[int] | None) -> Tensor:
    chosen = axes_of(axes, data.rank) if axes is not None else tuple(i for i, d in enumerate(data.shape) if d == 1)
    wrong = [a for a in chosen if data.shape[a] != 1]
    if wrong:
        raise OnnxError(f"axes: expected axes of size 1 of {list(data.shape)}, found {wrong}")
    return reshape(data, [d for i, d in enumerate(data.shape) if i not in chosen])


def _unsqueeze(data: Tensor, axes: Sequence[int]) -> Tensor:
    rank = data.rank + len(axes)
    new = axes_of(axes, rank)
    sizes = iter(data.shape)
    return reshape(data, [1 if i in new else next(sizes) for i in range(rank)])


@converter()
def Squeeze(data: Tensor, *, axes: Sequence[int] | None = None) -> Tensor:
    return _squeeze(data, axes)


@converter("Squeeze", since=13)
def Squeeze_13(data: Tensor, axes: Tensor | None = None) -> Tensor:
    return _squeeze(data, None if axes is None else ints(axes, "axes"))


@converter()
def Unsqueeze(data: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _unsqueeze(data, axes)


@converter("Unsqueeze", since=13)
def Unsqueeze_13(data: Tensor, axes: Tensor) -> Tensor:
    return _unsqueeze(data, ints(axes, "axes"))


@converter()
def Concat(first: Tensor, *rest: Tensor, axis: int) -> Tensor:
    along = axis_of(axis, first.rank)
    # An empty part adds nothing, so it is left out; it has to fit all the same.
    sizes = {t.shape[:along] + t.shape[along + 1 :] for t in (first, *rest)}
    if len(sizes) > 1 or any(t.rank != first.rank or t.dtype != first.dtype for t in rest):
        found = ", ".join(str(t.type) for t in (first, *rest))
        raise OnnxError(f"expected inputs of one element type that differ in the size of axis {along} alone, found {found}")
    parts = [t for t in (first, *rest) if t.shape[along] > 0] or [first]
    return parts[0] if len(parts) == 1 else emit("concatenate", *parts, axis=along)


# ---- slices ---------------------------------------------------------------------------------------------------------------------------


@converter()
def Slice(data: Tensor, *, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None) -> Tensor:
    return _slice(data, starts, ends, axes, None)


@converter("Slice", since=10)
def Slice_10(data: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None = None, steps: Tensor | None = None) -> Tensor:
    given = [None if t is None else ints(t, name) for t, name in ((axes, "axes"), (steps, "steps"))]
    return _slice(data, ints(starts, "starts"), ints(ends, "ends"), *given)


def _slice(data: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None, steps: Sequence[int] | None) -> Tensor:
    chosen = axes_of(range(len(starts)) if axes is None else axes, data.rank)
    strides = [1] * len(starts) if steps is None else list(steps)
    if not len(starts) == len(ends) == len(chosen) == len(strides):
        raise OnnxError(
            f"expected starts, ends, axes and steps of one length, found {len(starts)}, {len(ends)}, {len(chosen)}, {len(strides)}"
        )
    if 0 in strides:
        raise OnnxError("input steps: expected values other than 0, found 0")
    return strided_slice(data, starts, ends, strides, chosen)


def _split(data: Tensor, axis: int, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    axis = axis_of(axis, data.rank)
    if sum(sizes) != data.shape[axis] or any(s < 0 for s in sizes):
        raise OnnxError(f"split: expected sizes that add up to {data.shape[axis]}, found {list(sizes)}")
    if len(sizes) == 1:
        return (data,)
    if 0 in sizes:
        starts = np.cumsum([0, *sizes])
        return tuple(strided_slice(data, [b], [e], [1], [axis]) for b, e in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    return emit("split", data, indices_or_sections=[int(i) for i in np.cumsum(sizes[:-1])], axis=axis)


def _even_sizes(size: int, count: int | None = None) -> list[int]:
    """Equal parts, one for each output, the last one smaller where their number does not divide `size`."""
    outputs = len(current().outputs)
    if not outputs:
        raise OnnxError("expected an output, found none")
    if count not in (None, outputs):
        raise OnnxError(f"attribute num_outputs: expected {outputs}, the number of outputs, found {count}")
    count = outputs
    part = -(-size // count)
    return [max(min(part, size - i * part), 0) for i in range(count)]


@converter()
def Split(data: Tensor, *, axis: int = 0, split: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    size = data.shape[axis_of(axis, data.rank)]
    return _split(data, axis, split or _even_sizes(size))


@converter("Split", since=13)
def Split_13(data: Tensor, split: Tensor | None = None, *, axis: int = 0, num_outputs: int | None = None) -> tuple[Tensor, ...]:
    size = data.shape[axis_of(axis, data.rank)]
    return _split(data, axis, ints(split, "split") if split is not None else _even_sizes(size, num_outputs))


# ---- repetition -----------------------------------------------------------------------------------------------------------------------


@converter(since=8)
def Expand(x: Tensor, shape: Tensor) -> Tensor:
    return broadcast_to(x, broadcast_shape(x.shape, ints(shape, "shape")))


@converter()
def Tile(x: Tensor, repeats: Tensor) -> Tensor:
    reps = ints(repeats, "repeats")
    if len(reps) != x.rank:
        raise OnnxError(f"input repeats: expected {x.rank} values, found {list(reps)}")
    return x if all(r == 1 for r in reps) else emit("tile", x, reps=reps)


# ---- padding --------------------------------------------------------------------------------------------------------------------------


def _pad(x: Tensor, pads: Sequence[int], value: Tensor | None, mode: str, axes: Sequence[int]) -> Tensor:
    """Adds to both ends of each axis, or takes away where `pads` is negative."""
    n = len(axes)
    if len(pads) != 2 * n:
        raise OnnxError(f"pads: expected {2 * n} values, found {list(pads)}")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise OnnxError(f"attribute mode: expected constant, reflect, edge or wrap, found {mode!r}")
    width = [(0, 0)] * x.rank
    for axis, before, after in zip(axes, pads[:n], pads[n:], strict=True):
        width[axis] = (before, after)
    if not _is_pad_of_relay(x, width, mode):
        return _gathered_pad(x, width, mode)
    if mode == "constant":
        x = _cropped(x, width)
        width = [(max(before, 0), max(after, 0)) for before, after in width]
    if not any(map(any, width)):
        return x
    return emit("nn.pad", x, value or filled((), 0, x.dtype), pad_width=[w for pair in width for w in pair], pad_mode=mode)


def _is_pad_of_relay(x: Tensor, width: Sequence[tuple[int, int]], mode: str) -> bool:
    """Whether nn.pad can do it: no wrapping, no cropping of mirrored or repeated edges, no reflection longer than the axis."""
    if mode == "constant":
        return True
    longest = [d - 1 if mode == "reflect" else max(pair) for d, pair in zip(x.shape, width, strict=True)]
    return mode != "wrap" and all(min(pair) >= 0 and max(pair) <= most for pair, most in zip(width, longest, strict=True))


def _cropped(x: Tensor, width: Sequence[tuple[int, int]]) -> Tensor:
    begin = [max(-before, 0) for before, _ in width]
    end = [d - max(-after, 0) for d, (_, after) in zip(x.shape, width, strict=True)]
    return strided_slice(x, begin, end, [1] * x.rank, range(x.rank))


def _gathered_pad(x: Tensor, width: Sequence[tuple[int, int]], mode: str) -> Tensor:
    """Padding as a choice of positions along each axis, as numpy.pad makes it."""
    for axis, (before, after) in enumerate(width):
        if before or after:
            check_constant([x.shape[axis] + max(before, 0) + max(after, 0)], "int64")
            if not x.shape[axis]:
                raise OnnxError(f"pads: expected none along axis {axis}, which has no element to repeat, found {before} and {after}")
            width_here = (max(before, 0), max(after, 0))
            positions = np.pad(np.arange(x.shape[axis]), width_here, mode=mode)  # type: ignore[call-overload] # one of its modes
            chosen = positions[max(-before, 0) : len(positions) - max(-after, 0)]
            x = emit("take", x, constant(chosen, "int64"), axis=axis, mode="clip")
    return x


@converter(since=2)
def Pad(x: Tensor, *, pads: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    return _pad(x, pads, filled((), value, x.dtype), mode, range(x.rank))


@converter("Pad", since=11)
def Pad_11(x: Tensor, pads: Tensor, constant_value: Tensor | None = None, axes: Tensor | None = None, *, mode: str = "constant") -> Tensor:
    chosen = range(x.rank) if axes is None else axes_of(ints(axes, "axes"), x.rank)
    value = None if constant_value is None else reshape(constant_value, ())
    return _pad(x, ints(pads, "pads"), value, mode, chosen)


@converter(since=18)
def CenterCropPad(x: Tensor, shape: Tensor, *, axes: Sequence[int] | None = None) -> Tensor:
    chosen = range(x.rank) if axes is None else axes_of(axes, x.rank)
    sizes = ints(shape, "shape")
    if len(sizes) != len(chosen):
        raise OnnxError(f"input shape: expected {len(chosen)} values, one for each axis, found {list(sizes)}")
    missing = [wanted - x.shape[a] for wanted, a in zip(sizes, chosen, strict=True)]
    # Half of what is missing, or too much, goes before; the odd one after.
    before = [m // 2 if m >= 0 else -(-m // 2) for m in missing]
    return _pad(x, [*before, *(m - b for m, b in zip(missing, before, strict=True))], None, "constant", chosen)


# ---- blocks and triangles -------------------------------------------------------------------------------------------------------------


@converter()
def DepthToSpace(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    return emit("nn.depth_to_space", x, block_size=blocksize, mode=mode)


@converter()
def SpaceToDepth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    if mode != "DCR":
        return _space_to_depth_crd(x, blocksize)
    return emit("nn.space_to_depth", x, block_size=blocksize)


def _space_to_depth_crd(x: Tensor, block: int) -> Tensor:
    """The inverse of DepthToSpace in its mode CRD (operator set 28)."""
    n, c, h, w = x.shape
    blocks = reshape(x, (n, c, h // block, block, w // block, block))
    return reshape(transpose(blocks, (0, 1, 3, 5, 2, 4)), (n, c * block * block, h // block, w // block))


@converter(since=14)
def Trilu(x: Tensor, k: Tensor | None = None, *, upper: bool = True) -> Tensor:
    diagonal = constant(0, "int64") if k is None else reshape(k, ())
    return emit("trilu", x, diagonal, upper=upper)
