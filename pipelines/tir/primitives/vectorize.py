"""vectorize: maps the iterations of a loop to vector lanes."""

from relayc.dialects.tir.names import Kind
from relayc.pipelines.tir.analysis.dependence import check_reducible
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def vectorize(nest: Nest, loop: str) -> None:
    """Marks a loop of constant extent as vectorized. A reduction along it must use one commutative operation; lanes are combined at its
    end."""
    found = find_loop(nest, loop)
    if not isinstance(found.extent, int):
        raise ScheduleError(f"expected a loop whose extent is a number, found {found.extent}")
    inside = [d for d in nest.loops().values() if d.kind == Kind.VECTORIZED and d.name != loop]
    around = {d.name for d in found.around}
    for other in inside:
        if other.name in around or loop in {d.name for d in other.around}:
            raise ScheduleError(f"expected one vectorized loop around a block, found {other.name} too")
    check_reducible(nest, found)
    found.kind = Kind.VECTORIZED
    nest.changed()
