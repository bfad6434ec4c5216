"""Loops and blocks of a function that is being scheduled: a tree, of which `Nest.write` makes operations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.size_attribute import size_attribute
from relayc.dialects.tir import names
from relayc.dialects.tir.block import PARALLEL, REDUCTION
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.tree.guards import Guard, needed
from relayc.pipelines.tir.tree.indices import Reader, Writer, canonical, substitute, variables
from relayc.pipelines.tir.tree.operations import operations_in, read_annotations, write_annotations
from relayc.pipelines.tir.tree.steps import Access, Contents, NotSteps, Step, copy_steps, read_steps, write_steps
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.pipelines.tir.tree.function import Function


class ScheduleError(ValueError):
    """A primitive cannot be applied; the message gives the primitive, its target and the reason. The function is unchanged."""


class LoopVar(Var):
    """The variable of a loop; it has a value once the loop is written."""

    def __init__(self, value: ir.Value | None, extent: Size, name: str) -> None:
        super().__init__(0, extent - 1, value, name=name)


class ValueVar(LoopVar):
    """An iterator as an argument of the init or the body of a block; equal to all others of the argument."""

    def __init__(self, value: ir.Value, extent: Size, name: str) -> None:
        super().__init__(value, extent, name)
        self._hash = hash(value)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ValueVar) and self.value == other.value)

    def __hash__(self) -> int:
        return self._hash


@dataclass(eq=False)
class Loop:
    """A loop of a function.

    Attributes:
      operation: the scf.for; None until the loop is written.
      around: the loops around it in the same block, outermost first; inside: its direct members.
      scope: the enclosing block, if any. Nest sets these three.
    """

    name: str
    extent: Size
    location: ir.Location
    operation: ir.Operation | None = None

    def __post_init__(self) -> None:
        op = self.operation
        self.kind: str = names.Kind.SERIAL
        if op is not None and names.KIND in op.attributes:
            self.kind = ir.StringAttr(op.attributes[names.KIND]).value
        self.annotations: dict[str, ir.Attribute] = {} if op is None else read_annotations(op)
        self.var = LoopVar(None if op is None else op.regions[0].blocks[0].arguments[0], self.extent, self.name)
        self.around: tuple[Loop, ...] = ()
        self.inside: list[Member] = []
        self.scope: Block | None = None

    @property
    def body(self) -> ir.Block:
        assert self.operation is not None, f"{self} is not written"
        return self.operation.regions[0].blocks[0]

    def write(self) -> None:
        """Writes the loop at the ambient insertion point, without its contents. The old operation stays."""
        attributes = {} if self.operation is None else dict(self.operation.attributes.items())
        for key in (names.KIND, names.ANNOTATIONS):
            attributes.pop(key, None)
        attributes[names.LOOP] = ir.StringAttr.get(self.name)
        if self.kind != names.Kind.SERIAL:
            attributes[names.KIND] = ir.StringAttr.get(self.kind)
        if self.annotations:
            attributes[names.ANNOTATIONS] = ir.DictAttr.get(self.annotations)
        bounds = [emit.index_constant(0), emit.index_constant(self.extent), emit.index_constant(1)]
        with self.location:
            self.operation = emit.serial_loop(bounds, attributes=attributes)
            emit.yield_values([], ir.InsertionPoint(self.body))
        self.var.value = self.body.arguments[0]

    def __repr__(self) -> str:
        return f"loop {self.name} of {self.extent}"


class Block:
    """A block of a function.

    Attributes:
      operation: a tir.block with the contents; its operands, and its place, are up to date once the function is written.
      iterators: kind of each iterator; extents: of the iteration space.
      vars: a variable for each iterator, over its extent; accesses are expressed in these.
      around, scope: see Loop.
      starts, inside: the direct members of its init, and of its body.
    """

    def __init__(
        self,
        operation: ir.Operation,
        function: "Function",
        name: str,
        iterators: Sequence[str],
        extents: Sequence[Size],
    ) -> None:
        self.operation, self.name, self.iterators, self.extents = operation, name, list(iterators), list(extents)
        self._function = function
        self._contents: Contents | None = None
        self._read_at = 0
        """The number of edits of the function when the accesses of blocks in it were read."""
        self._is_written = True
        self.around: tuple[Loop, ...] = ()
        self.starts: list[Member] = []
        self.inside: list[Member] = []
        self.scope: Block | None = None
        self._place: tuple[Sequence[Index], Sequence[Guard]] | None = None

    def __repr__(self) -> str:
        return f"block {self.name}"

    # ---- iterators

    @cached_property
    def vars(self) -> list[ValueVar]:
        return self.iterators_in(self.operation.regions[1].blocks[0])

    def iterators_in(self, region: ir.Block) -> list[ValueVar]:
        """The iterators as arguments of its init or body."""
        return [ValueVar(a, e, f"v{i}") for i, (e, a) in enumerate(zip(self.extents, region.arguments, strict=True))]

    def set_extents(self, extents: Sequence[Size]) -> None:
        """Changes the extents of the iterators of a block whose contents are steps."""
        old, found = self.vars, self.contents
        self.extents = list(extents)
        self.operation.attributes["extents"] = ir.ArrayAttr.get([size_attribute(e) for e in extents])
        del self.__dict__["vars"]
        point: dict[Var, Index] = dict(zip(old, map(Index.of, self.vars), strict=True))
        init = None if found.init is None else copy_steps(found.init, point, True)
        self.set_contents(Contents.of_steps(init, copy_steps(found.body or (), point, False)))

    @property
    def is_reduction(self) -> bool:
        return REDUCTION in self.iterators

    @property
    def parallel(self) -> list[int]:
        """Positions of the parallel iterators."""
        return [i for i, kind in enumerate(self.iterators) if kind == PARALLEL]

    @property
    def reduction(self) -> list[int]:
        """Positions of the reduction iterators."""
        return [i for i, kind in enumerate(self.iterators) if kind == REDUCTION]

    # ---- the place in the loops

    @property
    def points(self) -> Sequence[Index]:
        """The value of each iterator, over the loops around the block and the iterators of the enclosing block."""
        return self.read_place()[0]

    @property
    def guards(self) -> Sequence[Guard]:
        """The guards of the block, likewise."""
        return self.read_place()[1]

    def read_place(self) -> tuple[Sequence[Index], Sequence[Guard]]:
        """Its points and guards: read from the operation if they were not set."""
        if self._place is None:
            known = {loop.var.value: Index.of(loop.var) for loop in self.around}
            if self.scope is not None:
                known |= {v.value: Index.of(v) for region, *_ in self.scope.parts() for v in self.scope.iterators_in(region)}
            reader, operands, count = Reader(known, self._function.sizes), list(self.operation.operands), len(self.iterators)
            points = [reader.read(v) for v in operands[:count]]
            if any(type(var) is Var for index in points for var in variables(index)):
                raise ScheduleError(f"{self}: expected points that are computed of loops by +, -, *, //, %, min and max, found others")
            pairs = zip(operands[count::2], operands[count + 1 :: 2], strict=True)
            self._place = points, [Guard(reader.read(v), reader.size(limit)) for v, limit in pairs]
        return self._place

    def place(self, points: Sequence[Index], guards: Sequence[Guard]) -> None:
        """Sets the points and guards of the block. Guards that are not needed are dropped."""
        self._place = [canonical(i) for i in points], [Guard(canonical(g.index), g.limit) for g in needed(guards)]

    def write(self) -> None:
        """Writes the block at the ambient insertion point and moves its contents there. The old operation stays, without regions."""
        old, writer = self.operation, Writer()
        with old.location:
            pairs = [(writer(g.index), emit.index_constant(g.limit)) for g in self.guards]
            values = [*map(writer, self.points), *(v for pair in pairs for v in pair)]
            made = ir.Operation.create("tir.block", operands=values, attributes=dict(old.attributes.items()), regions=2)
        for source, target in zip(old.regions, made.regions, strict=True):
            for block in list(source.blocks):
                block.append_to(target)
        self.operation = made

    # ---- annotations

    @property
    def annotations(self) -> dict[str, ir.Attribute]:
        return read_annotations(self.operation)

    @annotations.setter
    def annotations(self, annotations: dict[str, ir.Attribute]) -> None:
        write_annotations(self.operation, annotations)

    # ---- contents

    @property
    def body(self) -> ir.Block:
        self.fill()
        return self.operation.regions[1].blocks[0]

    @property
    def init(self) -> ir.Block | None:
        self.fill()
        return next(iter(self.operation.regions[0].blocks), None)

    def parts(self) -> "list[tuple[ir.Block, list[Member], bool]]":
        """Its init, if it has one, and its body: the region, its members, and whether it is the init."""
        body = (self.body, self.inside, False)
        return [body] if self.init is None else [(self.init, self.starts, True), body]

    def add_init(self) -> ir.Block:
        """Adds an empty init."""
        return self.operation.regions[0].blocks.append(*[ir.IndexType.get()] * len(self.extents))

    @property
    def has_init(self) -> bool:
        return (self._contents is not None and self._contents.init is not None) or len(self.operation.regions[0].blocks) > 0

    def remove_init(self) -> None:
        """Removes the init, if it is written and if it is not."""
        for init in list(self.operation.regions[0].blocks):
            with ir.InsertionPoint(self.operation), ir.Location.unknown():
                gone = ir.Operation.create("tir.block", regions=1)  # a block of a region is erased with an operation
            init.append_to(gone.regions[0])
            gone.erase()
        if self._contents is not None:
            self._contents = Contents.of_steps(None, self._contents.body)

    def fill(self) -> None:
        """Writes the steps that are not written yet."""
        found = self._contents
        if self._is_written or found is None:
            return
        self._is_written = True
        with self._function.building(), self.operation.location:
            if found.init is not None:
                target = next(iter(self.operation.regions[0].blocks), None) or self.add_init()
                with ir.InsertionPoint(target):
                    write_steps(found.init, dict(zip(self.vars, map(Index.of, self.iterators_in(target)), strict=True)))
            if found.body is not None:
                with ir.InsertionPoint(self.body):
                    write_steps(found.body, {})

    def set_contents(self, contents: Contents) -> None:
        """Replaces the contents; an init or body of blocks stays."""
        if self._is_written:
            for region, steps in zip(self.operation.regions, (contents.init, contents.body), strict=True):
                for op in reversed([op for block in region.blocks for op in operations_in(block)]) if steps is not None else ():
                    op.erase()
        self._contents, self._is_written = contents, False
        self._function.edits += 1

    def changed(self) -> None:
        """Records that buffers or indices of accesses changed."""
        found = self.contents
        found.changed()
        self.set_contents(found)

    @property
    def contents(self) -> Contents:
        """Its accesses and steps. Raises ScheduleError if it holds operations other than operations on elements, and blocks in loops."""
        if self._contents is None or ((self.starts or self.inside) and self._read_at != self._function.edits):
            self._contents, self._read_at = self._read(), self._function.edits
        return self._contents

    def _read(self) -> Contents:
        found: dict[bool, list[Step]] = {}
        accesses: list[Access] = []
        for region, inside, is_init in self.parts():
            if members := blocks_of(inside):
                accesses += self._nested(region, members, is_init)
                continue
            try:
                steps = found[is_init] = read_steps(region, self.vars, self._function.sizes, is_init)
            except NotSteps as error:
                raise ScheduleError(f"{self}: expected operations on elements, found {error}") from None
            accesses += [s.access for s in steps if s.access is not None]
        return Contents(accesses, found.get(True), found.get(False))

    def _nested(self, region: ir.Block, members: "Sequence[Block]", is_init: bool) -> Iterator[Access]:
        """The accesses of the blocks in a region."""
        own: dict[Var, Index] = dict(zip(self.iterators_in(region), map(Index.of, self.vars), strict=True)) if is_init else {}
        for block in members:
            point: dict[Var, Index] = {v: substitute(p, own) for v, p in zip(block.vars, block.points, strict=True)}
            for a in block.accesses():
                yield Access(a.buffer, tuple(substitute(i, point) for i in a.indices), a.is_store, is_init)

    def accesses(self) -> Sequence[Access]:
        """The loads and stores of the block in order, over `vars` (and over the variables of its inner loops)."""
        return self.contents.accesses

    def steps(self, is_init: bool) -> list[Step] | None:
        """The steps of its init or of its body, over `vars`; None if it has no init, or they hold blocks."""
        return self.contents.init if is_init else self.contents.body

    def loads(self) -> list[Access]:
        return [a for a in self.accesses() if not a.is_store]

    def stores(self) -> list[Access]:
        return [a for a in self.accesses() if a.is_store]

    def results(self) -> list[Access]:
        """The stores of its body."""
        return [a for a in self.stores() if not a.is_init]

    def stores_to(self, buffer: ir.Value) -> bool:
        """Whether the block writes a buffer, including writes of the init."""
        return buffer in self.contents.stored

    def outputs(self) -> Sequence[ir.Value]:
        """The buffers that the body writes, each once, in the order of its stores."""
        return self.contents.outputs

    def inputs(self) -> Sequence[ir.Value]:
        """The buffers that the body reads and does not write, each once, in the order of its loads."""
        return self.contents.inputs


Member: TypeAlias = "Loop | Block | ir.Operation"
"""A loop, a block or an allocation (an operation)."""


def blocks_of(members: "Sequence[Member]") -> list[Block]:
    """The outermost blocks among the members and in their loops, in order."""
    found: list[Block] = []
    for member in members:
        if isinstance(member, Block):
            found.append(member)
        elif isinstance(member, Loop):
            found += blocks_of(member.inside)
    return found
