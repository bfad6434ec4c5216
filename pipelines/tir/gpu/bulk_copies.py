"""Copies by the tensor memory accelerator, and the barriers in shared memory that count them.

Addresses are pointers to shared memory, maps those of tensor_maps. PTX ISA: "mbarrier", "cp.async.bulk.tensor".
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.gpu.copies import as_pointer

LINE_BYTES = 128
"""Of a line of a tile in shared memory, as copies permute it."""
EIGHT_BYTES = 8 * LINE_BYTES
"""Of lines that are permuted together."""
BARRIER_BYTES = 8
_TICKS = 10_000_000
"""Nanoseconds that a thread sleeps at most before it looks at a barrier again."""


def i32(value: int) -> ir.Value:
    return emit.number(value, ir.IntegerType.get_signless(32))


# ---- barriers: words of 8 bytes in shared memory


def init_barrier(barrier: ir.Value, arrivals: int) -> None:
    """A barrier whose phases end with so many arrivals, and the bytes that were announced."""
    emit.create("nvvm.mbarrier.init", [], [barrier, i32(arrivals)])


def fence_barriers() -> None:
    """What was initialised is seen by copies, too."""
    emit.create("nvvm.fence.mbarrier.init", [], [])
    fence_memory()


def fence_memory() -> None:
    """What the thread wrote to shared memory is written before copies write there, or read, which it, or a barrier, lets begin."""
    emit.create("nvvm.fence.proxy", [], [], _async_shared())


def wait(barrier: ir.Value, parity: ir.Value) -> None:
    """Until the phase of a parity (i32) has ended; the phase before the first one is over, and of parity 1."""
    emit.create("nvvm.mbarrier.try_wait.parity", [], [barrier, parity, i32(_TICKS)])


def arrive(barrier: ir.Value) -> None:
    emit.create("nvvm.mbarrier.arrive", [ir.IntegerType.get_signless(64)], [barrier], _of_block())


def arrive_expecting(barrier: ir.Value, count: int) -> None:
    """Arrives, and announces bytes that copies will bring."""
    emit.create("nvvm.mbarrier.arrive.expect_tx", [], [barrier, i32(count)], _of_block())


def _of_block() -> dict[str, ir.Attribute]:
    return {"relaxed": ir.BoolAttr.get(False), "scope": emit.parsed("#nvvm.mem_scope<cta>")}


def _async_shared() -> dict[str, ir.Attribute]:
    return {"kind": emit.parsed("#nvvm.proxy_kind<async.shared>"), "space": emit.parsed("#nvvm.shared_space<cta>")}


# ---- copies


def copy_box(to: ir.Value, tensor_map: ir.Value, at: Sequence[ir.Value], barrier: ir.Value) -> None:
    """Brings the box of a tensor that begins at some coordinates (i32, innermost first), and tells the barrier its bytes."""
    _copy(to, tensor_map, at, barrier, "tile", [])


def copy_pixels(to: ir.Value, tensor_map: ir.Value, at: Sequence[ir.Value], offsets: Sequence[ir.Value], barrier: ir.Value) -> None:
    """Brings pixels of a window, and tells the barrier their bytes.

    Args:
      at: coordinates of the first one (i32, innermost first: channel, x, y, image).
      offsets: how far behind each pixel of the window the one is that is read (i16: x, y).
    """
    _copy(to, tensor_map, at, barrier, "im2col", offsets)


def _copy(to: ir.Value, tensor_map: ir.Value, at: Sequence[ir.Value], barrier: ir.Value, mode: str, offsets: Sequence[ir.Value]) -> None:
    cluster = emit.create("llvm.addrspacecast", [ir.Type.parse("!llvm.ptr<7>")], [to])
    attributes = {
        "isCTAOnly": ir.BoolAttr.get(False),
        "mode": emit.parsed(f"#nvvm.tma_load_mode<{mode}>"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, len(at), 1, len(offsets), 0, 0, 0]),
    }
    emit.create("nvvm.cp.async.bulk.tensor.shared.cluster.global", [], [cluster, tensor_map, *at, barrier, *offsets], attributes)


def address_of(tensor_map: ir.Value) -> ir.Value:
    """Of a tensor map, as copies take it."""
    base = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [tensor_map])
    return as_pointer(base, 0)


def as_coordinate(index: Index) -> ir.Value:
    """A coordinate, computed here."""
    return emit.create("arith.index_cast", [ir.IntegerType.get_signless(32)], [emit.materialize(index)])


def elected() -> ir.Value:
    """Whether this is the one lane of the warp that acts for all (i1)."""
    return emit.create("nvvm.elect.sync", [ir.IntegerType.get_signless(1)], [])
