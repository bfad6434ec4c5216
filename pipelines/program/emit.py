"""Programs as functions of the tir stage: calls on views of planned memory, in blocks.

A program becomes `func.func @f(inputs, outputs, %arena: memref<Nxi8>, %params: memref<Mxi8>)`. A branch or a loop becomes blocks without
arguments, as every tensor has its place. A program that can fail gives an i32: 0, or -1 where an error has been raised; after each call
that can fail it goes on, or to the block that returns -1. A recursive program takes one more argument, an i64: how many calls may still
nest. A packed function is declared here with its name, its tensors as callers see them, and that it gives an i32; its body comes with
the code generation (codegen.calls).
"""

from collections.abc import Callable

from relayc.dialects.functions import signature_of
from relayc.dialects.mlir import arith, cf, func, ir, memref
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.program.body import Body, Call, If, While
from relayc.pipelines.program.functions import Functions, dtypes_of, memref_type
from relayc.pipelines.program.kernels import Kernels
from relayc.pipelines.program.plan import Plan, Planned
from relayc.pipelines.tir import emit
from relayc.runtime.artifact import BufferRef

Value = ir.Value


class Emitter:
    """Emits the programs of a plan at the ambient insertion point."""

    def __init__(self, functions: Functions, kernels: Kernels, plan: Plan) -> None:
        self.functions, self.kernels, self.plan = functions, kernels, plan
        self.names = {*functions.kernels, *functions.programs, *functions.packed, *functions.tir}
        self._errors: dict[str, str] = {}

    def run(self) -> None:
        called = {item.callee for p in self.plan.programs.values() for item in p.items if isinstance(item, Call)}
        for name, function in self.functions.packed.items():
            if name in called:
                _declare_packed(name, function)
        for program in self.plan.programs.values():
            if program.max_depth:
                self._errors[program.name] = self._declare_error(program)
        for program in self.plan.programs.values():
            _Body(self, program).run()

    def types(self, program: Planned) -> list[ir.Type]:
        """Types of the arguments of a program."""
        signature = signature_of(program.program.function)
        i8 = ir.IntegerType.get_signless(8)
        types: list[ir.Type] = [memref_type(t) for t in (*signature.inputs, *signature.results)]
        types += [ir.MemRefType.get([size], i8) for size in (program.arena_bytes, self.plan.params_bytes)]
        return types + ([ir.IntegerType.get_signless(64)] if program.max_depth else [])

    def error(self, name: str) -> str:
        """The function that raises the error that too many calls of a program are nested."""
        return self._errors[name]

    def _declare_error(self, program: Planned) -> str:
        name = next(n for n in (f"{program.name}_too_deep{i or ''}" for i in range(len(self.names) + 1)) if n not in self.names)
        self.names.add(name)
        function = func.FuncOp(name, ([], []), visibility="private")
        message = f"{program.name}: expected at most {program.max_depth} nested calls, found more"
        function.attributes["relay.error"] = ir.ArrayAttr.get([ir.StringAttr.get(t) for t in ("RecursionError", message)])
        return name


def _declare_packed(name: str, function: ir.OpView) -> None:
    signature = signature_of(function)
    types = [memref_type(t) for t in (*signature.inputs, *signature.results)]
    declared = func.FuncOp(name, (types, [ir.IntegerType.get_signless(32)]), visibility="private")
    declared.attributes["relay.packed"] = function.attributes["relay.packed"]
    seen = [
        [TensorType(tuple(t.shape), d).to_mlir() for t, d in zip(tensors, dtypes_of(function, which), strict=True)]
        for tensors, which in ((signature.inputs, "input"), (signature.results, "output"))
    ]
    declared.attributes["relay.tensors"] = ir.TypeAttr.get(ir.FunctionType.get(*seen))


class _Body:
    """Emits one program."""

    def __init__(self, emitter: Emitter, program: Planned) -> None:
        self.emitter, self.program = emitter, program
        self.num_inputs = len(program.program.body.block.arguments)
        self.num_tensors = self.num_inputs + len(program.program.body.results)
        self._failed: ir.Block | None = None
        self._too_deep: dict[str, ir.Block] = {}

    def run(self) -> None:
        program = self.program
        results = [ir.IntegerType.get_signless(32)] if program.fails else []
        visibility = None if program.is_public else "private"
        self.function = func.FuncOp(program.name, (self.emitter.types(program), results), visibility=visibility)
        self.block = self.function.add_entry_block()
        self.arguments = list(self.block.arguments)
        self.body(program.program.body)
        self.append(self.block, lambda: self.give(0))
        for name, block in self._too_deep.items():
            self.append(block, lambda name=name: func.CallOp([], ir.FlatSymbolRefAttr.get(self.emitter.error(name)), []))
            self.append(block, lambda: cf.BranchOp([], self.failed))
        if self._failed is not None:
            self.append(self._failed, lambda: self.give(-1))

    def append(self, block: ir.Block, build: Callable[[], object]) -> None:
        with ir.InsertionPoint(block):
            build()

    def give(self, status: int) -> None:
        """Returns; a program that can fail, with a status."""
        i32 = ir.IntegerType.get_signless(32)
        func.ReturnOp([emit.constant(ir.IntegerAttr.get(i32, status), i32)] if self.program.fails else [])

    # ---- blocks

    def new_block(self) -> ir.Block:
        return self.function.regions[0].blocks.append()

    @property
    def failed(self) -> ir.Block:
        """The block that says that a call has failed."""
        if self._failed is None:
            self._failed = self.new_block()
        return self._failed

    def body(self, body: Body) -> None:
        """Emits a body from the current block on."""
        for item in body.items:
            if not self.program.is_needless(item):
                with item.op.operation.location:
                    {Call: self.call, If: self.branch, While: self.loop}[type(item)](item)

    def branch(self, item: If) -> None:
        then, otherwise, after = self.new_block(), self.new_block(), self.new_block()
        self.test(item.reference, then, otherwise)
        for block, body in ((then, item.then), (otherwise, item.otherwise)):
            self.block = block
            self.body(body)
            self.append(self.block, lambda: cf.BranchOp([], after))
        self.block = after

    def loop(self, item: While) -> None:
        before, body, after = self.new_block(), self.new_block(), self.new_block()
        self.append(self.block, lambda: cf.BranchOp([], before))
        self.block = before
        self.body(item.before)
        self.test(item.reference, body, after)
        self.block = body
        self.body(item.after)
        self.append(self.block, lambda: cf.BranchOp([], before))
        self.block = after

    def test(self, condition: BufferRef, true: ir.Block, false: ir.Block) -> None:
        """Ends the current block by a branch on a condition in memory."""
        with ir.InsertionPoint(self.block):
            buffer = self.view(condition, ir.MemRefType.get([], ir.IntegerType.get_signless(8)))
            bit = arith.TruncIOp(ir.IntegerType.get_signless(1), memref.LoadOp(buffer, []).result).result
            cf.CondBranchOp(bit, [], [], true, false)

    # ---- calls

    def call(self, call: Call) -> None:
        functions, name = self.emitter.functions, call.callee
        fails = name in functions.packed
        if name in functions.programs:
            callee = self.emitter.plan.programs[name]
            fails = callee.fails
            depth = self.depth(callee)
            types = self.emitter.types(callee)[: len(call.inputs) + len(call.outputs)]
        elif name in self.emitter.kernels.scheduled:
            types = list(signature_of(self.emitter.kernels.scheduled[name].function).inputs)
        else:
            signature = signature_of(functions.get(name))
            types = [memref_type(t) for t in (*signature.inputs, *signature.results)]
        with ir.InsertionPoint(self.block):
            operands = [self.view(ref, type_) for ref, type_ in zip((*call.inputs, *call.outputs), types, strict=True)]
            if name in functions.programs:
                arena = self.emitter.types(callee)[len(operands)]
                operands += [self.part_of_arena(call.arena, arena), self.arguments[self.num_tensors + 1], *depth]
            target = functions.implementation(name) if name in functions.standins else name
            made = func.CallOp([ir.IntegerType.get_signless(32)] if fails else [], ir.FlatSymbolRefAttr.get(target), operands)
            if self.program.max_depth and not self.program.is_nested(name):
                # Inlined, its stack would be taken once for every nested call.
                made.operation.attributes["no_inline"] = ir.UnitAttr.get()
        if fails:
            self.check(made.operation.results[0])

    def depth(self, callee: Planned) -> list[Value]:
        """The last operand of a call of a recursive program; a nested call where none may follow is an error."""
        if not callee.max_depth:
            return []
        i64 = ir.IntegerType.get_signless(64)
        nested = self.program.is_nested(callee.name)
        with ir.InsertionPoint(self.block):
            if not nested:
                return [emit.constant(ir.IntegerAttr.get(i64, callee.max_depth), i64)]
            left = self.arguments[-1]
            none = arith.CmpIOp(arith.CmpIPredicate.eq, left, emit.constant(ir.IntegerAttr.get(i64, 0), i64)).result
            if callee.name not in self._too_deep:
                self._too_deep[callee.name] = self.new_block()
            further = self.new_block()
            cf.CondBranchOp(none, [], [], self._too_deep[callee.name], further)
        self.block = further
        with ir.InsertionPoint(self.block):
            return [arith.SubIOp(left, emit.constant(ir.IntegerAttr.get(i64, 1), i64)).result]

    def check(self, status: Value) -> None:
        """Goes on in a new block where a call has not failed."""
        i32 = ir.IntegerType.get_signless(32)
        further = self.new_block()
        with ir.InsertionPoint(self.block):
            failed = arith.CmpIOp(arith.CmpIPredicate.ne, status, emit.constant(ir.IntegerAttr.get(i32, 0), i32)).result
            cf.CondBranchOp(failed, [], [], self.failed, further)
        self.block = further

    # ---- memory

    def view(self, ref: BufferRef, type_: ir.MemRefType) -> Value:
        """The memref that a call takes for a tensor."""
        if ref.space in ("input", "output"):
            return _reshaped(self.arguments[ref.index + (self.num_inputs if ref.space == "output" else 0)], type_)
        if ref.space == "arena":
            return self.part_of_arena(ref.offset, type_)
        return emit.create("memref.view", [type_], [self.arguments[self.num_tensors + 1], emit.index_constant(ref.offset)])

    def part_of_arena(self, offset: int, type_: ir.MemRefType) -> Value:
        return emit.create("memref.view", [type_], [self.arguments[self.num_tensors], emit.index_constant(offset)])


def _reshaped(buffer: Value, type_: ir.MemRefType) -> Value:
    if buffer.type == type_:
        return buffer
    strides: list[int] = []
    step = 1
    for extent in reversed(list(type_.shape)):
        strides.insert(0, step)
        step *= extent
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get([0]),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(type_.shape)),
        "static_strides": ir.DenseI64ArrayAttr.get(strides),
    }
    strided = ir.MemRefType.get(list(type_.shape), type_.element_type, ir.StridedLayoutAttr.get(0, strides))
    view = emit.create("memref.reinterpret_cast", [strided], [buffer], attributes)
    return emit.create("memref.cast", [type_], [view])
