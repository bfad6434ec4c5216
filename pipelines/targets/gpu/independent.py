"""Loops over buffers whose iterations may be threads: parallel loops, and sequential loops whose iterations access disjoint elements."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relayc.dialects.discardable import DISTINCT
from relayc.dialects.mlir import ir, scf
from relayc.dialects.operations import find_operations, innermost_around, walk
from relayc.pipelines.emission import emit
from relayc.pipelines.tir.fallback.bufferize import split_parallel
from relayc.pipelines.tir.tree.indices import Reader
from relayc.symbolic import Size, ceil_div

VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.reinterpret_cast", "memref.subview", "memref.view")
"""Operations that return a view of a buffer in another shape."""
PURE = ("arith.", "math.", "affine.", "memref.dim", "memref.get_global", *VIEWS)


@dataclass(frozen=True)
class Level:
    """A loop whose iterations are threads.

    Attributes:
      variable: of the loop; low, step: its start and increment.
      count: iterations.
    """

    variable: ir.Value
    low: ir.Value
    step: ir.Value
    count: Size

    def at(self, number: ir.Value) -> ir.Value:
        """The variable in an iteration, at the ambient insertion point."""
        return emit.arith("addi", self.low, emit.arith("muli", number, self.step))


@dataclass(frozen=True)
class Threads:
    """Loops as threads, the outermost first.

    Attributes:
      body: the operations of a thread, in order.
      private: allocations that each thread needs separately.
    """

    levels: tuple[Level, ...]
    body: tuple[ir.Operation, ...]
    private: tuple[ir.Operation, ...]


def independent_threads(op: ir.Operation, reader: Reader) -> Threads | None:
    """A loop of a function as threads; None if its iterations depend on each other, or it is not a loop.

    Args:
      reader: reads sizes.

    A buffer used only in the loop contains no data at the start of an iteration: the first iteration could not read data from an earlier
    one.
    """
    if op.name == "scf.parallel":
        return _of_parallel(op, reader)
    if op.name == "scf.for":
        return _of_serial(op, reader)
    return None


def _of_parallel(op: ir.Operation, reader: Reader) -> Threads | None:
    operands = list(op.operands)
    if len(op.results):
        return None
    rank = len(operands) // 3
    block = op.regions[0].blocks[0]
    bounds = [operands[i::rank] for i in range(rank)]
    levels = [level_of(variable, b, reader) for variable, b in zip(block.arguments, bounds, strict=True)]
    known = tuple(level for level in levels if level is not None)
    return Threads(known, tuple(operations_of(op)), tuple(_allocations_in(op))) if len(known) == len(levels) else None


def _of_serial(op: ir.Operation, reader: Reader) -> Threads | None:
    levels: list[Level] = []
    body: list[ir.Operation] = []
    loop: ir.Operation | None = op
    private = _own_buffers(op)
    while loop is not None and not len(loop.results):
        block = loop.regions[0].blocks[0]
        variable = block.arguments[0]
        level = level_of(variable, list(loop.operands)[:3], reader)
        distinct = DISTINCT.on(loop)
        if level is None or not (distinct or has_own_elements(loop, variable, private)):
            break
        levels.append(level)
        inner = operations_of(loop)
        # Reads before an inner loop may be repeated in each of its iterations, if they write other buffers.
        free = (*PURE, "memref.load") if distinct and not roots_of(loop, "memref.load") & roots_of(loop, "memref.store") else PURE
        found = [o for o in inner if not o.name.startswith(free)]
        loop = found[0] if len(found) == 1 and found[0].name == "scf.for" and found[0] == inner[-1] else None
        body += inner[:-1] if loop is not None else inner
    if not levels:
        return None
    if loop is not None:
        body.append(loop)
    return Threads(tuple(levels), tuple(body), tuple(private))


def level_of(variable: ir.Value, bounds: Sequence[ir.Value], reader: Reader) -> Level | None:
    """A loop from its variable and bounds; None if these are not sizes."""
    low, _, step = bounds
    try:
        first, end, by = map(reader.size, bounds)
    except ValueError:
        return None
    return Level(variable, low, step, ceil_div(end - first, by)) if isinstance(by, int) else None


def operations_of(loop: ir.Operation) -> list[ir.Operation]:
    """The operations of a loop but its terminator."""
    return [o.operation for o in loop.regions[0].blocks[0].operations][:-1]


def _walk(op: ir.Operation) -> list[ir.Operation]:
    """The operations in an operation."""
    return find_operations(op, lambda inner: inner != op, ir.WalkOrder.PRE_ORDER)


def is_in(op: ir.Operation, outer: ir.Operation) -> bool:
    """Whether an operation is inside another one."""
    return innermost_around(op, lambda parent: parent == outer) is not None


def _allocations_in(op: ir.Operation) -> list[ir.Operation]:
    return [o for o in _walk(op) if o.name == "memref.alloc"]


def _own_buffers(loop: ir.Operation) -> list[ir.Operation]:
    """The allocations that nothing but a loop uses."""
    used = {_root(v) for o in _walk(loop) for v in o.operands if isinstance(v.type, ir.MemRefType)}
    found = [v.owner.operation for v in used if not isinstance(v.owner, ir.Block) and v.owner.operation.name == "memref.alloc"]
    return [alloc for alloc in found if all(is_in(user, loop) for user in _users(alloc.results[0]))]


def _users(value: ir.Value) -> Iterator[ir.Operation]:
    """The users of a buffer or of its views."""
    for use in value.uses:
        op = use.owner.operation
        yield op
        if op.name in VIEWS:
            yield from _users(op.results[0])


def _root(buffer: ir.Value) -> ir.Value:
    """The buffer underlying a view."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name in VIEWS:
        buffer = buffer.owner.operation.operands[0]
    return buffer


def has_own_elements(loop: ir.Operation, variable: ir.Value, private: Sequence[ir.Operation]) -> bool:
    """Whether what an iteration of a loop writes no other one reads or writes: one of the indices is the variable of the loop."""
    accesses: dict[ir.Value, list[tuple[ir.Value, list[ir.Value]]]] = {}
    written: set[ir.Value] = set()
    for op in _walk(loop):
        if op.name == "memref.load":
            buffer, *indices = op.operands
        elif op.name == "memref.store":
            _, buffer, *indices = op.operands
            written.add(_root(buffer))
        elif op.name.startswith(PURE) or op.name == "memref.alloc" or not any(isinstance(v.type, ir.MemRefType) for v in op.operands):
            continue
        else:
            return False
        accesses.setdefault(_root(buffer), []).append((buffer, indices))
    own = {op.results[0] for op in private}
    for root in written - own:
        found = accesses[root]
        first = found[0][0]
        if any(buffer != first for buffer, _ in found):
            return False
        if not any(all(indices[d] == variable for _, indices in found) for d in range(first.type.rank)):
            return False
    return True


def roots_of(loop: ir.Operation, name: str) -> set[ir.Value]:
    """The buffers that the loads, or the stores, in a loop touch, or touch views of."""
    return {_root(v) for op in _walk(loop) if op.name == name for v in op.operands if isinstance(v.type, ir.MemRefType)}


def used_by(op: ir.Operation) -> Iterator[ir.Value]:
    """The values used by an operation and the operations inside it."""
    yield from op.operands
    for inner in _walk(op):
        yield from inner.operands


def serial_loops(op: ir.Operation) -> None:
    """Makes parallel loops sequential: the operation itself and the loops inside it."""
    for loop in walk(op, scf.ParallelOp):
        split_parallel(loop, 0)


def copy_operations(operations: Sequence[ir.Operation], values: dict[ir.Value, ir.Value]) -> None:
    """Copies operations to the ambient insertion point; `values` maps operands to their replacements, and receives the results."""
    for op in operations:
        if any(r in values for r in op.results):
            continue
        made = op.clone()
        for inner in find_operations(made.operation, lambda inner: True):
            for i, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[i] = values[operand]
        values.update(zip(op.results, made.operation.results, strict=True))
