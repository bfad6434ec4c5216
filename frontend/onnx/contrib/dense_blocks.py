"""Weights of a few bits in blocks, each with a scale, as ONNX Runtime's quantisers write them."""

import numpy as np

from relayc.dialects.relay.dense_blocks import STRIP
from relayc.frontend.onnx.errors import OnnxError


def unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """uint8[..., count] of numbers of 2, 4 or 8 bits that stand in bytes [..., n], the first in the lowest bits. Raises OnnxError."""
    if bits not in (2, 4, 8):
        raise OnnxError(f"attribute bits: expected 2, 4 or 8, found {bits}")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    found = numbers.reshape(*packed.shape[:-1], -1)
    if found.shape[-1] < count:
        raise OnnxError(f"expected bytes of at least {count} numbers of {bits} bits in a row, found {list(packed.shape)}")
    return found[..., :count]


def zero_points(given: np.ndarray | None, bits: int, rows: int, count: int) -> np.ndarray:
    """The zero points of `count` blocks in each of some rows: packed like weights, one for each block as floats, or the middle."""
    if given is None:
        return np.full((rows, count), 1 << (bits - 1), np.float32)
    if given.dtype == np.uint8:
        return unpacked(given.reshape(rows, -1), bits, count).astype(np.float32)
    return given.reshape(rows, count).astype(np.float32)


def in_words(packed: np.ndarray) -> np.ndarray:
    """Weights [N, blocks, bytes of a block] as nn.dense_blocks has them: uint32 [strips, words, columns of a strip]."""
    words = np.ascontiguousarray(packed).reshape(len(packed), -1).view("<u4")
    return np.ascontiguousarray(_whole_strips(words).reshape(-1, STRIP, words.shape[1]).transpose(0, 2, 1))


def in_strips(numbers: np.ndarray) -> np.ndarray:
    """One number for each block of each row, [N, blocks], as nn.dense_blocks has them: [blocks, columns of all strips]."""
    return np.ascontiguousarray(_whole_strips(numbers).T)


def _whole_strips(rows: np.ndarray) -> np.ndarray:
    return np.pad(rows, [(0, -len(rows) % STRIP), (0, 0)])
