"""Which block and which thread runs: operations that ask for it, and the values that answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from relayc.dialects.mlir import gpu, ir
from relayc.pipelines.tir import emit

WARP = 32
"""Threads of a warp."""
_AXES = "xyz"


@dataclass(frozen=True)
class Position:
    """Where a thread is: values of type index, each for x, y and z.

    Attributes:
      grid, block: the sizes of the grid, in blocks, and of a block, in threads.
      block_id, thread_id: the numbers of the block in the grid and of the thread in the block.
      linear: the number of the thread in its block, x fastest.
    """

    grid: Sequence[ir.Value]
    block: Sequence[ir.Value]
    block_id: Sequence[ir.Value]
    thread_id: Sequence[ir.Value]
    linear: ir.Value


def linear_thread(block: Sequence[ir.Value], thread_id: Sequence[ir.Value]) -> ir.Value:
    """The number of a thread in its block."""
    rows = emit.arith("addi", emit.arith("muli", thread_id[2], block[1]), thread_id[1])
    return emit.arith("addi", emit.arith("muli", rows, block[0]), thread_id[0])


@contextmanager
def each_block(grid: Sequence[ir.Value]) -> Iterator[list[ir.Value]]:
    """An scf.parallel over the blocks of a grid, whose body is the insertion point; gives the number of the block, for x, y and z."""
    index = ir.IndexType.get()
    rows = emit.arith("muli", grid[0], grid[1])
    bounds = [emit.index_constant(0), emit.arith("muli", rows, grid[2]), emit.index_constant(1)]
    segments = ir.DenseI32ArrayAttr.get([1, 1, 1, 0])
    loop = ir.Operation.create("scf.parallel", results=[], operands=bounds, attributes={"operandSegmentSizes": segments}, regions=1)
    body = loop.regions[0].blocks.append(index)
    with ir.InsertionPoint(body):
        (block,) = body.arguments
        row = emit.arith("divui", block, grid[0])
        yield [emit.arith("remui", block, grid[0]), emit.arith("remui", row, grid[1]), emit.arith("divui", row, grid[1])]
        ir.Operation.create("scf.reduce", results=[], operands=[])


def _warps(position: Position) -> ir.Value:
    threads = emit.arith("muli", emit.arith("muli", position.block[0], position.block[1]), position.block[2])
    return emit.arith("ceildivui", threads, emit.index_constant(WARP))


def _global_id(position: Position, axis: int) -> ir.Value:
    return emit.arith("addi", emit.arith("muli", position.block_id[axis], position.block[axis]), position.thread_id[axis])


def _lane(position: Position) -> ir.Value:
    return emit.arith("remui", position.linear, emit.index_constant(WARP))


def _warp(position: Position) -> ir.Value:
    return emit.arith("divui", position.linear, emit.index_constant(WARP))


_OF_AXIS: Mapping[str, Callable[[Position, int], ir.Value]] = {
    "gpu.thread_id": lambda position, axis: position.thread_id[axis],
    "gpu.block_id": lambda position, axis: position.block_id[axis],
    "gpu.block_dim": lambda position, axis: position.block[axis],
    "gpu.grid_dim": lambda position, axis: position.grid[axis],
    "gpu.global_id": _global_id,
}
_OTHERS: Mapping[str, Callable[[Position], ir.Value]] = {
    "gpu.lane_id": _lane,
    "gpu.subgroup_id": _warp,
    "gpu.num_subgroups": _warps,
    "gpu.subgroup_size": lambda position: emit.index_constant(WARP),
    "nvvm.read.ptx.sreg.laneid": _lane,
    "nvvm.read.ptx.sreg.warpid": _warp,
    "nvvm.read.ptx.sreg.warpsize": lambda position: emit.index_constant(WARP),
}
_REGISTERS = {"tid": "gpu.thread_id", "ctaid": "gpu.block_id", "ntid": "gpu.block_dim", "nctaid": "gpu.grid_dim"}
_SPECIAL_REGISTER = "nvvm.read.ptx.sreg."


def answer(op: ir.Operation, position: Position) -> ir.Value | None:
    """What an operation gives that asks where a thread is, emitted at the insertion point; None for any other operation."""
    name = op.name
    value = None
    if name in _OTHERS:
        value = _OTHERS[name](position)
    elif name in _OF_AXIS:
        value = _OF_AXIS[name](position, gpu.Dimension[_axis(op)].value)
    elif name.startswith(_SPECIAL_REGISTER):
        register, _, axis = name.removeprefix(_SPECIAL_REGISTER).partition(".")
        if register in _REGISTERS and axis in _AXES:
            value = _OF_AXIS[_REGISTERS[register]](position, _AXES.index(axis))
    if value is None or value.type == op.results[0].type:
        return value
    return emit.create("arith.index_cast", [op.results[0].type], [value])


def _axis(op: ir.Operation) -> str:
    return str(op.attributes["dimension"]).rstrip(">").split()[-1]
