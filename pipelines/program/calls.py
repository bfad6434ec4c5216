"""Final form of programs: branches and loops become basic blocks, and calls that can fail are checked.

The tensors of a program have their places (see plan): blocks take only sizes and heap memory. A program that can fail returns an i32: 0, or
-1 after an error has been raised; after each call that can fail it continues, or branches to the block that returns -1. A recursive program
takes one more argument, an i64: the number of calls that may still nest. The declaration of a packed function, and a kernel that may raise
an error, return an i32; the body of the former is generated later (llvm.calls). Globals of parameters are removed: their offsets in the
blob are known.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from relayc.dialects.discardable import ERROR, HEAP, MAX_DEPTH, PARAM_KEY
from relayc.dialects.functions import Names, extend_signature, signature_of
from relayc.dialects.mlir import cf, func, ir, memref, scf
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.later import Require
from relayc.dialects.relay.specializations import known_as
from relayc.pipelines.emission import emit
from relayc.pipelines.program.components import functions_of, gives_status, program_components, programs_of
from relayc.pipelines.program.turning import calls_in, split_turning

Value: TypeAlias = ir.Value


def emit_calls(module: ir.Module) -> None:
    """Emits the calls of the programs of a module whose memory is planned, in place."""
    with ir.Location.unknown():
        emitter = _Calls(module)
        for function in emitter.functions.values():
            if gives_status(function):
                _add_status(function)
        for name, function in programs_of(module).items():
            emitter.prepare(name, function)
        for name, function in programs_of(module).items():
            _ProgramCalls(emitter, name, function).run()
        for op in list(module.body.operations):
            if op.operation.name == "memref.global" and PARAM_KEY.on(op):
                op.operation.erase()


def max_depth(function: ir.OpView) -> int:
    """The limit of nested calls of a program; 0 if it is not recursive."""
    return MAX_DEPTH.get(function, 0)


class _Calls:
    """State shared by the programs of a module."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.functions = functions_of(module)
        self.components = {name: component for component in program_components(module) for name in component.names}
        self._names = Names(module)
        self.turning = split_turning(list(self.functions.values()), self._names)
        self.too_deep: dict[str, str] = {}
        """The functions that raise the recursion errors of programs."""

    def prepare(self, name: str, function: ir.OpView) -> None:
        """Sets the type of a program, on which its calls rely."""
        depth = [ir.IntegerType.get_signless(64)] if max_depth(function) else []
        extend_signature(function, depth)
        if self.components[name].fails:
            _give_status(function)
        if depth:
            message = f"{known_as(function)}: expected at most {max_depth(function)} nested calls, found more"
            self.too_deep[name] = self.declare_error(f"{name}_too_deep", "RecursionError", message, 0)

    def fails(self, name: str) -> bool:
        """Whether a call of a function can raise an error."""
        if name in self.components:
            return self.components[name].fails
        return name in self.functions and gives_status(self.functions[name])

    def declare_error(self, name: str, kind: str, message: str, count: int) -> str:
        """Declares a function that raises an error of a kind; it takes as many sizes as the message has `%lld`."""
        error = self._names.free(name)
        with ir.InsertionPoint.at_block_begin(self.module.body):
            declared = func.FuncOp(error, ([ir.IndexType.get()] * count, []), visibility="private")
        ERROR.put(declared, (kind, message))
        return error


def _add_status(function: ir.OpView) -> None:
    """Makes an i32 the result of a function that is not a program: 0 if it has a body, to be replaced in its lowering."""
    i32 = ir.IntegerType.get_signless(32)
    extend_signature(function, [], [i32])
    if not function.is_external:
        block = function.regions[0].blocks[0]
        last_operation(block).operation.erase()
        with ir.InsertionPoint(block), function.operation.location:
            func.ReturnOp([emit.number(0, i32)])


def _give_status(function: ir.OpView) -> None:
    """Makes an i32 the first result of a function; its return is built later."""
    signature = signature_of(function)
    results = [ir.IntegerType.get_signless(32), *signature.results]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(signature.inputs, results))
    if "res_attrs" in function.attributes:
        function.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get({}), *ir.ArrayAttr(function.attributes["res_attrs"])])


class _ProgramCalls:
    """Emits the calls of one program. Operations move to the current block in the order of the text."""

    def __init__(self, calls: _Calls, name: str, function: ir.OpView) -> None:
        self.calls, self.name, self.function = calls, name, function
        self.depth = max_depth(function)
        self.block = function.regions[0].blocks[0]
        self.arguments = list(self.block.arguments)
        self.results = list(last_operation(self.block).operation.operands)
        self._given: list[list[Value]] = [self.results]
        """The results of the program, and the enclosing blocks, whose terminators are erased."""
        self._failed: ir.Block | None = None
        self._too_deep: dict[str, ir.Block] = {}
        self._releasing: dict[tuple[ir.Block, Value], ir.Block] = {}
        """Blocks that free a value and branch to another block."""
        self.owned: list[Value] = []
        """Live heap memory: a failure here frees it."""
        self.turn: Value | None = None
        """The traversal direction of the kernels called here (see turning)."""

    def run(self) -> None:
        self.body(self.block)
        self.append(self.block, lambda: self.give(0))
        for name, block in self._too_deep.items():
            self.append(block, partial(func.CallOp, [], ir.FlatSymbolRefAttr.get(self.calls.too_deep[name]), []))
            self.append(block, lambda: cf.BranchOp([], self.failed))
        if self._failed is not None:
            self.append(self._failed, lambda: self.give(-1))

    def append(self, block: ir.Block, build: Callable[[], object]) -> None:
        with ir.InsertionPoint(block):
            build()

    def give(self, status: int) -> None:
        """Returns; if the program can fail, with a status first."""
        i32 = ir.IntegerType.get_signless(32)
        found = self.results if status == 0 else [emit.create("ub.poison", [v.type], []) for v in self.results]
        func.ReturnOp([*([emit.number(status, i32)] if self.calls.fails(self.name) else []), *found])

    # ---- blocks

    def new_block(self, arguments: Sequence[ir.Type] = ()) -> ir.Block:
        return self.function.regions[0].blocks.append(*arguments)

    @property
    def failed(self) -> ir.Block:
        """The block that returns a failure."""
        if self._failed is None:
            self._failed = self.new_block()
        return self._failed

    def body(self, block: ir.Block) -> list[Value]:
        """Emits the operations of a block, except its terminator, starting in the current block; returns the terminator's operands."""
        *operations, terminator = list(block.operations)
        inner = self.block != block
        if not inner:  # the function's return values are in `results`
            terminator.operation.erase()
        for op in operations:
            if self.block != block:
                self.block.append(op.operation)
            if isinstance(op, scf.IfOp):
                self.branch(op)
            elif isinstance(op, scf.WhileOp):
                self.loop(op)
            elif isinstance(op, func.CallOp):
                self.call(op)
            elif op.operation.name == "memref.alloc" and HEAP.on(op):
                self.allocation(op)
            elif op.operation.name == "memref.dealloc":
                self.owned = [v for v in self.owned if v != op.operation.operands[0]]
            elif op.operation.name == Require.OPERATION_NAME:
                self.requirement(op)
        if not inner:
            return []
        # Calls were rebuilt, so the terminator's operands are read only now.
        given = list(terminator.operation.operands)
        terminator.operation.erase()
        return given

    def branch(self, op: scf.IfOp) -> None:
        then, otherwise, after = self.new_block(), self.new_block(), self.new_block([r.type for r in op.operation.results])
        with op.operation.location:
            self.append(self.block, lambda: cf.CondBranchOp(op.operation.operands[0], [], [], then, otherwise))
            for block, region in zip((then, otherwise), op.operation.regions, strict=True):
                self.block, before = block, list(self.owned)
                given = self.body(region.blocks[0]) if len(region.blocks) else []
                self.owned = before
                self.append(self.block, partial(cf.BranchOp, given, after))
        self.replace(op.operation, after)
        self.block = after
        self.own(after.arguments)

    def own(self, values: Iterable[Value]) -> None:
        """Records memory that calls, branches and loops return."""
        self.owned += [v for v in values if isinstance(v.type, ir.MemRefType)]

    def replace(self, op: ir.Operation, block: ir.Block) -> None:
        """Replaces the results of an operation by the arguments of a block, and erases it."""
        for result, argument in zip(op.results, block.arguments, strict=True):
            self.replace_value(result, argument)
        op.erase()

    def replace_value(self, old: Value, new: Value) -> None:
        old.replace_all_uses_with(new)
        for given in self._given:
            given[:] = [new if v == old else v for v in given]

    def loop(self, op: scf.WhileOp) -> None:
        types = [r.type for r in op.operation.results]
        first, second = (region.blocks[0] for region in op.operation.regions)
        turns = bool(self.calls.turning) and not self.calls.turning.keys().isdisjoint(calls_in(second))
        before, body, after = self.new_block([*types, *[ir.IndexType.get()] * turns]), self.new_block(), self.new_block()
        # Carried values are the arguments of the first block, which the second block and the code after the loop use.
        for values in (first.arguments, second.arguments, op.operation.results):
            for value, carried in zip(list(values), list(before.arguments)[: len(types)], strict=True):
                self.replace_value(value, carried)
        outside = self.turn
        with op.operation.location:
            self.append(self.block, lambda: cf.BranchOp([*op.operation.operands, *self.ways(0, turns)], before))
            self.block = before
            self.owned = [v for v in self.owned if v not in list(op.operation.operands)]
            self.own(before.arguments)
            carried_on = list(self.owned)
            condition = self.body(first)[0]
            self.append(self.block, lambda: cf.CondBranchOp(condition, [], [], body, after))
            self.block, self.turn = body, before.arguments[len(types)] if turns else None
            given = self.body(second)
            self.append(self.block, lambda: cf.BranchOp([*given, *self.ways(1, turns)], before))
            self.owned, self.turn = carried_on, outside
        op.operation.erase()
        self.block = after

    def ways(self, first: int, turns: bool) -> list[Value]:
        """The loop-carried direction of kernels: the other one, or the initial one."""
        if not turns:
            return []
        one = emit.number(first, ir.IndexType.get())
        return [one if first == 0 else emit.arith("xori", self.turn, one)]

    # ---- calls

    def call(self, op: func.CallOp) -> None:
        """Emits a call, at present the last operation of the current block."""
        if self.turn is not None and op.callee.value in self.calls.turning:
            op = self.turned(op)
        name = op.callee.value
        fails, callee = self.calls.fails(name), self.calls.functions.get(name)
        depth = max_depth(callee) if callee is not None else 0
        nested = self.calls.components[self.name].is_nested(name)
        with op.operation.location:
            made = op.operation
            if fails or depth:
                operands = [*op.operation.operands, *self.left(name, depth, nested, made)]
                status = [ir.IntegerType.get_signless(32)] if fails else []
                types = [r.type for r in op.operation.results]
                with ir.InsertionPoint(self.block):
                    made = func.CallOp([*status, *types], op.operation.attributes["callee"], operands).operation
                for old, new in zip(op.operation.results, list(made.results)[len(status) :], strict=True):
                    self.replace_value(old, new)
                op.operation.erase()
            if self.depth and not nested:
                # Inlined, its stack frame would be repeated for every nested call.
                made.attributes["no_inline"] = ir.UnitAttr.get()
            if fails:
                self.check(made.results[0])
            self.own(made.results)

    def turned(self, op: func.CallOp) -> func.CallOp:
        """Replaces a call of a kernel that supports both directions."""
        with op.operation.location, ir.InsertionPoint(op):
            name = ir.FlatSymbolRefAttr.get(self.calls.turning[op.callee.value])
            made = func.CallOp([], name, [*op.operation.operands, self.turn])
        op.operation.erase()
        return made

    def left(self, callee: str, depth: int, nested: bool, call: ir.Operation) -> list[Value]:
        """The last operand of a call of a recursive program; a nested call beyond the limit is an error."""
        if not depth:
            return []
        i64 = ir.IntegerType.get_signless(64)
        if not nested:
            with ir.InsertionPoint(call):
                return [emit.number(depth, i64)]
        left = self.arguments[-1]
        if callee not in self._too_deep:
            self._too_deep[callee] = self.new_block()
        further = self.new_block()
        with ir.InsertionPoint(call):
            none = emit.compare("eq", left, emit.number(0, i64))
        further.append(call)
        deep = self.releasing(self._too_deep[callee])
        self.append(self.block, lambda: cf.CondBranchOp(none, [], [], deep, further))
        self.block = further
        with ir.InsertionPoint(call):
            return [emit.arith("subi", left, emit.number(1, i64))]

    def allocation(self, op: ir.OpView) -> None:
        """Continues if an allocation succeeded; it is at present the last operation of the current block."""
        result = op.operation.results[0]
        with ir.InsertionPoint(self.block), op.operation.location:
            address = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [result])
            there = emit.compare("ne", address, emit.index_constant(0))
        message = f"{known_as(self.function)}: expected memory for a tensor of %lld bytes, found none"
        self.demand(there, "MemoryError", message, [op.operation.operands[0]])
        self.own([result])

    def requirement(self, op: ir.OpView) -> None:
        """Continues if sizes satisfy a requirement."""
        found, expected = op.operation.operands
        predicate, message = (ir.StringAttr(op.attributes[name]).value for name in ("predicate", "message"))
        with ir.InsertionPoint(self.block), op.operation.location:
            holds = emit.compare({"eq": "eq", "ge": "sge", "le": "sle"}[predicate], found, expected)
        op.operation.erase()
        self.demand(holds, "ValueError", f"{known_as(self.function)}: {message}", [found, expected][: message.count("%lld")])

    def demand(self, condition: Value, kind: str, message: str, sizes: Sequence[Value]) -> None:
        """Continues in a new block if a condition holds; otherwise raises an error."""
        further, bad = self.new_block(), self.new_block()
        error = self.calls.declare_error(f"{self.name}_error", kind, message, len(sizes))
        self.append(self.block, lambda: cf.CondBranchOp(condition, [], [], further, bad))
        self.append(bad, lambda: func.CallOp([], ir.FlatSymbolRefAttr.get(error), list(sizes)))
        self.append(bad, lambda: cf.BranchOp([], self.releasing(self.failed)))
        self.block = further

    def releasing(self, block: ir.Block) -> ir.Block:
        """A block for failures, or one before it that frees live heap memory.

        Earlier memory is freed last, by blocks shared with earlier failures: freeing everything separately at each place would need places
        times tensors operations.
        """
        for memory in self.owned:
            key = block, memory
            before = self._releasing.get(key)
            if before is None:
                before = self._releasing[key] = self.new_block()
                self.append(before, partial(memref.DeallocOp, memory))
                self.append(before, partial(cf.BranchOp, [], block))
            block = before
        return block

    def check(self, status: Value) -> None:
        """Continues in a new block if a call has not failed."""
        i32 = ir.IntegerType.get_signless(32)
        further = self.new_block()
        with ir.InsertionPoint(self.block):
            failed = emit.compare("ne", status, emit.number(0, i32))
            cf.CondBranchOp(failed, [], [], self.releasing(self.failed), further)
        self.block = further
