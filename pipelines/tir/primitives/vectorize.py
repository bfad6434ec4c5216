"""vectorize: maps the iterations of a loop to vector lanes."""

from relayc.dialects.tir.block import OPAQUE, REDUCTION
from relayc.dialects.tir.names import Kind
from relayc.pipelines.tir.analysis.dependence import check_distinct, dependences
from relayc.pipelines.tir.analysis.reducers import adds_up, find_reducer
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
    for dependence in dependences(found):
        block = dependence.block
        if dependence.has(OPAQUE, found):
            raise ScheduleError(f"expected iterations that are independent, found an opaque iterator of {block} that runs along it")
        if dependence.has(REDUCTION, found):
            reducer = None if adds_up(block) else find_reducer(block)
            if reducer is not None and not reducer.is_commutative:
                raise ScheduleError(f"expected a reduction by one commutative operation, found {reducer.text} in {block}")
    check_distinct(nest, found)
    found.kind = Kind.VECTORIZED
    nest.changed()
