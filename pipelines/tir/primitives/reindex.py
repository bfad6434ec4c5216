"""reindex: a block accesses a buffer by its iterators, and another block does the index arithmetic."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.regions import Span
from relayc.pipelines.tir.editing import bodies, copies, moving
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import substitute, variables
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import Access
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def reindex(nest: Nest, block: str, buffer: Sequence[str | int], element: int | None = None) -> list[str]:
    """Inserts a buffer BUFFER_reindex between a block and a buffer; its dimensions are the iterators that index the buffer.

    A new block of that name copies: for a read from the original buffer, before the loops of the block; for a write to it, after them.

    Args:
      buffer: ["read", position or name] or ["write", position or name].
      element: which of the elements that the block accesses at each point, by position, if they are several.
    """
    user = find_block(nest, block)
    kind, which = copies.kind_of(buffer)
    found = bodies.find_buffer(nest, user, kind, which)
    bodies.check_plain(user)
    bodies.check_changeable([user])
    if user.scope is not None:
        raise ScheduleError(f"block {block}: expected a block of the function, found one in another block")
    label = nest.buffer_name(found)
    elements: dict[tuple, list[Access]] = {}
    for access in user.accesses():
        if access.buffer == found:
            elements.setdefault(_key(access), []).append(access)
    if len(elements) > 1 and element is None:
        raise ScheduleError(f"block {block}: expected one element of {label} at each point, found accesses of several")
    if element is not None and not 0 <= element < len(elements):
        raise ScheduleError(f"element: expected a position out of {len(elements)} elements of {label}, found {element}")
    accesses = list(elements.values())[element or 0]
    indices, used = accesses[0].indices, _used(user, accesses[0])
    if kind == "write":
        moving.check_alone(nest, user, found)
        if sorted(used) != user.parallel:
            raise ScheduleError(f"block {block}: expected that {label} is written by its parallel iterators, found those at {used}")
    beside = nest.outer_blocks()
    others = (moving.writers_of if kind == "read" else moving.readers_of)(beside, found)
    shared = [(o, loop) for o in others for loop in copies.common_loops([o, user])]
    if shared:
        other, loop = shared[0]
        raise ScheduleError(f"block {block}: expected loops without {other.name}, which uses {label} too, found both in loop {loop.name}")
    extents = [user.extents[i] for i in used]
    member = copies.member_with(user, None)

    def place(iterators: Sequence[Index]) -> list[Index]:
        point: dict[Var, Index] = {user.vars[i]: at for i, at in zip(used, iterators, strict=True)}
        return [substitute(i, point) for i in indices]

    made = nest.add_buffer(nest.free_buffer(f"{label}_reindex"), extents, found.type.element_type, before=member)
    bodies.reindex_accesses([(user, a) for a in accesses], made, lambda access: [Index.of(user.vars[i]) for i in used])
    domain = [Span(Index(), e) for e in extents]
    ends: tuple[tuple[ir.Value, copies.Place | None], tuple[ir.Value, copies.Place | None]] = ((found, place), (made, None))
    source, target = ends if kind == "read" else ends[::-1]
    name = copies.add_copy(nest, f"{label}_reindex", source, target, domain, extents, member, behind=kind == "write")
    return [name]


def _key(access: Access) -> tuple:
    """Equal for accesses of one element."""
    return tuple(index.key for index in access.indices)


def _used(block: Block, access: Access) -> list[int]:
    """The iterators that occur in the indices of an access."""
    found: set[Var] = set()
    for index in access.indices:
        found |= variables(index)
    inner = [v for v in found if v not in block.vars]
    if inner:
        raise ScheduleError(f"block {block.name}: expected indices of its iterators, found {list(access.indices)}")
    return [i for i, v in enumerate(block.vars) if v in found]
