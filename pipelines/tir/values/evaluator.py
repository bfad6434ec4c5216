"""Evaluation of a kernel's tensors at index points: emits scalar or vector operations that compute an element (or a lane of elements).

This implements fusion: an input of a linalg.generic is evaluated where the generic reads it, so a chain of operations becomes one
expression in one loop nest, and only kernel arguments are loaded from memory.
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, affine_index, linearize, reshape
from relayc.pipelines.te.read.body import Constant, LoopIndex
from relayc.pipelines.te.read.graph import Node, NotStructured, Structured
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.buffers import prefetch
from relayc.symbolic import Dim, Size, proves
from relayc.trampoline import Call, trampoline

Emitted = TypeVar("Emitted")


class Evaluator:
    """Evaluates nodes at points. `lane` is the variable that runs over the lanes of a vector of `width` elements (1: scalars).

    With a `mask` only active lanes are loaded and stored. `buffers` maps argument nodes to flat memrefs. Values are cached per scope, so a
    scope must span one basic block or blocks that it dominates; `scope()` opens an inner one.
    """

    def __init__(self, buffers: dict[Node, ir.Value]) -> None:
        self.buffers = buffers
        self.lane = Var(0, 0, name="lane")
        self.width = 1
        self.mask: ir.Value | None = None
        self.scopes: list[dict[Hashable, Any]] = [{}]
        self._given: dict[Node, ir.Value] = {}
        self._ahead: tuple[Node, Size] | None = None
        self._blocks: list[tuple[ir.Block, dict[frozenset[tuple[Var, Size]], dict[Size, ir.Value]]]] = []

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        yield
        self.scopes.pop()

    @contextmanager
    def lanes(self, width: int, mask: ir.Value | None = None) -> Iterator[Var]:
        """A scope in which `lane` runs over `width` lanes; with a mask only active lanes are loaded and stored."""
        saved = self.lane, self.width, self.mask
        self.lane, self.width, self.mask = Var.below(width, name="lane"), width, mask
        with self.scope():
            yield self.lane
        self.lane, self.width, self.mask = saved

    @contextmanager
    def along(self, width: int, mask: ir.Value | None = None) -> Iterator[Index]:
        """A scope with lanes; yields the lane as an index, 0 for a single lane."""
        with self.lanes(width, mask):
            yield self.lane_index

    @property
    def lane_index(self) -> Index:
        """The lane as an index; 0 for a single lane."""
        return Index.of(self.lane) if self.width > 1 else Index()

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

    def once(self, key: Hashable, make: Callable[[], Emitted]) -> Emitted:
        """The cached value of a key in this scope or an enclosing one; otherwise emits it with `make` and caches it here."""
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        value = make()
        self.scopes[-1][key] = value
        return value

    # ---- memory

    def load(self, node: Node, offset: Index) -> ir.Value:
        """Loads the element(s) of a node's buffer at a flat offset."""
        key = ("load", id(node), offset.key)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        if self._ahead is not None and node is self._ahead[0]:
            prefetch(self.buffers[node], offset.without(self.lane) + self._ahead[1])
        return self.load_from(self.buffers[node], node.element, offset)

    def load_from(self, buffer: ir.Value, element: ir.Type, offset: Index) -> ir.Value:
        """Loads the element(s) of a flat buffer at an offset."""
        stride = offset.coefficient(self.lane)
        if offset.has_vector() or (self.mask is not None and stride not in (0, 1)):
            return self._gather(buffer, element, offset)
        first = offset.without(self.lane)
        if stride == 0:
            return emit.create("memref.load", [element], [buffer, self.placed(first)])
        type_ = emit.vector_of(self.width, element)
        if self.mask is not None:
            return emit.create("vector.maskedload", [type_], [buffer, self.placed(first), self.mask, emit.zero(type_)])
        if stride == 1:
            return self._load_run(buffer, type_, first)
        if stride == -1:
            value = self._load_vector(buffer, type_, first - (self.width - 1))
            return vectors.shuffle(value, value, range(self.width - 1, -1, -1))
        if stride == 2:
            return self._load_pairs(buffer, type_, first)
        places = [self.placed(first + i * stride) for i in range(self.width)]
        return vectors.from_elements([emit.create("memref.load", [element], [buffer, at]) for at in places])

    def _load_run(self, buffer: ir.Value, type_: ir.Type, first: Index) -> ir.Value:
        """Loads the vector of the lanes of elements side by side."""
        return self._load_vector(buffer, type_, first)

    def _load_vector(self, buffer: ir.Value, type_: ir.Type, first: Index) -> ir.Value:
        return emit.create("vector.load", [type_], [buffer, self.placed(first)])

    def _load_pairs(self, buffer: ir.Value, type_: ir.Type, first: Index) -> ir.Value:
        # Two vectors that end exactly at the last element needed, so nothing beyond the buffer is read.
        width = self.width
        low, high = (self._load_vector(buffer, type_, at) for at in (first, first + (width - 1)))
        return vectors.shuffle(low, high, [2 * i if 2 * i < width else width + 2 * i - (width - 1) for i in range(width)])

    def _gather(self, buffer: ir.Value, element: ir.Type, offset: Index) -> ir.Value:
        offsets = self.index_value(offset)
        if self.mask is not None:
            # At least one lane is active, so the buffer has an element 0.
            offsets = emit.select(self.mask, offsets, emit.zero(offsets.type))
        if vectors.is_byte_table(buffer.type):
            return vectors.look_up(buffer, offsets)
        lanes = []
        for i in range(self.width):
            lanes.append(emit.create("memref.load", [element], [buffer, vectors.extract(offsets, i)]))
        return vectors.from_elements(lanes)

    def store(self, value: ir.Value, buffer: ir.Value, offset: Index) -> None:
        """Stores a value (a vector: with the lane's coefficient as its stride) at a flat offset."""
        stride = offset.coefficient(self.lane)
        first = offset.without(self.lane)
        if self.width == 1 or stride == 0:
            emit.create("memref.store", [], [value, buffer, self.placed(first)])
            return
        value = emit.broadcast(value, self.width)
        if self.mask is not None:
            if stride != 1:
                raise NotStructured("a masked store that is not contiguous")
            emit.create("vector.maskedstore", [], [buffer, self.placed(first), self.mask, value])
            return
        if stride == 1:
            self._store_run(value, buffer, first)
            return
        for i in range(self.width):
            emit.create("memref.store", [], [vectors.extract(value, i), buffer, self.placed(first + i * stride)])

    def _store_run(self, value: ir.Value, buffer: ir.Value, first: Index) -> ir.Operation:
        """Stores the vector of the lanes to elements side by side."""
        return ir.Operation.create("vector.store", operands=[value, buffer, self.placed(first)])

    # ---- indices

    def placed(self, index: Index) -> ir.Value:
        """An index without lanes as a value; if this block has a value that differs by a constant, the sum of both. So neighbours share the
        computations over loop variables, from the first compiler pass on."""
        if not index.terms:
            return emit.materialize(index)
        const, key = index.key
        found = self._placed_in_block().setdefault(key, {})
        if not found and len(index.terms) == 1:
            ((var, factor),) = index.terms.items()
            if factor == 1:
                found[0] = var.value
        if const not in found:
            first = next(iter(found), None)
            distance = None if first is None else const - first
            if first is not None and isinstance(distance, int):
                base = found[first]
                found[const] = emit.create("arith.addi", [base.type], [base, emit.index_constant(distance)], emit.no_overflow())
            else:
                found[const] = emit.materialize(index)
        return found[const]

    def _placed_in_block(self) -> dict[frozenset[tuple[Var, Size]], dict[Size, ir.Value]]:
        """The cache of `placed` for the current block: by the terms of an index the values for its constants; others are derived from the
        first."""
        block = ir.InsertionPoint.current.block
        for depth, (known, values) in enumerate(self._blocks):
            if known == block:
                del self._blocks[depth + 1 :]
                return values
        self._blocks.append((block, {}))
        return self._blocks[-1][1]

    def index_value(self, index: Index) -> ir.Value:
        """An index as a value: of type index, or a vector of index if it depends on the lane."""
        lane = index.coefficient(self.lane)
        vectors = {v: c for v, c in index.terms.items() if v.is_vector}
        if lane == 0 and not vectors:
            return emit.materialize(index)
        base = Index(index.const, {v: c for v, c in index.terms.items() if v is not self.lane and not v.is_vector})
        type_ = emit.vector_of(self.width, ir.IndexType.get())
        value = emit.broadcast(emit.materialize(base), self.width)
        if isinstance(lane, Dim):
            steps = ir.DenseElementsAttr.get([ir.IntegerAttr.get(ir.IndexType.get(), i) for i in range(self.width)], type=type_)
            scaled = emit.arith("muli", emit.constant(steps, type_), emit.broadcast(emit.index_constant(lane), self.width))
            value = emit.arith("addi", value, scaled)
        elif lane:
            steps = ir.DenseElementsAttr.get([ir.IntegerAttr.get(ir.IndexType.get(), lane * i) for i in range(self.width)], type=type_)
            value = emit.arith("addi", value, emit.constant(steps, type_))
        for v, c in vectors.items():
            scaled = v.value
            if c != 1:
                factor = emit.broadcast(emit.index_constant(c), self.width)
                scaled = emit.arith("muli", scaled, factor)
            value = emit.arith("addi", value, scaled)
        return value

    def opaque(self, value: ir.Value, low: Size = 0, high: Size = 1 << 40, step: Size = 1) -> Index:
        """An index for a value computed at run time, a multiple of a step."""
        return Index.of(Var(low, high, value, step, is_vector=emit.is_vector(value), name="value"))

    def divide(self, index: Index, divisor: Size, want: str) -> Index:
        """Floor division ("quotient") by a positive size or its remainder ("remainder"), emitted if it does not fold."""
        split = index.split(divisor)
        if split is not None:
            return split[want == "remainder"]
        return self.once((want, index.key, divisor), lambda: self._divided(index, divisor, want))

    def _divided(self, index: Index, divisor: Size, want: str) -> Index:
        value = self.index_value(index)
        by = emit.index_constant(divisor)
        if emit.is_vector(value):
            by = emit.broadcast(by, self.width)
        low, high = index.bounds()
        # Unsigned division is several times cheaper, and correct for nonnegative values.
        quotient = emit.arith("divui" if proves(lambda: low >= 0) else "floordivsi", value, by)
        if want == "quotient":
            return self.opaque(quotient, low // divisor, high // divisor)
        product = emit.arith("muli", quotient, by)
        return self.opaque(emit.arith("subi", value, product), 0, divisor - 1)

    def apply(self, amap: ir.AffineMap, point: Sequence[Index]) -> list[Index]:
        """The results of an affine map at a point."""
        return [affine_index(e, point, self.quotient_and_rest) for e in amap.results]

    # ---- nodes

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

    def quotient_and_rest(self, index: Index, divisor: Size) -> tuple[Index, Index]:
        """Quotient and remainder of a division, emitted if they do not fold."""
        return self.divide(index, divisor, "quotient"), self.divide(index, divisor, "remainder")

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
            flag = inside if flag is None else self._and(flag, inside)
            safe.append(clamped)
        value = yield self._at(source, safe)
        if flag is None:
            return value
        outside = emit.constant(node.pad_value.attributes["value"], node.element)
        if emit.is_vector(value) or emit.is_vector(flag):
            value, outside = emit.broadcast(value, self.width), emit.broadcast(outside, self.width)
        return emit.select(flag, value, outside)

    def _and(self, a: ir.Value, b: ir.Value) -> ir.Value:
        if emit.is_vector(a) or emit.is_vector(b):
            a, b = emit.broadcast(a, self.width), emit.broadcast(b, self.width)
        return emit.arith("andi", a, b)

    def clamp(self, index: Index, extent: Size) -> tuple[ir.Value, Index]:
        """(whether 0 <= index < extent, the index clamped to that range), once per scope: rows and columns of a window share them."""
        return self.once(("clamp", index.key, extent), lambda: self._clamped(index, extent))

    def _clamped(self, index: Index, extent: Size) -> tuple[ir.Value, Index]:
        value = self.index_value(index)
        last, first = emit.index_constant(extent - 1), emit.index_constant(0)
        if emit.is_vector(value):
            last, first = emit.broadcast(last, self.width), emit.broadcast(first, self.width)
        inside = emit.compare("ule", value, last)  # negatives are large
        clamped = emit.arith("minsi", emit.arith("maxsi", value, first), last)
        return inside, self.opaque(clamped, 0, extent - 1)

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

    def _arg(self, node: Node, indices: Sequence[Index]) -> ir.Value:
        return self.load(node, linearize(indices, node.shape))

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

    def operation(self, name: str, result: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]) -> ir.Value:
        """An operation on elements, or on vectors if an operand is one."""
        if any(map(emit.is_vector, operands)):
            is_choice = name == "arith.select" and not emit.is_vector(operands[0])
            operands = [v if is_choice and i == 0 else self.broadcast(v) for i, v in enumerate(operands)]
            result = emit.vector_of(self.width, result)
        return emit.create(name, [result], operands, attributes)

    def broadcast(self, value: ir.Value) -> ir.Value:
        """Broadcasts a scalar to all lanes; returns vectors unchanged."""
        if self.width == 1 or emit.is_vector(value):
            return value
        return self.once(("broadcast", value, self.width), lambda: emit.broadcast(value, self.width))
