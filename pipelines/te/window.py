"""Padding, cropping and views: what the rules with sliding windows (convolution, pooling, lrn) are built from."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod

from relayc.dialects.mlir import ir, tensor
from relayc.pipelines.te import scalar
from relayc.pipelines.te.core import Value


def pad(data: Value, low: Sequence[int], high: Sequence[int], value: float | int, dtype: str) -> Value:
    """`data` with `low` and `high` elements of `value` added before and after it in each dimension; where negative, taken away."""
    data = crop(data, [max(0, -n) for n in low], [max(0, -n) for n in high])
    low, high = [max(0, n) for n in low], [max(0, n) for n in high]
    if not any(low) and not any(high):
        return data
    source = data.type
    shape = [n + a + b for n, a, b in zip(source.shape, low, high, strict=True)]
    outside = scalar.constant(value, dtype)
    op = tensor.PadOp(ir.RankedTensorType.get(shape, source.element_type), data, [], [], low, high)
    block = op.operation.regions[0].blocks.append(*[ir.IndexType.get()] * source.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(outside)
    return op.result


def crop(data: Value, low: Sequence[int], high: Sequence[int]) -> Value:
    """`data` without its first `low` and last `high` elements in each dimension."""
    if not any(low) and not any(high):
        return data
    source = data.type
    shape = [n - a - b for n, a, b in zip(source.shape, low, high, strict=True)]
    type_ = ir.RankedTensorType.get(shape, source.element_type)
    return tensor.ExtractSliceOp(type_, data, [], [], [], list(low), shape, [1] * source.rank).result


def split(data: Value, parts: Sequence[Sequence[int]]) -> Value:
    """View of `data` in which dimension i stands as the dimensions `parts[i]`."""
    shape = [n for part in parts for n in part]
    if len(shape) == data.type.rank:
        return data
    groups = _groups([len(part) for part in parts])
    return tensor.expand_shape(ir.RankedTensorType.get(shape, data.type.element_type), data, groups, [], shape)


def merge(data: Value, counts: Sequence[int]) -> Value:
    """View of `data` in which the next `counts[i]` dimensions are dimension i: the inverse of `split`."""
    if len(counts) == data.type.rank:
        return data
    groups = _groups(counts)
    shape = [prod(data.type.shape[d] for d in group) for group in groups]
    return tensor.collapse_shape(ir.RankedTensorType.get(shape, data.type.element_type), data, groups)


def _groups(counts: Sequence[int]) -> list[list[int]]:
    """Reassociation: consecutive dimensions, `counts[i]` in group i."""
    starts = accumulate(counts, initial=0)
    return [list(range(start, start + count)) for start, count in zip(starts, counts, strict=False)]
