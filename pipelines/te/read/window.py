"""Reductions over sliding windows, and the axes along which windows slide, derived from index expressions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var, affine_index, linearize, reshape
from relayc.pipelines.te.read.access import split_exactly
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured, Structured, same_order
from relayc.pipelines.te.read.reduction import is_neutral
from relayc.symbolic import Size, proves


def number(size: Size) -> int:
    """A static size. Raises NotStructured for an expression."""
    if not isinstance(size, int):
        raise NotStructured(f"expected a number, found {size}")
    return size


@dataclass(frozen=True)
class WindowAxis:
    """An axis along which the window slides: input position = output * stride + tap * dilation - low.

    Attributes:
      output, tap: loops over it, None for a single element. The number of taps is static.
      size: extent of the input.
      high: elements of padding after it, which the last window may reach only partly.
    """

    output: Var | None
    tap: Var | None
    stride: int
    dilation: int
    low: Size
    size: Size
    high: Size = 0

    @property
    def outputs(self) -> Size:
        return self.output.extent if self.output is not None else 1

    @property
    def taps(self) -> int:
        return number(self.tap.extent) if self.tap is not None else 1

    @property
    def reach(self) -> int:
        """Distance of the last tap from the first."""
        return (self.taps - 1) * self.dilation

    def users(self, outputs: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """Positions of the input that adjacent outputs read, by their distance from the first, with (output, tap) of each use."""
        found = []
        for reach in range((outputs - 1) * self.stride + self.reach + 1):
            taps = [(i, *divmod(reach - i * self.stride, self.dilation)) for i in range(outputs)]
            users = [(i, tap) for i, tap, rest in taps if not rest and 0 <= tap < self.taps]
            if users:
                found.append((reach, users))
        return found

    @property
    def is_padded(self) -> bool:
        """Whether a window may exceed the input."""
        last = (self.outputs - 1) * self.stride + self.reach - self.low
        return not proves(lambda: self.low <= 0 and last < self.size)

    @property
    def is_static(self) -> bool:
        """Whether all its sizes are static."""
        return all(isinstance(size, int) for size in (self.outputs, self.low, self.size))


NO_AXIS = WindowAxis(None, None, 1, 1, 0, 1)
"""The row axis of windows that slide along one axis only."""


def axis_of(index: Index, low: Size, size: Size, padded: Size, reduced: set[Var]) -> WindowAxis | None:
    """The axis of an index with at most one output and one tap loop, of static extent; None for another form.

    Args:
      low, padded: padding before the input, and its size with all padding.
    """
    outputs = [v for v in index.terms if v not in reduced]
    taps = [v for v in index.terms if v in reduced]
    if len(outputs) > 1 or len(taps) > 1 or not all(isinstance(v.extent, int) for v in taps):
        return None
    output, tap = (next(iter(found), None) for found in (outputs, taps))
    stride, dilation = (index.terms[v] if v is not None else 1 for v in (output, tap))
    if not isinstance(stride, int) or not isinstance(dilation, int) or stride < 0 or dilation < 0:
        return None
    return WindowAxis(output, tap, stride, dilation, low - index.const, size, padded - size - low)


@dataclass(frozen=True)
class Window:
    """A kernel whose result is a windowed reduction, or an elementwise function of one.

    Attributes:
      node, root: the reduction, and the kernel's result in the same element order.
      position: the input of the reduction over which the window slides.
      data, indices: that input without its padding, and its indices as functions of the loops (rows and columns unused).
      pad_value: constant operation of the padding, None without padding.
      rows, columns: the axes.
      row_dimension, column_dimension: their dimensions in `data`; None without rows.
      planes: the other parallel loops.
      variables: every loop of the reduction.
    """

    node: Node
    root: Node
    position: int
    data: Node
    indices: list[Index]
    pad_value: ir.Operation | None
    rows: WindowAxis
    columns: WindowAxis
    row_dimension: int | None
    column_dimension: int
    planes: list[Var]
    variables: list[Var]

    @property
    def structured(self) -> Structured:
        return self.node.structured

    @property
    def element_bits(self) -> int | None:
        """Width of the widest element type of reduction, input and result; None if one of them has less than a byte."""
        types = (self.node.element, self.data.element, self.root.element)
        return None if any(isinstance(t, ir.IndexType) or t.width < 8 for t in types) else max(t.width for t in types)

    @property
    def padding_counts(self) -> bool:
        """Whether taps in the padding change the result: a nonzero zero point of integers does, zeros of a sum do not."""
        value = self.pad_value
        return value is not None and not is_neutral(self.structured, self.position, value.attributes["value"])

    def output_offset(self) -> Index:
        """The flat offset of the reduction's result as a function of its loops."""
        return linearize(self.output_at({v: Index.of(v) for v in self.variables}), self.node.shape)

    def output_at(self, point: Mapping[Var, Index]) -> list[Index]:
        """Indices of the result of the reduction at a point; loops without an index there are at 0."""
        return self.structured.output_indices(self.node.position, self.loop_point(point))

    def loop_point(self, point: Mapping[Var, Index]) -> list[Index]:
        """The loops of the reduction at a point; loops without an index there are at 0."""
        return [point.get(v, Index()) for v in self.variables]

    def at_taps(self, point: Mapping[Var, Index], row_tap: Index, column_tap: Index) -> dict[Var, Index]:
        """A point with a row and a column of taps."""
        taps = ((self.rows.tap, row_tap), (self.columns.tap, column_tap))
        return {**point, **{v: index for v, index in taps if v is not None}}

    def root_at(self, indices: Sequence[Index]) -> list[Index]:
        """Indices of the kernel's result, given the indices of the reduction."""
        return reshape(indices, self.node.shape, self.root.shape, split_exactly)

    def data_at(self, point: Mapping[Var, Index], row: Index, column: Index) -> list[Index]:
        """Indices of the data at an input row and column."""
        result = [index.at(point) for index in self.indices]
        result[self.column_dimension] = column
        if self.row_dimension is not None:
            result[self.row_dimension] = row
        return result


@dataclass(frozen=True)
class WindowedReduction:
    """The single reduction of a kernel whose result is an elementwise function of it.

    Attributes:
      root, node: the kernel's result, and the reduction.
      variables: every loop of the reduction; `reduced` are its reduction loops.
      reads: the indices of each input as functions of the loops; None if they are not linear.
    """

    root: Node
    node: Node
    variables: list[Var]
    reduced: set[Var]
    reads: list[list[Index] | None]

    def loops_beside(self, position: int) -> set[Var]:
        """The loops on which inputs other than the one at `position` depend: all loops, where an input is not read at linear indices."""
        inputs = zip(self.reads, self.node.structured.inputs, strict=True)
        further = [read for i, (read, node) in enumerate(inputs) if i != position and node.kind != "empty"]
        return set(self.variables) if None in further else {v for read in further for index in read or () for v in index.terms}


def windowed_reduction(kernel: Kernel) -> WindowedReduction | None:
    """A candidate for window schedules; None for a kernel without, or with more than, one plain reduction."""
    reductions = [n for n in kernel.nodes() if n.is_reduction]
    if len(kernel.results) != 1 or len(reductions) != 1 or not same_order(kernel.results[0], reductions[0]):
        return None
    node = reductions[0]
    structured = node.structured
    if len(structured.inits) != 1 or structured.inits[0].kind != "splat" or structured.captured or 0 in structured.extents:
        return None
    variables = [Var.below(e, name=f"d{i}") for i, e in enumerate(structured.extents)]
    point = [Index() if v.extent == 1 else Index.of(v) for v in variables]
    reduced = {v for v, kind in zip(variables, structured.iterators, strict=True) if kind == "reduction" and v.extent != 1}
    reads: list[list[Index] | None] = []
    for amap in structured.maps:
        try:
            reads.append([affine_index(e, point, split_exactly) for e in amap.results])
        except NotStructured:
            reads.append(None)
    return WindowedReduction(kernel.results[0], node, variables, reduced, reads)
