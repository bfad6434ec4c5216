"""Equivalent shapes: values reshaped, and broadcasting between reshaped values.

Dimensions may be expressions: products and dimensions are equal if their expressions are, without further assumptions.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.relay.names import build
from relayc.dialects.relay.types import TensorType
from relayc.symbolic import Size, guess

Shape = tuple[Size, ...]


def along_axis(vector: ir.Value, axis: int, rank: int) -> ir.Value:
    """A vector as a tensor that broadcasts along dimension `axis` of one of `rank`: [n] -> [n, 1, ..., 1]."""
    after = rank - 1 - axis
    return build("expand_dims", vector, axis=1, num_newaxis=after) if after else vector


def reshape_to(value: ir.Value, shape: Sequence[Size]) -> ir.Value:
    """A reshaped value; the value itself if it already has the shape."""
    shape = tuple(shape)
    if TensorType.of(value).shape == shape:
        return value
    return build("reshape", value, newshape=shape, allowzero=0 in shape)


def regroup(source: Shape, target: Shape) -> list[tuple[Shape, Shape]] | None:
    """Splits two shapes of as many elements into the shortest runs of dimensions with equal products.

    None if a size is 0, and where the shapes have as many elements only for some sizes of their symbols.
    """
    if 0 in source or 0 in target:
        return None
    groups: list[tuple[Shape, Shape]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        start = (i, j)
        a: Size = 1
        b: Size = 1
        while a != b or (i, j) == start:
            # The smaller product grows. Guesses for expressions only determine the order of the search.
            if i < len(source) and (guess(a) <= guess(b) or j == len(target)):
                a, i = a * source[i], i + 1
            elif j < len(target):
                b, j = b * target[j], j + 1
            else:
                return None
        groups.append((source[start[0] : i], target[start[1] : j]))
    return groups


def before_reshape(shape: Shape, source: Shape, target: Shape) -> Shape | None:
    """The shape under which an operand of `shape`, which broadcasts to `target`, broadcasts to `source` with the same meaning."""
    padded = (1,) * (len(target) - len(shape)) + shape
    groups = regroup(source, target)
    if groups is None:
        return None
    out: list[Size] = []
    position = 0
    for a, b in groups:
        part = padded[position : position + len(b)]
        position += len(b)
        if part == b:
            out += a
        elif all(n == 1 for n in part):
            out += (1,) * len(a)
        else:
            return None
    return tuple(out)


def per_channel(value: ir.Value, shape: Shape, axis: int) -> ir.Value | None:
    """An operand that broadcasts to `shape` without changing along other axes than `axis`, as a vector (of one element where it is one)."""
    found = TensorType.of(value)
    padded = (1,) * (len(shape) - found.rank) + found.shape
    if len(padded) != len(shape) or any(n != 1 for i, n in enumerate(padded) if i != axis):
        return None
    size = padded[axis]
    return None if size is None else reshape_to(value, (size,))
