"""Where the threads of a block wait for each other: between accesses of the same memory by different threads, of which one writes.

What an element of a buffer is does not count: two accesses of a buffer meet, unless it is known that each element is accessed by one thread
in both. A barrier stands before a loop or a block, in control flow that is the same for all threads.
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
from relayc.pipelines.tir.lower.tree import LoopNode, Node
from relayc.pipelines.tir.tree.indices import Divided, Extremal, equal, variables
from relayc.pipelines.tir.tree.steps import Access
from relayc.pipelines.tir.tree.views import Loop, ScheduleError


@dataclass(frozen=True, eq=False)
class _Done:
    """An access that threads may not all have come to yet."""

    use: Use
    access: Access

    @property
    def key(self) -> tuple[int, ir.Operation]:
        return id(self.use), self.access.operation


class Barriers:
    """The barriers of a launch.

    Args:
      written: the buffers that the launch writes and that several threads see.
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
        """Whether a barrier stands before a loop or block."""
        return id(node) in self._before

    def stands_in(self, node: Node) -> bool:
        """Whether threads wait for each other in a loop, which all of them must run alike then."""
        return id(node) in self._around

    def _mark(self, node: Node) -> bool:
        """Notes the loops in which threads wait; gives whether they do in one, or before it."""
        if isinstance(node, LoopNode):
            inside = [self._mark(child) for child in node.children]
            if any(inside) or node.kind == ACROSS or isinstance(node, Pipelined):
                self._around.add(id(node))
                return True
        return id(node) in self._before

    def _walk(self, nodes: Sequence[Node], done: list[_Done]) -> list[_Done]:
        """Puts barriers where nodes need them that run after some accesses; gives what is done after the last barrier then."""
        for node in nodes:
            if not isinstance(node, LoopNode):
                done = self._after(node, self._accesses(node), done)
            elif node.kind in (ACROSS, Kind.VECTORIZED):
                done = self._after(node, self._accesses(node), done)
                self._check_lanes(node)
            elif isinstance(node, Pipelined):
                done = self._pipelined(node, done)
            else:
                # Before the loop, rather than in each of its iterations.
                if any(self._meet(before, now) for before in done for now in self._accesses(node)):
                    self._before.add(id(node))
                    done = []
                once = self._walk(node.children, list(done))
                if node.loop.extent != 1:
                    once = self._walk(node.children, _once([*done, *once]))
                done = _once([*done, *once])
        return done

    def _pipelined(self, node: Pipelined, done: list[_Done]) -> list[_Done]:
        """The same of a loop of which copies run ahead: each iteration begins with a barrier, on both sides of which buffers of the ring
        are others."""
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
        """What a node accesses of memory that the launch writes and several threads see."""
        uses = node.uses if isinstance(node, LoopNode) else (node,)
        return [_Done(use, a) for use in uses for a in use.accesses if a.buffer in self.written]

    def _check_lanes(self, node: LoopNode) -> None:
        """What runs in lanes runs at once."""
        for a in self._accesses(node):
            for b in self._accesses(node):
                if a.use is not b.use and self._meet(a, b):
                    what = f"{a.use.block} and {b.use.block}, between which threads have to wait"
                    raise ScheduleError(f"loop {node.loop.name}: expected blocks in its lanes that need no barrier, found {what}")

    def _meet(self, a: _Done, b: _Done) -> bool:
        """Whether two accesses may be of the same element by different threads, one of which writes it."""
        if not self.arena.overlap(a.access.buffer, b.access.buffer) or not (a.access.is_store or b.access.is_store):
            return False
        if a.access.buffer != b.access.buffer:
            return True
        if a.use is b.use:
            return False  # points of one block write different elements, and all steps of an element are of one thread
        own, other = (_owner(x, self.launch.threads) for x in (a, b))
        return own is None or own != other


def _once(accesses: Sequence[_Done]) -> list[_Done]:
    return list({a.key: a for a in accesses}.values())


def check_private(launch: NestLaunch, scope: Scope, label: dict[ir.Value, str]) -> None:
    """That buffers of a thread, and those of a block of threads, are read where they are written: by the same thread or block.

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
            if kind == "global" and not axes:
                continue
            raise ScheduleError(
                f"buffer {label[store.buffer]}: expected scope {wanted}, as {reader.block} reads what another {who} writes by {use.block}, "
                f"found {kind}"
            )


def _depends(use: Use, access: Access, axes: Sequence[Loop]) -> bool:
    """Whether which element an access is of depends on axes."""
    found: set[Var] = {loop.var for loop in axes}
    return any(not variables(index).isdisjoint(found) for index in use.indices(access))


def _part(use: Use, access: Access, axes: Sequence[Loop]) -> tuple | None:
    """What axes add to each index of an access; None where that is not a part by itself."""
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
    """How the thread that accesses an element follows from its indices: of each axis the dimension and what the number is multiplied by
    there; None where several threads may access one element."""
    found: dict[str, tuple] = {}
    indices = done.use.indices(done.access)
    for loop in threads:
        first = any(g.index.key == Index.of(loop.var).key and g.limit == 1 for g in done.use.guards)
        places = [(d, _digit(index, loop)) for d, index in enumerate(indices)]
        place = next(((d, digit) for d, digit in places if digit is not None), None)
        if not first and place is None:
            return None
        found[loop.name] = ("first",) if first else place or ()
    return found


def _digit(index: Index, loop: Loop) -> tuple | None:
    """The factor of a thread's number in an index and the constant beside it, where that number is a digit of the index: what is smaller
    than the factor stays below it, all else is a multiple of what lies above."""
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
