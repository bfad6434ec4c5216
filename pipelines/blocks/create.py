"""te -> blocks: each tensor operation of a kernel becomes a block in loops of its own, that stores to a buffer of its own.

Nothing is fused, tiled or moved: that is what primitives are for. What a kernel takes and gives are arguments, destinations behind what is
read; symbols stay the last ones.
"""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from relayc.dialects.functions import symbol_name, unique_names, value_attributes
from relayc.dialects.locations import label_of
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.attributes import size_attribute
from relayc.dialects.relay.types import shape_of
from relayc.dialects.tir import names
from relayc.dialects.tir.block import PARALLEL, REDUCTION, make_block
from relayc.pipelines.blocks.buffers import memref_type
from relayc.pipelines.blocks.indices import Reader, computed, divide, largest, smallest
from relayc.pipelines.blocks.steps import Computed, Constant, Contents, Recorder, Step
from relayc.pipelines.blocks.structure import Nest
from relayc.pipelines.blocks.views import Block, ScheduleError
from relayc.pipelines.kernel.graph import indexing_maps, iteration_space
from relayc.pipelines.kernel.index import FAR, Index, affine_index, reshape
from relayc.pipelines.sizes import symbol_attributes, symbol_positions
from relayc.pipelines.tir import emit
from relayc.symbolic import Dim, Size

Point = Sequence[Index]
ZERO = Index()
Body = Callable[[Point], None]
Element = Callable[[Point], Any]
"""The steps that compute an element of a tensor at some indices; gives it as an operand."""


def create_nest(source: ir.Operation, module: ir.Module) -> Nest:
    """Builds the blocks of a te function, and their loops, at the end of a module, under its name. Raises as `begin_nest`."""
    made = begin_nest(source, module)
    made.write()
    return made


def begin_nest(source: ir.Operation, module: ir.Module, inlined: Container[ir.Value] = ()) -> Nest:
    """Builds the blocks of a te function at the end of a module, under its name; their loops are written where the function is asked for.

    Args:
      inlined: tensors that are computed where they are read, as by the primitive compute_inline: they get no blocks.

    Raises ScheduleError where it holds an operation that has no parallel form (sorting, scans), or a table of constants.
    """
    return _Creation(source, module, inlined).run()


class _Creation:
    def __init__(self, source: ir.Operation, module: ir.Module, inlined: Container[ir.Value]) -> None:
        self.source, self.module, self.inlined = source.operation, module, inlined
        self.block = self.source.regions[0].blocks[0]
        self.buffers: dict[ir.Value, ir.Value] = {}
        """Buffer of each tensor that has one."""
        self.shapes: dict[ir.Value, tuple[Size, ...]] = {}
        """Of each tensor that was asked for."""
        self.elements: dict[ir.Value, Element] = {}
        """How the elements of the others are computed."""
        self.record: Recorder
        """Takes the steps of the block that is being made."""
        self.computed = {op.location.attr for op in (o.operation for o in self.block.operations) if op.name.startswith("linalg.")}
        """Locations of computations."""
        self.symbols = symbol_positions(self.source)
        self.sizes: dict[ir.Value, Size] = {}

    def run(self) -> Nest:
        tensors = [a for a in self.block.arguments if isinstance(a.type, ir.RankedTensorType)]
        returned = list(list(self.block.operations)[-1].operation.operands)
        self.attributes = value_attributes(self.source)
        given = [self._argument_name(self.attributes[a.arg_number], f"p{i}") for i, a in enumerate(map(ir.BlockArgument, tensors))]
        made = [self._result_name(v, i) for i, v in enumerate(returned)]
        labels = unique_names([*given, *made])
        types = [self._type(v) for v in (*tensors, *returned)]
        with ir.InsertionPoint(self.module.body), self.source.location:
            index = ir.IndexType.get()
            function = func.FuncOp(symbol_name(self.source), ([*types, *[index] * len(self.symbols)], []))
            described = [
                self._described(v, label, i >= len(tensors)) for i, (v, label) in enumerate(zip((*tensors, *returned), labels, strict=True))
            ]
            function.arg_attrs = ir.ArrayAttr.get([*described, *symbol_attributes(self.symbols)])
            function.attributes[names.FORM] = ir.UnitAttr.get()
            arguments = list(function.add_entry_block().arguments)
        self.nest = Nest(function)
        self.sizes = {self.block.arguments[p]: self.nest.sizes[arguments[len(types) + i]] for i, p in enumerate(self.symbols.values())}
        self.reader = Reader({}, self.sizes)
        self.buffers = dict(zip(tensors, arguments, strict=False))
        outputs = list(zip(returned, arguments[len(tensors) :], strict=False))
        for value, buffer in outputs:
            self.buffers.setdefault(value, buffer)
        with ir.InsertionPoint(function.entry_block):
            func.ReturnOp([])
        with self.nest.editing(), ir.InsertionPoint.at_block_terminator(function.entry_block):
            for op in list(self.block.operations)[:-1]:
                with op.operation.location:
                    self._operation(op.operation)
            for value, buffer in outputs:
                if self.buffers[value] != buffer:  # an argument, or a tensor that is given twice
                    self._copy(f"{self.nest.buffer_name(buffer)}_copy", self.buffers[value], buffer)
        return self.nest

    # ---- signatures

    def _type(self, value: ir.Value) -> ir.Type:
        return memref_type(self._shape(value), value.type.element_type)

    def _shape(self, value: ir.Value) -> tuple[Size, ...]:
        if value not in self.shapes:
            self.shapes[value] = self._read_shape(value)
        return self.shapes[value]

    def _read_shape(self, value: ir.Value) -> tuple[Size, ...]:
        shape = tuple(d for d in shape_of(value.type) if d is not None)
        if len(shape) < value.type.rank:
            raise ScheduleError(f"@{symbol_name(self.source)}: expected tensors of known shapes, found {value.type}")
        return shape

    def _described(self, value: ir.Value, label: str, output: bool) -> ir.DictAttr:
        """The attributes of the argument that a tensor is."""
        found: dict[str, ir.Attribute] = {names.BUFFER: ir.StringAttr.get(label)}
        shape = self._shape(value)
        if any(isinstance(d, Dim) for d in shape):
            found[names.SHAPE] = ir.ArrayAttr.get([size_attribute(d) for d in shape])
        if output:
            found[names.OUTPUT] = ir.UnitAttr.get()
        elif "relay.param" in (given := self.attributes[ir.BlockArgument(value).arg_number]):
            found["relay.param"] = given["relay.param"]
        return ir.DictAttr.get(found)

    def _argument_name(self, attributes: ir.DictAttr, default: str) -> str:
        return _identifier(ir.StringAttr(attributes["relay.name"]).value, default) if "relay.name" in attributes else default

    def _result_name(self, value: ir.Value, position: int) -> str:
        owner = value.owner
        return f"out{position}" if isinstance(owner, ir.Block) else self._name_of(owner.operation)

    def _name_of(self, op: ir.Operation) -> str:
        """What a block is called: by the location of its operation, else by the operation. One that moves elements for a computation of the
        same location leaves the name to that."""
        kind = op.name.split(".")[-1]
        found = _identifier(label_of(op.location), kind)
        return f"{found}_{kind}" if op.name in _VIEWS and op.location.attr in self.computed else found

    # ---- operations

    def _operation(self, op: ir.Operation) -> None:
        if op.name in ("tensor.empty", "arith.constant") or not any(isinstance(r.type, ir.RankedTensorType) for r in op.results):
            # A size, a scalar, or a destination: read where it is used. A tensor of constants is none of these.
            if op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType):
                raise ScheduleError(f"{self._where(op)}: expected an operation on tensors, found a table of constants")
            return
        if op.name == "linalg.fill":
            self._fill(op)
        elif op.name.startswith("linalg."):
            self._linalg(op)
        elif op.name in _VIEWS:
            _VIEWS[op.name](self, op)
        else:
            raise ScheduleError(f"{self._where(op)}: expected an operation that has loops, found {op.name}")

    def _where(self, op: ir.Operation) -> str:
        return f"@{symbol_name(self.source)}: {self._name_of(op)}"

    def _fill(self, op: ir.Operation) -> None:
        if not makes_block(op):
            return  # what it says goes into the blocks that start from it
        self._computed(op, lambda indices: self._scalar(op.operands[0]))

    def _computed(self, op: ir.Operation, element: Element) -> None:
        """A block that computes each element of the result of an operation by itself; none where that is inlined."""
        result = op.results[0]
        if result in self.inlined:
            self.elements[result] = element
            return
        name, shape = self._name_of(op), self._shape(result)
        buffer = self._destination(result, name)
        self.nest.origins[result] = self._parallel(
            name, shape, self._axes(op, len(shape)), lambda point: self._store(element(point), buffer, point)
        )

    def _linalg(self, op: ir.Operation) -> None:
        maps = indexing_maps(op)
        results = list(op.results)
        operands = list(op.operands)
        inits = operands[len(operands) - len(results) :]
        inputs = operands[: len(operands) - len(results)]
        output_maps = maps[len(inputs) :]
        shapes = [self._shape(v) if isinstance(v.type, ir.RankedTensorType) else () for v in operands]
        extents, iterators = iteration_space(maps, shapes, len(results))
        region = op.regions[0].blocks[0]
        reduces = REDUCTION in iterators

        def init(point: Point) -> None:
            for value, amap, buffer in zip(inits, output_maps, buffers, strict=True):
                indices = _at(amap, point)
                self._store(self._element(value, indices), buffer, indices)

        def results_at(point: Point) -> list[Any]:
            values: dict[ir.Value, Any] = {}
            for argument, value, amap in zip(region.arguments, inputs, maps, strict=False):
                if next(iter(argument.uses), None) is not None:
                    values[argument] = (
                        self._element(value, _at(amap, point)) if isinstance(value.type, ir.RankedTensorType) else self._scalar(value)
                    )
            for argument, value, amap, result in zip(list(region.arguments)[len(inputs) :], inits, output_maps, results, strict=True):
                if next(iter(argument.uses), None) is not None:
                    indices = _at(amap, point)
                    values[argument] = self._load(self.buffers[result], indices) if reduces else self._element(value, indices)
            return self._clone(region, point, values)

        def body(point: Point) -> None:
            for value, amap, buffer in zip(results_at(point), output_maps, buffers, strict=True):
                self._store(value, buffer, _at(amap, point))

        if results[0] in self.inlined:
            loops = self._loops_of(op, output_maps, extents, iterators)
            self.elements[results[0]] = lambda indices: results_at(loops(indices))[0]
            return
        name = self._name_of(op)
        buffers = [self._destination(r, name if i == 0 else f"{name}_v{i}") for i, r in enumerate(results)]
        made = self._nest(name, iterators, extents, self._axes(op, len(extents)), body, init if reduces else None)
        self.nest.origins |= dict.fromkeys(results, made)

    def _loops_of(
        self, op: ir.Operation, maps: Sequence[ir.AffineMap], extents: Sequence[Size], iterators: Sequence[str]
    ) -> Callable[[Point], Point]:
        """The point of the loops of a computation from the indices of an element of its only result. Raises ScheduleError."""
        dims = [e.position if isinstance(e, ir.AffineDimExpr) else None for amap in maps for e in amap.results]
        told = {d for d in dims if d is not None}
        repeated = any(d not in told and e != 1 for d, e in enumerate(extents))
        if len(maps) != 1 or REDUCTION in iterators or len(told) < len(dims) or repeated:
            raise ScheduleError(f"{self._where(op)}: expected one result, another element at each point, found what cannot be inlined")

        def loops(indices: Point) -> Point:
            found = dict(zip(dims, indices, strict=True))
            return [found.get(d, ZERO) for d in range(len(extents))]

        return loops

    def _clone(self, region: ir.Block, point: Point, values: dict[ir.Value, Any]) -> list[Any]:
        """The operations of a linalg body on elements; gives what it yields, as operands."""
        for view in region.operations:
            op = view.operation
            if op.name == "linalg.yield":
                return [self._inner(v, values) for v in op.operands]
            result = op.results[0]
            if op.name == "arith.constant":
                continue
            if op.name == "linalg.index":
                values[result] = point[ir.IntegerAttr(op.attributes["dim"]).value]
            elif op.name == "tensor.extract":
                source, *indices = op.operands
                at = [self._inner(v, values) for v in indices]
                for index, extent in zip(at, self._shape(source), strict=True):
                    _bound(index, extent)
                values[result] = self._element(source, at)
            elif len(op.regions):
                raise ScheduleError(f"{self._where(op)}: expected operations on elements, found {op.name}")
            else:
                operands = [self._inner(v, values) for v in op.operands]
                index = computed(op.name, operands) if isinstance(result.type, ir.IndexType) else None
                attributes = dict(op.attributes.items())
                values[result] = self.record.make(op.name, result.type, operands, attributes) if index is None else index
        raise ScheduleError("expected a body that ends in linalg.yield")

    def _inner(self, value: ir.Value, values: dict[ir.Value, Any]) -> Any:
        if value not in values:
            values[value] = self._scalar(value)
        return values[value]

    # ---- views

    def _slice(self, op: ir.Operation) -> None:
        view, result = op.opview, op.results[0]
        offsets = self._mixed(view.static_offsets, view.offsets)
        extents = self._mixed(view.static_sizes, view.sizes)
        strides = self._mixed(view.static_strides, view.strides)
        shape = self._shape(result)

        def indices(point: Point) -> Point:
            full = reshape(point, shape, extents, divide) if list(shape) != extents else point
            return [i * s + o for i, s, o in zip(full, strides, offsets, strict=True)]

        self._moved(op, indices)

    def _reshape(self, op: ir.Operation) -> None:
        shape, source = self._shape(op.results[0]), self._shape(op.operands[0])
        self._moved(op, lambda point: reshape(point, shape, source, divide))

    def _moved(self, op: ir.Operation, indices: Callable[[Point], Point]) -> None:
        """A block whose elements are elements of the operand, at indices that are computed of theirs."""
        self._computed(op, lambda point: self._element(op.operands[0], indices(point)))

    def _pad(self, op: ir.Operation) -> None:
        view, result = op.opview, op.results[0]
        low = self._mixed(view.static_low, view.low)
        region = view.regions[0].blocks[0]
        value = list(region.operations)[-1].operation.operands[0]
        source = op.operands[0]
        inner = self._shape(source)
        flag = ir.IntegerType.get_signless(1)

        def element(point: Point) -> Any:
            at = [i - first for i, first in zip(point, low, strict=True)]
            inside, safe = None, []
            for index, extent in zip(at, inner, strict=True):
                if index.is_within(0, extent - 1):
                    safe.append(index)
                    continue
                below = self.record.make("arith.cmpi", flag, [index, Index(extent)], emit.predicate("ult"))
                inside = below if inside is None else self.record.make("arith.andi", flag, [inside, below])
                safe.append(smallest(largest(index, ZERO), Index(extent - 1)))
            found = self._element(source, safe)
            if inside is None:
                return found
            return self.record.make("arith.select", result.type.element_type, [inside, found, self._scalar(value)])

        self._computed(op, element)

    def _concat(self, op: ir.Operation) -> None:
        result = op.results[0]
        if result in self.inlined:
            raise ScheduleError(f"{self._where(op)}: expected what is one computation, found several parts, which cannot be inlined")
        axis = ir.IntegerAttr(op.attributes["dim"]).value
        shape = self._shape(result)
        name = self._name_of(op)
        buffer = self._destination(result, name)
        # A block for each part: a choice at each element would load from all of them.
        start: Size = 0
        for position, part in enumerate(op.operands):
            extents = self._shape(part)

            def body(point: Point, part: ir.Value = part, start: Size = start) -> None:
                at = [i + start if d == axis else i for d, i in enumerate(point)]
                self._store(self._element(part, point), buffer, at)

            self._parallel(f"{name}_{position}", extents, self._axes(op, len(shape)), body)
            start += extents[axis]

    def _same(self, op: ir.Operation) -> None:
        source, result = op.operands[0], op.results[0]
        if source in self.elements:
            self.elements[result] = self.elements[source]
        else:
            self.buffers[result] = self.buffers[source]

    def _copy(self, name: str, source: ir.Value, target: ir.Value) -> None:
        shape = self.nest.shape(target)
        self._parallel(name, shape, _axis_names(len(shape)), lambda point: self._store(self._load(source, point), target, point))

    # ---- building

    def _parallel(self, name: str, extents: Sequence[Size], axes: Sequence[str], body: Body) -> str:
        return self._nest(name, [PARALLEL] * len(extents), extents, axes, body, None)

    def _nest(
        self, name: str, iterators: Sequence[str], extents: Sequence[Size], axes: Sequence[str], body: Body, init: Body | None
    ) -> str:
        """Loops over a box, with a block in the innermost one, whose name it gives; the insertion point stays behind them."""
        loops = self.nest.new_loops(list(zip(axes, extents, strict=True)), ir.Location.current)
        name = self.nest.free_block(name)
        draft = Contents([], None, [])
        view = Block(make_block(name, iterators, extents, []), self.nest.facts, name, iterators, extents, draft)

        def made(step: Step) -> ir.Operation:
            view.fill()
            assert step.operation is not None
            return step.operation

        def record(code: Body, is_init: bool) -> list[Step]:
            self.record = Recorder(is_init, made)
            code([Index.of(v) for v in view.vars])
            draft.accesses += [step.access for step in self.record.steps if step.access is not None]
            return self.record.steps

        if init is not None:
            draft.init = record(init, True)
        draft.body = record(body, False)
        self.nest.added(loops, view)
        return name

    def _destination(self, value: ir.Value, name: str) -> ir.Value:
        if value not in self.buffers:
            self.buffers[value] = self.nest.add_buffer(self.nest.free_buffer(name), self._shape(value), value.type.element_type)
        return self.buffers[value]

    def _axes(self, op: ir.Operation, count: int) -> list[str]:
        if names.AXES in op.attributes:
            return [ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes[names.AXES])]
        return _axis_names(count)

    def _element(self, value: ir.Value, indices: Point) -> Any:
        """An element of a tensor; of one that is the same everywhere, that."""
        if value in self.elements:
            return self.elements[value](indices)
        owner = value.owner
        if value not in self.buffers and not isinstance(owner, ir.Block) and owner.operation.name == "linalg.fill":
            return self._scalar(owner.operation.operands[0])
        return self._load(self.buffers[value], indices)

    def _load(self, buffer: ir.Value, indices: Point) -> Any:
        return self.record.load(buffer, indices)

    def _store(self, value: Any, buffer: ir.Value, indices: Point) -> None:
        self.record.store(value, buffer, indices)

    def _scalar(self, value: ir.Value) -> Any:
        """A value of the function that is no tensor, a constant or a size, as an operand."""
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant" and not isinstance(value.type, ir.IndexType):
            return Constant(owner.operation.attributes["value"], value.type)
        try:
            return Index(self.reader.size(value))
        except ValueError as error:
            raise ScheduleError(f"@{symbol_name(self.source)}: {error}") from None

    def _mixed(self, static: Iterable[int], dynamic: Iterable[ir.Value]) -> list[Size]:
        given = iter(dynamic)
        return [self.reader.size(next(given)) if s == ir.ShapedType.get_dynamic_size() else s for s in static]


_VIEWS: dict[str, Callable[[_Creation, ir.Operation], None]] = {
    "tensor.expand_shape": _Creation._reshape,
    "tensor.collapse_shape": _Creation._reshape,
    "tensor.extract_slice": _Creation._slice,
    "tensor.pad": _Creation._pad,
    "tensor.concat": _Creation._concat,
    "tensor.cast": _Creation._same,
}


def makes_block(op: ir.Operation) -> bool:
    """Whether an operation of a te function becomes a block of its own (a concatenation as many as it has parts)."""
    if op.name == "linalg.fill":
        return not all(_is_init(use.owner.operation, use.operand_number) for use in op.results[0].uses)
    return op.name.startswith("linalg.") or (op.name in _VIEWS and op.name != "tensor.cast")


def _is_init(op: ir.Operation, operand: int) -> bool:
    """Whether an operand of an operation is what its result starts from."""
    return op.name.startswith("linalg.") and operand >= len(op.operands) - len(op.results)


def _at(amap: ir.AffineMap, point: Point) -> list[Index]:
    """The results of an indexing map at a point."""
    return [point[e.position] if isinstance(e, ir.AffineDimExpr) else affine_index(e, point, divide) for e in amap.results]


def _bound(index: Index, extent: Size) -> None:
    """Says that an index is one of a dimension, where it is known by this alone."""
    var = next(iter(index.terms), None)
    if isinstance(var, Computed) and var.high == FAR and index.key == Index.of(var).key:
        var.low, var.high = 0, extent - 1


def _axis_names(count: int) -> list[str]:
    return [f"ax{i}" for i in range(count)]


def _identifier(text: str, default: str) -> str:
    found = re.sub(r"\W+", "_", text).strip("_")
    return found if found and not found[0].isdigit() else default
