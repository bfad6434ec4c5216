"""Addresses of elements, and asynchronous copies from global to shared memory (cp.async)."""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index

GLOBAL, SHARED = 1, 3
"""Address spaces."""
WIDEST = 16
"""Widest copy, in bytes; others have 4 or 8."""


def as_pointer(address: ir.Value, space: int) -> ir.Value:
    """An address of type index as a pointer to an address space."""
    number = emit.create("arith.index_cast", [ir.IntegerType.get_signless(64)], [address])
    return emit.create("llvm.inttoptr", [ir.Type.parse(f"!llvm.ptr<{space}>")], [number])


def pointer(buffer: ir.Value, element: Index, space: int) -> ir.Value:
    """The address of an element of a flat buffer."""
    base = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [buffer])
    offset = emit.materialize(element * (buffer.type.element_type.width // 8))
    return as_pointer(emit.create("arith.addi", [base.type], [base, offset], emit.no_overflow()), space)


def copy_asynchronously(to: ir.Value, source: ir.Value, size: int, is_there: ir.Value | None = None) -> None:
    """Starts a copy of 4, 8 or 16 bytes between pointers to shared and global memory, both aligned to the size.

    Args:
      is_there: predicate; if false, zeros are written and nothing is read.
    """
    i32 = ir.IntegerType.get_signless(32)
    operands = [to, source]
    if is_there is not None:
        operands.append(emit.select(is_there, emit.number(size, i32), emit.number(0, i32)))
    attributes = {
        "size": ir.IntegerAttr.get(i32, size),
        "modifier": emit.parsed(f"#nvvm<load_cache_modifier {'cg' if size == WIDEST else 'ca'}>"),
    }
    emit.create("nvvm.cp.async.shared.global", [], operands, attributes)


def commit_copies() -> None:
    """Makes a group of the copies that the thread started since the last one."""
    emit.create("nvvm.cp.async.commit.group", [], [])


def wait_for_copies(groups: int) -> None:
    """Waits until at most `groups` of the thread's last groups of copies are pending."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), groups)
    emit.create("nvvm.cp.async.wait.group", [], [], {"n": number})
