"""Loops that are bound to threads of a GPU: each loop nest of a function becomes one launch.

All loops of a nest that are bound to one axis become this axis, which encloses the whole launch: their contents use the number of the
thread instead of the loop variable, with a guard if the axis has more threads than the loop has iterations. A block that does not depend on
an axis is computed by every thread along it if it writes buffers private to a thread, otherwise by the first thread.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.lower.boxes import TENSOR_COPY, BoxCopy, is_box
from relayc.pipelines.tir.lower.fragments import GROUPS, LANES, SCOPES
from relayc.pipelines.tir.lower.pipelines import pipelined
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.tree import LoopNode, Node, loops_in, uses_in
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute, variables
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.symbolic import exact

BLOCK, THREAD, VIRTUAL = "blockIdx.", "threadIdx.", "vthread."
MOST_THREADS = 1024
"""Limit of the threads of a block, on every GPU."""
ACROSS = "across threads"
"""Kind of a reduction that threads share."""

Scope = Callable[[ir.Value], str]
"""Returns the memory scope of a buffer: "global", "shared", ..."""


class Across(LoopNode):
    """A reduction whose steps are shared by threads of a block; its contents are the loops over the steps of one thread.

    Attributes:
      use: the block.
      axes: the axes along which its steps are distributed.
    """

    def __init__(self, loop: Loop, inside: Node, use: Use, axes: Sequence[str]) -> None:
        super().__init__(loop, (inside,))
        self.kind, self.use, self.axes, self.begins = ACROSS, use, tuple(axes), [use]


@dataclass(frozen=True)
class NestLaunch:
    """A loop nest of a function as a launch.

    Attributes:
      axes: the loop that represents each axis, axes of blocks first, in nesting order.
      nodes: the code of a thread.
    """

    axes: dict[str, Loop]
    nodes: tuple[Node, ...]

    @property
    def uses(self) -> list[Use]:
        return uses_in(self.nodes)

    @property
    def threads(self) -> list[Loop]:
        """The axes of the threads of a block."""
        return [loop for axis, loop in self.axes.items() if axis.startswith(THREAD)]

    @property
    def warps(self) -> list[Loop]:
        """The axes along which different warps lie."""
        return [loop for axis, loop in self.axes.items() if axis.startswith(THREAD) and axis != LANES]

    @property
    def blocks(self) -> list[Loop]:
        """The axes of the grid."""
        return [loop for axis, loop in self.axes.items() if axis.startswith(BLOCK)]


def launches_of(tree: Sequence[Node], scope: Scope) -> list[NestLaunch]:
    """The launches of a function, one for each loop nest.

    Raises ScheduleError for invalid bindings.
    """
    return [_Launches(node, scope).run() for node in tree]


def is_bound(loop: Loop) -> bool:
    """Whether a loop is bound to blocks or threads."""
    return loop.kind.startswith((BLOCK, THREAD))


class _Launches:
    def __init__(self, node: Node, scope: Scope) -> None:
        self.node, self.scope = node, scope
        bound: dict[str, list[Loop]] = {}
        for loop in (found.loop for found in loops_in([node], LoopNode)):
            if is_bound(loop):
                bound.setdefault(loop.kind, []).append(loop)
        axes = {axis: _axis(axis, loops) for axis, loops in bound.items()}
        self.axes = {axis: loop for what in (BLOCK, THREAD) for axis, loop in axes.items() if axis.startswith(what) and loop.extent != 1}
        threads = prod(loop.extent for axis, loop in self.axes.items() if axis.startswith(THREAD))
        if isinstance(threads, int) and threads > MOST_THREADS:
            names = ", ".join(f"{loop.name} of {loop.extent}" for axis, loop in self.axes.items() if axis.startswith(THREAD))
            raise ScheduleError(f"loops {names}: expected at most {MOST_THREADS} threads of a block, found {threads}")

    def run(self) -> NestLaunch:
        return NestLaunch(self.axes, self._nodes(self.node))

    def _nodes(self, node: Node) -> tuple[Node, ...]:
        """The nodes that remain of a node when bound loops become axes."""
        if not isinstance(node, LoopNode):
            return (self._use(node),)
        if is_box(node.loop):
            return (self._box(node),)
        if node.kind == Kind.PARALLEL:
            raise ScheduleError(f"loop {node.loop.name}: expected a loop bound to threads of the GPU, found one of threads of a CPU")
        shared = next((use for use in node.uses if _begins(use, node.loop.name) and _thread_steps(use)), None)
        if shared is not None:
            return (self._across(node, shared),)
        inside = tuple(found for child in node.children for found in self._nodes(child))
        if is_bound(node.loop):
            return inside
        staged = pipelined(node.loop, inside, self.scope)
        return (staged or LoopNode(_unbound(node.loop), inside),)

    def _box(self, node: LoopNode) -> BoxCopy:
        """Loops that are one copy of a box, which one thread starts."""
        inside: Node = node
        while isinstance(inside, LoopNode):
            if inside.kind != Kind.SERIAL or len(inside.children) != 1:
                found = f"one that is {inside.kind}" if inside.kind != Kind.SERIAL else ", ".join(str(u.block) for u in inside.uses)
                raise ScheduleError(
                    f"loop {node.loop.name}: annotation {TENSOR_COPY}: expected serial loops around one block, found {found}"
                )
            (inside,) = inside.children
        return BoxCopy(node.loop, self._use(inside, is_of_first=False))

    def _across(self, node: LoopNode, use: Use) -> Across:
        """A reduction with loops bound to threads, from its outermost loop on."""
        chain: list[LoopNode] = []
        inside: Node = node
        while isinstance(inside, LoopNode):
            chain.append(inside)
            if len(inside.children) != 1:
                raise ScheduleError(
                    f"loop {inside.loop.name}: expected nothing but {use.block} in the loops of a reduction that threads share, "
                    f"found {', '.join(str(u.block) for u in inside.uses)}"
                )
            (inside,) = inside.children
        steps = set(use.reduction_loops)
        for loop in (n.loop for n in chain):
            if loop.name not in steps and loop.extent != 1 and loop.kind != Kind.UNROLLED:
                raise ScheduleError(
                    f"loop {loop.name}: expected it outside of {node.loop.name}, along which threads reduce, found it inside"
                )
        axes = [loop.kind for loop in _thread_steps(use) if loop.kind in self.axes]
        made = self._use(use)
        found: Node = made
        for n in reversed(chain):
            if not is_bound(n.loop):
                found = LoopNode(_unbound(n.loop), (found,))
        return Across(node.loop, found, made, axes)

    def _use(self, use: Use, is_of_first: bool = True) -> Use:
        """A block over the axes.

        Args:
          is_of_first: whether only the first thread along an axis computes it if it does not depend on the axis.
        """
        if use.tensor is not None and use.tensor.threads > 1:
            self._check_group(use)
        _check_steps(use)
        used = set[Var]().union(*map(variables, use.points), *(variables(g.index) for g in use.guards))
        point: dict[Var, Index] = {}
        guards: list[Guard] = []
        deciding: dict[str, Loop] = {}
        for loop in use.loops:
            if not is_bound(loop) or loop.var not in used:  # `used` has no loop of one iteration
                continue
            if loop.kind in deciding:
                found = f"{deciding[loop.kind].name} and {loop.name}"
                raise ScheduleError(f"{use.block}: expected one loop around it that is bound to {loop.kind}, found {found}")
            deciding[loop.kind] = loop
            axis = self.axes[loop.kind]
            point[loop.var] = Index.of(axis.var)
            if loop.extent != axis.extent:
                guards.append(Guard(Index.of(axis.var), loop.extent))
        for name, axis in self.axes.items():
            if is_of_first and name not in deciding and self._is_of_first(use, name):
                guards.append(Guard(Index.of(axis.var), 1))
        loops = (*self.axes.values(), *(_unbound(loop) for loop in use.loops if not is_bound(loop)))
        points = tuple(substitute(p, point) for p in use.points)
        given = tuple(_of_vectors(Guard(substitute(g.index, point), g.limit), use.loops) for g in use.guards)
        return replace(use, loops=loops, points=points, guards=(*guards, *given))

    def _check_group(self, use: Use) -> None:
        """Checks that the launch has the threads of the warp or warp group that compute a block together."""
        assert use.tensor is not None
        lanes, wanted = self.axes[LANES].extent if LANES in self.axes else 1, use.tensor.threads
        if lanes != wanted:
            raise ScheduleError(
                f"{use.block}: expected {wanted} threads along {LANES}, a {SCOPES[wanted]}, for its tensor intrinsic, found {lanes}"
            )
        around = next((loop for loop in use.loops if loop.kind == LANES and loop.extent != 1), None)
        if around is not None:
            raise ScheduleError(
                f"{use.block}: expected no loop around it that is bound to {LANES}, as a {SCOPES[wanted]} computes its tensor "
                f"intrinsic together, found {around.name}"
            )

    def _is_of_first(self, use: Use, axis: str) -> bool:
        """Whether only the first thread along an axis computes a block that does not depend on the axis."""
        scopes = {self.scope(a.buffer) for a in use.accesses if a.is_store}
        if axis == LANES and use.tensor is not None and use.tensor.threads > 1:
            return False
        if axis.startswith(THREAD):
            return not scopes.issubset({"local", *GROUPS})
        if "global" not in scopes:
            return False
        if not any(loop.kind == axis for loop in use.loops):
            return True
        if use.block.is_reduction:
            where = f"which reduces the same in each iteration of the loop that is bound to {axis}"
            raise ScheduleError(f"{use.block}: expected a shared or local buffer, {where}, found a global one")
        return False


def _of_vectors(guard: Guard, loops: Sequence[Loop]) -> Guard:
    """A guard without lanes and unrolled loops, if it includes or excludes whole vectors and tiles."""
    for loop in loops:
        lanes, index = loop.extent, guard.index
        if loop.kind not in (Kind.VECTORIZED, Kind.UNROLLED) or index.coefficient(loop.var) != 1 or not isinstance(lanes, int):
            continue
        others = index.without(loop.var)
        if all(exact(c, lanes) is not None for c in (others.const, guard.limit, *others.terms.values())):
            return Guard(others, guard.limit)
    return guard


def _axis(axis: str, loops: Sequence[Loop]) -> Loop:
    """The loop that represents an axis: the one with the most iterations."""
    first = loops[0]
    if axis.startswith(BLOCK):
        for loop in loops:
            if loop.extent != first.extent:
                expected = f"{first.extent} iterations, as {first.name}, which is bound to {axis} too"
                raise ScheduleError(f"loop {loop.name}: expected {expected}, found {loop.extent}")
        return first
    for loop in loops:
        if not isinstance(loop.extent, int):
            raise ScheduleError(f"loop {loop.name}: expected an extent that is a number where it is bound to {axis}, found {loop.extent}")
    return max(loops, key=lambda loop: int(loop.extent))


def _unbound(loop: Loop) -> Loop:
    """A loop that a thread runs; loops of virtual threads are unrolled."""
    if not loop.kind.startswith(VIRTUAL):
        return loop
    made = copy(loop)
    made.kind = Kind.UNROLLED
    return made


def _thread_steps(use: Use) -> list[Loop]:
    """The loops of the steps of a reduction that are bound to threads."""
    if not use.has_init and not use.block.is_reduction:
        return []
    return [loop for loop in use.loops if loop.name in use.reduction_loops and loop.kind.startswith(THREAD) and loop.extent != 1]


def _check_steps(use: Use) -> None:
    """Raises ScheduleError for steps of a reduction in different blocks of threads, or along threads that also determine its element."""
    steps = use._variables(use.block.reduction)
    for loop in use.loops:
        if not is_bound(loop) or loop.extent == 1 or loop.var not in steps:
            continue
        if loop.kind.startswith(BLOCK):
            raise ScheduleError(
                f"loop {loop.name}: expected iterations that are independent, found a reduction of {use.block} that runs along it"
            )
        if use.is_mixed:
            raise ScheduleError(
                f"{use.block}: expected loops that are of elements or of steps where threads share the steps, found one of both"
            )


def _begins(use: Use, loop: str) -> bool:
    """Whether a loop is the outermost loop of a reduction."""
    return not use.is_start and use.reduction_loops[:1] == (loop,)
