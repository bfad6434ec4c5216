"""Packed entry points: functions of tvm-ffi's calling convention around kernels that take bare pointers.

A packed entry of `@k` is

    llvm.func @__tvm_ffi_k(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32

where `args` points to `n` TVMFFIAny values (tvm/ffi/c_api.h of apache-tvm-ffi). It checks the number of arguments and that each is a tensor
on a device of the kind that the code runs on, of the dtype, rank and dimensions that `@k` was compiled for, in row-major order without
gaps; then it calls `@k` with their data pointers and returns 0. Otherwise it raises a TypeError (count, kind, dtype) or a ValueError (rank,
dimensions, device, layout) with the expected and the found value, and returns -1.

The symbols of a program come from the dimensions of its tensors; the symbols of a kernel are integers after its tensors. Every dimension
that is an expression of symbols is checked, and so are the bounds of the symbols.

The checks are two functions, driven by a table: one for the tensors, and one for symbols (see tensor_check, size_check). An entry costs a
few instructions, one row of the table, and the numbers of its program. Entries and kernels are internal to the module, and one external
function returns the addresses of all entries, because the engine compiles a wrapper for every external function (0.7 ms each).
"""

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import tvm_ffi  # noqa: F401 (loads the library in which the compiled code finds TVMFFIErrorSetRaisedFromCStr)

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.mlir_text import mlir_texts
from relayc.pipelines.llvm.checks import check_declarations, check_functions
from relayc.pipelines.llvm.entry_body import CONTEXT, FINISH, GIVEN_PLACE, EntryBody, EntryFunction, SizeChecks
from relayc.pipelines.llvm.tables import Strings, address_table, dtype_bits, i64_global
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.runtime.artifact import ENTRIES_SYMBOL, PACKED_PREFIX

_ENTRY = mlir_texts(__file__)["entry"]
_CONTEXT = f"""
llvm.func @{CONTEXT}(!llvm.ptr, i64, !llvm.ptr) -> i32
llvm.func @{GIVEN_PLACE}(i64) -> !llvm.ptr
llvm.func @{FINISH}(i64, i32) -> i32
"""


class Linked(Protocol):
    """A compiled module in memory, such as an ExecutionEngine."""

    def raw_lookup(self, name: str) -> int:
        """Address of the wrapper `void(void**)` of an external function; 0 if it cannot be linked."""


def _table_row(strings: Strings, name: str, entry: PackedEntry) -> tuple[list[int], list[int]]:
    """The row of an entry, and the position in it of each tensor."""
    names = ", ".join(spec.name for spec in entry.tensors)
    row, starts = [len(entry.tensors), strings.offset(name), strings.offset(names)], []
    for i, spec in enumerate(entry.tensors):
        starts.append(len(row))
        dims = [(-1 - d if i == entry.arena else d) if isinstance(d, int) else -1 for d in spec.shape]
        row += [strings.offset(spec.name), strings.offset(str(spec)), dtype_bits(spec.dtype), len(dims), len(dims), *dims]
    return row, starts


def _entry(function: EntryFunction, row: int, program: int) -> str:
    body = EntryBody(function, program).text()
    pointers = 2 * len(function.entry.tensors)
    sizes = function.entry.integers
    return _ENTRY.substitute(prefix=PACKED_PREFIX, name=function.name, pointers=pointers, sizes=sizes, row=row, body=body)


def add_packed_entries(
    module: ir.Module, entries: Mapping[str, PackedEntry], device: str = "cpu", checks: bool = True, linked: Sequence[str] = ()
) -> None:
    """Adds a packed entry `@__tvm_ffi_NAME` for each function of `entries` to a module in the LLVM dialect.

    The functions become internal to the module, as do its private ones; `entry_addresses` returns the entries once it is compiled.

    Args:
      module: holds `llvm.func @NAME(!llvm.ptr, ...)` for each name, one bare pointer per tensor. A function may return an i32, 0 or, with
        an error raised, another one; its entry returns the same.
      entries: the arguments of each function; the names of tensors are used in error messages.
      device: kind of the devices that the tensors must be on.
      checks: whether to add the functions that check a call; otherwise they are declared, to be linked (llvm.checks).
      linked: symbols of more packed entries, which the module declares: they follow the others in the table.

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
            entered.append(EntryFunction(name, entry, fails))
        parsed = ir.Module.parse(_entries_text(entered, check_functions(device) if checks else check_declarations(), linked))
    for op in list(parsed.body.operations):
        if ir.StringAttr(op.attributes["sym_name"]).value not in functions:
            op.detach_from_parent()
            module.body.append(op)


def _entries_text(functions: Sequence[EntryFunction], checks: str, linked: Sequence[str]) -> str:
    """The text added to a module, after declarations of the functions."""
    strings = Strings()
    table: list[int] = []
    entries = []
    for function in functions:
        row, starts = _table_row(strings, function.name, function.entry)
        entries.append(_entry(function, len(table), len(table) + len(row)))
        table += [*row, *SizeChecks(function, strings, starts).words]
    tables = [strings.as_global("__relayc_strings"), i64_global("__relayc_table", table), checks] if functions else []
    parts = [
        *[f.declaration() for f in functions],
        *tables,
        *([_CONTEXT] if any(f.entry.context for f in functions) else []),
        *entries,
        *[f"llvm.func @{symbol}(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32" for symbol in linked],
        address_table(ENTRIES_SYMBOL, [*[f"{PACKED_PREFIX}{f.name}" for f in functions], *linked], "__relayc_entry_table"),
    ]
    return "\n".join(parts)


def entry_addresses(engine: Linked, names: Iterable[str], runs_here: bool = True) -> dict[str, int]:
    """Address of the packed entry of each function, for `tvm_ffi.Function.__from_extern_c__`; 0 if the code does not run here.

    Args:
      engine: compiled from a module that `add_packed_entries` was applied to.
      names: keys of the `entries` given to it, in the same order.
      runs_here: whether this machine can run the code.

    Raises:
      RuntimeError: the code could not be linked; the engine has written the missing symbols to stderr.
    """
    names = list(names)
    lookup = engine.raw_lookup(ENTRIES_SYMBOL)
    if not lookup:
        raise RuntimeError("the compiled module could not be linked: see the names of missing symbols on stderr")
    if not runs_here:
        return dict.fromkeys(names, 0)
    table = ctypes.c_void_p()
    # The engine wraps a function as void(void**), where the last pointer is the result's.
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(table))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lookup)(arguments)
    addresses = ctypes.cast(table, ctypes.POINTER(ctypes.c_size_t))
    return {name: addresses[i] for i, name in enumerate(names)}
