"""Software pipelined loops: copies to shared memory run ahead for later iterations, into a ring of buffers.

The annotations are TVM's: "software_pipeline_stage" gives for each part of a loop the number of iterations by which it follows the newest
iteration, "software_pipeline_async_stages" the stages that are asynchronous copies. Iteration `i` runs stage 0 for iteration i + n and
stage n for iteration i: one barrier per iteration ensures that a copy is visible to all threads and that the buffer of the next copy is
free.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission.index import Var
from relayc.pipelines.tir.lower.boxes import TENSOR_COPY, BoxCopy
from relayc.pipelines.tir.lower.storage import Use, outer_and_bounds
from relayc.pipelines.tir.lower.tree import LoopNode, Node, loops_in, uses_in
from relayc.pipelines.tir.tree.arguments import decode
from relayc.pipelines.tir.tree.members import Loop, Member, ScheduleError
from relayc.pipelines.tir.tree.steps import Access
from relayc.symbolic import proves

STAGES, ASYNCHRONOUS = "software_pipeline_stage", "software_pipeline_async_stages"
"""Annotations of a loop."""
THROUGH_REGISTERS = "software_pipeline_registers"
"""Annotation of a block in an asynchronous stage whose values go through registers instead."""


class Pipelined(LoopNode):
    """A software pipelined loop.

    Attributes:
      ahead: the number of iterations by which copies run ahead.
      copies: the parts that run ahead; rest: the other parts.
      buffers: the buffers that the copies write; each becomes a ring of `ahead` + 1 buffers.
      is_asynchronous: whether threads wait for copies only at the barrier. Copies through registers are loaded before an iteration
        computes, and stored after.
      boxes: the copies that are copies of boxes.
    """

    def __init__(
        self, loop: Loop, copies: Sequence[Node], rest: Sequence[Node], ahead: int, buffers: frozenset[ir.Value], is_asynchronous: bool
    ) -> None:
        super().__init__(loop, (*copies, *rest))
        self.copies, self.rest, self.ahead, self.buffers, self.is_asynchronous = copies, rest, ahead, buffers, is_asynchronous
        self.boxes = tuple(node for node in copies if isinstance(node, BoxCopy))

    def copies_by(self, asynchronous: bool) -> list[Node]:
        """The copies by asynchronous instructions, or those through registers."""
        return [node for node in self.copies if (self.is_asynchronous and not _is_through_registers(node)) == asynchronous]


def pipelined(loop: Loop, inside: Sequence[Node], scope: Callable[[ir.Value], str]) -> Pipelined | None:
    """The software pipelined loop of a loop and its contents; None if it has no such annotation. Raises ScheduleError."""
    stages = _numbers(loop, STAGES)
    if stages is None or (loop.extent == 1 and not list(loops_in(inside, BoxCopy))):
        return None
    where = f"loop {loop.name}: annotation {STAGES}"
    if loop.kind != Kind.SERIAL:
        raise ScheduleError(f"{where}: expected a serial loop, found one that is {loop.kind}")
    if len(stages) != len(loop.inside):
        raise ScheduleError(f"{where}: expected a number for each of the {len(loop.inside)} parts of the loop, found {stages}")
    ahead = max(stages)
    if ahead < 1 or set(stages) != {0, ahead}:
        raise ScheduleError(f"{where}: expected 0 for copies that run ahead and one number, 1 or more, for all else, found {stages}")
    asynchronous = _numbers(loop, ASYNCHRONOUS) or []
    if asynchronous not in ([], [0]):
        raise ScheduleError(f"loop {loop.name}: annotation {ASYNCHRONOUS}: expected [0], the stage of copies, found {asynchronous}")
    stage_of = {name: stage for part, stage in zip(loop.inside, stages, strict=True) for name in _blocks(part)}
    copies = [node for node in inside if stage_of[_first(node).block.name] == 0]
    rest = [node for node in inside if stage_of[_first(node).block.name] != 0]
    boxes = [node for node in copies if isinstance(node, BoxCopy)]
    if boxes and len(boxes) < len(copies):
        raise ScheduleError(f"{where}: expected copies all of which are of boxes ({TENSOR_COPY}), or none, found both")
    read, written = ({a.buffer for use in uses_in(rest) for a in use.accesses if a.is_store == stores} for stores in (False, True))
    buffers: dict[ir.Value, None] = {}
    for use in uses_in(copies):
        for a in use.accesses:
            reason = _obstacle(a, scope(a.buffer), a.buffer in read, a.buffer in written)
            if reason is not None:
                raise ScheduleError(
                    f"{where}: expected copies to shared buffers that the rest only reads, found {use.block}, which {reason}"
                )
            if a.is_store:
                buffers[a.buffer] = None
    return Pipelined(loop, copies, rest, ahead, frozenset(buffers), bool(asynchronous) and not boxes)


def _obstacle(access: Access, scope: str, is_read: bool, is_written: bool) -> str | None:
    """Why an access is not allowed in a copy that runs ahead, given whether the rest of the loop reads and writes its buffer."""
    if not access.is_store:
        return "reads what that writes" if is_written else None
    if scope != "shared":
        return f"writes a {scope} one"
    return "writes one that is written there too" if is_written else None if is_read else "writes one that is not read there"


def unfinished_in(node: Pipelined) -> list[Use]:
    """The asynchronous tensor intrinsics in a loop whose results nothing else in the loop uses: it suffices to wait for them in the next
    iteration, and after the loop."""
    found, others = list[Use](), list[Use]()
    for use in uses_in(node.rest):
        begins = use.tensor is not None and use.tensor.intrin.asynchronous is not None and not use.is_start
        (found if begins else others).append(use)
    used = {a.buffer for use in others for a in use.accesses}
    return found if used.isdisjoint(a.buffer for use in found for a in use.accesses if a.is_store) else []


def check_pipelines(nodes: Sequence[Node], uses: Sequence[Use], labels: Mapping[ir.Value, str]) -> None:
    """Checks that data copied ahead is read only in the iteration for which it is copied, and that copies of boxes run ahead.

    Args:
      uses: of the whole launch.

    Raises ScheduleError, which names the loop and the buffer.
    """
    ahead = {box for node in loops_in(nodes, Pipelined) for box in node.boxes}
    for box in loops_in(nodes, BoxCopy):
        if box not in ahead:
            raise ScheduleError(
                f"loop {box.loop.name}: annotation {TENSOR_COPY}: expected it in stage 0 of a loop with the annotation {STAGES}, found "
                f"{box.use.block} in none"
            )
    for node in loops_in(nodes, Pipelined):
        for buffer in node.buffers:
            accesses = [(use, a) for use in uses for a in use.accesses if a.buffer == buffer]
            where = f"loop {node.loop.name}: annotation {STAGES}: buffer {labels[buffer]}"
            outside = next((use for use, _ in accesses if use not in node.uses), None)
            if outside is not None:
                raise ScheduleError(f"{where}: expected it in the loop alone, found {outside.block} outside")
            for use, load in accesses:
                if not load.is_store and not any(_covers(node, other, a, use, load) for other, a in accesses if a.is_store):
                    raise ScheduleError(
                        f"{where}: expected that {use.block} reads what is copied in the same iteration, found other elements"
                    )


def _covers(node: Pipelined, writer: Use, store: Access, reader: Use, load: Access) -> bool:
    """Whether an iteration of a loop stores all elements that it loads."""
    names = [loop.name for loop in writer.loops]
    outside: set[Var] = {loop.var for loop in writer.loops[: names.index(node.loop.name) + 1] if not loop.kind.startswith("threadIdx.")}
    for stored, loaded in zip(writer.indices(store), reader.indices(load), strict=True):
        (one, (low, high)), (other, (first, last)) = outer_and_bounds(stored, outside), outer_and_bounds(loaded, outside)
        if one.key != other.key or not proves(lambda: low <= first and last <= high):  # noqa: B023
            return False
    return True


def _numbers(loop: Loop, key: str) -> list[int] | None:
    """The numbers in an annotation; None without it. Raises ScheduleError."""
    if key not in loop.annotations:
        return None
    found = decode(loop.annotations[key], lambda name: name)
    if not isinstance(found, list) or any(type(v) is not int or v < 0 for v in found):
        raise ScheduleError(f"loop {loop.name}: annotation {key}: expected a list of numbers from 0 on, found {found}")
    return found


def _blocks(member: Member) -> Iterator[str]:
    """The names of the blocks in a part of a loop."""
    if not isinstance(member, Loop):
        yield member.name
    for inner in member.inside:
        yield from _blocks(inner)


def _is_through_registers(node: Node) -> bool:
    return any(THROUGH_REGISTERS in use.block.annotations for use in uses_in([node]))


def _first(node: Node) -> Use:
    return node.uses[0] if isinstance(node, LoopNode) else node
