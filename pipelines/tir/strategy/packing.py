"""Parameter layouts that schedules request: their description, which the IR carries, and copies into them at memory bandwidth."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.elements import MOST_OF_SEVEN_BITS
from relayc.dialects.relay.errors import RelayError
from relayc.pipelines.emission.index import Index, Var, affine_index, strides_of
from relayc.symbolic import Size, ceil_div

SHORT = 128
"""Elements per column below which a block is copied directly: staging would cost more than it saves."""
LINE = 64
"""Bytes of a cache line."""
TOGETHER = 64
"""Columns that are staged together, or a block if it is wider."""


@dataclass(frozen=True)
class Packing:
    """Another layout of a parameter: applied once, at compile time.

    Nested loops read the parameter, and the elements that they read are arranged in an array of `shape`.

    Attributes:
      kind: of the arrangement, a name in `ARRANGEMENTS`.
      source: shape of the parameter.
      access: for each dimension of the parameter, the index that the loops read: a constant, then a coefficient for each loop.
      extents: of the loops.
      shape: after packing; the element type stays.
      numbers: further numbers of the arrangement, by name.
    """

    kind: str
    source: tuple[int, ...]
    access: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    shape: tuple[int, ...]
    numbers: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def reading(
        kind: str,
        source: Sequence[Size],
        indices: Sequence[Index],
        loops: Sequence[tuple[Var, Size]],
        shape: Sequence[Size],
        **numbers: int,
    ) -> "Packing":
        """The packing of a parameter that is read at `indices`, functions of `loops` (each with its extent).

        Raises Undecided if a size is an expression: the packed layout must be known at compile time.
        """
        access = tuple(_numbers([index.const, *(index.coefficient(v) for v, _ in loops)]) for index in indices)
        extents = _numbers([e for _, e in loops])
        return Packing(kind, _numbers(source), access, extents, _numbers(shape), tuple(sorted(numbers.items())))

    @staticmethod
    def layout(amap: ir.AffineMap, source: Sequence[int], shape: Sequence[int]) -> "Packing":
        """The packing that moves element i of a parameter to element amap(i) of an array of `shape`, padded with zeros.

        Raises ValueError if a result of the map is not a dimension, or a part of one: d, d floordiv c, d mod c, (d floordiv c) mod e.
        """
        parts = [_part(e) for e in amap.results]
        access = tuple((0, *(step if dim == d else 0 for dim, step in parts)) for d in range(len(source)))
        return Packing("layout", tuple(source), access, tuple(shape), tuple(shape))

    @property
    def name(self) -> str:
        """Names the layout independently of the parameter's view: packings of one parameter with equal names share the packed array."""
        strides = strides_of(self.source)
        first, *steps = (sum(c * s for c, s in zip(column, strides, strict=True)) for column in zip(*self.access, strict=True))
        loops = ",".join(f"{step}*{extent}" for step, extent in zip(steps, self.extents, strict=True))
        numbers = "".join(f" {name}={number}" for name, number in self.numbers)
        return f"{self.kind}{list(self.shape)}{numbers}: {first} {loops}"

    def pack(self, array: np.ndarray, out: np.ndarray) -> None:
        """Writes a parameter of shape `source` to an uninitialized array of `shape`.

        Both are unsigned integers as wide as the elements; the parameter may be strided. Called in several threads at once.
        """
        if self.kind == "layout":
            array = self._padded(array)
        strides = [sum(c * s for c, s in zip(column, array.strides, strict=True)) for column in zip(*self.access, strict=True)][1:]
        first = array[tuple(slice(at[0], None) for at in self.access)]
        view = np.lib.stride_tricks.as_strided(first, self.extents, strides, writeable=False)
        ARRANGEMENTS[self.kind](view, out, **dict(self.numbers))

    def _padded(self, array: np.ndarray) -> np.ndarray:
        """The parameter padded with zeros where parts of a dimension do not divide it."""
        ends = [at[0] + sum(c * (e - 1) for c, e in zip(at[1:], self.extents, strict=True)) + 1 for at in self.access]
        behind = [(0, max(0, end - size)) for end, size in zip(ends, array.shape, strict=True)]
        return np.pad(array, behind) if any(count for _, count in behind) else array

    def to_attribute(self) -> ir.DictAttr:
        """The attribute `relay.packing` of a kernel's argument; the argument has the shape after packing."""
        dims = [ir.AffineDimExpr.get(i) for i in range(len(self.extents))]
        exprs = []
        for const, *coefficients in self.access:
            expr: ir.AffineExpr = ir.AffineConstantExpr.get(const)
            for dim, coefficient in zip(dims, coefficients, strict=True):
                if coefficient:
                    expr = expr + dim * coefficient
            exprs.append(expr)
        i64 = ir.IntegerType.get_signless(64)
        numbers = {name: ir.IntegerAttr.get(i64, number) for name, number in self.numbers}
        return ir.DictAttr.get(
            {
                "kind": ir.StringAttr.get(self.kind),
                "source": ir.DenseI64ArrayAttr.get(list(self.source)),
                "map": ir.AffineMapAttr.get(ir.AffineMap.get(len(dims), 0, exprs)),
                "extents": ir.DenseI64ArrayAttr.get(list(self.extents)),
                **numbers,
            }
        )

    @staticmethod
    def from_attribute(attribute: ir.Attribute, shape: Sequence[int]) -> "Packing":
        """Parses the attribute of an argument of `shape`. Raises RelayError if it is invalid."""
        try:
            fields = {named.name: named.attr for named in ir.DictAttr(attribute)}
            kind = ir.StringAttr(fields.pop("kind")).value
            source = tuple(ir.DenseI64ArrayAttr(fields.pop("source")))
            extents = tuple(ir.DenseI64ArrayAttr(fields.pop("extents")))
            amap = ir.AffineMapAttr(fields.pop("map")).value
            numbers = tuple((name, ir.IntegerAttr(value).value) for name, value in sorted(fields.items()))
            access = tuple(_coefficients(e, len(extents)) for e in amap.results)
            if kind not in ARRANGEMENTS or len(access) != len(source) or amap.n_dims != len(extents):
                raise ValueError
        except (LookupError, TypeError, ValueError):
            kinds = ", ".join(ARRANGEMENTS)
            expected = f"{{kind = one of {kinds}, source = shape, map = affine_map of loops to dimensions, extents = of loops, numbers}}"
            raise RelayError(f"relay.packing: expected {expected}, found {attribute}") from None
        return Packing(kind, source, access, extents, tuple(shape), numbers)


def _numbers(sizes: Sequence[Size]) -> tuple[int, ...]:
    return tuple(map(int, sizes))


def _coefficients(e: ir.AffineExpr, loops: int) -> tuple[int, ...]:
    """(constant, coefficient of each loop) of a linear expression. Raises ValueError if it is not linear."""

    def no_split(index: Index, divisor: Size) -> tuple[Index, Index]:
        raise ValueError(f"expected a linear expression, found {e}")

    variables = [Var.below(1) for _ in range(loops)]
    index = affine_index(e, list(map(Index.of, variables)), no_split)
    return _numbers([index.const, *map(index.coefficient, variables)])


def _part(e: ir.AffineExpr) -> tuple[int, int]:
    """(dimension, step) of the part of a dimension that an expression gives; `step` is the distance of neighbours. Raises ValueError."""
    if isinstance(e, ir.AffineDimExpr):
        return e.position, 1
    if isinstance(e, (ir.AffineFloorDivExpr, ir.AffineModExpr)) and isinstance(e.rhs, ir.AffineConstantExpr):
        dim, step = _part(e.lhs)
        return dim, step * e.rhs.value if isinstance(e, ir.AffineFloorDivExpr) else step
    raise ValueError(f"expected a dimension, its quotient or its remainder, found {e}")


# ---- arrangements -----------------------------------------------------------------------------------------------------------------


def _columns(view: np.ndarray, out: np.ndarray, batch: int) -> None:
    """[batch..., columns, rest...] to [batch..., block, rest..., width], zeros after the last column."""
    fill_blocks(view, batch, out)


def _channels(view: np.ndarray, out: np.ndarray, batch: int) -> None:
    """Like `_columns`, but the last block holds the last columns, overlapping the block before it."""
    fill_blocks(view, batch, out)
    lanes = out.shape[-1]
    if view.shape[batch] % lanes:
        last = view[(slice(None),) * batch + (slice(view.shape[batch] - lanes, None),)]
        out[(slice(None),) * batch + (-1,)] = np.moveaxis(last, batch, -1)


def _rows(view: np.ndarray, out: np.ndarray, batch: int, rows: int) -> None:
    """[batch..., row, rest...] to [batch..., tile, rest..., rows]; the last tile holds the last rows."""
    for at in np.ndindex(*view.shape[:batch]):
        lines = view[at].reshape(view.shape[batch], -1)
        tiles = out[at].reshape(-1, lines.shape[1], rows)
        whole = len(lines) // rows
        tiles[:whole] = lines[: whole * rows].reshape(whole, rows, -1).transpose(0, 2, 1)
        tiles[-1] = lines[-rows:].T


def _groups(view: np.ndarray, out: np.ndarray, batch: int, inner: int, pitch: int, shift: int) -> None:
    """[batch..., columns, outer..., inner...] to [batch..., block, groups, columns of a block, group].

    The last `inner` loops form a round of `pitch` elements, padded with zeros; zeros follow the last column. With a `shift` elements are
    signed bytes, and the first group of a block has -shift times the sums of the columns as s32.
    """
    for place, groups in _blocks_of_groups(view, out, batch, inner, pitch):
        place[1 if shift else 0 :] = groups
        _begin(place, groups, shift)


def _sorted_groups(view: np.ndarray, out: np.ndarray, batch: int, inner: int, pitch: int, shift: int, **strides: int) -> None:
    """Like `_groups`, of signed bytes, but in each block the groups that fit come first: the products of each pair of neighbours by
    unsigned bytes add up to 16 bits. Integers in s32 before the groups say how many fit, and where the elements of each group, in the new
    order, lie in the other operand. `strides` are the distances of the iterations of the outer loops there, by number."""
    outer = [(view.shape[batch + 1 + i], strides[f"stride{i}"]) for i in range(len(strides))]
    rest = prod(view.shape[batch + 1 + len(outer) : view.ndim - inner]) * pitch
    group = out.shape[-1]
    starts = np.arange(0, rest, group)
    for extent, stride in reversed(outer):
        starts = (np.arange(extent)[:, None] * stride + starts).reshape(-1)
    for place, groups in _blocks_of_groups(view, out, batch, inner, pitch):
        pairs = groups.view(np.int8).reshape(len(groups), -1, 2).astype(np.int16)
        sums = np.stack([np.maximum(pairs, 0).sum(-1), -np.minimum(pairs, 0).sum(-1)])
        fits = (sums <= 2 * MOST_OF_SEVEN_BITS).all((0, 2))
        order = np.argsort(~fits, kind="stable")
        first = 1 if shift else 0
        head = len(place) - len(groups)
        numbers = np.zeros(place[first:head].size // 4, np.int32)
        numbers[: 1 + len(order)] = [fits.sum(), *starts[order]]
        place[first:head] = numbers.view(np.uint8).reshape(place[first:head].shape)
        place[head:] = groups[order]
        _begin(place, groups, shift)


def _blocks_of_groups(view: np.ndarray, out: np.ndarray, batch: int, inner: int, pitch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each block of an array packed by groups, and its groups (see `_groups`)."""
    size, (width, group) = prod(view.shape[view.ndim - inner :]), out.shape[-2:]
    rounds = prod(view.shape[batch + 1 : view.ndim - inner])
    staged = np.zeros((width, rounds, pitch), view.dtype)
    for at in np.ndindex(*view.shape[:batch]):
        for block in range(out.shape[batch]):
            some = view[at][block * width : (block + 1) * width]
            staged[: len(some), :, :size] = some.reshape(len(some), rounds, size)
            staged[len(some) :] = 0
            yield out[at][block], staged.reshape(width, rounds * pitch // group, group).swapaxes(0, 1)


def _begin(place: np.ndarray, groups: np.ndarray, shift: int) -> None:
    """Writes what the sums of a block of groups begin at if there is a shift (see `_groups`)."""
    if shift:
        sums = groups.view(np.int8).sum((0, 2), dtype=np.int32) * np.int32(-shift)
        place[0] = sums.view(np.uint8).reshape(place.shape[1:])


def _lines(view: np.ndarray, out: np.ndarray, lines: int) -> None:
    """[lines..., rest...] to [lines..., pitch]: the rest contiguous, padded with zeros."""
    depth = prod(view.shape[lines:])
    out[..., depth:] = 0
    for at in np.ndindex(*view.shape[: max(0, lines - 1)]):
        some = view[at]
        out[at][..., :depth] = some.reshape(*some.shape[: min(lines, 1)], depth)


def _layout(view: np.ndarray, out: np.ndarray) -> None:
    """In the order of the loops."""
    out[...] = view


ARRANGEMENTS: dict[str, Callable[..., None]] = {
    "columns": _columns,
    "channels": _channels,
    "rows": _rows,
    "groups": _groups,
    "sorted_groups": _sorted_groups,
    "lines": _lines,
    "layout": _layout,
}
"""Arrangements of the elements that loops read: functions of the view with a dimension for each loop, the packed array, and the numbers."""


def as_bits(array: np.ndarray) -> np.ndarray:
    """The same memory as unsigned integers: numpy copies these without the interpreter lock, for any dtype."""
    return array.view(f"u{array.dtype.itemsize}")


def fill_blocks(source: np.ndarray, axis: int, out: np.ndarray) -> None:
    """Splits an axis into blocks that become the innermost axis: [batch..., columns, rest...] -> [batch..., block, rest..., width].

    Args:
      source: with any strides.
      axis: of the columns.
      out: same dtype; its last axis is the width of a block. Excess columns of the last block become 0.
    """
    width, columns = out.shape[-1], source.shape[axis]
    full, left = divmod(columns, width)
    if left:
        out[(slice(None),) * axis + (full, ..., slice(left, None))] = 0
    if abs(source.strides[axis]) == source.itemsize or prod(source.shape[axis + 1 :]) < SHORT:
        moved = np.moveaxis(source, axis, -1)
        whole = moved[..., : full * width].reshape(*moved.shape[:-1], full, width)
        out[(slice(None),) * axis + (slice(full),)] = np.moveaxis(whole, -2, axis)
        if left:
            out[(slice(None),) * axis + (full, ..., slice(left))] = moved[..., full * width :]
        return
    # Several narrow blocks at a time: each copy must acquire the interpreter lock.
    together = max(1, min(full, TOGETHER // width))
    staged = _staging(source, axis, width * together)
    for batch in np.ndindex(source.shape[:axis]):
        for block in range(0, full, together):
            count = min(together, full - block)
            some = staged[: count * width]
            some[...] = source[batch][block * width : (block + count) * width]
            out[batch][block : block + count] = np.moveaxis(some.reshape(count, width, *some.shape[1:]), 1, -1)
        if left:
            some = staged[:left]
            some[...] = source[batch][full * width :]
            out[batch][full, ..., :left] = np.moveaxis(some, 0, -1)


def _staging(source: np.ndarray, axis: int, width: int) -> np.ndarray:
    """Memory for a block of columns, [width, rest...], with the order of `source` and a pitch of an odd number of cache lines.

    Columns are often a power of two apart; then all elements of a row would map to a few cache sets.
    """
    rest, strides = source.shape[axis + 1 :], source.strides[axis + 1 :]
    depth = prod(rest)
    pitch = (ceil_div(depth * source.itemsize, LINE) | 1) * LINE // source.itemsize
    order = sorted(range(len(rest)), key=lambda d: -abs(strides[d]))
    lines = np.empty((width, pitch), source.dtype)[:, :depth].reshape(width, *[rest[d] for d in order])
    return lines.transpose(0, *[1 + order.index(d) for d in range(len(rest))])
