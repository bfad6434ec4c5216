"""Reading and writing at computed positions: gather, scatter, and dynamic slices.

As specified by StableHLO, positions of reads are clamped, and writes out of bounds are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.stablehlo.regions import expression
from relayc.frontend.stablehlo.registry import Node, Pair, op
from relayc.frontend.stablehlo.shape import each_part, shape_operand
from relayc.frontend.stablehlo.sizes import known_sizes
from relayc.frontend.steps import as_numbers, binary, broadcast_to, cast, reshape, row, strided_slice, transpose
from relayc.symbolic import Size, maximum, minimum


def _clamped(start: Tensor, most: Size) -> Tensor:
    """Positions within [0, most], int64."""
    low = emit("maximum", cast(start, "int64"), constant(0, "int64"))
    return emit("minimum", low, size_tensor(most))


def _along(axis: int, rank: int, size: Size) -> Tensor:
    """0, 1, ... along one of `rank` axes."""
    return reshape(positions(size), [size if i == axis else 1 for i in range(rank)])


def sliced(x: Tensor, starts: Sequence[Tensor], size: Sequence[Size]) -> Tensor:
    """`size` elements of x along each axis, from computed positions, which are clamped so that all elements are in bounds."""
    known = [known_sizes(t) for t in starts]
    if None not in known:
        begin = [minimum(maximum(k[0], 0), d - s) for k, d, s in zip(known, x.shape, size, strict=True)]  # type: ignore[index]
        return strided_slice(x, begin, [b + s for b, s in zip(begin, size, strict=True)], (1,) * x.rank, range(x.rank))
    for axis, (start, count) in enumerate(zip(starts, size, strict=True)):
        if x.shape[axis] != count:
            at = emit("add", reshape(_clamped(start, x.shape[axis] - count), (1,)), positions(count))
            x = emit("take", x, at, axis=axis, mode="clip")
    return x


@op("dynamic_slice", complex_too=True)
def dynamic_slice(node: Node, x: Any, *starts: Tensor) -> Any:
    return each_part(lambda t: sliced(t, starts, node.ints("slice_sizes")), x)


# ---- gather -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Columns:
    """The first positions of windows.

    Attributes:
      batch: the shape of the positions of windows.
      starts: for each indexed axis, the first positions, of shape `batch`.
      exact: axes whose positions are positions of the indices (batching dimensions), and therefore in bounds.
    """

    batch: tuple[Size, ...]
    starts: dict[int, Tensor]
    exact: frozenset[int]

    @staticmethod
    def of(indices: Tensor, vector: int, axes: Sequence[int], batching: Sequence[tuple[int, int]]) -> "_Columns":
        """Of indices whose axis `vector` has one place for each of `axes`."""
        if vector == indices.rank:
            indices = reshape(indices, (*indices.shape, 1))
        batch = tuple(d for i, d in enumerate(indices.shape) if i != vector)
        starts = {axis: row(indices, i, vector) for i, axis in enumerate(axes)}
        for axis, of_indices in batching:
            at = of_indices - (of_indices > vector)
            starts[axis] = _along(at, len(batch), batch[at])
        return _Columns(batch, starts, frozenset(axis for axis, _ in batching))

    def known(self) -> dict[int, Size] | None:
        """The first positions of a single window, if known."""
        found = {axis: known_sizes(t) for axis, t in self.starts.items()}
        if self.batch or None in found.values():
            return None
        return {axis: k[0] for axis, k in found.items() if k is not None}

    def places(self, axes: Sequence[int], windows: Sequence[int], size: dict[int, Size], clamp: dict[int, Size] | None) -> list[Tensor]:
        """The positions along each of `axes`, over the batch and the axes of a window that `windows` names."""
        rank = len(self.batch) + len(windows)
        found = []
        for axis in axes:
            start = self.starts.get(axis, constant(0, "int64"))
            if clamp is not None and axis in self.starts and axis not in self.exact:
                start = _clamped(start, clamp[axis])
            start = cast(start, "int64")
            if axis in self.starts:
                start = reshape(start, (*start.shape, *(1,) * len(windows)))
            if axis in windows:
                start = emit("add", start, _along(len(self.batch) + list(windows).index(axis), rank, size[axis]))
            found.append(start)
        return found


def _gathered(x: Tensor, columns: _Columns, size: Sequence[Size]) -> tuple[Tensor, list[Any]]:
    """Windows of x, and for each axis of the result the axis of x, or ("batch", i)."""
    known = columns.known()
    if known is not None:
        found = sliced(x, [size_tensor(known.get(a, 0)) for a in range(x.rank)], size)
        return found, list(range(x.rank))
    for axis, count in enumerate(size):
        if axis not in columns.starts and x.shape[axis] != count:
            x = strided_slice(x, (0,), (count,), (1,), (axis,))
    # A window as long as its axis begins at 0. One axis is read at least, for each place of the batch.
    axes = [a for a in sorted(columns.starts) if x.shape[a] != size[a] or a in columns.exact] or [0]
    windows = [a for a in axes if size[a] != 1]
    sizes, most = dict(enumerate(size)), {a: x.shape[a] - size[a] for a in axes}
    block: list[Any] = [("batch", i) for i in range(len(columns.batch))]
    rest = [a for a in range(x.rank) if a not in axes]
    shape = (*columns.batch, *(size[a] for a in windows))
    if len(axes) == 1:
        (at,) = columns.places(axes, windows, sizes, most)
        found = emit("take", x, broadcast_to(at, shape), axis=axes[0], mode="clip")
        return found, [*rest[: axes[0]], *block, *windows, *rest[axes[0] :]]
    free = [a for a in axes if a not in columns.exact]
    if len(free) == 1 and not windows and not rest and columns.exact == {*axes} - {*free} and _is_in_order(columns, x):
        (at,) = columns.places(free, windows, sizes, most)
        return emit("gather", x, at, axis=free[0], in_bounds=True), block
    places = [broadcast_to(t, shape) for t in columns.places(axes, windows, sizes, most)]
    found = emit("gather_nd", transpose(x, [*axes, *rest]), emit("stack", *places, axis=0), in_bounds=True)
    return found, [*block, *windows, *rest]


def _is_in_order(columns: _Columns, x: Tensor) -> bool:
    """Whether each axis whose positions are those of the indices is the same axis of these."""
    batch = columns.batch
    return len(batch) == x.rank and all(batch[a] == x.shape[a] == columns.starts[a].shape[a] for a in columns.exact)


def _gather(node: Node, x: Tensor, indices: Tensor, size: Sequence[Size]) -> Tensor:
    numbers = node.numbers("dimension_numbers", "GatherDimensionNumbers")
    batching = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    columns = _Columns.of(indices, numbers.index_vector_dim, list(numbers.start_index_map), batching)
    found, labels = _gathered(x, columns, size)
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    offsets = [a for a in range(x.rank) if a not in gone]
    batch = iter(range(len(columns.batch)))
    window = iter(offsets)
    rank = len(columns.batch) + len(offsets)
    order = [next(window) if i in set(numbers.offset_dims) else ("batch", next(batch)) for i in range(rank)]
    present = [label for label in order if label in labels]
    spare = [label for label in labels if label not in present]  # of size 1
    found = transpose(found, [labels.index(label) for label in [*spare, *present]])
    return reshape(found, [size[label] if isinstance(label, int) else columns.batch[label[1]] for label in order])


@op("gather", complex_too=True)
def gather(node: Node, x: Any, indices: Tensor) -> Any:
    return each_part(lambda t: _gather(node, t, indices, node.ints("slice_sizes")), x)


@op("dynamic_gather")
def dynamic_gather(node: Node, x: Tensor, indices: Tensor, size: Tensor) -> Tensor:
    return _gather(node, x, indices, shape_operand(size, "slice_sizes"))


# ---- scatter ----------------------------------------------------------------------------------------------------------------------------

_MODES = {
    "x1": "update",
    **{f"{name}({a},{b})": mode for name, mode in (("add", "add"), ("multiply", "mul"), ("minimum", "min"), ("maximum", "max"))
       for a, b in (("x0", "x1"), ("x1", "x0"))},
    **{f"{name}({a},{b})": mode for name, mode in (("or", "max"), ("and", "min")) for a, b in (("x0", "x1"), ("x1", "x0"))},
}  # fmt: skip


def _written(x: Tensor, columns: _Columns, updates: Tensor, labels: Sequence[Any], mode: str, is_clamped: bool) -> Tensor:
    """x with windows written to it; `labels` are the labels of the axes of `updates`, as from `_gathered`."""
    size: dict[int, Size] = {a: 1 for a in range(x.rank)}
    size.update({label: d for label, d in zip(labels, updates.shape, strict=True) if isinstance(label, int)})
    axes = [a for a in range(x.rank) if x.shape[a] != size[a] or a in columns.exact or (a in columns.starts and size[a] == 1)]
    windows = [a for a in axes if a in labels]
    rest = [a for a in range(x.rank) if a not in axes]
    order = [*(("batch", i) for i in range(len(columns.batch))), *windows, *rest]
    updates = transpose(updates, [list(labels).index(label) for label in order])
    most = {a: x.shape[a] - size[a] for a in range(x.rank)}
    places = columns.places(axes, windows, size, most if is_clamped else None)
    valid = [] if is_clamped else _checks(columns, most, len(windows))
    # The indexed axes become one axis: windows that are not written get a position after all others.
    count = prod(x.shape[a] for a in axes)
    at = constant(0, "int64")
    for place, axis in zip(places, axes, strict=True):
        at = place if axis == axes[0] else emit("add", emit("multiply", at, size_tensor(x.shape[axis])), place)
    for holds in valid:
        at = emit("where", holds, at, size_tensor(count))
    at = broadcast_to(at, (*columns.batch, *(size[a] for a in windows)))
    moved = transpose(x, [*axes, *rest])
    rows = as_numbers(reshape(moved, (count, *(x.shape[a] for a in rest))))
    if valid:
        rows = emit("nn.pad", rows, constant(0, rows.dtype), pad_width=(0, 1, *(0,) * (2 * len(rest))))
    found = emit("scatter_nd", rows, reshape(at, (1, *at.shape)), as_numbers(updates), mode=mode, in_bounds=True)
    if valid:
        found = strided_slice(found, (0,), (count,), (1,), (0,))
    found = reshape(cast(found, x.dtype), moved.shape)
    return transpose(found, [[*axes, *rest].index(i) for i in range(x.rank)])


def _checks(columns: _Columns, most: dict[int, Size], windows: int) -> list[Tensor]:
    """Whether windows are in bounds, for each axis on which this is unknown."""
    found = []
    for axis, start in columns.starts.items():
        if axis in columns.exact:
            continue
        if start.is_known and isinstance(most[axis], int) and ((start.array >= 0) & (start.array <= most[axis])).all():
            continue
        start = cast(start, "int64")
        inside = emit("logical_and", binary("greater_equal", start, 0), emit("less_equal", start, size_tensor(most[axis])))
        found.append(reshape(inside, (*inside.shape, *(1,) * windows)))
    return found


@op("scatter", complex_too=True)
def scatter(node: Node, *operands: Any) -> Any:
    if len(operands) != 3:
        raise ModelError(f"expected one tensor to write to, found {len(operands) // 2}")
    x, indices, updates = operands
    text = expression(node.region(0))
    mode = _MODES.get(text[0]) if len(text) == 1 else None
    if isinstance(x, Pair) and mode in ("update", "add"):
        return Pair(*(_scattered(node, part, indices, new, mode) for part, new in zip(x, updates, strict=True)))
    if mode is None or isinstance(x, Pair) or (("or" in text[0] or "and" in text[0]) and x.dtype != "bool"):
        raise ModelError(f"expected updates that replace, or are combined by one operator, found {' '.join(text) or 'another region'}")
    return _scattered(node, x, indices, updates, mode)


def _scattered(node: Node, x: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    numbers = node.numbers("scatter_dimension_numbers", "ScatterDimensionNumbers")
    batching = list(zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    columns = _Columns.of(indices, numbers.index_vector_dim, list(numbers.scattered_dims_to_operand_dims), batching)
    gone = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    window, batch = iter(a for a in range(x.rank) if a not in gone), iter(range(len(columns.batch)))
    labels: list[Any] = [next(window) if i in set(numbers.update_window_dims) else ("batch", next(batch)) for i in range(updates.rank)]
    return _written(x, columns, updates, labels, mode, False)


@op("dynamic_update_slice", complex_too=True)
def dynamic_update_slice(node: Node, x: Any, update: Any, *starts: Tensor) -> Any:
    return each_part(lambda part, new: _updated(part, new, starts), x, update)


def _updated(x: Tensor, update: Tensor, starts: Sequence[Tensor]) -> Tensor:
    if x.rank == 0 or x.shape == update.shape:
        return update
    chosen = {a: t for a, t in enumerate(starts) if x.shape[a] != update.shape[a]}
    return _written(x, _Columns((), chosen, frozenset()), update, list(range(x.rank)), "update", True)
