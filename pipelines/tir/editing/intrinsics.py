"""Tensor intrinsics: a description of a computation and its implementation, so that schedules can replace the former by the latter."""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from relayc.dialects.mlir import ir, lasting_context
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir import names
from relayc.pipelines.context.backend import backend_modules
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import FAR, Index, Var
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.values import vectors
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.pipelines.context.target import Target

ANNOTATION = "tensor_intrin"
"""Annotation of a block: the name of the intrinsic to which it is lowered."""


def _as_it_is(position: Index) -> Index:
    """The position in a buffer whose chunks are not permuted."""
    return position


@dataclass(frozen=True)
class Operand:
    """The placement of a tensor of an intrinsic's description.

    Attributes:
      name: of the tensor in the description.
      buffer: a flat memref.
      offset: position of the tensor's first element in the buffer.
      strides: of the dimensions, in elements.
      shape: of the tensor, with the sizes of this use.
      is_output: whether the description computes it.
      has_room: whether the buffer has enough elements for a given extent of a partial dimension, even if fewer are valid.
      lines: the permuted lines of the buffer, if any. Then `offset` is the start of the line with the tensor's first element, `within` the
        position of the element in it, and `strides` are the strides within a block of lines.
      placed: gives the position of a chunk from a position by `at`; they differ in a buffer of storage_swizzle.
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
    placed: Callable[[Index], Index] = _as_it_is

    @property
    def element(self) -> ir.Type:
        """The type of an element."""
        return self.buffer.type.element_type

    def at(self, *indices: "Index | Size | ir.Value") -> Index:
        """The position of an element of the tensor in the buffer."""
        found = self.offset
        for index, stride in zip(indices, self.strides, strict=True):
            given = Index.of(Var(-FAR, FAR, index)) if isinstance(index, ir.Value) else Index.of(index)
            found += given * stride
        return found

    def value_at(self, *indices: "Index | Size | ir.Value") -> ir.Value:
        """The position of an element as a value of type index at the ambient insertion point, for memref.load, vector.load,
        amx.tile_load."""
        return emit.materialize(self.at(*indices))

    def load(self, *indices: "Index | Size | ir.Value", lanes: int = 1) -> ir.Value:
        """Loads an element, or a vector of contiguous elements."""
        if lanes == 1:
            return emit.create("memref.load", [self.element], [self.buffer, self.value_at(*indices)])
        return vectors.load(self.buffer, self.at(*indices), lanes)

    def store(self, value: ir.Value, *indices: "Index | Size | ir.Value") -> None:
        """Stores an element, or a vector to contiguous elements."""
        if emit.is_vector(value):
            vectors.store(value, self.buffer, self.at(*indices))
        else:
            emit.create("memref.store", [], [value, self.buffer, self.value_at(*indices)])


@dataclass(frozen=True)
class Lines:
    """The layout of a shared buffer that copies of boxes write and wgmma reads: lines of 128 bytes; within each eight lines the 16-byte
    chunks are permuted (swizzled).

    The innermost dimension is split into lines; all lines of the same part of it form a block.

    Attributes:
      elements: of a line.
      count: lines of a block; blocks: the number of blocks.
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
    """The layout of a tensor in the registers of the threads of a warp or warp group: in tiles, distributed over the threads.

    Its buffer has scope "warp" or "warpgroup", and only tensor intrinsics use it.

    Attributes:
      layout: a name of the mapping from elements to threads: all intrinsics that use a buffer must have the same.
      tile: for each dimension of the tensor the axis of a tile, by name, and the extent of a tile there.
      registers: per thread and tile.
      register: their type, as MLIR text.
      threads: 32 for a warp, 128 for a warp group.
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
      load: returns the registers of a tile.
      store: sets the registers of a tile.
    """

    load: "Callable[..., list[ir.Value]]"
    store: "Callable[..., None]"


@dataclass(frozen=True)
class TensorCall:
    """A use of an intrinsic: the argument of a Python implementation.

    The implementation emits operations at the ambient insertion point that compute the description on these operands. The innermost
    dimension of an operand is contiguous, except for tensors that the intrinsic lists as `strided`.

    Attributes:
      operands: in memory, by the name of the tensor in the description; fragments: operands in registers of several threads.
      sizes: of the symbols of the description, by name.
      accumulates: whether the outputs accumulate into their contents (a reduction that started before). If the intrinsic does not start
        reductions itself this is true for every reduction, and its init has been stored.
      target: the compilation target.
      counts: the extents of `partial` dimensions, by name: a number, or an index over emitted values. Elements beyond must not be read or
        written, unless an operand has room for them.
      lane: the number of the thread in its warp or warp group, for an intrinsic with fragments, which all these threads compute together.
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
    """Completion of asynchronous operations.

    Attributes:
      commit: makes a group of the operations started since the last one.
      wait: waits until at most the given number of the last groups are pending.
    """

    commit: Callable[[], None]
    wait: Callable[[int], None]


Implementation: TypeAlias = "Callable[[TensorCall], None] | str"


@dataclass(frozen=True)
class TensorIntrin:
    """A tensor intrinsic: the arguments of `register`, with the description as blocks and loops, and other modules as texts."""

    name: str
    description: "Description"
    impl: Implementation
    starts: bool
    strided: tuple[str, ...]
    uses_tiles: bool
    partial: Mapping[str, Mapping[str, int]]
    fragments: Mapping[str, Fragments]
    lines: tuple[str, ...]
    swizzled: tuple[str, ...]
    asynchronous: Asynchronous | None

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
        swizzled: Sequence[str] = (),
        asynchronous: Asynchronous | None = None,
        override: bool = False,
    ) -> "TensorIntrin":
        """Registers an intrinsic for `Schedule.tensorize`.

        Args:
          name: by which schedules refer to it.
          desc: the computation: a module of one te function (te.create_prim_func), or its text, that becomes one block. A size may be a
            symbol: it matches any extent, which is passed to the implementation.
          impl: the implementation: a function that receives a TensorCall and emits the code; or a module of one function of blocks and
            loops (prim_func) whose arguments have the same names, and whose other buffers are only in registers. For a reduction it
            accumulates into its outputs.
          starts: whether `impl`, a function, can initialize a reduction itself, so that its outputs need not be set before.
          strided: tensors whose innermost dimension need not be contiguous; the others are contiguous.
          uses_tiles: whether `impl` has operations on matrix tiles (AMX), for which a process needs permission.
          partial: dimensions in which `impl`, a function, accepts less than `desc`, under names of its own: {"rows": {"i": 1}}, or over two
            loops of which one is in tiles of 16 {"columns": {"t": 16, "j": 1}}. Tiles may be partial there (TensorCall.counts); otherwise
            full.
          fragments: tensors in registers of the threads of a warp or warp group, which compute it together.
          lines: tensors in shared memory with permuted lines (see Lines), as copies of boxes ("tensor_copy") write them.
          swizzled: tensors that may lie in a buffer of storage_swizzle, as `impl` finds their chunks by Operand.placed.
          asynchronous: how to wait for operations that `impl` starts: outputs are complete, and inputs may be overwritten, only then.
            None if it starts none.
          override: whether an intrinsic of the same name is replaced.

        Raises:
          ScheduleError: a name that is taken; a description that is not one block.
        """
        if name in TensorIntrin._REGISTRY and not override:
            raise ScheduleError(f"tensor intrinsic {name}: expected a name that is free, found one that is registered")
        where = f"tensor intrinsic {name}"
        given = impl if callable(impl) else _text(impl, f"{where}: impl")
        _check_module(desc, f"{where}: desc")
        description = _described(f"{where}: description", desc, lasting_context())
        if len(blocks := description.nest.outer_blocks()) != 1:
            raise ScheduleError(f"{where}: description: expected one block, found {', '.join(b.name for b in blocks) or 'none'}")
        made = TensorIntrin(
            name,
            description,
            given,
            starts,
            tuple(strided),
            uses_tiles,
            dict(partial or {}),
            dict(fragments or {}),
            tuple(lines),
            tuple(swizzled),
            asynchronous,
        )
        TensorIntrin._REGISTRY[name] = made
        return made

    @staticmethod
    def register_family(name: str, pattern: str, make: Callable[..., "TensorIntrin"]) -> None:
        """Registers a family of intrinsics whose names contain numbers.

        Args:
          name: pattern for messages: "dot_f32_{rows}x{columns}".
          pattern: a regular expression that matches the whole name.
          make: registers the intrinsic for the groups of the pattern, as texts.
        """
        TensorIntrin._FAMILIES[name] = re.compile(pattern), make

    @staticmethod
    def get(name: str) -> "TensorIntrin":
        """The intrinsic of a name, including intrinsics of backends. Raises ScheduleError."""
        if name not in TensorIntrin._REGISTRY and not TensorIntrin._make(name):
            for module in backend_modules():
                importlib.import_module(module)
            TensorIntrin._make(name)
        if name not in TensorIntrin._REGISTRY:
            known = ", ".join(sorted([*TensorIntrin._REGISTRY, *TensorIntrin._FAMILIES])) or "none"
            raise ScheduleError(f"expected a tensor intrinsic that is registered, out of {known}, found {name!r}")
        return TensorIntrin._REGISTRY[name]

    @staticmethod
    def _make(name: str) -> bool:
        """Registers an intrinsic of the families that are known by now; whether there is such a family."""
        for pattern, make in TensorIntrin._FAMILIES.values():
            found = pattern.fullmatch(name)
            if found is not None:
                make(*found.groups())
                return True
        return False

    def implementation(self, context: ir.Context) -> "Description":
        """The implementation, as blocks and loops in a context; only if it is not a Python function."""
        assert isinstance(self.impl, str)
        return _described(f"tensor intrinsic {self.name}: implementation", self.impl, context)


@dataclass(frozen=True)
class Description:
    """The computation or the implementation of an intrinsic as a function of blocks and loops.

    Attributes:
      modules: the modules that own it.
    """

    nest: Nest
    modules: tuple[IRModule | ir.Module, ...]


def _described(where: str, given: IRModule | str, context: ir.Context) -> Description:
    """A module of one function of the te stage, or of blocks and loops, or its text, which is read in a context."""
    from relayc.pipelines.tir.tree.create import create_nest

    try:
        mod = IRModule.parse(given, context=context) if isinstance(given, str) else given
    except (ir.MLIRError, ValueError) as error:
        raise ScheduleError(f"{where}: expected a module of the te stage, or of blocks and loops, found {error}") from None
    with mod.context, ir.Location.unknown():
        functions = [op for op in mod.module.body.operations if op.operation.name == "func.func"]
        if len(functions) != 1:
            raise ScheduleError(f"{where}: expected one function, found {len(functions)}")
        if names.FORM not in functions[0].attributes:
            module = ir.Module.create()
            return Description(create_nest(functions[0].operation, module), (mod, module))
        # A function of blocks and loops is edited by whoever has it.
        return Description(Nest(functions[0]), (mod,)) if isinstance(given, str) else _described(where, _text(mod, where), context)


def _check_module(given: object, what: str) -> None:
    if not isinstance(given, (IRModule, str)):
        raise ScheduleError(f"{what}: expected a module (te.create_prim_func, prim_func) or its text, found {given!r}")


def _text(module: IRModule | str, what: str) -> str:
    """A module as text, with its locations (names). Raises ScheduleError for other arguments."""
    _check_module(module, what)
    return module if isinstance(module, str) else module.module.operation.get_asm(enable_debug_info=True)
