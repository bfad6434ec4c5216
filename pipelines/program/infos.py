"""Runtime metadata of a module whose memory is planned: its programs, step by step, its kernels and its parameters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from relayc.dialects.discardable import (
    ARENA,
    BYTES,
    DECLINED,
    DTYPE,
    FLOPS,
    NAME,
    OFFSET,
    OPERATORS,
    OWN_FLOPS,
    PACKED,
    PACKING,
    PARAM_KEY,
    SCHEDULE,
    SOURCES,
    SYMBOL,
    TENSORS,
)
from relayc.dialects.functions import is_public, signature_of, symbol_name, value_attributes
from relayc.dialects.locations import sources_of
from relayc.dialects.mlir import arith, func, ir, memref, scf
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.relay.specializations import sizes_of
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.emission.sizes import read_condition, read_size, symbol_names, symbol_positions
from relayc.pipelines.program.calls import max_depth
from relayc.pipelines.program.components import functions_of, programs_of
from relayc.pipelines.program.functions import packings_of, workspace_of
from relayc.pipelines.program.parameters import Parameter
from relayc.pipelines.program.tree import memref_bytes
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.runtime.artifact import (
    Allocate,
    Branch,
    BufferRef,
    Define,
    EqualSizes,
    Give,
    KernelInfo,
    Loop,
    Move,
    Node,
    PackedCall,
    ParameterInfo,
    ProgramCall,
    ProgramInfo,
    Step,
    TensorSpec,
    walk,
)
from relayc.symbolic import Size, substitute, symbol, symbols_of

_CONDITION = TensorSpec("condition", (), "bool")

Specs = tuple[TensorSpec, ...]


def kernel_infos(module: ir.Module) -> tuple[KernelInfo, ...]:
    """One entry for each kernel with known tensors, in the order of the module."""
    programs = programs_of(module)
    found = [f for name, f in functions_of(module).items() if name not in programs and not f.is_external and TENSORS.on(f)]
    return tuple(_kernel_info(f) for f in found)


def _kernel_info(function: ir.OpView) -> KernelInfo:
    ins, outs = _tensors(function)
    for i, packing in packings_of(function).items():
        ins = (*ins[:i], TensorSpec(ins[i].name, packing.shape, ins[i].dtype), *ins[i + 1 :])
    workspace = workspace_of(function, len(ins) + len(outs))
    if workspace != 0:
        outs = (*outs, TensorSpec("workspace", (workspace,), "uint8"))
    flops, moved = FLOPS.of(function), BYTES.of(function)
    schedule = SCHEDULE.of(function)
    ops, sources = OPERATORS.get(function, ()), SOURCES.get(function, ())
    own = OWN_FLOPS.get(function)
    symbols, declined = tuple(symbol_names(function)), DECLINED.get(function, ())
    return KernelInfo(symbol_name(function), ins, outs, ops, sources, flops, moved, schedule, own, symbols, declined)


def _tensors(function: ir.OpView, names: tuple[list[str], list[str]] = ([], [])) -> tuple[Specs, Specs]:
    """The inputs and outputs of a function as callers see them (relay.tensors); by default arg0, arg1, ... and out0, out1, ..."""
    if not TENSORS.on(function):
        raise RelayError(f"@{symbol_name(function)}: expected the attribute relay.tensors (its type as callers see it), found none")
    type_ = ir.FunctionType(TENSORS.of(function))
    found = []
    for types, stem, given in ((type_.inputs, "arg", names[0]), (type_.results, "out", names[1])):
        tensors = [TensorType.from_mlir(t) for t in types]
        found.append(tuple(TensorSpec(given[i] if given else f"{stem}{i}", t.sizes, t.dtype) for i, t in enumerate(tensors)))
    return found[0], found[1]


def parameters_of(module: ir.Module, params: Mapping[str, np.ndarray]) -> list[Parameter]:
    """Offsets of the parameters in the blob, each layout once; `params` is the parameter table."""
    found: dict[int, Parameter] = {}
    for op in module.body.operations:
        if op.operation.name == "memref.global" and OFFSET.on(op):
            key = PARAM_KEY.of(op)
            offset = OFFSET.of(op)
            type_ = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
            packing = Packing.from_attribute(PACKING.of(op), type_.shape) if PACKING.on(op) else None
            shape = packing.source if packing is not None else tuple(type_.shape)
            found.setdefault(offset, Parameter(key, offset, memref_bytes(type_), params.get(key), shape, packing))
    return list(found.values())


def parameter_infos(parameters: Sequence[Parameter], programs: Sequence[ProgramInfo]) -> tuple[ParameterInfo, ...]:
    """Metadata of parameters, in the order of the blob: names are keys, with a number appended if a key is in the blob in several layouts,
    or an input of a public program has the name. Dtypes are the dtypes under which programs read them."""
    names = {spec.name for program in programs if program.public for spec in program.inputs}
    calls = [node for program in programs for node in walk(program.steps) if isinstance(node, (Step, PackedCall, ProgramCall))]
    dtypes = {ref.offset: ref.spec.dtype for call in calls for ref in (*call.inputs, *call.outputs) if ref.space == "param"}
    found = []
    for parameter in sorted(parameters, key=lambda p: p.offset):
        name = next(n for i in count() if (n := f"{parameter.key}.{i}" if i else parameter.key) not in names)
        names.add(name)
        if parameter.offset in dtypes:
            shape = parameter.shape if parameter.packing is None else parameter.packing.shape
            found.append(ParameterInfo(TensorSpec(name, tuple(shape), dtypes[parameter.offset]), parameter.offset))
    return tuple(found)


def params_bytes(module: ir.Module) -> int:
    """Size of the blob of parameters."""
    return next((types[len(types) - 1].shape[0] for f in programs_of(module).values() if (types := signature_of(f).inputs)), 0)


# ---- programs -----------------------------------------------------------------------------------------------------------------------


def program_infos(module: ir.Module, kernels: Sequence[KernelInfo]) -> tuple[ProgramInfo, ...]:
    """One entry for each program, public ones first, starting with `main`; `kernels` are the module's (`kernel_infos`).

    Raises RelayError for a program without a recorded type, or whose memory is not planned.
    """
    programs = programs_of(module)
    specs = {name: _program_specs(f) for name, f in programs.items()}
    called = specs | {k.name: (k.inputs, k.outputs) for k in kernels}
    return tuple(_ProgramReader(module, f, specs, called).info() for f in programs.values())


def _program_specs(function: ir.OpView) -> tuple[Specs, Specs]:
    ins, outs = _tensors(function)
    arguments, late = value_attributes(function), iter(value_attributes(function, "res_attrs"))
    written = iter(arguments[len(ins) :])
    results = [next(late if i in _late(function, outs) else written) for i in range(len(outs))]
    taken, given = _tensors(function, (_names(arguments[: len(ins)], "input"), _names(results, "output")))
    return _seen(taken, arguments[: len(ins)]), _seen(given, results)


def _late(function: ir.OpView, outs: Specs) -> tuple[int, ...]:
    """Positions of the outputs of a program whose sizes only it knows: it returns their memory."""
    known = symbol_positions(function).keys()
    return tuple(i for i, spec in enumerate(outs) if not frozenset().union(*map(symbols_of, spec.shape)).issubset(known))


def _seen(specs: Specs, entries: Sequence[ir.DictAttr]) -> Specs:
    """Specs with the dtypes that callers see."""
    every = zip(specs, entries, strict=True)
    return tuple(replace(spec, dtype=DTYPE.of(e)) if DTYPE.on(e) else spec for spec, e in every)


def _names(entries: Sequence[ir.DictAttr], default: str) -> list[str]:
    """Names of arguments or results from their attribute relay.name."""
    return [NAME.get(e, f"{default}{i}") for i, e in enumerate(entries)]


class _ProgramReader:
    """Reads one program: heap memory becomes slots, by value, and sizes defined at run time get names."""

    def __init__(
        self, module: ir.Module, function: ir.OpView, specs: Mapping[str, tuple[Specs, Specs]], called: Mapping[str, tuple[Specs, Specs]]
    ) -> None:
        """Reads the symbols, slots and steps of a program.

        Args:
          specs: tensors of the programs; `called` also has the tensors of kernels.
        """
        self.functions, self.function, self.specs, self.called = functions_of(module), function, specs, called
        self.name = symbol_name(function)
        self.block = function.regions[0].blocks[0]
        ins, outs = specs[self.name]
        positions = symbol_positions(function)
        self.late = _late(function, outs)
        self.outputs = len(outs) - len(self.late)
        if len(self.block.arguments) != len(ins) + self.outputs + len(positions) + 2:
            raise RelayError(f"@{self.name}: expected inputs, outputs, symbols, the arena and the parameters (run plan-memory)")
        self.symbols = tuple(positions)
        self.conditions: dict[ir.Value, EqualSizes] = {}
        self.sizes: dict[ir.Value, Size] = {self.block.arguments[i]: symbol(name) for name, i in positions.items()}
        self.slots: dict[ir.Value, int] = {}
        self._next_slot = count()
        self._names = (name for i in count() if (name := f"size_{i}") not in positions)

    def info(self) -> ProgramInfo:
        ins, outs = self.specs[self.name]
        nodes, depth = self._nodes(self.block), max_depth(self.function)
        results = value_attributes(self.function, "res_attrs")
        defined = tuple(SYMBOL.of(a) for a in results if SYMBOL.on(a))
        arena, public = self._arena_bytes(), is_public(self.function)
        facts = self.late, defined, tuple(sizes_of(self.function).items())
        return ProgramInfo(self.name, ins, outs, nodes, public, depth, self.symbols, arena, *facts)

    def _arena_bytes(self) -> Size:
        if ARENA.on(self.function):
            return ARENA.of(self.function)
        return ir.MemRefType(self.block.arguments[len(self.block.arguments) - 2].type).shape[0]

    def _nodes(self, block: ir.Block) -> tuple[Node, ...]:
        readers: dict[type, Callable[..., Sequence[Node]]] = {
            func.CallOp: self._call,
            scf.IfOp: self._branch,
            scf.WhileOp: self._loop,
            memref.AllocOp: self._allocation,
            arith.IndexCastOp: self._define,
            func.ReturnOp: self._give,
        }
        found: list[Node] = []
        for op in block.operations:
            if (size := read_size(op.operation, self.sizes)) is not None:
                self.sizes[op.operation.results[0]] = size
            elif (condition := read_condition(op.operation, self.sizes, self.conditions)) is not None:
                self.conditions[op.operation.results[0]] = condition
            elif type(op) in readers:
                found += readers[type(op)](op)
        return tuple(found)

    # ---- slots and sizes

    def _taken(self, values: Iterable[ir.Value]) -> tuple[tuple[int, ...], tuple[Size, ...]]:
        """The slots of memory among values, and the sizes."""
        values = list(values)
        slots = tuple(self.slots[v] for v in values if isinstance(v.type, ir.MemRefType))
        return slots, tuple(self.sizes[v] for v in values if isinstance(v.type, ir.IndexType))

    def _new(self, *places: Sequence[ir.Value]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Slots and names for memory and sizes; values at the same position of several places share one."""
        slots, names = [], []
        for values in zip(*places, strict=True):
            if isinstance(values[0].type, ir.MemRefType):
                slots.append(next(self._next_slot))
                self.slots.update(dict.fromkeys(values, slots[-1]))
            else:
                names.append(next(self._names))
                self.sizes.update(dict.fromkeys(values, symbol(names[-1])))
        return tuple(slots), tuple(names)

    def _moved(self, to: tuple[tuple[int, ...], tuple[str, ...]], given: Iterable[ir.Value]) -> tuple[Node, ...]:
        (slots, names), (taken, sizes) = to, self._taken(given)
        return (Move(slots, taken, names, sizes),) if slots or names else ()

    def _allocation(self, op: memref.AllocOp) -> Sequence[Node]:
        (slot,), _ = self._new([op.result])
        return [Allocate(slot, self.sizes[op.operation.operands[0]])]

    def _define(self, op: arith.IndexCastOp) -> Sequence[Node]:
        value, result = op.operation.operands[0], op.operation.results[0]
        if not isinstance(result.type, ir.IndexType) or value.owner.name != "memref.load":
            return []  # an operand of relay.require
        buffer, *indices = value.owner.operands
        type_, position = ir.MemRefType(buffer.type), 0
        for extent, index in zip(type_.shape, indices, strict=True):
            position = position * extent + int(self.sizes[index])
        spec = TensorSpec("size", tuple(type_.shape), str(type_.element_type).replace("i", "int"))
        _, (name,) = self._new([result])
        return [Define(name, self._reference(buffer, spec), position)]

    def _give(self, op: func.ReturnOp) -> Sequence[Node]:
        given = list(op.operation.operands)
        return [Give(*self._taken(given))] if given else []

    # ---- calls, branches and loops

    def _call(self, op: func.CallOp) -> Sequence[Node]:
        name, sources = op.callee.value, sources_of(op.operation.location)
        callee = self.functions[name]
        ins, outs = self.called[name] if name in self.called else _tensors(callee)
        if name in self.specs:
            late = _late(callee, outs)
            outs = tuple(spec for i, spec in enumerate(outs) if i not in late)
        tensors = len(ins) + len(outs)
        after = [v for v in list(op.operation.operands)[tensors:] if v in self.sizes]
        sizes = tuple(self.sizes[v] for v in after)
        # The callee's types are in its own symbols.
        values = dict(zip(symbol_names(callee), sizes, strict=False))
        specs = [replace(s, shape=tuple(substitute(d, values) for d in s.shape)) for s in (*ins, *outs)]
        refs = tuple(self._reference(v, s) for v, s in zip(op.operation.operands, specs, strict=False))
        inputs, outputs = refs[: len(ins)], refs[len(ins) :]
        if name in self.specs:
            arena = self._reference(op.operation.operands[tensors + len(after)], _CONDITION)
            heap = arena.index if arena.space == "heap" else -1
            return [ProgramCall(name, inputs, outputs, arena.offset, sources, sizes, heap, *self._new(list(op.operation.results)))]
        if PACKED.on(callee):
            return [PackedCall(PACKED.of(callee), inputs, outputs, sources)]
        return [Step(name, inputs, outputs, sources, sizes)]

    def _branch(self, op: scf.IfOp) -> Sequence[Node]:
        made = self._new(list(op.operation.results))

        def part(region: ir.Region) -> tuple[Node, ...]:
            if not len(region.blocks):
                return ()
            nodes = self._nodes(region.blocks[0])
            return nodes + self._moved(made, last_operation(region.blocks[0]).operation.operands)

        then, otherwise = map(part, op.operation.regions)
        condition = op.operation.operands[0]
        found = self.conditions.get(condition) or self._condition(condition, op)
        return [Branch(found, then, otherwise, sources_of(op.operation.location))]

    def _loop(self, op: scf.WhileOp) -> Sequence[Node]:
        before, after = (region.blocks[0] for region in op.operation.regions)
        carried = self._new(list(before.arguments), list(after.arguments), list(op.operation.results))
        first = self._moved(carried, op.operation.operands)
        steps = self._nodes(before)
        condition = self._condition(last_operation(before).operation.operands[0], op)
        body = self._nodes(after)
        body += self._moved(carried, last_operation(after).operation.operands)
        return [*first, Loop(steps, condition, body, sources_of(op.operation.location))]

    def _condition(self, value: ir.Value, op: ir.OpView) -> BufferRef:
        """The place of the condition of a branch or a loop: an i8 in memory, as an i1."""
        found = value
        for name in ("arith.trunci", "memref.load"):
            if isinstance(found.owner, ir.Block) or found.owner.name != name:
                where = f"@{self.name}: {op.operation.name} at {op.operation.location}"
                raise RelayError(f"{where}: expected a condition that arith.trunci makes of an element of a memref<i8>, found {value}")
            found = found.owner.operands[0]
        return self._reference(found, _CONDITION)

    def _reference(self, value: ir.Value, spec: TensorSpec) -> BufferRef:
        """The place of a tensor operand."""
        offset: Size = 0
        while value not in self.slots and not isinstance(value.owner, ir.Block):
            owner = value.owner
            if owner.name == "memref.view" and owner.operands[1] in self.sizes:
                offset = offset + self.sizes[owner.operands[1]]
            elif owner.name not in ("memref.cast", "memref.reinterpret_cast"):
                raise RelayError(f"@{self.name}: expected views of arguments as operands of a call, found {owner} (run plan-memory)")
            value = owner.operands[0]
        if value in self.slots:
            return BufferRef("heap", self.slots[value], offset, spec)
        position = ir.BlockArgument(value).arg_number
        ins, outs = len(self.specs[self.name][0]), self.outputs
        arena = len(self.block.arguments) - 2
        if position < ins:
            return BufferRef("input", position, 0, spec)
        if position < ins + outs:
            return BufferRef("output", position - ins, 0, spec)
        return BufferRef("arena" if position == arena else "param", 0, offset, spec)
