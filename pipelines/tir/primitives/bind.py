"""bind: binds the iterations of a loop to the threads of a GPU along an axis."""

from relayc.dialects.tir.block import OPAQUE, REDUCTION
from relayc.dialects.tir.names import Kind
from relayc.pipelines.tir.analysis.dependence import check_distinct, check_independent, dependences
from relayc.pipelines.tir.analysis.reducers import find_reducer
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def bind(nest: Nest, loop: str, thread: str) -> None:
    """Binds a loop to an axis of threads. A reduction by a commutative operation may run along the axes of one block (threadIdx)."""
    found = find_loop(nest, loop)
    if thread not in Kind.THREADS:
        raise ScheduleError(f"expected one of {', '.join(Kind.THREADS)}, found {thread!r}")
    if not thread.startswith("threadIdx."):
        check_independent(nest, found)
    else:
        for dependence in dependences(found):
            if dependence.has(OPAQUE, found):
                raise ScheduleError(f"expected iterations that are independent, found an opaque iterator of {dependence.block}")
            if dependence.has(REDUCTION, found) and not (reducer := find_reducer(dependence.block)).is_commutative:
                raise ScheduleError(f"expected a reduction by one commutative operation, found {reducer.text} in {dependence.block}")
        check_distinct(nest, found)
    found.kind = thread
    nest.changed()
