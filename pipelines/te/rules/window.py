"""Padding, cropping and views: building blocks of rules with sliding windows (convolution, pooling, lrn)."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod

from relayc.dialects.mlir import ir, tensor
from relayc.dialects.relay.types import ranked_type
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, dynamic_sizes, empty, shape
from relayc.symbolic import Dim, Size, maximum


def pad(data: Value, low: Sequence[Size], high: Sequence[Size], value: float | int, dtype: str) -> Value:
    """`data` padded by `low` and `high` elements of `value` before and after it in each dimension; cropped where negative."""
    data = crop(data, [maximum(0, -n) for n in low], [maximum(0, -n) for n in high])
    return pad_only(data, [maximum(0, n) for n in low], [maximum(0, n) for n in high], value, dtype)


def pad_only(data: Value, low: Sequence[Size], high: Sequence[Size], value: float | int, dtype: str) -> Value:
    """`pad` by nonnegative numbers."""
    if _all_zero(low) and _all_zero(high):
        return data
    sizes = [n + a + b for n, a, b in zip(shape(data), low, high, strict=True)]
    outside = scalar.constant(value, dtype)
    result = ranked_type(sizes, data.type.element_type)
    op = tensor.PadOp(result, data, dynamic_sizes(low), dynamic_sizes(high), _static(low), _static(high))
    block = op.operation.regions[0].blocks.append(*[ir.IndexType.get()] * data.type.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(outside)
    return op.result


def crop(data: Value, low: Sequence[Size], high: Sequence[Size]) -> Value:
    """`data` without its first `low` and last `high` elements in each dimension."""
    if _all_zero(low) and _all_zero(high):
        return data
    return cut(data, low, [n - a - b for n, a, b in zip(shape(data), low, high, strict=True)])


def cut(data: Value, offsets: Sequence[Size], sizes: Sequence[Size], strides: Sequence[int] | None = None) -> Value:
    """The slice of `data` of `sizes` elements from `offsets` on, with `strides` (default 1)."""
    type_ = ranked_type(sizes, data.type.element_type)
    if 0 in sizes:  # an empty slice may start at the end, which is out of bounds to MLIR
        return empty(type_)
    steps = [1] * len(sizes) if strides is None else list(strides)
    operands = dynamic_sizes(offsets), dynamic_sizes(sizes)
    return tensor.ExtractSliceOp(type_, data, *operands, [], _static(offsets), _static(sizes), steps).result


def split(data: Value, parts: Sequence[Sequence[Size]]) -> Value:
    """View of `data` with dimension i split into the dimensions `parts[i]`."""
    sizes = [n for part in parts for n in part]
    if len(sizes) == data.type.rank:
        return data
    groups = _groups([len(part) for part in parts])
    result = ranked_type(sizes, data.type.element_type)
    return tensor.expand_shape(result, data, groups, dynamic_sizes(sizes), _static(sizes))


def merge(data: Value, counts: Sequence[int]) -> Value:
    """View of `data` with groups of `counts[i]` dimensions merged into dimension i: the inverse of `split`."""
    if len(counts) == data.type.rank:
        return data
    groups, sizes = _groups(counts), shape(data)
    merged = [prod(sizes[d] for d in group) for group in groups]
    return tensor.collapse_shape(ranked_type(merged, data.type.element_type), data, groups)


def _all_zero(sizes: Sequence[Size]) -> bool:
    return all(n == 0 for n in sizes)


def _static(sizes: Sequence[Size]) -> list[int]:
    """Sizes as MLIR's static attributes, with a marker for dynamic ones."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return [dynamic if isinstance(n, Dim) else n for n in sizes]


def _groups(counts: Sequence[int]) -> list[list[int]]:
    """Reassociation: consecutive dimensions, `counts[i]` in group i."""
    starts = accumulate(counts, initial=0)
    return [list(range(start, start + count)) for start, count in zip(starts, counts, strict=False)]
