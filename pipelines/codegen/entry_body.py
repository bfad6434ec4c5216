"""The text of a packed entry after the check of its tensors: symbols, checks of what is of them, the call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relayc.pipelines.codegen.size_text import SizeText
from relayc.pipelines.codegen.tables import Strings
from relayc.pipelines.packed_entry import PackedEntry
from relayc.runtime.shapes import MAX_BYTES, SymbolSource
from relayc.symbolic import FAR, Dim, symbols_of


@dataclass
class EntryFunction:
    """A function that gets an entry.

    Attributes:
      fails: whether it gives a status.
    """

    name: str
    entry: PackedEntry
    fails: bool

    @property
    def types(self) -> list[str]:
        """Of its arguments."""
        entry, pointer = self.entry, "!llvm.ptr"
        tensors = len(entry.taken) - entry.blobs
        return [*[pointer] * tensors, *["i64"] * len(entry.symbols), *[pointer] * entry.blobs, *["i64"] * bool(entry.depth)]

    @property
    def result(self) -> str:
        """The type of what it gives; nothing where that is nothing."""
        if self.entry.memory:
            return f"!llvm.struct<({', '.join(['i32', *['ptr'] * self.entry.memory, *['i64'] * self.entry.defined])})>"
        return "i32" if self.fails else ""

    def declaration(self) -> str:
        return f'llvm.func @"{self.name}"({", ".join(self.types)}){f" -> {self.result}" if self.result else ""}'


class EntryBody(SizeText):
    """The text of an entry after the check of its tensors: symbols, checks of what is of them, the call."""

    def __init__(self, function: EntryFunction, strings: Strings, row: int, starts: Sequence[int]) -> None:
        super().__init__()
        self.function, self.entry, self.strings, self.row, self.starts = function, function.entry, strings, row, starts

    def text(self) -> str:
        entry = self.entry
        pointers = [self.load(f"%data[{i}]", "!llvm.ptr") for i in range(len(entry.tensors))]
        if entry.symbols:
            self.symbols()
            self.checks()
        after = len(entry.taken) - entry.blobs
        operands = [*pointers[:after], *(self.values[name] for name in entry.symbols), *pointers[after : len(entry.taken)]]
        if entry.depth:
            operands.append(self.constant(entry.depth))
        result = self.function.result
        types = f"({', '.join(self.function.types)}) -> {result or '()'}"
        call = f'llvm.call @"{self.function.name}"({", ".join(operands)}) {{no_inline}} : {types}'
        if not result:
            self.lines.append(f"  {call}")
            status = "%zero"
        else:
            status = self.value(call)
        if entry.memory:
            status = self.given(status, result, pointers[-1])
        self.lines.append(f"  llvm.br ^end({status} : i32)")
        return "\n".join(self.lines)

    def given(self, found: str, type_: str, place: str) -> str:
        """Writes the addresses and sizes that the function gives; gives the status."""
        for i in range(self.entry.memory + self.entry.defined):
            value = self.value(f"llvm.extractvalue {found}[{i + 1}] : {type_}")
            if i < self.entry.memory:
                value = self.value(f"llvm.ptrtoint {value} : !llvm.ptr to i64")
            at = self.value(f"llvm.getelementptr {place}[{i}] : (!llvm.ptr) -> !llvm.ptr, i64")
            self.lines.append(f"  llvm.store {value}, {at} : i64, !llvm.ptr")
        return self.value(f"llvm.extractvalue {found}[0] : {type_}")

    # ---- symbols

    def dimension(self, tensor: int, axis: int) -> str:
        """A dimension of a tensor of the call."""
        described = self.load(f"%data[{len(self.entry.tensors) + tensor}]", "!llvm.ptr")
        shape = self.load(f"{described}[24]", "!llvm.ptr", "i8")
        return self.load(f"{shape}[{axis}]", "i64")

    def symbols(self) -> None:
        for source in self.entry.sources:
            value = self.dimension(source.input, source.axis)
            if source.rest != 0:
                value = self.binary("sub", value, self.size(source.rest))
            self.values[source.name] = value if source.factor == 1 else self.floor(value, self.constant(source.factor))
        if not self.entry.sources:
            first = len(self.entry.tensors)
            for i, name in enumerate(self.entry.symbols):
                kind = self.load(f"%args[{first + i}]", "i32", "!llvm.struct<(i32, i32, i64)>")
                integer = self.value("llvm.mlir.constant(1 : i32) : i32")
                self.require(f'llvm.icmp "eq" {kind}, {integer} : i32', 0, f", with a value for {name} that is no integer")
                at = self.value(f"llvm.getelementptr %args[{first + i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, i32, i64)>")
                self.values[name] = self.load(f"{at}[8]", "i64", "i8")

    def checks(self) -> None:
        """What must hold of the dimensions and of the symbols."""
        places = {source.name: source for source in self.entry.sources}
        defined = {(source.input, source.axis) for source in self.entry.sources if source.factor == 1 and source.rest == 0}
        for i, spec in enumerate(self.entry.tensors):
            for axis, d in enumerate(spec.shape):
                if isinstance(d, Dim) and (i, axis) not in defined and i != self.entry.arena:
                    self.equal(i, axis, d, places)
        for name in self.entry.symbols:
            for predicate, bound, word in zip(("sge", "sle"), self.entry.ranges.get(name, (0, FAR)), ("least", "most"), strict=True):
                condition = f'llvm.icmp "{predicate}" {self.values[name]}, {self.constant(bound)} : i64'
                if name in places:
                    where = f"{name} is %lld in {_literal(self.entry.tensors[places[name].input].name)}"
                    self.demand(condition, f"{where}, expected at {word} {bound}", [self.values[name]])
                else:
                    self.demand(condition, f"{name} is %lld, expected at {word} {bound}", [self.values[name]])
        if self.entry.arena >= 0:
            self.memory(self.entry.arena)

    def equal(self, tensor: int, axis: int, d: Dim, places: Mapping[str, SymbolSource]) -> None:
        """A dimension must be what its expression says. The words are those of runtime.shapes."""
        found, wanted = self.dimension(tensor, axis), self.size(d)
        here = _literal(self.entry.tensors[tensor].name)
        condition = f'llvm.icmp "eq" {found}, {wanted} : i64'
        if str(d) in places:
            there = _literal(self.entry.tensors[places[str(d)].input].name)
            self.demand(condition, f"{d} is %lld in {there} and %lld in {here}", [wanted, found])
            return
        names = sorted(symbols_of(d))
        inputs = [f" (in {_literal(self.entry.tensors[places[n].input].name)})" if n in places else "" for n in names]
        values = ", ".join(f"{n} = %lld{where}" for n, where in zip(names, inputs, strict=True))
        text = f"dimension {axis} of {here}: expected {_literal(str(d))}, %lld for {values}, found %lld"
        self.demand(condition, text, [wanted, *(self.values[n] for n in names), found])

    def memory(self, arena: int) -> None:
        """The arena must have the bytes that the symbols ask for, which 64 bits may not hold."""
        (wanted,) = self.entry.tensors[arena].shape
        if not isinstance(wanted, Dim):
            return
        limit = self.value(f"llvm.mlir.constant({float(MAX_BYTES):e} : f64) : f64")
        self.demand(
            f'llvm.fcmp "ole" {self.estimate(wanted)}, {limit} : f64', f"expected to need at most {MAX_BYTES} bytes, found more", []
        )
        condition = f'llvm.icmp "sge" {self.dimension(arena, 0)}, {self.size(wanted)} : i64'
        self.require(condition, arena, " that is too small for this call")

    def demand(self, condition: str, text: str, values: Sequence[str]) -> None:
        """Goes on where a condition holds; raises a ValueError whose text has `%lld` for each value where it does not."""
        good = self.branch(condition)
        room = self.value("llvm.mlir.constant(1024 : i64) : i64")
        message = self.value(f"llvm.alloca {room} x i8 : (i64) -> !llvm.ptr")
        kind, form = self.text_at("ValueError"), self.text_at(f"{_literal(self.function.name)}: {text}")
        types = ", ".join(["!llvm.ptr", "i64", "!llvm.ptr", *["i64"] * len(values)])
        operands = ", ".join([message, room, form, *values])
        self.value(f"llvm.call @snprintf({operands}) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>) : ({types}) -> i32")
        self.lines.append(f"  llvm.call @TVMFFIErrorSetRaisedFromCStr({kind}, {message}) : (!llvm.ptr, !llvm.ptr) -> ()")
        self.lines += [f"  llvm.br ^end({self.value('llvm.mlir.constant(-1 : i32) : i32')} : i32)", f"{good}:"]

    def require(self, condition: str, tensor: int, note: str) -> None:
        """Goes on where a condition holds; raises an error about a tensor where it does not."""
        good = self.branch(condition)
        described = self.load(f"%data[{len(self.entry.tensors) + tensor}]", "!llvm.ptr")
        row = self.value(f"llvm.getelementptr %table[{self.row + self.starts[tensor]}] : (!llvm.ptr) -> !llvm.ptr, i64")
        number = self.value(f"llvm.mlir.constant({tensor} : i32) : i32")
        kind, said = self.text_at("ValueError"), self.text_at(note)
        types = "!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr"
        raised = f"llvm.call @__relayc_raise_tensor({kind}, %entry, {number}, {row}, {described}, {said}) : ({types}) -> i32"
        self.lines += [f"  llvm.br ^end({self.value(raised)} : i32)", f"{good}:"]

    def branch(self, condition: str) -> str:
        """Begins the block for where a condition does not hold; gives the name of the one for where it does."""
        holds = self.value(condition)
        self._count += 1
        good, bad = f"^good{self._count}", f"^bad{self._count}"
        self.lines += [f"  llvm.cond_br {holds}, {good}, {bad}", f"{bad}:"]
        return good

    def text_at(self, text: str) -> str:
        """The address of a text."""
        texts = self.value("llvm.mlir.addressof @__relayc_strings : !llvm.ptr")
        return self.value(f"llvm.getelementptr {texts}[{self.strings.offset(text)}] : (!llvm.ptr) -> !llvm.ptr, i8")


def _literal(text: str) -> str:
    """A text in a format of printf."""
    return text.replace("%", "%%")
