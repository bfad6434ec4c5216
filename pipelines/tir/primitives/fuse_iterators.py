"""fuse_iterators: fuses and reorders iterators of a block."""

from collections.abc import Sequence
from functools import partial
from math import prod

from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.dependence import loops_of_iterators
from relayc.pipelines.tir.editing.bodies import check_changeable, check_plain
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import divide
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import Copy, Recorder
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size, maximum


@primitive
def fuse_iterators(nest: Nest, block: str, groups: Sequence[Sequence[int]]) -> list[str]:
    """Replaces the iterators of a block by one for each group of old ones, given by position, the outermost of a group first.

    An empty group gives an iterator of extent 1. The block gets one loop for each group, named after the loops of its iterators.
    """
    found = find_block(nest, block)
    check_plain(found)
    check_changeable([found])
    loops = loops_of_iterators(found)
    if sorted(i for group in groups for i in group) != list(range(len(found.iterators))):
        raise ScheduleError(f"groups: expected each of the {len(found.iterators)} iterators of {found} once, found {list(groups)}")
    kinds = [_kind(found, group) for group in groups]
    extents: list[Size] = [prod(found.extents[i] for i in group) for group in groups]
    names = [_name([loop.name for i in group if (loop := loops[i]) is not None]) for group in groups]
    body, init = (partial(_copy, found, groups, is_init) for is_init in (False, True))
    with found.operation.location:
        new = nest.new_block(block, kinds, extents, body, init if found.has_init else None)
        made = nest.rebuild(found, new, list(zip(names, extents, strict=True)))
    return [loop.name for loop in made]


def _name(loops: Sequence[str]) -> str:
    """The name of a loop that replaces others."""
    return "_".join([*loops, "fused"]) if len(loops) > 1 else loops[0] if loops else "unit"


def _kind(block: Block, group: Sequence[int]) -> str:
    kinds = {block.iterators[i] for i in group} or {"parallel"}
    if len(kinds) > 1:
        raise ScheduleError(f"groups: expected iterators of one kind in each, found {', '.join(sorted(kinds))} of {block} in {list(group)}")
    return kinds.pop()


def _copy(block: Block, groups: Sequence[Sequence[int]], is_init: bool, record: Recorder, point: Sequence[Index]) -> None:
    """Records the steps of a block over the new iterators."""
    found: dict[Var, Index] = {}
    for group, rest in zip(groups, point, strict=True):
        for i in list(group)[:0:-1]:
            rest, found[block.vars[i]] = divide(rest, maximum(block.extents[i], 0))  # without iterations nothing is divided
        found |= {block.vars[i]: rest for i in group[:1]}
    Copy(record, found).run(block.steps(is_init) or ())
