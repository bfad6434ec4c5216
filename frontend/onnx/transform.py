"""Shape and data movement."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from math import prod
from operator import add

from relayc.dialects.relay.names import build
from relayc.frontend.common.padding import pad
from relayc.frontend.converter import (
    Tensor,
    assume,
    axes_of,
    axis_of,
    constant,
    emit,
    integer,
    ints,
    known,
    may_equal,
    simpler,
)
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.late_axes import LateAxes, squeeze_late, unsqueeze_late
from relayc.frontend.sizes import is_iteration, positions, shape_tensor, size_tensor, sizes
from relayc.frontend.steps import (
    binary,
    broadcast_shape,
    broadcast_to,
    cast,
    filled,
    reshape,
    strided_slice,
    transpose,
)
from relayc.symbolic import FAR, Size, bounds, broadcast, ceil_div, maximum, minimum, proves


@converter("Reshape")
def Reshape_1(data: Tensor, *, shape: Sequence[int] = ()) -> Tensor:
    return Reshape(data, constant(shape, "int64"))


@converter(since=5)
def Reshape(data: Tensor, shape: Tensor, *, allowzero: bool = False) -> Tensor:
    """0 copies the size of the data (unless allowzero), one -1 is what is left."""
    wanted = list(sizes(shape, "shape", lambda: _codes_resolved(data, shape, allowzero)))
    given = list(wanted)
    if not allowzero:
        if any(d == 0 and i >= data.rank for i, d in enumerate(wanted)):
            raise OnnxError(f"input shape: expected zeros for axes of data {list(data.shape)}, found {wanted}")
        wanted = [data.shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    unknown = [i for i, d in enumerate(wanted) if d == -1]
    if len(unknown) == 1:
        others = prod(d for d in wanted if d != -1)
        wanted[unknown[0]] = prod(data.shape) // others if others != 0 else 0
    if any(bounds(d)[1] < 0 for d in wanted):
        raise OnnxError(f"input shape: expected sizes and at most one -1, found {given}")
    return reshape(data, wanted)


def _codes_resolved(data: Tensor, shape: Tensor, allowzero: bool) -> Tensor:
    """A shape that only the program knows, in sizes alone."""
    if shape.rank != 1:
        raise OnnxError(f"input shape: expected a list of integers, found {shape.type}")
    found = cast(shape, "int64")
    if not allowzero:
        dims = (*data.shape, *(0,) * prod(shape.type.static_shape))[: prod(shape.type.static_shape)]
        found = emit("where", binary("equal", found, 0), shape_tensor(dims), found)
    is_rest = binary("equal", found, -1)
    total = size_tensor(prod(data.shape))
    others = emit("prod", emit("where", is_rest, constant(1, "int64"), found), axis=(0,))
    rest = emit("divide", total, binary("maximum", others, 1))
    return emit("where", is_rest, rest, found)


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


@converter()
def Squeeze(data: Tensor, *, axes: Sequence[int] | None = None) -> Tensor:
    chosen = axes_of(axes, data.rank) if axes is not None else tuple(i for i, d in enumerate(data.shape) if d == 1)
    wrong = [a for a in chosen if not may_equal(data.shape[a], 1)]
    if wrong:
        raise OnnxError(f"axes: expected axes of size 1 of {list(data.shape)}, found {wrong}")
    data = assume(data, [1 if i in chosen else d for i, d in enumerate(data.shape)])
    return reshape(data, [d for i, d in enumerate(data.shape) if i not in chosen])


@converter()
def Unsqueeze(data: Tensor, *, axes: Sequence[int]) -> Tensor:
    rank = data.rank + len(axes)
    new = axes_of(axes, rank)
    sizes = iter(data.shape)
    return reshape(data, [1 if i in new else next(sizes) for i in range(rank)])


@converter("Squeeze", since=13)
def Squeeze_13(data: Tensor, axes: Tensor | None = None) -> Tensor:
    if axes is not None and not axes.is_known:
        return squeeze_late(data, axes)
    return Squeeze(data, axes=None if axes is None else ints(axes, "axes"))


@converter("Unsqueeze", since=13)
def Unsqueeze_13(data: Tensor, axes: Tensor) -> Tensor:
    return Unsqueeze(data, axes=ints(axes, "axes")) if axes.is_known else unsqueeze_late(data, axes)


@converter("Concat")
def Concat_1(first: Tensor, *rest: Tensor, axis: int = 1) -> Tensor:
    return Concat(first, *rest, axis=axis)


@converter(since=4)
def Concat(first: Tensor, *rest: Tensor, axis: int) -> Tensor:
    along = axis_of(axis, first.rank)
    # Empty parts are omitted, but their shapes are checked.
    parts = _fitting((first, *rest), along)
    parts = [t for t in parts if t.shape[along] != 0] or [first]
    return parts[0] if len(parts) == 1 else emit("concatenate", *parts, axis=along)


def _fitting(tensors: Sequence[Tensor], along: int) -> list[Tensor]:
    """Tensors that differ in the size of one axis alone, as far as the program does not check that. Raises OnnxError."""
    first, *rest = tensors
    wanted = list(first.shape)
    for t in rest:
        fits = t.rank == first.rank and t.dtype == first.dtype
        if not fits or not all(may_equal(a, b) for i, (a, b) in enumerate(zip(wanted, t.shape, strict=True)) if i != along):
            found = ", ".join(str(t.type) for t in tensors)
            raise OnnxError(f"expected inputs of one element type that differ in the size of axis {along} alone, found {found}")
        wanted = [simpler(a, b) for a, b in zip(wanted, t.shape, strict=True)]
    return [assume(t, [d if i == along else w for i, (d, w) in enumerate(zip(t.shape, wanted, strict=True))]) for t in tensors]


# ---- slices ---------------------------------------------------------------------------------------------------------------------------


@converter()
def Slice(data: Tensor, *, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None) -> Tensor:
    return _slice(data, starts, ends, axes, None)


@converter("Slice", since=10)
def Slice_10(data: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None = None, steps: Tensor | None = None) -> Tensor:
    if axes is not None and not axes.is_known:
        return Slice_10(data, *_bounds_of_all(data, starts, ends, axes, steps))
    chosen = None if axes is None else ints(axes, "axes")
    if steps is not None and not steps.is_known:
        return _slice_by(data, starts, ends, chosen, steps)
    strides = None if steps is None else ints(steps, "steps")
    found = _row_of_iteration(data, starts, ends, chosen, strides)
    if found is not None:
        return found
    count = prod(starts.shape)
    along = axes_of(range(count) if chosen is None and isinstance(count, int) else chosen or (), data.rank)
    extents = [data.shape[a] for a in along]
    first = sizes(starts, "starts", partial(_within, starts, extents))
    return _slice(data, first, _ends(ends, extents, strides or [1] * len(extents)), chosen, strides)


def _ends(ends: Tensor, extents: Sequence[Size], strides: Sequence[int]) -> list[Size]:
    """Ends of a slice. Those that only the program knows become symbols, which are not negative."""
    before = None if ends.elements is None else list(ends.elements.reshape(-1))
    found = sizes(ends, "ends", partial(_within, ends, extents, [int(s < 0) for s in strides]))
    if ends.is_known or not len(found) == len(extents) == len(strides):
        return list(found)
    # Backwards a slice may end before the first element: the symbol is one more, and the end is counted from the back.
    return [
        minimum(end, extent) - extent - 1 if stride < 0 and (before is None or end != before[i]) else end
        for i, (end, extent, stride) in enumerate(zip(found, extents, strides, strict=True))
    ]


def _bounds_of_all(
    data: Tensor, starts: Tensor, ends: Tensor, axes: Tensor, steps: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Starts, ends, axes (None) and steps of a slice along all axes, from a slice along axes known only at run time."""
    late = LateAxes(axes, data.rank)
    if not all(may_equal(prod(t.shape), late.count) for t in (starts, ends, *([steps] if steps else ()))):
        raise OnnxError(f"expected starts, ends, axes and steps of one length, found {starts.type}, {ends.type} and {axes.type}")
    one = constant([1] * data.rank, "int64")
    by = one if steps is None else late.spread(steps, one)
    # A step of 0 is an error when the program runs.
    by = emit("where", late.valid, by, constant(0, "int64"))
    return late.spread(starts, constant([0] * data.rank, "int64")), late.spread(ends, shape_tensor(data.shape)), None, by


def _row_of_iteration(
    data: Tensor, starts: Tensor, ends: Tensor, axes: Sequence[int] | None, strides: Sequence[int] | None
) -> Tensor | None:
    """data[i : i + 1] where i is the number of a loop's iteration, and there are as many rows: one row, whatever i is. None elsewhere."""
    begin, end = starts.elements, ends.elements
    if begin is None or end is None or (begin.size, end.size, strides or (1,)) != (1, 1, (1,)):
        return None
    first, last = begin.reshape(-1)[0], end.reshape(-1)[0]
    axis = axis_of((axes or (0,))[0], data.rank)
    if last - first != 1 or not is_iteration(first, data.shape[axis]):
        return None
    return emit("take", data, emit("reshape", starts, newshape=(1,)), axis=axis, mode="clip")


def _slice_by(data: Tensor, starts: Tensor, ends: Tensor, axes: Sequence[int] | None, steps: Tensor) -> Tensor:
    """A slice whose steps only the program knows: elements at computed positions. A step of 0 is an error when it runs."""
    if len({starts.shape, ends.shape, steps.shape}) > 1 or steps.rank != 1 or not steps.type.is_static:
        raise OnnxError(f"expected starts, ends and steps of one length, found {starts.type}, {ends.type} and {steps.type}")
    length = prod(steps.type.static_shape)
    along = axes_of(range(length) if axes is None else axes, data.rank)
    extents = shape_tensor([data.shape[a] for a in along])
    first, last, by = (cast(t, "int64") for t in (starts, ends, steps))
    # Backwards, the first position is at most the last element, and the slice may end before the first one.
    back = cast(binary("less", by, 0), "int64")
    first, last = (emit("where", binary("less", t, 0), emit("add", t, extents), t) for t in (first, last))
    first = emit("minimum", binary("maximum", first, 0), emit("subtract", extents, back))
    last = emit("minimum", emit("maximum", last, emit("negative", back)), emit("subtract", extents, back))
    sign = emit("sign", by)
    reach = emit("subtract", emit("add", emit("subtract", last, first), by), sign)
    counts = binary("maximum", emit("divide", reach, emit("add", by, binary("subtract", emit("abs", sign), 1))), 0)
    # A negative count for a step of 0.
    counts = emit("where", binary("equal", by, 0), emit("subtract", by, constant(1, "int64")), counts)
    counts.name = "count"
    for i, (axis, count) in enumerate(zip(along, sizes(counts, "steps"), strict=True)):
        start, step = (emit("strided_slice", t, begin=(i,), end=(i + 1,), strides=(1,), axes=(0,)) for t in (first, by))
        data = emit("take", data, emit("add", start, emit("multiply", positions(count), step)), axis=axis, mode="clip")
    return data


def _within(at: Tensor, extents: Sequence[Size], more: Sequence[int] = ()) -> Tensor:
    """Bounds of a slice that only the program knows, counted from the front, with what is added to each, and no further than the axes
    reach."""
    size = shape_tensor(extents)
    wide = cast(reshape(at, (prod(at.shape),)), "int64")
    counted = emit("where", binary("less", wide, 0), emit("add", wide, size), wide)
    if any(more):
        counted = emit("add", emit("minimum", counted, size), constant(list(more), "int64"))  # the largest integer is an end too
    return emit("minimum", binary("maximum", counted, 0), size)


def _slice(data: Tensor, starts: Sequence[Size], ends: Sequence[Size], axes: Sequence[int] | None, steps: Sequence[int] | None) -> Tensor:
    chosen = axes_of(range(len(starts)) if axes is None else axes, data.rank)
    strides = [1] * len(starts) if steps is None else list(steps)
    if not len(starts) == len(ends) == len(chosen) == len(strides):
        raise OnnxError(
            f"expected starts, ends, axes and steps of one length, found {len(starts)}, {len(ends)}, {len(chosen)}, {len(strides)}"
        )
    if 0 in strides:
        raise OnnxError("input steps: expected values other than 0, found 0")
    return strided_slice(data, starts, ends, strides, chosen)


def _split(data: Tensor, axis: int, parts: Sequence[Size]) -> tuple[Tensor, ...]:
    axis = axis_of(axis, data.rank)
    total = sum(parts, 0)
    if not may_equal(total, data.shape[axis]) or any(bounds(s)[1] < 0 for s in parts):
        raise OnnxError(f"split: expected sizes that add up to {data.shape[axis]}, found {list(parts)}")
    data = assume(data, [total if i == axis else d for i, d in enumerate(data.shape)])
    if len(parts) == 1:
        return (data,)
    starts = list(accumulate([0, *parts], add))
    if 0 in parts:
        return tuple(strided_slice(data, [b], [e], [1], [axis]) for b, e in pairwise(starts))
    return emit("split", data, indices_or_sections=starts[1:-1], axis=axis)


def _even_sizes(size: Size, count: int | None = None) -> list[Size]:
    """Equal parts, one for each output, the last one smaller where their number does not divide `size`."""
    outputs = len(current().outputs)
    if not outputs:
        raise OnnxError("expected an output, found none")
    if count not in (None, outputs):
        raise OnnxError(f"attribute num_outputs: expected {outputs}, the number of outputs, found {count}")
    count = outputs
    part = ceil_div(size, count)
    return [maximum(minimum(part, size - i * part), 0) for i in range(count)]


@converter("Split")
def Split_1(data: Tensor, lengths: Tensor | None = None, *, axis: int = 0, split: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """The lengths of the parts are an attribute, or an input of the data's element type."""
    if lengths is not None and not split:
        split = tuple(int(v) for v in known(lengths, "split").reshape(-1))
    return Split(data, axis=axis, split=split)


@converter(since=2)
def Split(data: Tensor, *, axis: int = 0, split: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    size = data.shape[axis_of(axis, data.rank)]
    return _split(data, axis, split or _even_sizes(size))


@converter("Split", since=13)
def Split_13(data: Tensor, split: Tensor | None = None, *, axis: int = 0, num_outputs: int | None = None) -> tuple[Tensor, ...]:
    size = data.shape[axis_of(axis, data.rank)]
    return _split(data, axis, sizes(split, "split") if split is not None else _even_sizes(size, num_outputs))


# ---- repetition -----------------------------------------------------------------------------------------------------------------------


@converter(since=8)
def Expand(x: Tensor, shape: Tensor) -> Tensor:
    target = list(sizes(shape, "shape"))
    for back in range(1, min(x.rank, len(target)) + 1):
        found, stated = x.shape[-back], target[-back]
        if found != stated and 1 not in (found, stated) and (may_equal(found, stated) or _may_be_one(found) or _may_be_one(stated)):
            x = _expand_axis(x, x.rank - back, stated)
            target[-back] = x.shape[-back]
    return broadcast_to(x, broadcast_shape(x.shape, target))


def _may_be_one(size: Size) -> bool:
    return not proves(lambda: size < 1) and not proves(lambda: size > 1)


def _expand_axis(x: Tensor, axis: int, stated: Size) -> Tensor:
    """x with an axis broadcast to a size, if only the program knows whether the sizes are equal or one of them is 1.

    The condition is checked at run time.
    """
    found = x.shape[axis]
    unequal = minimum(1, maximum(found - stated, stated - found))
    ones = [one for one in (found, stated) if _may_be_one(one)]
    if not ones:
        return assume(x, [stated if i == axis else d for i, d in enumerate(x.shape)])
    # 0 if they broadcast, otherwise 1: the stated size should then equal the size of the axis.
    wrong = prod([unequal, *(minimum(1, maximum(one - 1, 1 - one)) for one in ones)])
    text = f"dimension {axis}: {found} is %lld and {stated} is %lld, expected sizes that broadcast"
    build("check_sizes", found=found, expected=found + wrong * (stated - found), predicate="eq", message=text)
    if found not in ones:
        return x
    result = stated if stated not in ones else broadcast(found, stated)
    return emit("take", x, positions(result), axis=axis, mode="clip")


@converter("Tile")
def Tile_1(x: Tensor, tiles: Tensor, axis: Tensor) -> Tensor:
    """As many copies as `tiles` says along one axis; both are of the data's element type."""
    along = axis_of(integer(axis, "axis"), x.rank)
    return Tile(x, constant([integer(tiles, "tiles") if i == along else 1 for i in range(x.rank)], "int64"))


@converter(since=6)
def Tile(x: Tensor, repeats: Tensor) -> Tensor:
    reps = sizes(repeats, "repeats")
    if len(reps) != x.rank:
        raise OnnxError(f"input repeats: expected {x.rank} values, found {list(reps)}")
    return x if all(r == 1 for r in reps) else emit("tile", x, reps=reps)


# ---- padding --------------------------------------------------------------------------------------------------------------------------


@converter("Pad")
def Pad_1(x: Tensor, *, paddings: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """`paddings` are in the order that the attribute's text says, all beginnings before all ends; the operator's example has another."""
    return Pad(x, pads=paddings, mode=mode, value=value)


@converter(since=2)
def Pad(x: Tensor, *, pads: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    return pad(x, pads, filled((), value, x.dtype), mode, range(x.rank))


@converter("Pad", since=11)
def Pad_11(x: Tensor, pads: Tensor, constant_value: Tensor | None = None, axes: Tensor | None = None, *, mode: str = "constant") -> Tensor:
    if axes is not None and not axes.is_known:
        return Pad_11(x, _pads_of_all(x, pads, axes), constant_value, mode=mode)
    chosen = range(x.rank) if axes is None else axes_of(ints(axes, "axes"), x.rank)
    value = None if constant_value is None else reshape(constant_value, ())
    return pad(x, sizes(pads, "pads", signed=True), value, mode, chosen)


def _pads_of_all(x: Tensor, pads: Tensor, axes: Tensor) -> Tensor:
    """Padding of all axes, from padding of axes known only at run time."""
    late = LateAxes(axes, x.rank)
    if not may_equal(prod(pads.shape), 2 * late.count):
        raise OnnxError(f"input pads: expected two for each of the axes {axes.type}, found {pads.type}")
    halves = reshape(pads, (2, late.count))
    sides = [late.spread(strided_slice(halves, [i], [i + 1], [1], [0]), constant([0] * x.rank, "int64")) for i in (0, 1)]
    found = emit("concatenate", *sides, axis=0)
    # Larger than the size of any axis, so that an invalid axis causes an error.
    return emit("where", late.valid, found, constant(-2 * FAR, "int64"))


@converter(since=18)
def CenterCropPad(x: Tensor, shape: Tensor, *, axes: Sequence[int] | None = None) -> Tensor:
    chosen = tuple(range(x.rank)) if axes is None else axes_of(axes, x.rank)
    wanted = sizes(shape, "shape")
    if len(wanted) != len(chosen):
        raise OnnxError(f"input shape: expected {len(chosen)} values, one for each axis, found {list(wanted)}")
    before: list[Size] = []
    after: list[Size] = []
    for size, a in zip(wanted, chosen, strict=True):
        missing = size - x.shape[a]
        # Half of what is missing, or too much, goes before; the odd one after.
        before.append(maximum(missing, 0) // 2 - maximum(-missing, 0) // 2)
        after.append(missing - before[-1])
    found = pad(x, [*before, *after], None, "constant", chosen)
    return assume(found, [wanted[chosen.index(a)] if a in chosen else d for a, d in enumerate(found.shape)])


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
