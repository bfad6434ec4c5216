"""add_unit_loop: adds a loop of one iteration around a loop or a block."""

from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def add_unit_loop(nest: Nest, loop: str | None = None, block: str | None = None) -> list[str]:
    """Adds a loop of extent 1, named u, around a loop or a block."""
    if (loop is None) == (block is None):
        raise ScheduleError(f"expected a loop or a block, found {loop} and {block}")
    found = find_loop(nest, loop) if loop is not None else find_block(nest, str(block))
    location = found.location if isinstance(found, Loop) else found.operation.location
    (made,) = nest.new_loops([("u", 1)], location)
    nest.replace(found, made, [found])
    return [made.name]
