"""te -> blocks: each tensor that a kernel computes becomes a block in its own loops, which stores to its own buffer.

Nothing is fused, tiled or moved: primitives do that. Inputs and results of the kernel become arguments, the destinations after the inputs,
symbols last.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

from relayc.dialects.discardable import NAME, PARAM
from relayc.dialects.functions import begin_function, symbol_name, unique_names, value_attributes
from relayc.dialects.locations import label_of
from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation, users_of
from relayc.dialects.size_attribute import size_attribute
from relayc.dialects.tir import names
from relayc.dialects.tir.block import PARALLEL
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import FAR, Index, reshape
from relayc.pipelines.emission.sizes import symbol_attributes
from relayc.pipelines.te.read.body import LoopIndex
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured, Structured, indices_at, read_kernel
from relayc.pipelines.tir.tree.buffers import memref_type
from relayc.pipelines.tir.tree.indices import computed, divide, largest, smallest
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.steps import Computed, Constant, Recorder
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Dim, Size

Point = Sequence[Index]
ZERO = Index()
Code = Callable[[Point], None]


def create_nest(source: ir.OpView | Kernel, module: ir.Module) -> Nest:
    """Makes the tree of a te function, and its function at the end of a module, under its name, which is not written yet.

    Args:
      source: the function, or the kernel that was read from it.

    Raises ScheduleError if it holds an operation without a parallel form (sorting, scans), or a table of constants.
    """
    try:
        kernel = source if isinstance(source, Kernel) else read_kernel(source)
        return _Creation(kernel, module).run()
    except NotStructured as error:
        name = source.name if isinstance(source, Kernel) else symbol_name(source)
        raise ScheduleError(f"@{name}: expected operations that have loops, on tensors of known shapes, found {error}") from None


class _Creation:
    def __init__(self, kernel: Kernel, module: ir.Module) -> None:
        self.kernel, self.module = kernel, module
        self.source = kernel.function.operation
        self.outputs: list[ir.Value] = []
        self.buffers: dict[Node, ir.Value] = {}
        """The buffer of each tensor that is stored."""
        self.record: Recorder
        """Records the steps of the block under construction."""
        self.known: dict[Hashable, Any] = {}
        """Elements that the recorded steps compute, as operands."""

    @cached_property
    def computed(self) -> set[ir.Location]:
        """Locations of linalg computations."""
        return {n.structured.op.location.attr for n in self.kernel.values.values() if n.kind == "generic"}

    def run(self) -> Nest:
        kernel = self.kernel
        results = list(last_operation(self.source.regions[0].blocks[0]).operation.operands)
        attributes = value_attributes(self.source)
        given = [_identifier(NAME.get(attributes[node.position], ""), f"p{i}") for i, node in enumerate(kernel.args)]
        made = [self._result_name(v, i) for i, v in enumerate(results)]
        labels = unique_names([*given, *made])
        tensors = [*kernel.args, *kernel.results]
        with ir.InsertionPoint(self.module.body), self.source.location:
            described = [_described(node, label, i >= len(given)) for i, (node, label) in enumerate(zip(tensors, labels, strict=True))]
            for node, found in zip(kernel.args, described, strict=False):
                found.update(PARAM.entry(PARAM.on(attributes[node.position])))
            types = [memref_type(node.shape, node.element) for node in tensors] + [ir.IndexType.get()] * len(kernel.symbols)
            arg_attrs = ir.ArrayAttr.get([*map(ir.DictAttr.get, described), *symbol_attributes(kernel.symbols)])
            function = begin_function(kernel.name, types, {"arg_attrs": arg_attrs, names.FORM: ir.UnitAttr.get()})
        self.nest = Nest(function)
        arguments = list(self.nest.entry.arguments)
        self.buffers = dict(zip(kernel.args, arguments, strict=False))
        self.outputs = arguments[len(given) : len(tensors)]
        end = ir.Operation.create("func.return", ip=ir.InsertionPoint(self.nest.entry))
        with self.nest.building() if kernel.symbols else nullcontext(), ir.InsertionPoint(end):
            for value, node in kernel.values.items():
                if node not in self.buffers and not self._is_offset(value) and _is_computed(value, node):
                    op = value.owner.operation
                    with op.location:
                        self._block(op, node)
            for node, buffer in zip(kernel.results, self.outputs, strict=True):
                if self.buffers.get(node) is not buffer:  # an argument, or a tensor that is returned twice
                    name, axes = f"{self.nest.buffer_name(buffer)}_copy", _axis_names(len(node.shape))
                    self._parallel(name, node.shape, axes, lambda point: self.record.store(self._element(node, point), buffer, point))  # noqa: B023
        return self.nest

    # ---- names

    def _result_name(self, value: ir.Value, position: int) -> str:
        owner = value.owner
        return f"out{position}" if isinstance(owner, ir.Block) else self._name_of(owner.operation)

    def _name_of(self, op: ir.Operation) -> str:
        """The name of a block: from the location of its operation, else from the operation. An operation that only moves elements gets a
        suffix if a computation has the same location."""
        kind = op.name.split(".")[-1]
        found = _identifier(label_of(op.location), kind)
        return f"{found}_{kind}" if op.name.startswith("tensor.") and op.location.attr in self.computed else found

    def _is_offset(self, value: ir.Value) -> bool:
        """Whether a tensor is a slice that belongs to its readers: all are computations of the same location (indices with an offset). They
        read the elements from the source of the slice."""
        op = value.owner
        if isinstance(op, ir.Block) or op.name != "tensor.extract_slice" or not label_of(op.location):
            return False
        readers = users_of(value)
        return all(reader.name.startswith("linalg.") and reader.location.attr == op.location.attr for reader in readers)

    # ---- blocks

    def _block(self, op: ir.Operation, node: Node) -> None:
        """Creates the blocks that compute a tensor, and the other results of its operation."""
        name = self._name_of(op)
        if node.kind == "generic":
            self._computation(name, node.structured)
        elif node.kind == "concat":
            self._concatenation(name, self._axes(op, len(node.shape)), node)
        else:
            self._parallel(name, node.shape, self._axes(op, len(node.shape)), self._stored(op, node, name))

    def _stored(self, op: ir.Operation, node: Node, name: str) -> Code:
        """Code that stores one element of a tensor whose operation moves elements of another tensor (a view, slice, padding or
        constant)."""
        buffer = self._destination(node, name)
        if node.kind == "view" and op.name != "tensor.extract_slice":
            node = replace(node, inputs=[self.kernel.values[op.operands[0]]])  # the source may be another view
        return lambda point: self.record.store(self._computed(node, point), buffer, point)

    def _computation(self, name: str, structured: Structured) -> None:
        op, inputs = structured.op, len(structured.inputs)
        nodes = [self.kernel.values[r] for r in op.results]
        buffers = [self._destination(node, name if i == 0 else f"{name}_v{i}") for i, node in enumerate(nodes)]
        targets = list(zip(buffers, structured.results[inputs:], strict=True))
        reduces = "reduction" in structured.iterators

        def init(point: Point) -> None:
            for node, (buffer, results) in zip(structured.inits, targets, strict=True):
                indices = indices_at(results, point, divide)
                self.record.store(self._element(node, indices), buffer, indices)

        def body(point: Point) -> None:
            for value, (buffer, results) in zip(self._results(structured, point, buffers if reduces else None), targets, strict=True):
                self.record.store(value, buffer, indices_at(results, point, divide))

        axes = self._axes(op, len(structured.extents))
        self._nest(name, structured.iterators, structured.extents, axes, body, init if reduces else None)

    def _concatenation(self, name: str, axes: Sequence[str], node: Node) -> None:
        """Creates a block for each part: a select at each element would load from all parts."""
        buffer = self._destination(node, name)
        start: Size = 0
        for position, part in enumerate(node.inputs):

            def body(point: Point, part: Node = part, start: Size = start) -> None:
                self.record.store(self._element(part, point), buffer, [i + start if d == node.axis else i for d, i in enumerate(point)])

            self._parallel(f"{name}_{position}", part.shape, axes, body)
            start += part.shape[node.axis]

    # ---- elements

    def _element(self, node: Node, indices: Point) -> Any:
        """Records the steps that compute an element of a tensor; returns it as an operand."""
        key = (node, *(i.key for i in indices))
        if key not in self.known:
            buffer = self.buffers.get(node)
            self.known[key] = self._computed(node, indices) if buffer is None else self.record.load(buffer, indices)
        return self.known[key]

    def _computed(self, node: Node, indices: Point) -> Any:
        """`_element` for a tensor without a buffer."""
        if node.kind == "view":
            return self._element(node.inputs[0], reshape(indices, node.shape, node.inputs[0].shape, divide))
        if node.kind == "slice":
            return self._element(node.inputs[0], [i * s + o for i, s, o in zip(indices, node.strides, node.offsets, strict=True)])
        if node.kind == "splat":
            return Constant(node.op.attributes["value"], node.element)
        if node.kind == "pad":
            return self._padded(node, indices)
        if node.kind == "table":
            raise ScheduleError(
                f"@{self.kernel.name}: {self._name_of(node.op)}: expected an operation on tensors, found a table of constants"
            )
        raise ScheduleError(f"@{self.kernel.name}: expected what is one computation at each element, found {_WORDS[node.kind]}")

    def _results(self, structured: Structured, point: Point, sums: Sequence[ir.Value] | None) -> list[Any]:
        """The results of a computation at a point of its loops, as operands.

        Args:
          sums: the buffers of the results, if the computation accumulates into their contents.
        """
        body, inputs = structured.body, len(structured.inputs)
        values: list[Any] = []
        for number, (node, results) in enumerate(zip((*structured.inputs, *structured.inits), structured.results, strict=True)):
            if number not in body.used:
                values.append(None)
                continue
            indices = indices_at(results, point, divide)
            if sums is None or number < inputs:
                values.append(self._element(node, indices))
            else:
                values.append(self.record.load(sums[number - inputs], indices))

        def operand(found: Any) -> Any:
            return values[found] if isinstance(found, int) else point[found.dim] if isinstance(found, LoopIndex) else found

        for operation in body.operations:
            name, type_, given = operation.name, operation.type, list(map(operand, operation.operands))
            if name == "tensor.extract":
                source, *at = given
                for index, extent in zip(at, source.shape, strict=True):
                    _bound(index, extent)
                values.append(self._element(source, at))
                continue
            index = computed(name, given) if isinstance(type_, ir.IndexType) else None
            values.append(self.record.make(name, type_, given, operation.attributes) if index is None else index)
        return list(map(operand, body.yielded))

    def _padded(self, node: Node, indices: Point) -> Any:
        flag = ir.IntegerType.get_signless(1)
        inside, safe = None, []
        source = node.inputs[0]
        for i, first, extent in zip(indices, node.low, source.shape, strict=True):
            index = i - first
            if index.is_within(0, extent - 1):
                safe.append(index)
                continue
            below = self.record.make("arith.cmpi", flag, [index, Index(extent)], emit.predicate_of("arith.cmpi", "ult"))
            inside = below if inside is None else self.record.make("arith.andi", flag, [inside, below])
            safe.append(smallest(largest(index, ZERO), Index(extent - 1)))
        found = self._element(source, safe)
        if inside is None:
            return found
        outside = Constant(node.pad_value.attributes["value"], node.element)
        return self.record.make("arith.select", node.element, [inside, found, outside])

    # ---- building

    def _parallel(self, name: str, extents: Sequence[Size], axes: Sequence[str], body: Code) -> None:
        self._nest(name, [PARALLEL] * len(extents), extents, axes, body, None)

    def _nest(
        self, name: str, iterators: Sequence[str], extents: Sequence[Size], axes: Sequence[str], body: Code, init: Code | None
    ) -> None:
        """Creates loops over a box, with a block in the innermost one."""
        loops = self.nest.new_loops(list(zip(axes, extents, strict=True)), ir.Location.current)
        name = self.nest.free_block(name)
        view = self.nest.new_block(name, iterators, extents, self._recording(body), None if init is None else self._recording(init))
        self.nest.insert(view, loops, [Index.of(loop.var) for loop in loops], [])

    def _recording(self, code: Code) -> Callable[[Recorder, Point], None]:
        """Code that records the steps of an init or a body."""

        def record(recorder: Recorder, point: Point) -> None:
            self.record, self.known = recorder, {}
            code(point)

        return record

    def _destination(self, node: Node, name: str) -> ir.Value:
        """The buffer of a computed tensor: the argument of the result, or a new buffer."""
        made = next((b for n, b in zip(self.kernel.results, self.outputs, strict=True) if n is node), None)
        if made is None:
            made = self.nest.add_buffer(self.nest.free_buffer(name), node.shape, node.element)
        self.buffers[node] = made
        return made

    @staticmethod
    def _axes(op: ir.Operation, count: int) -> list[str]:
        if names.AXES in op.attributes:
            return [ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes[names.AXES])]
        return _axis_names(count)


_WORDS = {"concat": "several parts", "sort": "a sort", "empty": "a tensor without contents"}


def _described(node: Node, label: str, output: bool) -> dict[str, ir.Attribute]:
    """The argument attributes of a tensor."""
    found: dict[str, ir.Attribute] = {names.BUFFER: ir.StringAttr.get(label)}
    if any(isinstance(d, Dim) for d in node.shape):
        found[names.SHAPE] = ir.ArrayAttr.get([size_attribute(d) for d in node.shape])
    if output:
        found[names.OUTPUT] = ir.UnitAttr.get()
    return found


def _is_computed(value: ir.Value, node: Node) -> bool:
    """Whether a tensor of a kernel is computed: neither a constant that only initializes reductions, nor a cast of another tensor, nor the
    result of an operation whose results nothing reads."""
    if node.kind != "arg" and not any(users_of(result) for result in value.owner.results):
        return False
    if node.kind == "splat":
        return not all(_is_init(use.owner.operation, use.operand_number) for use in value.uses)
    return node.kind not in ("arg", "empty", "table") and value.owner.operation.name != "tensor.cast"


def _is_init(op: ir.Operation, operand: int) -> bool:
    """Whether an operand of an operation is an initial value of its result."""
    return op.name.startswith("linalg.") and operand >= len(op.operands) - len(op.results)


def _bound(index: Index, extent: Size) -> None:
    """Sets the bounds of an index that is a single unbounded variable to a dimension's extent."""
    var = next(iter(index.terms), None)
    if isinstance(var, Computed) and var.high == FAR and index.key == Index.of(var).key:
        var.low, var.high = 0, extent - 1


def _axis_names(count: int) -> list[str]:
    return [f"ax{i}" for i in range(count)]


def _identifier(text: str, default: str) -> str:
    found = re.sub(r"\W+", "_", text).strip("_")
    return found if found and not found[0].isdigit() else default
