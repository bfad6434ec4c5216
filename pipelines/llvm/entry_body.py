"""The text of a packed entry after the check of its tensors: the check of its sizes, and the call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relayc.pipelines.llvm.size_check import MOST_VALUES, Do, SizeProgram
from relayc.pipelines.llvm.size_text import SizeText
from relayc.pipelines.llvm.tables import Strings
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.runtime.shapes import MAX_BYTES, SymbolSource
from relayc.symbolic import FAR, Dim, Size, symbol, symbols_of

CONTEXT, GIVEN_PLACE, FINISH = "__relayc_context", "__relayc_given", "__relayc_finish"
"""Functions that a module must have if its entries take a context: CONTEXT(arguments, position, place) -> i32 writes the address in the
argument at a position to a place, and returns 0, or -1 with an error raised; GIVEN_PLACE(context) -> ptr is the place for returned memory
and sizes; FINISH(context, status) -> i32 returns the status of the entry, and raises errors of the device."""


@dataclass
class EntryFunction:
    """A function that gets an entry.

    Attributes:
      fails: whether it returns a status.
    """

    name: str
    entry: PackedEntry
    fails: bool

    @property
    def types(self) -> list[str]:
        """The types of its arguments."""
        entry, pointer = self.entry, "!llvm.ptr"
        tensors = len(entry.taken) - entry.blobs
        last = [*["i64"] * bool(entry.depth), *["i64"] * entry.context]
        return [*[pointer] * tensors, *["i64"] * len(entry.symbols), *[pointer] * entry.blobs, *last]

    @property
    def result(self) -> str:
        """The type of its result; empty if it has none."""
        if self.entry.memory:
            return f"!llvm.struct<({', '.join(['i32', *['ptr'] * self.entry.memory, *['i64'] * self.entry.defined])})>"
        return "i32" if self.fails else ""

    def declaration(self) -> str:
        return f'llvm.func @"{self.name}"({", ".join(self.types)}){f" -> {self.result}" if self.result else ""}'


class EntryBody(SizeText):
    """The text of an entry after the check of its tensors: the check of its sizes, and the call.

    Args:
      program: position of the words of SizeChecks in the table.
    """

    def __init__(self, function: EntryFunction, program: int) -> None:
        super().__init__()
        self.function, self.entry, self.program = function, function.entry, program

    def text(self) -> str:
        entry = self.entry
        sizes = self.sizes() if entry.symbols else []
        context = [self.context()] if entry.context else []
        pointers = [self.load(f"%data[{i}]", "!llvm.ptr") for i in range(len(entry.tensors))]
        after = len(entry.taken) - entry.blobs
        operands = [*pointers[:after], *sizes, *pointers[after : len(entry.taken)]]
        if entry.depth:
            operands.append(self.constant(entry.depth))
        operands += context
        result = self.function.result
        types = f"({', '.join(self.function.types)}) -> {result or '()'}"
        call = f'llvm.call @"{self.function.name}"({", ".join(operands)}) {{no_inline}} : {types}'
        if not result:
            self.lines.append(f"  {call}")
            status = "%zero"
        else:
            status = self.value(call)
        if entry.memory:
            place = self.value(f"llvm.call @{GIVEN_PLACE}({context[0]}) : (i64) -> !llvm.ptr") if context else pointers[-1]
            status = self.given(status, result, place)
        if context:
            status = self.value(f"llvm.call @{FINISH}({context[0]}, {status}) : (i64, i32) -> i32")
        self.lines.append(f"  llvm.br ^end({status} : i32)")
        return "\n".join(self.lines)

    def context(self) -> str:
        """The address of the device information, if the last argument is an integer; otherwise the entry returns a status."""
        position = self.constant(len(self.entry.tensors) + self.entry.sizes)
        place = self.value("llvm.alloca %one x i64 : (i32) -> !llvm.ptr")
        status = self.value(f"llvm.call @{CONTEXT}(%args, {position}, {place}) : (!llvm.ptr, i64, !llvm.ptr) -> i32")
        good = self.value(f'llvm.icmp "eq" {status}, %zero : i32')
        self.lines += [f"  llvm.cond_br {good}, ^with_context, ^end({status} : i32)", "^with_context:"]
        return self.value(f"llvm.load {place} : !llvm.ptr -> i64")

    def sizes(self) -> list[str]:
        """The values of the symbols, if all sizes are valid; otherwise the entry returns a status."""
        count = self.value(f"llvm.mlir.constant({len(self.entry.symbols)} : i32) : i32")
        values = self.value(f"llvm.alloca {count} x i64 : (i32) -> !llvm.ptr")
        program = self.value(f"llvm.getelementptr %table[{self.program}] : (!llvm.ptr) -> !llvm.ptr, i64")
        types = ", ".join(["!llvm.ptr"] * 6)
        status = self.value(f"llvm.call @__relayc_sizes(%entry, {program}, %args, %data, {values}, %strings) : ({types}) -> i32")
        good = self.value(f'llvm.icmp "eq" {status}, %zero : i32')
        self.lines += [f"  llvm.cond_br {good}, ^sized, ^end({status} : i32)", "^sized:"]
        return [self.load(f"{values}[{i}]", "i64") for i in range(len(self.entry.symbols))]

    def given(self, found: str, type_: str, place: str) -> str:
        """Writes the addresses and sizes that the function returns; returns the status."""
        for i in range(self.entry.memory + self.entry.defined):
            value = self.value(f"llvm.extractvalue {found}[{i + 1}] : {type_}")
            if i < self.entry.memory:
                value = self.value(f"llvm.ptrtoint {value} : !llvm.ptr to i64")
            self.store(value, place, i)
        return self.value(f"llvm.extractvalue {found}[0] : {type_}")


class SizeChecks:
    """The size program of an entry: computes the symbols, and checks sizes that depend on them.

    Args:
      starts: position of each tensor's row in the entry.
    """

    def __init__(self, function: EntryFunction, strings: Strings, starts: Sequence[int]) -> None:
        self.function, self.entry, self.strings, self.starts = function, function.entry, strings, starts
        self.program = SizeProgram(function.entry.symbols)
        if self.entry.symbols:
            self.symbols()
            self.checks()
            self.program.do(Do.END)

    @property
    def words(self) -> list[int]:
        """The number of places that the program needs, and the program; empty without symbols."""
        return [self.program.room, *self.program.words] if self.entry.symbols else []

    def place(self, tensor: int) -> int:
        """The position of the DLTensor of a tensor."""
        return len(self.entry.tensors) + tensor

    def symbols(self) -> None:
        program = self.program
        for source in self.entry.sources:
            program.dimension(self.place(source.input), source.axis)
            if source.rest != 0:
                program.size(source.rest * -1)
                program.do(Do.ADD, 0, -1)
            if source.factor != 1:
                program.number(source.factor)
                program.do(Do.FLOOR, 0, -1)
            program.set(source.name)
        if not self.entry.sources:
            first = len(self.entry.tensors)
            for i, name in enumerate(self.entry.symbols):
                program.do(Do.KIND, first + i, 1)
                program.number(1)
                program.demand(Do.EQUAL, self.about_tensor(0, f", with a value for {name} that is no integer"))
                program.do(Do.INTEGER, first + i, 1)
                program.set(name)

    def checks(self) -> None:
        """The requirements on dimensions and symbols."""
        places = {source.name: source for source in self.entry.sources}
        defined = {(source.input, source.axis) for source in self.entry.sources if source.factor == 1 and source.rest == 0}
        for i, spec in enumerate(self.entry.tensors):
            for axis, d in enumerate(spec.shape):
                if isinstance(d, Dim) and (i, axis) not in defined and i != self.entry.arena:
                    self.equal(i, axis, d, places)
        for name in self.entry.symbols:
            low, high = self.entry.ranges.get(name, (0, FAR))
            value = symbol(name)
            where = f" in {_literal(self.entry.tensors[places[name].input].name)}" if name in places else ""
            for larger, less, word, bound in ((value, low, "least", low), (high, value, "most", high)):
                self.program.size(larger)
                self.program.size(less)
                self.program.demand(Do.AT_LEAST, self.error(f"{name} is %lld{where}, expected at {word} {bound}", [value]))
        if self.entry.arena != -1:
            self.memory(self.entry.arena)

    def equal(self, tensor: int, axis: int, d: Dim, places: Mapping[str, SymbolSource]) -> None:
        """Checks that a dimension equals its expression. The messages are those of runtime.shapes."""
        here, found = _literal(self.entry.tensors[tensor].name), (tensor, axis)
        if str(d) in places:
            there = _literal(self.entry.tensors[places[str(d)].input].name)
            otherwise = self.error(f"{d} is %lld in {there} and %lld in {here}", [d, found])
        else:
            names = sorted(symbols_of(d))[: MOST_VALUES - 2]
            inputs = [f" (in {_literal(self.entry.tensors[places[n].input].name)})" if n in places else "" for n in names]
            values = ", ".join(f"{n} = %lld{where}" for n, where in zip(names, inputs, strict=True))
            text = f"dimension {axis} of {here}: expected {_literal(str(d))}, %lld for {values}, found %lld"
            otherwise = self.error(text, [d, *map(symbol, names), found])
        self.program.dimension(self.place(tensor), axis)
        self.program.size(d)
        self.program.demand(Do.EQUAL, otherwise)

    def memory(self, arena: int) -> None:
        """Checks that the arena has enough bytes for the symbols; the required size may exceed 64 bits."""
        (wanted,) = self.entry.tensors[arena].shape
        if not isinstance(wanted, Dim):
            return
        self.program.number(MAX_BYTES)
        self.program.size(wanted)
        self.program.demand(Do.AT_LEAST, self.error(f"expected to need at most {MAX_BYTES} bytes, found more", []))
        self.program.dimension(self.place(arena), 0)
        self.program.size(wanted)
        self.program.demand(Do.AT_LEAST, self.about_tensor(arena, " that is too small for this call"))

    def error(self, text: str, values: Sequence[Size | tuple[int, int]]) -> SizeProgram:
        """Raises a ValueError whose text has `%lld` for each value, a size or a dimension of a tensor."""
        program = SizeProgram(self.entry.symbols)
        for value in values:
            if isinstance(value, tuple):
                program.dimension(self.place(value[0]), value[1])
            else:
                program.size(value)
        program.do(Do.RAISE, self.strings.offset(f"{_literal(self.function.name)}: {text}"))
        return program

    def about_tensor(self, tensor: int, note: str) -> SizeProgram:
        """Raises a ValueError about a tensor."""
        program = SizeProgram(self.entry.symbols)
        for number in (tensor, self.starts[tensor], self.place(tensor)):
            program.number(number)
        program.do(Do.RAISE_TENSOR, self.strings.offset(note))
        return program


def _literal(text: str) -> str:
    """Escapes a text for a printf format."""
    return text.replace("%", "%%")
