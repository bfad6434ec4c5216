"""te -> tir: kernels become loops over buffers by their schedules, and `main` a sequence of calls on planned memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.base import RelayError, sources_of
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.codegen.bufferize import bufferize_kernel
from relayc.pipelines.memory import Tensor, align, plan
from relayc.pipelines.parameters import Parameter
from relayc.pipelines.schedule import emit
from relayc.pipelines.schedule.cost import kernel_cost
from relayc.pipelines.schedule.inplace import VIEWS, concatenated, find_places
from relayc.pipelines.schedule.strategy import Packing, Scheduled, buffer_type
from relayc.pipelines.schedule.table import schedule_kernel
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.runtime.artifact import BufferRef, KernelInfo, Step, TensorSpec

Value = ir.Value


class TirModule(IRModule):
    """A module in the tir stage, and what the runtime has to know of it.

    Attributes:
      inputs, outputs: of main.
      kernels, steps: as in the runtime's Artifact.
      arena_bytes: size of the arena that main takes.
      layout: where every parameter goes in the parameter blob; `parameters.Blob` writes them.
      params_bytes: size of the parameter blob.
      uses_tiles: whether a kernel has operations on AMX tiles.
    """

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        self.inputs: tuple[TensorSpec, ...] = ()
        self.outputs: tuple[TensorSpec, ...] = ()
        self.kernels: tuple[KernelInfo, ...] = ()
        self.steps: tuple[Step, ...] = ()
        self.arena_bytes = 0
        self.layout: list[Parameter] = []
        self.params_bytes = 0
        self.uses_tiles = False

    def take_layout(self) -> list[Parameter]:
        """Hands over `layout`, and with it the arrays."""
        layout, self.layout = self.layout, []
        return layout


@dataclass(eq=False)
class _Buffer:
    """Memory behind te values of main: views of one tensor share it, and a tensor within another one has its arena tensor.

    `offset` is the first byte in that.
    """

    space: str
    index: int = 0
    key: str = ""
    tensor: Tensor | None = None
    offset: int = 0
    element: ir.Type | None = None


def lower_to_tir(mod: IRModule, target: Target, config: Mapping[str, Any] | None = None) -> TirModule:
    """Lowers a te module (see te.lower) for a target.

    Args:
      config: of the PassContext: tunable numbers of schedules (see schedule.table).

    Raises:
      RelayError: an operation that main may not hold.
      ValueError: a number that no schedule has.
    """
    with mod.context, ir.Location.unknown():
        return _TirLowering(mod, target, config or {}).run()


def _dtypes(function: ir.OpView, which: str, types: Sequence[ir.Type]) -> list[str]:
    """Element type names that callers see; the signless ones where the function does not record them."""
    name = f"relay.{which}_dtypes"
    if name in function.attributes:
        return [ir.StringAttr(a).value for a in ir.ArrayAttr(function.attributes[name])]
    return [TensorType.from_mlir(t).dtype for t in types]


def _name(function: ir.OpView) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _names(function: ir.OpView, attribute: str, count: int, default: str) -> list[str]:
    """Names of arguments or results from their attribute relay.name."""
    found = []
    attributes = list(ir.ArrayAttr(function.attributes[attribute])) if attribute in function.attributes else []
    for i in range(count):
        entry = ir.DictAttr(attributes[i]) if i < len(attributes) else {}
        found.append(ir.StringAttr(entry["relay.name"]).value if "relay.name" in entry else f"{default}{i}")
    return found


def _specs(function: ir.OpView, which: str, types: Sequence[ir.Type], names: Sequence[str]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(n, tuple(t.shape), d) for n, t, d in zip(names, types, _dtypes(function, which, types), strict=True))


class _TirLowering:
    def __init__(self, mod: IRModule, target: Target, config: Mapping[str, Any]) -> None:
        self.source, self.target, self.config = mod, target, config
        self.out = TirModule(ir.Module.create())
        self.scheduled: dict[str, Scheduled] = {}
        self.tunings: dict[str, Tuning] = {}
        self.buffers: dict[Value, _Buffer] = {}
        self.params: dict[tuple[str, str], tuple[int, ir.Type]] = {}

    def run(self) -> TirModule:
        functions = [op for op in self.source.module.body.operations if op.operation.name == "func.func"]
        main = self.source.main
        kernels = [f for f in functions if f != main]
        self.find_places(main, kernels)
        with ir.InsertionPoint(self.out.module.body):
            self.schedule(kernels)
            self.out.kernels = tuple(self.info(f) for f in kernels)
            self.out.uses_tiles = any(s.uses_tiles for s in self.scheduled.values())
            self.main(main)
        return self.out

    # ---- kernels

    def find_places(self, main: ir.OpView, kernels: list[ir.OpView]) -> None:
        """Finds the concatenations that are done in place, and takes kernels away that no other call needs."""
        joins = {_name(f): parts for f in kernels if (parts := concatenated(f)) is not None}
        block = main.regions[0].blocks[0]
        self.places = find_places(block, joins, _bytes)
        calls = [op for op in block.operations if isinstance(op, func.CallOp)]
        needless, needed = (
            {c.callee.value for c in calls if (c.operation.results[0] in self.places.needless) == flag} for flag in (True, False)
        )
        kernels[:] = [f for f in kernels if _name(f) not in needless - needed]

    def schedule(self, kernels: Sequence[ir.OpView]) -> None:
        left = []
        for function in kernels:
            name = _name(function)
            with function.operation.location:
                found = schedule_kernel(function, self.target, self.config)
            if found is None:
                left.append(function)
            else:
                self.scheduled[name], self.tunings[name] = found
        if left:
            fallback = ir.Module.create()
            with ir.InsertionPoint(fallback.body):
                for function in left:
                    function.operation.clone()
            bufferize_kernel(fallback)
            for function in fallback.body.operations:
                if isinstance(function, func.FuncOp):
                    clone = function.operation.clone().opview
                    self.scheduled[ir.StringAttr(clone.attributes["sym_name"]).value] = Scheduled(clone)
                else:
                    function.operation.clone()

    def info(self, function: ir.OpView) -> KernelInfo:
        name = _name(function)
        signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        scheduled = self.scheduled[name]
        ins = _specs(function, "input", signature.inputs, [f"arg{i}" for i in range(len(signature.inputs))])
        ins = tuple(TensorSpec(s.name, scheduled.packings[i].shape, s.dtype) if i in scheduled.packings else s for i, s in enumerate(ins))
        outs = _specs(function, "output", signature.results, [f"out{i}" for i in range(len(signature.results))])
        if scheduled.workspace_bytes:
            outs += (TensorSpec("workspace", (scheduled.workspace_bytes,), "uint8"),)
        read = {
            k: [ir.StringAttr(a).value for a in ir.ArrayAttr(function.attributes[k])] if k in function.attributes else []
            for k in ("relay.ops", "relay.sources")
        }
        cost = kernel_cost(function)
        moved = sum(min(s.num_bytes, cost.read.get(i, s.num_bytes)) for i, s in enumerate(ins)) + sum(s.num_bytes for s in outs)
        schedule = str(self.tunings.get(name, "bufferize"))
        return KernelInfo(name, ins, outs, tuple(read["relay.ops"]), tuple(read["relay.sources"]), cost.flops, moved, schedule)

    # ---- main

    def main(self, function: ir.OpView) -> None:
        block = function.regions[0].blocks[0]
        returned = list(block.operations[len(block.operations) - 1].operands)
        argument_types = [a.type for a in block.arguments]
        self.out.inputs = _specs(function, "input", argument_types, _names(function, "arg_attrs", len(argument_types), "input"))
        result_types = [v.type for v in returned]
        self.out.outputs = _specs(function, "output", result_types, _names(function, "res_attrs", len(returned), "output"))
        calls = self.assign(block, returned)
        tensors = list({id(b.tensor): b.tensor for b in self.buffers.values() if b.tensor is not None}.values())
        workspaces = []
        for step, call in enumerate(calls):
            size = self.scheduled[call.callee.value].workspace_bytes
            workspaces.append(_Buffer("arena", tensor=Tensor(size, step, step)) if size else None)
        tensors += [w.tensor for w in workspaces if w is not None]
        self.out.arena_bytes = max(plan(tensors), align(1))
        self.emit_main(block, calls, returned, workspaces)

    def assign(self, block: ir.Block, returned: Sequence[Value]) -> list[func.CallOp]:
        """Gives every value of main its buffer and every arena tensor its life; returns the calls in order."""
        calls: list[func.CallOp] = []
        outer: dict[Value, Tensor] = {}
        for i, argument in enumerate(block.arguments):
            self.buffers[argument] = _Buffer("input", i)
        for op in block.operations:
            operands = list(op.operation.operands)
            for operand in operands:
                if self.buffers[operand].tensor is not None:
                    self.buffers[operand].tensor.last = len(calls)
            if isinstance(op, Constant):
                self.buffers[op.operation.results[0]] = _Buffer("param", key=op.key, element=op.operation.results[0].type.element_type)
            elif isinstance(op, func.CallOp):
                for result in op.operation.results:
                    whole, offset = self.places.outermost(result)
                    size = prod(whole.type.shape) * _bytes(whole.type.element_type)
                    tensor = outer.setdefault(whole, Tensor(size, len(calls), len(calls)))
                    tensor.last = len(calls)
                    self.buffers[result] = _Buffer("arena", tensor=tensor, offset=offset)
                if op.operation.results[0] not in self.places.needless:
                    calls.append(op)
            elif op.operation.name in VIEWS:
                self.buffers[op.operation.results[0]] = self.buffers[operands[0]]
            elif op.operation.name != "func.return":
                raise RelayError(f"{op.operation.name} at {op.operation.location}: expected calls, parameters and reshapes in main")
        for i, value in enumerate(returned):
            buffer = self.buffers[value]
            if buffer.space != "arena":
                raise RelayError(f"result {i} of main: expected the result of a kernel that is returned once")
            buffer.space, buffer.index, buffer.tensor = "output", i, None
        return calls

    def emit_main(self, block: ir.Block, calls: Sequence[func.CallOp], returned: Sequence[Value], workspaces: Sequence) -> None:
        refs = [self.references(call, workspace) for call, workspace in zip(calls, workspaces, strict=True)]
        i8 = ir.IntegerType.get_signless(8)
        self.out.params_bytes = max(self.out.params_bytes, align(1))
        types = [buffer_type(t.shape, t.element_type) for t in (*[a.type for a in block.arguments], *[v.type for v in returned])]
        types += [ir.MemRefType.get([self.out.arena_bytes], i8), ir.MemRefType.get([self.out.params_bytes], i8)]
        entry = func.FuncOp("main", (types, []))
        arguments = list(entry.add_entry_block().arguments)
        steps = []
        with ir.InsertionPoint(entry.entry_block):
            for call, (ins, outs) in zip(calls, refs, strict=True):
                name = call.callee.value
                wanted = ir.FunctionType(ir.TypeAttr(self.scheduled[name].function.attributes["function_type"]).value).inputs
                with call.operation.location:
                    operands = [self.view(arguments, ref, type_) for ref, type_ in zip((*ins, *outs), wanted, strict=True)]
                    func.CallOp([], ir.FlatSymbolRefAttr.get(name), operands)
                steps.append(Step(name, ins, outs, sources_of(call.operation.location)))
            func.ReturnOp([])
        self.out.steps = tuple(steps)

    def references(self, call: func.CallOp, workspace: _Buffer | None) -> tuple[tuple[BufferRef, ...], tuple[BufferRef, ...]]:
        name = call.callee.value
        info = next(k for k in self.out.kernels if k.name == name)
        packings = self.scheduled[name].packings
        ins = []
        for i, (operand, spec) in enumerate(zip(call.operation.operands, info.inputs, strict=True)):
            buffer = self.buffers[operand]
            if buffer.space == "param":
                offset = self.param(buffer.key, operand.type, packings.get(i))
                ins.append(BufferRef("param", 0, offset, spec))
            else:
                ins.append(self.reference(buffer, spec))
        buffers = [self.buffers[r] for r in call.operation.results] + ([workspace] if workspace is not None else [])
        return tuple(ins), tuple(self.reference(b, s) for b, s in zip(buffers, info.outputs, strict=True))

    def reference(self, buffer: _Buffer, spec: TensorSpec) -> BufferRef:
        offset = buffer.tensor.offset + buffer.offset if buffer.tensor is not None else 0
        return BufferRef(buffer.space, buffer.index, offset, spec)  # type: ignore[arg-type]

    def param(self, key: str, type_: ir.RankedTensorType, packing: Packing | None) -> int:
        """Offset in the blob of a parameter as a kernel takes it; entered on first use."""
        name = (key, packing.name if packing is not None else "")
        if name not in self.params:
            shape = tuple(type_.shape)
            size = prod(packing.shape if packing is not None else shape) * _bytes(type_.element_type)
            offset = self.out.params_bytes
            self.out.layout.append(Parameter(key, offset, size, self.source.params.get(key), shape, packing))
            self.out.params_bytes = offset + align(max(size, 1))
            self.params[name] = (offset, type_.element_type)
        return self.params[name][0]

    def view(self, arguments: Sequence[Value], ref: BufferRef, type_: ir.MemRefType) -> Value:
        """The memref that a kernel takes for a buffer."""
        if ref.space in ("input", "output"):
            at = ref.index + (len(self.out.inputs) if ref.space == "output" else 0)
            return _reshaped(arguments[at], type_)
        blob = arguments[-2 if ref.space == "arena" else -1]
        return emit.create("memref.view", [type_], [blob, emit.index_constant(ref.offset)])


def _reshaped(buffer: Value, type_: ir.MemRefType) -> Value:
    if buffer.type == type_:
        return buffer
    offset, strides = 0, []
    step = 1
    for extent in reversed(list(type_.shape)):
        strides.insert(0, step)
        step *= extent
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(type_.shape)),
        "static_strides": ir.DenseI64ArrayAttr.get(strides),
    }
    strided = ir.MemRefType.get(list(type_.shape), type_.element_type, ir.StridedLayoutAttr.get(0, strides))
    view = emit.create("memref.reinterpret_cast", [strided], [buffer], attributes)
    return emit.create("memref.cast", [type_], [view])


def _bytes(element: ir.Type) -> int:
    return max(1, element.width // 8)
