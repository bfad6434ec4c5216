"""Weights of a few bits in blocks, each with a scale: products (nn.dense_blocks), and rows of tables."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from relayc.dialects.relay.dense_blocks import STRIP
from relayc.frontend.common.padding import pad
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.steps import cast, reshape


def unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """uint8[..., count] of numbers of 2, 4 or 8 bits that stand in bytes [..., n], the first in the lowest bits. Raises ModelError."""
    if bits not in (2, 4, 8):
        raise ModelError(f"attribute bits: expected 2, 4 or 8, found {bits}")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    found = numbers.reshape(*packed.shape[:-1], -1)
    if found.shape[-1] < count:
        raise ModelError(f"expected bytes of at least {count} numbers of {bits} bits in a row, found {list(packed.shape)}")
    return found[..., :count]


def in_bytes(numbers: np.ndarray, bits: int) -> np.ndarray:
    """What `unpacked` is of: uint8 numbers [..., count] of 2, 4 or 8 bits, which fill whole bytes."""
    return reduce(np.bitwise_or, (numbers[..., i :: 8 // bits] << i * bits for i in range(8 // bits)))


def zero_points(given: np.ndarray | None, bits: int, rows: int, count: int) -> np.ndarray:
    """The zero points of `count` blocks in each of some rows: packed like weights, one for each block as floats, or the middle."""
    if given is None:
        return np.full((rows, count), 1 << (bits - 1), np.float32)
    if given.dtype == np.uint8:
        return unpacked(given.reshape(rows, -1), bits, count).astype(np.float32)
    return given.reshape(rows, count).astype(np.float32)


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
        # A block whose scale is zero has one weight, its offset, whatever its numbers are.
        is_constant = scales == 0
        numbers, scales = np.where(is_constant[..., None], 0, numbers).astype(np.uint8), np.where(is_constant, 1, scales)
        return cls(in_bytes(numbers, 4), scales, -offsets / scales, 4)

    @property
    def block_size(self) -> int:
        """Numbers of a block."""
        return self.packed.shape[2] * 8 // self.bits

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The operands of nn.dense_blocks after the data: words, scales and zeros of strips of columns."""
        shared = np.full((1, 1, 1), 1 << (self.bits - 1), np.uint8)
        return _in_words(self.packed), _in_strips(self.scales), shared if self.zeros is None else _in_strips(self.zeros)

    def attributes(self) -> dict[str, int]:
        """The attributes of nn.dense_blocks that belong to the weights."""
        return {"units": len(self.packed), "bits": self.bits, "block_size": self.block_size}


def dense_blocks(x: Tensor, weights: BlockWeights, accuracy_level: int = 0) -> Tensor:
    """x [..., depth] times the transposed weights, in x's dtype. The depth may end in the last block: zeros meet the weights beyond it."""
    missing = weights.packed.shape[1] * weights.block_size - x.shape[-1]
    data = pad(cast(x, "float32"), (0, missing), None, "constant", (x.rank - 1,))
    operands = map(constant, weights.operands())
    return cast(emit("nn.dense_blocks", data, *operands, **weights.attributes(), accuracy_level=accuracy_level), x.dtype)


def block_rows(weights: BlockWeights, indices: Tensor) -> Tensor:
    """float32 [*indices, depth]: rows of weights, unpacked after they are taken. An index out of range is an error of the program."""
    numbers, scales = (emit("take", constant(a), indices, axis=0, mode="raise") for a in (weights.packed, weights.scales))
    if weights.bits < 8:
        shifts = constant(np.arange(0, 8, weights.bits, dtype=np.uint8))
        numbers = emit(
            "bitwise_and", emit("right_shift", reshape(numbers, (*numbers.shape, 1)), shifts), constant((1 << weights.bits) - 1, "uint8")
        )
    numbers = cast(reshape(numbers, (*scales.shape, weights.block_size)), "float32")
    zeros = constant(np.float32(1 << (weights.bits - 1)))
    if weights.zeros is not None:
        taken = emit("take", constant(weights.zeros), indices, axis=0, mode="raise")
        zeros = cast(reshape(taken, (*scales.shape, 1)), "float32")
    found = emit("multiply", emit("subtract", numbers, zeros), reshape(scales, (*scales.shape, 1)))
    return reshape(found, (*indices.shape, weights.packed.shape[1] * weights.block_size))


def _in_words(packed: np.ndarray) -> np.ndarray:
    """Weights [N, blocks, bytes of a block] as nn.dense_blocks has them: uint32 [strips, words, columns of a strip]."""
    return _in_strips(np.ascontiguousarray(packed).reshape(len(packed), -1).view("<u4"))


def _in_strips(numbers: np.ndarray) -> np.ndarray:
    """Numbers [N, n] as nn.dense_blocks has them: [strips, n, columns of a strip]."""
    whole = np.pad(numbers, [(0, -len(numbers) % STRIP), (0, 0)])
    return np.ascontiguousarray(whole.reshape(-1, STRIP, numbers.shape[1]).transpose(0, 2, 1))
