"""add_unit_loop: adds a loop of one iteration around a loop or a block."""

from relayc.pipelines.tir.primitives.registry import find_member, primitive
from relayc.pipelines.tir.tree.members import Loop
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def add_unit_loop(nest: Nest, loop: str | None = None, block: str | None = None) -> list[str]:
    """Adds a loop of extent 1, named u, around a loop or a block."""
    found = find_member(nest, loop, block)
    location = found.location if isinstance(found, Loop) else found.operation.location
    (made,) = nest.new_loops([("u", 1)], location)
    nest.replace(found, made, [found])
    return [made.name]
