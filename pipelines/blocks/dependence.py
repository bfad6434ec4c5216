"""How the blocks in loops depend on them: what must be known before loops change their order or run at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from relayc.dialects.tir.block import OPAQUE, REDUCTION
from relayc.pipelines.blocks.indices import variables
from relayc.pipelines.blocks.structure import Nest
from relayc.pipelines.blocks.views import Block, Loop, Member, ScheduleError
from relayc.pipelines.kernel.index import Index, Var


@dataclass(frozen=True)
class Dependence:
    """Which loops the iterators of a block depend on.

    Attributes:
      loops: around the block, outermost first.
      of_iterators: the variables of each iterator's point.
    """

    block: Block
    loops: Sequence[Loop]
    of_iterators: Sequence[frozenset[Var]]

    def kinds(self, loop: Loop) -> set[str]:
        """The kinds of the iterators that depend on a loop."""
        return {kind for kind, found in zip(self.block.iterators, self.of_iterators, strict=True) if loop.var in found}

    def has(self, kind: str, loop: Loop) -> bool:
        """Whether an iterator of a kind depends on a loop."""
        return kind in self.kinds(loop)


def dependence(nest: Nest, block: Block) -> Dependence:
    """Which loops the iterators of a block depend on."""

    def make() -> Dependence:
        loops = nest.loops_around(block)
        return Dependence(block, loops, [frozenset(variables(p)) for p in block.points(loops)])

    return nest.remembered(("dependence", block.name), make)


def dependences(nest: Nest, loop: Loop) -> list[Dependence]:
    """Those of the outermost blocks in a loop."""
    return [dependence(nest, block) for block in nest.blocks_in(loop)]


def check_independent(nest: Nest, loop: Loop) -> None:
    """That the iterations of a loop may run in any order, and at once. Raises ScheduleError, which names the block that is against it."""
    for found in dependences(nest, loop):
        for kind in (REDUCTION, OPAQUE):
            if found.has(kind, loop):
                raise _dependent(found.block, kind)
        check_written_once(nest, loop, found)


def check_parallel(nest: Nest, loop: Loop) -> None:
    """As `check_independent`, for a loop that is parallel: iterators in an order are the business of who wrote them."""
    for found in dependences(nest, loop):
        if found.has(REDUCTION, loop):
            raise _dependent(found.block, REDUCTION)
        check_written_once(nest, loop, found)


def check_written_once(nest: Nest, loop: Loop, found: Dependence) -> None:
    """That iterations of a loop which all compute the same write to no memory that outlives the loop. Raises ScheduleError."""
    if found.kinds(loop) or loop.extent == 1:
        return
    inside = {b.name for b in nest.blocks_in(loop)}
    for buffer in found.block.outputs():
        users = [b.name for b in nest.outer_blocks() if b.name not in inside and buffer in (*b.inputs(), *b.outputs())]
        if nest.is_output(buffer) or users:
            where = nest.buffer_name(buffer)
            raise ScheduleError(f"expected iterations that are independent, found {found.block}, which writes the same of {where} in each")


def _dependent(block: Block, kind: str) -> ScheduleError:
    return ScheduleError(f"expected iterations that are independent, found {_iterator(kind)} of {block} that runs along it")


def _iterator(kind: str) -> str:
    return "a reduction" if kind == REDUCTION else "an opaque iterator"


def chain(nest: Nest, outer: Loop, inner: Loop) -> list[Loop]:
    """The loops from one to another inside of it, each of which holds nothing but the next. Raises ScheduleError."""
    around = nest.loops_around(inner)
    position = next((i for i, found in enumerate(around) if found.name == outer.name), None)
    if position is None:
        raise ScheduleError(f"expected loops inside of each other, found {inner.name} outside of {outer.name}")
    found = [*around[position:], inner]
    for loop, following in pairwise(found):
        if len(members := nest.inside(loop)) != 1 or members[0] is not following:
            raise ScheduleError(f"expected {loop.name} to hold one loop alone, found {_described(members)}")
    return found


def _described(members: Sequence[Member]) -> str:
    return " and ".join(
        f"loop {m.name}" if isinstance(m, Loop) else f"block {m.name}" if isinstance(m, Block) else "a buffer" for m in members
    )


def loops_of_iterators(nest: Nest, block: Block) -> list[Loop | None]:
    """The loops around a block that has one for each iterator, and no others, and is alone in them; in the order of the iterators, of
    which those of one value may have none.

    Raises ScheduleError.
    """
    loops = nest.loops_around(block)
    by_key = {Index.of(loop.var).key: loop for loop in loops}
    found = [by_key.get(p.key) for p in block.points(loops)]
    missing = any(loop is None and extent != 1 for loop, extent in zip(found, block.extents, strict=True))
    if missing or len({loop.name for loop in found if loop is not None}) < len(loops) or block.guards(loops):
        raise ScheduleError(f"expected a loop for each iterator of {block}, and no other, found others")
    if loops:
        if len(loops) > 1:
            chain(nest, loops[0], loops[-1])
        if len(loops[-1].inside) != 1:
            raise ScheduleError(f"expected {block} alone in {loops[-1].name}, found others")
    return found
