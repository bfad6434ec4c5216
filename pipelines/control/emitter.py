"""A control function as text of the LLVM dialect.

A register is a word that the function owns. A step takes ownership of a register at its last use, and retains it otherwise. Self tail calls
are jumps. Computations on immediate scalars are instructions; other kernels are called through Python.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relayc.dialects.discardable import OPTIMIZE
from relayc.pipelines.control.kernels import cell_of, packed_call
from relayc.pipelines.control.scalars import emit_scalars, immediate, is_scalar
from relayc.pipelines.control.steps import Kernel
from relayc.pipelines.llvm.heap import CELL_BYTES, CLOSURE, REFERENCE, TUPLE
from relayc.pipelines.llvm.size_text import Lines
from relayc.runtime import control as c

if TYPE_CHECKING:
    from relayc.pipelines.control.program import Links


class FunctionText(Lines):
    """One function during text generation.

    Args:
      links: collects the links of the program.
    """

    def __init__(self, functions: Sequence[c.Function], number: int, links: "Links") -> None:
        self._functions, self._number, self._function, self._links = functions, number, functions[number], links
        super().__init__()
        self._live = _live_after(self._function)
        self._own = range(self._function.params, self._function.captured + 1)  # captures, and the closure itself
        self._constants: list[str] = []

    def text(self) -> str:
        """The function."""
        function = self._function
        params = "".join(f", %a{i}: i64" for i in range(function.params))
        head = f"llvm.func internal @f{self._number}(%self: i64, %limit: i64{params}) -> i64 attributes {{{OPTIMIZE}}} {{"
        prologue = [
            "%one32 = llvm.mlir.constant(1 : i32) : i32",
            "%zero = llvm.mlir.constant(0 : i64) : i64",
            "%one = llvm.mlir.constant(1 : i64) : i64",
            "%shift = llvm.mlir.constant(32 : i64) : i64",
            f"%words = llvm.mlir.constant({2 + 2 * max(len(c.reads(step)) for step in function.steps)} : i32) : i32",
            "%anys = llvm.alloca %words x i64 : (i32) -> !llvm.ptr",  # arguments and the result of kernels
            *(f"%r{i} = llvm.alloca %one32 x i64 : (i32) -> !llvm.ptr" for i in range(function.registers)),
            *(f"llvm.store {f'%a{i}' if i < function.params else '%zero'}, %r{i} : i64, !llvm.ptr" for i in range(function.registers)),
        ]
        for place, register in enumerate(self._own[:-1]):
            value = self._field("%self", place)
            self._put(register, value)
        self._put(self._own[-1], "%self")
        deep = self.value(f'llvm.icmp "ult" {self.value("llvm.ptrtoint %anys : !llvm.ptr to i64")}, %limit : i64')
        self.line(f"llvm.cond_br {deep}, ^deep, ^s0")
        for at, step in enumerate(function.steps):
            self.line(f"^s{at}:")
            self._step(at, step)
        self.line(f"^s{len(function.steps)}:")  # unreachable place after the last step
        self.line("llvm.br ^failed")
        self.line("^deep:")
        self._raise("RecursionError", f"{function.name}: expected fewer nested calls, found more than the stack has room for")
        self.line("^failed:")
        self._release_all()
        self.line("llvm.return %zero : i64\n}")
        return "\n".join([*self._constants, head, *prologue, *self.lines])

    # ---- parts of text

    def _get(self, register: int) -> str:
        """The word of a register."""
        return self.value(f"llvm.load %r{register} : !llvm.ptr -> i64")

    def _put(self, register: int, word: str) -> None:
        self.line(f"llvm.store {word}, %r{register} : i64, !llvm.ptr")

    def _owned(self, at: int, registers: Sequence[int]) -> list[str]:
        """The words of registers as owned references: moved from registers at their last use, otherwise retained."""
        words = []
        for place, register in enumerate(registers):
            word = self._get(register)
            if register in self._live[at] or register in self._own or register in registers[place + 1 :]:
                self.line(f"llvm.call @heap_retain({word}) : (i64) -> ()")
            else:
                self._put(register, "%zero")
            words.append(word)
        return words

    def _linked(self, place: int, type_: str = "i64") -> str:
        """A word of the program's links."""
        links = self.value("llvm.mlir.addressof @__relayc_links : !llvm.ptr")
        return self.value(
            f"llvm.load {self.value(f'llvm.getelementptr {links}[{8 * place}] : (!llvm.ptr) -> !llvm.ptr, i8')} : !llvm.ptr -> {type_}"
        )

    def _field(self, word: str, place: int) -> str:
        return self.value(f"llvm.call @heap_field({word}, {self.constant(place)}) : (i64, i64) -> i64")

    def _release_all(self, but: Sequence[int] = ()) -> None:
        """Releases all registers; the closure belongs to the caller."""
        for register in range(self._function.registers):
            if register not in but and register != self._own[-1]:
                self.line(f"llvm.call @heap_release({self._get(register)}) : (i64) -> ()")

    def _raise(self, kind: str, message: str) -> None:
        """Raises an error and leaves the function."""
        addresses = []
        for i, text in enumerate((kind, message)):
            name = f"m{self._number}_{len(self._constants)}_{i}"
            data = text.encode() + b"\0"
            escaped = "".join(f"\\{byte:02X}" for byte in data)
            self._constants.append(
                f'llvm.mlir.global internal constant @{name}("{escaped}") {{addr_space = 0 : i32}} : !llvm.array<{len(data)} x i8>'
            )
            addresses.append(self.value(f"llvm.mlir.addressof @{name} : !llvm.ptr"))
        self.line(f"llvm.call @TVMFFIErrorSetRaisedFromCStr({', '.join(addresses)}) : (!llvm.ptr, !llvm.ptr) -> ()")
        self.line("llvm.br ^failed")

    # ---- steps

    def _step(self, at: int, step: Any) -> None:
        ends = False
        if isinstance(step, c.Constant):
            word = immediate(step.value)
            value = self._linked(self._links.constant(step.value)) if word is None else self.constant(word)
            if word is None:
                self.line(f"llvm.call @heap_retain({value}) : (i64) -> ()")
            self._put(step.to, value)
        elif isinstance(step, c.Make):
            self._put(step.to, self._value_of(at, step))
        elif isinstance(step, c.Field):
            self._put(step.to, self._field(self._get(step.value), step.index))
        elif isinstance(step, c.Read):
            self._put(step.to, self._field(self._get(step.ref), 0))
        elif isinstance(step, c.Refer):
            self._put(step.to, cell_of(self, REFERENCE, self.constant(0), self._owned(at, [step.value])))
        elif isinstance(step, c.Write):
            self._write(at, step)
        elif isinstance(step, c.Bind):
            address = self.value(f"llvm.mlir.addressof @f{step.function} : !llvm.ptr")
            info = self.value(f"llvm.ptrtoint {address} : !llvm.ptr to i64")
            self._put(step.to, cell_of(self, CLOSURE, info, self._owned(at, step.captures)))
        elif isinstance(step, c.Move):
            self._put(step.to, self._owned(at, [step.value])[0])
        elif isinstance(step, c.Compute):
            self._compute(at, step)
        elif isinstance(step, (c.Call, c.Apply)):
            self._call(at, step)
            ends = step.to is None
        else:
            self._branch(at, step)
            ends = True
        if not ends:
            self.line(f"llvm.br ^s{at + 1}")

    def _branch(self, at: int, step: Any) -> None:
        if isinstance(step, c.Jump):
            self.line(f"llvm.br ^s{step.target}")
        elif isinstance(step, c.Unless):
            shifted = self.value(f"llvm.lshr {self._get(step.value)}, %shift : i64")
            bit = self.value(f"llvm.trunc {shifted} : i64 to i1")
            self.line(f"llvm.cond_br {bit}, ^s{at + 1}, ^s{step.target}")
        elif isinstance(step, c.Unlike):
            tag = self.value(f"llvm.call @heap_tag({self._get(step.value)}) : (i64) -> i32")
            same = self.value(f'llvm.icmp "eq" {tag}, {self.constant(step.tag, "i32")} : i32')
            self.line(f"llvm.cond_br {same}, ^s{at + 1}, ^s{step.target}")
        elif isinstance(step, c.Give):
            (word,) = self._owned(at, [step.value])
            self._release_all()
            self.line(f"llvm.return {word} : i64")
        else:
            self._raise("ValueError", f"{self._function.name}: {step.message}")

    def _value_of(self, at: int, step: c.Make) -> str:
        if step.constructor is None:
            return cell_of(self, TUPLE, self.constant(0), self._owned(at, step.args))
        linked = self._linked(self._links.constructor(step.constructor))
        return cell_of(self, step.constructor.tag, linked, self._owned(at, step.args)) if step.args else linked

    def _write(self, at: int, step: c.Write) -> None:
        (word,) = self._owned(at, [step.value])
        cell = self.value(f"llvm.inttoptr {self._get(step.ref)} : i64 to !llvm.ptr")
        place = self.value(f"llvm.getelementptr {cell}[{CELL_BYTES}] : (!llvm.ptr) -> !llvm.ptr, i8")
        old = self.value(f"llvm.load {place} : !llvm.ptr -> i64")
        self.line(f"llvm.store {word}, {place} : i64, !llvm.ptr")
        self.line(f"llvm.call @heap_release({old}) : (i64) -> ()")
        self._put(step.to, cell_of(self, TUPLE, self.constant(0), []))

    def _call(self, at: int, step: c.Call | c.Apply) -> None:
        itself = self._own[-1]
        is_self = (isinstance(step, c.Call) and step.function == self._number) or (isinstance(step, c.Apply) and step.callee == itself)
        words = self._owned(at, step.args)
        if is_self and step.to is None:
            self._release_all(but=self._own)
            for register, word in enumerate(words):
                self._put(register, word)
            for register in range(self._own.stop, self._function.registers):
                self._put(register, "%zero")
            self.line("llvm.br ^s0")
            return
        if isinstance(step, c.Apply) and not is_self:
            closure = self._get(step.callee)
            cell = self.value(f"llvm.inttoptr {closure} : i64 to !llvm.ptr")
            place = self.value(f"llvm.getelementptr {cell}[32] : (!llvm.ptr) -> !llvm.ptr, i8")
            callee = f"{self.value(f'llvm.load {place} : !llvm.ptr -> !llvm.ptr')}"
        else:
            closure = self._get(itself) if isinstance(step, c.Apply) else "%one"
            callee = f"@f{self._number if isinstance(step, c.Apply) else step.function}"
        types = ", ".join(["i64"] * (len(words) + 2))
        separator = " : !llvm.ptr," if callee.startswith("%") else " :"
        found = self.value(f"llvm.call {callee}({', '.join([closure, '%limit', *words])}){separator} ({types}) -> i64")
        if step.to is None:
            self._release_all()
            self.line(f"llvm.return {found} : i64")
            return
        self._put(step.to, found)
        self._check(found)

    def _check(self, found: str) -> None:
        """Leaves the function if a call has raised an error."""
        failed, after = self.value(f'llvm.icmp "eq" {found}, %zero : i64'), f"^c{self.count}"
        self.line(f"llvm.cond_br {failed}, ^failed, {after}")
        self.line(f"{after}:")

    # ---- computations

    def _compute(self, at: int, step: c.Compute) -> None:
        kernel = step.kernel
        assert isinstance(kernel, Kernel)
        if is_scalar(kernel):
            self._put(step.to, emit_scalars(self, kernel, [self._get(register) for register in step.args]))
            return
        direct = self._links.direct(kernel)
        if direct is not None:
            words, types = [self._get(register) for register in step.args], ", ".join(["i64"] * len(step.args))
            found = self.value(f"llvm.call @{direct}({', '.join(words)}) : ({types}) -> i64")
            self._put(step.to, found)
            self._check(found)
            return
        handle = self._linked(self._links.kernel(kernel), "!llvm.ptr")
        status, result = packed_call(self, handle, [self._get(register) for register in step.args], "%anys")
        right, after = self.value(f'llvm.icmp "eq" {status}, {self.constant(0, "i32")} : i32'), f"^c{self.count}"
        self.line(f"llvm.cond_br {right}, {after}, ^failed")
        self.line(f"{after}:")
        self._put(step.to, self.value(f"llvm.call @heap_from_any({result}) : (!llvm.ptr) -> i64"))


def _live_after(function: c.Function) -> list[set[int]]:
    """The registers that are live after each step."""
    steps = function.steps
    before: list[set[int]] = [set() for _ in range(len(steps) + 1)]
    after: list[set[int]] = [set() for _ in steps]
    changed = True
    while changed:
        changed = False
        for at in range(len(steps) - 1, -1, -1):
            live: set[int] = set()
            for target in _targets(at, steps[at]):
                live |= before[target]
            found = (live - {getattr(steps[at], "to", None)}) | set(c.reads(steps[at]))
            if found != before[at] or live != after[at]:
                before[at], after[at], changed = found, live, True
    return after


def _targets(at: int, step: Any) -> list[int]:
    """The possible successors of a step."""
    if isinstance(step, (c.Give, c.Fail)) or (isinstance(step, (c.Call, c.Apply)) and step.to is None):
        return []
    if isinstance(step, c.Jump):
        return [step.target]
    return [at + 1, step.target] if isinstance(step, (c.Unless, c.Unlike)) else [at + 1]
