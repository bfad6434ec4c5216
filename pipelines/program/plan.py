"""The memory plan: buffers of programs become parts of one arena, reused over time, and parameters parts of one blob.

A program `@f(inputs, outputs)` (see buffers) takes two more arguments: `%arena: memref<Nxi8>`, uninitialized, and `%params: memref<Mxi8>`,
the same for all programs. A buffer becomes `memref.view %arena[OFFSET]`, a parameter `memref.view %params[OFFSET]`; `relay.offset` of its
global is the offset. A called program gets a part of the caller's arena.

A buffer is live from the first operation that uses it to the last one. A buffer from outside a loop that is used in the loop is live during
the whole loop, because each iteration needs its contents.

If sizes are expressions over the symbols of a program, so are the offsets and the size of its arena: they are computed when a call begins,
and `relay.arena` is the size of the arena. Heap memory (`relay.heap`, see buffers) is not changed. The arena of a program that is called
with sizes not known at the start, or that is recursive and has symbols, is heap memory too, allocated for each call.

In recursive programs each call uses the arena after the caller's own part: `relay.max_depth` is the limit of nested calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relayc.dialects.discardable import ARENA, HEAP, MAX_DEPTH, OFFSET, PACKING, PARAM_KEY
from relayc.dialects.functions import extend_signature, symbol_name
from relayc.dialects.locations import sources_of
from relayc.dialects.mlir import func, ir, memref
from relayc.dialects.operations import constant_of, element_bytes, users_of
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext, config_option, module_pass
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.sizes import (
    function_sizes,
    read_condition,
    read_size,
    require_at_most,
    size_value,
    symbol_names,
    symbol_positions,
)
from relayc.pipelines.program import MAX_RECURSION_DEPTH
from relayc.pipelines.program.components import Component, program_components, programs_of
from relayc.pipelines.program.tree import memref_bytes
from relayc.pipelines.tir.memory import Tensor, align, plan
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.values.buffers import buffer_type
from relayc.runtime.artifact import EqualSizes
from relayc.runtime.shapes import MAX_BYTES
from relayc.symbolic import Size, maximum, substitute, symbol

MAX_RECURSION_BYTES = 4 << 30
"""Arena bytes of a recursive program above which it is refused."""

VIEWS = frozenset(
    {"memref.view", "memref.cast", "memref.reinterpret_cast", "memref.expand_shape", "memref.collapse_shape", "memref.subview"}
)
"""Operations that view the memory of their first operand under another type."""

Value: TypeAlias = ir.Value

_ALWAYS = EqualSizes(())


config_option(
    "relay.max_recursion_depth",
    int,
    MAX_RECURSION_DEPTH,
    "how many calls of a recursive program may nest; its memory is planned for them all",
)


@module_pass(opt_level=0, name="PlanMemory", stage="tir")
def plan_memory(mod: IRModule, ctx: PassContext) -> IRModule:
    """Buffers and parameters become parts of an arena and a blob, at offsets (pipelines.program.plan).

    Raises:
      RelayError: a buffer of unknown size; a recursive program needs more than MAX_RECURSION_BYTES.
      ValueError: a limit of nested calls below 1.
    """
    max_depth = ctx.get("relay.max_recursion_depth")
    if max_depth < 1:
        raise ValueError(f"relay.max_recursion_depth: expected at least 1, found {max_depth}")
    programs = _programs(mod, max_depth)
    blob = _Blob(mod.module)
    for program in programs.values():
        blob.enter(program.parameters)
    for program in programs.values():
        _Rewriting(program, programs, blob).run()
    return mod


def _programs(mod: IRModule, max_depth: int) -> "dict[str, _ProgramMemory]":
    """The programs of a module, with offsets assigned to their buffers.

    Args:
      max_depth: limit of nested calls of a recursive program.
    """
    programs = {name: _ProgramMemory(f) for name, f in programs_of(mod.module).items()}
    for component in program_components(mod.module):
        _plan_arenas(component, programs, max_depth)
    return programs


@dataclass(frozen=True)
class ProgramPlan:
    """The memory plan of a program, for inspection.

    Attributes:
      buffers: buffers in the arena, with the names of their nodes of the model; a called program's part of the arena is named "@NAME".
      calls: the callee of each step that is a call.
      arena_bytes: arena size of a call of the program.
    """

    buffers: tuple[tuple[Tensor, tuple[str, ...]], ...]
    calls: Mapping[int, str]
    arena_bytes: Size


def planned(mod: IRModule, max_depth: int) -> dict[str, ProgramPlan]:
    """The result of `plan_memory`, by program, without changing the module."""
    with mod.context, mod.ranges, ir.Location.unknown():
        return {name: program.plan() for name, program in _programs(mod, max_depth).items()}


# ---- live ranges -----------------------------------------------------------------------------------------------------------------


@dataclass
class _Loop:
    """First and last step of a loop."""

    first: int
    last: int = -1


@dataclass(eq=False)
class _Buffer:
    """A memref.alloc, the loops around it, the steps that use it, and its live range and place in the arena, if any."""

    op: ir.OpView
    loops: list[_Loop]
    size: Size
    uses: list[tuple[int, list[_Loop]]] = field(default_factory=list)
    tensor: Tensor | None = None

    def live(self) -> None:
        """Computes its live range."""
        steps = []
        for step, loops in self.uses:
            around = loops[len(self.loops)] if len(loops) > len(self.loops) else _Loop(step, step)
            steps += [around.first, around.last]
        if steps:
            self.tensor = Tensor(self.size, min(steps), max(steps))


class _ProgramMemory:
    """A program with its buffers, parameters and calls of programs, each in the order of the text.

    Attributes:
      nested: calls of programs of its own component; `arenas`: the part of the arena of each other call of a program.
      sizes: values of type index, as expressions of its symbols.
      frame_bytes: its own part of the arena.
      arena_bytes: arena size of a call; for a recursive program including all nested calls.
      max_depth: limit of nested calls; 0 if it is not recursive.
    """

    def __init__(self, function: ir.OpView) -> None:
        self.function, self.name = function, symbol_name(function)
        self.buffers: list[_Buffer] = []
        self.parameters: list[ir.OpView] = []
        self.calls: list[tuple[func.CallOp, int]] = []
        self.arenas: dict[int, Tensor] = {}
        self.frame_bytes: Size = 0
        self.arena_bytes: Size = 0
        self.max_depth = 0
        self.symbols = symbol_names(function)
        arguments = function.regions[0].blocks[0].arguments
        self.sizes: dict[Value, Size] = {arguments[i]: symbol(name) for name, i in symbol_positions(function).items()}
        self._conditions: dict[Value, EqualSizes] = {}
        self._holding: dict[int, EqualSizes] = {}
        self._step = 0
        self._roots: dict[Value, _Buffer] = {}
        self._read(function.regions[0].blocks[0], [])
        for buffer in self.buffers:
            buffer.live()

    def plan(self) -> ProgramPlan:
        """Its plan, once offsets are assigned."""
        buffers = [(b.tensor, sources_of(b.op.operation.location)) for b in self.buffers if b.tensor is not None]
        buffers += [(tensor, (f"@{self.calls[number][0].callee.value}",)) for number, tensor in self.arenas.items()]
        return ProgramPlan(tuple(buffers), {step: call.callee.value for call, step in self.calls}, self.arena_bytes)

    def _read(self, block: ir.Block, loops: list[_Loop], holding: EqualSizes = _ALWAYS) -> None:
        for op in block.operations:
            operation = op.operation
            if (size := read_size(operation, self.sizes)) is not None:
                self.sizes[operation.results[0]] = size
            elif (condition := read_condition(operation, self.sizes, self._conditions)) is not None:
                self._conditions[operation.results[0]] = condition
            elif operation.name == "memref.alloc" and not HEAP.on(operation):
                self._allocation(op, loops)
            elif operation.name == "memref.get_global":
                self.parameters.append(op)
            elif operation.name in VIEWS:
                if operation.operands[0] in self._roots:
                    self._roots[operation.results[0]] = self._roots[operation.operands[0]]
            else:
                self._step += 1
                for buffer in dict.fromkeys(self._roots[v] for v in operation.operands if v in self._roots):
                    buffer.uses.append((self._step, loops))
                if isinstance(op, func.CallOp):
                    self._holding[len(self.calls)] = holding
                    self.calls.append((op, self._step))
                is_loop = operation.name == "scf.while"
                inner = [*loops, _Loop(self._step)] if is_loop else loops
                for number, region in enumerate(operation.regions):
                    for nested in region.blocks:
                        self._read(nested, inner, self._holding_in(operation, number, holding))
                if is_loop:
                    self._step += 1
                    inner[-1].last = self._step

    def _holding_in(self, op: ir.Operation, region: int, around: EqualSizes) -> EqualSizes:
        """The conditions on sizes that hold in a region of an operation."""
        if op.name != "scf.if" or region != 0 or op.operands[0] not in self._conditions:
            return around
        return EqualSizes((*around.pairs, *self._conditions[op.operands[0]].pairs))

    def part_of(self, number: int, size: Size) -> Size:
        """The part of the arena for call `number`: 0 bytes at sizes for which the call is not reached."""
        for a, b in self._holding[number].pairs:
            # 1 if they are equal, otherwise 0.
            size = size * maximum(0, 1 - maximum(a - b, b - a))
        return size

    def _allocation(self, op: ir.OpView, loops: list[_Loop]) -> None:
        type_, operands = op.operation.results[0].type, list(op.operation.operands)
        if not type_.has_static_shape and (type_.rank != 1 or operands[0] not in self.sizes):
            where = f"@{self.name}: memref.alloc at {op.operation.location}"
            raise RelayError(f"{where}: expected a buffer whose size is a number or of symbols, found {type_}")
        size = memref_bytes(type_) if type_.has_static_shape else self.sizes[operands[0]] * element_bytes(type_.element_type)
        buffer = _Buffer(op, loops, size)
        self.buffers.append(buffer)
        self._roots[op.operation.results[0]] = buffer

    def bytes_for(self, call: func.CallOp, callee: "_ProgramMemory") -> Size | None:
        """The arena size of a call of another program, in this program's symbols; None if it does not follow from them."""
        values = callee.sizes_of(call.operation)
        if not all(v in self.sizes for v in values):
            return None
        return substitute(callee.arena_bytes, {name: self.sizes[v] for name, v in zip(callee.symbols, values, strict=True)})

    def sizes_of(self, call: ir.Operation) -> list[Value]:
        """The operands of a call of the program that are its symbols."""
        operands = list(call.operands)
        return operands[len(operands) - len(self.symbols) :]


def _plan_arenas(component: Component, programs: Mapping[str, _ProgramMemory], max_depth: int) -> None:
    members = [programs[name] for name in component.names]
    for program in members:
        for number, (call, step) in enumerate(program.calls):
            if call.callee.value in programs and not component.is_nested(call.callee.value):
                needed = program.bytes_for(call, programs[call.callee.value])
                if needed is not None:
                    program.arenas[number] = Tensor(program.part_of(number, needed), step, step)
        tensors = [b.tensor for b in program.buffers if b.tensor is not None]
        program.frame_bytes = program.arena_bytes = maximum(plan([*tensors, *program.arenas.values()]), align(1))
    if component.recursive and any(p.symbols for p in members):
        for program in members:
            program.max_depth = max_depth
        return
    if component.recursive:
        largest = max(int(p.frame_bytes) for p in members)
        for program in members:
            program.max_depth = max_depth
            program.arena_bytes = program.frame_bytes + max_depth * largest
            if int(program.arena_bytes) > MAX_RECURSION_BYTES:
                raise RelayError(
                    f"@{program.name}: expected at most {MAX_RECURSION_BYTES} bytes of memory for {max_depth} nested calls, found "
                    f"{program.arena_bytes}, {largest} for each; lower relay.max_recursion_depth"
                )


# ---- parameters -------------------------------------------------------------------------------------------------------------------


class _Blob:
    """Offsets of parameters in the blob: assigned at the first use, once for each layout."""

    def __init__(self, module: ir.Module) -> None:
        self.globals = {symbol_name(op): op for op in module.body.operations if op.operation.name == "memref.global"}
        self.offsets: dict[str, int] = {}
        self.size = 0
        self._entered: dict[tuple[str, str], int] = {}

    def enter(self, uses: Sequence[ir.OpView]) -> None:
        for use in uses:
            name = ir.FlatSymbolRefAttr(use.attributes["name"]).value
            if name not in self.offsets and name in self.globals:
                self._enter(name, self.globals[name])
        self.size = max(self.size, align(1))

    def _enter(self, name: str, op: ir.OpView) -> None:
        if not PARAM_KEY.on(op):
            raise RelayError(f"@{name}: expected a parameter (with the attribute relay.param), found {op}")
        type_ = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
        packing = Packing.from_attribute(PACKING.of(op), type_.shape).name if PACKING.on(op) else ""
        entry = (PARAM_KEY.of(op), packing)
        if entry not in self._entered:
            self._entered[entry] = self.size
            self.size += align(max(memref_bytes(type_), 1))
        self.offsets[name] = self._entered[entry]
        OFFSET.put(op, self.offsets[name])


# ---- the programs with their offsets ----------------------------------------------------------------------------------------------


class _Rewriting:
    """Applies the plan to a program."""

    def __init__(self, program: _ProgramMemory, programs: Mapping[str, _ProgramMemory], blob: _Blob) -> None:
        self.program, self.programs, self.blob = program, programs, blob

    def run(self) -> None:
        with function_sizes(self.program.function) as self.sizes:
            program = self.program
            self.arena, self.params = self._add_arguments()
            if program.symbols:
                ARENA.put(program.function, program.arena_bytes)
            if program.max_depth:
                MAX_DEPTH.put(program.function, program.max_depth)
            for buffer in program.buffers:
                self._place(buffer.op.operation, self.arena, buffer.tensor.offset if buffer.tensor is not None else 0)
            for op in program.parameters:
                name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
                if name in self.blob.offsets:
                    self._place(op.operation, self.params, self.blob.offsets[name])
            for number, (call, _) in enumerate(program.calls):
                if call.callee.value in self.programs:
                    callee = self.programs[call.callee.value]
                    tensor = program.arenas.get(number)
                    if tensor is None and (callee.symbols or program.symbols):
                        self._with_heap(call.operation, callee)
                    else:
                        self._pass_on(call.operation, callee, program.frame_bytes if tensor is None else tensor.offset)

    def _add_arguments(self) -> tuple[Value, Value]:
        i8 = ir.IntegerType.get_signless(8)
        types = [buffer_type([size], i8) for size in (self.program.arena_bytes, self.blob.size)]
        arena, params = extend_signature(self.program.function, types)
        return arena, params

    def _place(self, op: ir.Operation, memory: Value, offset: Size) -> None:
        """Replaces a buffer or a parameter by a part of `memory`."""
        result = op.results[0]
        if not isinstance(offset, int) or not result.type.has_static_shape:
            self._shift(op, memory, offset)
            return
        if all(use.owner.name == "memref.view" and constant_of(use.owner.operands[1]) is not None for use in result.uses):
            for view in users_of(result):
                _move(view, memory, offset)
        else:
            with ir.InsertionPoint(op), op.location:
                result.replace_all_uses_with(emit.create("memref.view", [result.type], [memory, emit.index_constant(offset)]))
        op.erase()

    def _shift(self, op: ir.Operation, memory: Value, offset: Size) -> None:
        """Redirects views of bytes of symbolic size, or at a symbolic offset, to the enclosing memory."""
        for view in users_of(op.results[0]):
            if view.name != "memref.view":
                raise RelayError(f"@{self.program.name}: {op.name} at {op.location}: expected views of its bytes, found {view.name}")
            with ir.InsertionPoint(view), view.location:
                # Inside its bytes a view may begin where only the data say.
                start = self.program.sizes.get(view.operands[1])
                if start is None:
                    view.operands[1] = emit.arith("addi", size_value(offset), view.operands[1])
                else:
                    view.operands[1] = size_value(offset + start)
            view.operands[0] = memory
        op.erase()

    def _pass_on(self, call: ir.Operation, callee: _ProgramMemory, offset: Size) -> None:
        """Passes a part of the arena, and the parameters, to a called program."""
        type_ = buffer_type([callee.arena_bytes], ir.IntegerType.get_signless(8))
        with ir.InsertionPoint(call), call.location:
            needed = self.program.bytes_for(call.opview, callee)
            assert needed is not None  # it has a place in the arena
            size = [] if type_.has_static_shape else [size_value(needed)]
            part = emit.create("memref.view", [type_], [self.arena, emit.index_constant(offset), *size])
        self._call(call, part)

    def _with_heap(self, call: ir.Operation, callee: _ProgramMemory) -> None:
        """Passes an arena in heap memory to a called program."""
        type_, i8 = buffer_type([callee.arena_bytes], ir.IntegerType.get_signless(8)), ir.IntegerType.get_signless(8)
        with ir.InsertionPoint(call), call.location:
            sizes = self.sizes.among(dict(zip(callee.symbols, callee.sizes_of(call), strict=True)))
            require_at_most(callee.arena_bytes, MAX_BYTES, f"{callee.name}: expected to need at most %lld bytes, found more", sizes)
            memory = memref.AllocOp(ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], i8), [sizes.value(callee.arena_bytes)], [])
            HEAP.mark(memory.operation)
            part = memory.result
            if type_.has_static_shape:
                part = emit.create("memref.view", [type_], [part, emit.index_constant(0)])
        made = self._call(call, part)
        with ir.InsertionPoint.after(made):
            HEAP.mark(memref.DeallocOp(memory.result).operation)

    def _call(self, call: ir.Operation, arena: Value) -> ir.Operation:
        """The call with its memory arguments."""
        with ir.InsertionPoint(call), call.location:
            types = [r.type for r in call.results]
            made = func.CallOp(types, call.attributes["callee"], [*call.operands, arena, self.params]).operation
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()
        return made


def _move(view: ir.Operation, memory: Value, offset: int) -> None:
    """Redirects a view of a buffer to the memory in which the buffer begins at an offset."""
    found = view.operands[1].owner.operation
    shift = ir.IntegerAttr(found.attributes["value"]).value + offset
    if len(list(found.results[0].uses)) == 1:
        found.attributes["value"] = ir.IntegerAttr.get(ir.IndexType.get(), shift)
    else:
        with ir.InsertionPoint(view), view.location:
            view.operands[1] = emit.index_constant(shift)
    view.operands[0] = memory
