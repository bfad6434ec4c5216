"""bind: binds the iterations of a loop to the threads of a GPU along an axis."""

from relayc.dialects.tir.names import Kind
from relayc.pipelines.tir.analysis.dependence import check_independent, check_reducible
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def bind(nest: Nest, loop: str, thread: str) -> None:
    """Binds a loop to an axis of threads. A reduction by a commutative operation may run along the axes of one block (threadIdx)."""
    found = find_loop(nest, loop)
    if thread not in Kind.THREADS:
        raise ScheduleError(f"expected one of {', '.join(Kind.THREADS)}, found {thread!r}")
    check = check_reducible if thread.startswith("threadIdx.") else check_independent
    check(nest, found)
    found.kind = thread
    nest.changed()
