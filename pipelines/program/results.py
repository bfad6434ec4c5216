"""Materializes results: every result of a block has its own memory, written by one call of the block.

After this pass, in every block of a program,

- each operand of func.return and of a branch's yield, and each initial value of a loop, is the result of a call, a branch or a loop of the
  same block (or a reshape of it) that has no other such use; an initial value is not read after the loop has begun;
- none of these has a late size where a size known before is expected;
- an operand of a loop's yield is such a result too, or the loop's own argument at that position, and all reads of that argument precede the
  call that writes the result: the call can write to the argument's memory. A kernel that updates the argument (see te.read.updates) may
  read it.

Otherwise calls of copy kernels are inserted: before a loop, and at the end of a block. At the end of a loop's body they are ordered so that
nothing is overwritten before it is read; arguments that are permuted cyclically need one more copy.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from relayc.dialects.discardable import INPUT_DTYPES, OPERATORS, OUTPUT_DTYPES, PARAM, SOURCES
from relayc.dialects.functions import Names
from relayc.dialects.mlir import func, ir, tensor
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType, shape_of
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.emission.sizes import function_sizes, symbol_attributes
from relayc.pipelines.program.functions import Functions, dtypes_of, read_functions
from relayc.pipelines.program.tree import Call, If, Item, ProgramBlock, ProgramTree, While, bodies_of, items_of, read_program, within
from relayc.pipelines.te.read.updates import mark_updates
from relayc.pipelines.te.rules import core
from relayc.symbolic import symbol

Value: TypeAlias = ir.Value


@module_pass(opt_level=0, name="MaterializeResults", stage="te")
def materialize_results(mod: IRModule, ctx: PassContext) -> IRModule:
    """Copies results that are not a program's own memory, such as inputs and parameters (pipelines.program.results).

    Raises RelayError for an invalid program.
    """
    functions = read_functions(mod.module)
    kernels = _CopyKernels(mod.module)
    for function in functions.programs.values():
        _Copying(read_program(function), functions, kernels).run()
    return mod


def check_results(program: ProgramTree, functions: Functions) -> None:
    """Raises RelayError if a program lacks a needed copy."""
    _Results(program, functions).run()


def is_update(program: ProgramTree, functions: Functions, body: ProgramBlock, argument: Value, result: Value) -> bool:
    """Whether a call computes `result` by updating an argument of a loop's body that nothing else reads afterwards."""
    call = next((item for item in body.items if isinstance(item, Call) and result in item.made), None)
    if call is None or (position := functions.updates(call.callee).get(call.made.index(result))) is None:
        return False
    reads, read = _Reads(program, body), [program.root(v) for v in call.reads]
    is_last = reads.last(argument) == body.items.index(call) and argument not in reads.at_end
    return is_last and read[position] == argument and read.count(argument) == 1


@dataclass
class _OperandUse:
    """An operand that needs its own memory: number `index` of `op`, called `name` in errors."""

    op: ir.Operation
    index: int
    name: str

    @property
    def value(self) -> Value:
        return self.op.operands[self.index]


class _Results:
    """Finds operands that need a copy; each is an error."""

    def __init__(self, program: ProgramTree, functions: Functions) -> None:
        self.program, self.functions = program, functions

    def copy(self, place: _OperandUse, body: ProgramBlock, position: int) -> None:
        """Called for an operand that needs a copy, before the item of a body at a position."""
        raise RelayError(
            f"{place.name} of {self.program.name}: expected the result of a kernel that stands there only (run materialize-results)"
        )

    def end(self, body: ProgramBlock, pending: list[_OperandUse]) -> None:
        """Called for the operands of a loop's yield that need a copy."""
        for place in pending:
            self.copy(place, body, len(body.items))

    def update(self, body: ProgramBlock, root: Value) -> None:
        """Called for a result that a call writes to the memory of the argument that it updates."""

    def run(self) -> None:
        loops = [item for item in items_of(self.program.body) if isinstance(item, While)]
        conditions, carrying = {loop.before for loop in loops}, {loop.after for loop in loops}
        for body in bodies_of(self.program.body):
            if body.block is not None:
                taken = self.inits(body)
                if body in carrying:
                    self.carried(body, taken)
                elif body not in conditions:
                    self.given(body, taken)

    def inits(self, body: ProgramBlock) -> set[Value]:
        """Checks initial values of the loops of a block; returns them."""
        taken: set[Value] = set()
        for loop in [item for item in body.items if isinstance(item, While)]:
            operation = loop.op.operation
            for i in range(len(loop.reads)):
                place = _OperandUse(operation, i, f"what the loop at {operation.location} begins with as argument {i}")
                root = self.program.root(place.value)
                is_own = root not in taken and _is_made_in(body, root) and not self.is_read_after(body, loop, root)
                if not is_own or (self.program.is_late(root) and not self.program.is_late(loop.before.arguments[i])):
                    self.copy(place, body, body.items.index(loop))
                taken.add(self.program.root(place.value))
        return taken

    def given(self, body: ProgramBlock, taken: set[Value]) -> None:
        """Checks the results of a function or a branch."""
        terminator = last_operation(body.block).operation
        kind = "result {}" if terminator.name == "func.return" else f"result {{}} of the branch at {terminator.parent.location}"
        for i in range(len(body.given)):
            place = _OperandUse(terminator, i, kind.format(i))
            root = self.program.root(place.value)
            is_late = self.program.is_late(root) and not self.is_late_result(terminator, i)
            if root in taken or not _is_made_in(body, root) or is_late:
                self.copy(place, body, len(body.items))
            taken.add(self.program.root(place.value))

    def is_late_result(self, terminator: ir.Operation, index: int) -> bool:
        """Whether the result of a function or a branch is late for its user: a late tensor may be used where a known size is expected."""
        if terminator.name != "func.return":
            return self.program.is_late(terminator.parent.operation.results[index])
        return not TensorType.from_mlir(terminator.operands[index].type).symbols.issubset(self.program.symbols)

    def carried(self, body: ProgramBlock, taken: set[Value]) -> None:
        """Checks the operands of a loop's yield: a value written after the last read of the argument that it replaces may use its
        memory."""
        terminator = last_operation(body.block).operation
        reads = _Reads(self.program, body)
        roots = [self.program.root(v) for v in body.given]
        pending = []
        for i, (root, argument) in enumerate(zip(roots, body.arguments, strict=True)):
            if root == argument:
                continue
            fresh = root not in taken and _is_made_in(body, root) and (self.program.is_late(argument) or not self.program.is_late(root))
            if fresh and is_update(self.program, self.functions, body, argument, root):
                self.update(body, root)
                taken.add(root)
                continue
            # A late tensor has its own memory in every iteration: it overwrites nothing.
            if fresh and (self.program.is_late(argument) or (argument not in roots and reads.last(argument) < reads.first_write(root))):
                taken.add(root)
            else:
                pending.append(_OperandUse(terminator, i, f"what the loop at {terminator.parent.location} yields as argument {i}"))
        self.end(body, pending)

    def is_read_after(self, body: ProgramBlock, loop: While, root: Value) -> bool:
        """Whether a value is read in the loop, other than as one of its initial values, or after it."""
        reads = _Reads(self.program, body)
        firsts = [self.program.root(v) for v in loop.reads]
        last = reads.last(root) > body.items.index(loop)
        return last or firsts.count(root) > 1 or root in reads.inside(loop) or root in reads.at_end


def _is_made_in(body: ProgramBlock, root: Value) -> bool:
    return any(root in item.made for item in body.items)


class _Reads:
    """The values that the items of a block read, by position."""

    def __init__(self, program: ProgramTree, body: ProgramBlock) -> None:
        self.program = program
        self.at_end = {program.root(v) for v in body.given}
        self._last: dict[Value, int] = {}
        self._maker: dict[Value, tuple[int, Item]] = {}
        for position, item in enumerate(body.items):
            for root in self.inside(item) | self.roots(item.reads):
                self._last[root] = position
            self._maker.update((result, (position, item)) for result in item.made)

    def roots(self, values: Iterable[Value]) -> set[Value]:
        return {self.program.root(v) for v in values}

    def last(self, root: Value) -> int:
        """Position of the last item that reads a value; -1 if none does. The terminator is not an item."""
        return self._last.get(root, -1)

    def first_write(self, root: Value) -> int:
        """Position of the item that first writes the memory of a result of the block: a loop's memory holds its initial values before."""
        position, item = self._maker[root]
        if isinstance(item, While):
            number = item.made.index(root)
            return self.first_write(self.program.root(item.reads[number]))
        return position

    def inside(self, item: Item) -> set[Value]:
        """The values read within an item."""
        found = (
            {self.program.root(item.condition)} if isinstance(item, While) else self.roots(item.reads) if isinstance(item, If) else set()
        )
        for body in within(item):
            found |= self.roots(body.given)
            for inner in body.items:
                found |= self.inside(inner) | self.roots(inner.reads)
        return found


# ---- copies -----------------------------------------------------------------------------------------------------------------------


class _Copying(_Results):
    """Inserts a copy for each operand that needs one."""

    def __init__(self, program: ProgramTree, functions: Functions, kernels: "_CopyKernels") -> None:
        super().__init__(program, functions)
        self.dtypes, self.kernels = _Dtypes(program, functions), kernels

    def update(self, body: ProgramBlock, root: Value) -> None:
        for item in body.items:
            if isinstance(item, Call) and root in item.made:
                mark_updates(self.functions.kernels[item.callee], self.functions.updates(item.callee))

    def copy(self, place: _OperandUse, body: ProgramBlock, position: int) -> None:
        value = place.value
        before = body.items[position].op.operation if position < len(body.items) else last_operation(body.block).operation
        with ir.InsertionPoint(before), before.location:
            made = self.kernels.call(value, self.dtypes.of(value, place), self.program.root(value) in self.program.constants)
            result, copied = made.operation.results[0], made.operation.operands[0]
            if copied.type != value.type:
                self.program.sources[copied] = value  # the copy reads the value, although through a cast
            body.items.insert(position, Call(made))
            if result.type != value.type:
                self.program.sources[cast := tensor.CastOp(value.type, result).result] = result
                result = cast
        place.op.operands[place.index] = result

    def end(self, body: ProgramBlock, pending: list[_OperandUse]) -> None:
        """Copies at the end of a loop's body: a copy that overwrites an argument comes after the copies that read it."""
        arguments = body.arguments
        while pending:
            read = [self.program.root(p.value) for p in pending]
            free = next((p for p in pending if arguments[p.index] not in read), None)
            if free is not None:
                self.copy(free, body, len(body.items))
                pending.remove(free)
                continue
            # A cycle: one argument is saved elsewhere, so that it can be overwritten.
            for place, root in zip(pending, read, strict=True):
                if root == arguments[pending[0].index]:
                    self.copy(place, body, len(body.items))


class _Dtypes:
    """Element type names of the values of a program, as callers see them, because te tensors are signless."""

    def __init__(self, program: ProgramTree, functions: Functions) -> None:
        self.program, self.functions = program, functions
        self.known = dict(zip(program.inputs, dtypes_of(program.function, "input"), strict=True))
        self.like: dict[Value, Value] = {}
        self.results = dtypes_of(program.function, "output")
        for item in items_of(program.body):
            results = item.made
            if isinstance(item, Call):
                self.known.update(zip(results, dtypes_of(functions.get(item.callee), "output"), strict=True))
            elif isinstance(item, If):
                self.like.update(zip(results, item.then.given, strict=True))
            elif isinstance(item, While):
                for values in (item.before.arguments, item.after.arguments, results):
                    self.like.update(zip(values, item.reads, strict=True))

    def of(self, value: Value, place: _OperandUse | None = None) -> str:
        """The dtype of a value; for an operand of a function's return the dtype of the function's result."""
        if place is not None and place.op.name == "func.return":
            return self.results[place.index]
        root = self.program.root(value)
        while root in self.like:
            root = self.program.root(self.like[root])
        return self.known.get(root) or TensorType.from_mlir(value.type).dtype


class _CopyKernels:
    """Kernels that copy a tensor, created on demand: one for each type, separately for parameters."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.names = Names(module)
        self.made: dict[tuple[TensorType, bool], str] = {}

    def call(self, value: Value, dtype: str, is_param: bool) -> func.CallOp:
        """Builds a call that copies a value, at the ambient insertion point. Its result has the type of the value."""
        shape = shape_of(value.type)
        changing = [i for i, d in enumerate(shape) if not isinstance(d, int)]
        # The kernel has its own symbols: one for each dynamic size.
        type_ = TensorType(tuple(symbol(f"d{i:02}") if i in changing else d for i, d in enumerate(shape)), dtype)
        if (type_, is_param) not in self.made:
            self.made[type_, is_param] = self.make(type_, is_param)
        wanted = core.te_type(type_)
        given = value if value.type == wanted else tensor.CastOp(wanted, value).result
        sizes = [tensor.DimOp(value, core.index_constant(i)).result for i in changing]
        return func.CallOp([wanted], ir.FlatSymbolRefAttr.get(self.made[type_, is_param]), [given, *sizes])

    def make(self, type_: TensorType, is_param: bool) -> str:
        name, symbols = self.names.free("fused_copy"), sorted(type_.symbols)
        copied, index = core.te_type(type_), ir.IndexType.get()
        with ir.InsertionPoint.at_block_begin(self.module.body), ir.Location.unknown():
            function = func.FuncOp(name, ([copied, *[index] * len(symbols)], [copied]), visibility="private")
            function.arg_attrs = [ir.DictAttr.get(PARAM.entry(is_param)), *symbol_attributes(symbols)]
            with ir.InsertionPoint(function.add_entry_block()), function_sizes(function):
                func.ReturnOp([core.parallel(type_, [function.arguments[0]], lambda x: x)])
        attributes = {OPERATORS: "copy", SOURCES: "result", INPUT_DTYPES: type_.dtype, OUTPUT_DTYPES: type_.dtype}
        for attribute, text in attributes.items():
            attribute.put(function, (text,))
        return name
