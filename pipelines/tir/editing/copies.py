"""Blocks that copy a region of a buffer to another buffer."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import PARALLEL, make_block
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.regions import Span, iterators_of
from relayc.pipelines.tir.editing import moving
from relayc.pipelines.tir.tree.buffers import make_buffer
from relayc.pipelines.tir.tree.indices import write
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.tree.views import Block, Loop, ScheduleError
from relayc.symbolic import Size

Place: TypeAlias = Callable[[Sequence[Index]], Sequence[Index]]
"""Computes the indices of an element from the iterators of a block."""


def common_loops(nest: Nest, blocks: Sequence[Block]) -> list[Loop]:
    """The loops common to several blocks, outermost first."""
    chains = [nest.loops_around(b.operation) for b in blocks]
    found = []
    for level in zip(*chains, strict=False):
        if any(loop.name != level[0].name for loop in level):
            break
        found.append(level[0])
    return found


def loop_between(nest: Nest, ends: Sequence[Block], blocks: Sequence[Block]) -> Loop | None:
    """The innermost loop around all the blocks and one of `ends`, their producers or consumers."""
    around = max((common_loops(nest, [end, *blocks]) for end in ends), key=len, default=[])
    return around[-1] if around else None


def kind_of(buffer: Sequence[str | int]) -> tuple[str, str | int]:
    """Parses ["read", 0] or ["write", "C"]. Raises ScheduleError."""
    if len(buffer) != 2 or buffer[0] not in ("read", "write"):
        raise ScheduleError(f'buffer: expected ["read", position or name] or ["write", position or name], found {list(buffer)}')
    return str(buffer[0]), buffer[1]


def still_in_scope(nest: Nest, scope: ir.Operation | None) -> set[Var]:
    """The variables that are fixed in a block: its iterators; none in a function."""
    return set() if scope is None else set(iterators_of(nest, scope))


def outermost(nest: Nest, block: Block, candidates: Sequence[Block]) -> str | None:
    """The name of the candidate that is, or contains, a block."""
    return next((c.name for c in candidates if moving.contains(c.operation, block.operation)), None)


def member_with(scope: ir.Operation, loop: Loop | None, block: Block) -> ir.Operation:
    """The outermost loop or block around a block inside a loop; for None inside the block or function `scope`."""
    found = block.operation
    end = scope if loop is None else loop.operation
    while found.parent.operation != end:
        found = found.parent.operation
    return found


def add_buffer(nest: Nest, name: str, shape: Sequence[Size], element: ir.Type, scope: str, before: ir.Operation) -> ir.Value:
    """Creates an allocation before the top-level loop or block that contains `before`."""
    top = next(op for op in nest.at_root() if moving.contains(op, before))
    with ir.InsertionPoint(moving.start_of(top)), top.location:
        return make_buffer(nest.free_buffer(name), shape, element, scope)


def add_copy(
    nest: Nest,
    name: str,
    source: tuple[ir.Value, Place | None],
    target: tuple[ir.Value, Place | None],
    domain: Sequence[Span],
    extents: Sequence[Size],
    spot: moving.Spot,
) -> str:
    """Adds a block that copies elements, in loops over a domain at a spot; returns its name.

    Args:
      source, target: a buffer, and the function from the iterators of the block to the element's indices (None: identity).
      extents: of the iteration space of the block.
    """
    with nest.function.operation.location:
        label = nest.free_block(name)
        with spot.point():
            starts = [emit.index_constant(0)] * len(extents)
            made = make_block(label, [PARALLEL] * len(extents), extents, starts)
        block = nest.block_view(made)
        iterators = [Index.of(v) for v in block.vars]
        with ir.InsertionPoint(block.body):
            read, written = [list(map(write, place(iterators) if place is not None else iterators)) for _, place in (source, target)]
            loaded = emit.create("memref.load", [source[0].type.element_type], [source[0], *read])
            emit.create("memref.store", [], [loaded, target[0], *written])
        moving.rebind(nest, block, domain, spot)
    return label
