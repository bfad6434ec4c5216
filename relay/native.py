"""Steps of control (runtime.control) as machine code: a function of the LLVM dialect for each, on words of the native heap.

A register is a word that the function owns. A step takes over a register that nothing reads after it, and retains the others. Calls of a
function by itself at its end are jumps. Computations on scalars of the kinds that words hold are instructions; other kernels are
called through Python.
"""

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm_ffi

from relayc.dialects.mlir import bare_context, ir
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import ndarray
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference.unify import substituted
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.llvm.heap import CELL_BYTES, CLOSURE, ENTRIES, IMMEDIATES, REFERENCE, TUPLE, heap_functions, heap_module, table
from relayc.relay.control import ControlProgram, Kernel
from relayc.relay.deep import STACK_BYTES, on_deep_stack
from relayc.relay.kernel import tensor
from relayc.runtime import control as c
from relayc.runtime.artifact import ENTRIES_SYMBOL
from relayc.runtime.device import device_kind
from relayc.runtime.exceptions import keeping_exceptions, reraise_original
from relayc.runtime.heap import Heap, HeapValue, constructors, type_index
from relayc.runtime.tensor import to_tensor
from relayc.runtime.values import ConstructorValue
from relayc.trampoline import Call, trampoline

_COMPARED = {"equal": "eq", "not_equal": "ne", "less": "slt", "less_equal": "sle", "greater": "sgt", "greater_equal": "sge"}
_FLOAT_COMPARED = {"equal": "oeq", "not_equal": "une", "less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge"}
_ARITHMETIC = {
    "int32": {"add": "add", "subtract": "sub", "multiply": "mul"},
    "float32": {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"},
    "bool": {"logical_and": "and", "logical_or": "or"},
}
_PYTHON_BYTES = 64 << 20
"""Of a deep stack, what Python and the compiler have of it in kernels that control calls."""
_LLVM = {"int32": "i32", "float32": "f32", "bool": "i1"}


def _loaded(text: str, count: int) -> tuple[Sequence[int], object]:
    """Addresses of the functions that the table of a module has, and the owner of the code."""
    module = ir.Module.parse(text, context=bare_context())
    return device_kind("cpu").load(find_backend("cpu").object_code(module, Target("cpu")), count)


def _keep(value: object) -> None:
    """Keeps an object until the process ends: code that cells refer to, which may outlive everything."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


@functools.cache
def _heap() -> tuple[Heap, int, int]:
    """The functions on cells, and the addresses of those that programs call."""
    addresses, owner = _loaded(heap_module(type_index(), ENTRIES_SYMBOL), len(ENTRIES) + 2)
    _keep(owner)
    return Heap(addresses[: len(ENTRIES)], owner, ndarray), addresses[-2], addresses[-1]


def is_native(module: RelayModule) -> bool:
    """Whether main can be a native function: its arguments are tensors, tuples and values of data types, whose types are known."""
    return all(_is_known(param.type_annotation) for param in module["main"].params)


def _is_known(type_: t.Type | None) -> bool:
    if isinstance(type_, (t.TupleType, t.TypeCall)):
        return all(map(_is_known, type_.fields if isinstance(type_, t.TupleType) else type_.args))
    return isinstance(type_, t.TensorType)


class NativeProgram:
    """The functions of a program as machine code."""

    def __init__(self, program: ControlProgram) -> None:
        self._heap, drop, deleter = _heap()
        self._module = program.module
        main = program.module["main"]
        self._types, self._result = [param.type_annotation for param in main.params], main.ret_type
        self._kept: list[Any] = []  # what the code has addresses of
        steps = [step for function in program.functions for step in function.steps]
        frame = max(8 * f.registers + 16 * max(len(c.reads(step)) for step in f.steps) for f in program.functions) + 256
        self._is_deep = any(isinstance(step, (c.Call, c.Apply)) and step.to is not None for step in steps)
        functions = [_Emitter(program.functions, i, self._handle).text() for i in range(len(program.functions))]
        entry = _entry(program.functions[0], (STACK_BYTES - _PYTHON_BYTES) // frame)
        parts = [heap_functions(type_index(), drop, deleter), *functions, entry, table(ENTRIES_SYMBOL, ["entry"])]
        addresses, owner = _loaded("\n".join(parts), 1)
        self._entry = tvm_ffi.Function.__from_extern_c__(addresses[0], keep_alive_object=owner)
        if any(isinstance(step, c.Bind) for step in steps):  # a cell may have the address of a function
            _keep(owner)
            _keep(self._kept)

    def _handle(self, value: Any) -> int:
        """The address of a kernel, or of a tensor, which stays while the program does."""
        found = self._callback(value) if isinstance(value, Kernel) else to_tensor(np.array(value))
        self._kept.append(found)
        return int(ctypes.cast(found.__ctypes_handle__(), ctypes.c_void_p).value or 0)

    def _callback(self, kernel: Kernel) -> tvm_ffi.Function:
        heap = self._heap

        def taken(value: Any) -> Any:
            return heap.tuple(list(map(taken, value))) if isinstance(value, list) else heap.tensor(value.view(np.ndarray))

        def call(*args: Any) -> Any:
            return taken(kernel(*map(heap.given, args)))

        found: tvm_ffi.Function = tvm_ffi.convert(keeping_exceptions(call))
        return found

    def __call__(self, *args: Any) -> Any:
        """The result of main.

        Raises:
          TypeError, ValueError: an argument is not of its type.
          NoClause: no clause of a match takes a value.
          RecursionError: calls nest deeper than the stack has room for.
          What kernels raise.
        """
        values = [self._taken(value, type_) for value, type_ in zip(args, self._types, strict=True)]
        try:
            found = on_deep_stack(self._entry, values) if self._is_deep else self._entry(*values)
        except BaseException as error:
            reraise_original(error)
            if str(error).endswith(c.NO_CLAUSE):
                raise c.NoClause(str(error)) from None
            raise
        return self._typed(self._heap.given(found), self._result)

    def _typed(self, value: Any, type_: t.Type | None) -> Any:
        """A result that knows its type: it may be an argument of that type as it is."""
        if isinstance(value, HeapValue):
            value.type_ = type_
        elif isinstance(value, list) and isinstance(type_, t.TupleType):
            for part, field in zip(value, type_.fields, strict=True):
                self._typed(part, field)
        return value

    def _taken(self, value: Any, type_: t.Type | None) -> Any:
        """What the code takes for a value of a type. Raises TypeError, ValueError."""
        return trampoline(self._made_of(value, type_))

    def _made_of(self, value: Any, type_: t.Type | None) -> Call[Any]:
        if isinstance(type_, t.TensorType):
            array = tensor(value, type_.dtype).view(np.ndarray)
            # Of an array in the place of a scalar, code would take the address for a number.
            if array.ndim and not type_.shape:
                raise ValueError(f"expected {type_}, found {array.dtype.name}{list(array.shape)}")
            return self._heap.tensor(array)
        if isinstance(type_, t.TupleType):
            constructor: e.Constructor | None = None
            types: Sequence[t.Type] = type_.fields
        elif isinstance(type_, t.TypeCall):
            if isinstance(value, HeapValue) and value.type_ is not None and value.type_ == type_:
                return value.cell
            constructor, types = self._constructor(value, type_)
        else:
            raise TypeError(f"expected {type_}, found a value of type {type(value).__name__}, which is none of the host's")
        fields = list(value)
        if len(fields) != len(types):
            raise TypeError(f"expected {type_}, found {len(fields)} field(s) where it has {len(types)}")
        made = []
        for part, field in zip(fields, types, strict=True):
            made.append((yield self._made_of(part, field)))
        return self._heap.tuple(made) if constructor is None else self._heap.constructed(constructor, made)

    def _constructor(self, value: Any, type_: t.TypeCall) -> tuple[e.Constructor, Sequence[t.Type]]:
        """The constructor of a value, and the types of its fields."""
        if not isinstance(value, ConstructorValue):
            raise TypeError(f"expected {type_}, found a value of type {type(value).__name__}")
        assert isinstance(type_.func, t.GlobalTypeVar)
        data: e.TypeData = self._module[type_.func]
        name = getattr(value.constructor, "name_hint", None)
        if not 0 <= value.tag < len(data.constructors) or name not in (None, data.constructors[value.tag].name_hint):
            raise TypeError(f"expected {type_}, found a value of the constructor {name or value.tag}")
        constructor = data.constructors[value.tag]
        types = dict(zip(map(id, data.type_vars), type_.args, strict=True))
        return constructor, [substituted(part, types) for part in constructor.inputs]


def _entry(main: c.Function, depth: int) -> str:
    """The packed function: arguments are values of tvm-ffi, as is the result."""
    lines = ["llvm.func internal @entry(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {"]
    for i in range(main.params):
        lines += [
            f"%p{i} = llvm.getelementptr %args[{16 * i}] : (!llvm.ptr) -> !llvm.ptr, i8",
            f"%a{i} = llvm.call @heap_from_any(%p{i}) : (!llvm.ptr) -> i64",
            f"llvm.call @heap_retain(%a{i}) : (i64) -> ()",
        ]
    values = "".join(f", %a{i}" for i in range(main.params))
    types = ", ".join(["i64"] * (main.params + 2))
    lines.append(f"""%none = llvm.mlir.constant(1 : i64) : i64
%depth = llvm.mlir.constant({depth} : i64) : i64
%zero = llvm.mlir.constant(0 : i64) : i64
%right = llvm.mlir.constant(0 : i32) : i32
%wrong = llvm.mlir.constant(-1 : i32) : i32
%found = llvm.call @f0(%none, %depth{values}) : ({types}) -> i64
%failed = llvm.icmp "eq" %found, %zero : i64
llvm.cond_br %failed, ^failed, ^done
^failed:
llvm.return %wrong : i32
^done:
llvm.call @heap_to_any(%found, %result) : (i64, !llvm.ptr) -> ()
llvm.return %right : i32
}}""")
    return "\n".join(lines)


def _immediate(value: Any) -> int | None:
    """The word that a scalar is; None where it is none by itself."""
    array = np.asarray(value)
    kind = array.dtype.name
    if array.ndim or kind not in _LLVM:
        return None
    bits = struct.unpack("<I", struct.pack("<f", array[()]))[0] if kind == "float32" else int(array) & 0xFFFFFFFF
    return _signed(bits << 32 | IMMEDIATES[kind] << 1 | 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


class _Emitter:
    """One function while its text is made.

    Args:
      handle: gives the address of a kernel or a tensor.
    """

    def __init__(self, functions: Sequence[c.Function], number: int, handle: Callable[[Any], int]) -> None:
        self._functions, self._number, self._function, self._handle = functions, number, functions[number], handle
        self._lines: list[str] = []
        self._count = 0
        self._live = _live_after(self._function)
        self._own = range(self._function.params, self._function.captured + 1)  # captures, and the closure itself
        self._constants: list[str] = []

    def text(self) -> str:
        """The function."""
        function = self._function
        params = "".join(f", %a{i}: i64" for i in range(function.params))
        head = f"llvm.func internal @f{self._number}(%self: i64, %depth: i64{params}) -> i64 attributes {{relay.optimize}} {{"
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
        self._line("%below = llvm.sub %depth, %one : i64")
        deep = self._name()
        self._line(f'{deep} = llvm.icmp "slt" %depth, %zero : i64')
        self._line(f"llvm.cond_br {deep}, ^deep, ^s0")
        for at, step in enumerate(function.steps):
            self._line(f"^s{at}:")
            self._step(at, step)
        self._line(f"^s{len(function.steps)}:")  # the place after the last step, which nothing reaches
        self._line("llvm.br ^failed")
        self._line("^deep:")
        self._raise("RecursionError", f"{function.name}: expected fewer nested calls, found more than the stack has room for")
        self._line("^failed:")
        self._release_all()
        self._line("llvm.return %zero : i64\n}")
        return "\n".join([*self._constants, head, *prologue, *self._lines])

    # ---- parts of text

    def _line(self, text: str) -> None:
        self._lines.append(text)

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _made(self, text: str) -> str:
        """A new value."""
        name = self._name()
        self._line(f"{name} = {text}")
        return name

    def _int(self, value: int, type_: str = "i64") -> str:
        return self._made(f"llvm.mlir.constant({value} : {type_}) : {type_}")

    def _get(self, register: int) -> str:
        """The word of a register, as it is."""
        return self._made(f"llvm.load %r{register} : !llvm.ptr -> i64")

    def _put(self, register: int, word: str) -> None:
        self._line(f"llvm.store {word}, %r{register} : i64, !llvm.ptr")

    def _owned(self, at: int, registers: Sequence[int]) -> list[str]:
        """The words of registers, for one who owns them then: taken over where a register is not read after the step."""
        words = []
        for place, register in enumerate(registers):
            word = self._get(register)
            if register in self._live[at] or register in self._own or register in registers[place + 1 :]:
                self._line(f"llvm.call @heap_retain({word}) : (i64) -> ()")
            else:
                self._put(register, "%zero")
            words.append(word)
        return words

    def _field(self, word: str, place: int) -> str:
        return self._made(f"llvm.call @heap_field({word}, {self._int(place)}) : (i64, i64) -> i64")

    def _cell(self, tag: int, info: str, words: Sequence[str]) -> str:
        """A new cell."""
        count = self._int(len(words), "i32")
        cell = self._made(f"llvm.call @heap_new({self._int(tag, 'i32')}, {count}, {info}) : (i32, i32, i64) -> !llvm.ptr")
        for i, word in enumerate(words):
            place = self._made(f"llvm.getelementptr {cell}[{CELL_BYTES + 8 * i}] : (!llvm.ptr) -> !llvm.ptr, i8")
            self._line(f"llvm.store {word}, {place} : i64, !llvm.ptr")
        return self._made(f"llvm.ptrtoint {cell} : !llvm.ptr to i64")

    def _release_all(self, but: Sequence[int] = ()) -> None:
        """The registers are owned by nobody any more; the closure is the caller's."""
        for register in range(self._function.registers):
            if register not in but and register != self._own[-1]:
                self._line(f"llvm.call @heap_release({self._get(register)}) : (i64) -> ()")

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
            addresses.append(self._made(f"llvm.mlir.addressof @{name} : !llvm.ptr"))
        self._line(f"llvm.call @TVMFFIErrorSetRaisedFromCStr({', '.join(addresses)}) : (!llvm.ptr, !llvm.ptr) -> ()")
        self._line("llvm.br ^failed")

    # ---- steps

    def _step(self, at: int, step: Any) -> None:
        ends = False
        if isinstance(step, c.Constant):
            word = _immediate(step.value)
            value = self._int(self._handle(step.value) if word is None else word)
            if word is None:
                self._line(f"llvm.call @heap_retain({value}) : (i64) -> ()")
            self._put(step.to, value)
        elif isinstance(step, c.Make):
            self._put(step.to, self._value_of(at, step))
        elif isinstance(step, c.Field):
            self._put(step.to, self._field(self._get(step.value), step.index))
        elif isinstance(step, c.Read):
            self._put(step.to, self._field(self._get(step.ref), 0))
        elif isinstance(step, c.Refer):
            self._put(step.to, self._cell(REFERENCE, self._int(0), self._owned(at, [step.value])))
        elif isinstance(step, c.Write):
            self._write(at, step)
        elif isinstance(step, c.Bind):
            address = self._made(f"llvm.mlir.addressof @f{step.function} : !llvm.ptr")
            info = self._made(f"llvm.ptrtoint {address} : !llvm.ptr to i64")
            self._put(step.to, self._cell(CLOSURE, info, self._owned(at, step.captures)))
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
            self._line(f"llvm.br ^s{at + 1}")

    def _branch(self, at: int, step: Any) -> None:
        if isinstance(step, c.Jump):
            self._line(f"llvm.br ^s{step.target}")
        elif isinstance(step, c.Unless):
            shifted = self._made(f"llvm.lshr {self._get(step.value)}, %shift : i64")
            bit = self._made(f"llvm.trunc {shifted} : i64 to i1")
            self._line(f"llvm.cond_br {bit}, ^s{at + 1}, ^s{step.target}")
        elif isinstance(step, c.Unlike):
            tag = self._made(f"llvm.call @heap_tag({self._get(step.value)}) : (i64) -> i32")
            same = self._made(f'llvm.icmp "eq" {tag}, {self._int(step.tag, "i32")} : i32')
            self._line(f"llvm.cond_br {same}, ^s{at + 1}, ^s{step.target}")
        elif isinstance(step, c.Give):
            (word,) = self._owned(at, [step.value])
            self._release_all()
            self._line(f"llvm.return {word} : i64")
        else:
            self._raise("ValueError", f"{self._function.name}: {step.message}")

    def _value_of(self, at: int, step: c.Make) -> str:
        if step.constructor is None:
            return self._cell(TUPLE, self._int(0), self._owned(at, step.args))
        number, tag = constructors.number(step.constructor), step.constructor.tag
        if not step.args:
            return self._int(_signed(number << 32 | tag << 8 | IMMEDIATES["constructor"] << 1 | 1))
        return self._cell(tag, self._int(number), self._owned(at, step.args))

    def _write(self, at: int, step: c.Write) -> None:
        (word,) = self._owned(at, [step.value])
        cell = self._made(f"llvm.inttoptr {self._get(step.ref)} : i64 to !llvm.ptr")
        place = self._made(f"llvm.getelementptr {cell}[{CELL_BYTES}] : (!llvm.ptr) -> !llvm.ptr, i8")
        old = self._made(f"llvm.load {place} : !llvm.ptr -> i64")
        self._line(f"llvm.store {word}, {place} : i64, !llvm.ptr")
        self._line(f"llvm.call @heap_release({old}) : (i64) -> ()")
        self._put(step.to, self._cell(TUPLE, self._int(0), []))

    def _call(self, at: int, step: c.Call | c.Apply) -> None:
        itself = self._own[-1]
        is_self = (isinstance(step, c.Call) and step.function == self._number) or (isinstance(step, c.Apply) and step.callee == itself)
        words = self._owned(at, step.args)
        if is_self and step.to is None:
            self._release_all(but=self._own)
            for register in range(self._function.registers):
                if register not in self._own:
                    self._put(register, words[register] if register < len(words) else "%zero")
            self._line("llvm.br ^s0")
            return
        if isinstance(step, c.Apply) and not is_self:
            closure = self._get(step.callee)
            cell = self._made(f"llvm.inttoptr {closure} : i64 to !llvm.ptr")
            place = self._made(f"llvm.getelementptr {cell}[32] : (!llvm.ptr) -> !llvm.ptr, i8")
            callee = f"{self._made(f'llvm.load {place} : !llvm.ptr -> !llvm.ptr')}"
        else:
            closure = self._get(itself) if isinstance(step, c.Apply) else "%one"
            callee = f"@f{self._number if isinstance(step, c.Apply) else step.function}"
        types = ", ".join(["i64"] * (len(words) + 2))
        separator = " : !llvm.ptr," if callee.startswith("%") else " :"
        found = self._made(f"llvm.call {callee}({', '.join([closure, '%below', *words])}){separator} ({types}) -> i64")
        if step.to is None:
            self._release_all()
            self._line(f"llvm.return {found} : i64")
            return
        self._put(step.to, found)
        self._check(found)

    def _check(self, found: str) -> None:
        """Leaves the function where a call has raised an error."""
        failed, after = self._made(f'llvm.icmp "eq" {found}, %zero : i64'), f"^c{self._count}"
        self._line(f"llvm.cond_br {failed}, ^failed, {after}")
        self._line(f"{after}:")

    # ---- computations

    def _compute(self, at: int, step: c.Compute) -> None:
        kernel = step.kernel
        assert isinstance(kernel, Kernel)
        if _is_scalar(kernel):
            self._put(step.to, self._scalars(kernel, [self._get(register) for register in step.args]))
            return
        count = self._int(len(step.args), "i32")
        args = "%anys"
        for i, register in enumerate(step.args):
            place = self._made(f"llvm.getelementptr {args}[{16 * i}] : (!llvm.ptr) -> !llvm.ptr, i8")
            self._line(f"llvm.call @heap_to_any({self._get(register)}, {place}) : (i64, !llvm.ptr) -> ()")
        result = self._made(f"llvm.getelementptr {args}[{16 * len(step.args)}] : (!llvm.ptr) -> !llvm.ptr, i8")
        self._line(f"llvm.store %zero, {result} : i64, !llvm.ptr")
        handle = self._made(f"llvm.inttoptr {self._int(self._handle(kernel))} : i64 to !llvm.ptr")
        call = f"llvm.call @TVMFFIFunctionCall({handle}, {args}, {count}, {result})"
        status = self._made(f"{call} : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32")
        right, after = self._made(f'llvm.icmp "eq" {status}, {self._int(0, "i32")} : i32'), f"^c{self._count}"
        self._line(f"llvm.cond_br {right}, {after}, ^failed")
        self._line(f"{after}:")
        self._put(step.to, self._made(f"llvm.call @heap_from_any({result}) : (!llvm.ptr) -> i64"))

    def _scalars(self, kernel: Kernel, words: Sequence[str]) -> str:
        """A kernel on scalars as instructions."""
        main = kernel.typed
        values: dict[e.Expr, str] = {}
        for param, word in zip(main.params, words, strict=True):
            values[param] = self._unpacked(word, _dtype(param.type_annotation))
        for node in post_order(main.body):
            if isinstance(node, e.Constant):
                text = repr(float(node.data)) if node.dtype == "float32" else str(int(node.data))
                values[node] = self._constant(node, text)
            elif isinstance(node, e.Call):
                values[node] = self._operator(node, [values[arg] for arg in node.args])
        return self._packed(values[main.body], _dtype(main.body.checked_type))

    def _constant(self, node: e.Constant, text: str) -> str:
        type_ = _LLVM[node.dtype]
        if type_ == "f32":  # by its bits: it may be infinite
            bits = struct.unpack("<i", struct.pack("<f", node.data[()]))[0]
            return self._made(f"llvm.bitcast {self._int(bits, 'i32')} : i32 to f32")
        return self._int(-int(node.data) if type_ == "i1" else int(text), type_)

    def _operator(self, call: e.Call, args: Sequence[str]) -> str:
        assert isinstance(call.op, e.Op)
        name, kind = call.op.name, _dtype(call.args[0].checked_type)
        operands, type_ = ", ".join(args), _LLVM[kind]
        if name in _COMPARED:
            word, predicate = ("fcmp", _FLOAT_COMPARED[name]) if kind == "float32" else ("icmp", _COMPARED[name])
            return self._made(f'llvm.{word} "{predicate}" {operands} : {type_}')
        if name == "logical_not":
            return self._made(f"llvm.xor {operands}, {self._int(-1, 'i1')} : i1")
        return self._made(f"llvm.{_ARITHMETIC[kind][name]} {operands} : {type_}")

    def _unpacked(self, word: str, kind: str) -> str:
        value = self._made(f"llvm.lshr {word}, %shift : i64")
        if kind == "bool":
            return self._made(f"llvm.trunc {value} : i64 to i1")
        value = self._made(f"llvm.trunc {value} : i64 to i32")
        return self._made(f"llvm.bitcast {value} : i32 to f32") if kind == "float32" else value

    def _packed(self, value: str, kind: str) -> str:
        if kind == "float32":
            value = self._made(f"llvm.bitcast {value} : f32 to i32")
        wide = self._made(f"llvm.zext {value} : {'i1' if kind == 'bool' else 'i32'} to i64")
        high = self._made(f"llvm.shl {wide}, %shift : i64")
        return self._made(f"llvm.or {high}, {self._int(IMMEDIATES[kind] << 1 | 1)} : i64")


def _dtype(type_: t.Type | None) -> str:
    assert isinstance(type_, t.TensorType)
    return type_.dtype


def _is_scalar(kernel: Kernel) -> bool:
    """Whether a kernel is of instructions on scalars."""
    main = kernel.typed
    return all(_is_instruction(node) for node in post_order(main.body))


def _is_instruction(node: e.Expr) -> bool:
    if isinstance(node, e.Op):
        return True
    type_ = node.checked_type_
    if not isinstance(type_, t.TensorType) or type_.shape or type_.dtype not in _LLVM:
        return False
    if isinstance(node, (e.Var, e.Constant)):
        return True
    if not isinstance(node, e.Call) or not isinstance(node.op, e.Op):
        return False
    kind = _dtype(node.args[0].checked_type) if isinstance(node.args[0].checked_type, t.TensorType) else ""
    if node.op.name in _COMPARED:
        return kind in ("int32", "float32")
    return (node.op.name == "logical_not" and kind == "bool") or node.op.name in _ARITHMETIC.get(kind, ())


def _live_after(function: c.Function) -> list[set[int]]:
    """The registers that are read after each step, on some way."""
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
    """The steps that may come after a step."""
    if isinstance(step, (c.Give, c.Fail)) or (isinstance(step, (c.Call, c.Apply)) and step.to is None):
        return []
    if isinstance(step, c.Jump):
        return [step.target]
    return [at + 1, step.target] if isinstance(step, (c.Unless, c.Unlike)) else [at + 1]
