"""Bodies of the functions that programs declare: calls of packed functions by their registered names, and errors.

    llvm.func @p(!llvm.ptr, ..., i64, ...) -> i32 attributes {relay.packed = "NAME", relay.tensors = (tensors) -> tensors}
    llvm.func @e(i64, ...) attributes {relay.error = ["KIND", "MESSAGE"]}

`@p` takes a pointer to the data of each tensor, inputs then outputs, and the symbols in their shapes in the order of the names. It calls
the function that is registered as NAME at that moment with a tensor object for each: on the CPU, in row-major order, of the shape and dtype
in `relay.tensors`. It gives 0, or -1 with an error raised: that of the function as it is, or a ValueError where none is registered. `@e`
raises an error, with the sizes that it is given in the places that the message has for them (%lld).

A tensor object, not a bare DLTensor*: a Python function may export it through DLPack, for which tvm-ffi needs the object, and may keep it,
if only in the traceback of an error. Its shape and strides stay as long as it does; its data is the program's, and holds until the function
returns.

The work is one function for the whole module, driven by a table: a call costs the tensors and a look-up of the name (the C API is in
tvm/ffi/c_api.h of apache-tvm-ffi). Where shapes have symbols, a call has a row of the table of its own, with the values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import tvm_ffi  # noqa: F401 (loads the library in which the compiled code finds the functions of the C API)

from relayc.dialects.discardable import ERROR, PACKED, TENSORS
from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.llvm.size_text import SizeText
from relayc.pipelines.llvm.tables import Strings, dtype_bits, i64_global
from relayc.symbolic import Dim, Size

# What the text below knows of C structures (64-bit, little-endian), by byte:
#   TVMFFIAny                { i32 type_index; i32 padding; i64 value }; type 70 is a tensor; from type 64 on value is a counted object.
#   TVMFFIByteArray          { ptr data; i64 size }
#   DLTensor                 { ptr data; i32 device_type, device_id; i32 ndim; i32 dtype; ptr shape; ptr strides; u64 byte_offset }
#   DLManagedTensorVersioned { u32 major, minor; ptr manager_ctx; ptr deleter; u64 flags; DLTensor dl_tensor }; here dimensions and strides
#                            follow it, and free() is its deleter.
# and of the table, in i64:
#   function        { number of tensors, name, bytes of the name, what to say where there is none of the name } and then, for each tensor,
#                   { ndim and dtype as in DLTensor, rank, dimensions..., strides... }; texts are offsets of strings.
_CALL = """
llvm.func @TVMFFIFunctionGetGlobal(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @TVMFFIFunctionCall(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
llvm.func @TVMFFIObjectDecRef(!llvm.ptr) -> i32
llvm.func @TVMFFITensorFromDLPackVersioned(!llvm.ptr, i32, i32, !llvm.ptr) -> i32
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// Makes a tensor object of data and of its description at `row`, and writes its handle to `out`. Returns 0, or another number with an
// error raised.
llvm.func internal @__relayc_make_tensor(%row: !llvm.ptr, %data: !llvm.ptr, %out: !llvm.ptr) -> i32
    attributes {{no_inline, passthrough = ["optsize"]}} {{
  %no = llvm.mlir.constant(0 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %version = llvm.mlir.constant(1 : i64) : i64
  %cpu = llvm.mlir.constant(1 : i64) : i64
  %size = llvm.mlir.constant(80 : i64) : i64
  %each = llvm.mlir.constant(16 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %free = llvm.mlir.addressof @free : !llvm.ptr
  %0 = llvm.getelementptr %row[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %0 : !llvm.ptr -> i64
  %extents = llvm.mul %rank, %each : i64
  %1 = llvm.add %size, %extents : i64
  %tensor = llvm.call @malloc(%1) : (i64) -> !llvm.ptr
  %2 = llvm.icmp "eq" %tensor, %null : !llvm.ptr
  llvm.cond_br %2, ^no_memory, ^fill
^no_memory:
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[{memory_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %message = llvm.getelementptr %strings[{no_memory}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %bad = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %bad : i32
^fill:
  llvm.store %version, %tensor : i64, !llvm.ptr
  %3 = llvm.getelementptr %tensor[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %3 : i64, !llvm.ptr
  %4 = llvm.getelementptr %tensor[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %free, %4 : !llvm.ptr, !llvm.ptr
  %5 = llvm.getelementptr %tensor[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %5 : i64, !llvm.ptr
  %6 = llvm.getelementptr %tensor[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %data, %6 : !llvm.ptr, !llvm.ptr
  %7 = llvm.getelementptr %tensor[5] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %cpu, %7 : i64, !llvm.ptr
  %8 = llvm.load %row : !llvm.ptr -> i64
  %9 = llvm.getelementptr %tensor[6] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %8, %9 : i64, !llvm.ptr
  %shape = llvm.getelementptr %tensor[10] : (!llvm.ptr) -> !llvm.ptr, i64
  %10 = llvm.getelementptr %tensor[7] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %shape, %10 : !llvm.ptr, !llvm.ptr
  %strides = llvm.getelementptr %shape[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %11 = llvm.getelementptr %tensor[8] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %strides, %11 : !llvm.ptr, !llvm.ptr
  %12 = llvm.getelementptr %tensor[9] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %12 : i64, !llvm.ptr
  %13 = llvm.getelementptr %row[2] : (!llvm.ptr) -> !llvm.ptr, i64
  "llvm.intr.memcpy"(%shape, %13, %extents) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %status = llvm.call @TVMFFITensorFromDLPackVersioned(%tensor, %no, %no, %out) : (!llvm.ptr, i32, i32, !llvm.ptr) -> i32
  llvm.return %status : i32
}}

// Calls a packed function on tensors whose data pointers are in `data`. Returns 0, or -1 with an error raised.
llvm.func internal @__relayc_call_packed(%row: !llvm.ptr, %data: !llvm.ptr) -> i32
    attributes {{no_inline, passthrough = ["optsize"]}} {{
  %good = llvm.mlir.constant(0 : i32) : i32
  %bad = llvm.mlir.constant(-1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %tensor_kind = llvm.mlir.constant(70 : i64) : i64
  %first_object = llvm.mlir.constant(64 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %n = llvm.load %row : !llvm.ptr -> i64
  %args = llvm.alloca %n x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %name = llvm.alloca %one x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %handle = llvm.alloca %one x !llvm.ptr : (i64) -> !llvm.ptr
  %result = llvm.alloca %one x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %0 = llvm.getelementptr %row[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> i64
  %2 = llvm.getelementptr %strings[%1] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.store %2, %name : !llvm.ptr, !llvm.ptr
  %3 = llvm.getelementptr %row[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %4 = llvm.load %3 : !llvm.ptr -> i64
  %5 = llvm.getelementptr %name[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %4, %5 : i64, !llvm.ptr
  llvm.store %null, %handle : !llvm.ptr, !llvm.ptr
  %6 = llvm.call @TVMFFIFunctionGetGlobal(%name, %handle) : (!llvm.ptr, !llvm.ptr) -> i32
  %7 = llvm.icmp "eq" %6, %good : i32
  llvm.cond_br %7, ^found, ^failed
^failed:
  llvm.return %bad : i32
^found:
  %function = llvm.load %handle : !llvm.ptr -> !llvm.ptr
  %8 = llvm.icmp "eq" %function, %null : !llvm.ptr
  %first = llvm.getelementptr %row[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.cond_br %8, ^missing, ^next(%zero, %first : i64, !llvm.ptr)
^missing:
  %kind = llvm.getelementptr %strings[{value_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %9 = llvm.getelementptr %row[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %10 = llvm.load %9 : !llvm.ptr -> i64
  %message = llvm.getelementptr %strings[%10] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return %bad : i32

^next(%i: i64, %at: !llvm.ptr):
  %11 = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %11, ^tensor, ^call
^tensor:
  %12 = llvm.getelementptr %data[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %13 = llvm.load %12 : !llvm.ptr -> !llvm.ptr
  %any = llvm.getelementptr %args[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  llvm.store %tensor_kind, %any : i64, !llvm.ptr
  %14 = llvm.getelementptr %any[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %15 = llvm.call @__relayc_make_tensor(%at, %13, %14) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  %16 = llvm.getelementptr %at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %16 : !llvm.ptr -> i64
  %17 = llvm.mul %rank, %two : i64
  %18 = llvm.add %17, %two : i64
  %19 = llvm.getelementptr %at[%18] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %20 = llvm.add %i, %one : i64
  %21 = llvm.icmp "eq" %15, %good : i32
  llvm.cond_br %21, ^next(%20, %19 : i64, !llvm.ptr), ^release(%i, %bad : i64, i32)

^call:
  llvm.store %zero, %result : i64, !llvm.ptr
  %22 = llvm.getelementptr %result[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %22 : i64, !llvm.ptr
  %count = llvm.trunc %n : i64 to i32
  %23 = llvm.call @TVMFFIFunctionCall(%function, %args, %count, %result) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  %24 = llvm.icmp "eq" %23, %good : i32
  // What the function returns is nothing to the program.
  %type = llvm.load %result : !llvm.ptr -> i32
  %25 = llvm.icmp "sge" %type, %first_object : i32
  %status = llvm.select %24, %good, %bad : i1, i32
  llvm.cond_br %25, ^object, ^release(%n, %status : i64, i32)
^object:
  %26 = llvm.load %22 : !llvm.ptr -> !llvm.ptr
  %27 = llvm.call @TVMFFIObjectDecRef(%26) : (!llvm.ptr) -> i32
  llvm.br ^release(%n, %status : i64, i32)

^release(%left: i64, %given: i32):
  %28 = llvm.icmp "eq" %left, %zero : i64
  llvm.cond_br %28, ^done, ^argument
^argument:
  %29 = llvm.sub %left, %one : i64
  %30 = llvm.getelementptr %args[%29] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %31 = llvm.getelementptr %30[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %32 = llvm.load %31 : !llvm.ptr -> !llvm.ptr
  %33 = llvm.call @TVMFFIObjectDecRef(%32) : (!llvm.ptr) -> i32
  llvm.br ^release(%29, %given : i64, i32)
^done:
  %34 = llvm.call @TVMFFIObjectDecRef(%function) : (!llvm.ptr) -> i32
  llvm.return %given : i32
}}
"""

_TEXTS = {"value_error": "ValueError", "memory_error": "MemoryError", "no_memory": "call_packed: expected memory for a tensor, found none"}

_PACKED = """
llvm.func internal @{name}({parameters}) -> i32 attributes {{no_inline, passthrough = ["optsize"]}} {{
  %count = llvm.mlir.constant({count} : i32) : i32
  %data = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr
{stores}
  %table = llvm.mlir.addressof @__relayc_call_table : !llvm.ptr
  %known = llvm.getelementptr %table[{row}] : (!llvm.ptr) -> !llvm.ptr, i64
{sizes}
  %status = llvm.call @__relayc_call_packed({filled}, %data) : (!llvm.ptr, !llvm.ptr) -> i32
  llvm.return %status : i32
}}
"""

_RAISE_DECLARATION = """llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32"""
_RAISE = """
llvm.func internal @{name}({parameters}) attributes {{no_inline, passthrough = ["cold", "minsize", "optsize"]}} {{
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[{kind}] : (!llvm.ptr) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[{message}] : (!llvm.ptr) -> !llvm.ptr, i8
  %0 = llvm.call @snprintf({values}) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>) : ({types}) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}}
"""


def _raise(op: ir.Operation, strings: Strings) -> str:
    """The body of a function that raises an error; it formats the sizes that it is given."""
    kind, message = ERROR.of(op)
    count = str(op.attributes["function_type"]).count("i64")
    names = [f"%p{i}" for i in range(count)]
    if not count:
        message = message.replace("%", "%%")
    return _RAISE.format(
        name=_quoted(op),
        parameters=", ".join(f"{name}: i64" for name in names),
        values=", ".join(["%message", "%size", "%format", *names]),
        types=", ".join(["!llvm.ptr", "i64", "!llvm.ptr", *["i64"] * count]),
        kind=strings.offset(kind),
        message=strings.offset(message),
    )


def add_call_bodies(module: ir.Module) -> None:
    """Gives the declarations `relay.packed` and `relay.error` of a module in the LLVM dialect their bodies."""
    declared = {
        kind: [op.operation for op in module.body.operations if op.operation.name == "llvm.func" and kind.on(op)]
        for kind in (PACKED, ERROR)
    }
    if not any(declared.values()):
        return
    strings = Strings()
    table: list[int] = []
    parts = []
    for op in declared[PACKED]:
        row = _table_row(strings, op)
        parts.append(_packed(op, len(table), row))
        table += [0 if isinstance(number, Dim) else number for number in row]
    parts += [_raise(op, strings) for op in declared[ERROR]]
    if declared[PACKED]:
        texts = {key: strings.offset(text) for key, text in _TEXTS.items()}
        parts += [_CALL.format(**texts), i64_global("__relayc_call_table", table)]
    parts += [_RAISE_DECLARATION, strings.as_global("__relayc_call_strings")]
    with module.context, ir.Location.unknown():
        parsed = ir.Module.parse("\n".join(parts))
    for op in (op for found in declared.values() for op in found):
        op.erase()
    there = {ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations}
    for op in list(parsed.body.operations):
        if ir.StringAttr(op.attributes["sym_name"]).value not in there:  # malloc and free may be
            op.detach_from_parent()
            module.body.append(op)


def _quoted(op: ir.Operation) -> str:
    """The name of a function as it stands in text after the @."""
    return str(ir.FlatSymbolRefAttr.get(ir.StringAttr(op.attributes["sym_name"]).value, op.context))[1:]


def _tensors(op: ir.Operation) -> list[TensorType]:
    signature = ir.FunctionType(TENSORS.of(op))
    return [TensorType.from_mlir(t) for t in (*signature.inputs, *signature.results)]


def _packed(op: ir.Operation, row: int, numbers: Sequence[Size]) -> str:
    count = len(_tensors(op))
    stores = [
        f"  %a{i} = llvm.getelementptr %data[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n  llvm.store %p{i}, %a{i} : !llvm.ptr, !llvm.ptr"
        for i in range(count)
    ]
    symbols = sorted({name for tensor in _tensors(op) for name in tensor.symbols})
    parameters = [*(f"%p{i}: !llvm.ptr" for i in range(count)), *(f"%s{i}: i64" for i in range(len(symbols)))]
    filled = _filled_row(numbers, {name: f"%s{i}" for i, name in enumerate(symbols)})
    parts = {"count": count, "stores": "\n".join(stores), "row": row, "sizes": filled.text, "filled": filled.name}
    return _PACKED.format(name=_quoted(op), parameters=", ".join(parameters), **parts)


@dataclass
class _Row:
    """Text that makes a row of the table, and the name of its address."""

    text: str
    name: str


def _filled_row(numbers: Sequence[Size], symbols: Mapping[str, str]) -> _Row:
    """The row at %known; where it has expressions, a copy with their values."""
    if not symbols:
        return _Row("", "%known")
    text = SizeText()
    text.values.update(symbols)
    length, num_bytes = text.constant(len(numbers)), text.constant(8 * len(numbers))
    copy = text.value(f"llvm.alloca {length} x i64 : (i64) -> !llvm.ptr")
    text.lines.append(f'  "llvm.intr.memcpy"({copy}, %known, {num_bytes}) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()')
    for i, number in enumerate(numbers):
        if isinstance(number, Dim):
            at = text.value(f"llvm.getelementptr {copy}[{i}] : (!llvm.ptr) -> !llvm.ptr, i64")
            text.lines.append(f"  llvm.store {text.size(number)}, {at} : i64, !llvm.ptr")
    return _Row("\n".join(text.lines), copy)


def _table_row(strings: Strings, op: ir.Operation) -> list[Size]:
    name = PACKED.of(op)
    tensors = _tensors(op)
    missing = f"call_packed: expected a registered packed function {name}, found none"
    row: list[Size] = [len(tensors), strings.offset(name), len(name.encode()), strings.offset(missing)]
    for tensor in tensors:
        row += [tensor.rank | dtype_bits(tensor.dtype) << 32, tensor.rank, *tensor.sizes, *_strides(tensor.sizes)]
    return row


def _strides(shape: Sequence[Size]) -> list[Size]:
    """In elements, of row-major order."""
    extents: list[Size] = [1, *reversed(shape[1:])]
    return list(accumulate(extents, mul))[::-1] if shape else []
