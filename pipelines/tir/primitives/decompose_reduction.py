"""decompose_reduction: the init of a reduction becomes a separate block."""

from relayc.dialects.operations import users_of
from relayc.dialects.tir.block import REDUCTION
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.dependence import Dependence, check_once, dependence
from relayc.pipelines.tir.analysis.elements import check_elements
from relayc.pipelines.tir.editing.bodies import take_init
from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute, variables
from relayc.pipelines.tir.tree.members import ScheduleError, blocks_of
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def decompose_reduction(nest: Nest, block: str, loop: str) -> list[str]:
    """Moves the init of a block into a block NAME_init, right before a loop around it.

    The new block has its own loops, NAME_init, for the loops from `loop` inwards that determine the element. The block keeps its name.
    """
    found, top = find_block(nest, block), find_loop(nest, loop)
    described = dependence(found)
    if found.init is None:
        raise ScheduleError(f"expected a reduction that has not been decomposed, found {found} without an init")
    depth = next((i for i, around in enumerate(described.loops) if around.name == loop), None)
    if depth is None:
        raise ScheduleError(f"expected one of the loops around {found}, {', '.join(a.name for a in described.loops)}, found {loop}")
    check_elements(found)
    check_once(described, described.loops[depth:])
    _check(nest, described, depth)
    kept = [a for a in described.loops[depth:] if described.kinds(a) - {REDUCTION}]
    made = nest.new_loops([(f"{a.name}_init", a.extent) for a in kept], found.operation.location)
    # The other loops are at their start in the init.
    point: dict[Var, Index] = {a.var: Index() for a in described.loops[depth:]}
    point |= {a.var: Index.of(b.var) for a, b in zip(kept, made, strict=True)}
    parallel = [i for i, kind in enumerate(found.iterators) if kind != REDUCTION]
    points = [substitute(found.points[i], point) for i in parallel]
    guards = [Guard(substitute(g.index, point), g.limit) for g in found.guards]
    with nest.building():
        start = take_init(nest, found, nest.free_block(f"{block}_init"), parallel)
        nest.insert(start, made, points, guards, top, behind=False)
    return [start.name]


def _check(nest: Nest, described: Dependence, depth: int) -> None:
    """Checks that the init may run before the loop at this depth, for all elements that the loop computes."""
    block, loops = described.block, described.loops
    for around in loops[:depth]:
        if described.has(REDUCTION, around):
            raise ScheduleError(
                f"expected a loop around all steps, found {loops[depth].name} inside of {around.name}, along which they run"
            )
    for inside in loops[depth:]:
        kinds = described.kinds(inside)
        if REDUCTION in kinds and len(kinds) > 1:
            raise ScheduleError(f"expected loops of elements or of steps, found {inside.name}, which is both")
    assert block.init is not None  # checked before
    inner = blocks_of(block.starts)
    used = {v for b in inner for index in (*b.points, *(g.index for g in b.guards)) for v in variables(index)}
    iterators = block.iterators_in(block.init)
    if missing := [i for i in block.reduction if iterators[i] in used or users_of(block.init.arguments[i])]:
        raise ScheduleError(f"expected an init that is the same at all steps, found one that depends on iterator {missing[0]}")
    reads = {a.buffer for a in block.accesses() if a.is_init and not a.is_store}
    for other in blocks_of([loops[depth]]):
        if other.name != block.name and (shared := reads & set(other.outputs())):
            where = nest.buffer_name(next(iter(shared)))
            raise ScheduleError(f"expected an init that {loops[depth].name} changes nothing of, found one of {where}, which {other} writes")
    for other in blocks_of([loops[depth]]):
        if other.name == block.name:
            break
        if set(block.outputs()) & {*other.inputs(), *other.outputs()}:
            raise ScheduleError(f"expected {block} to be the first that uses what it writes in {loops[depth].name}, found {other}")
