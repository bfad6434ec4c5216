"""The kinds of functions of a te module.

- A *program* is public, or private with the unit attribute `relay.program`: parameters, reshapes, calls, branches and loops.
- A *kernel* is any other private function over tensors that has a body.
- `func.func private @p(tensors) -> tensors attributes {relay.packed = "NAME"}` is the packed function registered as NAME: inputs, then
  outputs, which it writes.
- `func.func private @k(tensors) -> tensors attributes {relay.tir = @k_impl}` is `@k_impl`, a private function of the tir stage in the same
  module: inputs, then outputs, as memrefs of identity layout (flat ones of unknown size if the shape has symbols), without results. After
  them it may take a workspace: a memref of bytes. Inputs with the attribute `relay.packing` are parameters in another layout.

The last arguments of each are the symbols that it needs (see pipelines.emission.sizes).
"""

from collections import ChainMap
from dataclasses import dataclass, field

from relayc.dialects.discardable import INPUT_DTYPES, OUTPUT_DTYPES, PACKED, PACKING, PROGRAM, TIR, WORKSPACE
from relayc.dialects.functions import is_public, signature_of, symbol_name, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.types import TensorType, shape_of
from relayc.pipelines.emission.sizes import symbol_names
from relayc.pipelines.program.components import in_order
from relayc.pipelines.te.read.updates import find_updates, updates_of
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.values.buffers import buffer_type
from relayc.runtime.artifact import TensorSpec
from relayc.symbolic import Size


def dtypes_of(function: ir.OpView, which: str) -> list[str]:
    """Element type names that callers see of the "input" or "output" tensors; the signless ones if the function does not record them."""
    recorded = INPUT_DTYPES if which == "input" else OUTPUT_DTYPES
    if recorded.on(function):
        return list(recorded.of(function))
    return [TensorType.from_mlir(t).dtype for t in tensors_of(function, which)]


def tensors_of(function: ir.OpView, which: str) -> list[ir.RankedTensorType]:
    """The types of the "input" or "output" tensors of a te function."""
    signature = signature_of(function)
    return [t for t in (signature.inputs if which == "input" else signature.results) if isinstance(t, ir.RankedTensorType)]


def specs_of(function: ir.OpView, which: str) -> tuple[TensorSpec, ...]:
    """The "input" or "output" tensors of a te function, named arg0, arg1, ... or out0, out1, ..."""
    types, stem = tensors_of(function, which), "arg" if which == "input" else "out"
    shapes = [TensorType.from_mlir(t).sizes for t in types]
    return tuple(TensorSpec(f"{stem}{i}", s, d) for i, (s, d) in enumerate(zip(shapes, dtypes_of(function, which), strict=True)))


@dataclass
class Functions:
    """The functions of a te module by name.

    Attributes:
      programs: public ones first, starting with `main`.
      packed: declarations of packed functions.
      standins: declarations of functions of the tir stage; see `implementation`.
      tir: functions of the tir stage.
      other: operations of the module that are not functions.
    """

    programs: dict[str, ir.OpView] = field(default_factory=dict)
    kernels: dict[str, ir.OpView] = field(default_factory=dict)
    packed: dict[str, ir.OpView] = field(default_factory=dict)
    standins: dict[str, ir.OpView] = field(default_factory=dict)
    tir: dict[str, ir.OpView] = field(default_factory=dict)
    other: list[ir.OpView] = field(default_factory=list)

    def implementation(self, standin: str) -> str:
        """Name of the tir function that a declaration refers to."""
        return TIR.of(self.standins[standin])

    def updates(self, callee: str) -> dict[int, int]:
        """The arguments that a call may update, by position of the result: for a kernel, or its tir function."""
        if callee in self.kernels:
            return find_updates(self.kernels[callee])
        return updates_of(self.tir[self.implementation(callee)]) if callee in self.standins else {}

    def get(self, name: str) -> ir.OpView:
        """The te function of a name that a call has."""
        return ChainMap(self.kernels, self.programs, self.packed, self.standins)[name]


def read_functions(module: ir.Module) -> Functions:
    """The functions of a te module. Raises RelayError for an invalid declaration, or a tir function that differs from its declaration."""
    found = Functions()
    programs = []
    for op in module.body.operations:
        if not isinstance(op, func.FuncOp):
            found.other.append(op)
        elif op.is_external:
            _declared(op, found)
        elif any(isinstance(t, ir.MemRefType) for t in signature_of(op).inputs):
            found.tir[symbol_name(op)] = op
        elif is_public(op) or PROGRAM.on(op):
            programs.append(op)
        else:
            found.kernels[symbol_name(op)] = op
    found.programs = in_order(programs)
    for name in found.standins:
        _check_standin(found, name)
    return found


def _declared(function: ir.OpView, found: Functions) -> None:
    kinds = [kind.name for kind in (PACKED, TIR) if kind.on(function)]
    if len(kinds) != 1:
        raise RelayError(f"@{symbol_name(function)}: expected a body, or the attribute relay.packed or relay.tir, found {kinds or 'none'}")
    (found.packed if PACKED.on(function) else found.standins)[symbol_name(function)] = function


def _check_standin(functions: Functions, name: str) -> None:
    standin, wanted = functions.standins[name], functions.implementation(name)
    if wanted not in functions.tir:
        raise RelayError(f"@{name}: relay.tir: expected a private function over memrefs with a body, found no such @{wanted}")
    implementation = functions.tir[wanted]
    found = signature_of(implementation)
    types = memory_types(standin)
    taken = [types[i] if i < len(types) and i in packings_of(implementation) else t for i, t in enumerate(found.inputs)]
    symbols = [ir.IndexType.get()] * len(symbol_names(standin))
    if len(taken) == len(types) + 1 + len(symbols) and is_workspace(taken[len(types)]):
        taken.pop(len(types))
    if [*types, *symbols] != taken or len(found.results):
        expected = ir.FunctionType.get([*types, *symbols], [])
        raise RelayError(f"@{wanted}, which @{name} stands for: expected the type {expected}, found {found}")


def workspace_of(function: ir.OpView, tensors: int) -> Size:
    """Bytes of the workspace that a tir function takes after its tensors; 0 if it takes none."""
    if WORKSPACE.on(function):
        return WORKSPACE.of(function)
    after = list(signature_of(function).inputs)[tensors:]
    return after[0].shape[0] if after and is_workspace(after[0]) else 0


def is_workspace(type_: ir.Type) -> bool:
    """Whether an argument after inputs and outputs is a workspace."""
    i8 = ir.IntegerType.get_signless(8)
    return isinstance(type_, ir.MemRefType) and type_.rank == 1 and type_.element_type == i8


def packings_of(function: ir.OpView) -> dict[int, Packing]:
    """The layouts in which a tir function requests parameters, by position."""
    attributes = value_attributes(function)
    types = signature_of(function).inputs
    return {i: Packing.from_attribute(PACKING.of(a), types[i].shape) for i, a in enumerate(attributes) if PACKING.on(a)}


def memref_type(tensor: ir.RankedTensorType) -> ir.MemRefType:
    """The memref in which functions pass a tensor (see tir.values.buffers)."""
    return buffer_type([d for d in shape_of(tensor) if d is not None], tensor.element_type)


def memory_types(function: ir.OpView) -> list[ir.Type]:
    """The memref arguments of a te function in memory: its inputs, then its outputs."""
    return [memref_type(t) for which in ("input", "output") for t in tensors_of(function, which)]
