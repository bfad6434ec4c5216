"""Sorts: kernels that sort the elements of lines, or the rows of a matrix.

In the te stage a sort is one loop nest, as a CPU runs it, whose outermost loop has the attribute `relay.sort = {dtype, descending, of_rows,
results}`, which describes it. The tensor that the loop reads from outside is sorted: lines [outer, size, inner], or a matrix [rows,
columns]. The loop returns the results [outer, count, inner], or [rows], followed by unused work tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.discardable import SORT, strings_attribute
from relayc.dialects.mlir import ir
from relayc.pipelines.te.read.graph import Kernel, Node, behind_views
from relayc.symbolic import Size

VALUES, INDICES = "values", "indices"
"""Contents of a result: elements in order, or their positions in the line."""


def mark_sort(result: ir.Value, dtype: str, results: Sequence[str], descending: bool = False, of_rows: bool = False) -> None:
    """Marks the loop that returns a result as a sort.

    Args:
      dtype: of the sorted tensor, with its sign.
      results: VALUES or INDICES for each result, in order.
      descending: NaN, which is the largest, comes first. The sort is stable in either case.
      of_rows: the rows of a matrix are sorted lexicographically.
    """
    loop: ir.Operation = result.owner.operation
    said = {
        "dtype": ir.StringAttr.get(dtype),
        "results": strings_attribute(results),
        "descending": ir.BoolAttr.get(descending),
        "of_rows": ir.BoolAttr.get(of_rows),
    }
    SORT.put(loop, ir.DictAttr.get(said))


@dataclass(frozen=True)
class Sorting:
    """The sort of a kernel.

    Attributes:
      source: the argument whose memory holds the input, in row-major order: lines [outer, size, inner], or rows [size, columns].
      dtype: of its elements, with its sign.
      outer, size, inner: of lines; for rows `size` is the number of rows, and the others are 1.
      count: number of leading elements of each sorted line that are results.
      columns: of a row; None for lines.
      descending: NaN first; otherwise NaN last.
      results: VALUES or INDICES, for each result of the kernel, each in row-major order of [outer, count, inner].
    """

    source: Node
    dtype: str
    outer: Size
    size: Size
    inner: Size
    count: Size
    columns: Size | None
    descending: bool
    results: tuple[str, ...]

    @property
    def lines(self) -> Size:
        """The number of lines."""
        return self.outer * self.inner


def match(kernel: Kernel) -> Sorting | None:
    """The sort that a kernel computes; None for any other kernel."""
    found = [behind_views(node) for node in kernel.results]
    if not found or any(node.kind != "sort" or node.op != found[0].op for node in found):
        return None
    said = ir.DictAttr(SORT.of(found[0].op))
    kinds = [ir.StringAttr(kind).value for kind in ir.ArrayAttr(said["results"])]
    source = behind_views(found[0].inputs[0])
    if source.kind != "arg":
        return None
    outer: Size = 1
    inner: Size = 1
    count, columns = found[0].shape[0], None
    if ir.BoolAttr(said["of_rows"]).value:
        size, columns = found[0].inputs[0].shape
    else:
        outer, size, inner = found[0].inputs[0].shape
        count = found[0].shape[1]
    results = tuple(kinds[node.position] for node in found)
    dtype, descending = ir.StringAttr(said["dtype"]).value, ir.BoolAttr(said["descending"]).value
    return Sorting(source, dtype, outer, size, inner, count, columns, descending, results)
