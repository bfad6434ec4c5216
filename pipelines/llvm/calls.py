"""Bodies of the functions that programs declare: calls of packed functions by their registered names, and errors.

    llvm.func @p(!llvm.ptr, ..., i64, ...) -> i32 attributes {relay.packed = "NAME", relay.tensors = (tensors) -> tensors}
    llvm.func @e(i64, ...) attributes {relay.error = ["KIND", "MESSAGE"]}

`@p` takes a pointer to the data of each tensor, inputs then outputs, and the symbols in their shapes in the order of the names. It calls
the function that is registered as NAME at that moment with a tensor object for each: on the CPU, in row-major order, of the shape and dtype
in `relay.tensors`. It returns 0, or -1 with an error raised: the function's own error, or a ValueError if none is registered. `@e` raises
an error whose message has its i64 arguments in place of %lld.

The arguments are tensor objects, not bare DLTensor*: a Python function may export one through DLPack, for which tvm-ffi needs the object,
and may keep it, if only in the traceback of an error. Shape and strides live as long as the object; its data belongs to the program, and is
valid until the function returns.

One function for the whole module, driven by a table, does the work: a call costs the tensors and a look-up of the name (the C API is in
tvm/ffi/c_api.h of apache-tvm-ffi). If shapes have symbols, a call fills its own row of the table with their values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tvm_ffi  # noqa: F401 (loads the library in which the compiled code finds the functions of the C API)

from relayc.dialects.discardable import ERROR, PACKED, TENSORS
from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.emission.index import strides_of
from relayc.pipelines.emission.mlir_text import mlir_texts, stored_word
from relayc.pipelines.llvm.size_text import SizeText
from relayc.pipelines.llvm.tables import Strings, dtype_bits, i64_global
from relayc.symbolic import Dim, Size

# C structures that the text below accesses (64-bit, little-endian), by byte:
#   TVMFFIAny                { i32 type_index; i32 padding; i64 value }; type 70 is a tensor; from type 64 on value is a counted object.
#   TVMFFIByteArray          { ptr data; i64 size }
#   DLTensor                 { ptr data; i32 device_type, device_id; i32 ndim; i32 dtype; ptr shape; ptr strides; u64 byte_offset }
#   DLManagedTensorVersioned { u32 major, minor; ptr manager_ctx; ptr deleter; u64 flags; DLTensor dl_tensor }; here dimensions and strides
#                            follow it, and free() is its deleter.
# and of the table, in i64:
#   function        { number of tensors, name, bytes of the name, message if the name is unknown } and then, for each tensor,
#                   { ndim and dtype as in DLTensor, rank, dimensions..., strides... }; texts are offsets of strings.
_MLIR = mlir_texts(__file__)
_CALL = _MLIR["call"]

_TEXTS = {"value_error": "ValueError", "memory_error": "MemoryError", "no_memory": "call_packed: expected memory for a tensor, found none"}

_PACKED = _MLIR["packed"]

_RAISE_DECLARATION = """llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32"""
_RAISE = _MLIR["raise"]


def _raise(op: ir.Operation, strings: Strings) -> str:
    """The body of a function that raises an error and formats its arguments into the message."""
    kind, message = ERROR.of(op)
    count = str(op.attributes["function_type"]).count("i64")
    names = [f"%p{i}" for i in range(count)]
    if not count:
        message = message.replace("%", "%%")
    return _RAISE.substitute(
        name=_quoted(op),
        parameters=", ".join(f"{name}: i64" for name in names),
        values=", ".join(["%message", "%size", "%format", *names]),
        types=", ".join(["!llvm.ptr", "i64", "!llvm.ptr", *["i64"] * count]),
        kind=strings.offset(kind),
        message=strings.offset(message),
    )


def add_call_bodies(module: ir.Module) -> None:
    """Adds the bodies of the declarations `relay.packed` and `relay.error` of a module in the LLVM dialect."""
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
        parts += [_CALL.substitute(**texts), i64_global("__relayc_call_table", table)]
    parts += [_RAISE_DECLARATION, strings.as_global("__relayc_call_strings")]
    with module.context, ir.Location.unknown():
        parsed = ir.Module.parse("\n".join(parts))
    for op in (op for found in declared.values() for op in found):
        op.erase()
    there = {ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations}
    for op in list(parsed.body.operations):
        if ir.StringAttr(op.attributes["sym_name"]).value not in there:  # malloc and free may be declared
            op.detach_from_parent()
            module.body.append(op)


def _quoted(op: ir.Operation) -> str:
    """The name of a function as it is written after the @."""
    return str(ir.FlatSymbolRefAttr.get(ir.StringAttr(op.attributes["sym_name"]).value, op.context))[1:]


def _tensors(op: ir.Operation) -> list[TensorType]:
    signature = ir.FunctionType(TENSORS.of(op))
    return [TensorType.from_mlir(t) for t in (*signature.inputs, *signature.results)]


def _packed(op: ir.Operation, row: int, numbers: Sequence[Size]) -> str:
    count = len(_tensors(op))
    stores = [stored_word(f"%p{i}", "%data", i, "!llvm.ptr") for i in range(count)]
    symbols = sorted({name for tensor in _tensors(op) for name in tensor.symbols})
    parameters = [*(f"%p{i}: !llvm.ptr" for i in range(count)), *(f"%s{i}: i64" for i in range(len(symbols)))]
    filled = _filled_row(numbers, {name: f"%s{i}" for i, name in enumerate(symbols)})
    parts = {"count": count, "stores": "\n".join(stores), "row": row, "sizes": filled.text, "filled": filled.name}
    return _PACKED.substitute(name=_quoted(op), parameters=", ".join(parameters), **parts)


@dataclass
class _Row:
    """Text that creates a row of the table, and the name of its address."""

    text: str
    name: str


def _filled_row(numbers: Sequence[Size], symbols: Mapping[str, str]) -> _Row:
    """The row at %known; if it has expressions, a copy with their values."""
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
        row += [tensor.rank | dtype_bits(tensor.dtype) << 32, tensor.rank, *tensor.sizes, *strides_of(tensor.sizes)]
    return row
