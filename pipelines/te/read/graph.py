"""A te kernel as a graph of nodes that schedules evaluate at index points."""

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

from relayc.dialects.discardable import SORT
from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir, linalg
from relayc.dialects.operations import find_operations, last_operation
from relayc.dialects.relay.types import shape_of
from relayc.pipelines.emission.index import Index, affine_index
from relayc.pipelines.emission.sizes import read_size, symbol_positions
from relayc.pipelines.te.read.body import Body, NotStructured, read_body
from relayc.symbolic import Dim, Size, symbol

Expression: TypeAlias = int | ir.AffineExpr
"""A result of an indexing map: the loop whose index it is, or any other expression."""


@dataclass(eq=False)
class Node:
    """A tensor of the kernel.

    kind is one of
      arg: a kernel argument, `position` in the signature;
      splat: a constant scalar everywhere, the arith.constant operation `op`;
      table: a small matrix of constants, `op` likewise, which is read at constant indices only;
      empty: an uninitialized destination;
      generic: a linalg operation with loops (`operation`), its result number `position`;
      view: `inputs[0]` in row-major order under another shape;
      slice: `inputs[0]` from `offsets` with `strides`;
      pad: `inputs[0]` with `low` elements before it in each dimension, `pad_value` (an arith.constant operation) around;
      concat: `inputs` concatenated along dimension `axis`;
      sort: result number `position` of the loop `op`, which sorts `inputs[0]` (see te.read.sorting).
    """

    kind: str
    shape: tuple[Size, ...]
    element: ir.Type
    inputs: list["Node"] = field(default_factory=list)
    position: int = 0
    op: Any = None
    operation: "Structured | None" = None
    offsets: tuple[Size, ...] = ()
    strides: tuple[int, ...] = ()
    low: tuple[Size, ...] = ()
    pad_value: Any = None
    axis: int = 0

    @property
    def size(self) -> Size:
        """Number of elements."""
        return prod(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape. Raises NotStructured if a dimension is an expression."""
        found = tuple(d for d in self.shape if isinstance(d, int))
        if len(found) < len(self.shape):
            raise NotStructured(f"a shape with symbols, {list(self.shape)}")
        return found

    @property
    def structured(self) -> "Structured":
        """Loops, maps and body of a generic node."""
        assert self.operation is not None, f"expected a generic node, found {self.kind}"
        return self.operation

    def table_values(self) -> list[float | int]:
        """Elements of a table, row-major."""
        return list(self.op.attributes["value"])

    @property
    def is_reduction(self) -> bool:
        return self.kind == "generic" and "reduction" in self.structured.iterators

    @property
    def is_costly(self) -> bool:
        """Whether an element needs a division or a function such as the exponential, which are many instructions."""
        body = self.structured.body.operations if self.kind == "generic" else []
        return any(op.name.startswith("math.") or op.name == "arith.divf" for op in body)


@dataclass(eq=False)
class Structured:
    """Loops, maps and body of a linalg operation.

    Attributes:
      results: the expressions of each map of `maps` and `output_maps`; the number of a loop for a plain loop index.
      block: the body as operations, `body` as it was read.
      sizes: sizes that the body may use.
    """

    op: ir.Operation
    inputs: list[Node]
    inits: list[Node]
    maps: list[ir.AffineMap]
    output_maps: list[ir.AffineMap]
    results: list[tuple[Expression, ...]]
    iterators: tuple[str, ...]
    extents: tuple[Size, ...]
    block: ir.Block
    body: Body
    sizes: dict[ir.Value, Size] = field(default_factory=dict)

    def output_dims(self, position: int) -> list[int | None]:
        """Loop of each dimension of an output (None for a constant)."""
        return [e if isinstance(e, int) else None for e in self.results[len(self.inputs) + position]]

    def output_indices(self, position: int, loops: Sequence[Index]) -> list[Index]:
        """Indices of an output at a point of the loops."""
        return [Index() if d is None else loops[d] for d in self.output_dims(position)]

    def loop_point(self, position: int, indices: Sequence[Index]) -> list[Index]:
        """The point of the loops that writes an output at `indices`; loops not determined by them are at 0."""
        point = [Index()] * len(self.extents)
        for index, loop in zip(indices, self.output_dims(position), strict=True):
            if loop is not None:
                point[loop] = index
        return point

    @property
    def reduction_dims(self) -> list[int]:
        return [i for i, kind in enumerate(self.iterators) if kind == "reduction"]

    @property
    def captured(self) -> dict[ir.Value, Node]:
        """Tensors that the body reads at computed indices."""
        return self.body.captured


@dataclass
class Kernel:
    """A te kernel: its function, arguments and results.

    Attributes:
      symbols: names of the symbols whose values are its last arguments.
      values: the node of each tensor of the function, in the order of the text.
      known: answers of analyses of the kernel, by question. The strategies that are offered the kernel share them.
    """

    function: ir.OpView
    name: str
    args: list[Node]
    results: list[Node]
    symbols: list[str] = field(default_factory=list)
    values: dict[ir.Value, Node] = field(default_factory=dict)
    known: dict[Hashable, Any] = field(default_factory=dict)

    def nodes(self) -> list[Node]:
        """Every node on which a result depends, inputs before users."""
        return nodes_of(self.results)


def nodes_of(results: Iterable[Node]) -> list[Node]:
    """The given nodes and every node on which they depend, inputs before users."""
    order: dict[Node, None] = {}
    pending = [(node, sources(node)) for node in reversed(list(results))]
    while pending:
        node, left = pending[-1]
        source = None if node in order else next(left, None)
        if source is None:
            order[node] = None
            pending.pop()
        elif source not in order:
            pending.append((source, sources(source)))
    return list(order)


def is_costly_after(node: Node, result: Node) -> bool:
    """Whether an operation between a node and a result that depends on it is costly."""
    before = set(nodes_of([node]))
    return any(n.is_costly for n in nodes_of([result]) if n not in before)


def sources(node: Node) -> Iterator[Node]:
    """The nodes that `node` reads."""
    if node.kind == "generic":
        yield from node.structured.inputs
        yield from node.structured.captured.values()
        if node.is_reduction:
            yield from node.structured.inits
    else:
        yield from node.inputs


def read_kernel(function: ir.OpView) -> Kernel:
    """Reads a te function. Raises NotStructured if it holds other operations than structured te operations."""
    block = function.regions[0].blocks[0]
    values: dict[ir.Value, Node] = {}
    symbols = symbol_positions(function)
    sizes: dict[ir.Value, Size] = {block.arguments[i]: symbol(name) for name, i in symbols.items()}
    for i, argument in enumerate(block.arguments):
        if argument not in sizes:
            values[argument] = _node("arg", argument.type, position=i)
    args = list(values.values())
    returned: list[ir.Value] = []
    for op in block.operations:
        operation = op.operation
        name = operation.name
        if name.startswith("linalg."):
            _read_linalg(op, values, sizes)
        elif name in _READERS:
            result = operation.results[0]
            values[result] = _READERS[name](op, values, sizes, result.type)
        elif name == "func.return":
            returned = list(operation.operands)
        elif (size := read_size(operation, sizes)) is not None:
            sizes[operation.results[0]] = size
        elif name == "arith.constant":
            result = operation.results[0]
            if isinstance(result.type, ir.RankedTensorType):
                values[result] = _node("table", result.type, op=operation)
        elif SORT.on(operation):
            _read_sort(operation, values)
        else:
            raise NotStructured(f"{name} at {operation.location}")
    return Kernel(function, symbol_name(function), args, [values[v] for v in returned], list(symbols), values)


def _node(kind: str, type_: ir.Type, **fields: Any) -> Node:
    return Node(kind, _shape(type_), type_.element_type, **fields)


def _shape(type_: ir.Type) -> tuple[Size, ...]:
    """The shape of a type. Raises NotStructured if a dimension is unknown."""
    shape = tuple(d for d in shape_of(type_) if d is not None)
    if len(shape) < type_.rank:
        raise NotStructured(f"a dimension that is not known in {type_}")
    return shape


def _constant(value: ir.Value) -> ir.Operation:
    owner = value.owner
    operation = owner.operation if isinstance(owner, (ir.OpView, ir.Operation)) else None
    if operation is None or operation.name != "arith.constant":
        raise NotStructured(f"expected a constant scalar, found {value}")
    return operation


def _sizes(static: Sequence[int], dynamic: Sequence[ir.Value], sizes: Mapping[ir.Value, Size]) -> tuple[Size, ...]:
    """Sizes given partly by an attribute and partly by operands, which are expressions: a kernel that computes other sizes is not read."""
    given = iter(dynamic)
    return tuple(sizes[next(given)] if number == ir.ShapedType.get_dynamic_size() else number for number in static)


def _read_slice(op: Any, values: dict, sizes: Mapping[ir.Value, Size], type_: ir.Type) -> Node:
    source = values[op.operation.operands[0]]
    offsets = _sizes(list(op.static_offsets), list(op.offsets), sizes)
    extents = _sizes(list(op.static_sizes), list(op.sizes), sizes)
    strides = tuple(s for s in _sizes(list(op.static_strides), list(op.strides), sizes) if isinstance(s, int))
    if len(strides) < len(offsets):
        raise NotStructured("strides that are no numbers")
    full = _node("slice", type_, inputs=[source], offsets=offsets, strides=strides)
    if len(extents) == len(type_.shape):
        return full
    return _node("view", type_, inputs=[Node("slice", extents, type_.element_type, inputs=[source], offsets=offsets, strides=strides)])


def _read_pad(op: Any, values: dict, sizes: Mapping[ir.Value, Size], type_: ir.Type) -> Node:
    block = op.regions[0].blocks[0]
    yielded = last_operation(block).operands[0]
    low = _sizes(list(op.static_low), list(op.low), sizes)
    return _node("pad", type_, inputs=[values[op.operation.operands[0]]], low=low, pad_value=_constant(yielded))


def _read_view(op: Any, values: dict, sizes: Mapping[ir.Value, Size], type_: ir.Type) -> Node:
    source = values[op.operation.operands[0]]
    if source.kind == "view" and any(isinstance(d, Dim) for d in source.shape):
        # An index in the intermediate shape, often one-dimensional, cannot always be split again.
        source = source.inputs[0]
    return _node("view", type_, inputs=[source])


def _read_concat(op: Any, values: dict, sizes: Mapping[ir.Value, Size], type_: ir.Type) -> Node:
    return _node("concat", type_, inputs=[values[v] for v in op.operation.operands], axis=ir.IntegerAttr(op.attributes["dim"]).value)


_READERS = {
    "tensor.empty": lambda op, values, sizes, type_: _node("empty", type_),
    "tensor.expand_shape": _read_view,
    "tensor.collapse_shape": _read_view,
    "tensor.cast": _read_view,
    "tensor.extract_slice": _read_slice,
    "tensor.pad": _read_pad,
    "tensor.concat": _read_concat,
}


def _expressions(amap: ir.AffineMap) -> tuple[Expression, ...]:
    return tuple(e.position if isinstance(e, ir.AffineDimExpr) else e for e in amap.results)


def indices_at(
    expressions: Sequence[Expression], point: Sequence[Index], split: Callable[[Index, Size], tuple[Index, Index]]
) -> list[Index]:
    """The results of an indexing map at a point of the loops; `split` computes quotient and remainder."""
    return [point[e] if isinstance(e, int) else affine_index(e, point, split) for e in expressions]


def _iteration_space(
    results: Sequence[Sequence[Expression]], shapes: Sequence[Sequence[Size]], loops: int, outputs: int
) -> tuple[tuple[Size, ...], tuple[str, ...]]:
    """Extents and kinds ("parallel" or "reduction") of the loops of a linalg operation.

    Args:
      results: of the maps of all operands; shapes: of the operands, outputs last.
      loops: number of loops; outputs: number of operands that are outputs.
    """
    extents: list[Size] = [0] * loops
    for shape, expressions in zip(shapes, results, strict=True):
        for extent, e in zip(shape, expressions, strict=True):
            if isinstance(e, int):
                extents[e] = extent
    parallel = {e for e in results[len(results) - outputs] if isinstance(e, int)}
    return tuple(extents), tuple("parallel" if i in parallel else "reduction" for i in range(loops))


def _read_linalg(op: ir.OpView, values: dict[ir.Value, Node], sizes: dict[ir.Value, Size]) -> None:
    operation = op.operation
    operands = list(operation.operands)
    outputs = len(operation.results)
    if operation.name == "linalg.fill":
        result = operation.results[0]
        values[result] = _node("splat", result.type, op=_constant(operands[0]))
        return
    try:
        maps = [m if isinstance(m, ir.AffineMap) else ir.AffineMapAttr(m).value for m in linalg.get_indexing_maps(operation)]
        block = operation.regions[0].blocks[0]
    except (IndexError, TypeError, ValueError) as error:
        raise NotStructured(f"{operation.name}: {error}") from None
    inputs = [
        values[v] if isinstance(v.type, ir.RankedTensorType) else Node("splat", (), v.type, op=_constant(v)) for v in operands[:-outputs]
    ]
    inits = [values[v] for v in operands[len(operands) - outputs :]]
    results = list(map(_expressions, maps))
    extents, iterators = _iteration_space(results, [n.shape for n in (*inputs, *inits)], maps[0].n_dims, outputs)
    for amap, expressions in zip(maps[len(inputs) :], results[len(inputs) :], strict=True):
        if not all(isinstance(e, (int, ir.AffineConstantExpr)) for e in expressions):
            raise NotStructured(f"{operation.name}: output map {amap}")
    body = read_body(block, values, sizes)
    maps, output_maps = maps[: len(inputs)], maps[len(inputs) :]
    structured = Structured(operation, inputs, inits, maps, output_maps, results, iterators, extents, block, body, sizes)
    for position, result in enumerate(operation.results):
        values[result] = _node("generic", result.type, operation=structured, position=position)


def _read_sort(loop: ir.Operation, values: dict[ir.Value, Node]) -> None:
    """Reads a sort: exactly one tensor is read in the loop that is not an initial value."""
    begun = set(loop.operands)
    read = [values[v] for op in find_operations(loop, lambda op: True) for v in op.operands if v in values and v not in begun]
    if len(set(map(id, read))) != 1:
        raise NotStructured(f"a sort of {len(set(map(id, read)))} tensors at {loop.location}")
    for position, result in enumerate(loop.results):
        values[result] = _node("sort", result.type, inputs=read[:1], op=loop, position=position)


def same_order(node: Node, wanted: Node) -> bool:
    """Whether `node` is `wanted`, or an elementwise function of it in the same row-major order."""
    found = {wanted: True}
    reaches = {wanted}
    for one in nodes_of([node]):
        if one is not wanted and any(source in reaches for source in sources(one)):
            reaches.add(one)
            found[one] = _keeps_order(one, found, reaches)
    return found.get(node, False)


def _keeps_order(node: Node, found: Mapping[Node, bool], reaches: Container[Node]) -> bool:
    """Whether a node is an elementwise function of those of its inputs that depend on `wanted`, and these have the same order."""
    if node.kind == "view":
        return found[node.inputs[0]]
    if node.kind != "generic" or node.is_reduction:
        return False
    structured = node.structured
    identity = ir.AffineMap.get_identity(len(structured.extents))
    if structured.captured or structured.output_maps[node.position] != identity:
        return False
    read = [(source, amap) for source, amap in zip(structured.inputs, structured.maps, strict=True) if source in reaches]
    return all(amap == identity and found[source] for source, amap in read)


def behind_views(node: Node) -> Node:
    """The source of a node through views, which keep the order of elements."""
    while node.kind == "view":
        node = node.inputs[0]
    return node


def memory_of(node: Node) -> Node | None:
    """The kernel argument whose memory holds a tensor in row-major order, None for a computed one."""
    source = node.inputs[0] if node.kind == "view" else node
    return source if source.kind == "arg" else None
