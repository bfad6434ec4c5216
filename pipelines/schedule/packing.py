"""Copies of parameters into the layouts that schedules want, at the speed of memory."""

from collections.abc import Sequence
from math import prod

import numpy as np

from relayc.pipelines.kernel.index import Index, Var

SHORT = 128
"""Elements per column below which a block is copied as it lies: staging it would cost more than it saves."""
LINE = 64
"""Bytes of a cache line."""


def as_bits(array: np.ndarray) -> np.ndarray:
    """The same memory as unsigned integers: numpy copies those without the interpreter lock, whatever the dtype stands for."""
    return array.view(f"u{array.dtype.itemsize}")


def along_loops(array: np.ndarray, indices: Sequence[Index], loops: Sequence[Var], extents: Sequence[int]) -> np.ndarray:
    """A view of an array that is read at `indices`, functions of the loops, with a dimension of the extent given for each loop."""
    strides = [sum(i.coefficient(v) * stride for i, stride in zip(indices, array.strides, strict=True)) for v in loops]
    first = array[tuple(slice(i.const, None) for i in indices)]
    return np.lib.stride_tricks.as_strided(first, extents, strides, writeable=False)


def fill_blocks(source: np.ndarray, axis: int, out: np.ndarray) -> None:
    """Cuts an axis in blocks that become the innermost axis: [batch..., columns, rest...] -> [batch..., block, rest..., width].

    Args:
      source: may be strided in any way.
      axis: of the columns.
      out: same dtype; its last axis says how wide a block is. What the last block has beyond the columns becomes 0.
    """
    width, columns = out.shape[-1], source.shape[axis]
    full, left = divmod(columns, width)
    if left:
        out[(slice(None),) * axis + (full, ..., slice(left, None))] = 0
    if abs(source.strides[axis]) == source.itemsize or prod(source.shape[axis + 1 :]) < SHORT:
        moved = np.moveaxis(source, axis, -1)
        whole = moved[..., : full * width].reshape(*moved.shape[:-1], full, width)
        out[(slice(None),) * axis + (slice(full),)] = np.moveaxis(whole, -2, axis)
        if left:
            out[(slice(None),) * axis + (full, ..., slice(left))] = moved[..., full * width :]
        return
    staged = _staging(source, axis, width)
    for batch in np.ndindex(source.shape[:axis]):
        for block in range(full + bool(left)):
            some = source[batch][block * width : (block + 1) * width]
            staged[: len(some)] = some
            out[(*batch, block, ..., slice(len(some)))] = np.moveaxis(staged[: len(some)], 0, -1)


def _staging(source: np.ndarray, axis: int, width: int) -> np.ndarray:
    """Memory for a block of columns, [width, rest...], whose columns lie as in `source` but at a distance of an odd number of lines.

    Columns are often a power of two apart, and then all elements of a row fall in a few sets of the cache.
    """
    rest, strides = source.shape[axis + 1 :], source.strides[axis + 1 :]
    depth = prod(rest)
    pitch = (-(-depth * source.itemsize // LINE) | 1) * LINE // source.itemsize
    order = sorted(range(len(rest)), key=lambda d: -abs(strides[d]))
    lines = np.empty((width, pitch), source.dtype)[:, :depth].reshape(width, *[rest[d] for d in order])
    return lines.transpose(0, *[1 + order.index(d) for d in range(len(rest))])
