"""Weights of products in blocks of 4 or 8 bits for MatMulNBits, by rounding to the nearest or by GPTQ; activations stay floats."""

import numpy as np

from relayc.dialects.relay.block_weights import in_bytes
from relayc.tools.quantize.graph import Graph
from relayc.tools.quantize.layers import Blocks, Layer

_COLUMNS = 128
"""Columns whose errors go to the columns after them at once."""
_DAMPING = 0.01
"""What is added to the diagonal of the curvature, in its mean."""


def quantize_blocks(graph: Graph, layer: Layer, bits: int, size: int, products: np.ndarray | None, level: int = 0) -> None:
    """Quantises the weights of a layer.

    Args:
      size: of blocks along the inputs, which have a scale and a zero point for each output.
      products: X^T X of the data, with which GPTQ rounds; None rounds to the nearest.
      level: what the node has as accuracy_level.
    """
    weights = layer.matrix(graph.constants[layer.weight]).T.astype(np.float64)  # [outputs, inputs]
    units, depth = weights.shape
    count = -(-depth // size)
    padded = np.pad(weights, ((0, 0), (0, count * size - depth)))
    if products is None:
        blocks = padded.reshape(units, count, size)
        scales, zeros = _grid(blocks, bits)
        numbers = _round(blocks, scales[..., None], zeros[..., None], bits).reshape(units, -1)
    else:
        numbers, scales, zeros = _gptq(padded, np.pad(products, (0, count * size - depth)), bits, size)
    floats = (numbers - np.repeat(zeros, size, 1)) * np.repeat(scales, size, 1)
    layer.weights = np.ascontiguousarray(floats[:, :depth] if layer.axis == 0 else floats[:, :depth].T, np.float32)
    packed = _pack(numbers.reshape(units, count, size), bits)
    layer.block = Blocks(packed, scales.astype(np.float32), _pack(zeros, bits), bits, size, level)


def _grid(blocks: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Scales, in numbers that float32 has, and zero points of blocks along the last axis."""
    low, high = np.minimum(blocks.min(-1), 0), np.maximum(blocks.max(-1), 0)
    scales = ((high - low) / ((1 << bits) - 1)).astype(np.float32).astype(np.float64)
    scales = np.where(scales > np.finfo(np.float32).tiny, scales, 1)
    return scales, np.clip(np.rint(-low / scales), 0, (1 << bits) - 1)


def _round(values: np.ndarray, scales: np.ndarray, zeros: np.ndarray, bits: int) -> np.ndarray:
    return np.clip(np.rint(values / scales) + zeros, 0, (1 << bits) - 1)


def _gptq(weights: np.ndarray, products: np.ndarray, bits: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rounds column after column, and moves the error of each to the columns after it (Frantar et al., 2022)."""
    weights, depth = weights.copy(), weights.shape[1]
    curvature = products.astype(np.float64)
    diagonal = np.diag_indices(depth)
    mean = curvature[diagonal].mean()
    curvature[diagonal] += _DAMPING * mean if mean > 0 else 1
    inverse = np.linalg.cholesky(np.linalg.inv(curvature)).T
    numbers = np.empty_like(weights)
    scales, zeros = (np.empty((len(weights), depth // size)) for _ in range(2))
    for start in range(0, depth, _COLUMNS):
        end = min(start + _COLUMNS, depth)
        errors = np.empty((len(weights), end - start))
        for i in range(start, end):
            block = i // size
            if i % size == 0:
                # Columns beyond `end` lack the errors of this stretch.
                ahead = weights[:, i : i + size].copy()
                ahead[:, end - i :] -= errors[:, : i - start] @ inverse[start:i, end : i + size]
                scales[:, block], zeros[:, block] = _grid(ahead, bits)
            numbers[:, i] = _round(weights[:, i], scales[:, block], zeros[:, block], bits)
            rounded = (numbers[:, i] - zeros[:, block]) * scales[:, block]
            errors[:, i - start] = (weights[:, i] - rounded) / inverse[i, i]
            weights[:, i:end] -= np.outer(errors[:, i - start], inverse[i, i:end])
        weights[:, end:] -= errors @ inverse[start:end, end:]
    return numbers, scales, zeros


def _pack(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Numbers along the last axis in bytes, with zeros where the last byte is not whole."""
    missing = -numbers.shape[-1] % (8 // bits)
    return in_bytes(np.pad(numbers.astype(np.uint8), [*[(0, 0)] * (numbers.ndim - 1), (0, missing)]), bits)
