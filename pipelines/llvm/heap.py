"""Values of programs that are no tensors, as text in the LLVM dialect: a word each, and cells on a reference-counted heap.

A word is an i64. Where its lowest bit is 1, it is a value itself: bits 1 to 7 say of which kind (IMMEDIATES), bits 8 to 31 are the tag of
a constructor without fields, bits 32 to 63 the value, or the number of the constructor. Otherwise it is the address of an object of
tvm-ffi: a cell, or anything else, such as a tensor. The word 0 is none: a function that gives it has raised an error.

A cell is an object of tvm-ffi: the header of 24 bytes, then tag (i32), number of fields (i32), what it is of (i64: the number of a
constructor, the address of a closure's function), and the fields, a word each.

Counting is atomic, so cells may be shared by threads. Cells that go free what they refer to on a list, not by calls in calls: lists may be
as long as memory. Nothing refers to cells weakly.
"""

from relayc.pipelines.emission.mlir_text import mlir_texts
from relayc.pipelines.llvm.tables import address_table

IMMEDIATES = {"int32": 1, "float32": 2, "bool": 3, "constructor": 4}
"""Kinds of values that are words themselves."""

TUPLE, REFERENCE, CLOSURE = -1, -2, -3
"""Tags of cells that are of no constructor."""

CELL_BYTES = 40
"""Bytes of a cell without its fields."""

ENTRIES = ("make", "tag", "count", "info", "field")
"""Packed functions on cells, in the order of their addresses; then come the addresses of `heap_drop` and `heap_deleter`."""

_MLIR = mlir_texts(__file__)
_DECLARATIONS = _MLIR["declarations"].substitute()


def _inline(type_index: int, drop: str, deleter: str) -> str:
    return _MLIR["inline"].substitute(type_index=type_index, cell_bytes=CELL_BYTES, drop=drop, deleter=deleter)


def heap_module(type_index: int, symbol: str) -> str:
    """The module of the functions on cells, and the function `symbol` that gives their addresses (see ENTRIES).

    Args:
      type_index: that of cells among the objects of tvm-ffi.
    """
    readers = []
    for name, offset, type_ in (("tag", 24, "i32"), ("count", 28, "i32"), ("info", 32, "i64")):
        widened, value = ("%wide = llvm.sext %found : i32 to i64", "wide") if type_ == "i32" else ("", "found")
        readers.append(_MLIR["reader"].substitute(name=name, offset=offset, type=type_, widened=widened, value=value))
    code = _MLIR["code"].substitute(type_index=type_index, cell_bytes=CELL_BYTES, readers="".join(readers))
    inline = _inline(type_index, "llvm.call @heap_drop(%w) : (i64) -> ()", "%deleter = llvm.mlir.addressof @heap_deleter : !llvm.ptr")
    names = [*(f"heap_{name}_entry" for name in ENTRIES), "heap_drop", "heap_deleter"]
    return "\n".join([_DECLARATIONS, inline, code, address_table(symbol, names)])


def heap_functions(type_index: int, drop: int, deleter: int) -> str:
    """The functions on cells that each program has its own copies of; the others are at addresses."""
    called = f"""%a = llvm.mlir.constant({drop} : i64) : i64
  %f = llvm.inttoptr %a : i64 to !llvm.ptr
  llvm.call %f(%w) : !llvm.ptr, (i64) -> ()"""
    address = f"""%d = llvm.mlir.constant({deleter} : i64) : i64
  %deleter = llvm.inttoptr %d : i64 to !llvm.ptr"""
    return _DECLARATIONS + _inline(type_index, called, address)
