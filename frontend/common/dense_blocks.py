"""Weights of a few bits in blocks, each with a scale: products (nn.dense_blocks), and rows of tables."""

import numpy as np

from relayc.dialects.relay.block_weights import BlockWeights
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


def zero_points(given: np.ndarray | None, bits: int, rows: int, count: int) -> np.ndarray:
    """The zero points of `count` blocks in each of some rows: packed like weights, one for each block as floats, or the middle."""
    if given is None:
        return np.full((rows, count), 1 << (bits - 1), np.float32)
    if given.dtype == np.uint8:
        return unpacked(given.reshape(rows, -1), bits, count).astype(np.float32)
    return given.reshape(rows, count).astype(np.float32)


def dense_blocks(x: Tensor, weights: BlockWeights, accuracy_level: int = 0) -> Tensor:
    """x [..., depth] times the transposed weights, in x's dtype. The depth may end in the last block: zeros meet the weights beyond it."""
    missing = weights.packed.shape[1] * weights.block_size - x.shape[-1]
    data = pad(cast(x, "float32"), (0, missing), None, "constant", (x.rank - 1,))
    operands = map(constant, weights.operands())
    return cast(emit("nn.dense_blocks", data, *operands, **weights.attributes(), accuracy_level=accuracy_level), x.dtype)


def block_rows(weights: BlockWeights, indices: Tensor) -> Tensor:
    """float32 [*indices, depth]: rows of weights, unpacked after they are taken. An index out of range is an error of the program."""
    numbers, scales = (emit("take", constant(a), indices, axis=0, mode="raise") for a in (weights.packed, weights.scales))
    if weights.bits != 8:
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
