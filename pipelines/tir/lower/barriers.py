"""Barriers of a thread block: between accesses of the same memory by different threads, at least one of which writes.

Values of indices are not compared: two accesses of a buffer conflict unless it is proved that the same thread accesses an element in both.
A barrier is placed before a loop or a block, in control flow that is uniform over the threads.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.lower.fragments import GROUPS
from relayc.pipelines.tir.lower.pipelines import Pipelined
from relayc.pipelines.tir.lower.shared_memory import Arena
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.threads import ACROSS, NestLaunch, Scope
from relayc.pipelines.tir.lower.tree import LoopNode, Node, uses_in
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import Divided, Extremal, equal, variables
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.steps import Access


@dataclass(frozen=True, eq=False)
class _Done:
    """An access since the last barrier."""

    use: Use
    access: Access

    @property
    def key(self) -> tuple[int, Access]:
        return id(self.use), self.access


class Barriers:
    """The barriers of a launch.

    Args:
      written: the buffers that the launch writes and that several threads access.
      arena: memory that some of them share.
    """

    def __init__(self, launch: NestLaunch, written: AbstractSet[ir.Value], arena: Arena) -> None:
        self.launch, self.written, self.arena = launch, written, arena
        self._before: set[int] = set()
        self._around: set[int] = set()
        self._walk(launch.nodes, [])
        for node in launch.nodes:
            self._mark(node)

    def stands_before(self, node: Node) -> bool:
        """Whether a barrier is placed before a loop or block."""
        return id(node) in self._before

    def stands_in(self, node: Node) -> bool:
        """Whether a loop has barriers inside, so that all threads must run it uniformly."""
        return id(node) in self._around

    def _mark(self, node: Node) -> bool:
        """Records the loops that have barriers inside; returns whether there is one in the node or before it."""
        if isinstance(node, LoopNode):
            inside = [self._mark(child) for child in node.children]
            if any(inside) or node.kind == ACROSS or isinstance(node, Pipelined):
                self._around.add(id(node))
                return True
        return id(node) in self._before

    def _walk(self, nodes: Sequence[Node], done: list[_Done]) -> list[_Done]:
        """Places the barriers that nodes need after the accesses in `done`; returns the accesses since the last barrier."""
        for node in nodes:
            if not isinstance(node, LoopNode):
                done = self._after(node, self._accesses(node), done)
            elif node.kind in (ACROSS, Kind.VECTORIZED):
                done = self._after(node, self._accesses(node), done)
                self._check_lanes(node)
            elif isinstance(node, Pipelined):
                done = self._pipelined(node, done)
            else:
                # One barrier before the loop instead of one in each iteration.
                if any(self._meet(before, now) for before in done for now in self._accesses(node)):
                    self._before.add(id(node))
                    done = []
                once = self._walk(node.children, list(done))
                if node.loop.extent != 1:
                    once = self._walk(node.children, _once([*done, *once]))
                done = _once([*done, *once])
        return done

    def _pipelined(self, node: Pipelined, done: list[_Done]) -> list[_Done]:
        """`_walk` for a software pipelined loop: each iteration begins with a barrier, and accesses before and after it use different
        buffers of the ring."""
        own = self._accesses(node)
        if any(self._meet(before, now) for before in done for now in own):
            self._before.add(id(node))
            done = []
        outer, self.written = self.written, self.written - node.buffers
        inside = self._walk(node.children, [])
        self.written = outer
        return _once([*done, *inside, *(a for a in own if a.access.buffer in node.buffers)])

    def _after(self, node: Node, accesses: Sequence[_Done], done: list[_Done]) -> list[_Done]:
        if any(self._meet(before, now) for before in done for now in accesses):
            self._before.add(id(node))
            return list(accesses)
        return _once([*done, *accesses])

    def _accesses(self, node: Node) -> list[_Done]:
        """The accesses of a node to memory that the launch writes and several threads access."""
        return [_Done(use, a) for use in uses_in([node]) for a in use.accesses if a.buffer in self.written]

    def _check_lanes(self, node: LoopNode) -> None:
        """Raises ScheduleError if blocks in one vectorized loop conflict: lanes run simultaneously."""
        for a in self._accesses(node):
            for b in self._accesses(node):
                if a.use is not b.use and self._meet(a, b):
                    what = f"{a.use.block} and {b.use.block}, between which threads have to wait"
                    raise ScheduleError(f"loop {node.loop.name}: expected blocks in its lanes that need no barrier, found {what}")

    def _meet(self, a: _Done, b: _Done) -> bool:
        """Whether two accesses may access the same element from different threads, one of them writing."""
        if not self.arena.overlap(a.access.buffer, b.access.buffer) or not (a.access.is_store or b.access.is_store):
            return False
        if a.access.buffer != b.access.buffer:
            return True
        if a.use is b.use:
            return False  # points of one block write different elements, and one thread runs all steps of an element
        own, other = (_owner(x, self.launch.threads) for x in (a, b))
        return own is None or own != other


def _once(accesses: Sequence[_Done]) -> list[_Done]:
    return list({a.key: a for a in accesses}.values())


def check_private(launch: NestLaunch, scope: Scope, label: dict[ir.Value, str]) -> None:
    """Checks that private buffers of a thread, a warp or a thread block are read by the thread, warp or block that writes them.

    Args:
      label: names of the buffers.

    Raises ScheduleError, which names the block and the buffer.
    """
    accesses = [(use, a) for use in launch.uses for a in use.accesses]
    for use, store in ((u, a) for u, a in accesses if a.is_store):
        kind = scope(store.buffer)
        own = launch.threads if kind == "local" else launch.warps if kind in GROUPS else []
        axes = [*launch.blocks, *own]
        for reader, load in ((u, a) for u, a in accesses if not a.is_store and a.buffer == store.buffer and u is not use):
            written = _part(use, store, axes)
            if (kind != "global" and not _depends(use, store, axes)) or (written is not None and written == _part(reader, load, axes)):
                continue
            if all(map(equal, use.indices(store), reader.indices(load))):
                continue
            who, wanted = (
                (kind.replace("local", "thread"), "shared")
                if kind in ("local", *GROUPS)
                else ("block of threads", "global, in a nest of its own")
            )
            raise ScheduleError(
                f"buffer {label[store.buffer]}: expected scope {wanted}, as {reader.block} reads what another {who} writes by {use.block}, "
                f"found {kind}"
            )


def _depends(use: Use, access: Access, axes: Sequence[Loop]) -> bool:
    """Whether the accessed element depends on axes."""
    found: set[Var] = {loop.var for loop in axes}
    return any(not variables(index).isdisjoint(found) for index in use.indices(access))


def _part(use: Use, access: Access, axes: Sequence[Loop]) -> tuple | None:
    """The contribution of axes to each index of an access; None if it cannot be separated."""
    outside: set[Var] = {loop.var for loop in axes}
    found = []
    for index in use.indices(access):
        part = Index()
        for var, factor in index.terms.items():
            inside = variables(Index.of(var))
            if inside <= outside:
                part += Index(0, {var: factor})
            elif not inside.isdisjoint(outside):
                return None
        found.append(part.key)
    return tuple(found)


def _owner(done: _Done, threads: Sequence[Loop]) -> dict[str, tuple] | None:
    """The position of the thread's number along each axis in the indices of an access: dimension and factor; None if several threads may
    access one element."""
    found: dict[str, tuple] = {}
    indices = done.use.indices(done.access)
    for loop in threads:
        first = Guard(Index.of(loop.var), 1).key in {g.key for g in done.use.guards}
        places = [(d, _digit(index, loop)) for d, index in enumerate(indices)]
        place = next(((d, digit) for d, digit in places if digit is not None), None)
        if not first and place is None:
            return None
        found[loop.name] = ("first",) if first else place or ()
    return found


def _digit(index: Index, loop: Loop) -> tuple | None:
    """The factor of a thread's number in an index and the constant term, if the number is a digit of the index: smaller terms sum to less
    than the factor, and all others are multiples of factor * extent."""
    factor = index.coefficient(loop.var)
    if not isinstance(factor, int) or factor <= 0 or not isinstance(loop.extent, int) or not isinstance(index.const, int):
        return None
    below = 0
    for var, other in index.terms.items():
        if var == loop.var:
            continue
        if not isinstance(other, int) or (isinstance(var, (Divided, Extremal)) and loop.var in variables(Index.of(var))):
            return None
        if other % (factor * loop.extent) == 0:
            continue
        if other < 0 or not isinstance(var.low, int) or not isinstance(var.high, int) or var.low < 0:
            return None
        below += other * var.high
    return (factor, index.const) if below < factor else None
