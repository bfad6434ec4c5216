"""Recognizes transforms of tiles by a small constant matrix from both sides, P d P^T."""

from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.symbolic import Size

_BODY = [("arith.mulf", (0, 1)), ("arith.mulf", (4, 2)), ("arith.addf", (3, 5))]
"""Operations and operands, by number, of the sum of products of both factors and an element of the tile."""


@dataclass(frozen=True)
class TileTransform:
    """A kernel whose result is P d P^T for every tile, or an elementwise function of it, possibly cropped.

    Attributes:
      node, root: the transform, and the result.
      matrix: P, as rows.
      a, b: loops over its rows on the left and on the right side.
      i, j: reduction loops.
      whole: shape of the result before the crop; the result's shape without a crop.
      crop: for each of the loops `a` and `b` that is cropped: (loop over its tiles, remaining extent).
    """

    node: Node
    root: Node
    matrix: list[list[float]]
    a: int
    b: int
    i: int
    j: int
    whole: tuple[Size, ...]
    crop: dict[int, tuple[int, Size]]

    @property
    def dims(self) -> list[int]:
        """Loop of each dimension of the transform, without constant ones."""
        return _dims(self.node)


def match(kernel: Kernel) -> TileTransform | None:
    """The transform of a kernel; None for another kernel, or if the crop removes more than the ends of tiles."""
    found = [n for n in kernel.nodes() if n.is_reduction]
    if len(kernel.results) != 1 or len(found) != 1 or len(found[0].structured.inputs) != 3:
        return None
    node, root = found[0], kernel.results[0]
    structured = node.structured
    left, right, _ = structured.inputs
    if left.kind != "table" or right is not left or [(op.name, op.operands) for op in structured.body.operations] != _BODY:
        return None
    dims = [[e.position for e in amap.results if isinstance(e, ir.AffineDimExpr)] for amap in structured.maps[:2]]
    if any(len(d) != 2 for d in dims) or [d[1] for d in dims] != structured.reduction_dims or dims[0][0] == dims[1][0]:
        return None
    values, (height, width) = left.table_values(), left.static_shape
    matrix = [[float(v) for v in values[r * width : (r + 1) * width]] for r in range(height)]
    whole = _whole_shape(node, root)
    crop = _crop(node, root, whole) if whole is not None else None
    if whole is None or crop is None:
        return None
    i, j = structured.reduction_dims
    return TileTransform(node, root, matrix, dims[0][0], dims[1][0], i, j, whole, crop)


def _dims(node: Node) -> list[int]:
    return [d for d in node.structured.output_dims(node.position) if d is not None]


def _whole_shape(node: Node, root: Node) -> tuple[Size, ...] | None:
    """Shape before the crop between transform and result, or the result's shape without a crop; None if a crop does not start at 0."""
    pending, whole = [root], root.shape
    while pending:
        part = pending.pop()
        if part.kind == "slice":
            if any(offset != 0 for offset in part.offsets) or any(s != 1 for s in part.strides):
                return None
            whole = part.inputs[0].shape
        if part is not node:
            pending += part.structured.inputs if part.kind == "generic" else part.inputs
    return whole


def _crop(node: Node, root: Node, whole: tuple[Size, ...]) -> dict[int, tuple[int, Size]] | None:
    """See TileTransform.crop; None if other dimensions than tiles are cropped."""
    found: dict[int, tuple[int, Size]] = {}
    shape, dims = node.shape, _dims(node)
    for d, (have, want) in enumerate(zip(whole, root.shape, strict=True)):
        if want != have:
            # Dimension d is (tile, position in the tile), adjacent in the transform.
            places = (i for i in range(1, len(shape)) if prod(shape[:i]) == prod(whole[:d]) and shape[i] * shape[i + 1] == have)
            place = next(places, None)
            if place is None:
                return None
            found[dims[place + 1]] = (dims[place], want)
    return found
