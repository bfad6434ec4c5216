"""Compute rule of products with blockwise quantized weights: dequantization, and a product."""

from math import prod

from relayc.dialects.discardable import ACCURACY_LEVEL
from relayc.dialects.mlir import arith, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.dense_blocks import STRIP, WORD_BITS
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import contract
from relayc.pipelines.te.rules.core import Value, affine_map, compute, dim, operand_type, parallel, result_type, shape
from relayc.pipelines.te.rules.literal import integer_of
from relayc.pipelines.te.rules.window import cut, merge, split

_WORD = "uint32"


@compute("nn_dense_blocks")
def dense_blocks(op: Op, data: Value, weight: Value, scales: Value, zeros: Value) -> Value:
    out, bits, zero_dtype = result_type(op), op.bits, operand_type(op, 3).dtype
    strips, blocks, _ = shape(scales)
    per_word = WORD_BITS // bits
    words = op.block_size // per_word
    is_shared = shape(zeros) == (1, 1, 1)

    def number(word: Value, scale: Value, zero: Value) -> Value:
        place = scalar.multiply(integer_of(linalg.IndexOp(3).result, _WORD), scalar.constant(bits, _WORD), _WORD)
        found = arith.andi(arith.shrui(word, place), scalar.constant((1 << bits) - 1, _WORD))
        centred = scalar.subtract(scalar.convert(found, _WORD, out.dtype), scalar.convert(zero, zero_dtype, out.dtype), out.dtype)
        return scalar.multiply(centred, scale, out.dtype)

    # Loops over strips, blocks, words of a block, numbers of a word, lanes.
    of_block = affine_map(5, [dim(0), dim(1), dim(4)])
    maps = [affine_map(5, [dim(0), dim(1), dim(2), dim(4)]), of_block, affine_map(5, [0, 0, 0]) if is_shared else of_block]
    operands = [split(weight, [[strips], [blocks, words], [STRIP]]), scales, zeros]
    weights = parallel(TensorType((strips, blocks, words, per_word, STRIP), out.dtype), operands, number, maps)

    leading = out.sizes[:-1]
    rows = prod(leading)
    data = merge(data, [len(leading), 1]) if leading else split(data, [[1, shape(data)[0]]])
    data = split(data, [[rows], [blocks, words, per_word]])
    # Loops over rows, strips, lanes; blocks, words, numbers.
    maps = [affine_map(6, [dim(0), dim(3), dim(4), dim(5)]), affine_map(6, [dim(1), dim(3), dim(4), dim(5), dim(2)])]
    sums = TensorType((rows, strips, STRIP), out.dtype)
    product = contract(data, weights, maps, affine_map(6, [dim(0), dim(1), dim(2)]), sums, (out.dtype, out.dtype))
    if op.accuracy_level:
        ACCURACY_LEVEL.put(product.owner, op.accuracy_level)
    columns = merge(product, [1, 2])
    if op.units != strips * STRIP:
        columns = cut(columns, [0, 0], [rows, op.units])
    return split(columns, [leading, [op.units]]) if leading else merge(columns, [2])
