"""reorder: changes the order of nested loops."""

from collections.abc import Sequence

from relayc.dialects.tir.block import OPAQUE, REDUCTION
from relayc.pipelines.tir.analysis.dependence import Dependence, chain, check_once, dependences
from relayc.pipelines.tir.analysis.elements import check_elements
from relayc.pipelines.tir.analysis.reducers import adds_up, find_reducer
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def reorder(nest: Nest, loops: Sequence[str]) -> None:
    """Puts nested loops in the given order, outermost first; loops between them that are not named keep their positions."""
    given = [find_loop(nest, name) for name in loops]
    if len(set(loops)) < len(loops):
        raise ScheduleError("expected each loop once")
    if len(given) < 2:
        return
    depths = {loop.name: len(loop.around) for loop in given}
    by_depth = sorted(given, key=lambda loop: depths[loop.name])
    old = chain(by_depth[0], by_depth[-1])
    places = [i for i, loop in enumerate(old) if loop.name in depths]
    if len(places) < len(given):
        outside = next(loop.name for loop in given if loop.name not in {o.name for o in old})
        raise ScheduleError(f"expected loops inside of each other, found {outside} beside {by_depth[-1].name}")
    new = list(old)
    for place, loop in zip(places, given, strict=True):
        new[place] = loop
    for found in dependences(old[0]):
        check_elements(found.block)
        _check(found, old, new)
    if [loop.name for loop in new] != [loop.name for loop in old]:
        nest.replace_loops(old, new)


def _check(found: Dependence, old: Sequence[Loop], new: Sequence[Loop]) -> None:
    """Checks that a block may run in the new order."""
    if found.block.has_init or REDUCTION in found.block.iterators:
        check_once(found, old)
        # If a loop determines both element and step, the first step of an element is not the first iteration in any order.
        for loop in old:
            if found.has(REDUCTION, loop) and len(found.kinds(loop)) > 1:
                raise ScheduleError(f"expected loops of elements or of steps, found {loop.name}, which is both for {found.block}")
        steps, then = ([loop.name for loop in order if found.has(REDUCTION, loop) and loop.extent != 1] for order in (old, new))
        if steps != then and found.block.steps(False) is not None and not adds_up(found.block):
            find_reducer(found.block)  # otherwise the order of the steps matters
    before, after = ([loop.name for loop in order if found.has(OPAQUE, loop)] for order in (old, new))
    if before != after:
        raise ScheduleError(f"expected {', '.join(before)} in this order, which an opaque iterator of {found.block} runs along")
