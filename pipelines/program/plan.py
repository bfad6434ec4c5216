"""The memory plan of all programs of a module: arenas, the parameter blob, and where the tensors of every call are."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from relayc.dialects.functions import is_public
from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import RelayError
from relayc.pipelines.memory import Tensor, align, plan
from relayc.pipelines.parameters import Parameter
from relayc.pipelines.program.body import Call, Item, Program, items_of
from relayc.pipelines.program.functions import Component, Functions, specs_of
from relayc.pipelines.program.kernels import Kernels
from relayc.pipelines.program.places import Place, Places, bytes_of
from relayc.pipelines.schedule.packing import Packing
from relayc.runtime.artifact import BufferRef, TensorSpec

MAX_RECURSION_BYTES = 4 << 30
"""Arena bytes of a recursive program above which it is refused."""

CONDITION = TensorSpec("condition", (), "bool")


class Planned:
    """A program with its memory.

    Attributes:
      arena_bytes: what a call of it needs; of a recursive one, a call that all the nested calls may follow.
      frame_bytes: its own part of that.
      max_depth: how many nested calls of its component may follow; 0 where it is not recursive.
      fails: whether a call of it can raise an error.
      is_public: whether it is called from outside.
      items: all calls that have something to do, branches and loops, in the order of the text.
    """

    def __init__(self, program: Program, places: Places, component: Component) -> None:
        self.program, self.places, self.component = program, places, component
        self.name = program.name
        self.fails, self.is_public = component.fails, is_public(program.function)
        self.frame_bytes = self.arena_bytes = self.max_depth = 0
        self.items = [item for item in items_of(program.body) if not self.is_needless(item)]

    def is_needless(self, item: Item) -> bool:
        return any(r in self.places.needless for r in item.op.operation.results)

    def is_nested(self, callee: str) -> bool:
        """Whether a call of `callee` goes round within its component."""
        return self.component.recursive and callee in self.component.names


class Plan:
    """The plans of the programs of a module.

    Attributes:
      programs: by name, in the order of `functions`.
      layout, params_bytes: the parameter blob.
    """

    def __init__(
        self,
        functions: Functions,
        places: Mapping[str, Places],
        order: Sequence[Component],
        kernels: Kernels,
        params: Mapping[str, np.ndarray],
        max_depth: int,
    ) -> None:
        """
        Args:
          order: the components, callees before callers.
          params: the parameter table.
          max_depth: nested calls that a call of a recursive program may lead to.

        Raises:
          RelayError: a recursive program needs more than MAX_RECURSION_BYTES.
        """
        self.functions, self.kernels, self.params = functions, kernels, params
        self.layout: list[Parameter] = []
        self.params_bytes = 0
        self._entered: dict[tuple[str, str], int] = {}
        self._workspaces: dict[Call, Place] = {}
        components = {name: component for component in order for name in component.names}
        self.programs = {name: Planned(places[name].program, places[name], components[name]) for name in functions.programs}
        for component in order:
            self._arenas(component, max_depth)
        for program in self.programs.values():
            for item in program.items:
                if isinstance(item, Call):
                    self._locate(program, item)
                else:
                    item.reference = self._operand(program.places.of[item.condition], item.condition.type, CONDITION, None)
        self.params_bytes = max(self.params_bytes, align(1))

    # ---- arenas

    def _arenas(self, component: Component, max_depth: int) -> None:
        members = [self.programs[name] for name in component.names]
        for program in members:
            tensors = list(program.places.tensors)
            for call in [item for item in program.items if isinstance(item, Call)]:
                size = self._workspace_bytes(program, call.callee)
                if size:
                    self._workspaces[call] = Place(tensor=Tensor(size, call.step, call.step))
                    tensors.append(self._workspaces[call].tensor)
            program.frame_bytes = program.arena_bytes = max(plan(tensors), align(1))
        if component.recursive:
            largest = max(p.frame_bytes for p in members)
            for program in members:
                program.max_depth = max_depth
                program.arena_bytes = program.frame_bytes + max_depth * largest
                if program.arena_bytes > MAX_RECURSION_BYTES:
                    raise RelayError(
                        f"@{program.name}: expected at most {MAX_RECURSION_BYTES} bytes of memory for {max_depth} nested calls, found "
                        f"{program.arena_bytes}, {largest} for each; lower relay.max_recursion_depth"
                    )

    def _workspace_bytes(self, program: Planned, callee: str) -> int:
        """Arena bytes that a call takes besides its tensors. A nested call takes what follows the caller's frame."""
        if callee in self.programs:
            return 0 if program.is_nested(callee) else self.programs[callee].arena_bytes
        return self.kernels.scheduled[callee].workspace_bytes if callee in self.kernels.scheduled else 0

    # ---- references

    def _locate(self, program: Planned, call: Call) -> None:
        """Says where the tensors of a call are."""
        name, of = call.callee, program.places.of
        if name in self.kernels.infos:
            specs = self.kernels.infos[name].inputs, self.kernels.infos[name].outputs
        else:
            specs = specs_of(self.functions.get(name), "input"), specs_of(self.functions.get(name), "output")
        packings = self.kernels.scheduled[name].packings if name in self.kernels.scheduled else {}
        operands = enumerate(zip(call.op.operation.operands, specs[0], strict=True))
        call.inputs = tuple(self._operand(of[value], value.type, spec, packings.get(i)) for i, (value, spec) in operands)
        outputs = [of[r] for r in call.op.operation.results]
        if name in self.programs:
            call.arena = program.frame_bytes if program.is_nested(name) else _offset(self._workspaces[call])
        elif call in self._workspaces:
            outputs.append(self._workspaces[call])
        call.outputs = tuple(_reference(place, s) for place, s in zip(outputs, specs[1], strict=True))

    def _operand(self, place: Place, type_: ir.RankedTensorType, spec: TensorSpec, packing: Packing | None) -> BufferRef:
        if place.space == "param":
            return BufferRef("param", 0, self._param(place.key, type_, packing), spec)
        return _reference(place, spec)

    def _param(self, key: str, type_: ir.RankedTensorType, packing: Packing | None) -> int:
        """Offset in the blob of a parameter as a call takes it; entered on first use."""
        name = (key, packing.name if packing is not None else "")
        if name not in self._entered:
            shape = tuple(type_.shape)
            size = prod(packing.shape if packing is not None else shape) * bytes_of(type_.element_type)
            self._entered[name] = self.params_bytes
            self.layout.append(Parameter(key, self.params_bytes, size, self.params.get(key), shape, packing))
            self.params_bytes += align(max(size, 1))
        return self._entered[name]


def _offset(place: Place) -> int:
    return place.tensor.offset + place.offset if place.tensor is not None else 0


def _reference(place: Place, spec: TensorSpec) -> BufferRef:
    return BufferRef(place.space, place.index, _offset(place), spec)  # type: ignore[arg-type]
