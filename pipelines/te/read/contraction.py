"""Contractions (matrix products and convolutions) recognised in a kernel: which loops are rows, columns, batch and reduction, and how each
operand is read.

A contraction is acc + a * b over reduction loops. Columns are the parallel loops that only the operand B moves along, rows those that only
A moves along, batch those that both do. Lanes run along the columns: B gives vectors, A scalars that are broadcast. For a convolution in
NCHW, B is either the weights (lanes along output channels; works for any stride, dilation and padding) or, for a 1x1 convolution, the
image itself (lanes along pixels).
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
    """How an operand is read at a loop point.

    Attributes:
      node: what is read: the operand without views, slices and paddings around it.
      indices: its indices as functions of the loop variables.
      checks: (index, extent) for each dimension that a padding lets run out of bounds.
      casts: names of the conversions that the body applies to the element, with their result types.
      fill: what is read out of bounds.
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
      batch, rows, columns: parallel loops, outermost first; those of rows and of columns merged as far as they can be. There is one loop of
        columns, or two where the output is blocked by channels: blocks, and within one.
      reduction: reduction loops; those in `checked` first, as paddings bound them.
      epilogue: what the epilogue reads.
      merged: for each dimension of the result the dimension of the contraction whose index it takes, None for 0; None where the indices
        of the result are computed by a reshape.
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
        """This contraction with all rows in one loop, which A does not walk as one; None where the result or the epilogue does not
        either. Only a packed A can be read so: see `row_loops`."""
        members = [v for row in self.rows for v in row.members]
        rows = collapse(members, self.epilogue, [self.output_offset()])
        return replace(self, rows=rows) if len(rows) == 1 else None

    def with_joined_rows(self) -> "Contraction | None":
        """This contraction with its innermost rows in one loop as far as the result and the epilogue walk them so, though A does not; None
        where that joins none. Only a packed A can be read so, or one of which a table says where each row is: see `row_loops`."""
        members = [v for row in self.rows for v in row.members]
        rows = collapse(members, self.epilogue, [self.output_offset()])
        return replace(self, rows=rows) if len(rows) < len(self.rows) and len(rows[-1].members) > 1 else None

    @property
    def row_loops(self) -> list[Var]:
        """Members of the innermost row loop that A walks by themselves: the whole row is split among them to read A."""
        members = self.rows[-1].members
        offset = self.a.offset
        as_one = all(offset.coefficient(o) == offset.coefficient(i) * (i.extent) for o, i in pairwise(members))
        return [] if as_one else members

    @property
    def structured(self) -> Structured:
        return self.node.structured

    @property
    def row_extent(self) -> Size:
        """Iterations of the innermost row loop; 1 where there is none."""
        return self.rows[-1].extent if self.rows else 1

    @property
    def column_extent(self) -> Size:
        return prod(c.extent for c in self.columns)

    @property
    def column(self) -> Var:
        """The variable that lanes run along."""
        return self.columns[-1].var

    def column_point(self, column: Index) -> dict[Var, Index]:
        """Indices of the column loops at a column. Raises NotStructured where a vector would span two blocks."""
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
        """The number of a point's batch in the order of `batch`."""
        return linearize([point.get(v, Index()) for v in self.batch], [v.extent for v in self.batch])

    def step(self, point: Mapping[Var, Index]) -> Index:
        """The number of a reduction step in the order of `reduction`."""
        return linearize([point.get(v, Index()) for v in self.reduction], [v.extent for v in self.reduction])

    def store_stride(self, var: Var) -> Size:
        """Elements between outputs that are neighbours along `var`."""
        return self.output_offset().coefficient(var)

    def output_point(self) -> list[Index]:
        """Indices of the result of the contraction as functions of its loops."""
        return self.structured.output_indices(self.node.position, [Index.of(v) for v in self.variables])

    def output_at(self, point: Mapping[Var, Index]) -> list[Index]:
        """Indices of the result of the contraction at a point; loops without an index there are at 0."""
        return self.structured.output_indices(self.node.position, [point.get(v, Index()) for v in self.variables])

    def output_offset(self) -> Index:
        """Where the result lies, as a function of the loops."""
        return linearize(self.output_point(), self.node.shape)

    def root_point(self, point: Sequence[Index]) -> list[Index]:
        """Indices of the kernel's result for those of the contraction. Raises NotStructured where they are not linear.

        Where the result splits a dimension of the contraction in several that nothing tells apart, the last of them stands for all.
        """
        if self.merged is None:
            return reshape(point, self.node.shape, self.root.shape, split_exactly)
        return [Index() if d is None else point[d] for d in self.merged]


def match(kernel: Kernel, keeps_pads: bool = False, fills: bool = False) -> list[Contraction]:
    """The contraction of a kernel in the roles its operands can take (either may be B); empty where it is none.

    With `keeps_pads` a padded operand is read as padded, not from what was padded. With `fills` paddings may be of other values than 0.
    """
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
        Var(0, e - 1, name=f"{kind[0]}{i}") for i, (e, kind) in enumerate(zip(structured.extents, structured.iterators, strict=True))
    ]
    # Of loops of one step those of the reduction stay: a padding may be all that they read.
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
            contraction = _roles(node, root, variables, a, b)
        except NotStructured:
            continue
        if contraction is not None:
            found.append(contraction)
    return found


@dataclass(frozen=True)
class Reading:
    """Where in a tensor in memory an operand is read.

    Attributes:
      node: the tensor, or a view of it.
      offset: the element, as a function of the loops; where indices are computed (a gather), some element of the same row.
      computed: a sum of what these indices depend on; 0 where none is computed.
    """

    node: Node
    offset: Index
    computed: Index

    def is_contiguous_along(self, var: Var) -> bool:
        """Whether neighbours along a loop are neighbours in memory."""
        return self.offset.coefficient(var) == 1 and not self.computed.coefficient(var)


def reading_of(operand: ProductOperand) -> Reading | None:
    """How an operand is read that lies in memory, or is gathered from there and nothing else; None for any other."""
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
    """How a node is read at indices: follows views, slices and paddings to what is in memory.

    Args:
      casts: of its element.
      keeps_pads: whether a padded node is read as padded.
      fills: whether a padding may be of any value, as all paddings of the node then are.

    Raises:
      NotStructured: an index is not linear, or a padding has another value than 0 or the others.
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
                break  # memory in the same order under another shape is read as well through the view
        node = source
    return ProductOperand(node, indices, checks, casts, fill)


def _roles(node: Node, root: Node, variables: list[Var], a: ProductOperand, b: ProductOperand) -> Contraction | None:
    if b.checks:
        return None
    structured = node.structured
    parallel = [v for v, kind in zip(variables, structured.iterators, strict=True) if kind == "parallel" and v.high != 0]
    reduction = [v for v, kind in zip(variables, structured.iterators, strict=True) if kind == "reduction"]
    checked = {v for index, _ in a.checks for v in index.terms if v in reduction}
    if any(checked.isdisjoint(index.terms) for index, _ in a.checks):
        return None  # rows that are padding as a whole
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
    accesses = Accesses(offsets, set(epilogue.found.irregular), list(a.checks))
    axes = collapse(columns, accesses, [store])
    if not _is_one_axis(axes, b.offset):
        return None
    ordered = [v for v in reduction if v in checked] + [v for v in reduction if v not in checked]
    return replace(found, rows=collapse(rows, accesses, [store]), columns=axes, reduction=ordered, epilogue=epilogue.found)


def _merged_dims(node: Node, root: Node) -> list[int | None] | None:
    """See Contraction.merged: found where each dimension of the contraction is one or several whole dimensions of the result that all of
    the result's reads walk as one."""
    variables = [Var(0, e - 1) for e in root.shape]
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
    """Whether no more dimensions belong to one of `extent` than those that have `size` elements together."""
    return size == extent or (isinstance(size, int) and isinstance(extent, int) and size >= extent)


def _is_one_axis(columns: list[MergedLoop], offset: Index) -> bool:
    """Whether the columns are one axis of B: one loop, or blocks of it and the place within a block."""
    if len(columns) == 2:
        outer, inner = columns
        return offset.coefficient(outer.var) == offset.coefficient(inner.var) * inner.extent
    return len(columns) == 1


def is_bf16(contraction: Contraction) -> bool:
    """Whether a contraction multiplies bf16 and adds in f32."""
    bf16, f32 = ir.BF16Type.get(), ir.F32Type.get()
    operands = (contraction.a, contraction.b)
    if contraction.node.element != f32 or any(o.node.element != bf16 for o in operands):
        return False
    return all([type_ for _, type_ in o.casts] == [f32] for o in operands)


def is_bytes(contraction: Contraction) -> bool:
    """Whether a contraction multiplies integers of 8 bits, of which those of B are signed, and adds in 32 bits."""
    i32, i8 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(8)
    a, b = contraction.a, contraction.b
    if contraction.node.element != i32 or any(o.node.element != i8 for o in (a, b)):
        return False
    return is_signed(b) and all([type_ for _, type_ in o.casts] == [i32] for o in (a, b))


def is_signed(operand: ProductOperand) -> bool:
    """Whether the elements of an operand, which are integers that are widened, are signed."""
    return operand.casts[0][0] == "arith.extsi"
