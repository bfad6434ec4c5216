"""Moves of blocks that primitives share: blocks of a scope, legal positions, and blocks in new loops."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import OPAQUE
from relayc.pipelines.emission.index import Index, Var, of_terms
from relayc.pipelines.tir.analysis.elements import check_elements
from relayc.pipelines.tir.analysis.regions import Span, quotient_of
from relayc.pipelines.tir.tree.buffers import SCOPES
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import QUOTIENT, Divided
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError, blocks_of
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import exact

ZERO = Index()


def names_of(blocks: Sequence[Block]) -> str:
    """Names of blocks, for a message."""
    return ", ".join(b.name for b in blocks) or "none"


def blocks_beside(nest: Nest, view: Loop | Block) -> list[Block]:
    """The outermost blocks of the same scope as a block or loop: of the function, or of the enclosing block."""
    if view.scope is None:
        return nest.outer_blocks()
    return blocks_of([*view.scope.starts, *view.scope.inside])


def members_with(loop: Loop, blocks: Sequence[Block]) -> list[Loop | Block]:
    """The direct members of a loop that are, or contain, some of the blocks, in order."""
    named = {b.name for b in blocks}
    return [m for m in loop.inside if isinstance(m, (Loop, Block)) and any(b.name in named for b in blocks_of([m]))]


def readers_of(blocks: Sequence[Block], buffer: ir.Value) -> list[Block]:
    """The blocks that read a buffer and do not write it."""
    return [b for b in blocks if buffer in b.inputs()]


def writers_of(blocks: Sequence[Block], buffer: ir.Value) -> list[Block]:
    """The blocks that write a buffer."""
    return [b for b in blocks if b.stores_to(buffer)]


def check_only_writer(nest: Nest, block: Block) -> None:
    """Raises ScheduleError unless a block is the only writer of its outputs, and has no opaque iterators."""
    if OPAQUE in block.iterators:
        raise ScheduleError(f"block {block.name}: expected parallel and reduction iterators, found {', '.join(block.iterators)}")
    check_elements(block)
    for buffer in block.outputs():
        check_alone(nest, block, buffer)
        if not block.has_init and any(a.buffer == buffer for a in block.loads()):
            raise ScheduleError(
                f"block {block.name}: expected it not to add to {nest.buffer_name(buffer)} without a start, found that it reads it"
            )


def check_alone(nest: Nest, block: Block, buffer: ir.Value) -> None:
    """Raises ScheduleError if another block also writes a buffer."""
    around = block.scope
    if around is not None:
        # A nested block sees only the buffers of its scope.
        users = [b for b in nest.outer_blocks() if any(a.buffer == buffer for a in b.accesses()) and not contains(b, around)]
        if users or isinstance(buffer.owner, ir.Block):
            raise ScheduleError(f"block {block.name}: expected a buffer of the block around it alone, found {nest.buffer_name(buffer)}")
    others = [b for b in writers_of(blocks_beside(nest, block), buffer) if b.name != block.name]
    if others:
        raise ScheduleError(
            f"block {block.name}: expected it to be the only one that writes {nest.buffer_name(buffer)}, found also {names_of(others)}"
        )


def check_inputs_stay(nest: Nest, block: Block) -> None:
    """Raises ScheduleError if an input of a block is overwritten after it, so that it cannot be computed later."""
    order = list(nest.blocks())
    beside = blocks_beside(nest, block)
    for buffer in block.inputs():
        late = [b for b in writers_of(beside, buffer) if order.index(b.name) > order.index(block.name)]
        if late:
            raise ScheduleError(
                f"block {block.name}: expected that what it reads stays as it is, found that {names_of(late)} writes "
                f"{nest.buffer_name(buffer)} after it"
            )


def check_scope(scope: str) -> None:
    """Raises ScheduleError for an unknown memory scope."""
    if scope not in SCOPES:
        raise ScheduleError(f"storage_scope: expected one of {', '.join(SCOPES)}, found {scope!r}")


def check_intermediate(nest: Nest, block: Block) -> None:
    """Raises ScheduleError if a block writes an argument of the function."""
    for buffer in block.outputs():
        if isinstance(buffer.owner, ir.Block):
            raise ScheduleError(f"block {block.name}: expected no output of @{nest.name}, found that it writes {nest.buffer_name(buffer)}")


def check_same_scope(block: Block, loop: Loop) -> None:
    """Raises ScheduleError if a block is already under a loop, or one of them is in another block."""
    if any(around.name == loop.name for around in block.around):
        raise ScheduleError(f"block {block.name}: expected a loop that is not around it, found {loop.name}")
    if block.scope is not loop.scope:
        raise ScheduleError(f"block {block.name}: expected a loop of the same scope, found {loop.name}, which is in another block")


def contains(outer: Loop | Block, block: Block) -> bool:
    """Whether a loop or block contains a block, or is the block."""
    found: Block | None = block
    while found is not None and found is not outer and outer not in found.around:
        found = found.scope
    return found is not None


def place(
    nest: Nest,
    block: Block,
    domain: Sequence[Span],
    beside: Loop | Block,
    behind: bool,
    keep_unit: bool = False,
    guards: Sequence[Guard] = (),
) -> list[Loop]:
    """Places a block in new loops over a domain, a span for each iterator, before or behind a loop or block.

    The block has the given guards, and is guarded if the domain may exceed its extents. The new loops are named ax and the number of the
    iterator; an iterator with a single value has none, unless `keep_unit`.
    """
    kept = [i for i, found in enumerate(domain) if found.extent != 1 or keep_unit]
    made = nest.new_loops([(f"ax{i}", domain[i].extent) for i in kept], block.operation.location)
    points = [found.low for found in domain]
    for i, loop in zip(kept, made, strict=True):
        points[i] += loop.var
    own = [Guard(p, e) for p, e in zip(points, block.extents, strict=True)]
    nest.insert(block, made, points, [*own, *guards], beside, behind)
    return made


def values_within(index: Index, found: Span, var: Var) -> Span | None:
    """The values of an iterator for which an index of a buffer is in a span; None if they are not a span.

    It is exact if the index is in the span for all of them, for any values of the other iterators.
    """
    if isinstance(only := next(iter(index.terms), None), Divided) and len(index.terms) == 1 and only.kind == QUOTIENT:
        if index.terms[only] == 1 and only.index.terms == {var: 1}:
            low = (found.low - index.const) * only.divisor - only.index.const
            return Span(low, found.extent * only.divisor, found.exact)
        return None
    factor = index.terms.get(var)
    if factor is None:
        return None
    if len(index.terms) == 1 and factor == 1:
        return Span(found.low - index.const, found.extent, found.exact)
    rest = of_terms(index.const, {v: c for v, c in index.terms.items() if v != var})
    shifted = rest - index.const
    if not shifted.is_within(0, factor - 1):
        return None
    base = Span(found.low - index.const, found.extent, found.exact)
    divides = all(exact(c, factor) is not None for c in (base.low.const, base.extent, *base.low.terms.values()))
    made = quotient_of(base, factor)
    return Span(made.low, made.extent, made.exact and divides)
