"""Products with weights of a few bits in blocks, each with a scale (nn.dense_blocks)."""

import numpy as np

from relayc.dialects.relay.dense_blocks import STRIP
from relayc.frontend.common.padding import pad
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.steps import cast


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


def zero_points(given: np.ndarray | None, bits: int, rows: int, count: int) -> np.ndarray:
    """The zero points of `count` blocks in each of some rows: packed like weights, one for each block as floats, or the middle."""
    if given is None:
        return np.full((rows, count), 1 << (bits - 1), np.float32)
    if given.dtype == np.uint8:
        return unpacked(given.reshape(rows, -1), bits, count).astype(np.float32)
    return given.reshape(rows, count).astype(np.float32)


def dense_blocks(
    x: Tensor, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, bits: int, block_size: int, accuracy_level: int = 0
) -> Tensor:
    """x [..., depth] times the transposed weights scales * (numbers - zeros), in x's dtype.

    Args:
      x: its depth may end in the last block; the weights beyond it meet zeros.
      packed: uint8 [N, blocks, block_size * bits / 8], the numbers as `unpacked` takes them.
      scales: float32 [N, blocks].
      zeros: uint8 or float32 [N, blocks]; None for the middle of the numbers.
      block_size: a multiple of STRIP; the blocks are whole.
    """
    shared = np.full((1, 1, 1), 1 << (bits - 1), np.uint8) if zeros is None else in_strips(zeros)
    operands = constant(in_words(packed)), constant(in_strips(scales)), constant(shared)
    attributes = {"units": len(packed), "bits": bits, "block_size": block_size, "accuracy_level": accuracy_level}
    data = pad(cast(x, "float32"), (0, packed.shape[1] * block_size - x.shape[-1]), None, "constant", (x.rank - 1,))
    return cast(emit("nn.dense_blocks", data, *operands, **attributes), x.dtype)


def in_words(packed: np.ndarray) -> np.ndarray:
    """Weights [N, blocks, bytes of a block] as nn.dense_blocks has them: uint32 [strips, words, columns of a strip]."""
    return in_strips(np.ascontiguousarray(packed).reshape(len(packed), -1).view("<u4"))


def in_strips(numbers: np.ndarray) -> np.ndarray:
    """Numbers [N, n] as nn.dense_blocks has them: [strips, n, columns of a strip]."""
    whole = np.pad(numbers, [(0, -len(numbers) % STRIP), (0, 0)])
    return np.ascontiguousarray(whole.reshape(-1, STRIP, numbers.shape[1]).transpose(0, 2, 1))
