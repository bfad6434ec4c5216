"""Constant weights of a few bits in blocks, as nn.dense_blocks has them."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from relayc.dialects.relay.dense_blocks import STRIP


def in_bytes(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Numbers [..., count] of 2, 4 or 8 bits (uint8) in whole bytes, the first in the lowest bits."""
    return reduce(np.bitwise_or, (numbers[..., i :: 8 // bits] << i * bits for i in range(8 // bits)))


@dataclass(frozen=True)
class BlockWeights:
    """Weights [N, depth] of a few bits in blocks along the depth: scale * (number - zero), with the scale and the zero point of a block.

    `packed`, `scales` and zeros of floats are the inputs B, scales and zero_points of MatMulNBits; nn.dense_blocks takes them so:

        program.op.nn.dense_blocks(x, *weights.operands(), **weights.attributes())

    Attributes:
      packed: uint8 [N, blocks, block_size * bits / 8], numbers of `bits` bits, the first of a byte in its lowest bits.
      scales: float32 [N, blocks].
      zeros: uint8 or float32 [N, blocks], a number each; None for the middle of the numbers, 2^(bits - 1).
      bits: of a number: 2, 4 or 8.
    """

    packed: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None
    bits: int

    @classmethod
    def with_offsets(cls, numbers: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> "BlockWeights":
        """Weights scale * number + offset of 4 bits.

        Args:
          numbers: uint8 [N, blocks, block_size].
          scales, offsets: float32 [N, blocks].
        """
        # A block whose scale is zero has one weight, its offset, whatever its numbers are: (8 - 7) * offset is exact.
        is_constant = scales == 0
        numbers = np.where(is_constant[..., None], 8, numbers).astype(np.uint8)
        zeros = np.where(is_constant, np.float32(7), -offsets / np.where(is_constant, 1, scales))
        return cls(in_bytes(numbers, 4), np.where(is_constant, offsets, scales), zeros, 4)

    @property
    def block_size(self) -> int:
        """Numbers of a block."""
        return self.packed.shape[2] * 8 // self.bits

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The operands of nn.dense_blocks after the data: words, scales and zeros of strips of columns."""
        zeros = np.full((1, 1), 1 << (self.bits - 1), np.uint8) if self.zeros is None else self.zeros
        is_shared = (zeros == zeros[0, 0]).all()
        return _in_words(self.packed), _in_strips(self.scales), zeros[None, :1, :1] if is_shared else _in_strips(zeros)

    def attributes(self) -> dict[str, int]:
        """The attributes of nn.dense_blocks that belong to the weights."""
        return {"units": len(self.packed), "bits": self.bits, "block_size": self.block_size}


def _in_words(packed: np.ndarray) -> np.ndarray:
    """Weights [N, blocks, bytes of a block] as nn.dense_blocks has them: uint32 [strips, words, columns of a strip]."""
    return _in_strips(np.ascontiguousarray(packed).reshape(len(packed), -1).view("<u4"))


def _in_strips(numbers: np.ndarray) -> np.ndarray:
    """Numbers [N, n] as nn.dense_blocks has them: [strips, n, columns of a strip]."""
    whole = np.pad(numbers, [(0, -len(numbers) % STRIP), (0, 0)])
    return np.ascontiguousarray(whole.reshape(-1, STRIP, numbers.shape[1]).transpose(0, 2, 1))
