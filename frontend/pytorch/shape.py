"""Shape and data movement. Shapes are torch's, so that many operators are one."""

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from relayc.frontend.common.padding import pad
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.pytorch.elementwise import to_dtype
from relayc.frontend.pytorch.operands import along, flat, operand, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import expect, positions, size_tensor
from relayc.frontend.steps import binary, broadcast_to, cast, reshape, strided_slice, transpose
from relayc.symbolic import Size, maximum


@aten("view", "_unsafe_view", "unsqueeze")
def view(self: Tensor) -> Tensor:
    if node().dtype != self.dtype:
        return emit("reinterpret", self, dtype=node().dtype)
    return reshape(self, node().sizes)


@aten("squeeze")
def squeeze(self: Tensor, dim: Any = None) -> Tensor:
    """torch.export assumes that a symbolic size is not 1. Where the size is 1, torch's program drops the dimension; this program fails,
    as its ranks are fixed."""
    axes = range(self.rank) if dim is None else (axis_of(d, self.rank) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    for size in [self.shape[axis] for axis in axes] if self.rank else ():
        if not isinstance(size, int):
            expect(size, "ne", 1)
    return view(self)


@aten("expand")
def expand(self: Tensor) -> Tensor:
    return broadcast_to(self, node().sizes)


@aten("permute")
def permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    """Torch decomposes the other exchanges of axes."""
    return transpose(self, [axis_of(d, self.rank) for d in dims])


@aten("cat")
def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    parts = [cast(t, node().dtype) for t in tensors if t.shape != (0,)]
    axis = axis_of(dim, parts[0].rank)
    kept = [t for t in parts if t.shape[axis] != 0] or parts[:1]
    return kept[0] if len(kept) == 1 else emit("concatenate", *kept, axis=axis)


# ---- parts ------------------------------------------------------------------------------------------------------------------------------


@aten("slice", "slice_copy")
def slice_(self: Tensor, dim: int, start: Any, end: Any, step: int) -> Tensor:
    axis = axis_of(dim, self.rank)
    last = self.shape[axis] if end is None else end
    return strided_slice(self, (0 if start is None else start,), (last,), (step,), (axis,))


@aten("select", "select_copy")
def select(self: Tensor, dim: int, index: Size) -> Tensor:
    axis = axis_of(dim, self.rank)
    if isinstance(index, int):
        at = self.shape[axis] + index if index < 0 else index
        return reshape(strided_slice(self, (at,), (at + 1,), (1,), (axis,)), node().sizes)
    return emit("take", self, size_tensor(index), axis=axis, mode="raise")


@aten("narrow_copy")
def narrow(self: Tensor, dim: int, start: Any, length: Size) -> Tensor:
    axis = axis_of(dim, self.rank)
    return strided_slice(self, (start,), (start + length,), (1,), (axis,))


@aten("split", "split_with_sizes", "unbind", "unsafe_split", "split_copy", "split_with_sizes_copy")
def split(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    axis = axis_of(dim, self.rank)
    shapes = node().shape
    sizes: list[Size] = [shape[axis] if len(shape) == self.rank else 1 for shape in shapes]
    ends = list(accumulate(sizes, initial=0))
    if len(shapes) > 1 and all(isinstance(e, int) for e in ends):
        parts = emit("split", self, indices_or_sections=ends[1:-1], axis=axis)
    else:
        parts = [strided_slice(self, (b,), (e,), (1,), (axis,)) for b, e in pairwise(ends)]
    return tuple(reshape(part, shape) for part, shape in zip(parts, shapes, strict=True))


@aten("diagonal", "diagonal_copy")
def diagonal(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    first, second = axis_of(dim1, self.rank), axis_of(dim2, self.rank)
    rest = [a for a in range(self.rank) if a not in (first, second)]
    rows, columns = self.shape[first], self.shape[second]
    count = node().sizes[-1]
    flat = reshape(transpose(self, [*rest, first, second]), (*(self.shape[a] for a in rest), rows * columns))
    begin = max(offset, 0) - min(offset, 0) * columns
    at = emit("add", emit("multiply", positions(count), size_tensor(columns + 1)), size_tensor(begin))
    return emit("take", flat, at, axis=len(rest), mode="clip")


@aten("unfold", "unfold_copy")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows along an axis, whose elements become a new last one."""
    if self.rank == 0:
        return reshape(self, node().sizes)
    axis = axis_of(dimension, self.rank)
    count = node().sizes[axis]
    begins = reshape(binary("multiply", positions(count), step), (count, 1))
    at = emit("add", begins, reshape(positions(size), (1, size)))
    found = emit("take", self, at, axis=axis, mode="clip")
    return transpose(found, [a for a in range(found.rank) if a != axis + 1] + [axis + 1])


@aten("as_strided", "as_strided_copy")
def as_strided(self: Tensor, size: Sequence[Size], stride: Sequence[Size], storage_offset: Any) -> Tensor:
    """Elements at computed places of a contiguous tensor."""
    return emit("take", flat(self), strided_places(size, stride, storage_offset), axis=0, mode="clip")


def strided_places(size: Sequence[Size], stride: Sequence[Size], storage_offset: Any) -> Tensor:
    """The places in a storage of the elements of a strided tensor."""
    rank = len(size)
    terms = [
        reshape(emit("multiply", positions(d), size_tensor(s)), along(d, i, rank))
        for i, (d, s) in enumerate(zip(size, stride, strict=True))
    ]
    return broadcast_to(reduce(lambda a, b: emit("add", a, b), terms, size_tensor(storage_offset or 0)), tuple(size))


# ---- repetition, order ------------------------------------------------------------------------------------------------------------------


@aten("repeat")
def repeat(self: Tensor, repeats: tuple[Size, ...]) -> Tensor:
    x = reshape(self, (1,) * (len(repeats) - self.rank) + tuple(self.shape))
    return x if all(r == 1 for r in repeats) else emit("tile", x, reps=repeats)


@aten("flip")
def flip(self: Tensor, dims: Sequence[int]) -> Tensor:
    for d in dims if self.rank else ():
        self = emit("reverse", self, axis=axis_of(d, self.rank))
    return self


@aten("roll")
def roll(self: Tensor, shifts: Sequence[Size], dims: Sequence[int]) -> Tensor:
    if not dims:
        rolled = _rolled(flat(self), shifts[0], 0)
        return reshape(rolled, self.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        self = _rolled(self, shift, axis_of(dim, self.rank))
    return self


def _rolled(x: Tensor, shift: Size, axis: int) -> Tensor:
    size = x.shape[axis]
    if not isinstance(size, int) or not isinstance(shift, int):
        at = emit("floor_mod", emit("subtract", positions(size), size_tensor(shift)), size_tensor(size))
        return emit("take", x, at, axis=axis, mode="clip")
    at_ = -shift % size if size else 0
    if at_ == 0:
        return x
    parts = (strided_slice(x, (a,), (b,), (1,), (axis,)) for a, b in ((at_, size), (0, at_)))
    return emit("concatenate", *parts, axis=axis)


# ---- padding, blocks --------------------------------------------------------------------------------------------------------------------

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_NAMED = {
    **{f"reflection_pad{n}d": "reflect" for n in (1, 2, 3)},
    **{f"replication_pad{n}d": "replicate" for n in (1, 2, 3)},
}


@aten("constant_pad_nd", "pad", *_NAMED, pad="padding")
def pad_(self: Tensor, padding: Sequence[Size], value: Any = None, mode: str = "constant") -> Tensor:
    mode = _NAMED.get(node().operator.removeprefix("aten."), mode)
    pairs = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]
    axes = [self.rank - 1 - i for i in range(len(pairs))]
    value = operand(value or 0, self.dtype)
    begins_ends = [p for p, _ in pairs] + [p for _, p in pairs]
    return pad(self, begins_ends, value, _MODES[mode], axes)


@aten("pixel_shuffle")
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    x = reshape(self, (prod(self.shape[:-3]), *self.shape[-3:]))
    return reshape(emit("nn.depth_to_space", x, block_size=upscale_factor, mode="CRD"), node().sizes)


# ---- parts that are written -------------------------------------------------------------------------------------------------------------


@aten("slice_scatter")
def slice_scatter(self: Tensor, src: Tensor, dim: int, start: Any, end: Any, step: int) -> Tensor:
    axis, src = axis_of(dim, self.rank), to_dtype(src, self.dtype)
    size, count = self.shape[axis], src.shape[axis]
    begin = 0 if start is None else start
    if isinstance(begin, int) and begin < 0:
        begin = maximum(0, size + begin)
    if step == 1:
        stop = begin + count
        parts = [] if begin == 0 else [strided_slice(self, (0,), (begin,), (1,), (axis,))]
        parts += [src] + ([] if stop == size else [strided_slice(self, (stop,), (size,), (1,), (axis,))])
        return parts[0] if len(parts) == 1 else emit("concatenate", *parts, axis=axis)
    if count == 0:
        return self
    offset = emit("subtract", positions(size), size_tensor(begin))
    which = binary("floor_divide", offset, step)
    inside = emit("logical_and", binary("equal", binary("floor_mod", offset, step), 0), binary("greater_equal", offset, 0))
    inside = emit("logical_and", inside, emit("less", which, size_tensor(count)))
    taken = emit("take", src, which, axis=axis, mode="clip")
    return where(reshape(inside, along(size, axis, self.rank)), taken, self)


@aten("select_scatter")
def select_scatter(self: Tensor, src: Tensor, dim: int, index: Size) -> Tensor:
    axis = axis_of(dim, self.rank)
    at = self.shape[axis] + index if isinstance(index, int) and index < 0 else index
    here = emit("equal", positions(self.shape[axis]), size_tensor(at))
    row = reshape(to_dtype(src, self.dtype), (*self.shape[:axis], 1, *self.shape[axis + 1 :]))
    return where(reshape(here, along(self.shape[axis], axis, self.rank)), row, self)


@aten("diagonal_scatter")
def diagonal_scatter(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    first, second = axis_of(dim1, self.rank), axis_of(dim2, self.rank)
    rest = [a for a in range(self.rank) if a not in (first, second)]
    order = [*rest, first, second]
    rows, columns = self.shape[first], self.shape[second]
    i, j = reshape(positions(rows), (rows, 1)), reshape(positions(columns), (1, columns))
    here = emit("equal", emit("subtract", j, i), constant(offset, "int64"))
    taken = emit("take", to_dtype(src, self.dtype), emit("minimum", i, j), axis=len(rest), mode="clip")
    found = where(here, taken, transpose(self, order))
    return transpose(found, [order.index(a) for a in range(self.rank)])


@aten("copy")
def copy(self: Tensor, src: Tensor) -> Tensor:
    return broadcast_to(to_dtype(src, self.dtype), self.shape)
