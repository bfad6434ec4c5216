"""Recognizes contractions (matrix products and convolutions): assigns loops to rows, columns, batch and reduction.

A contraction is acc + a * b over reduction loops. Columns are the parallel loops on which only operand B depends, rows the loops on which
only A depends, batch the loops on which both depend. Lanes run along the columns: B is loaded as vectors, A as broadcast scalars. For a
convolution in NCHW, B is either the weights (lanes along output channels; for any stride, dilation and padding) or, for a 1x1 convolution,
the image itself (lanes along pixels).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var, affine_index, linearize, reshape
from relayc.pipelines.te.read.access import Accesses, Analysis, MergedLoop, collapse, split_exactly
from relayc.pipelines.te.read.body import LoopIndex
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured, Structured, indices_at, memory_of, same_order
from relayc.pipelines.te.read.reduction import multiply_add_casts
from relayc.symbolic import Size


@dataclass(frozen=True)
class ProductOperand:
    """An operand as a function of the loops.

    Attributes:
      node: the tensor: the operand without views, slices and paddings around it.
      indices: its indices as functions of the loop variables.
      checks: (index, extent) for each padded dimension, whose index may be out of bounds.
      casts: names of the conversions that the body applies to the element, with their result types.
      fill: the value out of bounds.
    """

    node: Node
    indices: list[Index]
    checks: list[tuple[Index, Size]]
    casts: list[tuple[str, ir.Type]]
    fill: float | int = 0

    @property
    def offset(self) -> Index:
        return linearize(self.indices, self.node.shape)

    @property
    def variables(self) -> set[Var]:
        return {v for i in self.indices for v in i.terms} | {v for i, _ in self.checks for v in i.terms}


@dataclass(frozen=True)
class Contraction:
    """A kernel whose result is a contraction, or an elementwise function of one (the epilogue).

    Attributes:
      node, root: the contraction, and the result in the same element order.
      a, b: the operands: A along rows, B along columns.
      variables: loop variable of each loop of the contraction.
      batch, rows, columns: parallel loops, outermost first; rows and columns are merged as far as possible. There is one column loop, or
        two if the output is blocked by channels: blocks, and channels of a block.
      reduction: reduction loops; loops in `checked` first, as paddings bound them.
      epilogue: accesses of the epilogue.
      merged: for each dimension of the result the dimension of the contraction whose index it takes, None for 0; None if a reshape computes
        the indices of the result.
    """

    node: Node
    root: Node
    a: ProductOperand
    b: ProductOperand
    variables: list[Var]
    batch: list[Var]
    rows: list[MergedLoop]
    columns: list[MergedLoop]
    reduction: list[Var]
    checked: set[Var]
    epilogue: Accesses = field(default_factory=Accesses)
    merged: list[int | None] | None = None

    def with_one_row_loop(self) -> "Contraction | None":
        """This contraction with all rows in one loop along which A is not contiguous; None if the result or the epilogue is not contiguous
        either. Only a packed A can be read like this: see `row_loops`."""
        members = [v for row in self.rows for v in row.members]
        rows = collapse(members, self.epilogue, [self.output_offset()])
        return replace(self, rows=rows) if len(rows) == 1 else None

    def with_joined_rows(self) -> "Contraction | None":
        """This contraction with its innermost rows merged as far as result and epilogue, but not A, are contiguous along them; None if
        nothing can be merged. Only a packed A can be read like this, or one with a table of row offsets: see `row_loops`."""
        members = [v for row in self.rows for v in row.members]
        rows = collapse(members, self.epilogue, [self.output_offset()])
        return replace(self, rows=rows) if len(rows) < len(self.rows) and len(rows[-1].members) > 1 else None

    @property
    def row_loops(self) -> list[Var]:
        """Members of the innermost row loop along which A is not contiguous: the row index is split into them to read A."""
        members = self.rows[-1].members
        offset = self.a.offset
        as_one = all(offset.coefficient(o) == offset.coefficient(i) * (i.extent) for o, i in pairwise(members))
        return [] if as_one else members

    @property
    def structured(self) -> Structured:
        return self.node.structured

    @property
    def row_extent(self) -> Size:
        """Iterations of the innermost row loop; 1 if there is none."""
        return self.rows[-1].extent if self.rows else 1

    @property
    def column_extent(self) -> Size:
        return prod(c.extent for c in self.columns)

    @property
    def column(self) -> Var:
        """The variable along which lanes run."""
        return self.columns[-1].var

    def column_point(self, column: Index) -> dict[Var, Index]:
        """Indices of the column loops at a column. Raises NotStructured if a vector would span two blocks."""
        if len(self.columns) == 1:
            return {self.column: column}
        outer, inner = split_exactly(column, self.columns[-1].extent)
        return {self.columns[0].var: outer, self.column: inner}

    @property
    def depth(self) -> Size:
        return prod(v.extent for v in self.reduction)

    @property
    def batches(self) -> Size:
        return prod(v.extent for v in self.batch)

    def batch_at(self, point: Mapping[Var, Index]) -> Index:
        """The linear batch index of a point, in the order of `batch`."""
        return linearize([point.get(v, Index()) for v in self.batch], [v.extent for v in self.batch])

    def step(self, point: Mapping[Var, Index]) -> Index:
        """The linear index of a reduction step, in the order of `reduction`."""
        return linearize([point.get(v, Index()) for v in self.reduction], [v.extent for v in self.reduction])

    def store_stride(self, var: Var) -> Size:
        """Stride of the output along `var`, in elements."""
        return self.output_offset().coefficient(var)

    def output_point(self) -> list[Index]:
        """Indices of the result of the contraction as functions of its loops."""
        return self.structured.output_indices(self.node.position, [Index.of(v) for v in self.variables])

    def output_at(self, point: Mapping[Var, Index]) -> list[Index]:
        """Indices of the result of the contraction at a point; loops without an index there are at 0."""
        return self.structured.output_indices(self.node.position, [point.get(v, Index()) for v in self.variables])

    def output_offset(self) -> Index:
        """The flat offset of the result as a function of the loops."""
        return linearize(self.output_point(), self.node.shape)

    def root_point(self, point: Sequence[Index]) -> list[Index]:
        """Indices of the kernel's result, given the indices of the contraction. Raises NotStructured if they are not linear.

        If the result splits a dimension of the contraction into several that all accesses merge, the last of them represents all.
        """
        if self.merged is None:
            return reshape(point, self.node.shape, self.root.shape, split_exactly)
        return [Index() if d is None else point[d] for d in self.merged]


def match(kernel: Kernel, keeps_pads: bool = False, fills: bool = False, broadcasts: bool = False) -> tuple[Contraction, ...]:
    """The contraction of a kernel in the possible roles of its operands (either may be B); empty for another kernel.

    With `keeps_pads` a padded operand is read as padded, not from the source of the padding. With `fills` padding values other than 0 are
    allowed. With `broadcasts` loops of B around its columns are batches, in all of which A is the same.
    """
    question = "contraction", keeps_pads, fills, broadcasts
    if question not in kernel.known:
        kernel.known[question] = tuple(_contractions(kernel, keeps_pads, fills, broadcasts))
    return kernel.known[question]


def _contractions(kernel: Kernel, keeps_pads: bool, fills: bool, broadcasts: bool) -> list[Contraction]:
    if len(kernel.results) != 1:
        return []
    root = kernel.results[0]
    reductions = [n for n in kernel.nodes() if n.is_reduction]
    if len(reductions) != 1 or len(reductions[0].structured.inputs) != 2 or not same_order(root, reductions[0]):
        return []
    node = reductions[0]
    casts = multiply_add_casts(node.structured)
    if casts is None or 0 in node.structured.extents:
        return []
    structured = node.structured
    variables = [
        Var.below(e, name=f"{kind[0]}{i}") for i, (e, kind) in enumerate(zip(structured.extents, structured.iterators, strict=True))
    ]
    # Reduction loops of one step stay: a padding may be all that they read.
    point = [
        Index() if v.high == 0 and kind == "parallel" else Index.of(v) for v, kind in zip(variables, structured.iterators, strict=True)
    ]
    try:
        operands = [
            operand_of(source, [affine_index(e, point, split_exactly) for e in amap.results], cast, keeps_pads, fills)
            for source, amap, cast in zip(structured.inputs, structured.maps, casts, strict=True)
        ]
    except NotStructured:
        return []
    found = []
    for a, b in (operands, operands[::-1]):
        try:
            contraction = _roles(node, root, variables, a, b, broadcasts)
        except NotStructured:
            continue
        if contraction is not None:
            found.append(contraction)
    return found


@dataclass(frozen=True)
class Reading:
    """The memory access of an operand.

    Attributes:
      node: the tensor, or a view of it.
      offset: the element, as a function of the loops; for computed indices (a gather), some element of the same row.
      computed: a sum of the variables on which computed indices depend; 0 without computed indices.
    """

    node: Node
    offset: Index
    computed: Index

    def is_contiguous_along(self, var: Var) -> bool:
        """Whether the access is contiguous along a loop."""
        return self.offset.coefficient(var) == 1 and not self.computed.coefficient(var)


def reading_of(operand: ProductOperand) -> Reading | None:
    """The access of an operand that is in memory, or only gathered from memory; None for any other operand."""
    node = operand.node
    if memory_of(node) is not None:
        return Reading(node, operand.offset, Index())
    if node.kind != "generic" or node.is_reduction:
        return None
    structured, body = node.structured, node.structured.body
    read = body.makes(body.yielded[node.position])
    if read is None or read.name != "tensor.extract" or memory_of(read.operands[0]) is None:
        return None
    point = structured.loop_point(node.position, operand.indices)
    computed = Index()
    for expressions in structured.results[: len(structured.inputs)]:
        for index in indices_at(expressions, point, split_exactly):
            computed += index
    source, *indices = read.operands
    place = [point[i.dim] if isinstance(i, LoopIndex) else computed for i in indices]
    return Reading(source, linearize(place, source.shape), computed)


def operand_of(
    node: Node, indices: list[Index], casts: list[tuple[str, ir.Type]], keeps_pads: bool = False, fills: bool = False
) -> ProductOperand:
    """The operand for a node at indices: follows views, slices and paddings to the source in memory.

    Args:
      casts: of its element.
      keeps_pads: whether a padded node is read as padded.
      fills: whether paddings may have any value, the same for all paddings of the node.

    Raises:
      NotStructured: an index is not linear, or a padding value is not 0, or differs from the others.
    """
    checks: list[tuple[Index, Size]] = []
    fill: float | int = 0
    while node.kind in ("view", "slice") or (node.kind == "pad" and not keeps_pads):
        source = node.inputs[0]
        if node.kind == "slice":
            indices = [i * s + o for i, s, o in zip(indices, node.strides, node.offsets, strict=True)]
        elif node.kind == "pad":
            value = node.pad_value.attributes["value"].value
            if value != (fill if checks or not fills else value):
                raise NotStructured("a padding with other values than 0")
            fill = value
            indices = [i - low for i, low in zip(indices, node.low, strict=True)]
            for index, extent in zip(indices, source.shape, strict=True):
                if not index.is_within(0, extent - 1):
                    checks.append((index, extent))
        else:
            try:
                indices = reshape(indices, node.shape, source.shape, split_exactly)
            except NotStructured:
                if source.kind != "arg":
                    raise
                break  # contiguous memory under another shape can be read through the view
        node = source
    return ProductOperand(node, indices, checks, casts, fill)


def _roles(node: Node, root: Node, variables: list[Var], a: ProductOperand, b: ProductOperand, broadcasts: bool) -> Contraction | None:
    if b.checks:
        return None
    structured = node.structured
    parallel = [v for v, kind in zip(variables, structured.iterators, strict=True) if kind == "parallel" and v.high != 0]
    reduction = [v for v, kind in zip(variables, structured.iterators, strict=True) if kind == "reduction"]
    checked = {v for index, _ in a.checks for v in index.terms if v in reduction}
    if any(checked.isdisjoint(index.terms) for index, _ in a.checks):
        return None  # rows that consist of padding only
    reduction = [v for v in reduction if v.high != 0 or v in checked]
    in_a, in_b = a.variables, b.variables
    if any(v not in in_a or v not in in_b for v in reduction if v.high != 0):
        return None
    batch = [v for v in parallel if (v in in_a) == (v in in_b)]
    rows = [v for v in parallel if v in in_a and v not in in_b]
    columns = [v for v in parallel if v in in_b and v not in in_a]
    if not columns or not reduction:
        return None
    merged = _merged_dims(node, root)
    found = Contraction(node, root, a, b, variables, batch, [], [], reduction, checked, merged=merged)
    store = found.output_offset()
    epilogue = Analysis([node])
    epilogue.visit(root, found.root_point(found.output_point()))
    offsets = [(a.node, a.offset), (b.node, b.offset), *epilogue.found.offsets]
    accesses = replace(epilogue.found, offsets=offsets, bounds=[*a.checks, *epilogue.found.bounds])
    axes = collapse(columns, accesses, [store])
    if broadcasts:
        batch, axes = [v for v in parallel if v not in rows and v not in axes[-1].members], axes[-1:]
    elif not _is_one_axis(axes, b.offset):
        return None
    ordered = [v for v in reduction if v in checked] + [v for v in reduction if v not in checked]
    return replace(found, batch=batch, rows=collapse(rows, accesses, [store]), columns=axes, reduction=ordered, epilogue=epilogue.found)


def _merged_dims(node: Node, root: Node) -> list[int | None] | None:
    """See Contraction.merged: found if each dimension of the contraction is one or several whole dimensions of the result along which all
    accesses of the result are contiguous."""
    variables = [Var.below(e) for e in root.shape]
    analysis = Analysis([node])
    analysis.visit(root, [Index.of(v) for v in variables])
    store = linearize([Index.of(v) for v in variables], root.shape)
    result: list[int | None] = [None] * len(root.shape)
    d = 0
    for position, extent in enumerate(node.shape):
        members: list[int] = []
        size: Size = 1
        while d < len(root.shape) and (not _reaches(size, extent) or root.shape[d] == 1):
            if root.shape[d] != 1:
                members.append(d)
            size *= root.shape[d]
            d += 1
        if size != extent:
            return None
        if members and len(collapse([variables[m] for m in members], analysis.found, [store])) != 1:
            return None
        if members:
            result[members[-1]] = position
    return result if d == len(root.shape) else None


def _reaches(size: Size, extent: Size) -> bool:
    """Whether dimensions with `size` elements in all cover a dimension of `extent`."""
    return size == extent or (isinstance(size, int) and isinstance(extent, int) and size >= extent)


def _is_one_axis(columns: list[MergedLoop], offset: Index) -> bool:
    """Whether the columns are one axis of B: one loop, or blocks of it and the position within a block."""
    if len(columns) == 2:
        outer, inner = columns
        return offset.coefficient(outer.var) == offset.coefficient(inner.var) * inner.extent
    return len(columns) == 1


def is_bf16(contraction: Contraction) -> bool:
    """Whether a contraction multiplies bf16 and accumulates in f32."""
    bf16, f32 = ir.BF16Type.get(), ir.F32Type.get()
    return contraction.node.element == f32 and all(o.node.element == bf16 for o in (contraction.a, contraction.b))


def is_bytes(contraction: Contraction) -> bool:
    """Whether a contraction multiplies 8-bit integers and accumulates in 32 bits."""
    i32, i8 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(8)
    a, b = contraction.a, contraction.b
    if contraction.node.element != i32 or any(o.node.element != i8 for o in (a, b)):
        return False
    return all([type_ for _, type_ in o.casts] == [i32] for o in (a, b))


def is_signed(operand: ProductOperand) -> bool:
    """Whether the elements of an operand, widened integers, are signed."""
    return operand.casts[0][0] == "arith.extsi"
