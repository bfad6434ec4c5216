"""The body of a program of the te stage as a tree: its calls, branches and loops, in order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func, ir, scf
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import shape_of
from relayc.pipelines.sizes import read_size, symbol_positions
from relayc.symbolic import Size, symbol

Value: TypeAlias = ir.Value

RESHAPES = frozenset({"tensor.expand_shape", "tensor.collapse_shape", "tensor.cast"})
"""Operations that give a tensor in the memory of another one."""
CONDITIONS = frozenset({"tensor.extract", "arith.trunci"})
"""Operations that read a condition, a tensor of one i8, as an i1. The branch or loop reads its memory."""
TERMINATORS = frozenset({"func.return", "scf.yield", "scf.condition"})


@dataclass(eq=False)
class Call:
    op: func.CallOp

    @property
    def callee(self) -> str:
        return self.op.callee.value

    @property
    def tensors(self) -> list[Value]:
        """The tensors that it reads: its operands before the sizes."""
        return [v for v in self.op.operation.operands if isinstance(v.type, ir.RankedTensorType)]


@dataclass(eq=False)
class If:
    op: ir.OpView
    condition: Value
    then: "Body"
    otherwise: "Body"


@dataclass(eq=False)
class While:
    """A loop: `before` computes the condition, and `after` is repeated while it holds."""

    op: ir.OpView
    before: "Body"
    condition: Value
    after: "Body"


Item = Call | If | While


@dataclass(eq=False)
class Body:
    """A block.

    Attributes:
      block: None for the second region that an scf.if without results may lack.
      results: operands of its terminator (those of scf.condition without the condition).
      joins: its concatenations, whose operands are written where they belong in the result (see joins).
    """

    block: ir.Block | None = None
    items: list[Item] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    joins: list[ir.OpView] = field(default_factory=list)

    @property
    def arguments(self) -> list[Value]:
        """Arguments of the block."""
        return list(self.block.arguments) if self.block is not None else []


@dataclass(eq=False)
class Program:
    """A program that has been read.

    Attributes:
      sources: what reshapes, and readers of conditions, are of.
      constants: the parameters.
      sizes: values of type index, as expressions of the program's symbols.
    """

    function: ir.OpView
    name: str
    body: Body
    sources: dict[Value, Value]
    constants: dict[Value, Constant]
    sizes: dict[Value, Size]

    @property
    def inputs(self) -> list[Value]:
        """The tensors that it takes: its arguments before the symbols."""
        return [a for a in self.body.arguments if isinstance(a.type, ir.RankedTensorType)]

    def root(self, value: Value) -> Value:
        """The value in whose memory `value` is."""
        while value in self.sources:
            value = self.sources[value]
        return value


def num_bytes(type_: ir.RankedTensorType) -> Size:
    """Bytes of a tensor in memory. Raises RelayError where a dimension is not known."""
    shape = [d for d in shape_of(type_) if d is not None]
    if len(shape) < type_.rank:
        raise RelayError(f"expected a tensor whose sizes are numbers and symbols, found {type_}")
    return prod(shape) * element_bytes(type_)


def memref_bytes(type_: ir.MemRefType) -> int:
    """Bytes of a buffer of known size."""
    return prod(type_.shape) * element_bytes(type_)


def element_bytes(type_: ir.RankedTensorType | ir.MemRefType) -> int:
    """Bytes of an element in memory."""
    return max(1, type_.element_type.width // 8)


def read_program(function: ir.OpView) -> Program:
    """Reads a program. Raises RelayError for an operation or a form that a program may not have."""
    return _Reader(function).run()


def items_of(body: Body) -> Iterator[Item]:
    """All items of a body and of those within it, in the order of the text."""
    for item in body.items:
        yield item
        for inner in within(item):
            yield from items_of(inner)


def within(item: Item) -> tuple[Body, ...]:
    """The bodies of a branch or a loop."""
    if isinstance(item, If):
        return item.then, item.otherwise
    return (item.before, item.after) if isinstance(item, While) else ()


def bodies_of(body: Body) -> Iterator[Body]:
    """A body and all those within it."""
    yield body
    for item in body.items:
        for inner in within(item):
            yield from bodies_of(inner)


class _Reader:
    def __init__(self, function: ir.OpView) -> None:
        self.function, self.name = function, symbol_name(function)
        self.sources: dict[Value, Value] = {}
        self.constants: dict[Value, Constant] = {}
        self.sizes: dict[Value, Size] = {}
        self.readers: dict[type, Callable[[ir.OpView], Item]] = {func.CallOp: self.call, scf.IfOp: self.branch, scf.WhileOp: self.loop}

    def run(self) -> Program:
        if len(self.function.regions[0].blocks) != 1:
            raise RelayError(f"@{self.name}: expected a program of one block, with scf.if and scf.while")
        block = self.function.regions[0].blocks[0]
        self.sizes.update({block.arguments[i]: symbol(name) for name, i in symbol_positions(self.function).items()})
        return Program(self.function, self.name, self.body(block), self.sources, self.constants, self.sizes)

    def body(self, block: ir.Block) -> Body:
        found = Body(block)
        for op in block.operations:
            name = op.operation.name
            if isinstance(op, Constant):
                if op.key is None:
                    raise RelayError(f"{self.where(op)}: expected the key of a parameter, found elements")
                self.constants[op.operation.results[0]] = op
            elif (size := read_size(op.operation, self.sizes)) is not None:
                self.sizes[op.operation.results[0]] = size
            elif name in RESHAPES or (name in CONDITIONS and len(op.operation.operands) == 1):
                self.sources[op.operation.results[0]] = op.operation.operands[0]
            elif name == "tensor.concat":
                found.joins.append(op)
            elif type(op) in self.readers:
                found.items.append(self.readers[type(op)](op))
            elif name in TERMINATORS:
                found.results = list(op.operation.operands)[name == "scf.condition" :]
            else:
                raise RelayError(
                    f"{self.where(op)}: expected parameters, reshapes, concatenations, calls, scf.if and scf.while in a program"
                )
        return found

    def call(self, op: func.CallOp) -> Call:
        return Call(op)

    def branch(self, op: scf.IfOp) -> If:
        then, otherwise = (self.body(r.blocks[0]) if len(r.blocks) else Body() for r in op.operation.regions)
        return If(op, self.condition(op, op.operation.operands[0]), then, otherwise)

    def loop(self, op: scf.WhileOp) -> While:
        before, after = (r.blocks[0] for r in op.operation.regions)
        terminator = before.operations[len(before.operations) - 1]
        forwarded = list(terminator.operation.operands)[1:]
        if forwarded != list(before.arguments):
            raise RelayError(f"{self.where(op)}: expected scf.condition to forward the arguments of its block, in order")
        read = self.body(before)
        condition = self.condition(op, terminator.operation.operands[0])
        return While(op, read, condition, self.body(after))

    def condition(self, op: ir.OpView, value: Value) -> Value:
        """The tensor that a condition is read from."""
        chain = []
        while value in self.sources and isinstance(value.type, ir.IntegerType):
            chain.append(value.owner.name)
            value = self.sources[value]
        if chain != ["arith.trunci", "tensor.extract"] or value.type != ir.RankedTensorType.get([], ir.IntegerType.get_signless(8)):
            raise RelayError(f"{self.where(op)}: expected a condition that arith.trunci makes of the element of a tensor<i8>")
        return value

    def where(self, op: ir.OpView) -> str:
        return f"@{self.name}: {op.operation.name} at {op.operation.location}"
