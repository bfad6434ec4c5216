"""Evaluation of a kernel's tensors at index points: emits scalar or vector operations that compute an element (or a lane of elements).

This implements fusion: an input of a linalg.generic is evaluated where the generic reads it, so a chain of operations becomes one
expression in one loop nest, and only kernel arguments are loaded from memory.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, linearize, reshape
from relayc.pipelines.te.read.body import Constant, LoopIndex
from relayc.pipelines.te.read.graph import Node, NotStructured, Structured
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.accesses import Accesses
from relayc.pipelines.tir.values.buffers import prefetch
from relayc.symbolic import Size
from relayc.trampoline import Call, trampoline


class Evaluator(Accesses):
    """Evaluates nodes at points. `buffers` maps argument nodes to flat memrefs."""

    def __init__(self, buffers: dict[Node, ir.Value]) -> None:
        super().__init__()
        self.buffers = buffers
        self._given: dict[Node, ir.Value] = {}
        self._ahead: tuple[Node, Size] | None = None

    def remember(self, node: Node, indices: Sequence[Index], value: ir.Value) -> None:
        """Sets the value of `node` at `indices` in this scope: for values that a schedule computed itself."""
        key = (id(node), *(i.key for i in indices))
        self.scopes[-1][key] = value

    def with_init(self, value: ir.Value, init: Node, indices: Sequence[Index]) -> ir.Value:
        """A sum that began at 0, and the initial value at some indices that it should have begun at."""
        if init.kind == "splat" and init.op.attributes["value"].value == 0:
            return value
        first = self.at(init, indices if init.shape else [])
        return vectors.add(value, emit.broadcast(first, self.width))

    @contextmanager
    def given(self, node: Node, value: ir.Value) -> Iterator[None]:
        """Context in which `node` has `value` at any indices: for an elementwise computation, which reads it at one point."""
        self._given[node] = value
        yield
        del self._given[node]

    @contextmanager
    def asking_ahead(self, node: Node, distance: Size) -> Iterator[None]:
        """Context in which each load of an element of `node` prefetches the element `distance` further on into the second-level cache; no
        prefetch for distance 0."""
        self._ahead = (node, distance) if distance != 0 else None
        yield
        self._ahead = None

    def remember_load(self, node: Node, offset: Index, value: ir.Value) -> None:
        """Sets the value of a load of `node` at a flat offset in this scope."""
        self.scopes[-1]["load", id(node), offset.key] = value

    def bind(self, node: Node, buffer: ir.Value) -> None:
        """From now on `node` is read from `buffer` (flat, row-major) instead of being computed."""
        self.buffers[node] = buffer

    def memory(self, node: Node) -> ir.Value:
        """The buffer of a node, or of the node of which it is a view."""
        return self.buffers[node if node in self.buffers else node.inputs[0]]

    def at(self, node: Node, indices: Sequence[Index]) -> ir.Value:
        """The value of `node` at `indices`: a vector if they depend on the lane, otherwise a scalar."""
        return trampoline(self._at(node, indices))

    def _at(self, node: Node, indices: Sequence[Index]) -> Call[ir.Value]:
        if node in self._given:
            return self._given[node]
        key = (id(node), *(i.key for i in indices))
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        if node in self.buffers:
            value = self.load(node, linearize(indices, node.shape))
        else:
            found = getattr(self, f"_{node.kind}")(node, indices)
            value = (yield from found) if isinstance(found, Generator) else found
        self.scopes[-1][key] = value
        return value

    def load(self, node: Node, offset: Index) -> ir.Value:
        """Loads the element(s) of a node's buffer at a flat offset."""
        key = ("load", id(node), offset.key)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        if self._ahead is not None and node is self._ahead[0]:
            prefetch(self.buffers[node], offset.without(self.lane) + self._ahead[1])
        return self.load_from(self.buffers[node], node.element, offset)

    def _splat(self, node: Node, indices: Sequence[Index]) -> ir.Value:
        return emit.constant(node.op.attributes["value"], node.element)

    def _table(self, node: Node, indices: Sequence[Index]) -> ir.Value:
        if not all(i.is_constant for i in indices):
            raise NotStructured("a table of constants read at indices that are not constant")
        element = node.table_values()[linearize(indices, node.shape).const]
        return emit.number(element, node.element)

    def _empty(self, node: Node, indices: Sequence[Index]) -> ir.Value:
        return emit.zero(node.element)

    def _sort(self, node: Node, indices: Sequence[Index]) -> ir.Value:
        raise NotStructured("a sort, whose elements are not computed one by one")

    def _view(self, node: Node, indices: Sequence[Index]) -> Call[ir.Value]:
        source = node.inputs[0]
        while source.kind == "view" and source not in self.buffers and source not in self._given:
            source = source.inputs[0]  # merged loops have no quotients by the extents between
        if source in self.buffers:
            return self.load(source, linearize(indices, node.shape))
        point = reshape(indices, node.shape, source.shape, self.quotient_and_rest)
        return (yield self._at(source, point))

    def _slice(self, node: Node, indices: Sequence[Index]) -> Call[ir.Value]:
        point = [i * s + o for i, s, o in zip(indices, node.strides, node.offsets, strict=True)]
        return (yield self._at(node.inputs[0], point))

    def _pad(self, node: Node, indices: Sequence[Index]) -> Call[ir.Value]:
        source = node.inputs[0]
        point = [i - low for i, low in zip(indices, node.low, strict=True)]
        flag: ir.Value | None = None
        safe = []
        for index, extent, padded in zip(point, source.shape, node.shape, strict=True):
            # A dimension without padding needs no check; if it was collapsed with the one before it, its index may exceed its extent.
            if extent == padded or index.is_within(0, extent - 1):
                safe.append(index)
                continue
            inside, clamped = self.clamp(index, extent)
            flag = inside if flag is None else self.both(flag, inside)
            safe.append(clamped)
        value = yield self._at(source, safe)
        if flag is None:
            return value
        outside = emit.constant(node.pad_value.attributes["value"], node.element)
        if emit.is_vector(value) or emit.is_vector(flag):
            value, outside = emit.broadcast(value, self.width), emit.broadcast(outside, self.width)
        return emit.select(flag, value, outside)

    def _concat(self, node: Node, indices: Sequence[Index]) -> Call[ir.Value]:
        """A concatenation inside a kernel: a select over its pieces, each read in bounds."""
        start: Size = 0
        axis, result = node.axis, None
        for piece in node.inputs:
            index = indices[axis] - start
            start += piece.shape[axis]
            inside, clamped = self.clamp(index, piece.shape[axis])
            value = yield self._at(piece, [clamped if d == axis else i for d, i in enumerate(indices)])
            if result is not None:
                if emit.is_vector(value) or emit.is_vector(result):
                    value, result = emit.broadcast(value, self.width), emit.broadcast(result, self.width)
                value = emit.select(inside, value, result)
            result = value
        return result

    def _generic(self, node: Node, indices: Sequence[Index]) -> Call[ir.Value]:
        if node.is_reduction:
            raise NotStructured(f"{node.structured.op.name}: a reduction that no schedule has computed before its use")
        structured = node.structured
        point = structured.loop_point(node.position, indices)
        inits: list[ir.Value | None] = []
        for init in structured.inits:
            inits.append(None if init.kind == "empty" else (yield self._at(init, indices)))
        return (yield from self._body(node, point, inits))[node.position]

    def body(self, node: Node, point: Sequence[Index], accumulators: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Emits a generic's body at a loop point and returns the yielded values; in reductions multiply-adds may be contracted."""
        return trampoline(self._body(node, point, accumulators))

    def _body(self, node: Node, point: Sequence[Index], accumulators: Sequence[ir.Value | None]) -> Call[list[ir.Value]]:
        structured = node.structured
        values: dict[int, ir.Value] = dict(enumerate(accumulators, len(structured.inputs)))
        for number, (source, amap) in enumerate(zip(structured.inputs, structured.maps, strict=False)):
            if number in structured.body.used:
                values[number] = yield self._at(source, self.apply(amap, point) if source.shape else [])
        return (yield from self._compute(structured, point, values))

    def compute(self, structured: Structured, point: Sequence[Index], values: dict[int, ir.Value]) -> list[ir.Value]:
        """Emits the operations of a body on `values`, its arguments by number; returns the yielded values."""
        return trampoline(self._compute(structured, point, values))

    def _compute(self, structured: Structured, point: Sequence[Index], values: dict[int, ir.Value]) -> Call[list[ir.Value]]:
        body, fast = structured.body, {}
        if "reduction" in structured.iterators:
            fast = {"fastmath": emit.parsed("#arith.fastmath<contract>")}
        for number, op in enumerate(body.operations, body.arguments):
            if op.name == "tensor.extract":
                source, *indices = op.operands
                values[number] = yield self._at(source, [self._index(v, point, values) for v in indices])
            else:
                attributes = op.attributes | (fast if op.name in ("arith.mulf", "arith.addf") else {})
                values[number] = self.operation(op.name, op.type, [self._operand(v, point, values) for v in op.operands], attributes)
        return [self._operand(v, point, values) for v in body.yielded]

    def _index(self, operand: Any, point: Sequence[Index], values: dict[int, ir.Value]) -> Index:
        """An operand of type index."""
        if isinstance(operand, LoopIndex):
            return point[operand.dim]
        return operand if isinstance(operand, Index) else self.opaque(values[operand])

    def _operand(self, operand: Any, point: Sequence[Index], values: dict[int, ir.Value]) -> ir.Value:
        if isinstance(operand, int):
            return values[operand]
        if isinstance(operand, Constant):
            return emit.constant(operand.attribute, operand.type)
        index = self._index(operand, point, values)
        return self.once(("index", index.key, self.width), lambda: self.index_value(index))
