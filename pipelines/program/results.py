"""Who writes what a program gives: every result of a block is memory of its own, which one call of the block writes.

After this pass, in every block of a program,

  - what func.return returns, what a branch yields and what a loop begins with is the result of a call, a branch or a loop of the same block
    (or a reshape of it) that stands in this one place only; what a loop begins with is not read once the loop has begun;
  - what a loop yields is such a result too, or the loop's own argument of that place, and all reads of that argument come before the call
    that writes the result: the call can write where the argument is.

Where a program does not have this form, calls of kernels that copy are put in: before a loop, and at the end of a block. At the end of a
loop's body, they come in an order in which nothing is overwritten before it is read; arguments that change places in a ring take one copy
more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from relayc.dialects.functions import Names, strings_attribute
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.program.body import Body, Call, If, Item, Program, While, bodies_of, items_of, read_program, within
from relayc.pipelines.program.functions import Functions, dtypes_of, read_functions
from relayc.pipelines.te import core

Value: TypeAlias = ir.Value


def materialize_results(mod: IRModule) -> IRModule:
    """Puts in the copies that the programs of a te module need, in place. Raises RelayError for a program that is none."""
    with mod.context, ir.Location.unknown():
        functions = read_functions(mod.module)
        kernels = _CopyKernels(mod.module)
        for function in functions.programs.values():
            program = read_program(function)
            _Copying(program, _Dtypes(program, functions), kernels).run()
    return mod


def check_results(program: Program) -> None:
    """Raises RelayError where a program needs a copy that is not there."""
    _Results(program).run()


@dataclass
class _Place:
    """An operand that needs memory of its own: number `index` of `op`, called `name` in errors."""

    op: ir.Operation
    index: int
    name: str

    @property
    def value(self) -> Value:
        return self.op.operands[self.index]


class _Results:
    """Finds the places whose value is not written for them alone; each is an error."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def copy(self, place: _Place, body: Body, position: int) -> None:
        """Called for a place that needs a copy, before the item of a body at a position."""
        raise RelayError(
            f"{place.name} of {self.program.name}: expected the result of a kernel that stands there only (run materialize-results)"
        )

    def end(self, body: Body, pending: list[_Place]) -> None:
        """Called for the places of a loop's yield that need a copy."""
        for place in pending:
            self.copy(place, body, len(body.items))

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

    def inits(self, body: Body) -> set[Value]:
        """What the loops of a block begin with; returns the values that stand there."""
        taken: set[Value] = set()
        for loop in [item for item in body.items if isinstance(item, While)]:
            operation = loop.op.operation
            for i in range(len(operation.operands)):
                place = _Place(operation, i, f"what the loop at {operation.location} begins with as argument {i}")
                root = self.program.root(place.value)
                if root in taken or not _is_made_in(body, root) or self.is_read_after(body, loop, root):
                    self.copy(place, body, body.items.index(loop))
                taken.add(self.program.root(place.value))
        return taken

    def given(self, body: Body, taken: set[Value]) -> None:
        """What a function or a branch gives."""
        terminator = _terminator(body.block)
        kind = "result {}" if terminator.name == "func.return" else f"result {{}} of the branch at {terminator.parent.location}"
        for i in range(len(terminator.operands)):
            place = _Place(terminator, i, kind.format(i))
            root = self.program.root(place.value)
            if root in taken or not _is_made_in(body, root):
                self.copy(place, body, len(body.items))
            taken.add(self.program.root(place.value))

    def carried(self, body: Body, taken: set[Value]) -> None:
        """What a loop yields: a value that is written after the last read of the argument that it replaces stands where that is."""
        terminator = _terminator(body.block)
        reads = _Reads(self.program, body)
        roots = [self.program.root(v) for v in terminator.operands]
        pending = []
        for i, (root, argument) in enumerate(zip(roots, body.arguments, strict=True)):
            if root == argument:
                continue
            fresh = root not in taken and _is_made_in(body, root) and argument not in roots
            if fresh and reads.last(argument) < reads.first_write(root):
                taken.add(root)
            else:
                pending.append(_Place(terminator, i, f"what the loop at {terminator.parent.location} yields as argument {i}"))
        self.end(body, pending)

    def is_read_after(self, body: Body, loop: While, root: Value) -> bool:
        """Whether a value is read in the loop, other than as one of its first values, or by what comes after it."""
        reads = _Reads(self.program, body)
        firsts = [self.program.root(v) for v in loop.op.operation.operands]
        last = reads.last(root) > body.items.index(loop)
        return last or firsts.count(root) > 1 or root in reads.inside(loop) or root in reads.at_end


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _is_made_in(body: Body, root: Value) -> bool:
    return any(root in list(item.op.operation.results) for item in body.items)


class _Reads:
    """Which values the items of a block read, by position."""

    def __init__(self, program: Program, body: Body) -> None:
        self.program = program
        self.at_end = {program.root(v) for v in body.results}
        self._last: dict[Value, int] = {}
        self._maker: dict[Value, tuple[int, Item]] = {}
        for position, item in enumerate(body.items):
            for root in self.inside(item) | self.roots(item.op.operation.operands):
                self._last[root] = position
            self._maker.update((result, (position, item)) for result in item.op.operation.results)

    def roots(self, values: Iterable[Value]) -> set[Value]:
        return {self.program.root(v) for v in values}

    def last(self, root: Value) -> int:
        """Position of the last item that reads a value; -1 where none does. The terminator is not an item."""
        return self._last.get(root, -1)

    def first_write(self, root: Value) -> int:
        """Position of the item that first writes the memory of a result of the block: that of a loop holds what the loop begins with."""
        position, item = self._maker[root]
        if isinstance(item, While):
            number = list(item.op.operation.results).index(root)
            return self.first_write(self.program.root(item.op.operation.operands[number]))
        return position

    def inside(self, item: Item) -> set[Value]:
        """What is read within an item."""
        found = set() if isinstance(item, Call) else {self.program.root(item.condition)}
        for body in within(item):
            found |= self.roots(body.results)
            for inner in body.items:
                found |= self.inside(inner) | self.roots(inner.op.operation.operands)
        return found


# ---- copies -----------------------------------------------------------------------------------------------------------------------


class _Copying(_Results):
    """Puts in a copy for each place that needs one."""

    def __init__(self, program: Program, dtypes: "_Dtypes", kernels: "_CopyKernels") -> None:
        super().__init__(program)
        self.dtypes, self.kernels = dtypes, kernels

    def copy(self, place: _Place, body: Body, position: int) -> None:
        value = place.value
        before = body.items[position].op.operation if position < len(body.items) else _terminator(body.block)
        with ir.InsertionPoint(before), before.location:
            made = self.kernels.call(value, self.dtypes.of(value, place), self.program.root(value) in self.program.constants)
        body.items.insert(position, Call(made))
        place.op.operands[place.index] = made.operation.results[0]

    def end(self, body: Body, pending: list[_Place]) -> None:
        """Copies at the end of a loop's body: one that overwrites an argument comes after those that read it."""
        arguments = body.arguments
        while pending:
            read = [self.program.root(p.value) for p in pending]
            free = next((p for p in pending if arguments[p.index] not in read), None)
            if free is not None:
                self.copy(free, body, len(body.items))
                pending.remove(free)
                continue
            # A ring: one argument is kept elsewhere, so that it can be overwritten.
            for place, root in zip(pending, read, strict=True):
                if root == arguments[pending[0].index]:
                    self.copy(place, body, len(body.items))


class _Dtypes:
    """Element type names of the values of a program, as callers see them: te tensors are signless."""

    def __init__(self, program: Program, functions: Functions) -> None:
        self.program, self.functions = program, functions
        self.known = dict(zip(program.inputs, dtypes_of(program.function, "input"), strict=True))
        self.like: dict[Value, Value] = {}
        self.results = dtypes_of(program.function, "output")
        for item in items_of(program.body):
            results = item.op.operation.results
            if isinstance(item, Call):
                self.known.update(zip(results, dtypes_of(functions.get(item.callee), "output"), strict=True))
            elif isinstance(item, If):
                self.like.update(zip(results, item.then.results, strict=True))
            else:
                for values in (item.before.arguments, item.after.arguments, results):
                    self.like.update(zip(values, item.op.operation.operands, strict=True))

    def of(self, value: Value, place: _Place | None = None) -> str:
        """Of a value; of what a function returns there, for a place in its return."""
        if place is not None and place.op.name == "func.return":
            return self.results[place.index]
        root = self.program.root(value)
        while root in self.like:
            root = self.program.root(self.like[root])
        return self.known.get(root) or TensorType.from_mlir(value.type).dtype


class _CopyKernels:
    """Kernels that copy a tensor, made when they are needed: one for each type, and for parameters and other tensors."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.names = Names(module)
        self.made: dict[tuple[TensorType, bool], str] = {}

    def call(self, value: Value, dtype: str, is_param: bool) -> func.CallOp:
        """Builds a call that copies a value, at the ambient insertion point."""
        type_ = TensorType.from_mlir(value.type).with_dtype(dtype)
        if (type_, is_param) not in self.made:
            self.made[type_, is_param] = self.make(type_, is_param)
        return func.CallOp([value.type], ir.FlatSymbolRefAttr.get(self.made[type_, is_param]), [value])

    def make(self, type_: TensorType, is_param: bool) -> str:
        name = self.names.free("fused_copy")
        tensor = core.te_type(type_)
        with ir.InsertionPoint.at_block_begin(self.module.body), ir.Location.unknown():
            function = func.FuncOp(name, ([tensor], [tensor]), visibility="private")
            with ir.InsertionPoint(function.add_entry_block()):
                func.ReturnOp([core.parallel(type_, [function.arguments[0]], lambda x: x)])
        attributes = {"ops": "copy", "sources": "result", "input_dtypes": type_.dtype, "output_dtypes": type_.dtype}
        for attribute, text in attributes.items():
            function.attributes[f"relay.{attribute}"] = strings_attribute([text])
        function.arg_attrs = [ir.DictAttr.get({"relay.param": ir.UnitAttr.get()} if is_param else {})]
        return name
