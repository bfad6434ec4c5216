"""Bufferization of programs: tensors become buffers, and calls write their results in place.

A program `@f` of the te stage becomes `@f(inputs, outputs)` over memrefs. Any other tensor is a byte buffer (`memref.alloc() :
memref<Nxi8>`), a part of one if a concatenation joins it, or a parameter (`memref.get_global`); each call views the bytes as its tensors.
Reshapes are other views. A branch or a loop carries no tensors: each of its results has a place, which both branches write, and which the
next iteration of a loop reads. The initial values of a loop are written there before.

A program takes its symbols after its outputs (see pipelines.emission.sizes). A tensor of symbolic size is a flat `memref<?x...>`, and bytes
of symbolic size are `memref.alloc(%size) : memref<?xi8>`.

A late tensor, whose size does not follow from the program's symbols (see body), has its own heap memory: `memref.alloc` with the attribute
`relay.heap`, freed at the end of the block that owns it. Branches, loops and functions return such memory, and the sizes, as results; a
loop frees the memory carried from the previous iteration when the next one begins.

A parameter is `memref.global "private" @NAME : memref<...> {relay.param = "KEY"}` without contents, once for each layout that calls
request; `relay.packing` specifies the layout.

Arguments of programs keep their names (`relay.name`); `relay.tensors` is the type of the program as callers see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from relayc.dialects.discardable import HEAP, KNOWN_AS, PACKED, PACKING, PARAM_KEY, PROGRAM, SIZES, TENSORS, copy_discardable
from relayc.dialects.functions import Names, is_public, signature_of, value_attributes
from relayc.dialects.mlir import arith, func, ir, memref, scf
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import strides_of
from relayc.pipelines.emission.sizes import (
    function_sizes,
    require_at_most,
    size_value,
    symbol_attributes,
    symbol_names,
    symbol_positions,
    tensor_count,
)
from relayc.pipelines.program.functions import Functions, memory_types, memref_type, packings_of, read_functions, tensors_of, workspace_of
from relayc.pipelines.program.joins import Nesting
from relayc.pipelines.program.kernels import type_for_callers
from relayc.pipelines.program.results import check_results, is_update
from relayc.pipelines.program.tree import Call, Define, If, Item, ProgramBlock, ProgramTree, While, read_program
from relayc.pipelines.program.tree import sizes as sizes_of
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.runtime.artifact import EqualSizes
from relayc.runtime.shapes import MAX_BYTES
from relayc.symbolic import Size, product, substitute, symbols_of

Value: TypeAlias = ir.Value


@module_pass(opt_level=0, name="BufferizePrograms", stage="tir")
def bufferize_programs(mod: IRModule, ctx: PassContext) -> IRModule:
    """Tensors of programs become buffers, reshapes and concatenations views (pipelines.program.buffers).

    The kernels are scheduled, and results materialized (see kernels, results).

    Raises RelayError for an invalid program, one that calls a kernel without a schedule, or whose results are not materialized.
    """
    functions = read_functions(mod.module)
    programs = [read_program(f) for f in functions.programs.values()]
    for program in programs:
        check_results(program, functions)
    callees = _Callees(functions)
    parameters = _Parameters(mod.module)
    for program in programs:
        with ir.InsertionPoint(program.function):
            _Bufferizing(program, callees, parameters).run()
    for program in programs:
        program.function.operation.erase()
    for declaration in (*functions.packed.values(), *functions.standins.values()):
        declaration.operation.erase()
    callees.declare(mod.module)
    return mod


@dataclass
class _Callee:
    """A callee in memory: a function, its memref arguments, and the layouts that it requests.

    Attributes:
      workspace: bytes of a workspace, in its symbols; 0 for none.
      symbols: its last arguments.
    """

    name: str
    types: list[ir.Type]
    packings: dict[int, Packing]
    workspace: Size = 0
    symbols: Sequence[str] = ()


class _Callees:
    """The callees of programs, by their names in the te stage."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self._found: dict[str, _Callee] = {}
        self._packed: dict[str, tuple[ir.FunctionType, dict[str, ir.Attribute], ir.Location]] = {}

    def get(self, name: str) -> _Callee:
        if name not in self._found:
            self._found[name] = self._callee(name)
        return self._found[name]

    def _callee(self, name: str) -> _Callee:
        functions = self.functions
        if name in functions.kernels:
            raise RelayError(f"a call of @{name}: expected a kernel with a schedule (run schedule-kernels), found one over tensors")
        if name in functions.standins:
            wanted, symbols = functions.implementation(name), symbol_names(functions.standins[name])
            function, tensors = functions.tir[wanted], len(memory_types(functions.standins[name]))
            types = list(signature_of(function).inputs)
            return _Callee(wanted, types, packings_of(function), workspace_of(function, tensors), symbols)
        declared = functions.get(name)
        types = memory_types(declared)
        if name in functions.packed:
            symbols = symbol_names(declared)
            attributes = {**PACKED.entry(PACKED.of(declared)), **TENSORS.entry(type_for_callers(declared))}
            if symbols:
                attributes["arg_attrs"] = ir.ArrayAttr.get([*[ir.DictAttr.get({})] * len(types), *symbol_attributes(symbols)])
            self._packed[name] = ir.FunctionType.get([*types, *[ir.IndexType.get()] * len(symbols)], []), attributes, declared.location
        return _Callee(name, types, {}, symbols=symbol_names(declared))

    def gives(self, name: str, position: int) -> bool:
        """Whether a function returns the memory of a result: a program does if only it knows the size."""
        function = self.functions.programs.get(name)
        if function is None:
            return False
        type_ = TensorType.from_mlir(tensors_of(function, "output")[position])
        return not type_.symbols.issubset(symbol_positions(function))

    def declare(self, module: ir.Module) -> None:
        """Declares the called packed functions, over memory, at the start of the module."""
        for name, (type_, attributes, location) in self._packed.items():
            with ir.InsertionPoint.at_block_begin(module.body), location:
                declared = func.FuncOp(name, type_, visibility="private")
            for key, value in attributes.items():
                declared.attributes[key] = value


class _Parameters:
    """The globals of parameters, one for each parameter, layout and type."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self._names = Names(module)
        self._found: dict[tuple[str, str, ir.Type], str] = {}

    def get(self, key: str, type_: ir.MemRefType, packing: Packing | None) -> str:
        """The name of a parameter as a memref of a type."""
        entry = (key, packing.name if packing is not None else "", type_)
        if entry not in self._found:
            self._found[entry] = name = self._names.free(key)
            with ir.InsertionPoint.at_block_begin(self.module.body), ir.Location.unknown():
                made = memref.GlobalOp(name, type_, sym_visibility="private")
            PARAM_KEY.put(made, key)
            if packing is not None:
                PACKING.put(made, packing.to_attribute())
        return self._found[entry]


# ---- places of tensors -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Bytes:
    """Memory of a tensor and of all tensors inside it; `value` is its memref once allocated. `heap`: it is not in the arena."""

    size: Size
    value: Value | None = None
    heap: bool = False


@dataclass(eq=False)
class _Memory:
    """The memory of a te value: an argument of the program by position, a parameter by key, or bytes from an offset on."""

    argument: int = -1
    key: str | None = None
    bytes: _Bytes | None = None
    offset: Size = 0


class _Places:
    """The places of all values of a program whose results are materialized, by value."""

    def __init__(self, program: ProgramTree, functions: Functions) -> None:
        self.program, self.functions = program, functions
        self.of: dict[Value, _Memory] = {}
        self._whole: dict[Value, _Bytes] = {}
        arguments = program.inputs
        self.of.update((argument, _Memory(i)) for i, argument in enumerate(arguments))
        self.of.update((value, _Memory(key=constant.key)) for value, constant in program.constants.items())
        known = iter(range(len(arguments), len(arguments) + len(program.body.given)))
        self._assign(program.body, [None if program.is_late(v) else _Memory(next(known)) for v in program.body.given])
        for value in program.sources:
            self.of[value] = self.of[program.root(value)]

    def _assign(self, body: ProgramBlock, results: Sequence[_Memory | None]) -> None:
        """Assigns places to the values of a body; its results have the given ones, or heap memory for None."""
        root = self.program.root
        wanted = {root(value): place or self._heap(root(value)) for value, place in zip(body.given, results, strict=True)}
        for item in reversed(body.items):
            if isinstance(item, While):
                places = [self._carried(argument, wanted.get(r), r) for argument, r in zip(item.before.arguments, item.made, strict=True)]
                for i, first in enumerate(item.reads):
                    wanted[root(first)] = places[i] or self._heap(root(first))
                for values in (item.made, item.before.arguments, item.after.arguments):
                    for value, place in zip(values, places, strict=True):
                        self.of[value] = place or self._heap(value)
                self._assign(item.before, places)
                self._update(item.after)
                self._assign(item.after, places)
        nesting = Nesting(self.program, body)
        nesting.add_joins()
        for value in (*(r for item in body.items for r in item.made), *(join.operation.results[0] for join in body.joins)):
            if value not in self.of:
                self.of[value] = wanted.get(value) or self._new(value, nesting)
        for item in body.items:
            if isinstance(item, If):
                places = [None if self.program.is_late(r) else self.of[r] for r in item.made]
                self._assign(item.then, places)
                self._assign(item.otherwise, places)

    def _update(self, body: ProgramBlock) -> None:
        """Places late results of a loop's body that update an argument in the argument's memory; the places of others are known."""
        for argument, value in zip(body.arguments, body.given, strict=True):
            result = self.program.root(value)
            if self.program.is_late(argument) and is_update(self.program, self.functions, body, argument, result):
                self.of[result] = self.of[argument]

    def _carried(self, argument: Value, wanted: _Memory | None, result: Value) -> _Memory | None:
        """The single place of a loop-carried value; None if each iteration has its own."""
        return None if self.program.is_late(argument) else wanted or self._new(result)

    def _heap(self, value: Value) -> _Memory:
        """Heap memory for a tensor, unless it has a place already."""
        return self.of.get(value) or _Memory(bytes=_Bytes(self.program.num_bytes(value), heap=True))

    def _new(self, value: Value, nesting: Nesting | None = None) -> _Memory:
        whole, offset = nesting.outermost(value) if nesting is not None else (value, 0)
        if whole not in self._whole:
            self._whole[whole] = _Bytes(self.program.num_bytes(whole), heap=self.program.is_late(whole))
        return _Memory(bytes=self._whole[whole], offset=offset)


# ---- the program ------------------------------------------------------------------------------------------------------------------


class _Bufferizing:
    """Builds one program on memory at the ambient insertion point."""

    def __init__(self, program: ProgramTree, callees: _Callees, parameters: _Parameters) -> None:
        self.program, self.callees, self.parameters = program, callees, parameters
        self.places = _Places(program, callees.functions)
        self.owned: list[_Bytes] = []
        """Heap memory that the current body must free or return."""

    def run(self) -> None:
        source, program = self.program.function, self.program
        public = is_public(source)
        late = [v for v in program.body.given if program.is_late(v)]
        with source.operation.location:
            symbols = symbol_names(source)
            kept = [t for t, v in zip(tensors_of(source, "output"), program.body.given, strict=True) if v not in late]
            types = [memref_type(t) for t in (*tensors_of(source, "input"), *kept)]
            index, defined = ir.IndexType.get(), program.body.defined
            results = [*[_heap_type()] * len(late), *[index] * len(defined)]
            function = func.FuncOp(program.name, ([*types, *[index] * len(symbols)], results), visibility=None if public else "private")
        TENSORS.put(function, type_for_callers(source))
        if not public:
            PROGRAM.mark(function)
        copy_discardable((KNOWN_AS, SIZES), source, function)
        _name_arguments(function, source, [v not in late for v in program.body.given])
        if defined:
            given = value_attributes(source, "res_attrs")
            tensors = [a for a, v in zip(given, program.body.given, strict=False) if v in late]
            function.attributes["res_attrs"] = ir.ArrayAttr.get([*tensors, *given[len(program.body.given) :]])
        block = function.add_entry_block()
        self.arguments = list(block.arguments)
        with ir.InsertionPoint(block), function_sizes(function) as self.sizes:
            func.ReturnOp(self.body(program.body, late, defined))

    def body(
        self, body: ProgramBlock, late: Sequence[Value] = (), sizes: Sequence[Value] = (), carried: Sequence[_Bytes] = ()
    ) -> list[Value]:
        """Builds the items of a body at the ambient insertion point, and frees the heap memory that it does not return.

        Args:
          late, sizes: the late tensors and the sizes that the body returns.
          carried: heap memory that it owns initially.

        Returns the memory of these tensors, and the sizes.
        """
        owned, self.owned = self.owned, list(carried)
        for item in body.items:
            with item.op.operation.location:
                self.make_room(item)
                if isinstance(item, Call):
                    self.call(item)
                elif isinstance(item, If):
                    self.branch(item)
                elif isinstance(item, While):
                    self.loop(item)
                elif isinstance(item, Define):
                    self.define(item)
                else:
                    self.demand(item.op.operation)
        given = [self.places.of[value].bytes for value in late]
        found = [size_value(self.program.sizes[v]) for v in sizes]
        for memory in self.owned:
            if memory not in given:
                HEAP.mark(memref.DeallocOp(memory.value).operation)
        self.owned = owned
        return [*(memory.value for memory in given if memory is not None and memory.value is not None), *found]

    def make_room(self, item: Item) -> None:
        """Allocates the memory that an item writes first; heap memory that a branch or loop returns exists after it."""
        late = isinstance(item, (If, While))
        for result in item.made:
            found = self.places.of[result].bytes
            if found is not None and found.value is None and not (found.heap and (late or self.is_given(item, result))):
                self.allocate(found)

    def is_given(self, item: Item, result: Value) -> bool:
        """Whether a call returns the memory of a result."""
        return isinstance(item, Call) and self.callees.gives(item.callee, item.made.index(result))

    def allocate(self, memory: _Bytes) -> None:
        memory.value = _allocate(memory.size, memory.heap)
        if memory.heap:
            self.owned.append(memory)

    def call(self, call: Call) -> None:
        callee = self.callees.get(call.callee)
        given = [r for r in call.made if self.is_given(call, r)]
        sizes = [self.program.sizes[v] for v in call.given]
        operands = [self.operand(call, v, i, callee) for i, v in enumerate((*call.reads, *call.made)) if v not in given]
        if callee.workspace != 0:
            bytes_ = substitute(callee.workspace, dict(zip(callee.symbols, sizes, strict=True)))
            memory = _Bytes(bytes_, heap=not symbols_of(bytes_).issubset(self.program.symbols))
            self.allocate(memory)
            operands.append(self.view(_Memory(bytes=memory), callee.types[len(operands)], bytes_))
        types = [*[_heap_type()] * len(given), *[ir.IndexType.get()] * len(call.names)]
        made = func.CallOp(types, ir.FlatSymbolRefAttr.get(callee.name), [*operands, *map(size_value, sizes)])
        self.take(call, given, list(made.operation.results))

    def take(self, item: Item, late: Sequence[Value], results: Sequence[Value]) -> None:
        """Records the memory and the sizes that an item returns."""
        for value, memory in zip(late, results, strict=False):
            found = self.places.of[value].bytes
            assert found is not None  # late tensors are in heap memory
            found.value = memory
            self.owned.append(found)
        for name, value in zip(item.names, list(results)[len(late) :], strict=True):
            self.sizes.define(name, value)

    def define(self, item: Define) -> None:
        type_ = item.source.type
        buffer = self.view(
            self.places.of[item.source], ir.MemRefType.get(list(type_.shape), type_.element_type), self.elements(item.source)
        )
        element = memref.LoadOp(buffer, [size_value(i) for i in item.indices]).result
        self.sizes.define(item.names[0], arith.IndexCastOp(ir.IndexType.get(), element).result)

    def demand(self, op: ir.Operation) -> None:
        emit.create(op.name, [], [size_value(self.program.sizes[v]) for v in op.operands], dict(op.attributes.items()))

    def operand(self, call: Call, value: Value, position: int, callee: _Callee) -> Value:
        place, packing = self.places.of[value], callee.packings.get(position)
        if packing is not None and place.key is None:
            where = f"@{self.program.name}: a call at {call.op.operation.location}"
            raise RelayError(
                f"{where}: expected a parameter as argument {position} of @{callee.name}, which takes it packed, found {value}"
            )
        return self.view(place, callee.types[position], self.elements(value), packing)

    def elements(self, value: Value) -> Size:
        """Number of elements of a tensor."""
        return product(self.program.shape(value))

    def branch(self, item: If) -> None:
        late = [r for r in item.made if self.program.is_late(r)]
        positions = [item.made.index(r) for r in late]
        types = [*[_heap_type()] * len(late), *[ir.IndexType.get()] * len(item.names)]
        made = scf.IfOp(self.truth(item.condition), types, has_else=True)
        for block, body in ((made.then_block, item.then), (made.else_block, item.otherwise)):
            with ir.InsertionPoint(block), self.sizes.scope():
                given = [self.program.root(body.given[i]) for i in positions]
                scf.YieldOp(self.body(body, given, body.defined))
        self.take(item, late, list(made.results))

    def loop(self, item: While) -> None:
        arguments = (item.before.arguments, item.after.arguments)
        positions = [i for i, a in enumerate(item.before.arguments) if self.program.is_late(a)]
        roots = [self.program.root(item.reads[i]) for i in positions]
        memory = [self.places.of[root].bytes for root in roots]
        first = [m.value for m in memory if m is not None]
        self.owned = [m for m in self.owned if m not in memory]  # now owned by the loop
        sizes = [size_value(self.program.sizes[v]) for v in sizes_of(item.op.operation.operands)]
        types = [*[_heap_type()] * len(first), *[ir.IndexType.get()] * len(sizes)]
        made = scf.WhileOp(types, [*first, *sizes])
        for i, (region, body) in enumerate(((made.before, item.before), (made.after, item.after))):
            block = region.blocks.append(*types)
            with ir.InsertionPoint(block), self.sizes.scope():
                before, self.owned = self.owned, []
                self.take(item, [arguments[i][p] for p in positions], list(block.arguments))
                carried, self.owned = self.owned, before
                if i == 0:
                    self.body(body)
                    scf.ConditionOp(self.truth(item.condition), list(block.arguments))
                else:
                    given = [self.program.root(body.given[p]) for p in positions]
                    scf.YieldOp(self.body(body, given, body.defined, carried))
        self.take(item, [item.made[p] for p in positions], list(made.results))

    def truth(self, condition: Value | EqualSizes) -> Value:
        """A condition in memory, or on sizes, as an i1."""
        if isinstance(condition, EqualSizes):
            equal = [emit.compare("eq", size_value(a), size_value(b)) for a, b in condition.pairs]
            return reduce(lambda a, b: emit.arith("andi", a, b), equal)
        buffer = self.view(self.places.of[condition], ir.MemRefType.get([], ir.IntegerType.get_signless(8)), 1)
        return arith.TruncIOp(ir.IntegerType.get_signless(1), memref.LoadOp(buffer, []).result).result

    def view(self, place: _Memory, type_: ir.MemRefType, elements: Size, packing: Packing | None = None) -> Value:
        """The memref argument of a call for a tensor of the given number of elements."""
        if place.key is not None:
            packed = type_ if type_.has_static_shape else ir.MemRefType.get([int(elements)], type_.element_type)
            return _reshaped(memref.GetGlobalOp(packed, self.parameters.get(place.key, packed, packing)).result, type_, elements)
        if place.bytes is None:
            return _reshaped(self.arguments[place.argument], type_, elements)
        size = [] if type_.has_static_shape else [size_value(elements)]
        return emit.create("memref.view", [type_], [place.bytes.value, size_value(place.offset), *size])


def _heap_type() -> ir.MemRefType:
    """The memref type of returned heap memory."""
    return ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8))


def _allocate(size: Size, heap: bool = False) -> Value:
    """Allocates bytes, whose size may be dynamic."""
    if isinstance(size, int) and not heap:
        return memref.AllocOp(ir.MemRefType.get([size], ir.IntegerType.get_signless(8)), [], []).result
    if heap:
        require_at_most(size, MAX_BYTES, "expected a tensor of at most %lld bytes, found more")
    made = memref.AllocOp(_heap_type(), [size_value(size)], [])
    if heap:
        HEAP.mark(made.operation)
    return made.result


def _name_arguments(function: func.FuncOp, source: ir.OpView, kept: Sequence[bool]) -> None:
    """Gives arguments the attributes of inputs, results and symbols; of the results only the ones written to the caller's memory."""
    given, count = value_attributes(source), tensor_count(source)
    results = [a for a, keep in zip(value_attributes(source, "res_attrs"), kept, strict=False) if keep]
    attributes = [*given[:count], *results, *given[count:]]
    if any(map(len, attributes)):
        function.arg_attrs = attributes


def _reshaped(buffer: Value, type_: ir.MemRefType, elements: Size) -> Value:
    """A memref of identity layout under another shape."""
    if buffer.type == type_:
        return buffer
    strides = strides_of(type_.shape)
    sizes = [] if type_.has_static_shape else [size_value(elements)]
    strided = ir.MemRefType.get(list(type_.shape), type_.element_type, ir.StridedLayoutAttr.get(0, strides))
    view = memref.ReinterpretCastOp(strided, buffer, [], sizes, [], [0], list(type_.shape), strides)
    return memref.CastOp(type_, view).result
