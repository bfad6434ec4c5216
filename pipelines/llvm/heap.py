"""Values of programs that are not tensors, as text in the LLVM dialect: one word each, with cells on a reference-counted heap.

A word is an i64. If its lowest bit is 1, it is an immediate value: bits 1 to 7 are its kind (IMMEDIATES), bits 8 to 31 the tag of a
constructor without fields, bits 32 to 63 the value, or the number of the constructor. Otherwise it is the address of an object of tvm-ffi:
a cell, or another object, such as a tensor. The word 0 is no value: a function that returns it has raised an error.

A cell is an object of tvm-ffi: the header of 24 bytes, then tag (i32), number of fields (i32), description (i64: the number of a
constructor, the address of a closure's function), and the fields, one word each.

Reference counts are atomic, so threads may share cells. Freeing a cell puts its references on a list instead of recursing: data may be
arbitrarily deep. There are no weak references to cells.
"""

from relayc.pipelines.emission.mlir_text import mlir_texts

IMMEDIATES = {"int32": 1, "float32": 2, "bool": 3, "constructor": 4}
"""Kinds of immediate values."""

TUPLE, REFERENCE, CLOSURE = -1, -2, -3
"""Tags of cells without a constructor."""

CELL_BYTES = 40
"""Bytes of a cell without its fields."""

FIRST_LINK = 3
"""The first of the program's own words in `@__relayc_links`. The words before it are the type index of cells among the objects of tvm-ffi,
and the addresses of the functions `heap_drop` and `heap_deleter` of the heap that all programs of the process share."""

_MLIR = mlir_texts(__file__)


def heap_text(links: int) -> str:
    """The functions on cells, and storage for the links of a program: the array `@__relayc_links`, which the loader of the program fills.

    Args:
      links: number of the program's own words in `@__relayc_links`.
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
