"""fuse_iterators: fuses and reorders iterators of a block."""

from collections.abc import Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.dependence import loops_of_iterators
from relayc.pipelines.tir.editing.bodies import check_changeable, check_plain
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import Writer, divide
from relayc.pipelines.tir.tree.members import Block, ScheduleError, ValueVar
from relayc.pipelines.tir.tree.operations import operations_in
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
    with nest.building(), found.operation.location:
        new = nest.new_block(block, kinds, extents)
        for source, _, is_init in found.parts():
            target = new.add_init() if is_init else new.body
            _move(source, target, groups, found.extents, extents)
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


def _move(source: ir.Block, target: ir.Block, groups: Sequence[Sequence[int]], old: Sequence[Size], new: Sequence[Size]) -> None:
    """Moves the contents of a region into an empty one, over the new iterators."""
    found: dict[int, Index] = {}
    for group, argument, extent in zip(groups, target.arguments, new, strict=True):
        rest = Index.of(ValueVar(argument, extent, "v"))
        for i in list(group)[:0:-1]:
            rest, found[i] = divide(rest, maximum(old[i], 0))  # without iterations nothing is divided
        found |= {i: rest for i in group[:1]}
    with ir.InsertionPoint(target):
        written = Writer()
        for i, argument in enumerate(source.arguments):
            if next(iter(argument.uses), None) is not None:
                argument.replace_all_uses_with(written(found[i]) if not found[i].is_constant else emit.index_constant(found[i].const))
    for op in operations_in(source):
        target.append(op)
