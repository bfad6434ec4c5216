"""Hopper's instructions as operations: barriers in shared memory, copies by the tensor memory accelerator, products by warp groups.

Addresses are pointers to shared memory. PTX ISA: "mbarrier", "cp.async.bulk.tensor", "Asynchronous Warpgroup Level Matrix Instructions".
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.tir import emit

GROUP_THREADS = 128
"""Threads of a warp group."""
ROWS = 64
"""Of a product of a warp group."""
STEP = 16
"""Steps of the depth of an instruction, of 16-bit elements."""
LINE_BYTES = 128
"""Of a tile in shared memory along the depth, as copies and products permute it."""
_GROUP_BYTES = 8 * LINE_BYTES
"""Lines that are permuted together."""
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
    cluster = emit.create("llvm.addrspacecast", [ir.Type.parse("!llvm.ptr<7>")], [to])
    attributes = {
        "isCTAOnly": ir.BoolAttr.get(False),
        "mode": emit.parsed("#nvvm.tma_load_mode<tile>"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, len(at), 1, 0, 0, 0, 0]),
    }
    emit.create("nvvm.cp.async.bulk.tensor.shared.cluster.global", [], [cluster, tensor_map, *at, barrier], attributes)


# ---- products


def descriptor(address: ir.Value) -> ir.Value:
    """Of a tile whose lines, of LINE_BYTES, run along the depth, at an address in shared memory (index)."""
    i64 = ir.IntegerType.get_signless(64)
    low = emit.arith("andi", emit.create("arith.index_cast", [i64], [address]), emit.number((1 << 18) - 1, i64))
    fixed = 1 << 62 | (_GROUP_BYTES >> 4) << 32 | 1 << 16  # permuted by 128 bytes; bytes from eight lines to the next eight
    return emit.arith("ori", emit.arith("shrui", low, emit.number(4, i64)), emit.number(fixed, i64))


def sums_type(columns: int) -> ir.Type:
    """What a thread holds of 64 x `columns` sums."""
    return ir.Type.parse(f"!llvm.struct<({', '.join(['f32'] * (columns // 2))})>")


def no_sums(columns: int) -> ir.Value:
    return emit.create("llvm.mlir.zero", [sums_type(columns)], [])


def multiply_add(a: ir.Value, b: ir.Value, sums: ir.Value, columns: int, element: str) -> ir.Value:
    """The sums with the products of STEP steps of two tiles, given by descriptors; they are there when `wait_products` says so."""
    attributes = {
        "shape": emit.parsed(f"#nvvm.shape<m = {ROWS}, n = {columns}, k = {STEP}>"),
        "layoutA": emit.parsed("#nvvm.mma_layout<row>"),
        "layoutB": emit.parsed("#nvvm.mma_layout<col>"),
        "scaleA": emit.parsed("#nvvm.wgmma_scale_in<one>"),
        "scaleB": emit.parsed("#nvvm.wgmma_scale_in<one>"),
        "scaleD": emit.parsed("#nvvm.wgmma_scale_out<one>"),
        "typeA": emit.parsed(f"#nvvm.wgmma_type<{element}>"),
        "typeB": emit.parsed(f"#nvvm.wgmma_type<{element}>"),
        "typeD": emit.parsed("#nvvm.wgmma_type<f32>"),
    }
    return emit.create("nvvm.wgmma.mma_async", [sums.type], [sums, a, b], attributes)


def begin_products() -> None:
    emit.create("nvvm.wgmma.fence.aligned", [], [])


def commit_products() -> None:
    emit.create("nvvm.wgmma.commit.group.sync.aligned", [], [])


def wait_products(keep: int) -> None:
    """Until at most `keep` groups of products are on their way."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), keep)
    emit.create("nvvm.wgmma.wait.group.sync.aligned", [], [], {"group": number})


def sum_of(sums: ir.Value, position: int) -> ir.Value:
    """One of the sums that a thread holds: number 4 j + 2 h + o is of row (lane / 4) + 8 h of the warp, column 8 j + 2 (lane % 4) + o."""
    return emit.create("llvm.extractvalue", [ir.F32Type.get()], [sums], {"position": ir.DenseI64ArrayAttr.get([position])})


# ---- warps


def registers(action: str, count: int) -> None:
    """The warp group has `count` registers a thread from now on, which it gives back ("decrease") or takes ("increase")."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
    emit.create("nvvm.setmaxregister", [], [], {"action": emit.parsed(f"#nvvm<action {action}>"), "regCount": number})


def elected() -> ir.Value:
    """Whether this is the one lane of the warp that acts for all (i1)."""
    return emit.create("nvvm.elect.sync", [ir.IntegerType.get_signless(1)], [])


def wait_for_warp() -> None:
    emit.create("nvvm.bar.warp.sync", [], [i32(-1)])
