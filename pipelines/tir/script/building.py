"""The function that a script builds: its open loops and blocks, and the variables in scope."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.tir import names
from relayc.dialects.tir.block import OPAQUE, make_block
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import FAR, Index, Var
from relayc.pipelines.tir.tree.arguments import encode
from relayc.pipelines.tir.tree.contents import STORES, stores_beside_loops
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import Divided, Extremal, largest, smallest, substitute, variables, write
from relayc.pipelines.tir.tree.members import Loop, LoopVar
from relayc.pipelines.tir.tree.operations import walk
from relayc.pipelines.tir.tree.structure import Nest, free_name
from relayc.symbolic import Size, proves

Less = Sequence[tuple[Index, Index]]
"""A conjunction of conditions: in each pair the first index is less than the second."""


class IterVar(Var):
    """The variable of an iterator of a block; it has a value while the init or the body of the block is built."""


@dataclass(eq=False)
class BlockFrame:
    """A block that is being read.

    Attributes:
      iterators: kind, variable and point of each.
      guards: predicates of the block, over the loops around it.
      operation: the block, once its init or body has begun.
    """

    name: str
    iterators: list[tuple[str, IterVar, Index]] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    annotations: dict[str, object] = field(default_factory=dict)
    operation: ir.Operation | None = None
    loops: tuple[Var, ...] = ()
    """The variables that its points may use."""
    region: str = ""
    """The part that is being built: "init", "body", or "" for the header."""
    said: dict[str, list[tuple[str, ir.Value]]] = field(default_factory=dict)
    """Names and values of the buffers listed in T.reads and T.writes."""
    replaced: dict[Var, Index] = field(default_factory=dict)
    """For an implicit block around a store: the values of loop variables inside it."""

    def point(self) -> dict[Var, Index]:
        """The points of the iterators."""
        return {var: point for _, var, point in self.iterators}


class Building:
    """The state of a function that is being built.

    Attributes:
      visible: variables that indices may use here.
      blocks: open blocks, outermost first.
      conditions: of the enclosing `if` statements inside the innermost block.
      guarded: whether values loaded here are unused where they are out of bounds.
      says_regions: whether elements of buffers denote regions here, and are not loaded.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.visible: list[Var] = []
        self.blocks: list[BlockFrame] = []
        self.conditions: list[tuple[Index, Index]] = []
        self.guarded = 0
        self.says_regions = False
        self.block_names: set[str] = set()

    @property
    def block(self) -> BlockFrame | None:
        """The innermost open block."""
        return self.blocks[-1] if self.blocks else None

    # ---- indices

    def resolved(self, index: Index) -> Index:
        """An index over variables in scope. Raises RelayError if it uses a loop or iterator out of scope."""
        if self.block is not None and self.block.replaced:
            index = substitute(index, self.block.replaced)
        for var in variables(index):
            if isinstance(var, (LoopVar, IterVar)) and not any(var is v for v in self.visible):
                self._refuse(var)
        return index

    def _refuse(self, var: Var) -> None:
        if isinstance(var, IterVar):
            raise RelayError(f"{var.name}: expected an iterator of this block, found one of another (an axis binds it)")
        if self.block is None:
            raise RelayError(f"{var.name}: expected a loop around this place, found one that has ended")
        hint = "an axis binds it: T.axis.spatial, T.axis.reduce"
        raise RelayError(f"block {self.block.name}: expected its iterators, found the loop {var.name} ({hint})")

    def in_block(self, what: str) -> None:
        """Raises RelayError outside of a block, where values cannot be computed."""
        if self.block is None or not self.block.region:
            found = "it outside of one" if self.block is None else "it among its axes and conditions"
            raise RelayError(f"{what}: expected it in the body of a block (with T.block), found {found}")

    def outside_of_loops(self, what: str) -> None:
        """Raises RelayError in a loop inside a block: computations there need a block of their own."""
        inner = next((var for var in self.visible if isinstance(var, LoopVar)), None)
        if self.block is not None and inner is not None:
            where = f"the loop {inner.name} of block {self.block.name}"
            raise RelayError(f"{what}: expected a block of its own (T.block) in {where}, found it in the loop itself")

    # ---- loops

    @contextmanager
    def loop(self, name: str, extent: Size, kind: str, annotations: dict[str, object]) -> Iterator[Loop]:
        """A loop at the ambient insertion point, which moves into it."""
        (made,) = self.nest.new_loops([(name, extent)], ir.Location.current)
        made.kind, made.annotations = kind, {k: encode(v) for k, v in annotations.items()}
        made.write()
        self.visible.append(made.var)
        try:
            with ir.InsertionPoint.at_block_terminator(made.body):
                yield made
        finally:
            self.visible.pop()

    # ---- blocks

    @contextmanager
    def open_block(self, name: str) -> Iterator[BlockFrame]:
        """A block whose header is read next."""
        check(name not in self.block_names, f"T.block({name!r})", "a name that no other block has", "it a second time")
        self.block_names.add(name)
        frame = BlockFrame(name, loops=tuple(self.visible))
        frame.guards = [limit(a, b) for a, b in self.conditions]
        outer = self.visible, self.conditions
        self.blocks.append(frame)
        try:
            yield frame
            self._check_said(frame)
        finally:
            self.blocks.pop()
            self.visible, self.conditions = outer

    def _check_said(self, frame: BlockFrame) -> None:
        """Raises RelayError if T.reads or T.writes omit a buffer that the block accesses."""
        if not frame.said or frame.operation is None:
            return
        init, body = ([op for block in region.blocks for op in walk(block)] for region in frame.operation.regions)
        written = [op.operands[1] for op in (*init, *body) if op.name == "memref.store"]
        read = [op.operands[0] for op in body if op.name == "memref.load" and op.operands[0] not in written]
        for what, found in (("T.reads", read), ("T.writes", written)):
            if what in frame.said:
                known = [value for _, value in frame.said[what]]
                missing = [self.nest.buffer_name(buffer) for buffer in found if buffer not in known]
                names_ = ", ".join(name for name, _ in frame.said[what]) or "none"
                check(not missing, f"{what} of block {frame.name}", f"{missing[0]} among them" if missing else "", names_)

    def add_axis(self, kind: str, extent: Size, point: Index, name: str) -> IterVar:
        """Adds an iterator to the block whose header is being read."""
        frame = self.header("T.axis")
        var = IterVar(0, extent - 1, None, name=name)
        frame.iterators.append((kind, var, self.resolved(point)))
        return var

    def header(self, what: str) -> BlockFrame:
        """The block whose header is being read. Raises RelayError if there is none."""
        frame = self.block
        if frame is None or frame.operation is not None:
            found = "it outside of a block" if frame is None else "it behind them"
            raise RelayError(f"{what}: expected it at the start of a block (with T.block), before its statements, found {found}")
        return frame

    def add_guards(self, less: Less) -> None:
        """Adds guards to the block whose header is being read; iterators are replaced by their points."""
        frame = self.header("T.where")
        for a, b in less:
            frame.guards.append(limit(*(self.resolved(substitute(x, frame.point())) for x in (a, b))))

    def create_block(self, frame: BlockFrame) -> ir.Operation:
        """The operation of a block with a complete header."""
        if frame.operation is None:
            _check_points(frame)
            points = [write(point) for _, _, point in frame.iterators]
            pairs = [(write(guard.index), emit.index_constant(guard.limit)) for guard in frame.guards]
            extents = [var.high + 1 for _, var, _ in frame.iterators]
            with ir.Location.name(frame.name):
                frame.operation = make_block(frame.name, [kind for kind, _, _ in frame.iterators], extents, points, pairs)
            if frame.annotations:
                attributes = {k: encode(v) for k, v in frame.annotations.items()}
                frame.operation.attributes[names.ANNOTATIONS] = ir.DictAttr.get(attributes)
        return frame.operation

    @contextmanager
    def region(self, frame: BlockFrame, which: str) -> Iterator[None]:
        """The init or the body of a block: the insertion point moves there, and the iterators have their values."""
        operation = self.create_block(frame)
        region = operation.regions[0 if which == "init" else 1]
        if which == "init":
            region.blocks.append(*[ir.IndexType.get()] * len(frame.iterators))
        block = region.blocks[0]
        iterators = [var for _, var, _ in frame.iterators]
        for var, argument in zip(iterators, block.arguments, strict=True):
            var.value = argument
        self.visible, self.conditions, frame.region = [*iterators], [], which
        with ir.InsertionPoint(block):
            yield
        frame.region = ""
        if stores_beside_loops(block):
            raise RelayError(f"block {frame.name}: expected {STORES}, found both")

    @contextmanager
    def implicit_block(self, name: str) -> Iterator[None]:
        """A block for a store outside of blocks: its iterators are opaque, in the order of the loops around it."""
        loops = [var for var in self.visible if isinstance(var, LoopVar)]
        with self.open_block(free_name(name, self.block_names)) as frame:
            for var in loops:
                made = IterVar(0, var.high, None, name=f"v{var.name}")
                frame.iterators.append((OPAQUE, made, Index.of(var)))
                frame.replaced[var] = Index.of(made)
            with self.region(frame, "body"):
                yield

    # ---- buffers

    def indices(self, indices: Sequence[Index], shape: Sequence[Size], what: str) -> list[ir.Value]:
        """The indices of an element as values. Raises RelayError for an index that is known to be out of bounds.

        In a guarded context they are clipped to the buffer.
        """
        found = []
        for d, (index, size) in enumerate(zip(map(self.resolved, indices), shape, strict=True)):
            if self.guarded:
                index = smallest(largest(index, Index(0)), Index(size - 1))
            else:
                self._check_bounds(index, size, f"{what}: index of dimension {d}")
            found.append(write(index))
        return found

    def _check_bounds(self, index: Index, size: Size, what: str) -> None:
        low, high = index.bounds()
        frame = self.block
        exact = not any(isinstance(v, (Divided, Extremal)) or v.high == FAR for v in index.terms)
        if exact and not (frame and frame.guards) and proves(lambda: low < 0 or high >= size):
            hint = "T.where ends a block, T.if_then_else guards what is read"
            raise RelayError(f"{what}: expected 0 to {size - 1}, found {low} to {high} ({hint})")


def _check_points(frame: BlockFrame) -> None:
    """Raises RelayError for a point that is known to exceed the extent of its iterator, unless a guard restricts it."""
    guarded = set().union(*(variables(guard.index) for guard in frame.guards))
    for _, var, point in frame.iterators:
        low, high = point.bounds()
        exact = not any(isinstance(v, (Divided, Extremal)) or v.high == FAR for v in point.terms)
        if exact and guarded.isdisjoint(variables(point)) and proves(lambda: low < 0 or high > var.high):  # noqa: B023
            hint = "T.where ends a block"
            raise RelayError(f"{var.name} of block {frame.name}: expected 0 to {var.high}, found {low} to {high} ({hint})")


def limit(a: Index, b: Index) -> Guard:
    """a < b as an index and its limit."""
    if b.is_constant:
        return Guard(a, b.const)
    return Guard(b * -1, -a.const) if a.is_constant else Guard(a - b, 0)


_CURRENT: ContextVar[Building | None] = ContextVar("relayc_building", default=None)


def current(what: str) -> Building:
    """The function that is being built. Raises RelayError if there is none: a name of T is used outside of a script."""
    found = _CURRENT.get()
    if found is None:
        raise RelayError(f"{what}: expected it in a function of T.prim_func, found it outside of one")
    return found


@contextmanager
def building(nest: Nest) -> Iterator[Building]:
    """Makes a function the current one."""
    token = _CURRENT.set(Building(nest))
    try:
        found = _CURRENT.get()
        assert found is not None
        yield found
    finally:
        _CURRENT.reset(token)


def written(index: Index) -> ir.Value:
    """An index as a value at the ambient insertion point, in a block."""
    state = current("an index")
    if not index.is_constant:
        state.in_block("an index as a value")
    return write(state.resolved(index))
