"""Hopper's instructions as operations: barriers in shared memory, copies by the tensor memory accelerator, products by warp groups.

Addresses are pointers to shared memory. PTX ISA: "mbarrier", "cp.async.bulk.tensor", "Asynchronous Warpgroup Level Matrix Instructions".
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.cuda.schedule.product.tensor_cores import Instruction
from relayc.pipelines.tir import emit

GROUP_THREADS = 128
"""Threads of a warp group."""
ROWS = 64
"""Of a product of a warp group."""
LINE_BYTES = 128
"""Of a line of a tile in shared memory, as copies and products permute it."""
_EIGHT_BYTES = 8 * LINE_BYTES
"""Of lines that are permuted together."""
_ENCODED_SHIFT = 4
"""Addresses and distances in descriptors are multiples of 16 bytes."""
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


# ---- products


def descriptor(address: ir.Value, leading_bytes: int = 0) -> ir.Value:
    """Of a tile of lines of LINE_BYTES, eight of which are permuted together, at an address in shared memory (index).

    Args:
      leading_bytes: where lines run across the depth, from the lines with 64 rows or columns to those with the next 64.
    """
    i64 = ir.IntegerType.get_signless(64)
    low = emit.arith("andi", emit.create("arith.index_cast", [i64], [address]), emit.number((1 << 18) - 1, i64))
    leading = leading_bytes >> _ENCODED_SHIFT or 1  # along the depth it is not used, and 1
    fixed = 1 << 62 | (_EIGHT_BYTES >> _ENCODED_SHIFT) << 32 | leading << 16
    return emit.arith("ori", emit.arith("shrui", low, emit.number(_ENCODED_SHIFT, i64)), emit.number(fixed, i64))


def moved(descriptor: ir.Value, num_bytes: int) -> ir.Value:
    """The descriptor of what begins some bytes further."""
    if num_bytes == 0:
        return descriptor
    return emit.arith("addi", descriptor, emit.number(num_bytes >> _ENCODED_SHIFT, descriptor.type))


def no_sums(columns: int, element: ir.Type) -> ir.Value:
    """What a thread holds of 64 x `columns` sums, before there are any."""
    return emit.create("llvm.mlir.zero", [ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * (columns // 2))})>")], [])


def multiply_add(
    a: ir.Value, b: ir.Value, sums: ir.Value, columns: int, instruction: Instruction, along_depth: tuple[bool, bool]
) -> ir.Value:
    """The sums with the products of an instruction's steps of two tiles; they are there when `wait_products` says so.

    Args:
      a, b: descriptors; along_depth: whether the lines of each run along the depth, as those of 8-bit integers must.
    """
    attributes = {
        "shape": emit.parsed(f"#nvvm.shape<m = {ROWS}, n = {columns}, k = {instruction.depth}>"),
        "layoutA": emit.parsed(f"#nvvm.mma_layout<{'row' if along_depth[0] else 'col'}>"),
        "layoutB": emit.parsed(f"#nvvm.mma_layout<{'col' if along_depth[1] else 'row'}>"),
        "scaleA": emit.parsed("#nvvm.wgmma_scale_in<one>"),
        "scaleB": emit.parsed("#nvvm.wgmma_scale_in<one>"),
        "scaleD": emit.parsed("#nvvm.wgmma_scale_out<one>"),
        "typeA": emit.parsed(f"#nvvm.wgmma_type<{instruction.a}>"),
        "typeB": emit.parsed(f"#nvvm.wgmma_type<{instruction.b}>"),
        "typeD": emit.parsed(f"#nvvm.wgmma_type<{'s32' if instruction.sums == 'i32' else instruction.sums}>"),
    }
    if instruction.sums == "i32":
        attributes["satfinite"] = emit.parsed("#nvvm.mma_int_overflow<wrapped>")
    return emit.create("nvvm.wgmma.mma_async", [sums.type], [sums, a, b], attributes)


def begin_products() -> None:
    emit.create("nvvm.wgmma.fence.aligned", [], [])


def commit_products() -> None:
    emit.create("nvvm.wgmma.commit.group.sync.aligned", [], [])


def wait_products(keep: int) -> None:
    """Until at most `keep` groups of products are on their way."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), keep)
    emit.create("nvvm.wgmma.wait.group.sync.aligned", [], [], {"group": number})


def sum_of(sums: ir.Value, position: int, element: ir.Type) -> ir.Value:
    """One of the sums that a thread holds: number 4 j + 2 h + o is of row (lane / 4) + 8 h of the warp, column 8 j + 2 (lane % 4) + o."""
    return emit.create("llvm.extractvalue", [element], [sums], {"position": ir.DenseI64ArrayAttr.get([position])})


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
