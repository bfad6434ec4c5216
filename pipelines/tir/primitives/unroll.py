"""unroll: unrolls a loop."""

from relayc.dialects.tir.names import Kind
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def unroll(nest: Nest, loop: str) -> None:
    """Marks a loop of constant extent as unrolled."""
    found = find_loop(nest, loop)
    if not isinstance(found.extent, int):
        raise ScheduleError(f"expected a loop whose extent is a number, found {found.extent}")
    found.kind = Kind.UNROLLED
    nest.changed()
