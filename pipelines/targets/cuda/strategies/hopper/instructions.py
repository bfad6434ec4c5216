"""Hopper's instructions as operations: products by warp groups (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions")."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.strategies.product.instructions import Instruction
from relayc.pipelines.tir.gpu.bulk_copies import EIGHT_BYTES

GROUP_THREADS = 128
"""Threads of a warp group."""
ROWS = 64
"""Of a product of a warp group."""
_ENCODED_SHIFT = 4
"""Addresses and distances in descriptors are multiples of 16 bytes."""

# ---- products


def descriptor(address: ir.Value, leading_bytes: int = 0) -> ir.Value:
    """The descriptor of a tile of lines of LINE_BYTES, eight of which are permuted together, at an address in shared memory (index).

    Args:
      leading_bytes: if lines run across the depth, the distance between the lines of 64 rows or columns and the lines of the next 64.
    """
    i64 = ir.IntegerType.get_signless(64)
    low = emit.arith("andi", emit.create("arith.index_cast", [i64], [address]), emit.number((1 << 18) - 1, i64))
    leading = leading_bytes >> _ENCODED_SHIFT or 1  # along the depth it is not used, and 1
    fixed = 1 << 62 | (EIGHT_BYTES >> _ENCODED_SHIFT) << 32 | leading << 16
    return emit.arith("ori", emit.arith("shrui", low, emit.number(_ENCODED_SHIFT, i64)), emit.number(fixed, i64))


def moved(descriptor: ir.Value, num_bytes: int) -> ir.Value:
    """The descriptor of the tile that begins some bytes further."""
    if num_bytes == 0:
        return descriptor
    return emit.arith("addi", descriptor, emit.number(num_bytes >> _ENCODED_SHIFT, descriptor.type))


def no_sums(columns: int, element: ir.Type) -> ir.Value:
    """What a thread holds of 64 x `columns` sums, before there are any."""
    return emit.create("llvm.mlir.zero", [ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * (columns // 2))})>")], [])


def sums_of(values: Sequence[ir.Value]) -> ir.Value:
    """Sums that a thread holds, one by one (see sum_of), as products take them."""
    return emit.struct(ir.Type.parse(f"!llvm.struct<({', '.join(str(value.type) for value in values)})>"), values)


def multiply_add(
    a: ir.Value, b: ir.Value, sums: ir.Value, columns: int, instruction: Instruction, along_depth: tuple[bool, bool]
) -> ir.Value:
    """The sums plus the products of two tiles over the steps of an instruction; valid after `wait_products`.

    Args:
      a, b: descriptors; along_depth: whether the lines of each operand run along the depth, as required for 8-bit integers.
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
    return emit.member(sums, position, element)


# ---- warps


def registers(action: str, count: int) -> None:
    """The warp group has `count` registers a thread from now on, which it gives back ("decrease") or takes ("increase")."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
    emit.create("nvvm.setmaxregister", [], [], {"action": emit.parsed(f"#nvvm<action {action}>"), "regCount": number})
