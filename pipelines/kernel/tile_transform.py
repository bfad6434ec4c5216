"""Small constant matrices applied to tiles from both sides, P d P^T, recognised in a kernel."""

from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.kernel.graph import Kernel, Node


@dataclass
class TileTransform:
    """A kernel whose result is P d P^T for every tile, or an elementwise function of it, possibly cropped.

    Attributes:
      node, root: the transform, and the result.
      matrix: P, as rows.
      a, b: loops over its rows on the left and on the right side.
      i, j: reduction loops.
    """

    node: Node
    root: Node
    matrix: list[list[float]]
    a: int
    b: int
    i: int
    j: int


def match(kernel: Kernel) -> TileTransform | None:
    """The transform of a kernel; None where it is none."""
    found = [n for n in kernel.nodes() if n.is_reduction]
    if len(kernel.results) != 1 or len(found) != 1 or len(found[0].structured.inputs) != 3:
        return None
    node = found[0]
    structured = node.structured
    left, right, _ = structured.inputs
    if left.kind != "table" or right is not left or len(left.shape) != 2 or len(structured.reduction_dims) != 2:
        return None
    dims = [[e.position for e in amap.results if isinstance(e, ir.AffineDimExpr)] for amap in structured.maps[:2]]
    if any(len(d) != 2 for d in dims) or [dims[0][1], dims[1][1]] != structured.reduction_dims:
        return None
    values, columns = left.table_values(), left.shape[1]
    matrix = [[float(v) for v in values[r * columns : (r + 1) * columns]] for r in range(left.shape[0])]
    return TileTransform(node, kernel.results[0], matrix, dims[0][0], dims[1][0], *structured.reduction_dims)
