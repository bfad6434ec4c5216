"""Reading and writing at computed positions.

Negative indices count from the end, as in Relay; one out of range is an error of the call.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from relayc.frontend.common.positions import along_axes, nonzero, positions_where
from relayc.frontend.common.reductions import lowest
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.pytorch.elementwise import to_dtype
from relayc.frontend.pytorch.operands import along, flat, operand, promoted, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.pytorch.shape import strided_places
from relayc.frontend.sizes import positions, sizes
from relayc.frontend.steps import (
    as_numbers,
    binary,
    broadcast_shape,
    broadcast_to,
    cast,
    filled,
    reshape,
    row,
    strided_slice,
    subtract,
    transpose,
)
from relayc.symbolic import Size


@aten("masked_scatter")
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Where the mask holds, the next element of the source."""
    holds, data = broadcast_to(mask, node().sizes), broadcast_to(self, node().sizes)
    return where(holds, taken_in_order(flat(source), holds), data)


def taken_in_order(source: Tensor, holds: Tensor) -> Tensor:
    """The next element of a vector where a mask holds, any one elsewhere."""
    place = subtract(emit("cumsum", cast(flat(holds), "int64"), axis=0), 1)
    return reshape(emit("take", source, emit("maximum", place, constant(0, "int64")), axis=0, mode="clip"), holds.shape)


@aten("index_select")
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    if self.rank == 0:
        return self
    return emit("take", self, reshape(index, (prod(index.shape),)), axis=axis_of(dim, self.rank), mode="raise")


@aten("take")
def take(self: Tensor, index: Tensor) -> Tensor:
    return emit("take", flat(self), index, axis=0, mode="raise")


@aten("gather")
def gather(self: Tensor, dim: int, index: Tensor) -> Tensor:
    if self.rank == 0 or index.rank == 0:
        return broadcast_to(reshape(self, (1,)) if index.rank else self, index.shape)
    if 0 in index.shape:
        return filled(index.shape, 0, self.dtype)
    return emit("gather", self, cast(index, "int64"), axis=axis_of(dim, self.rank))


@aten("nonzero")
def nonzero_(self: Tensor) -> Tensor:
    if self.rank == 0:
        return filled((positions_where(to_dtype(flat(self), "bool")).shape[0], 0), 0, "int64")
    return transpose(nonzero(self), (1, 0))


@aten("nonzero_static")
def nonzero_static(self: Tensor, size: int, fill_value: int) -> Tensor:
    """The first positions of elements that are not 0, as many as `size`; behind them, the number to fill with."""
    holds = to_dtype(flat(self), "bool")
    count = holds.shape[0]
    before = emit("cumsum", cast(holds, "int64"), axis=0, exclusive=True)
    # The others, and what is too many, go to a place that is thrown away.
    places = where(holds, binary("minimum", before, size), constant(size, "int64"))
    room = emit("scatter_elements", filled((size + 1,), -1, "int64"), places, positions(count), axis=0, reduction="update", in_bounds=True)
    found = strided_slice(room, (0,), (size,), (1,), (0,))
    if self.rank == 0:
        return filled((size, 0), 0, "int64")
    filled_ = reshape(binary("less", found, 0), (size, 1))
    return where(filled_, constant(fill_value, "int64"), emit("stack", *along_axes(found, self.shape), axis=1))


@aten("repeat_interleave.Tensor")
def repeat_interleave_indices(repeats: Tensor, output_size: Size | None) -> Tensor:
    """The number i as often as element i says."""
    ends = emit("cumsum", cast(repeats, "int64"), axis=0)
    if output_size is None:
        (output_size,) = sizes(emit("sum", cast(repeats, "int64"), axis=(0,)), "repeats")
    return cast(emit("searchsorted", ends, positions(output_size), right=True, dtype="int64"), repeats.dtype)


@aten("masked_select")
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    shape = broadcast_shape(self.shape, mask.shape)
    holds = flat(broadcast_to(mask, shape))
    return emit("take", flat(broadcast_to(self, shape)), positions_where(holds), axis=0, mode="clip")


@aten("_local_scalar_dense")
def item(self: Tensor) -> Any:
    """A size of the program; a float as a tensor."""
    x = reshape(self, ())
    if x.is_float:
        return x
    (found,) = sizes(cast(x, "int64"), "item", signed=True)
    return found


# ---- x[i, j, ...] -----------------------------------------------------------------------------------------------------------------------


def _expanded(x: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Indices, one for each axis of x, where a mask is the positions at which it holds, one for each of its axes."""
    found: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype not in ("bool", "uint8"):
            found.append(index)
            continue
        rows = nonzero(to_dtype(index, "bool"))
        found += [row(rows, i) for i in range(index.rank)]
    return found + [None] * (x.rank - len(found))


def _order(x: Tensor, indices: Sequence[Tensor | None]) -> tuple[list[int], list[int], int]:
    """The axes that are indexed, all axes with these first, and where among the others the dimensions of the indices come."""
    axes = [i for i, t in enumerate(indices) if t is not None]
    together = axes == list(range(axes[0], axes[-1] + 1))
    return axes, axes + [i for i in range(x.rank) if i not in axes], axes[0] if together else 0


def _columns(indices: Sequence[Tensor | None]) -> Tensor:
    given = [cast(t, "int64") for t in indices if t is not None]
    block = broadcast_shape(*(t.shape for t in given))
    return emit("stack", *(broadcast_to(t, block) for t in given), axis=0)


@aten("index", "_unsafe_index")
def index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    every = _expanded(self, indices)
    axes, order, lead = _order(self, every)
    if len(axes) == 1:
        (at,) = (t for t in every if t is not None)
        return emit("take", self, cast(at, "int64"), axis=axes[0], mode="raise")
    columns = _columns(every)
    found = emit("gather_nd", transpose(self, order), columns)
    block = columns.rank - 1
    return transpose(found, [*range(block, block + lead), *range(block), *range(block + lead, found.rank)])


@aten("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool) -> Tensor:
    if not accumulate and values.type.num_elements == 1 and len(indices) == 1 and indices[0] is not None and indices[0].dtype == "bool":
        mask = indices[0]
        return where(reshape(mask, (*mask.shape, *(1,) * (self.rank - mask.rank))), reshape(cast(values, self.dtype), ()), self)
    every = _expanded(self, indices)
    axes, order, lead = _order(self, every)
    columns = _columns(every)
    block = columns.shape[1:]
    rest = [self.shape[a] for a in order[len(axes) :]]
    values = broadcast_to(cast(values, self.dtype), (*rest[:lead], *block, *rest[lead:]))
    n = len(block)
    updates = transpose(values, [*range(lead, lead + n), *range(lead), *range(lead + n, values.rank)])
    rows, mode = as_numbers(transpose(self, order)), "add" if accumulate else "update"
    found = cast(emit("scatter_nd", rows, columns, as_numbers(updates), mode=mode), self.dtype)
    return transpose(found, [order.index(a) for a in range(self.rank)])


@aten("put")
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    return reshape(index_put(flat(self), [flat(index)], flat(source), accumulate), self.shape)


@aten("as_strided_scatter")
def as_strided_scatter(self: Tensor, src: Tensor, size: Sequence[Size], stride: Sequence[Size], storage_offset: Any) -> Tensor:
    at = strided_places(size, stride, storage_offset)
    return reshape(index_put(flat(self), [flat(at)], flat(src), False), self.shape)


# ---- scatter ----------------------------------------------------------------------------------------------------------------------------

_REDUCTIONS = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min", "mean": "mean"}


def _updated(self: Tensor, dim: int, index: Tensor, src: Any, reduction: str) -> Tensor:
    shape = self.shape
    if self.rank == 0:
        self, index = reshape(self, (1,)), reshape(index, (1,))
        src = reshape(src, (1,)) if isinstance(src, Tensor) else src
    if 0 in index.shape:
        return reshape(self, shape)
    axis = axis_of(dim, self.rank)
    if isinstance(src, Tensor):
        src = strided_slice(src, (0,) * src.rank, index.shape, (1,) * src.rank, range(src.rank)) if src.shape != index.shape else src
    else:
        src = broadcast_to(operand(src, self.dtype), index.shape)
    found = emit("scatter_elements", as_numbers(self), cast(index, "int64"), as_numbers(src), axis=axis, reduction=reduction)
    return reshape(cast(found, self.dtype), shape)


@aten("scatter", "scatter_add")
def scatter(self: Tensor, dim: int, index: Tensor, src: Any = None, value: Any = None, reduce: str | None = None) -> Tensor:
    how = "add" if node().operator == "aten.scatter_add" else "update" if reduce is None else _REDUCTIONS[reduce]
    return _updated(self, dim, index, value if src is None else src, how)


@aten("scatter_reduce")
def scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    if not include_self:
        # What is written to begins as what changes nothing.
        first: dict[str, Any] = {"sum": 0, "prod": 1, "mean": 0, "amax": lowest(self.dtype), "amin": lowest(self.dtype, negated=True)}
        self = _updated(self, dim, index, first[reduce], "update")
    if reduce != "mean":
        return _updated(self, dim, index, src, _REDUCTIONS[reduce])
    total = _updated(self, dim, index, src, "add")
    count = filled(self.shape, int(include_self), self.dtype)
    count = _updated(count, dim, index, 1, "add")
    count = emit("maximum", count, constant(1, count.dtype))
    return emit("divide" if self.is_float else "floor_divide", total, count)


@aten("index_reduce")
def index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    """A scatter whose index is the same for whole slices."""
    shape, self = self.shape, self if self.rank else reshape(self, (1,))
    axis = axis_of(dim, self.rank)
    source = source if source.rank else reshape(source, (1,))
    every = broadcast_to(reshape(index, along(prod(index.shape), axis, source.rank)), source.shape)
    return reshape(scatter_reduce(self, axis, every, source, reduce, include_self), shape)


@aten("one_hot")
def one_hot(self: Tensor, num_classes: Size) -> Tensor:
    """Torch exports no number of classes that data says."""
    return emit("one_hot", self, constant(1, "int64"), constant(0, "int64"), depth=num_classes, axis=-1, dtype="int64")


@aten("bucketize", "searchsorted", boundaries="edges", sorted_sequence="edges")
def bucketize(self: Any, edges: Tensor, right: bool, side: str | None = None) -> Tensor:
    """Of each value the number of edges before it. Counted, so that a `sorter` need not be applied; a NaN comes after all edges."""
    dtype = promoted(edges, self)
    values, edges = operand(self, dtype), cast(edges, dtype)
    rows = reshape(edges, (*edges.shape[:-1], 1, edges.shape[-1])) if edges.rank > 1 else edges
    right = right or side == "right"
    behind = emit("greater" if right else "greater_equal", rows, reshape(values, (*values.shape, 1)))
    return cast(emit("sum", cast(emit("logical_not", behind), "int64"), axis=(values.rank,)), node().dtype)
