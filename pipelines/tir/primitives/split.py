"""split: splits a loop into nested loops."""

from collections.abc import Sequence
from math import prod

from relayc.pipelines.emission.index import Index, linearize
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.members import ScheduleError
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
