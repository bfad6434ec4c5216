"""Concatenations in place: tensors of a program are placed inside another one, so that their kernels write directly into it.

If only dimensions of 1 precede the axis of a concatenation (channels of one image, in NCHW and in blocks), each operand is a contiguous
part of the result. A part must be the result of a call and have no other place; a concatenation of parts that are already adjacent in a
larger one (a dense block joins ever more of the same tensors) is a part of that one.

`concatenate_in_place` finds calls of kernels that only concatenate in this way, and replaces them by `tensor.concat`: in a program, it
means that the operands are written in place, without a kernel.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from relayc.dialects.mlir import ir, tensor
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import ranked_type
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.program.functions import read_functions
from relayc.pipelines.program.tree import Call, ProgramBlock, ProgramTree, While, bodies_of, items_of, read_program
from relayc.pipelines.te.read.graph import NotStructured, read_kernel
from relayc.symbolic import Size, symbols_of

Value: TypeAlias = ir.Value


@module_pass(opt_level=0, name="ConcatenateInPlace", stage="te")
def concatenate_in_place(mod: IRModule, ctx: PassContext) -> IRModule:
    """Removes kernels of concatenations whose operands can be written directly to their place (pipelines.program.joins).

    Raises RelayError for an invalid program.
    """
    functions = read_functions(mod.module)
    kernels = {name: c for name, f in functions.kernels.items() if (c := _concatenation(f)) is not None}
    if not kernels:
        return mod
    programs = [read_program(f) for f in functions.programs.values()]
    found = {call: p for p in programs for body in bodies_of(p.body) for call in _in_place(p, body, kernels)}
    calls = [item for p in programs for item in items_of(p.body) if isinstance(item, Call)]
    needed = {call.callee for call in calls if call not in found}
    for name in {call.callee for call in found} - needed:
        functions.kernels[name].operation.erase()
    for call, program in found.items():
        _replace(program, call.op.operation, kernels[call.callee])
    return mod


@dataclass(frozen=True)
class _Concatenation:
    """The arguments that a kernel concatenates, by position, in order, and the dimension of the result."""

    positions: tuple[int, ...]
    axis: int


def _concatenation(function: ir.OpView) -> _Concatenation | None:
    """The concatenation that a te function computes contiguously in memory; None for any other function."""
    if not any(op.operation.name == "tensor.concat" for op in function.regions[0].blocks[0].operations):
        return None
    try:
        kernel = read_kernel(function)
    except NotStructured:
        return None
    if len(kernel.results) != 1 or kernel.results[0].kind != "concat":
        return None
    result = kernel.results[0]
    positions = tuple(n.position for n in result.inputs if n.kind == "arg")
    whole = len(result.inputs) == len(kernel.args) == len(set(positions)) == len(positions)
    return _Concatenation(positions, result.axis) if whole and prod(result.shape[: result.axis]) == 1 and result.size != 0 else None


def _in_place(program: ProgramTree, body: ProgramBlock, kernels: dict[str, _Concatenation]) -> list[Call]:
    """Calls of a body that are in-place concatenations. Later ones, which are larger, come first."""
    nesting, found = Nesting(program, body), []
    for call in [item for item in reversed(body.items) if isinstance(item, Call) and item.callee in kernels]:
        operation = call.op.operation
        parts = [program.root(operation.operands[i]) for i in kernels[call.callee].positions]
        if nesting.add(operation.results[0], parts):
            found.append(call)
    return found


def _replace(program: ProgramTree, call: ir.Operation, found: _Concatenation) -> None:
    result = call.results[0]
    # The call's type is in the kernel's symbols, which may differ.
    type_ = ranked_type(program.shape(result), result.type.element_type) if result in program.words else result.type
    with ir.InsertionPoint(call), call.location:
        made = tensor.ConcatOp(type_, found.axis, [call.operands[i] for i in found.positions]).result
        result.replace_all_uses_with(made if type_ == result.type else tensor.CastOp(result.type, made).result)
    call.erase()


@dataclass
class Nesting:
    """The nesting of tensors of a body inside others.

    Attributes:
      within: the enclosing tensor and the byte offset in it, by tensor; enclosing ones may be nested in turn.
    """

    program: ProgramTree
    body: ProgramBlock
    within: dict[Value, tuple[Value, Size]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._results = {r for item in self.body.items if isinstance(item, Call) for r in item.made}
        self._results |= {join.operation.results[0] for join in self.body.joins}
        self._placed = _placed(self.program, self.body)
        self._written = {r: i for i, item in enumerate(self.body.items) for r in item.made}
        self._defined = {name: i for i, item in enumerate(self.body.items) for name in item.names}

    def add(self, whole: Value, parts: Sequence[Value]) -> bool:
        """Places tensors one after the other inside `whole`, if possible; they must be written in the body, and have no other place."""
        if not self._placed.isdisjoint((whole, *parts)) or len(set(parts)) < len(parts) or not self._results.issuperset(parts):
            return False
        sizes = [self.program.num_bytes(p) for p in parts]
        starts = [sum(sizes[:i], 0) for i in range(len(sizes))]
        if not self._has_room(whole, parts):
            return False
        if not any(p in self.within for p in parts):
            self.within.update((p, (whole, start)) for p, start in zip(parts, starts, strict=True))
        elif whole not in self.within and self._lie_together(parts, starts):
            self.within[whole] = self.outermost(parts[0])
        else:
            return False
        return True

    def add_joins(self) -> None:
        """Places the operands of all concatenations of the body. Raises RelayError if one cannot be placed."""
        for join in reversed(self.body.joins):
            if not self.add(join.operation.results[0], [self.program.root(v) for v in join.operation.operands]):
                raise RelayError(
                    f"@{self.program.name}: {join.operation.name} at {join.operation.location}: expected results of calls of the same "
                    "block that stand in no second place (see concatenate-in-place)"
                )

    def outermost(self, value: Value) -> tuple[Value, Size]:
        """The outermost tensor that encloses `value`, and the byte offset of `value` in it."""
        offset: Size = 0
        while value in self.within:
            value, inner = self.within[value]
            offset += inner
        return value, offset

    def _has_room(self, whole: Value, parts: Sequence[Value]) -> bool:
        """Whether the size of the outermost tensor around `whole`, and with it all offsets, is known before each of the parts is
        written."""
        outer, _ = self.outermost(whole)
        known = max((self._defined[n] for n in symbols_of(self.program.num_bytes(outer)) if n in self._defined), default=-1)
        return all(self._written.get(p, known + 1) > known for p in parts)

    def _lie_together(self, parts: Sequence[Value], starts: Iterable[Size]) -> bool:
        """Whether parts are already adjacent in one tensor."""
        found = [self.outermost(p) for p in parts]
        outer, first = found[0]
        return all(value == outer and offset == first + start for (value, offset), start in zip(found, starts, strict=True))


def _placed(program: ProgramTree, body: ProgramBlock) -> AbstractSet[Value]:
    """Values of a body with a place elsewhere: its results, and initial values of its loops."""
    given = [*body.given, *(v for item in body.items if isinstance(item, While) for v in item.reads)]
    return {program.root(v) for v in given}
