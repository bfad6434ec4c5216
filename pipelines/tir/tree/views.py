"""Views of loops and blocks: they read the operations of a function that is being scheduled, and change them.

A view describes an operation as it is, or an operation that is still to be written (see Nest.write). Names stay the same when operations
are moved or rebuilt.
"""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.dialects.tir.block import PARALLEL, REDUCTION, block_name, extents_of, iterators_of
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.tree.guards import Guard, needed
from relayc.pipelines.tir.tree.indices import Reader, Writer, canonical, variables
from relayc.pipelines.tir.tree.operations import (
    drop,
    drop_computations,
    enclosing_block,
    is_statement,
    operations_in,
    read_annotations,
    size_of,
    walk,
    write_annotations,
)
from relayc.pipelines.tir.tree.steps import Access, Contents, Step, read_steps, write_steps
from relayc.symbolic import Size


class ScheduleError(ValueError):
    """A primitive cannot be applied; the message gives the primitive, its target and the reason. The function is unchanged."""


class LoopVar(Var):
    """The variable of a loop that is not written yet; it has no value."""

    def __init__(self, value: ir.Value | None, extent: Size, name: str) -> None:
        super().__init__(0, extent - 1, value, name=name)


class ValueVar(LoopVar):
    """The variable of a loop or an iterator; equal in all views of it."""

    def __init__(self, value: ir.Value, extent: Size, name: str) -> None:
        super().__init__(value, extent, name)
        self._hash = hash(value)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ValueVar) and self.value == other.value)

    def __hash__(self) -> int:
        return self._hash


class Facts:
    """State that the views of a function share.

    Attributes:
      sizes: values of the function that are sizes.
      building: returns the context in which operations of the function are written.
    """

    def __init__(self, sizes: Mapping[ir.Value, Size]) -> None:
        self.sizes = sizes
        self.building: Callable[[], AbstractContextManager[None]] = nullcontext
        self._contents: dict[str, Contents] = {}
        """Contents of blocks without inner loops, by name."""
        self._changing: Container[str] | None = ()
        """The blocks that are being changed; None for all."""

    def begin(self, bodies: Collection[str] | None) -> None:
        """Starts an edit of some blocks (see Nest.editing); None for all blocks."""
        self._changing = bodies
        if bodies is None:
            self._contents = {}
        else:
            self.keep([name for name in self._contents if name not in bodies])

    def end(self) -> None:
        """Ends the edit."""
        self._changing = ()

    def keep(self, blocks: Collection[str]) -> None:
        """Drops the cached contents of all other blocks."""
        self._contents = {name: found for name, found in self._contents.items() if name in blocks}

    def forget(self, block: str) -> None:
        """Drops the cached contents of a block."""
        self._contents.pop(block, None)

    def is_plain(self, block: str) -> bool:
        """Whether a block is known to have no inner loops."""
        return block in self._contents

    def contents(self, block: str, read: Callable[[], Contents]) -> Contents:
        """The cached contents of a block, or the result of `read`."""
        found = self._contents.get(block)
        if found is None:
            found = read()
            if found.is_plain and self._changing is not None and block not in self._changing:
                self._contents[block] = found
        return found


class Loop:
    """A loop of a function.

    Args:
      operation: the scf.for; None if it is not written yet: then name, extent and location are given.

    Attributes:
      around: the loops around it in the same block, outermost first; inside: its direct members.
      scope: the enclosing block, if any. Nest sets these three.
    """

    def __init__(
        self,
        operation: ir.Operation | None,
        facts: Facts,
        name: str | None = None,
        extent: Size | None = None,
        location: ir.Location | None = None,
    ) -> None:
        self._operation = operation
        self._facts = facts
        self._location = location
        if name is not None:
            self.name = name
        if extent is not None:
            self.extent = extent
        if operation is None:
            self.kind, self.annotations = names.Kind.SERIAL, {}
            self.var = LoopVar(None, self.extent, self.name)
        self.around: tuple[Loop, ...] = ()
        self.inside: list[Member] = []
        self.scope: Block | None = None

    @property
    def operation(self) -> ir.Operation:
        assert self._operation is not None, f"{self} is not written"
        return self._operation

    def is_of(self, operation: ir.Operation) -> bool:
        """Whether this is the view of an operation."""
        return self._operation is not None and self._operation == operation

    @property
    def location(self) -> ir.Location:
        return self.operation.location if self._location is None else self._location

    @cached_property
    def name(self) -> str:
        return ir.StringAttr(self.operation.attributes[names.LOOP]).value

    @cached_property
    def extent(self) -> Size:
        return size_of(self.operation.operands[1], self._facts.sizes)

    @cached_property
    def var(self) -> LoopVar:
        """The loop variable, with its bounds."""
        return ValueVar(self.body.arguments[0], self.extent, self.name)

    @cached_property
    def kind(self) -> str:
        attributes = self.operation.attributes
        return ir.StringAttr(attributes[names.KIND]).value if names.KIND in attributes else names.Kind.SERIAL

    @property
    def body(self) -> ir.Block:
        return self.operation.regions[0].blocks[0]

    @cached_property
    def annotations(self) -> dict[str, ir.Attribute]:
        return read_annotations(self.operation)

    def members(self) -> list[ir.Operation]:
        """Loops, blocks and allocations directly in the loop, without index computations and the terminator."""
        return [op for op in operations_in(self.body) if is_statement(op)]

    def set_kind(self, kind: str) -> None:
        self.kind = kind
        if self._operation is None:
            return
        if kind == names.Kind.SERIAL:
            if names.KIND in self.operation.attributes:
                del self.operation.attributes[names.KIND]
        else:
            self.operation.attributes[names.KIND] = ir.StringAttr.get(kind, self.operation.context)

    def set_annotations(self, annotations: dict[str, ir.Attribute]) -> None:
        """Replaces the annotations."""
        self.annotations = annotations
        if self._operation is not None:
            write_annotations(self.operation, annotations)

    def written(self) -> ir.Operation:
        """Writes the loop at the ambient insertion point, without a body; the view then refers to the new operation.

        The old operation and its contents stay.
        """
        attributes = {} if self._operation is None else dict(self.operation.attributes.items())
        attributes[names.LOOP] = ir.StringAttr.get(self.name)
        if self.kind != names.Kind.SERIAL:
            attributes[names.KIND] = ir.StringAttr.get(self.kind)
        if self.annotations:
            attributes[names.ANNOTATIONS] = ir.DictAttr.get(self.annotations)
        bounds = [emit.index_constant(0), emit.index_constant(self.extent), emit.index_constant(1)]
        with self.location:
            self._operation = emit.serial_loop(bounds, attributes=attributes)
            emit.yield_values([], ir.InsertionPoint(self.body))
        self.var.value = self.body.arguments[0]
        return self._operation

    def __repr__(self) -> str:
        return f"loop {self.name} of {self.extent}"


class Block:
    """A block of a function.

    Attributes:
      operation: the tir.block.
      iterators: kind of each iterator; extents: of the iteration space.
      vars: a variable for each iterator, over its extent; accesses are expressed in these.
      around, scope: see Loop.
      starts, inside: the direct members of its init, and of its body.
    """

    def __init__(
        self,
        operation: ir.Operation,
        facts: Facts,
        name: str | None = None,
        iterators: Sequence[str] | None = None,
        extents: Sequence[Size] | None = None,
        draft: Contents | None = None,
    ) -> None:
        self.operation = operation
        self._draft = draft
        """Contents that are not written yet; None once they are."""
        self._facts = facts
        self.around: tuple[Loop, ...] = ()
        self.starts: list[Member] = []
        self.inside: list[Member] = []
        self.scope: Block | None = None
        if name is not None:
            self.name = name
        if iterators is not None:
            self.iterators = list(iterators)
        if extents is not None:
            self.extents = list(extents)
        self._points: list[Index] | None = None
        self._guards: list[Guard] | None = None

    @cached_property
    def name(self) -> str:
        return block_name(self.operation)

    @cached_property
    def iterators(self) -> list[str]:
        return iterators_of(self.operation)

    @cached_property
    def extents(self) -> list[Size]:
        return extents_of(self.operation)

    @cached_property
    def vars(self) -> list[ValueVar]:
        return [ValueVar(a, e, f"v{i}") for i, (e, a) in enumerate(zip(self.extents, self.arguments, strict=True))]

    def __repr__(self) -> str:
        return f"block {self.name}"

    @property
    def body(self) -> ir.Block:
        self.fill()
        return self.operation.regions[1].blocks[0]

    @property
    def init(self) -> ir.Block | None:
        self.fill()
        blocks = list(self.operation.regions[0].blocks)
        return blocks[0] if blocks else None

    @property
    def has_init(self) -> bool:
        return (self.init if self._draft is None else self._draft.init) is not None

    @property
    def arguments(self) -> list[ir.Value]:
        """The iterators as arguments of the body."""
        return list(self.operation.regions[1].blocks[0].arguments)

    def fill(self) -> None:
        """Writes the contents if they are not written yet."""
        draft, self._draft = self._draft, None
        if draft is None:
            return
        with self._facts.building(), self.operation.location:
            if draft.init is not None:
                target = self.operation.regions[0].blocks.append(*[ir.IndexType.get()] * len(self.extents))
                with ir.InsertionPoint(target):
                    write_steps(
                        draft.init, {v: Index.of(ValueVar(a, v.extent, v.name)) for v, a in zip(self.vars, target.arguments, strict=True)}
                    )
            with ir.InsertionPoint(self.body):
                write_steps(draft.body or [], {})
        self._facts.contents(self.name, lambda: draft)

    @cached_property
    def is_reduction(self) -> bool:
        return REDUCTION in self.iterators

    @cached_property
    def parallel(self) -> list[int]:
        """Positions of the parallel iterators."""
        return [i for i, kind in enumerate(self.iterators) if kind == PARALLEL]

    @cached_property
    def reduction(self) -> list[int]:
        """Positions of the reduction iterators."""
        return [i for i, kind in enumerate(self.iterators) if kind == REDUCTION]

    def point_values(self) -> list[ir.Value]:
        return list(self.operation.operands)[: len(self.iterators)]

    def points(self, loops: Sequence[Loop]) -> list[Index]:
        """The value of each iterator, over the given enclosing loops."""
        if self._points is None:
            reader = self.reader(loops)
            found = [reader.read(v) for v in self.point_values()]
            if any(type(var) is Var for index in found for var in variables(index)):
                raise ScheduleError(f"{self}: expected points that are computed of loops by +, -, *, //, %, min and max, found others")
            self._points = found
        return list(self._points)

    def guards(self, loops: Sequence[Loop]) -> list[Guard]:
        """The guards of the block, over the given enclosing loops."""
        if self._guards is None:
            pairs = list(self.operation.operands)[len(self.iterators) :]
            reader = self.reader(loops) if pairs else Reader({}, {})
            self._guards = [Guard(reader.read(v), reader.size(limit)) for v, limit in zip(pairs[::2], pairs[1::2], strict=True)]
        return list(self._guards)

    def read_place(self) -> None:
        """Reads the points and guards before the loops around the block change."""
        self.points(self.around)
        self.guards(self.around)

    def reader(self, loops: Sequence[Loop]) -> Reader:
        """A reader of points and guards: values over the given loops and over the iterators of the enclosing block."""
        known = {loop.var.value: Index.of(loop.var) for loop in loops}
        around = enclosing_block(self.operation)
        if around is not None:
            outer = Block(around, self._facts)
            for region in (outer.init, outer.body):
                if region is not None:
                    known |= {a: Index.of(ValueVar(a, v.extent, v.name)) for a, v in zip(region.arguments, outer.vars, strict=True)}
        return Reader(known, self._facts.sizes)

    @property
    def annotations(self) -> dict[str, ir.Attribute]:
        return read_annotations(self.operation)

    def set_annotations(self, annotations: dict[str, ir.Attribute]) -> None:
        """Replaces the annotations."""
        write_annotations(self.operation, annotations)

    def accesses(self, with_init: bool = True) -> list[Access]:
        """The loads and stores of the block in order, over `vars` (and over the variables of its inner loops)."""
        found = self._contents.accesses
        return list(found) if with_init else [a for a in found if not a.is_init]

    def steps(self, is_init: bool) -> list[Step] | None:
        """The steps of its init or of its body, over `vars`; None if the block has no init, or holds operations other than operations on
        elements."""
        return self._contents.init if is_init else self._contents.body

    @property
    def _contents(self) -> Contents:
        return self._facts.contents(self.name, self._read) if self._draft is None else self._draft

    def _read(self) -> Contents:
        init = None if self.init is None else read_steps(self.init, self.vars, self._facts.sizes, True)
        body = read_steps(self.body, self.vars, self._facts.sizes, False)
        if body is None or (init is None and self.init is not None):
            return Contents(self._read_accesses(), None, None)
        return Contents([s.access for s in (*(init or ()), *body) if s.access is not None], init, body)

    def _read_accesses(self) -> list[Access]:
        """The accesses of a block that has inner loops or blocks."""
        found: list[Access] = []
        for region, is_init in ((self.init, True), (self.body, False)):
            if region is None:
                continue
            reader = Reader({a: Index.of(v) for a, v in zip(region.arguments, self.vars, strict=True)}, self._facts.sizes)
            for op in walk(region):
                name = op.name
                if name in ("memref.load", "memref.store"):
                    store = name == "memref.store"
                    buffer, *at = list(op.operands)[store:]
                    found.append(Access(op, buffer, tuple(map(reader.read, at)), store, is_init))
                elif name == "scf.for":
                    variable = op.regions[0].blocks[0].arguments[0]
                    reader.define(variable, Index.of(ValueVar(variable, reader.size(op.operands[1]), "inner")))
                elif name == "tir.block":
                    for inside in op.regions:
                        for block in inside.blocks:
                            for argument, point in zip(block.arguments, op.operands, strict=False):
                                reader.define(argument, reader.read(point))
        return found

    def loads(self) -> list[Access]:
        return [a for a in self.accesses() if not a.is_store]

    def stores(self, with_init: bool = False) -> list[Access]:
        return [a for a in self.accesses(with_init) if a.is_store]

    def stores_to(self, buffer: ir.Value) -> bool:
        """Whether the block writes a buffer, including writes of the init."""
        return buffer in self._contents.stored

    def outputs(self) -> Sequence[ir.Value]:
        """The buffers that the body writes, each once, in the order of its stores."""
        return self._contents.outputs

    def inputs(self) -> Sequence[ir.Value]:
        """The buffers that the body reads and does not write, each once, in the order of its loads."""
        return self._contents.inputs

    def place(self, points: Sequence[Index], guards: Sequence[Guard]) -> None:
        """Sets the points and guards of a block that is still to be written. Guards that are not needed are dropped."""
        self._points = [canonical(i) for i in points]
        self._guards = [Guard(canonical(g.index), g.limit) for g in needed(guards)]

    def written(self) -> ir.Operation:
        """Writes the block at the ambient insertion point and moves its contents there; the view then refers to the new operation."""
        self.fill()
        points, guards = self._points, self._guards
        assert points is not None  # points were read before anything around the block changed
        assert guards is not None
        old, writer = self.operation, Writer()
        with old.location:
            pairs = [(writer(g.index), emit.index_constant(g.limit)) for g in guards]
            values = [*map(writer, points), *(v for pair in pairs for v in pair)]
            made = ir.Operation.create("tir.block", operands=values, attributes=dict(old.attributes.items()), regions=2)
        for source, target in zip(old.regions, made.regions, strict=True):
            for block in list(source.blocks):
                block.append_to(target)
        self.operation = made
        return made

    def set_points(self, points: Sequence[Index], guards: Sequence[Guard], keep_init: bool = True) -> None:
        """Sets the points and guards of the block, which may replace its operation. Guards that are not needed are dropped.

        The computations of the points are right before the block; computations of the old points are erased if unused.
        """
        self.fill()
        old = self.operation
        guards = needed(guards)
        with ir.InsertionPoint(old), old.location:
            written = Writer()
            pairs = [(written(g.index), emit.index_constant(g.limit)) for g in guards]
            values = [*map(written, points), *(v for pair in pairs for v in pair)]
            before = list(old.operands)
            is_kept = keep_init and len(values) == len(before)
            if not is_kept:
                made = ir.Operation.create("tir.block", operands=values, attributes=dict(old.attributes.items()), regions=2)
        if is_kept:
            for i, (value, found) in enumerate(zip(values, before, strict=True)):
                if value != found:
                    old.operands[i] = value
            drop_computations(before)
        else:
            for source, target in list(zip(old.regions, made.regions, strict=True))[not keep_init :]:
                for block in list(source.blocks):
                    block.append_to(target)
            drop(old)
            self.operation = made
        read = [written.as_read(i) for i in (*points, *(g.index for g in guards))]
        known = [i for i in read if i is not None]
        is_known = len(known) == len(read)
        self._points = known[: len(points)] if is_known else None
        self._guards = [Guard(i, g.limit) for i, g in zip(known[len(points) :], guards, strict=True)] if is_known else None


Member: TypeAlias = "Loop | Block | ir.Operation"
"""A loop, a block or an allocation (an operation)."""


def body_point(loop: Loop) -> ir.InsertionPoint:
    """The insertion point at the end of a loop body."""
    return ir.InsertionPoint.at_block_terminator(loop.body)
