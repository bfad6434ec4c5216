"""Tensor intrinsics: pieces of computation that are told twice, what they compute and how, so that schedules put one for the other."""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir import names
from relayc.pipelines.context.backend import backend_modules
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import FAR, Index, Var
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.tree.views import ScheduleError
from relayc.pipelines.tir.values import vectors
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.pipelines.context.target import Target

ANNOTATION = "tensor_intrin"
"""Annotation of a block: the name of the intrinsic that it is lowered to."""


@dataclass(frozen=True)
class Operand:
    """Where a tensor of an intrinsic's description lies.

    Attributes:
      name: of the tensor in the description.
      buffer: a flat memref.
      offset: the element of it that is the tensor's first one.
      strides: for each dimension, by how many elements its neighbours are apart.
      shape: of the tensor, with the sizes of this use.
      is_output: whether the description computes it.
      has_room: whether the buffer has elements for so much of what may be partial, though there may be less.
      lines: of a buffer that lies in permuted lines, of which `within` is the element of a line that is the tensor's first one; `offset` is
        the line's first one then, and `strides` are those in a block of lines.
    """

    name: str
    buffer: ir.Value
    offset: Index
    strides: tuple[Size, ...]
    shape: tuple[Size, ...]
    is_output: bool
    has_room: Callable[[str, int], bool]
    lines: "Lines | None" = None
    within: int = 0

    @property
    def element(self) -> ir.Type:
        """The type of an element."""
        return self.buffer.type.element_type

    def at(self, *indices: "Index | Size | ir.Value") -> Index:
        """Where an element of the tensor is in the buffer."""
        found = self.offset
        for index, stride in zip(indices, self.strides, strict=True):
            given = Index.of(Var(-FAR, FAR, index)) if isinstance(index, ir.Value) else Index.of(index)
            found += given * stride
        return found

    def value_at(self, *indices: "Index | Size | ir.Value") -> ir.Value:
        """This as a value of type index at the ambient insertion point, for memref.load, vector.load, amx.tile_load."""
        return emit.materialize(self.at(*indices))

    def load(self, *indices: "Index | Size | ir.Value", lanes: int = 1) -> ir.Value:
        """An element; or a vector of as many that lie side by side from one on."""
        if lanes == 1:
            return emit.create("memref.load", [self.element], [self.buffer, self.value_at(*indices)])
        return vectors.load(self.buffer, self.at(*indices), lanes)

    def store(self, value: ir.Value, *indices: "Index | Size | ir.Value") -> None:
        """Stores an element; or a vector to those that lie side by side from one on."""
        if emit.is_vector(value):
            vectors.store(value, self.buffer, self.at(*indices))
        else:
            emit.create("memref.store", [], [value, self.buffer, self.value_at(*indices)])


@dataclass(frozen=True)
class Lines:
    """How a shared buffer lies that copies of boxes write and products by groups of warps read: in lines of 128 bytes, of eight of which
    chunks of 16 bytes are permuted.

    What follows along the innermost dimension is cut into lines, and all lines with the same part of it are a block.

    Attributes:
      elements: of a line.
      count: lines of a block; blocks: how many there are.
    """

    elements: int
    count: int
    blocks: int

    @property
    def block(self) -> int:
        """Elements of a block."""
        return self.elements * self.count

    @property
    def size(self) -> int:
        """Elements of the buffer."""
        return self.block * self.blocks


@dataclass(frozen=True)
class Fragments:
    """How a tensor lies in the registers of the threads of a warp, or of a group of four: in tiles, of each of which a thread has some.

    Its buffer has scope "warp" or "warpgroup", and only tensor intrinsics use it.

    Attributes:
      layout: a name for which thread has which element: all intrinsics that use a buffer must have the same.
      tile: for each dimension of the tensor which axis of a tile it is, by name, and how many elements a tile has there.
      registers: of a thread, for a tile.
      register: their type, as MLIR writes it.
      threads: that have it: 32 of a warp, or 128 of a group of warps.
    """

    layout: str
    tile: tuple[tuple[str, int], ...]
    registers: int
    register: str
    threads: int = WARP


@dataclass(frozen=True)
class FragmentOperand:
    """A tensor of an intrinsic's description in registers: tiles by their numbers, from 0 in each dimension.

    Attributes:
      load: gives the registers of a tile.
      store: sets those of a tile.
    """

    load: "Callable[..., list[ir.Value]]"
    store: "Callable[..., None]"


@dataclass(frozen=True)
class TensorCall:
    """A use of an intrinsic: what a Python implementation is given.

    It emits operations at the ambient insertion point that do what the description says, of these operands. The elements of the innermost
    dimension of an operand lie side by side, but for the tensors that the intrinsic has as `strided`.

    Attributes:
      operands: in memory, by the name of the tensor in the description; fragments: those in registers of several threads.
      sizes: of the symbols of the description, by name.
      accumulates: whether the outputs go on from what they hold (a reduction that began before). Where the intrinsic does not start by
        itself this is so for every reduction, and its start has been stored.
      target: what it is compiled for.
      counts: how much there is of what may be `partial`, by name: a number, or an index over what is emitted. What is beyond is not
        to be read nor written, unless an operand has room there.
      lane: the number of the thread in its warp, or in its group of warps, of an intrinsic that has fragments: all these threads compute
        it together.
    """

    operands: Mapping[str, Operand]
    sizes: Mapping[str, Size]
    accumulates: bool
    target: "Target"
    counts: Mapping[str, Index] = field(default_factory=dict)
    fragments: Mapping[str, FragmentOperand] = field(default_factory=dict)
    lane: "ir.Value | None" = None

    def __getitem__(self, name: str) -> Operand:
        """The operand of a name."""
        return self.operands[name]


@dataclass(frozen=True)
class Asynchronous:
    """How threads wait for what they began.

    Attributes:
      commit: makes a group of what was begun since the last one.
      wait: waits until at most so many of the last groups are on their way.
    """

    commit: Callable[[], None]
    wait: Callable[[int], None]


Implementation: TypeAlias = "Callable[[TensorCall], None] | str"


@dataclass(frozen=True)
class TensorIntrin:
    """A tensor intrinsic.

    Attributes:
      name: under which schedules find it.
      desc: what it computes: the text of a module of one te function.
      impl: how: a function that emits it (see TensorCall), or the text of a module of one function of blocks and loops, whose arguments
        have the names of those of the description.
      starts: whether the implementation begins a reduction by itself where `TensorCall.accumulates` is false.
      strided: tensors whose elements along the innermost dimension may lie apart.
      uses_tiles: whether the implementation has operations on matrix tiles (AMX).
      partial: what there may be less of than the description says, by name: how often each loop of the description counts.
      fragments: tensors that lie in registers of a warp, or of a group of warps.
      lines: tensors whose shared buffers lie in permuted lines (see Lines).
      asynchronous: how what implementations begin is waited for; None where they are done when their operations are.
    """

    name: str
    desc: str
    impl: Implementation
    starts: bool = False
    strided: tuple[str, ...] = ()
    uses_tiles: bool = False
    partial: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    fragments: Mapping[str, Fragments] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    asynchronous: Asynchronous | None = None

    _REGISTRY: ClassVar[dict[str, "TensorIntrin"]] = {}
    _FAMILIES: ClassVar[dict[str, tuple[re.Pattern[str], Callable[..., "TensorIntrin"]]]] = {}

    @staticmethod
    def register(
        name: str,
        desc: IRModule | str,
        impl: "Callable[[TensorCall], None] | IRModule | str",
        starts: bool = False,
        strided: Sequence[str] = (),
        uses_tiles: bool = False,
        partial: Mapping[str, Mapping[str, int]] | None = None,
        fragments: Mapping[str, Fragments] | None = None,
        lines: Sequence[str] = (),
        asynchronous: Asynchronous | None = None,
        override: bool = False,
    ) -> "TensorIntrin":
        """Makes an intrinsic known, for `Schedule.tensorize`.

        Args:
          desc: what it computes: a module of one te function (te.create_prim_func), or its text, that becomes one block. A size may be a
            symbol: it fits any extent, and the implementation is told which.
          impl: how: a function that is called with a TensorCall, which emits what runs; or a module of one function of blocks and loops
            (prim_func) that has buffers of the same names, and others only in registers. It adds to what its outputs hold where the
            description is a reduction.
          starts: whether `impl`, a function, can begin a reduction by itself, so that its outputs need not be set before.
          strided: tensors whose elements along the innermost dimension may lie apart; those of others lie side by side.
          uses_tiles: whether `impl` has operations on matrix tiles (AMX), which a process must be allowed to use.
          partial: what `impl`, a function, takes less of than `desc` says, under names of its own: {"rows": {"i": 1}}, or of two loops of
            which one is in tiles of 16 {"columns": {"t": 16, "j": 1}}. Tiles then may end early there (TensorCall.counts); others are full.
          fragments: tensors that lie in registers of the threads of a warp, or of a group of warps, which compute it together.
          lines: tensors in shared memory that lie in permuted lines, as copies of boxes ("tensor_copy") write them.
          asynchronous: how what `impl` begins is waited for: what it writes is there, and what it reads may be written, only then.
          override: whether one of the same name is replaced.

        Raises:
          ScheduleError: a name that is taken; a description that is not of one block.
        """
        if name in TensorIntrin._REGISTRY and not override:
            raise ScheduleError(f"tensor intrinsic {name}: expected a name that is free, found one that is registered")
        where = f"tensor intrinsic {name}"
        given = impl if callable(impl) else _text(impl, f"{where}: impl")
        made = TensorIntrin(
            name,
            _text(desc, f"{where}: desc"),
            given,
            starts,
            tuple(strided),
            uses_tiles,
            dict(partial or {}),
            dict(fragments or {}),
            tuple(lines),
            asynchronous,
        )
        made.description(make_context())
        TensorIntrin._REGISTRY[name] = made
        return made

    @staticmethod
    def register_family(name: str, pattern: str, make: Callable[..., "TensorIntrin"]) -> None:
        """Makes intrinsics known whose names have numbers in them, for any numbers.

        Args:
          name: how the names look, for people: "dot_f32_{rows}x{columns}".
          pattern: a regular expression that such a name matches whole.
          make: registers the intrinsic for the groups of the pattern, texts.
        """
        TensorIntrin._FAMILIES[name] = re.compile(pattern), make

    @staticmethod
    def get(name: str) -> "TensorIntrin":
        """The intrinsic of a name; those of backends are known. Raises ScheduleError."""
        if name not in TensorIntrin._REGISTRY:
            for module in backend_modules():
                importlib.import_module(module)
            for pattern, make in TensorIntrin._FAMILIES.values():
                found = pattern.fullmatch(name)
                if found is not None and name not in TensorIntrin._REGISTRY:
                    make(*found.groups())
        if name not in TensorIntrin._REGISTRY:
            known = ", ".join(sorted([*TensorIntrin._REGISTRY, *TensorIntrin._FAMILIES])) or "none"
            raise ScheduleError(f"expected a tensor intrinsic that is registered, out of {known}, found {name!r}")
        return TensorIntrin._REGISTRY[name]

    def description(self, context: ir.Context) -> "Description":
        """What it computes, as blocks and loops of a context."""
        made = self._read("description", self.desc, context)
        blocks = made.nest.outer_blocks()
        if len(blocks) != 1:
            names_ = ", ".join(b.name for b in blocks) or "none"
            raise ScheduleError(f"tensor intrinsic {self.name}: description: expected one block, found {names_}")
        return made

    def implementation(self, context: ir.Context) -> "Description":
        """How it is computed, as blocks and loops of a context; for one that is no Python function."""
        assert isinstance(self.impl, str)
        return self._read("implementation", self.impl, context)

    def _read(self, what: str, text: str, context: ir.Context) -> "Description":
        from relayc.pipelines.tir.tree.create import create_nest

        where = f"tensor intrinsic {self.name}: {what}"
        with context, ir.Location.unknown():
            try:
                parsed = IRModule.parse(text, context=context)
            except (ir.MLIRError, ValueError) as error:
                raise ScheduleError(f"{where}: expected a module of the te stage, or of blocks and loops, found {error}") from None
            functions = [op for op in parsed.module.body.operations if op.operation.name == "func.func"]
            if len(functions) != 1:
                raise ScheduleError(f"{where}: expected one function, found {len(functions)}")
            module = ir.Module.create()
            nest = Nest(functions[0]) if names.FORM in functions[0].attributes else create_nest(functions[0].operation, module)
            return Description(nest, (parsed, module))


@dataclass(frozen=True)
class Description:
    """What an intrinsic computes, or how, as a function of blocks and loops.

    Attributes:
      modules: which hold it.
    """

    nest: Nest
    modules: tuple[IRModule, ir.Module]


def _text(module: IRModule | str, what: str) -> str:
    """A module as text, with the names that its locations are. Raises ScheduleError for what is neither."""
    if not isinstance(module, (IRModule, str)):
        raise ScheduleError(f"{what}: expected a module (te.create_prim_func, prim_func) or its text, found {module!r}")
    return module if isinstance(module, str) else module.module.operation.get_asm(enable_debug_info=True)
