"""Products with weights of a few bits in blocks: nn.dense_blocks. Relay has no operator for these; MatMulNBits of com.microsoft is one."""

from relayc.dialects.relay.base import Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_equal

STRIP = 16
"""Columns whose weights are adjacent."""
WORD_BITS = 32


class DenseBlocks(Op, name="nn_dense_blocks", relay_name="nn.dense_blocks"):
    """data x weights^T. A weight of column n and depth k is scale * (number - zero), with scale and zero of column n, block k / block_size.

    Operands:
      data float32 [..., depth].
      weight uint32 [strips, depth * bits / 32, 16]: column n is lane n % 16 of strip n / 16; a word has the numbers of neighbouring
        depths, the first in its lowest bits.
      scales float32 [strips, depth / block_size, 16].
      zeros float32 or uint8, of the shape of scales, or [1, 1, 1].

    Attributes:
      units: columns; what the last strip has beyond them is left out.
      bits: of a number, 2, 4 or 8.
      block_size: depths that share a scale, a multiple of 16.
      accuracy_level: the least accuracy of the product, as MatMulNBits has it: that of float32 (0 and 1), of float16 (2) or bfloat16 (3)
        for data and weights, or of data that are rounded to 8 bits in each block of a row (4). A backend may be more exact.

    Result: float32 [..., units].
    """

    data: Operand
    weight: Operand
    scales: Operand
    zeros: Operand
    units: int
    bits: int
    block_size: int
    accuracy_level: int = 0
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    @staticmethod
    def infer(op: View) -> TensorType:
        data, weight, scales, zeros = op.data, op.weight, op.scales, op.zeros
        check(op.bits in (2, 4, 8), "bits", "2, 4 or 8", op.bits)
        check(op.block_size > 0 and op.block_size % STRIP == 0, "block_size", f"a positive multiple of {STRIP}", op.block_size)
        check(op.accuracy_level in range(5), "accuracy_level", "a number from 0 to 4", op.accuracy_level)
        check(data.rank >= 1 and data.dtype == "float32", "data", "rank 1 or more and element type float32", data)
        check(weight.rank == 3 and weight.dtype == "uint32", "weight", "rank 3 and element type uint32", weight)
        check(scales.rank == 3 and scales.dtype == "float32", "scales", "rank 3 and element type float32", scales)
        for name, operand in (("weight", weight), ("scales", scales), ("zeros", zeros)):
            check(all(isinstance(n, int) for n in operand.shape), name, "a shape of numbers", operand)
        strips, words, lanes = weight.static_shape
        check(lanes == STRIP and op.units > 0 and -(-op.units // STRIP) == strips, "weight", f"strips of {op.units} columns", weight)
        blocks = scales.static_shape[1]
        check(words * WORD_BITS == blocks * op.block_size * op.bits, "weight", f"words of {blocks} blocks", weight)
        check(scales.shape == (strips, blocks, STRIP), "scales", f"strips of {op.units} columns", scales)
        check(zeros.dtype in ("float32", "uint8"), "zeros", "element type float32 or uint8", zeros)
        check(zeros.shape in (scales.shape, (1, 1, 1)), "zeros", f"the shape of scales {scales}, or [1, 1, 1]", zeros)
        depth = blocks * op.block_size
        require_equal(data.shape[-1], depth, f"depth of data {data}", f"{depth} (of {blocks} blocks)", data.shape[-1])
        return TensorType((*data.shape[:-1], op.units), data.dtype)
