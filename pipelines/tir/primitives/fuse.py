"""fuse: fuses perfectly nested loops into one."""

from collections.abc import Sequence
from functools import reduce
from operator import mul

from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.dependence import chain
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.indices import divide
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def fuse(nest: Nest, loops: Sequence[str]) -> list[str]:
    """Replaces perfectly nested loops by one loop over all their iterations, in the same order.

    The new loop is named A_B_fused, and is serial.
    """
    given = _given(nest, loops)
    if len(given) == 1:
        return list(loops)
    (made,) = nest.new_loops([("_".join([*loops, "fused"]), reduce(mul, [loop.extent for loop in given]))], given[0].location)
    point: dict[Var, Index] = {}
    rest = Index.of(made.var)
    for loop in given[:0:-1]:
        rest, point[loop.var] = divide(rest, loop.extent)
    point[given[0].var] = rest
    nest.replace_loops(given, [made], point)
    return [made.name]


def _given(nest: Nest, loops: Sequence[str]) -> list[Loop]:
    if not loops:
        raise ScheduleError("expected one loop or more, found none")
    found = [find_loop(nest, name) for name in loops]
    whole = chain(found[0], found[-1])
    if [loop.name for loop in whole] != list(loops):
        raise ScheduleError(f"expected loops next to each other, the outermost first, found {', '.join(loop.name for loop in whole)}")
    for loop in found:
        if loop.annotations:
            raise ScheduleError(f"expected loops without annotations, found {', '.join(loop.annotations)} of {loop.name}")
    return found
