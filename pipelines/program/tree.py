"""The body of a program of the te stage as a tree: its calls, branches and loops, in order.

Values of type index are sizes: the program's symbols, arith on sizes, `tensor.dim` of a tensor, an element of a tensor (`tensor.extract`
and `arith.index_cast`), and the results of calls, branches and loops after their tensors. The attribute `relay.symbol` names a size for
types from there on. A size that does not follow from the program's own symbols, and a tensor of such a size, are *late*: known only at run
time, after the program has started. A branch may depend on sizes: `arith.cmpi eq` of two, and `arith.andi` of such conditions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TypeAlias

from relayc.dialects.discardable import SYMBOL, SYMBOLS
from relayc.dialects.functions import symbol_name, value_attributes
from relayc.dialects.functions import symbols_of as symbols_of_module
from relayc.dialects.mlir import arith, func, ir, scf
from relayc.dialects.operations import element_bytes, last_operation
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.later import Require
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType, shape_of
from relayc.pipelines.emission.sizes import read_condition, read_size, symbol_names, symbol_positions
from relayc.pipelines.program.functions import tensors_of
from relayc.runtime.artifact import EqualSizes
from relayc.symbolic import Size, product, substitute, symbol, symbols_of

Value: TypeAlias = ir.Value

RESHAPES = frozenset({"tensor.expand_shape", "tensor.collapse_shape", "tensor.cast"})
"""Operations that return a tensor in the memory of another one."""
CONDITIONS = frozenset({"tensor.extract", "arith.trunci"})
"""Operations that read a condition, a tensor of one i8, as an i1. The branch or loop reads its memory."""
TERMINATORS = frozenset({"func.return", "scf.yield", "scf.condition"})


def tensors(values: Iterable[Value]) -> list[Value]:
    """The tensors among values, without sizes."""
    return [v for v in values if isinstance(v.type, ir.RankedTensorType)]


def sizes(values: Iterable[Value]) -> list[Value]:
    """The sizes among values."""
    return [v for v in values if isinstance(v.type, ir.IndexType)]


@dataclass(eq=False)
class Item:
    """A step of a program.

    Attributes:
      names: of the sizes that it returns after its tensors, in the program's symbols.
    """

    op: ir.OpView
    names: list[str] = field(default_factory=list, kw_only=True)

    @property
    def made(self) -> list[Value]:
        """The tensors that it returns."""
        return tensors(self.op.operation.results)

    @property
    def reads(self) -> list[Value]:
        """The tensors that it takes, including the condition of a branch."""
        return [v for v in self.op.operation.operands if not isinstance(v.type, ir.IndexType)]


@dataclass(eq=False)
class Call(Item):
    """A call."""

    @property
    def callee(self) -> str:
        return ir.FlatSymbolRefAttr(self.op.attributes["callee"]).value

    @property
    def given(self) -> list[Value]:
        """The sizes that it takes after the tensors."""
        return sizes(self.op.operation.operands)


@dataclass(eq=False)
class If(Item):
    condition: Value | EqualSizes
    then: "ProgramBlock"
    otherwise: "ProgramBlock"

    @property
    def reads(self) -> list[Value]:
        return [] if isinstance(self.condition, EqualSizes) else [self.condition]


@dataclass(eq=False)
class While(Item):
    """A loop: `before` computes the condition, and `after` is repeated while it holds."""

    before: "ProgramBlock"
    condition: Value
    after: "ProgramBlock"


@dataclass(eq=False)
class Define(Item):
    """Defines a size by an element of an integer tensor at constant indices; `op` returns it."""

    source: Value
    indices: tuple[int, ...]

    @property
    def reads(self) -> list[Value]:
        return [self.source]


@dataclass(eq=False)
class Demand(Item):
    """A requirement on two sizes (relay.require)."""

    @property
    def reads(self) -> list[Value]:
        return []


@dataclass(eq=False)
class ProgramBlock:
    """A block.

    Attributes:
      block: None for the second region that an scf.if without results may lack.
      results: operands of its terminator (for scf.condition without the condition).
      joins: its concatenations, whose operands are written in place in the result (see joins).
    """

    block: ir.Block | None = None
    items: list[Item] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    joins: list[ir.OpView] = field(default_factory=list)

    @property
    def arguments(self) -> list[Value]:
        """Arguments of the block that are tensors."""
        return tensors(self.block.arguments) if self.block is not None else []

    @property
    def given(self) -> list[Value]:
        """The tensors that the block returns."""
        return tensors(self.results)

    @property
    def defined(self) -> list[Value]:
        """The sizes that the block returns."""
        return sizes(self.results)


@dataclass(eq=False)
class ProgramTree:
    """A program as a tree.

    Attributes:
      sources: the operands of reshapes, and of operations that read conditions.
      constants: the parameters.
      sizes: values of type index, as expressions of the program's symbols and of late ones, which have names too.
      words: for a tensor returned by a call, whose type is in the callee's symbols: the values of these symbols here.
      named: sizes that have a name in types.
      symbols: the program's own.
    """

    function: ir.OpView
    name: str
    body: ProgramBlock
    sources: dict[Value, Value]
    constants: dict[Value, Constant]
    sizes: dict[Value, Size]
    words: dict[Value, dict[str, Size]]
    named: dict[str, Size]
    symbols: frozenset[str]

    def __post_init__(self) -> None:
        self._shapes: dict[Value, Sequence[Size]] = {}

    @property
    def inputs(self) -> list[Value]:
        """The tensors that it takes: its arguments before the symbols."""
        return self.body.arguments

    def shape(self, value: Value) -> Sequence[Size]:
        """The shape of a tensor, in the program's symbols."""
        value = self.root(value)
        found = self._shapes.get(value)
        if found is None:
            words = self.words.get(value, self.named)
            found = self._shapes[value] = [substitute(d, words) for d in _sizes_of(value.type)]
        return found

    def num_bytes(self, value: Value) -> Size:
        """Bytes of a tensor in memory."""
        return product(self.shape(value)) * element_bytes(value.type.element_type)

    def is_late(self, value: Value) -> bool:
        """Whether a tensor has a size that does not follow from the program's symbols, or is returned under such a type."""
        return self.root(value) in self._given_late or any(not symbols_of(d).issubset(self.symbols) for d in self.shape(value))

    @cached_property
    def _given_late(self) -> frozenset[Value]:
        """Tensors that the program returns under a type whose sizes only it knows, though it may have other names for them."""
        found: set[Value] = set()

        def mark(body: ProgramBlock, positions: Sequence[int]) -> None:
            found.update(self.root(body.given[i]) for i in positions)
            for item in body.items:
                inner = [i for i, r in enumerate(item.made) if r in found]
                if not inner:
                    continue
                if isinstance(item, If):
                    mark(item.then, inner)
                    mark(item.otherwise, inner)
                elif isinstance(item, While):
                    found.update(values[i] for values in (item.before.arguments, item.after.arguments) for i in inner)
                    mark(item.before, inner)
                    mark(item.after, inner)

        types = tensors_of(self.function, "output")
        mark(self.body, [i for i, t in enumerate(types) if not TensorType.from_mlir(t).symbols.issubset(self.symbols)])
        return frozenset(found)

    def root(self, value: Value) -> Value:
        """The value whose memory `value` shares."""
        while value in self.sources:
            value = self.sources[value]
        return value


def _sizes_of(type_: ir.RankedTensorType) -> list[Size]:
    """The sizes of a tensor type. Raises RelayError if a dimension is unknown."""
    shape = [d for d in shape_of(type_) if d is not None]
    if len(shape) < type_.rank:
        raise RelayError(f"expected a tensor whose sizes are numbers and symbols, found {type_}")
    return shape


def memref_bytes(type_: ir.MemRefType) -> int:
    """Bytes of a buffer of known size."""
    return prod(type_.shape) * element_bytes(type_.element_type)


def read_program(function: ir.OpView) -> ProgramTree:
    """Reads a program. Raises RelayError for an operation or a form that is not allowed in a program."""
    return _Reader(function).run()


def items_of(body: ProgramBlock) -> Iterator[Item]:
    """All items of a body, including nested ones, in the order of the text."""
    for item in body.items:
        yield item
        for inner in within(item):
            yield from items_of(inner)


def within(item: Item) -> tuple[ProgramBlock, ...]:
    """The bodies of a branch or a loop."""
    if isinstance(item, If):
        return item.then, item.otherwise
    return (item.before, item.after) if isinstance(item, While) else ()


def bodies_of(body: ProgramBlock) -> Iterator[ProgramBlock]:
    """A body and all nested ones."""
    yield body
    for item in body.items:
        for inner in within(item):
            yield from bodies_of(inner)


def _is_element(op: ir.OpView) -> bool:
    """Whether an element of a tensor is read as a size."""
    return all(use.owner.name == "arith.index_cast" for use in op.operation.results[0].uses)


class _Reader:
    def __init__(self, function: ir.OpView) -> None:
        self._fresh = 0
        self.function, self.name = function, symbol_name(function)
        self.program = ProgramTree(
            function, symbol_name(function), ProgramBlock(), {}, {}, {}, {}, {}, frozenset(symbol_positions(function))
        )
        self.sources, self.constants = self.program.sources, self.program.constants
        self.sizes, self.words, self.named = self.program.sizes, self.program.words, self.program.named
        self.conditions: dict[Value, EqualSizes] = {}
        self.readers: dict[type, Callable[[ir.OpView], Item]] = {
            func.CallOp: self.call,
            scf.IfOp: self.branch,
            scf.WhileOp: self.loop,
            arith.IndexCastOp: self.define,
            Require: Demand,
        }

    def run(self) -> ProgramTree:
        if len(self.function.regions[0].blocks) != 1:
            raise RelayError(f"@{self.name}: expected a program of one block, with scf.if and scf.while")
        block = self.function.regions[0].blocks[0]
        self.sizes.update({block.arguments[i]: symbol(name) for name, i in symbol_positions(self.function).items()})
        self.program.body = self.body(block)
        self.program._shapes.clear()  # found before all sizes had names
        return self.program

    def body(self, block: ir.Block) -> ProgramBlock:
        found = ProgramBlock(block)
        for op in block.operations:
            name = op.operation.name
            if isinstance(op, Constant):
                if op.key is None:
                    raise RelayError(f"{self.where(op)}: expected the key of a parameter, found elements")
                self.constants[op.operation.results[0]] = op
            elif (size := read_size(op.operation, self.sizes)) is not None:
                self.sizes[op.operation.results[0]] = size
                if SYMBOL.on(op):
                    self.named[SYMBOL.of(op)] = size
            elif (condition := read_condition(op.operation, self.sizes, self.conditions)) is not None:
                self.conditions[op.operation.results[0]] = condition
            elif name == "tensor.dim" and op.operation.operands[1] in self.sizes:
                self.sizes[op.operation.results[0]] = self.dimension(*op.operation.operands)
            elif name == "tensor.extract" and _is_element(op):
                continue  # the following cast defines the size
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
        given, results = sizes(op.operation.operands), sizes(op.operation.results)
        if not given and not results:
            return Call(op)
        callee = self.functions[op.callee.value]
        symbols = symbol_names(callee)
        defined = [SYMBOL.of(a) for a in value_attributes(callee, "res_attrs") if SYMBOL.on(a)] if results else []
        names = [self.fresh(name) for name in defined]
        self.sizes.update({value: symbol(name) for value, name in zip(results, names, strict=True)})
        words = dict(zip([*symbols, *defined], [self.sizes[v] for v in (*given, *results)], strict=True))
        if any(words[name] != symbol(name) for name in words):
            self.words.update(dict.fromkeys(tensors(op.operation.results), words))
        return Call(op, names=names)

    @cached_property
    def functions(self) -> dict[str, ir.OpView]:
        return symbols_of_module(self.function.operation.parent)

    def fresh(self, name: str) -> str:
        """A unique name for a size that is defined here."""
        self._fresh += 1
        return f"{name}__{self._fresh}"

    def branch(self, op: scf.IfOp) -> If:
        then, otherwise = (self.body(r.blocks[0]) if len(r.blocks) else ProgramBlock() for r in op.operation.regions)
        names = self.defined(op, op.operation.results)
        condition = op.operation.operands[0]
        return If(op, self.conditions.get(condition) or self.condition(op, condition), then, otherwise, names=names)

    def defined(self, op: ir.OpView, *places: Sequence[Value]) -> list[str]:
        """Names of the sizes that a branch or loop returns, which are the last values of each of several lists."""
        names = list(SYMBOLS.get(op, ()))
        for values in places:
            last = list(values)[len(values) - len(names) :]
            self.sizes.update({value: symbol(name) for value, name in zip(last, names, strict=True)})
        return names

    def loop(self, op: scf.WhileOp) -> While:
        before, after = (r.blocks[0] for r in op.operation.regions)
        names = self.defined(op, before.arguments, after.arguments, op.operation.results)
        terminator = last_operation(before)
        forwarded = list(terminator.operation.operands)[1:]
        if forwarded != list(before.arguments):
            raise RelayError(f"{self.where(op)}: expected scf.condition to forward the arguments of its block, in order")
        read = self.body(before)
        condition = self.condition(op, terminator.operation.operands[0])
        return While(op, read, condition, self.body(after), names=names)

    def define(self, op: ir.OpView) -> Define:
        extracted = op.operation.operands[0].owner
        if isinstance(extracted, ir.Block) or extracted.name != "tensor.extract":
            raise RelayError(f"{self.where(op)}: expected an element of a tensor as a size")
        source, *indices = extracted.operands
        found = [self.sizes.get(i) for i in indices]
        if not all(isinstance(i, int) for i in found):
            raise RelayError(f"{self.where(op)}: expected an element at constant indices")
        name = SYMBOL.of(op) if SYMBOL.on(op) else self.fresh("size")
        self.sizes[op.operation.results[0]] = symbol(name)
        return Define(op, source, tuple(i for i in found if isinstance(i, int)), names=[name])

    def dimension(self, value: Value, axis: Value) -> Size:
        """The size that tensor.dim returns."""
        position = self.sizes[axis]
        assert isinstance(position, int)  # as tensor.dim of a program is built
        while not isinstance(value.owner, ir.Block) and value.owner.name == "tensor.cast":
            value = value.owner.operands[0]
        if value in self.sources:
            # A reshape has another shape than its operand.
            return substitute(_sizes_of(value.type)[position], self.named)
        return self.program.shape(value)[position]

    def condition(self, op: ir.OpView, value: Value) -> Value:
        """The tensor from which a condition is read."""
        chain = []
        while value in self.sources and isinstance(value.type, ir.IntegerType):
            chain.append(value.owner.name)
            value = self.sources[value]
        if chain != ["arith.trunci", "tensor.extract"] or value.type != ir.RankedTensorType.get([], ir.IntegerType.get_signless(8)):
            raise RelayError(f"{self.where(op)}: expected a condition that arith.trunci makes of the element of a tensor<i8>")
        return value

    def where(self, op: ir.OpView) -> str:
        return f"@{self.name}: {op.operation.name} at {op.operation.location}"
