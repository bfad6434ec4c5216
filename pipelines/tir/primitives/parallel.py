"""parallel: runs the iterations of a loop on the threads of the machine."""

from relayc.dialects.tir.names import Kind
from relayc.pipelines.tir.analysis.dependence import check_independent
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def parallel(nest: Nest, loop: str) -> None:
    """Makes a loop parallel; no reduction and no opaque iterator may run along it."""
    found = find_loop(nest, loop)
    check_independent(nest, found)
    found.kind = Kind.PARALLEL
    nest.changed()
