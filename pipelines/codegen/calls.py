"""Bodies of the functions that programs declare: calls of packed functions by their registered names, and errors.

    llvm.func @p(!llvm.ptr, ...) -> i32 attributes {relay.packed = "NAME", relay.tensors = (tensors) -> tensors}
    llvm.func @e() attributes {relay.error = ["KIND", "MESSAGE"]}

`@p` takes a pointer to the data of each tensor, inputs then outputs, and calls the function that is registered as NAME at that moment with
a DLTensor* for each: on the CPU, in row-major order, of the shape and dtype in `relay.tensors`. It gives 0, or -1 with an error raised:
that of the function as it is, or a ValueError where none is registered. `@e` raises an error.

The work is one function for the whole module, driven by a table: a call costs the tensors on the stack and a look-up of the name (the C API
is in tvm/ffi/c_api.h of apache-tvm-ffi).
"""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import tvm_ffi  # noqa: F401 (loads the library in which the compiled code finds the functions of the C API)

from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.codegen.tables import Strings, dtype_bits, i64_global

# What the text below knows of C structures (64-bit, little-endian), by byte:
#   TVMFFIAny       { i32 type_index; i32 padding; i64 value }; type 7: value is a DLTensor*; from type 64 on it is a counted object.
#   TVMFFIByteArray { ptr data; i64 size }
#   DLTensor        { ptr data; i32 device_type, device_id; i32 ndim; i32 dtype; ptr shape; ptr strides; u64 byte_offset }
# and of the table, in i64:
#   function        { number of tensors, name, bytes of the name, what to say where there is none of the name } and then, for each tensor,
#                   { ndim and dtype as in DLTensor, rank, dimensions..., strides... }; texts are offsets of strings.
_CALL = """
llvm.func @TVMFFIFunctionGetGlobal(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @TVMFFIFunctionCall(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
llvm.func @TVMFFIObjectDecRef(!llvm.ptr) -> i32

// Calls a packed function on tensors whose data pointers are in `data`. Returns 0, or -1 with an error raised.
llvm.func internal @__relayc_call_packed(%row: !llvm.ptr, %data: !llvm.ptr) -> i32
    attributes {{no_inline, passthrough = ["optsize"]}} {{
  %good = llvm.mlir.constant(0 : i32) : i32
  %bad = llvm.mlir.constant(-1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %cpu = llvm.mlir.constant(1 : i64) : i64
  %pointer_kind = llvm.mlir.constant(7 : i64) : i64
  %first_object = llvm.mlir.constant(64 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %n = llvm.load %row : !llvm.ptr -> i64
  %tensors = llvm.alloca %n x !llvm.array<6 x i64> : (i64) -> !llvm.ptr
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
  %tensor = llvm.getelementptr %tensors[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<6 x i64>
  %12 = llvm.getelementptr %data[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %13 = llvm.load %12 : !llvm.ptr -> !llvm.ptr
  llvm.store %13, %tensor : !llvm.ptr, !llvm.ptr
  %14 = llvm.getelementptr %tensor[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %cpu, %14 : i64, !llvm.ptr
  %15 = llvm.load %at : !llvm.ptr -> i64
  %16 = llvm.getelementptr %tensor[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %15, %16 : i64, !llvm.ptr
  %17 = llvm.getelementptr %at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %17 : !llvm.ptr -> i64
  %shape = llvm.getelementptr %at[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %strides = llvm.getelementptr %shape[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %18 = llvm.getelementptr %tensor[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %shape, %18 : !llvm.ptr, !llvm.ptr
  %19 = llvm.getelementptr %tensor[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %strides, %19 : !llvm.ptr, !llvm.ptr
  %20 = llvm.getelementptr %tensor[5] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %20 : i64, !llvm.ptr
  %any = llvm.getelementptr %args[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  llvm.store %pointer_kind, %any : i64, !llvm.ptr
  %21 = llvm.getelementptr %any[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %tensor, %21 : !llvm.ptr, !llvm.ptr
  %22 = llvm.add %i, %one : i64
  %23 = llvm.getelementptr %strides[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.br ^next(%22, %23 : i64, !llvm.ptr)

^call:
  llvm.store %zero, %result : i64, !llvm.ptr
  %24 = llvm.getelementptr %result[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %24 : i64, !llvm.ptr
  %count = llvm.trunc %n : i64 to i32
  %status = llvm.call @TVMFFIFunctionCall(%function, %args, %count, %result) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  %25 = llvm.call @TVMFFIObjectDecRef(%function) : (!llvm.ptr) -> i32
  %26 = llvm.icmp "eq" %status, %good : i32
  llvm.cond_br %26, ^given, ^failed
^given:
  // What the function returns is nothing to the program.
  %type = llvm.load %result : !llvm.ptr -> i32
  %27 = llvm.icmp "sge" %type, %first_object : i32
  llvm.cond_br %27, ^object, ^done
^object:
  %28 = llvm.load %24 : !llvm.ptr -> !llvm.ptr
  %29 = llvm.call @TVMFFIObjectDecRef(%28) : (!llvm.ptr) -> i32
  llvm.br ^done
^done:
  llvm.return %good : i32
}}
"""

_PACKED = """
llvm.func internal @{name}({parameters}) -> i32 attributes {{no_inline, passthrough = ["optsize"]}} {{
  %count = llvm.mlir.constant({count} : i32) : i32
  %data = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr
{stores}
  %table = llvm.mlir.addressof @__relayc_call_table : !llvm.ptr
  %row = llvm.getelementptr %table[{row}] : (!llvm.ptr) -> !llvm.ptr, i64
  %status = llvm.call @__relayc_call_packed(%row, %data) : (!llvm.ptr, !llvm.ptr) -> i32
  llvm.return %status : i32
}}
"""

_RAISE_DECLARATION = "llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)"
_RAISE = """
llvm.func internal @{name}() attributes {{no_inline, passthrough = ["cold", "minsize", "optsize"]}} {{
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[{kind}] : (!llvm.ptr) -> !llvm.ptr, i8
  %message = llvm.getelementptr %strings[{message}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}}
"""


def add_call_bodies(module: ir.Module) -> None:
    """Gives the declarations `relay.packed` and `relay.error` of a module in the LLVM dialect their bodies."""
    declared = {
        kind: [op.operation for op in module.body.operations if op.operation.name == "llvm.func" and kind in op.attributes]
        for kind in ("relay.packed", "relay.error")
    }
    if not any(declared.values()):
        return
    strings = Strings()
    value_error = strings.offset("ValueError")
    table: list[int] = []
    parts = []
    for op in declared["relay.packed"]:
        parts.append(_packed(op, len(table)))
        table += _table_row(strings, op)
    for op in declared["relay.error"]:
        kind, message = (strings.offset(ir.StringAttr(a).value) for a in ir.ArrayAttr(op.attributes["relay.error"]))
        parts.append(_RAISE.format(name=_quoted(op), kind=kind, message=message))
    if declared["relay.packed"]:
        parts += [_CALL.format(value_error=value_error), i64_global("__relayc_call_table", table)]
    parts += [_RAISE_DECLARATION, strings.as_global("__relayc_call_strings")]
    with module.context, ir.Location.unknown():
        parsed = ir.Module.parse("\n".join(parts))
    for op in (op for found in declared.values() for op in found):
        op.erase()
    for op in list(parsed.body.operations):
        op.detach_from_parent()
        module.body.append(op)


def _quoted(op: ir.Operation) -> str:
    """The name of a function as it stands in text after the @."""
    return str(ir.FlatSymbolRefAttr.get(ir.StringAttr(op.attributes["sym_name"]).value, op.context))[1:]


def _tensors(op: ir.Operation) -> list[TensorType]:
    signature = ir.FunctionType(ir.TypeAttr(op.attributes["relay.tensors"]).value)
    return [TensorType.from_mlir(t) for t in (*signature.inputs, *signature.results)]


def _packed(op: ir.Operation, row: int) -> str:
    count = len(_tensors(op))
    stores = [
        f"  %a{i} = llvm.getelementptr %data[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n  llvm.store %p{i}, %a{i} : !llvm.ptr, !llvm.ptr"
        for i in range(count)
    ]
    parameters = ", ".join(f"%p{i}: !llvm.ptr" for i in range(count))
    return _PACKED.format(name=_quoted(op), parameters=parameters, count=count, stores="\n".join(stores), row=row)


def _table_row(strings: Strings, op: ir.Operation) -> list[int]:
    name = ir.StringAttr(op.attributes["relay.packed"]).value
    tensors = _tensors(op)
    missing = f"call_packed: expected a registered packed function {name}, found none"
    row = [len(tensors), strings.offset(name), len(name.encode()), strings.offset(missing)]
    for tensor in tensors:
        row += [tensor.rank | dtype_bits(tensor.dtype) << 32, tensor.rank, *tensor.shape, *_strides(tensor.shape)]
    return row


def _strides(shape: Sequence[int]) -> list[int]:
    """In elements, of row-major order."""
    return list(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else []
