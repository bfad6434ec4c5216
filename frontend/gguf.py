"""Quantised tensors of GGUF, the format of model files of llama.cpp, as weights in blocks."""

from collections.abc import Callable

import numpy as np

from relayc.dialects.relay.block_weights import BlockWeights, in_bytes
from relayc.frontend.errors import ModelError


def gguf_weights(data: np.ndarray, kind: str) -> BlockWeights:
    """The weights of a quantised tensor in blocks of 32, still packed.

    Args:
      data: uint8 [N, bytes of a row], as `gguf.GGUFReader(path).tensors[i].data` has it.
      kind: the type of the tensor, `tensors[i].tensor_type.name`: "Q4_0", "Q8_0" or "Q4_K".

    Raises:
      ModelError: another type, or data whose rows are not whole blocks.
    """
    if kind not in _FORMATS:
        raise ModelError(f"gguf_weights: expected a tensor of type {', '.join(_FORMATS)}, found {kind}")
    size, read = _FORMATS[kind]
    if data.dtype != np.uint8 or data.ndim != 2 or 0 in data.shape or data.shape[1] % size:
        found = f"{data.dtype}{list(data.shape)}"
        raise ModelError(f"gguf_weights: expected uint8 [N, bytes of a row] with a multiple of {size} bytes for {kind}, found {found}")
    return read(np.asarray(data).reshape(len(data), -1, size))


def _q4_0(blocks: np.ndarray) -> BlockWeights:
    """float16 d, 32 nibbles q: d * (q - 8)."""
    return BlockWeights(in_bytes(_nibbles(blocks[..., 2:], 16), 4), _floats(blocks[..., :2])[..., 0], None, 4)


def _q8_0(blocks: np.ndarray) -> BlockWeights:
    """float16 d, int8 q[32]: d * q."""
    return BlockWeights(blocks[..., 2:] ^ 0x80, _floats(blocks[..., :2])[..., 0], None, 8)


def _q4_k(blocks: np.ndarray) -> BlockWeights:
    """float16 d and dmin, eight scales s and eight offsets m of 6 bits, 8 x 32 nibbles q: d * s * q - dmin * m."""
    rows = len(blocks)
    factors = _floats(blocks[..., :4])
    # Each byte of the first four has one of the first four scales and, in its two high bits, those of one of the last four; the next four
    # bytes have offsets likewise. The last four bytes have the four low bits of both.
    first, second, last = np.moveaxis(blocks[..., 4:16].reshape(rows, -1, 3, 4), 2, 0)
    scales = np.concatenate([first & 63, last & 15 | first >> 2 & 48], -1)
    offsets = np.concatenate([second & 63, last >> 4 | second >> 2 & 48], -1)
    real_scales, real_offsets = (factors[..., i, None] * part for i, part in enumerate((scales, offsets)))
    return BlockWeights.with_offsets(_nibbles(blocks[..., 16:], 32), real_scales.reshape(rows, -1), -real_offsets.reshape(rows, -1))


def _floats(halves: np.ndarray) -> np.ndarray:
    """float32 of float16 in bytes along the last axis."""
    return np.ascontiguousarray(halves).view("<f2").astype(np.float32)


def _nibbles(data: np.ndarray, half: int) -> np.ndarray:
    """uint8 [N, blocks, 32] of bytes [N, ..., bytes]: of `half` bytes the low nibbles, then the high ones."""
    parts = data.reshape(len(data), -1, 1, half)
    return (parts >> np.array([[0], [4]], np.uint8) & 15).reshape(len(data), -1, 32)


_FORMATS: dict[str, tuple[int, Callable[[np.ndarray], BlockWeights]]] = {"Q4_0": (18, _q4_0), "Q8_0": (34, _q8_0), "Q4_K": (144, _q4_k)}
"""Bytes of what is read at once, and how, by the type of a tensor."""
