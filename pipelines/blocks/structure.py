"""What a function of blocks and loops holds, by name: views of its operations, which tell and change them.

A view is of an operation as it stands. Names stay when operations are moved or rebuilt, so primitives look their operations up by name.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import func, ir, scf
from relayc.dialects.relay.attributes import read_size_attribute
from relayc.dialects.tir import names
from relayc.dialects.tir.block import PARALLEL, REDUCTION, block_name, extents_of, iterators_of
from relayc.pipelines.blocks.indices import Reader, Writer, substitute, variables
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.sizes import function_sizes, symbol_positions
from relayc.pipelines.tir import emit
from relayc.symbolic import Size, exact, proves, symbol


class ScheduleError(ValueError):
    """A primitive that cannot be applied: which one, to what, and why. The function is as it was."""


@dataclass(frozen=True)
class Guard:
    """A block does nothing where `index` is not smaller than `limit`."""

    index: Index
    limit: Size


class Place(Var):
    """The variable of a loop or an iterator: the same in all views of it."""

    def __init__(self, value: ir.Value, extent: Size, name: str) -> None:
        super().__init__(0, extent - 1, value, name=name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


class Loop:
    """A loop of a function.

    Attributes:
      operation: the scf.for.
    """

    def __init__(self, operation: ir.Operation, sizes: Mapping[ir.Value, Size]) -> None:
        self.operation = operation
        self._sizes = sizes

    @cached_property
    def name(self) -> str:
        return ir.StringAttr(self.operation.attributes[names.LOOP]).value

    @cached_property
    def extent(self) -> Size:
        return _size_of(self.operation.operands[1], self._sizes)

    @cached_property
    def var(self) -> Place:
        """Its variable, with the bounds of its values."""
        return Place(self.body.arguments[0], self.extent, self.name)

    @property
    def kind(self) -> str:
        attributes = self.operation.attributes
        return ir.StringAttr(attributes[names.KIND]).value if names.KIND in attributes else names.Kind.SERIAL

    @property
    def body(self) -> ir.Block:
        return self.operation.regions[0].blocks[0]

    @property
    def annotations(self) -> dict[str, ir.Attribute]:
        return read_annotations(self.operation)

    def members(self) -> list[ir.Operation]:
        """Loops, blocks and allocations directly in it, without computations of indices and the terminator."""
        return [op for op in _operations(self.body) if is_statement(op)]

    def set_kind(self, kind: str) -> None:
        if kind == names.Kind.SERIAL:
            if names.KIND in self.operation.attributes:
                del self.operation.attributes[names.KIND]
        else:
            self.operation.attributes[names.KIND] = ir.StringAttr.get(kind)

    def __repr__(self) -> str:
        return f"loop {self.name} of {self.extent}"


@dataclass(frozen=True)
class Access:
    """A load or store of a block.

    Attributes:
      operation: the memref.load or memref.store.
      buffer: the memref.
      indices: of the element, over the iterators of the block and the loops inside it.
      is_init: whether it stands in the init of the block.
    """

    operation: ir.Operation
    buffer: ir.Value
    indices: tuple[Index, ...]
    is_store: bool
    is_init: bool = False


class Block:
    """A block of a function.

    Attributes:
      operation: the tir.block.
      iterators: kind of each iterator; extents: of the iteration space.
      vars: a variable for each iterator, over its extent, in terms of which accesses are told.
    """

    def __init__(self, operation: ir.Operation, sizes: Mapping[ir.Value, Size]) -> None:
        self.operation = operation
        self._sizes = sizes

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
    def vars(self) -> list[Place]:
        return [Place(a, e, f"v{i}") for i, (e, a) in enumerate(zip(self.extents, self.arguments, strict=True))]

    def __repr__(self) -> str:
        return f"block {self.name}"

    @property
    def body(self) -> ir.Block:
        return self.operation.regions[1].blocks[0]

    @property
    def init(self) -> ir.Block | None:
        blocks = list(self.operation.regions[0].blocks)
        return blocks[0] if blocks else None

    @property
    def arguments(self) -> list[ir.Value]:
        """The iterators as the body sees them."""
        return list(self.body.arguments)

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

    def point_values(self) -> list[ir.Value]:
        return list(self.operation.operands)[: len(self.iterators)]

    def points(self, loops: Sequence[Loop], reader: Reader | None = None) -> list[Index]:
        """The value of each iterator, over the loops around the block."""
        reader = reader or self.reader(loops)
        found = [reader.read(v) for v in self.point_values()]
        if any(type(var) is Var for index in found for var in variables(index)):
            raise ScheduleError(f"{self}: expected points that are computed of loops by +, -, *, //, %, min and max, found others")
        return found

    def guards(self, loops: Sequence[Loop], reader: Reader | None = None) -> list[Guard]:
        """Where the block ends, over the loops around it."""
        pairs = list(self.operation.operands)[len(self.iterators) :]
        if not pairs:
            return []
        reader = reader or self.reader(loops)
        return [Guard(reader.read(v), reader.size(limit)) for v, limit in zip(pairs[::2], pairs[1::2], strict=True)]

    def reader(self, loops: Sequence[Loop]) -> Reader:
        """What reads the points and guards: values over these loops, and over the iterators of the block that it stands in."""
        known = {loop.var.value: Index.of(loop.var) for loop in loops}
        around = enclosing_block(self.operation)
        if around is not None:
            outer = Block(around, self._sizes)
            for region in (outer.init, outer.body):
                if region is not None:
                    known |= {a: Index.of(Place(a, v.extent, v.name)) for a, v in zip(region.arguments, outer.vars, strict=True)}
        return Reader(known, self._sizes)

    @property
    def annotations(self) -> dict[str, ir.Attribute]:
        return read_annotations(self.operation)

    def accesses(self, with_init: bool = True) -> list[Access]:
        """The loads and stores of the block in their order, over `vars` (and, of a block that holds loops, the variables of these)."""
        found: list[Access] = []
        for region, is_init in ((self.init, True), (self.body, False)):
            if region is None or (is_init and not with_init):
                continue
            reader = Reader({a: Index.of(v) for a, v in zip(region.arguments, self.vars, strict=True)}, self._sizes)
            for op in _walk(region):
                if op.name == "scf.for":
                    variable = op.regions[0].blocks[0].arguments[0]
                    reader.define(variable, Index.of(Place(variable, reader.size(op.operands[1]), "inner")))
                elif op.name == "tir.block":
                    for inside in op.regions:
                        for block in inside.blocks:
                            for argument, point in zip(block.arguments, op.operands, strict=False):
                                reader.define(argument, reader.read(point))
                if op.name in ("memref.load", "memref.store"):
                    store = op.name == "memref.store"
                    buffer, *at = list(op.operands)[store:]
                    found.append(Access(op, buffer, tuple(map(reader.read, at)), store, is_init))
        return found

    def loads(self) -> list[Access]:
        return [a for a in self.accesses() if not a.is_store]

    def stores(self, with_init: bool = False) -> list[Access]:
        return [a for a in self.accesses(with_init) if a.is_store]

    def outputs(self) -> list[ir.Value]:
        """The buffers that it writes, each once, in the order of its stores."""
        return list(dict.fromkeys(op.operands[1] for op in self._memory("memref.store")))

    def inputs(self) -> list[ir.Value]:
        """The buffers that it reads and does not write, each once, in the order of its loads."""
        written = self.outputs()
        return [b for b in dict.fromkeys(op.operands[0] for op in self._memory("memref.load")) if b not in written]

    def _memory(self, name: str) -> Iterator[ir.Operation]:
        """The operations of a name in the body."""
        return (op for op in _walk(self.body) if op.name == name)

    def set_points(
        self, points: Sequence[Index | ir.Value], guards: Sequence[Guard], keep_init: bool = True, written: Writer | None = None
    ) -> "Block":
        """The block at other points; gives the new view, as the operation may be another one. Guards that need not stand are left out.

        Points are indices, or values that stay. The operations that compute the points stand right before the block; those of the old ones
        go where nothing uses them.

        Args:
          written: knows values that stay.
        """
        old = self.operation
        with ir.InsertionPoint(old), old.location:
            written = written or Writer()
            pairs = [(written(g.index), emit.index_constant(g.limit)) for g in needed(guards)]
            values = [*(p if isinstance(p, ir.Value) else written(p) for p in points), *(v for pair in pairs for v in pair)]
            before = list(old.operands)
            if keep_init and len(values) == len(before):
                for i, (value, found) in enumerate(zip(values, before, strict=True)):
                    if value != found:
                        old.operands[i] = value
                _drop_computations(before)
                return self
            made = ir.Operation.create("tir.block", operands=values, attributes=dict(old.attributes.items()), regions=2)
        for source, target in list(zip(old.regions, made.regions, strict=True))[not keep_init :]:
            for block in list(source.blocks):
                block.append_to(target)
        drop(old)
        return Block(made, self._sizes)


def _size_of(value: ir.Value, sizes: Mapping[ir.Value, Size]) -> Size:
    """The size that a value of the function is."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
        return ir.IntegerAttr(owner.operation.attributes["value"]).value
    return Reader({}, sizes).size(value)


def enclosing_block(operation: ir.Operation) -> ir.Operation | None:
    """The tir.block that a block or loop stands in, if any."""
    parent = operation.parent
    while parent is not None and parent.operation.name != "func.func":
        if parent.operation.name == "tir.block":
            return parent.operation
        parent = parent.operation.parent
    return None


def holds(guard: Guard) -> bool:
    """Whether a guard is proved to hold everywhere."""
    _, high = guard.index.bounds()
    return proves(lambda: high < guard.limit)


def needed(guards: Sequence[Guard]) -> list[Guard]:
    """The guards without those that hold everywhere, or wherever another one does."""
    found: list[Guard] = []
    for guard in guards:
        if not holds(guard) and not any(_implies(other, guard) for other in found):
            found = [other for other in found if not _implies(guard, other)] + [guard]
    return found


def _implies(known: Guard, guard: Guard) -> bool:
    """Whether it is proved that a guard holds where another one does."""
    if not guard.index.terms:
        return False
    var, factor = next(iter(guard.index.terms.items()))
    ratio = exact(known.index.coefficient(var), factor)
    if ratio is None or not proves(lambda: ratio >= 1):
        return False
    # ratio * guard.index <= known.index + most, and known.index is smaller than its limit.
    _, most = (guard.index * ratio - known.index).bounds()
    return proves(lambda: known.limit + most <= ratio * guard.limit)


def point_computations(operation: ir.Operation) -> list[ir.Operation]:
    """The computations of the points of a block, which stand before it, in order; of a loop none."""
    found: dict[ir.Operation, None] = {}
    here = operation.block

    def visit(op: ir.Operation) -> None:
        for value in op.operands:
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.operation.block == here and owner.operation.name.startswith(_COMPUTATIONS):
                visit(owner.operation)
                found[owner.operation] = None

    if operation.name == "tir.block" and operation.parent.name != "func.func":
        visit(operation)
    return list(found)


def drop(operation: ir.Operation) -> None:
    """Erases an operation, and the computations of indices in loops that then are of no use; those of the function stay (see editing)."""
    sources = list(operation.operands)
    operation.erase()
    _drop_computations(sources)


def _drop_computations(values: Iterable[ir.Value]) -> None:
    """Erases the computations of indices in loops that nothing uses."""
    left, gone = list(values)[::-1], set()
    while left:
        value = left.pop()
        if value in gone:
            continue
        owner = value.owner
        if isinstance(owner, ir.Block) or next(iter(value.uses), None) is not None:
            continue
        operation = owner.operation
        if operation.name.startswith(_COMPUTATIONS) and operation.parent.operation.name != "func.func":
            gone.add(value)
            left += operation.operands
            operation.erase()


_COMPUTATIONS = ("affine.", "arith.")


def is_statement(op: ir.Operation) -> bool:
    """Whether an operation does something: a loop, a block, an allocation; no computation of an index, no terminator."""
    return op.name in ("scf.for", "tir.block", "memref.alloc")


def _operations(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations]


def _walk(block: ir.Block) -> Iterator[ir.Operation]:
    """Operations in a block and inside them, outer ones first."""
    for op in _operations(block):
        yield op
        for region in op.regions:
            for inner in region.blocks:
                yield from _walk(inner)


def read_annotations(operation: ir.Operation) -> dict[str, ir.Attribute]:
    """The hints of a loop or block, by name."""
    attributes = operation.attributes
    return {a.name: a.attr for a in ir.DictAttr(attributes[names.ANNOTATIONS])} if names.ANNOTATIONS in attributes else {}


class Nest:
    """A function of blocks and loops: its buffers, loops and blocks by name."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.sizes: dict[ir.Value, Size] = {
            function.regions[0].blocks[0].arguments[i]: symbol(name) for name, i in symbol_positions(function).items()
        }
        self._contents: _Contents | None = None
        """What there is by name; only outside of `editing`, where nothing changes."""
        self._is_edited = False

    @property
    def entry(self) -> ir.Block:
        return self.function.regions[0].blocks[0]

    @property
    def name(self) -> str:
        return ir.StringAttr(self.function.attributes["sym_name"]).value

    @contextmanager
    def editing(self) -> Iterator[None]:
        """In it operations may be built: constants stand at the start of the function, each once, and symbols have their values."""
        self._contents, self._is_edited = None, True
        try:
            with self.function.context, ir.Location.unknown():
                with emit.constants_at(self.entry, reuse=True), function_sizes(self.function):
                    yield
                self._sweep()
        finally:
            self._is_edited = False

    def _sweep(self) -> None:
        """Erases computations and constants at the start of the function that nothing uses."""
        for op in reversed(_operations(self.entry)):
            if op.name.startswith(_COMPUTATIONS) and next(iter(op.results[0].uses), None) is None:
                op.erase()

    def _found(self) -> "_Contents":
        if self._contents is not None:
            return self._contents
        found = _Contents({}, {}, {})
        self._find(self.entry, found)
        if not self._is_edited:
            self._contents = found
        return found

    def _find(self, block: ir.Block, found: "_Contents") -> None:
        """Notes what a block of operations holds."""
        for view in block.operations:
            op = view.operation
            name = op.name
            if name == "scf.for":
                if names.LOOP in op.attributes:
                    loop = self.loop_view(op)
                    found.loops[loop.name] = loop
                self._find(op.regions[0].blocks[0], found)
            elif name == "tir.block":
                made = self.block_view(op)
                found.blocks[made.name] = made
                for region in op.regions:
                    for inner in region.blocks:
                        self._find(inner, found)
            elif name == "memref.alloc":
                found.allocations[ir.StringAttr(op.attributes[names.BUFFER]).value] = op.results[0]

    def loop_view(self, operation: ir.Operation) -> Loop:
        if self._contents is not None and names.LOOP in operation.attributes:
            return self._contents.loops[ir.StringAttr(operation.attributes[names.LOOP]).value]
        return Loop(operation, self.sizes)

    def block_view(self, operation: ir.Operation) -> Block:
        return Block(operation, self.sizes) if self._contents is None else self._contents.blocks[block_name(operation)]

    def remembered(self, key: tuple, make: Callable[[], Any]) -> Any:
        """What `make` gives, which is computed of the function as it stands: once, until it is edited."""
        if self._contents is None:
            return make()
        if key not in self._contents.remembered:
            self._contents.remembered[key] = make()
        return self._contents.remembered[key]

    def loops(self) -> dict[str, Loop]:
        """The loops by name, outer ones first, in the order of the text."""
        return dict(self._found().loops)

    def blocks(self) -> dict[str, Block]:
        """The blocks by name, in the order of the text; of a block in a block also the inner ones."""
        return dict(self._found().blocks)

    def buffers(self) -> dict[str, ir.Value]:
        """The buffers by name: arguments, then allocations in the order of the text."""
        return self._arguments | self._found().allocations

    @cached_property
    def _arguments(self) -> dict[str, ir.Value]:
        """The buffers that are arguments, by name."""
        described = zip(self.entry.arguments, value_attributes(self.function), strict=True)
        return {ir.StringAttr(given[names.BUFFER]).value: value for value, given in described if names.BUFFER in given}

    def buffer_name(self, buffer: ir.Value) -> str:
        """The name of a buffer."""
        owner = buffer.owner
        if not isinstance(owner, ir.Block):
            return ir.StringAttr(owner.operation.attributes[names.BUFFER]).value
        return next((name for name, value in self._arguments.items() if value == buffer), "?")

    def shape(self, buffer: ir.Value) -> tuple[Size, ...]:
        """The shape of a buffer."""
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            attributes = value_attributes(self.function)[ir.BlockArgument(buffer).arg_number]
            if names.SHAPE in attributes:
                return tuple(map(read_size_attribute, ir.ArrayAttr(attributes[names.SHAPE])))
            return tuple(buffer.type.shape)
        given = iter(owner.operation.operands)
        reader = Reader({}, self.sizes)
        dynamic = ir.ShapedType.get_dynamic_size()
        return tuple(reader.size(next(given)) if d == dynamic else d for d in buffer.type.shape)

    def scope(self, buffer: ir.Value) -> str:
        """Where a buffer lies: "global" for arguments."""
        owner = buffer.owner
        if isinstance(owner, ir.Block) or names.SCOPE not in owner.operation.attributes:
            return "global"
        return ir.StringAttr(owner.operation.attributes[names.SCOPE]).value

    def is_output(self, buffer: ir.Value) -> bool:
        owner = buffer.owner
        return isinstance(owner, ir.Block) and names.OUTPUT in value_attributes(self.function)[ir.BlockArgument(buffer).arg_number]

    # ---- places

    def loops_around(self, operation: ir.Operation) -> list[Loop]:
        """The loops around a block or loop, outermost first; of what is in a block those in the same block."""
        found = []
        parent = operation.parent
        while parent is not None and parent.operation.name not in ("func.func", "tir.block"):
            if parent.operation.name == "scf.for":
                found.append(self.loop_view(parent.operation))
            parent = parent.operation.parent
        return found[::-1]

    def blocks_in(self, operation: ir.Operation) -> list[Block]:
        """The outermost blocks inside of a loop, in order; a block itself."""
        if operation.name == "tir.block":
            return [self.block_view(operation)]
        found: list[Block] = []
        for op in _operations(operation.regions[0].blocks[0]):
            if op.name in ("scf.for", "tir.block"):
                found += self.blocks_in(op)
        return found

    def at_root(self) -> list[ir.Operation]:
        """Loops, blocks and allocations of the function itself."""
        return [op for op in _operations(self.entry) if is_statement(op)]

    def readers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that read a buffer, in order, without those that only read what they write themselves."""
        return [b for b in self.outer_blocks() if buffer in b.inputs()]

    def writers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that write a buffer, in order."""
        return [b for b in self.outer_blocks() if any(a.buffer == buffer for a in b.stores(with_init=True))]

    def outer_blocks(self) -> list[Block]:
        """The blocks that are in no other block, in the order of the text."""
        return [b for op in self.at_root() if op.name != "memref.alloc" for b in self.blocks_in(op)]

    # ---- names

    def free_loop(self, name: str) -> str:
        """A name that no loop has yet: the name itself, or with a number behind."""
        return _free(name, self.loops())

    def free_block(self, name: str) -> str:
        """A name that no block has yet."""
        return _free(name, self.blocks())

    def free_buffer(self, name: str) -> str:
        """A name that no buffer has yet."""
        return _free(name, self.buffers())

    # ---- building

    def make_loop(self, name: str, extent: Size, kind: str = names.Kind.SERIAL) -> Loop:
        """A loop without a body at the ambient insertion point; its name must be free."""
        bounds = [emit.index_constant(0), emit.index_constant(extent), emit.index_constant(1)]
        operation = scf.ForOp(*bounds).operation
        operation.attributes[names.LOOP] = ir.StringAttr.get(name)
        with ir.InsertionPoint(operation.regions[0].blocks[0]):
            scf.YieldOp([])
        made = self.loop_view(operation)
        made.set_kind(kind)
        return made

    def make_loops(self, wanted: Sequence[tuple[str, Size]]) -> list[Loop]:
        """Nested loops at the ambient insertion point, the outermost first, whose names may get a number."""
        made: list[Loop] = []
        place = ir.InsertionPoint.current
        taken = set(self._found().loops)
        for name, extent in wanted:
            free = _free(name, taken)
            taken.add(free)
            with place:
                made.append(self.make_loop(free, extent))
            place = body_point(made[-1])
        return made

    def replace_loop(self, old: Loop, value: Index, inner: Loop, guards: Sequence[Guard] = ()) -> None:
        """Moves what is in a loop to the end of another, where its variable is `value`, and erases the loop.

        Args:
          guards: further guards of the blocks in it.
        """
        move_body(old, inner)
        for block in self.blocks_in(inner.operation):
            replace_points(block, [*self.loops_around(block.operation), old], {old.var: value}, guards)
        drop(old.operation)


@dataclass(frozen=True)
class _Contents:
    """What a function holds, by name."""

    loops: dict[str, Loop]
    blocks: dict[str, Block]
    allocations: dict[str, ir.Value]
    remembered: dict[tuple, Any] = field(default_factory=dict)


def _free(name: str, taken: Container[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}" if name[-1].isdigit() else f"{name}{number}"
    return found


def make_buffer(name: str, shape: Sequence[Size], element: ir.Type, scope: str = "global") -> ir.Value:
    """An allocation at the ambient insertion point."""
    dynamic = [emit.index_constant(d) for d in shape if not isinstance(d, int)]
    type_ = memref_type(shape, element)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(dynamic), 0]),
        names.BUFFER: ir.StringAttr.get(name),
    }
    if scope != "global":
        attributes[names.SCOPE] = ir.StringAttr.get(scope)
    return emit.create("memref.alloc", [type_], dynamic, attributes)


def memref_type(shape: Sequence[Size], element: ir.Type) -> ir.MemRefType:
    """The type of a buffer of a shape, whose sizes may be expressions."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.MemRefType.get([d if isinstance(d, int) else dynamic for d in shape], element)


def body_point(loop: Loop) -> ir.InsertionPoint:
    """Where operations go that are to be last in a loop."""
    return ir.InsertionPoint.at_block_terminator(loop.body)


def move_body(source: Loop, target: Loop) -> None:
    """Moves all that is in a loop to the end of another one."""
    end = _operations(target.body)[-1]
    for op in _operations(source.body)[:-1]:
        op.move_before(end)


def replace_points(block: Block, loops: Sequence[Loop], point: Mapping[Var, Index], extra: Sequence[Guard] = ()) -> Block:
    """The block where variables of loops are what `point` says, with further guards; `loops` are all that its points are over."""
    reader = block.reader(loops)
    old = [*block.points(loops, reader), *(g.index for g in block.guards(loops, reader))]
    new = [substitute(index, point) for index in old]
    count = len(block.iterators)
    operands = list(block.operation.operands)
    values = [*operands[:count], *operands[count::2]]
    written = Writer({b.key: v for v, a, b in zip(values, old, new, strict=True) if a is b})
    limits = [reader.size(v) for v in operands[count + 1 :: 2]]
    guards = [Guard(index, limit) for index, limit in zip(new[count:], limits, strict=True)]
    return block.set_points(new[:count], [*guards, *extra], written=written)
