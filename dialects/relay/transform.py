"""Shape and data movement: every element of the result is an element of an operand (or padding)."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from relayc.dialects.relay.base import Ints, LayoutRole, Op, Operand, Pattern, Precision, RelayError, TensorType, Variadic, View, check
from relayc.dialects.relay.kinds import INTEGER, same_dtype
from relayc.dialects.relay.layout import NCHW, layout
from relayc.dialects.relay.shapes import broadcast_shapes, normalize_axis
from relayc.dialects.relay.types import RelayType, TupleType
from relayc.symbolic import Size

Dim = Size | None


def product(dims: Sequence[Dim]) -> Dim:
    """Product of dimensions; None where one is not known."""
    known = [d for d in dims if d is not None]
    return math.prod(known) if len(known) == len(dims) else None


# ---- the same elements in the same order ------------------------------------------------------------------------------------------


def reshaped(shape: Sequence[Dim], newshape: Sequence[int], allowzero: bool) -> tuple[Dim, ...]:
    """Shape after Relay's reshape codes (see `Reshape`). Raises RelayError where the codes do not fit `shape`."""
    out: list[Dim] = []
    position = 0  # of the next dimension of `shape` to be read by a code
    infer_at = None
    codes = iter(enumerate(newshape))
    for i, code in codes:
        left = len(shape) - position
        if code > 0 or (code == 0 and allowzero):
            out.append(code)
            position += 1
        elif code == 0:
            check(left >= 1, f"newshape[{i}]", f"a dimension {position} of the operand to copy", tuple(shape))
            out.append(shape[position])
            position += 1
        elif code == -1:
            check(infer_at is None, "newshape", "at most one -1", tuple(newshape))
            infer_at = len(out)
            out.append(None)
            position += 1
        elif code == -2:
            out.extend(shape[position:])
            position = len(shape)
        elif code == -3:
            check(left >= 2, f"newshape[{i}]", f"dimensions {position} and {position + 1} of the operand to merge", tuple(shape))
            out.append(product(shape[position : position + 2]))
            position += 2
        elif code == -4:
            check(left >= 1, f"newshape[{i}]", f"a dimension {position} of the operand to split", tuple(shape))
            pair = [d for _, d in zip(range(2), (d for _, d in codes), strict=False)]
            out.extend(_split_dim(shape[position], pair))
            position += 1
        else:
            raise RelayError(f"newshape[{i}]: expected a size or one of 0, -1, -2, -3, -4, found {code}")
    if infer_at is not None:
        out[infer_at] = _inferred(shape, out[:infer_at] + out[infer_at + 1 :])
    return tuple(out)


def _split_dim(dim: Dim, pair: list[int]) -> list[Dim]:
    check(
        len(pair) == 2 and pair.count(-1) < 2 and all(d > 0 or d == -1 for d in pair),
        "newshape",
        "two sizes (one may be -1) after -4",
        pair,
    )
    if -1 in pair:
        known = max(pair)
        check(dim is None or dim % known == 0, "newshape", f"a divisor of {dim} after -4", known)
        return [(None if dim is None else dim // known) if d == -1 else d for d in pair]
    check(dim is None or dim == pair[0] * pair[1], "newshape", f"factors of {dim} after -4", pair)
    return list(pair)


def _inferred(shape: Sequence[Dim], others: Sequence[Dim]) -> Dim:
    """What -1 stands for. Unknown dimensions cancel where as many were copied as there are."""
    if list(shape).count(None) != list(others).count(None):
        return None
    total, known = (math.prod(d for d in dims if d is not None) for dims in (shape, others))
    check(known != 0 and total % known == 0, "newshape", f"sizes that divide the {total} elements of the operand", tuple(others))
    return total // known


class Reshape(Op, name="reshape"):
    """The elements in row-major order under another shape, given by sizes and Relay's codes.

    0 copies the operand's dimension (a size of 0 with `allowzero`), -1 is inferred, -2 copies all that remain, -3 merges the next two,
    -4 splits the next one into the two sizes that follow (one of which may be -1).
    """

    data: Operand
    newshape: Ints
    allowzero: bool = False
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT
    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        out = op.data.with_shape(reshaped(op.data.shape, op.newshape, op.allowzero))
        same = not (op.data.is_static and out.is_static) or op.data.num_elements == out.num_elements
        check(same, "newshape", f"a shape of as many elements as {op.data}", out)
        return out


class ExpandDims(Op, name="expand_dims"):
    """Inserts `num_newaxis` axes of size 1 at `axis` of the result."""

    data: Operand
    axis: int
    num_newaxis: int = 1
    pattern = Pattern.BROADCAST
    precision = Precision.EXACT
    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.num_newaxis >= 0, "num_newaxis", "no negative number", op.num_newaxis)
        axis = normalize_axis(op.axis, op.data.rank + 1)
        return op.data.with_shape((*op.data.shape[:axis], *(1,) * op.num_newaxis, *op.data.shape[axis:]))


class Squeeze(Op, name="squeeze"):
    """Drops the axes given, which must have size 1; all of size 1 where `axis` is None."""

    data: Operand
    axis: Ints | None = None
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT
    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        if op.axis is None:
            check(op.data.is_static, "axis", "the axes to drop, as a dimension is not known", op.data)
            return op.data.with_shape(d for d in op.data.shape if d != 1)
        axes = [normalize_axis(a, op.data.rank) for a in op.axis]
        for axis in axes:
            check(op.data.shape[axis] in (1, None), f"dimension {axis}", 1, op.data.shape[axis])
        return op.data.with_shape(d for i, d in enumerate(op.data.shape) if i not in axes)


class BatchFlatten(Op, name="nn_batch_flatten", relay_name="nn.batch_flatten"):
    """Keeps the first axis and flattens the others into one."""

    data: Operand
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT
    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.data.rank >= 1, "data", "rank 1 or more", op.data)
        return op.data.with_shape((op.data.shape[0], product(op.data.shape[1:])))


# ---- other orders -----------------------------------------------------------------------------------------------------------------


def permutation(axes: Ints | None, rank: int) -> tuple[int, ...]:
    """`axes` of a transpose counted from the front; the reverse order for None. Raises RelayError where it is no permutation."""
    if axes is None:
        return tuple(reversed(range(rank)))
    found = tuple(normalize_axis(a, rank, "axes") for a in axes)
    check(sorted(found) == list(range(rank)), "axes", f"a permutation of {rank} axes", axes)
    return found


class Transpose(Op, name="transpose"):
    """Axis i of the result is axis axes[i] of the operand; `axes` None reverses them."""

    data: Operand
    axes: Ints | None = None
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        return op.data.with_shape(op.data.shape[a] for a in permutation(op.axes, op.data.rank))


class Reverse(Op, name="reverse"):
    """The elements in the opposite order along `axis`."""

    data: Operand
    axis: int = 0
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        normalize_axis(op.axis, op.data.rank)
        return op.data


class LayoutTransform(Op, name="layout_transform"):
    """Rewrites a tensor from one layout to another, both as strings: NCHW, NHWC, NCHW8c, OIHW16i4o."""

    data: Operand
    src_layout: str
    dst_layout: str
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        source = layout(op.src_layout, name="src_layout")
        target = layout(op.dst_layout, source.letters, "dst_layout")
        return op.data.with_shape(target.shape(source.logical(op.data.shape)))


_BLOCK_LAYOUTS = ("NCHW", "NHWC")
_D2S_MODES = ("DCR", "CRD")


def _scaled(dim: Dim, times: int, by: int, name: str) -> Dim:
    if dim is None:
        return None
    check(dim % by == 0, name, f"a multiple of {by}", dim)
    return dim * times // by


class DepthToSpace(Op, name="nn_depth_to_space", relay_name="nn.depth_to_space"):
    """Moves blocks of channels into block_size x block_size pixels (ONNX DepthToSpace, modes DCR and CRD), NCHW or NHWC."""

    data: Operand
    block_size: int
    layout: str = "NCHW"
    mode: str = "DCR"
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.block_size >= 1, "block_size", "1 or more", op.block_size)
        check(op.mode in _D2S_MODES, "mode", f"one of {', '.join(_D2S_MODES)}", op.mode)
        check(op.layout in _BLOCK_LAYOUTS, "layout", f"one of {', '.join(_BLOCK_LAYOUTS)}", op.layout)
        parsed, b = layout(op.layout), op.block_size
        dims = parsed.logical(op.data.shape)
        scaled = {
            "C": _scaled(dims["C"], 1, b * b, "channels"),
            "H": _scaled(dims["H"], b, 1, "height"),
            "W": _scaled(dims["W"], b, 1, "width"),
        }
        return op.data.with_shape(parsed.shape(dims | scaled))


class SpaceToDepth(Op, name="nn_space_to_depth", relay_name="nn.space_to_depth"):
    """Moves block_size x block_size pixels into channels (ONNX SpaceToDepth), NCHW or NHWC."""

    data: Operand
    block_size: int
    layout: str = "NCHW"
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.block_size >= 1, "block_size", "1 or more", op.block_size)
        check(op.layout in _BLOCK_LAYOUTS, "layout", f"one of {', '.join(_BLOCK_LAYOUTS)}", op.layout)
        parsed, b = layout(op.layout), op.block_size
        dims = parsed.logical(op.data.shape)
        scaled = {
            "C": _scaled(dims["C"], b * b, 1, "channels"),
            "H": _scaled(dims["H"], 1, b, "height"),
            "W": _scaled(dims["W"], 1, b, "width"),
        }
        return op.data.with_shape(parsed.shape(dims | scaled))


# ---- parts ------------------------------------------------------------------------------------------------------------------------


def slice_bounds(size: int, begin: int, end: int | None, stride: int) -> tuple[int, int]:
    """(start, number of elements) of begin:end:stride in an axis of `size`, clamped as in numpy; stride is not 0."""
    picked = range(size)[begin:end:stride]
    return (picked.start, len(picked))


_SLICE_MODES = ("end", "size")


def slices(op: View, rank: int) -> dict[int, tuple[int, int | None, int]]:
    """(begin, end, stride) by axis of a strided_slice with these attributes. Raises RelayError where they do not fit the rank."""
    n = len(op.begin)
    axes = tuple(range(n)) if op.axes is None else tuple(normalize_axis(a, rank, "axes") for a in op.axes)
    check(op.slice_mode in _SLICE_MODES, "slice_mode", f"one of {', '.join(_SLICE_MODES)}", op.slice_mode)
    check(len(axes) == n and len(set(axes)) == n and n <= rank, "axes", f"{n} different axes of {rank}, one for each begin", axes)
    check(len(op.end) == n, "end", f"{n} values, one for each begin", op.end)
    strides = tuple(op.strides) + (1,) * (n - len(op.strides))
    check(len(strides) == n and 0 not in strides, "strides", f"at most {n} values other than 0", op.strides)
    if op.slice_mode == "size":
        check(set(strides) <= {1}, "strides", "1 with slice_mode size", op.strides)
        # An end of 0 reached from a begin counted from the end means the end itself.
        ends = [None if size == -1 or begin < 0 <= begin + size else begin + size for begin, size in zip(op.begin, op.end, strict=True)]
        return {a: (b, e, 1) for a, b, e in zip(axes, op.begin, ends, strict=True)}
    return {a: (b, e, s) for a, b, e, s in zip(axes, op.begin, op.end, strides, strict=True)}


class StridedSlice(Op, name="strided_slice"):
    """data[begin:end:strides] along `axes` (the first ones where None), bounds counted and clamped as in numpy (ONNX Slice).

    With a negative stride an `end` of -(size + 1) or below runs through element 0. Strides that are missing are 1. With slice_mode "size"
    `end` holds sizes, -1 for all that remain.
    """

    data: Operand
    begin: Ints
    end: Ints
    strides: Ints = (1,)
    axes: Ints | None = None
    slice_mode: str = "end"
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        shape = list(op.data.shape)
        for axis, (begin, end, stride) in slices(op, op.data.rank).items():
            size = shape[axis]
            if size is not None:
                shape[axis] = slice_bounds(size, begin, end, stride)[1]
        return op.data.with_shape(shape)


def split_bounds(size: int, indices_or_sections: int | Ints) -> list[tuple[int, int]]:
    """(begin, end) of each part of a split axis. Raises RelayError where the sections do not divide it or the indices do not ascend."""
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        check(n >= 1 and size % n == 0, "indices_or_sections", f"a divisor of {size}", n)
        return [(i * size // n, (i + 1) * size // n) for i in range(n)]
    edges = [0, *indices_or_sections, size]
    check(edges == sorted(edges), "indices_or_sections", f"ascending indices in [0, {size}]", indices_or_sections)
    return list(itertools.pairwise(edges))


class Split(Op, name="split"):
    """Parts of the operand along `axis`, as a tuple: a number of equal sections, or the indices at which parts begin."""

    data: Operand
    indices_or_sections: int | Ints
    axis: int = 0
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TupleType:
        axis = normalize_axis(op.axis, op.data.rank)
        size = op.data.shape[axis]
        check(size is not None, "data", f"a known size of axis {axis}", op.data)
        parts = split_bounds(size, op.indices_or_sections)
        before, after = op.data.shape[:axis], op.data.shape[axis + 1 :]
        return TupleType(tuple(op.data.with_shape((*before, end - begin, *after)) for begin, end in parts))


# ---- several tensors --------------------------------------------------------------------------------------------------------------


def _same(dims: Sequence[Dim], what: str) -> Dim:
    """The dimension that all share, None where none is known."""
    known = {d for d in dims if d is not None}
    check(len(known) <= 1, what, "equal in all operands", ", ".join(map(str, dims)))
    return known.pop() if known else None


def _common(operands: Sequence[TensorType], skip: int | None = None) -> tuple[str, list[Dim]]:
    """dtype and shape that the operands share, `skip` being an axis in which they may differ (None in the shape)."""
    check(len(operands) >= 1, "data", "at least one operand", 0)
    dtype = same_dtype(**{f"operand {i}": t for i, t in enumerate(operands)})
    ranks = {t.rank for t in operands}
    check(len(ranks) == 1, "data", "operands of one rank", ", ".join(map(str, operands)))
    axes = range(ranks.pop())
    return dtype, [None if i == skip else _same([t.shape[i] for t in operands], f"dimension {i}") for i in axes]


class Concatenate(Op, name="concatenate"):
    """The operands one after the other along `axis`; upstream's tensor.concat."""

    upstream = "tensor.concat"
    upstream_attributes = {"axis": "dim"}
    data: Variadic
    axis: int = 0
    pattern = Pattern.INJECTIVE
    root_only = True
    layout_role = LayoutRole.FOLLOWS
    precision = Precision.EXACT

    def can_change_layout(self) -> bool:
        """Where it joins images along their channels."""
        return self.axis in (NCHW.index("C"), NCHW.index("C") - len(NCHW))

    def in_layout(self, target: str) -> dict[str, Any]:
        return {"axis": layout(target).index("C")}

    @classmethod
    def canonical_attributes(cls, operands: Sequence[RelayType], values: dict[str, Any]) -> dict[str, Any]:
        first = operands[0]
        assert isinstance(first, TensorType)  # by the type relation
        return {"axis": normalize_axis(values["axis"], first.rank)}

    @staticmethod
    def infer(op: View) -> TensorType:
        check(len(op.data) >= 1, "data", "at least one operand", 0)
        axis = normalize_axis(op.axis, op.data[0].rank)
        dtype, shape = _common(op.data, axis)
        sizes = [t.shape[axis] for t in op.data]
        shape[axis] = None if None in sizes else sum(sizes)
        return TensorType(tuple(shape), dtype)


class Stack(Op, name="stack"):
    """The operands, of one shape, one after the other along a new axis."""

    data: Variadic
    axis: int = 0
    pattern = Pattern.INJECTIVE
    root_only = True
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        dtype, shape = _common(op.data)
        shape.insert(normalize_axis(op.axis, len(shape) + 1), len(op.data))
        return TensorType(tuple(shape), dtype)


# ---- repetition and padding -------------------------------------------------------------------------------------------------------


class BroadcastTo(Op, name="broadcast_to"):
    """The operand under `shape`, by numpy's rule."""

    data: Operand
    shape: Ints
    pattern = Pattern.BROADCAST
    precision = Precision.EXACT
    moves_only = True
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        target = tuple(op.shape)
        check(broadcast_shapes(op.data.shape, target) == target, "shape", f"a shape to which {op.data} broadcasts", target)
        return op.data.with_shape(target)


class Tile(Op, name="tile"):
    """The operand repeated as a whole, reps[i] times along axis i, as numpy.tile."""

    data: Operand
    reps: Ints
    pattern = Pattern.BROADCAST
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        check(all(r >= 0 for r in op.reps), "reps", "no negative number", op.reps)
        rank = max(len(op.reps), op.data.rank)
        reps, shape = (1,) * (rank - len(op.reps)) + tuple(op.reps), (1,) * (rank - op.data.rank) + op.data.shape
        return op.data.with_shape(None if d is None else d * r for d, r in zip(shape, reps, strict=True))


class Repeat(Op, name="repeat"):
    """Each element `repeats` times along `axis`; of the flattened tensor where None, as numpy.repeat."""

    data: Operand
    repeats: int
    axis: int | None = None
    pattern = Pattern.BROADCAST
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.repeats >= 0, "repeats", "no negative number", op.repeats)
        shape = [product(op.data.shape)] if op.axis is None else list(op.data.shape)
        axis = normalize_axis(op.axis or 0, len(shape))
        shape[axis] = None if shape[axis] is None else shape[axis] * op.repeats
        return op.data.with_shape(shape)


def pad_pairs(pad_width: Ints, rank: int) -> list[tuple[int, int]]:
    """(before, after) of each axis. Raises RelayError unless there are two values for each axis, none negative."""
    check(len(pad_width) == 2 * rank, "pad_width", f"{2 * rank} values (before and after of each axis)", pad_width)
    check(all(w >= 0 for w in pad_width), "pad_width", "no negative number", pad_width)
    return list(zip(pad_width[::2], pad_width[1::2], strict=True))


def _padded(data: TensorType, pad_width: Ints) -> TensorType:
    pairs = pad_pairs(pad_width, data.rank)
    return data.with_shape(None if d is None else d + sum(pair) for d, pair in zip(data.shape, pairs, strict=True))


def _check_mirror(data: TensorType, pad_width: Ints, mode: str, least: int) -> None:
    """A mirrored border can be at most the axis itself, less its edge element where that is not repeated (`least` 1)."""
    for axis, (d, pair) in enumerate(zip(data.shape, pad_pairs(pad_width, data.rank), strict=True)):
        fits = d is None or max(pair) <= max(d - least, 0)
        check(fits, f"pad_width of axis {axis}", f"at most {None if d is None else max(d - least, 0)} for mode {mode}", pair)


_PAD_MODES = ("constant", "edge", "reflect")


class Pad(Op, name="nn_pad", relay_name="nn.pad"):
    """Adds a border of pad_width = (before 0, after 0, before 1, ...) elements (ONNX Pad).

    pad_mode: "constant" (`pad_value`, a scalar), "edge" (the nearest element) or "reflect" (mirrored without the edge element).
    """

    data: Operand
    pad_value: Operand
    pad_width: Ints
    pad_mode: str = "constant"
    pattern = Pattern.INJECTIVE
    root_only = True
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.pad_value.rank == 0, "pad_value", "a scalar (rank 0)", op.pad_value)
        same_dtype(data=op.data, pad_value=op.pad_value)
        check(op.pad_mode in _PAD_MODES, "pad_mode", f"one of {', '.join(_PAD_MODES)}", op.pad_mode)
        if op.pad_mode == "reflect":
            _check_mirror(op.data, op.pad_width, op.pad_mode, least=1)
        if op.pad_mode == "edge":
            check(0 not in op.data.shape, "data", "at least one element to repeat", op.data)
        return _padded(op.data, op.pad_width)


_MIRROR_MODES = ("SYMMETRIC", "REFLECT")


class MirrorPad(Op, name="nn_mirror_pad", relay_name="nn.mirror_pad"):
    """Adds a mirrored border: with the edge element ("SYMMETRIC") or without ("REFLECT"); pad_width as in nn.pad."""

    data: Operand
    mode: str = "SYMMETRIC"
    pad_width: Ints
    pattern = Pattern.INJECTIVE
    root_only = True
    precision = Precision.EXACT

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.mode in _MIRROR_MODES, "mode", f"one of {', '.join(_MIRROR_MODES)}", op.mode)
        _check_mirror(op.data, op.pad_width, op.mode, least=int(op.mode == "REFLECT"))
        return _padded(op.data, op.pad_width)


class Trilu(Op, name="trilu"):
    """Zeros below (above where not `upper`) diagonal k of the last two axes; k is a scalar integer tensor (ONNX Trilu)."""

    data: Operand
    k: Operand
    upper: bool = True
    pattern = Pattern.BROADCAST
    keeps_shape = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.data.rank >= 2, "data", "rank 2 or more", op.data)
        check(op.k.rank == 0, "k", "a scalar (rank 0)", op.k)
        INTEGER.require("k", op.k)
        return op.data
