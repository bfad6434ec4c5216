"""Packed entry points: functions of tvm-ffi's calling convention around kernels that take bare pointers.

A packed entry of `@k` is

    llvm.func @__tvm_ffi_k(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32

where `args` points to `n` TVMFFIAny values (tvm/ffi/c_api.h of apache-tvm-ffi). It checks how many arguments there are and that each is a
tensor on a device of the kind that the code runs on, of the dtype, rank and dimensions that `@k` was compiled for, in row-major order
without gaps; then it calls `@k` with their data pointers and returns 0. Otherwise it raises a TypeError (count, kind, dtype) or a
ValueError (rank, dimensions, device, layout) that says what was expected and what was found, and returns -1.

The symbols of a program come from the dimensions of its tensors, those of a kernel are integers after its tensors. Every dimension that is
an expression of them is checked, and so are the bounds of the symbols.

The checks are one function for the whole module, driven by a table: an entry costs a few instructions and one row of the table. Entries
and kernels are internal to the module, and one external function gives the addresses of all entries, because the engine compiles a wrapper
for every external function (0.7 ms each).
"""

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import tvm_ffi  # noqa: F401 (loads the library in which the compiled code finds TVMFFIErrorSetRaisedFromCStr)

from relayc.dialects.mlir import ir
from relayc.pipelines.codegen.tables import Strings, dtype_bits, i64_global
from relayc.pipelines.packed_entry import PackedEntry
from relayc.runtime.artifact import ENTRIES_SYMBOL, PACKED_PREFIX
from relayc.runtime.device import DeviceKind, device_kind
from relayc.runtime.shapes import MAX_BYTES, SymbolSource
from relayc.symbolic import FAR, Atom, Dim, Extreme, Size, symbols_of

_FOUND_CODES = ("int%d", "uint%d", "float%d", "handle%d", "bfloat%d", "complex%d", "bool")
"""Formats of the first DLDataTypeCodes given the bits, for the description of a tensor that was not expected."""

# What the text below knows of C structures (64-bit, little-endian), by byte:
#   TVMFFIAny  { i32 type_index; i32 padding; i64 value }; type 7: value is a DLTensor*, type 70: a Tensor object, DLTensor at byte 24.
#   DLTensor   { ptr data; i32 device_type, device_id; i32 ndim; { u8 code, u8 bits, u16 lanes }; ptr shape; ptr strides; u64 byte_offset }
# and of the table, in i64:
#   entry      { number of tensors, name } and then, for each tensor,
#              { name, type, dtype as in DLTensor, rank, dimensions whose strides matter, dimensions... }; texts are offsets of strings.
#              A dimension of -1 - N says that it is at least N.
_CHECK = """
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)

// Raises an error of a kind: "FUNCTION: argument I 'NAME': expected TYPE, found WHAT".
llvm.func internal @__relayc_raise(%kind: !llvm.ptr, %entry: !llvm.ptr, %i: i32, %row: !llvm.ptr, %what: !llvm.ptr) -> i32
    attributes {{no_inline, passthrough = ["cold", "minsize", "optsize"]}} {{
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_strings : !llvm.ptr
  %0 = llvm.getelementptr %entry[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> i64
  %function = llvm.getelementptr %strings[%1] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %2 = llvm.load %row : !llvm.ptr -> i64
  %name = llvm.getelementptr %strings[%2] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %3 = llvm.getelementptr %row[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %4 = llvm.load %3 : !llvm.ptr -> i64
  %type = llvm.getelementptr %strings[%4] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[{argument}] : (!llvm.ptr) -> !llvm.ptr, i8
  %5 = llvm.call @snprintf(%message, %size, %format, %function, %i, %name, %type, %what)
    vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
}}

// Raises an error about a tensor, which it describes as "float32[1, 3]".
llvm.func internal @__relayc_raise_tensor(%kind: !llvm.ptr, %entry: !llvm.ptr, %i: i32, %row: !llvm.ptr, %tensor: !llvm.ptr,
                                          %note: !llvm.ptr) -> i32
    attributes {{no_inline, passthrough = ["cold", "minsize", "optsize"]}} {{
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %size = llvm.mlir.constant(512 : i64) : i64
  %limit = llvm.mlir.constant(400 : i32) : i32
  %what = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_strings : !llvm.ptr
  %codes = llvm.mlir.constant({num_codes} : i8) : i8
  %unknown = llvm.mlir.constant({num_codes} : i64) : i64
  %0 = llvm.getelementptr %tensor[20] : (!llvm.ptr) -> !llvm.ptr, i8
  %code = llvm.load %0 : !llvm.ptr -> i8
  %known = llvm.icmp "ult" %code, %codes : i8
  %1 = llvm.zext %code : i8 to i64
  %index = llvm.select %known, %1, %unknown : i1, i64
  %names = llvm.mlir.addressof @__relayc_dtypes : !llvm.ptr
  %2 = llvm.getelementptr %names[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %3 = llvm.load %2 : !llvm.ptr -> i64
  %dtype = llvm.getelementptr %strings[%3] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %4 = llvm.getelementptr %tensor[21] : (!llvm.ptr) -> !llvm.ptr, i8
  %5 = llvm.load %4 : !llvm.ptr -> i8
  %bits = llvm.zext %5 : i8 to i32
  %start = llvm.call @snprintf(%what, %size, %dtype, %bits) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, i32) -> i32
  %6 = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %rank = llvm.load %6 : !llvm.ptr -> i32
  %7 = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %7 : !llvm.ptr -> !llvm.ptr
  llvm.br ^next(%zero, %start : i32, i32)
^next(%d: i32, %at: i32):
  %more = llvm.icmp "slt" %d, %rank : i32
  %room = llvm.icmp "slt" %at, %limit : i32
  %go = llvm.and %more, %room : i1
  llvm.cond_br %go, ^dimension, ^close
^dimension:
  %8 = llvm.getelementptr %shape[%d] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  %dim = llvm.load %8 : !llvm.ptr -> i64
  %9 = llvm.getelementptr %what[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %first = llvm.icmp "eq" %d, %zero : i32
  %10 = llvm.getelementptr %strings[{first_dim}] : (!llvm.ptr) -> !llvm.ptr, i8
  %11 = llvm.getelementptr %strings[{next_dim}] : (!llvm.ptr) -> !llvm.ptr, i8
  %12 = llvm.select %first, %10, %11 : i1, !llvm.ptr
  %13 = llvm.call @snprintf(%9, %size, %12, %dim) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, i64) -> i32
  %14 = llvm.add %at, %13 : i32
  %15 = llvm.add %d, %one : i32
  llvm.br ^next(%15, %14 : i32, i32)
^close:
  %16 = llvm.getelementptr %what[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %scalar = llvm.icmp "eq" %rank, %zero : i32
  %17 = llvm.getelementptr %strings[{close_scalar}] : (!llvm.ptr) -> !llvm.ptr, i8
  %18 = llvm.getelementptr %strings[{close}] : (!llvm.ptr) -> !llvm.ptr, i8
  %19 = llvm.select %scalar, %17, %18 : i1, !llvm.ptr
  %20 = llvm.call @snprintf(%16, %size, %19, %note) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32
  %21 = llvm.call @__relayc_raise(%kind, %entry, %i, %row, %what) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
  llvm.return %21 : i32
}}

// Checks the tensors of an entry and writes their data pointers to `data`, and behind these pointers to their DLTensors. Returns 0, or -1
// with an error raised.
llvm.func internal @__relayc_check(%entry: !llvm.ptr, %args: !llvm.ptr, %n: i32, %data: !llvm.ptr) -> i32
    attributes {{no_inline, passthrough = ["optsize"]}} {{
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %zero64 = llvm.mlir.constant(0 : i64) : i64
  %one64 = llvm.mlir.constant(1 : i64) : i64
  %device_type = llvm.mlir.constant({device_type} : i32) : i32
  %pointer_kind = llvm.mlir.constant(7 : i32) : i32
  %object_kind = llvm.mlir.constant(70 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_strings : !llvm.ptr
  %type_error = llvm.getelementptr %strings[{type_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %value_error = llvm.getelementptr %strings[{value_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %nothing = llvm.getelementptr %strings[{nothing}] : (!llvm.ptr) -> !llvm.ptr, i8
  %0 = llvm.load %entry : !llvm.ptr -> i64
  %count = llvm.trunc %0 : i64 to i32
  %1 = llvm.icmp "eq" %count, %n : i32
  %first_row = llvm.getelementptr %entry[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.cond_br %1, ^next(%zero, %first_row : i32, !llvm.ptr), ^bad_count
^bad_count:
  %size = llvm.mlir.constant(512 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %2 = llvm.getelementptr %entry[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %3 = llvm.load %2 : !llvm.ptr -> i64
  %function = llvm.getelementptr %strings[%3] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[{count}] : (!llvm.ptr) -> !llvm.ptr, i8
  %4 = llvm.call @snprintf(%message, %size, %format, %function, %count, %n) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i32, i32) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%type_error, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
^next(%i: i32, %row: !llvm.ptr):
  %5 = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %5, ^argument, ^done
^done:
  llvm.return %zero : i32

^argument:
  %any = llvm.getelementptr %args[%i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.struct<(i32, i32, i64)>
  %kind = llvm.load %any : !llvm.ptr -> i32
  %6 = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %value = llvm.load %6 : !llvm.ptr -> !llvm.ptr
  %7 = llvm.icmp "eq" %kind, %object_kind : i32
  llvm.cond_br %7, ^object, ^pointer
^object:
  %8 = llvm.getelementptr %value[24] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.br ^tensor(%8 : !llvm.ptr)
^pointer:
  %9 = llvm.icmp "eq" %kind, %pointer_kind : i32
  llvm.cond_br %9, ^tensor(%value : !llvm.ptr), ^bad_kind
^bad_kind:
  %10 = llvm.getelementptr %strings[{no_tensor}] : (!llvm.ptr) -> !llvm.ptr, i8
  %11 = llvm.call @__relayc_raise(%type_error, %entry, %i, %row, %10) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
  llvm.return %11 : i32

^tensor(%tensor: !llvm.ptr):
  %12 = llvm.getelementptr %tensor[20] : (!llvm.ptr) -> !llvm.ptr, i8
  %13 = llvm.load %12 : !llvm.ptr -> i32
  %14 = llvm.getelementptr %row[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %15 = llvm.load %14 : !llvm.ptr -> i64
  %dtype = llvm.trunc %15 : i64 to i32
  %16 = llvm.icmp "eq" %13, %dtype : i32
  llvm.cond_br %16, ^rank, ^raise(%type_error, %nothing : !llvm.ptr, !llvm.ptr)
^rank:
  %17 = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %18 = llvm.load %17 : !llvm.ptr -> i32
  %19 = llvm.getelementptr %row[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %19 : !llvm.ptr -> i64
  %20 = llvm.sext %18 : i32 to i64
  %21 = llvm.icmp "eq" %20, %rank : i64
  llvm.cond_br %21, ^dimensions, ^raise(%value_error, %nothing : !llvm.ptr, !llvm.ptr)
^dimensions:
  %22 = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %22 : !llvm.ptr -> !llvm.ptr
  %dims = llvm.getelementptr %row[5] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.br ^next_dimension(%zero64, %one64 : i64, i64)
^next_dimension(%d: i64, %smallest: i64):
  %23 = llvm.icmp "slt" %d, %rank : i64
  llvm.cond_br %23, ^dimension, ^device
^dimension:
  %24 = llvm.getelementptr %shape[%d] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %25 = llvm.load %24 : !llvm.ptr -> i64
  %26 = llvm.getelementptr %dims[%d] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %27 = llvm.load %26 : !llvm.ptr -> i64
  %28 = llvm.icmp "eq" %25, %27 : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %open = llvm.icmp "slt" %27, %zero64 : i64
  %least = llvm.xor %27, %minus_one : i64
  %enough = llvm.icmp "sge" %25, %least : i64
  %fits = llvm.and %open, %enough : i1
  %good = llvm.or %28, %fits : i1
  %29 = llvm.add %d, %one64 : i64
  %smaller = llvm.intr.smin(%smallest, %25) : (i64, i64) -> i64
  llvm.cond_br %good, ^next_dimension(%29, %smaller : i64, i64), ^raise(%value_error, %nothing : !llvm.ptr, !llvm.ptr)
^device:
  %30 = llvm.getelementptr %tensor[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %31 = llvm.load %30 : !llvm.ptr -> i32
  %32 = llvm.icmp "eq" %31, %device_type : i32
  %other_device = llvm.getelementptr %strings[{other_device}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.cond_br %32, ^layout, ^raise(%value_error, %other_device : !llvm.ptr, !llvm.ptr)
^layout:
  %33 = llvm.getelementptr %tensor[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %strides = llvm.load %33 : !llvm.ptr -> !llvm.ptr
  %none = llvm.icmp "eq" %strides, %null : !llvm.ptr
  // The strides of an empty tensor say nothing.
  %empty = llvm.icmp "eq" %smallest, %zero64 : i64
  %34 = llvm.or %none, %empty : i1
  %35 = llvm.getelementptr %row[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %strided = llvm.load %35 : !llvm.ptr -> i64
  llvm.cond_br %34, ^accept, ^next_stride(%strided, %one64 : i64, i64)
^next_stride(%left: i64, %expected: i64):
  %36 = llvm.icmp "sgt" %left, %zero64 : i64
  llvm.cond_br %36, ^stride, ^accept
^stride:
  %37 = llvm.sub %left, %one64 : i64
  %38 = llvm.getelementptr %shape[%37] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %39 = llvm.load %38 : !llvm.ptr -> i64
  %40 = llvm.getelementptr %strides[%37] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %41 = llvm.load %40 : !llvm.ptr -> i64
  %42 = llvm.icmp "eq" %41, %expected : i64
  %43 = llvm.icmp "eq" %39, %one64 : i64
  %44 = llvm.or %42, %43 : i1
  %45 = llvm.mul %expected, %39 : i64
  %gaps = llvm.getelementptr %strings[{gaps}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.cond_br %44, ^next_stride(%37, %45 : i64, i64), ^raise(%value_error, %gaps : !llvm.ptr, !llvm.ptr)

^accept:
  %46 = llvm.load %tensor : !llvm.ptr -> !llvm.ptr
  %47 = llvm.getelementptr %tensor[40] : (!llvm.ptr) -> !llvm.ptr, i8
  %48 = llvm.load %47 : !llvm.ptr -> i64
  %address = llvm.getelementptr %46[%48] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %49 = llvm.getelementptr %data[%i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.ptr
  llvm.store %address, %49 : !llvm.ptr, !llvm.ptr
  %behind = llvm.add %i, %n : i32
  %place = llvm.getelementptr %data[%behind] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.ptr
  llvm.store %tensor, %place : !llvm.ptr, !llvm.ptr
  %50 = llvm.add %i, %one : i32
  %next_row = llvm.getelementptr %dims[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.br ^next(%50, %next_row : i32, !llvm.ptr)

^raise(%error: !llvm.ptr, %note: !llvm.ptr):
  %51 = llvm.call @__relayc_raise_tensor(%error, %entry, %i, %row, %tensor, %note)
    : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.return %51 : i32
}}
"""

_ENTRY = """
llvm.func internal @"{prefix}{name}"(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {{
  %count = llvm.mlir.constant({pointers} : i32) : i32
  %more = llvm.mlir.constant({sizes} : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %data = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr
  %table = llvm.mlir.addressof @__relayc_table : !llvm.ptr
  %entry = llvm.getelementptr %table[{row}] : (!llvm.ptr) -> !llvm.ptr, i64
  %tensors = llvm.sub %n, %more : i32
  %status = llvm.call @__relayc_check(%entry, %args, %tensors, %data) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  %good = llvm.icmp "eq" %status, %zero : i32
  llvm.cond_br %good, ^run, ^end(%status : i32)
^run:
{body}
^end(%found: i32):
  llvm.return %found : i32
}}
"""

_ENTRIES = """
llvm.mlir.global internal constant @__relayc_entry_table() : !llvm.array<{count} x ptr> {{
  %v0 = llvm.mlir.undef : !llvm.array<{count} x ptr>
{inserts}
  llvm.return %v{count} : !llvm.array<{count} x ptr>
}}
llvm.func @{symbol}() -> !llvm.ptr {{
  %0 = llvm.mlir.addressof @__relayc_entry_table : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}}
"""

_MESSAGES = {
    "type_error": "TypeError",
    "value_error": "ValueError",
    "argument": "%s: argument %d '%s': expected %s, found %s",
    "count": "%s: expected %d arguments, found %d",
    "no_tensor": "a value that is not a tensor",
    "first_dim": "[%lld",
    "next_dim": ", %lld",
    "close": "]%s",
    "close_scalar": "[]%s",
    "nothing": "",
    "other_device": " that is not on the {device}",
    "gaps": " that is not contiguous in row-major order",
}


class Linked(Protocol):
    """A compiled module in memory, such as an ExecutionEngine."""

    def raw_lookup(self, name: str) -> int:
        """Address of the wrapper `void(void**)` of an external function; 0 where it cannot be linked."""


def _table_row(strings: Strings, name: str, entry: PackedEntry) -> tuple[list[int], list[int]]:
    """The row of an entry, and where in it that of each tensor begins."""
    row, starts = [len(entry.tensors), strings.offset(name)], []
    for i, spec in enumerate(entry.tensors):
        starts.append(len(row))
        dims = [(-1 - d if i == entry.arena else d) if isinstance(d, int) else -1 for d in spec.shape]
        row += [strings.offset(spec.name), strings.offset(str(spec)), dtype_bits(spec.dtype), len(dims), len(dims), *dims]
    return row, starts


class _EntryBody:
    """The text of an entry after the check of its tensors: symbols, checks of what is of them, the call."""

    def __init__(self, function: "_Function", strings: Strings, row: int, starts: Sequence[int]) -> None:
        self.function, self.entry, self.strings, self.row, self.starts = function, function.entry, strings, row, starts
        self.lines: list[str] = []
        self.values: dict[str, str] = {}
        self._count = 0

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

    # ---- operations

    def value(self, operation: str) -> str:
        self._count += 1
        self.lines.append(f"  %v{self._count} = {operation}")
        return f"%v{self._count}"

    def constant(self, number: int) -> str:
        return self.value(f"llvm.mlir.constant({number} : i64) : i64")

    def load(self, place: str, type_: str, element: str = "") -> str:
        at = self.value(f"llvm.getelementptr {place} : (!llvm.ptr) -> !llvm.ptr, {element or type_}")
        return self.value(f"llvm.load {at} : !llvm.ptr -> {type_}")

    def binary(self, name: str, a: str, b: str) -> str:
        return self.value(f"llvm.{name} {a}, {b} : i64")

    def size(self, size: Size) -> str:
        """The value of a size."""
        if isinstance(size, int):
            return self.constant(size)
        total = ""
        for monomial, factor in size.terms.items():
            product = self.constant(factor)
            for atom in monomial:
                product = self.binary("mul", product, self.atom(atom))
            total = self.binary("add", total, product) if total else product
        return total

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, str):
            return self.values[atom]
        if isinstance(atom, Extreme):
            first, *rest = map(self.size, atom.args)
            for other in rest:
                first = self.value(f"llvm.intr.s{atom.kind}({first}, {other}) : (i64, i64) -> i64")
            return first
        return self.floor(self.size(atom.num), self.size(atom.den))

    def floor(self, num: str, den: str) -> str:
        """The quotient rounded down, of a divisor that is taken for 1 where it is not positive."""
        zero, one = self.constant(0), self.constant(1)
        den = self.value(f"llvm.intr.smax({den}, {one}) : (i64, i64) -> i64")
        quotient, rest = self.binary("sdiv", num, den), self.binary("srem", num, den)
        below = self.value(f'llvm.icmp "slt" {rest}, {zero} : i64')
        return self.binary("sub", quotient, self.value(f"llvm.zext {below} : i1 to i64"))

    def estimate(self, size: Size) -> str:
        """About the value of a size as f64, where i64 may not hold it."""
        if isinstance(size, int):
            return self.value(f"llvm.mlir.constant({float(size):e} : f64) : f64")
        total = ""
        for monomial, factor in size.terms.items():
            product = self.estimate(factor)
            for atom in monomial:
                product = self.value(f"llvm.fmul {product}, {self.atom_estimate(atom)} : f64")
            total = self.value(f"llvm.fadd {total}, {product} : f64") if total else product
        return total

    def atom_estimate(self, atom: Atom) -> str:
        if isinstance(atom, str):
            return self.value(f"llvm.sitofp {self.values[atom]} : i64 to f64")
        if isinstance(atom, Extreme):
            first, *rest = map(self.estimate, atom.args)
            for other in rest:
                first = self.value(f"llvm.intr.{atom.kind}num({first}, {other}) : (f64, f64) -> f64")
            return first
        den = self.value(f"llvm.intr.maxnum({self.estimate(atom.den)}, {self.estimate(1)}) : (f64, f64) -> f64")
        return self.value(f"llvm.fdiv {self.estimate(atom.num)}, {den} : f64")

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


def _entry(function: "_Function", strings: Strings, row: int, starts: Sequence[int]) -> str:
    body = _EntryBody(function, strings, row, starts).text()
    pointers = 2 * len(function.entry.tensors)
    sizes = function.entry.sizes
    return _ENTRY.format(prefix=PACKED_PREFIX, name=function.name, pointers=pointers, sizes=sizes, row=row, body=body)


def _entry_table(names: Sequence[str]) -> str:
    array = f"!llvm.array<{len(names)} x ptr>"
    inserts = [
        f'  %f{i} = llvm.mlir.addressof @"{PACKED_PREFIX}{name}" : !llvm.ptr\n  %v{i + 1} = llvm.insertvalue %f{i}, %v{i}[{i}] : {array}'
        for i, name in enumerate(names)
    ]
    return _ENTRIES.format(count=len(names), inserts="\n".join(inserts), symbol=ENTRIES_SYMBOL)


@dataclass
class _Function:
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


def add_packed_entries(module: ir.Module, entries: Mapping[str, PackedEntry], device: str = "cpu") -> None:
    """Adds a packed entry `@__tvm_ffi_NAME` for each function of `entries` to a module in the LLVM dialect.

    The functions become internal to the module, as do its private ones; `entry_addresses` finds the entries once it is compiled.

    Args:
      module: holds `llvm.func @NAME(!llvm.ptr, ...)` for each name, one bare pointer per tensor. A function may give an i32, 0 or, with
        an error raised, another one: so does its entry.
      entries: what each function takes; the names of tensors are used in error messages.
      device: kind of the devices that the tensors must be on.

    Raises:
      ValueError: a function is missing from the module.
    """
    functions = {}
    for op in module.body.operations:
        if op.operation.name == "llvm.func":
            functions[ir.StringAttr(op.attributes["sym_name"]).value] = op
    missing = [name for name in entries if name not in functions]
    if missing:
        raise ValueError(f"expected functions {', '.join(missing)} in the module, found none of these names")

    with module.context, ir.Location.unknown():
        for name, function in functions.items():
            private = "sym_visibility" in function.attributes and len(function.regions[0].blocks)
            if name in entries or private:
                function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        entered = []
        for name, entry in entries.items():
            fails = str(functions[name].attributes["function_type"]).startswith("!llvm.func<i32")
            entered.append(_Function(name, entry, fails))
        parsed = ir.Module.parse(_entries_text(entered, device_kind(device)))
    for op in list(parsed.body.operations):
        if ir.StringAttr(op.attributes["sym_name"]).value not in functions:
            op.detach_from_parent()
            module.body.append(op)


def _entries_text(functions: Sequence[_Function], device: DeviceKind) -> str:
    """All that is added to a module, after declarations of the functions."""
    strings = Strings()
    messages = {key: strings.offset(message.format(device=device.name)) for key, message in _MESSAGES.items()}
    dtypes = [strings.offset(text) for text in (*_FOUND_CODES, "unknown%d")]
    table: list[int] = []
    entries = []
    for function in functions:
        row, starts = _table_row(strings, function.name, function.entry)
        entries.append(_entry(function, strings, len(table), starts))
        table += row
    parts = [
        *[f.declaration() for f in functions],
        strings.as_global("__relayc_strings"),
        i64_global("__relayc_dtypes", dtypes),
        i64_global("__relayc_table", table),
        _CHECK.format(num_codes=len(_FOUND_CODES), device_type=device.dlpack_type, **messages),
        *entries,
        _entry_table([f.name for f in functions]),
    ]
    return "\n".join(parts)


def entry_addresses(engine: Linked, names: Iterable[str], runs_here: bool = True) -> dict[str, int]:
    """Address of the packed entry of each function, for `tvm_ffi.Function.__from_extern_c__`; 0 where the code does not run here.

    Args:
      engine: made of a module that `add_packed_entries` was applied to.
      names: keys of the `entries` given to it, in the same order.
      runs_here: whether this machine can run the code.

    Raises:
      RuntimeError: the code could not be linked; the engine has written to stderr which symbols it missed.
    """
    names = list(names)
    lookup = engine.raw_lookup(ENTRIES_SYMBOL)
    if not lookup:
        raise RuntimeError("the compiled module could not be linked: see the names of missing symbols on stderr")
    if not runs_here:
        return dict.fromkeys(names, 0)
    table = ctypes.c_void_p()
    # The engine wraps a function as void(void**), where the last pointer is that of the result.
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(table))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lookup)(arguments)
    addresses = ctypes.cast(table, ctypes.POINTER(ctypes.c_size_t))
    return {name: addresses[i] for i, name in enumerate(names)}
