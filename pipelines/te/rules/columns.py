"""Compute rules of blocks of images: nn.col2im, nn.max_pool_indices."""

from collections.abc import Sequence
from functools import reduce

from relayc.dialects.mlir import arith, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.dialects.relay.window import padding_pairs, per_axis
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator, narrowed
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    empty,
    extract,
    fill,
    index_constant,
    operand_type,
    parallel,
    reduction,
    result_type,
)
from relayc.pipelines.te.rules.literal import INDEX_DTYPE, clamped, integer_of, is_within, number
from relayc.pipelines.te.rules.scalar import both
from relayc.symbolic import Size


def _times(index: Value, factor: Size) -> Value:
    return index if factor == 1 else arith.muli(index, index_constant(factor))


def _plus(index: Value, offset: Size) -> Value:
    return index if offset == 0 else arith.addi(index, index_constant(offset))


@compute("nn_col2im")
def col2im(op: Op, data: Value) -> Value:
    """Each element of the image sums the elements of the blocks that cover it."""
    source, out, n = operand_type(op), result_type(op), len(op.image_shape)
    wide = accumulator(out.dtype)
    strides, dilation = per_axis(op.strides, n, "strides"), per_axis(op.dilation, n, "dilation")
    before = [pair[0] for pair in padding_pairs(op.padding, n)]
    block, blocks = source.sizes[2 : 2 + n], source.sizes[2 + n :]

    def body(_: Value, total: Value) -> Value:
        batch, channel, *at = (linalg.IndexOp(i).result for i in range(2 + 2 * n))
        places, flags, chosen = at[n:], [], []
        for i in range(n):
            # Its position relative to the start of each block.
            distance = arith.subi(_plus(at[i], before[i]), _times(places[i], dilation[i]))
            which = distance
            if strides[i] != 1:
                which = arith.floordivsi(distance, index_constant(strides[i]))
                flags.append(scalar.compare("eq", _times(which, strides[i]), distance, INDEX_DTYPE))
            flags.append(is_within(which, blocks[i]))
            chosen.append(clamped(which, blocks[i]))
        element = scalar.convert(extract(data, [batch, channel, *places, *chosen]), source.dtype, wide)
        return scalar.add(total, scalar.select(reduce(both, flags), element, scalar.constant(0, wide)), wide)

    loops = 2 + 2 * n
    # The operand only gives the extent of the block loops.
    maps = [affine_map(loops, [dim(2 + n + i) for i in range(n)])]
    result_map = affine_map(loops, [dim(i) for i in range(2 + n)])
    initial = fill(out.with_dtype(wide), 0)
    found = reduction([empty(TensorType(block, wide))], maps, initial, result_map, body)
    return narrowed(found, out, wide)


@compute("nn_max_pool_indices")
def max_pool_indices(op: Op, data: Value, largest: Value) -> Value:
    """The lowest index in each window of an element that is its largest one."""
    source, out, g = operand_type(op), result_type(op), op.geometry
    n = len(g.spatial)
    never = scalar.limits(out.dtype)[1]
    sizes = source.sizes[2:]

    def body(_: Value, best: Value, lowest: Value) -> Value:
        batch, channel, *at = (linalg.IndexOp(i).result for i in range(2 + 2 * n))
        here = [_plus(arith.addi(_times(at[i], g.strides[i]), _times(at[n + i], g.dilation[i])), -g.pads[i][0]) for i in range(n)]
        inside = reduce(both, [is_within(h, size) for h, size in zip(here, sizes, strict=True)])
        element = extract(data, [batch, channel, *(clamped(h, size) for h, size in zip(here, sizes, strict=True))])
        found = scalar.compare("eq", element, best, source.dtype)
        if source.is_float:  # NaN equals nothing, and is the largest if present
            found = scalar.either(found, scalar.compare("ne", element, element, source.dtype))
        flat = arith.addi(_times(batch, source.sizes[1]), channel)
        for size, h in zip(sizes, here, strict=True):
            flat = arith.addi(_times(flat, size), h)
        index = scalar.select(both(inside, found), integer_of(flat, out.dtype), scalar.constant(never, out.dtype))
        return scalar.minimum(index, lowest, out.dtype)

    loops = 2 + 2 * n
    window = empty(TensorType(g.pool_size, source.dtype))
    result_map = affine_map(loops, [dim(i) for i in range(2 + n)])
    maps = [affine_map(loops, [dim(2 + n + i) for i in range(n)]), result_map]
    found = reduction([window, largest], maps, fill(out, never), result_map, body)
    return parallel(out, [found], lambda index: _column_major(index, sizes, out.dtype)) if op.column_major else found


def _column_major(index: Value, sizes: Sequence[Size], dtype: str) -> Value:
    """Converts an index of flattened data to the index with spatial axes in reverse order."""
    digits = []
    for size in reversed(sizes):
        by = number(size, dtype)
        digits.append(arith.remsi(index, by))
        index = arith.divsi(index, by)
    for size, digit in zip(reversed(sizes), digits, strict=True):
        index = scalar.add(scalar.multiply(index, number(size, dtype), dtype), digit, dtype)
    return index
