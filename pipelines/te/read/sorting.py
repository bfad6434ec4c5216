"""Sorts: kernels that put the elements of lines, or the rows of a matrix, in their order.

In the te stage a sort is one loop nest, as a CPU goes through it, whose outermost loop says what it computes: it has the attribute
`relay.sort = {dtype, descending, of_rows, results}`. The tensor that it reads from outside is what is sorted: lines [outer, size, inner],
or a matrix [rows, columns]. It gives its results [outer, count, inner], or [rows], and then what it works in, which nothing reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.discardable import SORT, strings_attribute
from relayc.dialects.mlir import ir
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.symbolic import Size

VALUES, INDICES = "values", "indices"
"""What a result holds: elements in their order, or where these are in their line."""


def mark_sort(result: ir.Value, dtype: str, results: Sequence[str], descending: bool = False, of_rows: bool = False) -> None:
    """Says of the loop that gives a result that it is a sort.

    Args:
      dtype: of what is sorted, with its sign.
      results: VALUES or INDICES for each result, in order.
      descending: NaN, which is the largest, first. Equal elements keep their order in any case.
      of_rows: the rows of a matrix are sorted, by the first elements in which they differ.
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
    """What a kernel sorts.

    Attributes:
      source: the argument in whose memory it lies, in row-major order: lines [outer, size, inner]; of rows [size, columns].
      dtype: of its elements, with its sign.
      outer, size, inner: of lines; of rows `size` is how many there are, and the others are 1.
      count: first elements of each sorted line that are results.
      columns: of a row; None where lines are sorted.
      descending: NaN first; else NaN comes last.
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
        """How many there are."""
        return self.outer * self.inner


def match(kernel: Kernel) -> Sorting | None:
    """The sort that a kernel is; None for any other one."""
    found = [_without_views(node) for node in kernel.results]
    if not found or any(node.kind != "sort" or node.op != found[0].op for node in found):
        return None
    said = ir.DictAttr(SORT.of(found[0].op))
    kinds = [ir.StringAttr(kind).value for kind in ir.ArrayAttr(said["results"])]
    source = _without_views(found[0].inputs[0])
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


def _without_views(node: Node) -> Node:
    """The tensor that has the elements of a node in the same order."""
    while node.kind == "view":
        node = node.inputs[0]
    return node
