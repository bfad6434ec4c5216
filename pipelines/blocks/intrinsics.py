"""Tensor intrinsics: pieces of computation that are told twice, what they compute and how, so that schedules put one for the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir import names
from relayc.pipelines.blocks.indices import write
from relayc.pipelines.blocks.structure import Nest, ScheduleError
from relayc.pipelines.kernel.index import Index
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.pipelines.target import Target

ANNOTATION = "tensor_intrin"
"""Annotation of a block: the name of the intrinsic that it is lowered to."""


@dataclass(frozen=True)
class Operand:
    """The part of a buffer that a tensor of an intrinsic's description is.

    Attributes:
      name: of the tensor in the description.
      buffer: the memref in which it lies.
      shape: of the tensor, with the sizes of this use.
      low: indices in the buffer of its first element.
      steps: for each dimension of the tensor, by how much each index in the buffer grows from one element to the next.
      is_output: whether the description computes it.
    """

    name: str
    buffer: ir.Value
    shape: tuple[Size, ...]
    low: tuple[Index, ...]
    steps: tuple[tuple[Size, ...], ...]
    is_output: bool

    @property
    def element(self) -> ir.Type:
        """The type of an element."""
        return self.buffer.type.element_type

    def at(self, indices: Sequence[Index]) -> list[Index]:
        """Indices in the buffer of an element of the tensor."""
        found = list(self.low)
        for index, steps in zip(indices, self.steps, strict=True):
            found = [f + index * s for f, s in zip(found, steps, strict=True)]
        return found

    def values_at(self, indices: Sequence[Index]) -> list[ir.Value]:
        """These as values at the ambient insertion point, for memref.load, vector.load, amx.tile_load."""
        return [write(i) for i in self.at(indices)]

    def strides(self, strides: Sequence[Size]) -> tuple[Size, ...]:
        """Strides of the tensor, in elements, of those of the buffer."""
        found = []
        for steps in self.steps:
            total: Size = 0
            for step, stride in zip(steps, strides, strict=True):
                total += step * stride
            found.append(total)
        return tuple(found)


@dataclass(frozen=True)
class TensorCall:
    """A use of an intrinsic: what a Python implementation is given.

    It emits operations at the ambient insertion point that do what the description says, of these operands. The innermost dimension of an
    operand is contiguous: its elements lie side by side along the last index of the buffer.

    Attributes:
      operands: by the name of the tensor in the description.
      sizes: of the symbols of the description, by name.
      accumulates: whether the outputs go on from what they hold (a reduction that began before). Where the intrinsic does not start by
        itself this is always so, and the start has been stored.
      target: what it is compiled for.
    """

    operands: Mapping[str, Operand]
    sizes: Mapping[str, Size]
    accumulates: bool
    target: "Target"


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
    """

    name: str
    desc: str
    impl: Implementation
    starts: bool = False

    _REGISTRY: ClassVar[dict[str, "TensorIntrin"]] = {}

    @staticmethod
    def register(
        name: str,
        desc: IRModule | str,
        impl: "Callable[[TensorCall], None] | IRModule | str",
        starts: bool = False,
        override: bool = False,
    ) -> "TensorIntrin":
        """Makes an intrinsic known, for `Schedule.tensorize`.

        Args:
          desc: what it computes: a module of one te function (te.create_prim_func), or its text, that becomes one block. A size may be a
            symbol: it fits any extent, and the implementation is told which.
          impl: how: a function that is called with a TensorCall, which emits what runs; or a module of one function of blocks and loops
            that has buffers of the same names. It adds to what its outputs hold where the description is a reduction.
          starts: whether `impl`, a function, can begin a reduction by itself, so that its outputs need not be set before.
          override: whether one of the same name is replaced.

        Raises:
          ScheduleError: a name that is taken; a description that is not of one block.
        """
        if name in TensorIntrin._REGISTRY and not override:
            raise ScheduleError(f"tensor intrinsic {name}: expected a name that is free, found one that is registered")
        made = TensorIntrin(name, _text(desc), impl if callable(impl) else _text(impl), starts)
        made.description(make_context())
        TensorIntrin._REGISTRY[name] = made
        return made

    @staticmethod
    def get(name: str) -> "TensorIntrin":
        """The intrinsic of a name. Raises ScheduleError."""
        if name not in TensorIntrin._REGISTRY:
            known = ", ".join(sorted(TensorIntrin._REGISTRY)) or "none"
            raise ScheduleError(f"expected a tensor intrinsic that is registered, out of {known}, found {name!r}")
        return TensorIntrin._REGISTRY[name]

    def description(self, context: ir.Context) -> "Description":
        """What it computes, as blocks and loops of a context."""
        from relayc.pipelines.blocks.create import create_nest

        where = f"tensor intrinsic {self.name}: description"
        with context, ir.Location.unknown():
            try:
                parsed = IRModule.parse(self.desc, context=context)
            except (ir.MLIRError, ValueError) as error:
                raise ScheduleError(f"{where}: expected a module of the te stage, found {error}") from None
            functions = [op for op in parsed.module.body.operations if op.operation.name == "func.func"]
            if len(functions) != 1:
                raise ScheduleError(f"{where}: expected one function, found {len(functions)}")
            module = ir.Module.create()
            nest = Nest(functions[0]) if names.FORM in functions[0].attributes else create_nest(functions[0].operation, module)
            blocks = nest.outer_blocks()
            if len(blocks) != 1:
                raise ScheduleError(f"{where}: expected one block, found {', '.join(b.name for b in blocks) or 'none'}")
            return Description(nest, (parsed, module))


@dataclass(frozen=True)
class Description:
    """What an intrinsic computes, as a function of one block.

    Attributes:
      modules: which hold it.
    """

    nest: Nest
    modules: tuple[IRModule, ir.Module]


def _text(module: IRModule | str) -> str:
    """A module as text, with the names that its locations are."""
    return module if isinstance(module, str) else module.module.operation.get_asm(enable_debug_info=True)
