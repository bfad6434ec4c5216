"""split, fuse, reorder and add_unit_loop: the extents and the order of loops."""

from collections.abc import Sequence
from math import prod

from relayc.dialects.tir.block import OPAQUE, REDUCTION
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.tir.analysis.dependence import Dependence, chain, check_once, dependences
from relayc.pipelines.tir.analysis.elements import check_elements
from relayc.pipelines.tir.analysis.reducers import adds_up, find_reducer
from relayc.pipelines.tir.primitives.registry import find_loop, find_member, primitive
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import divide
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size, ceil_div


@primitive
def split(nest: Nest, loop: str, factors: Sequence[int | None]) -> list[str]:
    """Replaces a loop by nested loops of the given extents, outermost first; one factor may be None and is inferred.

    If the factors do not divide the extent, the blocks inside get a guard. The new loops are named NAME_0, NAME_1, ... and are serial.
    """
    old = find_loop(nest, loop)
    extents = _extents(old.name, old.extent, factors)
    made = nest.new_loops([(f"{loop}_{i}", extent) for i, extent in enumerate(extents)], old.location)
    value = linearize([Index.of(m.var) for m in made], extents)
    nest.replace_loops([old], made, {old.var: value}, [Guard(value, old.extent)])
    return [m.name for m in made]


def _extents(loop: str, extent: Size, factors: Sequence[int | None]) -> list[Size]:
    """The extents of the new loops."""
    if any(f is not None and (not isinstance(f, int) or isinstance(f, bool)) for f in factors):
        raise ScheduleError(f"factors of {loop}: expected numbers and None, found {list(factors)}")
    given = [f for f in factors if f is not None]
    if not factors or len(factors) - len(given) > 1:
        raise ScheduleError(f"factors of {loop}: expected one or more, of which one at most is None, found {list(factors)}")
    if any(f < 1 for f in given):
        raise ScheduleError(f"factors of {loop}: expected numbers of 1 or more, found {list(factors)}")
    total = prod(given)
    if len(given) < len(factors):
        return [ceil_div(extent, total) if f is None else f for f in factors]
    if not isinstance(extent, int):
        raise ScheduleError(f"factors of {loop}: expected None among them, as its extent is {extent}, found {list(factors)}")
    if total < extent:
        raise ScheduleError(f"factors of {loop}: expected a product of {extent} or more, its extent, found {list(factors)}")
    return list(given)


@primitive
def fuse(nest: Nest, loops: Sequence[str]) -> list[str]:
    """Replaces perfectly nested loops by one loop over all their iterations, in the same order.

    The new loop is named A_B_fused, and is serial.
    """
    given = _given(nest, loops)
    if len(given) == 1:
        return list(loops)
    (made,) = nest.new_loops([("_".join([*loops, "fused"]), prod(loop.extent for loop in given))], given[0].location)
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


@primitive
def add_unit_loop(nest: Nest, loop: str | None = None, block: str | None = None) -> list[str]:
    """Adds a loop of extent 1, named u, around a loop or a block."""
    found = find_member(nest, loop, block)
    location = found.location if isinstance(found, Loop) else found.operation.location
    (made,) = nest.new_loops([("u", 1)], location)
    nest.replace(found, made, [found])
    return [made.name]
