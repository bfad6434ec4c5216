"""Launches in tir: the operation, and cooperation of the threads of a block."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.tir.values import vectors
from relayc.symbolic import Size, proves

WARP = 32
"""Threads of a warp."""

_AXES = 3
_OPERANDS = 12
"""Operand groups of gpu.launch; groups 1 to 6 are the sizes of grid and block."""


@dataclass(frozen=True)
class Launch:
    """A launch during the emission of its body.

    Attributes:
      block: number of the block along each axis of the grid.
      threads: number of the thread in its block, along each axis; `thread` is the number along x.
      shared: flat shared buffers.
    """

    block: tuple[Var, Var, Var]
    threads: tuple[Var, Var, Var]
    shared: tuple[ir.Value, ...]

    @property
    def thread(self) -> Var:
        return self.threads[0]


def shared_type(count: int, element: ir.Type) -> ir.MemRefType:
    """The type of a flat buffer in shared memory."""
    return ir.MemRefType.get([count], element, memory_space=emit.parsed("#gpu.address_space<workgroup>"))


@contextmanager
def launch(grid: Sequence[Size], threads: int | Sequence[int], shared: Sequence[tuple[int, ir.Type]] = ()) -> Iterator[Launch]:
    """Emits a gpu.launch at the ambient insertion point; the context's insertion point is in its body.

    If a size of the grid may be 0 the launch is in a host branch.

    Args:
      grid: blocks along up to three axes; none may be known to be 0.
      threads: of a block, along x, or along up to three axes.
      shared: elements and element types of the shared buffers of a block.
    """
    sizes, counts = ([*given, *[1] * (_AXES - len(given))] for given in (grid, [threads] if isinstance(threads, int) else threads))
    index = ir.IndexType.get()
    total = prod(sizes)
    if proves(lambda: total >= 1):
        place = ir.InsertionPoint.current
    else:
        branch = scf.IfOp(emit.compare("ne", emit.index_constant(total), emit.index_constant(0)))
        with ir.InsertionPoint(branch.then_block):
            emit.yield_values([])
        place = ir.InsertionPoint.at_block_begin(branch.then_block)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([int(1 <= i <= 2 * _AXES) for i in range(_OPERANDS)]),
        "workgroup_attributions": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(shared)),
    }
    operands = list(map(emit.index_constant, (*sizes, *counts)))
    made = ir.Operation.create("gpu.launch", operands=operands, attributes=attributes, regions=1, ip=place)
    body = made.regions[0].blocks.append(*[index] * (4 * _AXES), *[shared_type(*buffer) for buffer in shared])
    arguments = list(body.arguments)
    blocks, numbers = _numbers(sizes, arguments), _numbers(counts, arguments[_AXES:])
    with ir.InsertionPoint(body):
        yield Launch(blocks, numbers, tuple(arguments[4 * _AXES :]))
        emit.create("gpu.terminator", [], [])


def _numbers(sizes: Sequence[Size], arguments: Sequence[ir.Value]) -> tuple[Var, Var, Var]:
    """The numbers along the axes of a grid or a block."""
    x, y, z = (Var.below(size, value, name=axis) for size, value, axis in zip(sizes, arguments, "xyz", strict=False))
    return x, y, z


def barrier() -> None:
    """A barrier of the thread block; earlier writes are visible to all its threads afterwards."""
    emit.create("gpu.barrier", [], [])


def warp_barrier() -> None:
    """A barrier of the warp; earlier writes are visible to all its threads afterwards."""
    emit.create("nvvm.bar.warp.sync", [], [emit.number(-1, ir.IntegerType.get_signless(32))])


def shuffle(mode: str, value: ir.Value, by: int | ir.Value) -> ir.Value:
    """The value, of 32 or 64 bits, of another lane of the warp: mode "xor", "up", "down" (a distance) or "idx" (a lane)."""
    i32, i1 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(1)
    type_ = value.type
    if type_.width == 64:
        single = ir.VectorType.get([1], type_)
        words = vectors.bitcast(emit.create("vector.broadcast", [single], [value]), i32)
        moved = vectors.from_elements([shuffle(mode, vectors.extract(words, i), by) for i in range(2)])
        return vectors.extract(vectors.bitcast(moved, type_), 0)
    lane = emit.number(by, i32) if isinstance(by, int) else by
    attributes = {"mode": emit.parsed(f"#gpu<shuffle_mode {mode}>")}
    return emit.create("gpu.shuffle", [type_, i1], [value, lane, emit.number(WARP, i32)], attributes)


def reduce_lanes(value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value], lanes: int = WARP) -> ir.Value:
    """A value combined over `lanes` neighbouring lanes (a power of two); each of these lanes has the result."""
    distance = lanes // 2
    while distance:
        value = combine(value, shuffle("xor", value, distance))
        distance //= 2
    return value
