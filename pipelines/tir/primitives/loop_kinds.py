"""parallel, vectorize, unroll and bind: how the iterations of a loop run."""

from relayc.dialects.tir.names import Kind
from relayc.pipelines.tir.analysis.dependence import check_independent, check_reducible
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def parallel(nest: Nest, loop: str) -> None:
    """Makes a loop parallel; no reduction and no opaque iterator may run along it."""
    found = find_loop(nest, loop)
    check_independent(nest, found)
    found.kind = Kind.PARALLEL
    nest.changed()


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


@primitive
def unroll(nest: Nest, loop: str) -> None:
    """Marks a loop of constant extent as unrolled."""
    found = find_loop(nest, loop)
    if not isinstance(found.extent, int):
        raise ScheduleError(f"expected a loop whose extent is a number, found {found.extent}")
    found.kind = Kind.UNROLLED
    nest.changed()


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
