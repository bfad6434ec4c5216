"""Shape and data movement: every element of the result is an element of an operand (or padding)."""

from collections.abc import Sequence
from typing import Any

from relayc.dialects.relay.base import (
    Ints,
    LayoutRole,
    Op,
    Operand,
    Pattern,
    Precision,
    Size,
    Sizes,
    TensorType,
    Variadic,
    View,
    check,
)
from relayc.dialects.relay.conditions import require_at_least, require_at_most, require_divides, require_equal
from relayc.dialects.relay.kinds import INTEGER, same_dtype
from relayc.dialects.relay.layout import NCHW, layout
from relayc.dialects.relay.reshape import reshaped, same_elements
from relayc.dialects.relay.shapes import broadcast_shapes, normalize_axis, product, shape_text
from relayc.dialects.relay.slices import slice_bounds, slices, split_bounds
from relayc.dialects.relay.types import RelayType, TupleType
from relayc.symbolic import bounds, maximum

Known = Size | None


class _Move(Op):
    """An operator whose result has elements of `data` in other places."""

    data: Operand
    pattern = Pattern.INJECTIVE
    precision = Precision.EXACT


# ---- the same elements in the same order ------------------------------------------------------------------------------------------


class Reshape(_Move, name="reshape"):
    """The elements in row-major order under another shape, given by sizes and Relay's codes.

    0 copies the operand's dimension (a size of 0 with `allowzero`), -1 is inferred, -2 copies all that remain, -3 merges the next two,
    -4 splits the next one into the two sizes that follow (one of which may be -1).
    """

    newshape: Sizes
    allowzero: bool = False
    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        out = op.data.with_shape(reshaped(op.data.shape, op.newshape, op.allowzero))
        check(same_elements(op.data.shape, out.shape), "newshape", f"a shape of as many elements as {op.data}", out)
        return out


class ExpandDims(_Move, name="expand_dims"):
    """Inserts `num_newaxis` axes of size 1 at `axis` of the result."""

    axis: int
    num_newaxis: int = 1
    pattern = Pattern.BROADCAST
    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.num_newaxis >= 0, "num_newaxis", "no negative number", op.num_newaxis)
        axis = normalize_axis(op.axis, op.data.rank + 1)
        return op.data.with_shape((*op.data.shape[:axis], *(1,) * op.num_newaxis, *op.data.shape[axis:]))


class Squeeze(_Move, name="squeeze"):
    """Removes the given axes, which must have size 1; all axes of size 1 if `axis` is None."""

    axis: Ints | None = None
    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        if op.axis is None:
            known = all(d is not None and (isinstance(d, int) or bounds(d)[0] > 1) for d in op.data.shape)
            check(known, "axis", "the axes to drop, as a dimension is not known", op.data)
            return op.data.with_shape(d for d in op.data.shape if d != 1)
        axes = [normalize_axis(a, op.data.rank) for a in op.axis]
        for axis in axes:
            require_equal(op.data.shape[axis], 1, f"dimension {axis}", 1, op.data.shape[axis])
        return op.data.with_shape(d for i, d in enumerate(op.data.shape) if i not in axes)


class BatchFlatten(_Move, name="nn_batch_flatten", relay_name="nn.batch_flatten"):
    """Keeps the first axis and flattens the others into one."""

    is_view = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.data.rank >= 1, "data", "rank 1 or more", op.data)
        return op.data.with_shape((op.data.shape[0], product(op.data.shape[1:])))


# ---- other orders -----------------------------------------------------------------------------------------------------------------


def permutation(axes: Ints | None, rank: int) -> tuple[int, ...]:
    """`axes` of a transpose counted from the front; the reverse order for None. Raises RelayError if it is not a permutation."""
    if axes is None:
        return tuple(reversed(range(rank)))
    found = tuple(normalize_axis(a, rank, "axes") for a in axes)
    check(sorted(found) == list(range(rank)), "axes", f"a permutation of {rank} axes", axes)
    return found


class Transpose(_Move, name="transpose"):
    """Axis i of the result is axis axes[i] of the operand; `axes` None reverses them."""

    axes: Ints | None = None

    @staticmethod
    def infer(op: View) -> TensorType:
        return op.data.with_shape(op.data.shape[a] for a in permutation(op.axes, op.data.rank))

    def independent_axes(self) -> tuple[int, ...]:
        """The axes that are not moved."""
        rank = TensorType.of(self.data).rank
        return tuple(i for i, axis in enumerate(permutation(self.axes, rank)) if i == axis)


class Reverse(_Move, name="reverse"):
    """The elements in the opposite order along `axis`."""

    axis: int = 0

    @staticmethod
    def infer(op: View) -> TensorType:
        normalize_axis(op.axis, op.data.rank)
        return op.data


class LayoutTransform(_Move, name="layout_transform"):
    """Rewrites a tensor from one layout to another, both as strings: NCHW, NHWC, NCHW8c, OIHW16i4o."""

    src_layout: str
    dst_layout: str

    @staticmethod
    def infer(op: View) -> TensorType:
        source = layout(op.src_layout, name="src_layout")
        target = layout(op.dst_layout, source.letters, "dst_layout")
        return op.data.with_shape(target.shape(source.logical(op.data.shape)))


_BLOCK_LAYOUTS = ("NCHW", "NHWC")
_D2S_MODES = ("DCR", "CRD")


def _scaled(dim: Known, times: int, by: int, name: str) -> Known:
    divided = require_divides(by, dim, name, f"a multiple of {by}", dim)
    return None if divided is None else divided * times


class BlockMove(_Move):
    """Moves pixels of blocks of block_size x block_size to channels, or back, NCHW or NHWC."""

    block_size: int
    layout: str = "NCHW"
    to_depth = False

    @property
    def rearrangement(self) -> tuple[list[Size], list[int]]:
        """The sizes of the data with blocks as separate axes, and the permutation to the order of the result."""
        parsed, b = layout(self.layout), self.block_size
        dims = parsed.logical(TensorType.of(self.data).sizes)
        sizes = dict(dims, h=b, w=b) | ({"H": dims["H"] // b, "W": dims["W"] // b} if self.to_depth else {"C": dims["C"] // (b * b)})
        # The channels are [h, w, C] (DCR) or [C, h, w] (CRD), where h and w are the positions inside a block.
        depth = ["C", "h", "w"] if getattr(self, "mode", "DCR") == "CRD" else ["h", "w", "C"]
        deep = [part for axis in parsed.axes for part in (depth if axis == "C" else [axis])]
        wide = [part for axis in parsed.axes for part in ([axis, axis.lower()] if axis in "HW" else [axis])]
        source, target = (wide, deep) if self.to_depth else (deep, wide)
        return [sizes[part] for part in source], [source.index(part) for part in target]


def _with_blocks_moved(op: View, up: int, down: int) -> TensorType:
    """The type of the data with sides of pixels multiplied by `up` and divided by `down`, and channels the other way round."""
    check(op.layout in _BLOCK_LAYOUTS, "layout", f"one of {', '.join(_BLOCK_LAYOUTS)}", op.layout)
    parsed = layout(op.layout)
    dims = parsed.logical(op.data.shape)
    scaled = {
        "C": _scaled(dims["C"], down * down, up * up, "channels"),
        "H": _scaled(dims["H"], up, down, "height"),
        "W": _scaled(dims["W"], up, down, "width"),
    }
    return op.data.with_shape(parsed.shape(dims | scaled))


class DepthToSpace(BlockMove, name="nn_depth_to_space", relay_name="nn.depth_to_space"):
    """Moves blocks of channels into block_size x block_size pixels (ONNX DepthToSpace, modes DCR and CRD), NCHW or NHWC."""

    mode: str = "DCR"

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.block_size >= 1, "block_size", "1 or more", op.block_size)
        check(op.mode in _D2S_MODES, "mode", f"one of {', '.join(_D2S_MODES)}", op.mode)
        return _with_blocks_moved(op, op.block_size, 1)


class SpaceToDepth(BlockMove, name="nn_space_to_depth", relay_name="nn.space_to_depth"):
    """Moves block_size x block_size pixels into channels (ONNX SpaceToDepth), NCHW or NHWC."""

    to_depth = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.block_size >= 1, "block_size", "1 or more", op.block_size)
        return _with_blocks_moved(op, 1, op.block_size)


# ---- parts ------------------------------------------------------------------------------------------------------------------------


class StridedSlice(_Move, name="strided_slice"):
    """data[begin:end:strides] along `axes` (the first ones where None), bounds counted and clamped as in numpy (ONNX Slice).

    With a negative stride an `end` of -(size + 1) or below runs through element 0. Strides that are missing are 1. With slice_mode "size"
    `end` holds sizes, -1 for all that remain. A begin or an end of 2^31 - 1 or more is that of an axis of symbolic size.
    """

    begin: Sizes
    end: Sizes
    strides: Ints = (1,)
    axes: Ints | None = None
    slice_mode: str = "end"

    @staticmethod
    def infer(op: View) -> TensorType:
        shape = list(op.data.shape)
        for axis, (begin, end, stride) in slices(op, op.data.rank).items():
            size = shape[axis]
            if size is not None:
                shape[axis] = slice_bounds(size, begin, end, stride)[1]
        return op.data.with_shape(shape)

    def independent_axes(self) -> tuple[int, ...]:
        """All: along a sliced one elements are at a distance that the attributes say."""
        return tuple(range(TensorType.of(self.data).rank))


class Split(_Move, name="split"):
    """Parts of the operand along `axis`, as a tuple: a number of equal sections, or the indices at which parts begin."""

    indices_or_sections: int | Sizes
    axis: int = 0

    @staticmethod
    def infer(op: View) -> TupleType:
        axis = normalize_axis(op.axis, op.data.rank)
        size = op.data.shape[axis]
        check(size is not None, "data", f"a known size of axis {axis}", op.data)
        parts = split_bounds(size, op.indices_or_sections)
        before, after = op.data.shape[:axis], op.data.shape[axis + 1 :]
        return TupleType(tuple(op.data.with_shape((*before, end - begin, *after)) for begin, end in parts))


# ---- several tensors --------------------------------------------------------------------------------------------------------------


def _same(dims: Sequence[Known], what: str) -> Known:
    """The common dimension, None if none is known."""
    known = {d for d in dims if d is not None}
    if len(known) > 1:
        a, b, *_ = sorted(known, key=str)
        require_equal(a, b, what, "equal in all operands", ", ".join(map(str, dims)))
    return known.pop() if known else None


def _common(operands: Sequence[TensorType], skip: int | None = None) -> tuple[str, list[Known]]:
    """Common dtype and shape of the operands; they may differ in the axis `skip` (None in the shape)."""
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
        """True if it concatenates images along their channels."""
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
        shape[axis] = None if None in sizes else sum(d for d in sizes if d is not None)
        return TensorType(tuple(shape), dtype)

    def independent_axes(self) -> tuple[int, ...]:
        """All axes: along `axis`, an operand begins at the end of the previous one."""
        return tuple(range(TensorType.of(self.data[0]).rank))


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


class BroadcastTo(_Move, name="broadcast_to"):
    """The operand under `shape`, by numpy's rule."""

    shape: Sizes
    pattern = Pattern.BROADCAST
    moves_only = True
    repeats_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        target = tuple(op.shape)
        check(broadcast_shapes(op.data.shape, target) == target, "shape", f"a shape to which {op.data} broadcasts", shape_text(target))
        return op.data.with_shape(target)


class Tile(_Move, name="tile"):
    """The operand repeated as a whole, reps[i] times along axis i, as numpy.tile."""

    reps: Sizes
    pattern = Pattern.BROADCAST

    @staticmethod
    def infer(op: View) -> TensorType:
        for r in op.reps:
            require_at_least(0, r, "reps", "no negative number", shape_text(op.reps))
        rank = max(len(op.reps), op.data.rank)
        reps, shape = (1,) * (rank - len(op.reps)) + tuple(op.reps), (1,) * (rank - op.data.rank) + op.data.shape
        return op.data.with_shape(None if d is None else d * r for d, r in zip(shape, reps, strict=True))


class Repeat(_Move, name="repeat"):
    """Each element `repeats` times along `axis`; of the flattened tensor if it is None, as numpy.repeat."""

    repeats: Size
    axis: int | None = None
    pattern = Pattern.BROADCAST

    @staticmethod
    def infer(op: View) -> TensorType:
        require_at_least(0, op.repeats, "repeats", "no negative number", op.repeats)
        shape = [product(op.data.shape)] if op.axis is None else list(op.data.shape)
        axis = normalize_axis(op.axis or 0, len(shape))
        length = shape[axis]
        shape[axis] = None if length is None else length * op.repeats
        return op.data.with_shape(shape)


def pad_pairs(pad_width: Sizes, rank: int) -> list[tuple[Size, Size]]:
    """(before, after) of each axis. Raises RelayError unless there are two values for each axis, none negative."""
    check(len(pad_width) == 2 * rank, "pad_width", f"{2 * rank} values (before and after of each axis)", shape_text(pad_width))
    for width in pad_width:
        require_at_least(0, width, "pad_width", "no negative number", shape_text(pad_width))
    return list(zip(pad_width[::2], pad_width[1::2], strict=True))


def _padded(data: TensorType, pad_width: Sizes) -> TensorType:
    pairs = pad_pairs(pad_width, data.rank)
    return data.with_shape(None if d is None else d + sum(pair) for d, pair in zip(data.shape, pairs, strict=True))


def _check_mirror(data: TensorType, pad_width: Sizes, mode: str, least: int) -> None:
    """A mirrored border can be at most the axis itself, less its edge element where that is not repeated (`least` 1)."""
    for axis, (d, pair) in enumerate(zip(data.shape, pad_pairs(pad_width, data.rank), strict=True)):
        if d is None or pair == (0, 0):
            continue
        most = maximum(d - least, 0)
        for width in pair:
            require_at_most(most, width, f"pad_width of axis {axis}", f"at most {most} for mode {mode}", shape_text(pair))


_PAD_MODES = ("constant", "edge", "reflect")


class Pad(_Move, name="nn_pad", relay_name="nn.pad"):
    """Adds a border of pad_width = (before 0, after 0, before 1, ...) elements (ONNX Pad).

    pad_mode: "constant" (`pad_value`, a scalar), "edge" (the nearest element) or "reflect" (mirrored without the edge element).
    """

    pad_value: Operand
    pad_width: Sizes
    pad_mode: str = "constant"
    root_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.pad_value.rank == 0, "pad_value", "a scalar (rank 0)", op.pad_value)
        same_dtype(data=op.data, pad_value=op.pad_value)
        check(op.pad_mode in _PAD_MODES, "pad_mode", f"one of {', '.join(_PAD_MODES)}", op.pad_mode)
        if op.pad_mode == "reflect":
            _check_mirror(op.data, op.pad_width, op.pad_mode, least=1)
        if op.pad_mode == "edge":
            for d in op.data.shape:
                require_at_least(1, d, "data", "at least one element to repeat", op.data)
        return _padded(op.data, op.pad_width)


_MIRROR_MODES = ("SYMMETRIC", "REFLECT")


class MirrorPad(_Move, name="nn_mirror_pad", relay_name="nn.mirror_pad"):
    """Adds a mirrored border: with the edge element ("SYMMETRIC") or without ("REFLECT"); pad_width as in nn.pad."""

    mode: str = "SYMMETRIC"
    pad_width: Sizes
    root_only = True

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
