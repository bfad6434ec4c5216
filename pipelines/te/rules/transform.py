"""Compute rules of shape changes and data movement, as affine maps from result to operand where possible."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import arith, ir, linalg, tensor
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.layout import Layout, layout
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.transform import BlockMove, pad_pairs, permutation, slice_bounds, slices, split_bounds
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar, window
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    elementwise,
    empty,
    extract,
    gather,
    index_constant,
    operand_type,
    parallel,
    reshape,
    result_type,
    shape,
    te_type,
)
from relayc.pipelines.te.rules.literal import INDEX_DTYPE, clamped, integer_of, is_within, literal
from relayc.symbolic import Dim, Size, bounds


def moved(data: Value, dtype: str, sizes: Sequence[Size], exprs: Sequence[ir.AffineExpr | int]) -> Value:
    """A tensor of `sizes` whose element at (d0, d1, ...) is the element of `data` at `exprs`."""
    out = TensorType(tuple(sizes), dtype)
    if out.num_elements == 0:
        return empty(out)
    return parallel(out, [data], lambda x: x, [affine_map(out.rank, exprs)])


def computed(data: Value, dtype: str, sizes: Sequence[Size], indices: Callable[[list[Value]], list[Value]]) -> Value:
    """A tensor of `sizes` whose element is the element of `data` at `indices` of the loop indices: for indices that are not affine."""
    return gather(TensorType(tuple(sizes), dtype), lambda at: extract(data, indices(at)))


def transposed(data: Value, dtype: str, axes: Sequence[int]) -> Value:
    """`data` transposed: axis i of the result is axis axes[i]."""
    if list(axes) == sorted(axes):
        return data
    position = {axis: dim(i) for i, axis in enumerate(axes)}
    return moved(data, dtype, [shape(data)[a] for a in axes], [position[i] for i in range(len(axes))])


# ---- reshapes ------------------------------------------------------------------------------------------------------------------------


@compute("reshape", "expand_dims", "squeeze", "nn_batch_flatten")
def reshaped(op: Op, data: Value) -> Value:
    return reshape(data, result_type(op).sizes)


# ---- other orders -----------------------------------------------------------------------------------------------------------------


@compute("transpose")
def transpose(op: Op, data: Value) -> Value:
    type_ = operand_type(op)
    return transposed(data, type_.dtype, permutation(op.axes, type_.rank))


@compute("reverse")
def reverse(op: Op, data: Value) -> Value:
    type_ = operand_type(op)
    axis = normalize_axis(op.axis, type_.rank)
    return _cut(data, type_.dtype, {axis: (type_.sizes[axis] - 1, type_.sizes[axis], -1)})


def _with_blocks(letters: str, of: Layout) -> list[str]:
    """The axes of a layout with every inner part right after its outer one, outer parts in the order of `letters`."""
    return [axis for letter in letters for axis in (letter, letter.lower()) if axis in of.axes]


@compute("layout_transform")
def layout_transform(op: Op, data: Value) -> Value:
    """Inner parts move after their outer ones and are merged; then the axes are split for the new layout and transposed."""
    type_, out = operand_type(op), result_type(op)
    source, target = layout(op.src_layout), layout(op.dst_layout)
    together = _with_blocks(target.letters, source)
    data = transposed(data, type_.dtype, [source.index(a) for a in together])
    dims = source.logical(type_.sizes)
    split = _with_blocks(target.letters, target)
    sizes = dict(zip(target.axes, out.sizes, strict=True))
    data = reshape(data, [dims[letter] for letter in target.letters])
    data = reshape(data, [sizes[a] for a in split])
    return transposed(data, type_.dtype, [split.index(a) for a in target.axes])


@compute("nn_depth_to_space", "nn_space_to_depth")
def block_move(op: BlockMove, data: Value) -> Value:
    apart, axes = op.rearrangement
    return reshape(transposed(reshape(data, apart), operand_type(op).dtype, axes), result_type(op).sizes)


# ---- slices --------------------------------------------------------------------------------------------------------------------------


Bound = tuple[Size, Size, int]
"""A slice of an axis: start, number of elements, stride."""


def _cut(data: Value, dtype: str, bounds: dict[int, Bound]) -> Value:
    """Slices the axes in `bounds`."""
    back = {axis: bound for axis, bound in bounds.items() if bound[2] < 0}
    data = _forward(data, {axis: bound for axis, bound in bounds.items() if axis not in back})
    if not back:
        return data
    sizes = [back[axis][1] if axis in back else n for axis, n in enumerate(shape(data))]
    if any(isinstance(start, Dim) for start, _, _ in back.values()):
        return computed(data, dtype, sizes, lambda at: [_strided(i, back[axis]) if axis in back else i for axis, i in enumerate(at)])
    exprs = [dim(axis) * back[axis][2] + back[axis][0] if axis in back else dim(axis) for axis in range(len(sizes))]
    return moved(data, dtype, sizes, exprs)


def _strided(index: Value, bound: Bound) -> Value:
    start, _, stride = bound
    return arith.addi(index_constant(start), arith.muli(index, index_constant(stride)))


def _forward(data: Value, bounds: dict[int, Bound]) -> Value:
    """The slice of `data` with positive strides."""
    whole = list(shape(data))
    parts = [bounds.get(axis, (0, n, 1)) for axis, n in enumerate(whole)]
    sizes = [count for _, count, _ in parts]
    return data if sizes == whole else window.cut(data, [start for start, _, _ in parts], sizes, [stride for _, _, stride in parts])


@compute("strided_slice")
def strided_slice(op: Op, data: Value) -> Value:
    type_ = operand_type(op)
    bounds = {}
    for axis, (begin, end, stride) in slices(op, type_.rank).items():
        bounds[axis] = (*slice_bounds(type_.sizes[axis], begin, end, stride), stride)
    return _cut(data, type_.dtype, bounds)


@compute("split")
def split(op: Op, data: Value) -> list[Value]:
    type_ = operand_type(op)
    axis = normalize_axis(op.axis, type_.rank)
    parts = split_bounds(type_.sizes[axis], op.indices_or_sections)
    return [_cut(data, type_.dtype, {axis: (begin, end - begin, 1)}) for begin, end in parts]


# ---- several tensors --------------------------------------------------------------------------------------------------------------


def _joined(out: TensorType, pieces: Sequence[Value], axis: int) -> Value:
    pieces = [p for p in pieces if 0 not in shape(p)]
    if not pieces:
        return empty(out)
    return pieces[0] if len(pieces) == 1 else tensor.ConcatOp(te_type(out), axis, pieces).result


@compute("concatenate")
def concatenate(op: Op, *data: Value) -> Value:
    out = result_type(op)
    return _joined(out, data, normalize_axis(op.axis, out.rank))


@compute("stack")
def stack(op: Op, *data: Value) -> Value:
    out = result_type(op)
    axis = normalize_axis(op.axis, out.rank)
    piece = [1 if i == axis else n for i, n in enumerate(out.sizes)]
    return _joined(out, [reshape(d, piece) for d in data], axis)


# ---- repetition and padding -------------------------------------------------------------------------------------------------------


@compute("broadcast_to")
def broadcast_to(op: Op, data: Value) -> Value:
    return elementwise(op, [data], lambda x: x)


def _repeated(data: Value, dtype: str, counts: Sequence[tuple[Size, Size]]) -> Value:
    """Repeats axis i as counts[i] = (times the whole, times each element), in separate dimensions, omitted for count 1."""
    sizes: list[Size] = []
    exprs: list[ir.AffineExpr | int] = []
    for size, (whole, each) in zip(shape(data), counts, strict=True):
        sizes += [whole] if whole != 1 else []
        exprs.append(dim(len(sizes)))
        sizes += [size, each] if each != 1 else [size]
    return data if all(c == (1, 1) for c in counts) else moved(data, dtype, sizes, exprs)


@compute("tile")
def tile(op: Op, data: Value) -> Value:
    out = result_type(op)
    source = operand_type(op).sizes
    data = reshape(data, (1,) * (out.rank - len(source)) + source)
    reps = (1,) * (out.rank - len(op.reps)) + tuple(op.reps)
    return reshape(_repeated(data, out.dtype, [(r, 1) for r in reps]), out.sizes)


@compute("repeat")
def repeat(op: Op, data: Value) -> Value:
    out = result_type(op)
    if op.axis is None:
        data = reshape(data, (operand_type(op).num_elements,))
    axis = normalize_axis(op.axis or 0, out.rank)
    counts: list[tuple[Size, Size]] = [(1, op.repeats if i == axis else 1) for i in range(out.rank)]
    return reshape(_repeated(data, out.dtype, counts), out.sizes)


def _reflected(i: Value, size: Size) -> Value:
    """Reflects at the edge elements: -1 -> 1, size -> size - 2."""
    last = index_constant(size - 1)
    i = arith.maxsi(i, arith.subi(index_constant(0), i))
    return arith.subi(last, arith.maxsi(arith.subi(last, i), arith.subi(i, last)))


def _mirrored(i: Value, size: Size) -> Value:
    """Reflects between edge elements and border: -1 -> 0, size -> size - 1."""
    i = arith.maxsi(i, arith.subi(index_constant(-1), i))
    return arith.minsi(i, arith.subi(index_constant(2 * size - 1), i))


_BORDERS = {"edge": clamped, "reflect": _reflected, "REFLECT": _reflected, "SYMMETRIC": _mirrored}


def _bordered(op: Op, data: Value, border: Callable[[Value, Size], Value]) -> Value:
    """The border filled from `data` at the positions that `border` computes for positions outside."""
    source, out = operand_type(op), result_type(op)
    pairs = pad_pairs(op.pad_width, source.rank)

    def body(indices: list[Value]) -> Value:
        inner = []
        for index, (before, after), size in zip(indices, pairs, source.sizes, strict=True):
            shifted = arith.subi(index, index_constant(before))
            inner.append(index if before == 0 and after == 0 else border(shifted, size))
        return extract(data, inner)

    return gather(out, body)


def _padded_by(op: Op, data: Value, pad_value: Value) -> Value:
    """Constant padding by a value known only at run time."""
    source, out = operand_type(op), result_type(op)
    pairs = pad_pairs(op.pad_width, source.rank)
    if any(isinstance(d, Dim) and bounds(d)[0] <= 0 for d in source.sizes):
        return _padded_where_empty(op, data, pad_value)

    def body(outside: Value) -> Value:
        inner = [arith.subi(linalg.IndexOp(i).result, index_constant(before)) for i, (before, _) in enumerate(pairs)]
        result = extract(data, [clamped(i, n) for i, n in zip(inner, source.sizes, strict=True)])
        for i, n in zip(inner, source.sizes, strict=True):
            result = scalar.select(is_within(i, n), result, outside)
        return result

    return parallel(out, [pad_value], body)


def _padded_where_empty(op: Op, data: Value, pad_value: Value) -> Value:
    """Padding for data that may be empty, so that no valid element can be read instead."""
    source, out = operand_type(op), result_type(op)
    low, high = op.pad_width[::2], op.pad_width[1::2]
    padded = window.pad_only(data, low, high, 0, source.dtype)

    def body(x: Value, outside: Value) -> Value:
        for i, (before, n) in enumerate(zip(low, source.sizes, strict=True)):
            here = arith.subi(linalg.IndexOp(i).result, index_constant(before))
            x = scalar.select(is_within(here, n), x, outside)
        return x

    return parallel(out, [padded, pad_value], body)


@compute("nn_pad")
def pad(op: Op, data: Value, pad_value: Value) -> Value:
    if all(width == 0 for width in op.pad_width):
        return data
    if op.pad_mode != "constant":
        return _bordered(op, data, _BORDERS[op.pad_mode])
    value, type_ = literal(op, 1), operand_type(op)
    if type_.num_elements == 0:
        return elementwise(op, [pad_value], lambda x: x)
    if value is None:
        return _padded_by(op, data, pad_value)
    return window.pad_only(data, op.pad_width[::2], op.pad_width[1::2], value, type_.dtype)


@compute("nn_mirror_pad")
def mirror_pad(op: Op, data: Value) -> Value:
    return data if all(width == 0 for width in op.pad_width) else _bordered(op, data, _BORDERS[op.mode])


@compute("trilu")
def trilu(op: Op, data: Value, k: Value) -> Value:
    type_, k_dtype = operand_type(op), operand_type(op, 1).dtype
    rows, columns = type_.rank - 2, type_.rank - 1

    def body(x: Value, k: Value) -> Value:
        diagonal = arith.subi(linalg.IndexOp(columns).result, linalg.IndexOp(rows).result)
        kept = scalar.compare(
            "ge" if op.upper else "le", integer_of(diagonal, INDEX_DTYPE), scalar.convert(k, k_dtype, INDEX_DTYPE), INDEX_DTYPE
        )
        return scalar.select(kept, x, scalar.constant(0, type_.dtype))

    return elementwise(op, [data, k], body)
