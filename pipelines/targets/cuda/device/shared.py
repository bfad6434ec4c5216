"""Shared memory: the workgroup attributions of a kernel as global variables of the block.

Attributions of more than STATIC_SHARED_BYTES together are dynamic: one variable whose size the launch specifies.
"""

from dataclasses import dataclass
from math import prod

from relayc.dialects.functions import retype, symbol_name
from relayc.dialects.mlir import ir, memref
from relayc.dialects.operations import element_bytes
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.cuda.architectures import STATIC_SHARED_BYTES
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError, place_of

SPACE = 3
"""The address space of shared memory (NVPTX)."""
MOST_ALIGNMENT, LEAST_ALIGNMENT = 1024, 16
"""Alignments in bytes: for swizzled copies by the tensor memory accelerator, and for vector loads of a thread."""
_SPACES = {"workgroup": SPACE, "global": 1, "private": 0}
"""Address spaces of the gpu dialect in LLVM. Memory of a thread is in the generic address space."""


@dataclass(frozen=True)
class SharedMemory:
    """Shared memory of a kernel.

    Attributes:
      static_bytes, dynamic_bytes: of which one is 0.
      symbol: the variable that is dynamic, "" for none.
    """

    static_bytes: int = 0
    dynamic_bytes: int = 0
    symbol: str = ""


def place_shared(function: ir.Operation, block: ir.Block, count: int, most: int) -> SharedMemory:
    """Replaces the workgroup attributions of a gpu.func by variables before the function; private attributions become allocas.

    Args:
      block: its body, whose arguments from `count` on are attributions.
      most: most bytes of a block.

    Raises:
      DeviceCodeError: the attributions are too large, or not of static size.
    """
    attributions = [ir.BlockArgument(a) for a in list(block.arguments)[count:]]
    shared = [a for a in attributions if _space(a.type) == SPACE]
    name = symbol_name(function)
    for argument in attributions:
        if not argument.type.has_static_shape:
            raise DeviceCodeError(f"{place_of(function)}: expected attributions of static size, found {argument.type}")
        if argument not in shared:
            _replace_private(argument, block)
    offsets, total = _layout(shared)
    if total > most:
        raise DeviceCodeError(f"kernel {name}: shared memory: expected at most {most} bytes, found {total}")
    if total <= STATIC_SHARED_BYTES:
        for i, argument in enumerate(shared):
            symbol = f"{name}_shared_{i}"
            _global(function, symbol, _flat(argument.type), alignment(argument.type))
            with ir.InsertionPoint.at_block_begin(block), function.location:
                argument.replace_all_uses_with(memref.GetGlobalOp(_flat(argument.type), symbol).result)
        made = SharedMemory(total)
    else:
        made = SharedMemory(0, total, f"{name}_shared")
        whole = ir.MemRefType.get([total], ir.IntegerType.get_signless(8), memory_space=_integer(SPACE))
        _global(function, made.symbol, whole, MOST_ALIGNMENT)
        with ir.InsertionPoint.at_block_begin(block), function.location:
            memory = memref.GetGlobalOp(whole, made.symbol).result
            for argument, offset in zip(shared, offsets, strict=True):
                part = emit.create("memref.view", [_flat(argument.type)], [memory, emit.index_constant(offset)])
                argument.replace_all_uses_with(part)
    for i in reversed(range(count, len(block.arguments))):
        block.erase_argument(i)
    return made


def number_spaces(operation: ir.Operation) -> None:
    """Gives the memory spaces of the gpu dialect the numbers of LLVM's address spaces, in place."""

    def new(type_: ir.Type) -> ir.Type:
        if not isinstance(type_, ir.MemRefType) or type_.memory_space is None:
            return type_
        space = _space(type_)
        return ir.MemRefType.get(type_.shape, type_.element_type, type_.layout, _integer(space) if space else None)

    retype(operation, new, only_buffers=True)


def alignment(type_: ir.MemRefType) -> int:
    """Bytes that a buffer in shared memory begins at a multiple of: as large as the buffer is, within limits."""
    size = _bytes(type_)
    return min(MOST_ALIGNMENT, max(LEAST_ALIGNMENT, 1 << (size - 1).bit_length() if size else 1))


def _layout(buffers: list[ir.BlockArgument]) -> tuple[list[int], int]:
    """The first byte of each buffer, largest alignment first, and how many bytes there are together."""
    offsets, end = [0] * len(buffers), 0
    for i in sorted(range(len(buffers)), key=lambda i: -alignment(buffers[i].type)):
        step = alignment(buffers[i].type)
        offsets[i] = -(-end // step) * step
        end = offsets[i] + _bytes(buffers[i].type)
    return offsets, end


def _bytes(type_: ir.MemRefType) -> int:
    return prod(type_.shape) * element_bytes(type_.element_type)


def _space(type_: ir.MemRefType) -> int:
    space = type_.memory_space
    if space is None:
        return 0
    if isinstance(space, ir.IntegerAttr):
        return space.value
    return _SPACES[str(space).rstrip(">").split("<")[-1]]


def _integer(space: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), space)


def _flat(type_: ir.MemRefType) -> ir.MemRefType:
    return ir.MemRefType.get(type_.shape, type_.element_type, type_.layout, _integer(SPACE))


def _replace_private(argument: ir.BlockArgument, block: ir.Block) -> None:
    type_ = argument.type
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        plain = ir.MemRefType.get(type_.shape, type_.element_type, type_.layout)
        argument.replace_all_uses_with(memref.AllocaOp(plain, [], []).result)


def _global(function: ir.Operation, symbol: str, type_: ir.MemRefType, bytes_: int) -> None:
    with ir.InsertionPoint(function), function.location:
        memref.GlobalOp(symbol, type_, sym_visibility="private", initial_value=ir.UnitAttr.get(), alignment=bytes_)
