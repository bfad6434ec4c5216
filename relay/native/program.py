"""Programs of control as machine code: functions on words of the native heap, called from Python."""

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm_ffi

from relayc.dialects.mlir import bare_context, ir
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import ndarray
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference.unify import substituted
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.target import Target
from relayc.pipelines.llvm.heap import ENTRIES, heap_functions, heap_module
from relayc.pipelines.llvm.tables import address_table
from relayc.relay.control import ControlProgram, Kernel
from relayc.relay.kernel import tensor
from relayc.relay.native.deep import STACK_BYTES, on_deep_stack
from relayc.relay.native.emitter import FunctionText
from relayc.runtime import control as c
from relayc.runtime.artifact import ENTRIES_SYMBOL
from relayc.runtime.device import device_kind
from relayc.runtime.exceptions import keeping_exceptions, reraise_original
from relayc.runtime.heap import Heap, HeapValue, type_index
from relayc.runtime.tensor import to_tensor
from relayc.runtime.values import ConstructorValue
from relayc.trampoline import Call, trampoline

_PYTHON_BYTES = 64 << 20
"""Of a deep stack, what Python and the compiler have of it in kernels that control calls."""


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
        functions = [FunctionText(program.functions, i, self._handle).text() for i in range(len(program.functions))]
        entry = _entry(program.functions[0], (STACK_BYTES - _PYTHON_BYTES) // frame)
        parts = [heap_functions(type_index(), drop, deleter), *functions, entry, address_table(ENTRIES_SYMBOL, ["entry"])]
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
