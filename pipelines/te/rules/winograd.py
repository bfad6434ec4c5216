"""Compute rules of the Winograd transforms: a constant matrix applied to each tile from both sides."""

import numpy as np

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.dialects.relay.window import padding_pairs
from relayc.dialects.relay.winograd import DATA, RESULT, TILE
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import Value, affine_map, compute, dim, fill, operand_type, reduction, reshape, result_type, shape
from relayc.pipelines.te.rules.window import crop, pad


def _matrix(values: np.ndarray, dtype: str) -> Value:
    type_ = ir.RankedTensorType.get(list(values.shape), scalar.te_element(dtype))
    return arith.constant(type_, ir.DenseElementsAttr.get(np.ascontiguousarray(values, dtype)))


def _two_sided(matrix: Value, data: Value, data_map: ir.AffineMap, out: TensorType, a: int, b: int) -> Value:
    """out[..., a, ..., b, ...] = sum over i, j of matrix[a, i] * matrix[b, j] * data[...]; i and j are the last two loops."""
    rank = out.rank
    maps = [affine_map(rank + 2, [dim(a), dim(rank)]), affine_map(rank + 2, [dim(b), dim(rank + 1)]), data_map]
    output_map = affine_map(rank + 2, [dim(i) for i in range(rank)])

    def body(p: Value, q: Value, x: Value, acc: Value) -> Value:
        product = scalar.multiply(scalar.multiply(p, q, out.dtype), x, out.dtype)
        return scalar.add(acc, product, out.dtype)

    return reduction([matrix, matrix, data], maps, fill(out, 0), output_map, body)


@compute("nn_winograd_input_transform")
def input_transform(op: Op, data: Value) -> Value:
    """Pads to whole tiles, then computes B^T d B."""
    out, (n, c, h, w, inner), dtype = result_type(op), operand_type(op).sizes, operand_type(op).dtype
    rows, columns = out.sizes[2:4]
    (top, _), (left, _) = padding_pairs(op.padding, 2)
    high = [rows * TILE + 2 - h - top, columns * TILE + 2 - w - left]
    padded = pad(data, (0, 0, top, left, 0), (0, 0, *high, 0), 0, dtype)
    points = len(DATA)
    wide = TensorType((n, points, points, c, rows, columns, inner), dtype)
    # loops: n, a, b, c, row, column, inner, i, j
    where = affine_map(9, [dim(0), dim(3), dim(4) * TILE + dim(7), dim(5) * TILE + dim(8), dim(6)])
    return reshape(_two_sided(_matrix(DATA, dtype), padded, where, wide, 1, 2), out.sizes)


@compute("nn_winograd_output_transform")
def output_transform(op: Op, data: Value) -> Value:
    """A^T m A, with adjacent tiles, cropped to the result."""
    out, (n, c, rows, columns, inner), dtype = result_type(op), operand_type(op).sizes, operand_type(op).dtype
    points = len(DATA)
    split = reshape(data, (n, points, points, c // points**2, rows, columns, inner))
    wide = TensorType((n, c // points**2, rows, TILE, columns, TILE, inner), dtype)
    # loops: n, c, row, p, column, q, inner, i, j
    where = affine_map(9, [dim(0), dim(7), dim(8), dim(1), dim(2), dim(4), dim(6)])
    found = _two_sided(_matrix(RESULT, dtype), split, where, wide, 3, 5)
    whole = reshape(found, (n, c // points**2, rows * TILE, columns * TILE, inner))
    return crop(whole, (0,) * 5, [have - want for have, want in zip(shape(whole), out.sizes, strict=True)])
