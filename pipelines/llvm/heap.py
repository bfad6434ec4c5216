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

IMMEDIATES = {"int32": 1, "float32": 2, "bool": 3, "constructor": 4}
"""Kinds of values that are words themselves."""

TUPLE, REFERENCE, CLOSURE = -1, -2, -3
"""Tags of cells that are of no constructor."""

CELL_BYTES = 40
"""Bytes of a cell without its fields."""

FIRST_LINK = 3
"""Of the words of `@__relayc_links`, the first that is the program's own. Before it are the number of the type of cells among the objects
of tvm-ffi, and the addresses of the functions `heap_drop` and `heap_deleter` of the heap that all programs of the process share."""

_MLIR = mlir_texts(__file__)


def heap_text(links: int) -> str:
    """The functions on cells, and room for what a program is linked to: the array `@__relayc_links`, which whoever loads the program fills.

    Args:
      links: how many words of `@__relayc_links` are the program's own.
    """
    readers = []
    for name, offset, type_ in (("tag", 24, "i32"), ("count", 28, "i32"), ("info", 32, "i64")):
        widened, value = ("%wide = llvm.sext %found : i32 to i64", "wide") if type_ == "i32" else ("", "found")
        readers.append(_MLIR["reader"].substitute(name=name, offset=offset, type=type_, widened=widened, value=value))
    parts = [_MLIR[name].substitute(cell_bytes=CELL_BYTES, readers="".join(readers)) for name in ("declarations", "inline", "code")]
    room = (
        f"llvm.mlir.global internal @__relayc_links(dense<0> : tensor<{FIRST_LINK + links}xi64>) : !llvm.array<{FIRST_LINK + links} x i64>"
    )
    return "\n".join([room, *parts])
