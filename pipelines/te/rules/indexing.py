"""Compute rules of reading and writing at computed indices. Every index is brought into range before it is used."""

from collections.abc import Callable, Sequence

from relayc.dialects.discardable import DISTINCT
from relayc.dialects.mlir import arith, ir, linalg, scf
from relayc.dialects.operations import walk
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    extract,
    fill,
    index_constant,
    operand_type,
    parallel,
    reduce,
    reshape,
    result_type,
    shape,
)
from relayc.pipelines.te.rules.literal import INDEX_DTYPE, clamped, index_of, literal, number, position
from relayc.pipelines.te.rules.loops import insert, nest
from relayc.pipelines.te.rules.transform import moved
from relayc.pipelines.te.rules.window import cut
from relayc.symbolic import Size, maximum, minimum, proves


def _here(dims: Sequence[int]) -> list[Value]:
    """Indices of these loops."""
    return [linalg.IndexOp(d).result for d in dims]


# ---- reading ----------------------------------------------------------------------------------------------------------------------


def _wrapped(value: Value, dtype: str, size: Size) -> Value:
    """An element of an index tensor modulo `size`."""
    by = index_constant(size)
    remainder = arith.remsi(index_of(value, dtype), by)
    below = scalar.compare("lt", remainder, index_constant(0), INDEX_DTYPE)
    return scalar.select(below, arith.addi(remainder, by), remainder)


def _clipped(value: Value, dtype: str, size: Size) -> Value:
    """An element of an index tensor clipped to an axis of `size`; bytes need no clipping for size 256."""
    index = index_of(value, dtype)
    return index if dtype == "uint8" and size == 256 else clamped(index, size)


def _at(index: int, size: Size) -> Size:
    """An index for `literal.position`, 0 if the axis is empty."""
    return maximum(0, minimum(index, size - 1)) if index >= 0 else maximum(0, size + index)


@compute("take")
def take(op: Op, data: Value, indices: Value) -> Value:
    source, chosen, out = operand_type(op), operand_type(op, 1), result_type(op)
    if op.axis is None:
        source, axis = source.with_shape((source.num_elements,)), 0
        data = reshape(data, source.sizes)
    else:
        axis = normalize_axis(op.axis, source.rank)
    batch = normalize_axis(op.batch_dims, chosen.rank + 1)
    after = axis + chosen.rank - batch  # the first loop after the loops of the indices
    loops = [*range(axis), None, *range(after, out.rank)]
    size = source.sizes[axis]
    known = literal(op, 1)
    if known is not None and op.mode == "clip":
        known = max(int(known), 0)
    if known is not None and isinstance(size, int):
        at = int(known) % size if op.mode == "wrap" else _at(int(known), size)
        return moved(data, out.dtype, out.sizes, [at if d is None else dim(d) for d in loops])
    if known is not None and op.mode != "wrap":
        line = [i == axis for i in range(source.rank)]
        start = _at(int(known), size)
        data = cut(data, [start if here else 0 for here in line], [1 if here else n for here, n in zip(line, source.sizes, strict=True)])
        return moved(data, out.dtype, out.sizes, [0 if d is None else dim(d) for d in loops])
    to_position = {"wrap": _wrapped, "clip": _clipped}.get(op.mode, position)

    def body(value: Value) -> Value:
        at = to_position(value, chosen.dtype, size)
        return extract(data, [at if d is None else linalg.IndexOp(d).result for d in loops])

    return parallel(out, [indices], body, [affine_map(out.rank, [dim(d) for d in (*range(batch), *range(axis, after))])])


@compute("gather")
def gather(op: Op, data: Value, indices: Value) -> Value:
    source, chosen, out = operand_type(op), operand_type(op, 1), result_type(op)
    axis = normalize_axis(op.axis, source.rank)

    def body(value: Value) -> Value:
        at = position(value, chosen.dtype, source.sizes[axis])
        return extract(data, [at if d == axis else linalg.IndexOp(d).result for d in range(out.rank)])

    return parallel(out, [indices], body)


@compute("gather_nd")
def gather_nd(op: Op, data: Value, indices: Value) -> Value:
    source, chosen, out, batch = operand_type(op), operand_type(op, 1), result_type(op), op.batch_dims
    depth, columns = chosen.sizes[0], chosen.rank - 1
    maps = [affine_map(out.rank, [j, *map(dim, range(columns))]) for j in range(depth)]

    def body(*values: Value) -> Value:
        at = [position(v, chosen.dtype, source.sizes[batch + j]) for j, v in enumerate(values)]
        return extract(data, [*_here(range(batch)), *at, *_here(range(columns, out.rank))])

    return parallel(out, [indices] * depth, body, maps)


@compute("worst_index")
def worst_index(op: Op, indices: Value) -> Value:
    """As unsigned numbers, indices counted from -size are larger the further they are out of range."""
    source = operand_type(op)
    dtype, first = "uint64", 0 if source.is_unsigned else op.size

    def counted(x: Value) -> Value:
        wide = scalar.convert(x, source.dtype, "uint64" if source.is_unsigned else "int64")
        return scalar.add(wide, number(first, dtype), dtype)

    found = reduce(indices, range(source.rank), TensorType((), dtype), 0, lambda x, acc: scalar.maximum(x, acc, dtype), counted)

    def index(x: Value) -> Value:
        if not proves(lambda: op.times > 0):
            x = scalar.select(scalar.compare("gt", number(op.times, dtype), number(0, dtype), dtype), x, number(0, dtype))
        if source.is_unsigned:  # a number beyond int64 would be negative in the int64 result
            x = scalar.minimum(x, number((1 << 63) - 1, dtype), dtype)
        return scalar.subtract(x, number(first, dtype), dtype)

    return parallel(result_type(op), [found], index)


@compute("one_hot")
def one_hot(op: Op, indices: Value, on_value: Value, off_value: Value) -> Value:
    chosen, out = operand_type(op), result_type(op)
    axis = normalize_axis(op.axis, out.rank)

    def body(value: Value, on: Value, off: Value) -> Value:
        index = index_of(value, chosen.dtype)
        return scalar.select(scalar.compare("eq", index, linalg.IndexOp(axis).result, INDEX_DTYPE), on, off)

    index_map = affine_map(out.rank, [dim(i) for i in range(out.rank) if i != axis])
    scalar_map = affine_map(out.rank, [])
    return parallel(out, [indices, on_value, off_value], body, [index_map, scalar_map, scalar_map])


# ---- writing ----------------------------------------------------------------------------------------------------------------------

_COMBINE: dict[str, Callable[[Value, Value, str], Value]] = {
    "update": lambda old, new, dtype: new,
    "add": scalar.add,
    "mean": scalar.add,
    "mul": scalar.multiply,
    "min": scalar.minimum,
    "max": scalar.maximum,
}


def _combined(how: str, result: Value, at: list[Value], new: Value, dtype: str) -> Value:
    """`result` with an element combined into the element at `at`."""
    old = None if how == "update" else extract(result, at)
    return insert(_COMBINE[how](old, new, dtype), result, at)


def _any_order(found: list[Value], distinct: bool) -> list[Value]:
    """The results of loops; marks loops whose iterations write distinct elements."""
    if distinct and not isinstance(found[0].owner, ir.Block) and found[0].owner.operation.name == "scf.for":
        for loop in walk(found[0].owner.operation, scf.ForOp):
            DISTINCT.mark(loop)
    return found


def _scattered(
    data: Value, updates: Value, dtype: str, how: str, place: Callable[[list[Value]], list[Value]], counts: Value | None = None
) -> list[Value]:
    """`data` with each element of `updates` combined into the element at `place`, sequentially; counts the updates if `counts` is given."""

    def step(indices: list[Value], result: Value, *counts: Value) -> list[Value]:
        at = place(indices)
        written = [_combined(how, result, at, extract(updates, indices), dtype)]
        one = scalar.constant(1, INDEX_DTYPE)
        return written + [insert(scalar.add(extract(c, at), one, INDEX_DTYPE), c, at) for c in counts]

    return nest(shape(updates), [data, *([] if counts is None else [counts])], step)


@compute("scatter_elements")
def scatter_elements(op: Op, data: Value, indices: Value, updates: Value) -> Value:
    out, chosen = result_type(op), operand_type(op, 1)
    axis = normalize_axis(op.axis, out.rank)

    def place(here: list[Value]) -> list[Value]:
        at = position(extract(indices, here), chosen.dtype, out.sizes[axis])
        return [at if d == axis else i for d, i in enumerate(here)]

    if op.reduction != "mean":
        return _any_order(_scattered(data, updates, out.dtype, op.reduction, place), op.distinct)[0]
    counts = fill(TensorType(out.shape, INDEX_DTYPE), 1)
    total, counts = _scattered(data, updates, out.dtype, "mean", place, counts)
    return parallel(out, [total, counts], lambda x, n: scalar.divide(x, scalar.convert(n, INDEX_DTYPE, out.dtype), out.dtype))


@compute("scatter_nd")
def scatter_nd(op: Op, data: Value, indices: Value, updates: Value) -> Value:
    out, chosen = result_type(op), operand_type(op, 1)
    depth, columns = chosen.sizes[0], chosen.rank - 1
    extents = shape(updates)

    def slice_(column: list[Value], result: Value) -> list[Value]:
        # Hoisted out of the loops over the slice: inside, they would be reloaded for each element, as stores may alias them.
        at = [position(extract(indices, [index_constant(j), *column]), chosen.dtype, out.sizes[j]) for j in range(depth)]

        def step(rest: list[Value], result: Value) -> list[Value]:
            return [_combined(op.mode, result, [*at, *rest], extract(updates, [*column, *rest]), out.dtype)]

        return nest(extents[columns:], [result], step)

    return _any_order(nest(extents[:columns], [data], slice_), op.distinct)[0]
