"""Copies by the tensor memory accelerator (TMA), and the mbarriers in shared memory that track them.

Addresses are pointers to shared memory; maps are from tensor_maps. PTX ISA: "mbarrier", "cp.async.bulk.tensor".
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.gpu.copies import as_pointer

LINE_BYTES = 128
"""Bytes of a line of a tile in shared memory (swizzle unit of copies)."""
EIGHT_BYTES = 8 * LINE_BYTES
"""Bytes of the eight lines that are permuted together."""
BARRIER_BYTES = 8
_TICKS = 10_000_000
"""Limit of the nanoseconds that a thread sleeps between tests of a barrier."""


def i32(value: int) -> ir.Value:
    return emit.number(value, ir.IntegerType.get_signless(32))


# ---- barriers: 8-byte words in shared memory


def init_barrier(barrier: ir.Value, arrivals: int) -> None:
    """Initializes a barrier whose phases end after the given number of arrivals and the announced bytes."""
    emit.create("nvvm.mbarrier.init", [], [barrier, i32(arrivals)])


def fence_barriers() -> None:
    """Makes initialized barriers visible to copies."""
    emit.create("nvvm.fence.mbarrier.init", [], [])
    fence_memory()


def fence_memory() -> None:
    """Orders the thread's writes to shared memory before later asynchronous copies that access it, started by the thread or after a
    barrier."""
    emit.create(
        "nvvm.fence.proxy", [], [], {"kind": emit.parsed("#nvvm.proxy_kind<async.shared>"), "space": emit.parsed("#nvvm.shared_space<cta>")}
    )


def wait(barrier: ir.Value, parity: ir.Value) -> None:
    """Waits until the phase of a parity (i32) has ended; the phase before the first one has parity 1 and counts as ended."""
    emit.create("nvvm.mbarrier.try_wait.parity", [], [barrier, parity, i32(_TICKS)])


def arrive(barrier: ir.Value) -> None:
    emit.create("nvvm.mbarrier.arrive", [ir.IntegerType.get_signless(64)], [barrier], _of_block())


def arrive_expecting(barrier: ir.Value, count: int) -> None:
    """Arrives, and announces the bytes of coming copies."""
    emit.create("nvvm.mbarrier.arrive.expect_tx", [], [barrier, i32(count)], _of_block())


def _of_block() -> dict[str, ir.Attribute]:
    return {"relaxed": ir.BoolAttr.get(False), "scope": emit.parsed("#nvvm.mem_scope<cta>")}


# ---- copies


def copy_box(to: ir.Value, tensor_map: ir.Value, at: Sequence[ir.Value], barrier: ir.Value) -> None:
    """Copies the box of a tensor that begins at the given coordinates (i32, innermost first); its bytes are counted by the barrier."""
    _copy(to, tensor_map, at, barrier, "tile", [])


def copy_pixels(to: ir.Value, tensor_map: ir.Value, at: Sequence[ir.Value], offsets: Sequence[ir.Value], barrier: ir.Value) -> None:
    """Copies pixels of a window; their bytes are counted by the barrier.

    Args:
      at: coordinates of the first pixel (i32, innermost first: channel, x, y, image).
      offsets: offset of the pixel to read from each pixel of the window (i16: x, y).
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
    """The address of a tensor map, as copies take it."""
    base = emit.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [tensor_map])
    return as_pointer(base, 0)


def as_coordinate(index: Index) -> ir.Value:
    """A coordinate (i32), emitted at the insertion point."""
    return emit.create("arith.index_cast", [ir.IntegerType.get_signless(32)], [emit.materialize(index)])


def elected() -> ir.Value:
    """Whether this lane is the elected one of its warp (i1)."""
    return emit.create("nvvm.elect.sync", [ir.IntegerType.get_signless(1)], [])
