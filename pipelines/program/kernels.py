"""Schedules the kernels: lowers every kernel to the tir stage.

A kernel `@k` over tensors becomes `@k` over memrefs: its arguments, then destinations of its results, then its workspace, if it needs one.
A calling program still works on tensors: it calls a declaration `@k.te` with `relay.tir = @k`, which has the tensor signature of the
kernel. An argument that the kernel requests in another layout has the attribute `relay.packing` (see tir.strategy.packing).

Attributes of the function record facts for users and the runtime:

- `relay.tensors`: the type of the kernel as callers see it, with signs and bools;
- `relay.ops`, `relay.sources`: its operators and source nodes;
- `relay.declined`: the reasons of strategies that declined it, if requested ("schedule.why");
- `relay.schedule`: the strategy and its numbers; `relay.flops`: floating-point operations of a call; `relay.bytes`: lower bound of the
  bytes that a call moves, in and out;
- `relay.own_flops`: the operations of its operators by their definitions, if the kernel computes them differently (Winograd);
- `relay.workspace`: bytes of its workspace, if that is an expression;
- `relay.updates`: a result may share the memory of an argument (see te.read.updates);
- `relay.uses_tiles`: it has operations on tile registers;
- `relay.turns`: it supports both traversal directions (see tir.strategy.turns);
- `relay.fails`: it may raise an error (see Backend.kernels_fail).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from relayc.dialects.discardable import (
    BYTES,
    DECLINED,
    FAILS,
    FLOPS,
    OPERATORS,
    OWN_FLOPS,
    PACKING,
    SCHEDULE,
    SOURCES,
    TENSORS,
    TIR,
    TURNS,
    UPDATES,
    USES_TILES,
    WORKSPACE,
    copy_discardable,
)
from relayc.dialects.functions import Names, signature_of, symbol_name, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.operations import called_names, walk
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.passes import PassContext, config_option, module_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.sizes import symbol_attributes, symbol_names, tensor_count
from relayc.pipelines.program.functions import Functions, dtypes_of, read_functions, specs_of, tensors_of
from relayc.pipelines.program.schedules import Schedules
from relayc.pipelines.program.turning import mark_repeated
from relayc.pipelines.te.read.cost import Cost, kernel_cost
from relayc.pipelines.te.read.updates import updates_of
from relayc.pipelines.tir.fallback.bufferize import bufferize_kernel
from relayc.pipelines.tir.fallback.vectorize import vectorize_loops
from relayc.pipelines.tir.strategy.choice import Choice
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.table import WHY
from relayc.runtime.artifact import TensorSpec
from relayc.symbolic import Dim, Size, minimum

config_option("target", Target, None, "the Target that te-to-tir and tir-to-llvm lower for; None is this machine's CPU")


def target_of(ctx: PassContext) -> Target:
    """The target that a context lowers for."""
    return ctx.get("target") or Target("cpu")


@module_pass(opt_level=0, name="ScheduleKernels", stage="tir")
def schedule_kernels(mod: IRModule, ctx: PassContext) -> IRModule:
    """Kernels become loops over buffers by their schedules (pipelines.program.kernels).

    The config of the context has the tunable numbers of schedules (see tir.strategy.table).

    Raises:
      ValueError: an unknown number; a pattern of schedules that matches no kernel; a schedule that is not legal.
      RelayError: the module is not in the te stage.
    """
    target, config = target_of(ctx), ctx.config
    functions = read_functions(mod.module)
    called = {name for f in functions.programs.values() for name in called_names(f.operation)}
    mark_repeated(functions.programs.values(), functions.kernels)
    fails = find_backend(target.kind).kernels_fail(target)
    _stand_in(mod.module, functions, [name for name in functions.kernels if name in called])
    for name, choice in _schedule(mod.module, functions.kernels, target, config).items():
        function, scheduled = functions.kernels[name], choice.scheduled
        assert scheduled is not None
        _describe(scheduled, str(choice), function, kernel_cost(choice.kernel or function))
        if fails:
            FAILS.mark(scheduled.function)
        if config.get(WHY):
            DECLINED.put(scheduled.function, tuple(f"{name}: {why}" for name, why in choice.declined))
        scheduled.function.operation.move_before(function.operation)
    for function in functions.kernels.values():
        function.operation.erase()
    for name, standin in functions.standins.items():
        _describe_tir(functions.tir[functions.implementation(name)], standin)
    return mod


def _schedule(module: ir.Module, kernels: Mapping[str, ir.OpView], target: Target, config: Mapping[str, Any]) -> dict[str, Choice]:
    """Lowers the kernels to tir, at the end of the module; returns the choice made for each."""
    observers = [i for i in PassContext.current().instruments if i.observes_tunings]
    schedules = Schedules(kernels, target, config, asks_values=bool(observers))
    found: dict[str, Choice] = {}
    left = []
    for name, function in kernels.items():
        with ir.InsertionPoint(module.body), function.operation.location:
            found[name] = schedules.choose(name, function)
        for observer in observers:
            observer.run_on_tuning(name, found[name].tuning.values)
        if found[name].scheduled is None:
            left.append(function)
    if left:
        fallback = ir.Module.create()
        with ir.InsertionPoint(fallback.body):
            for function in left:
                function.operation.clone()
        workspaces = find_backend(target.kind).launch_loops(fallback)
        if workspaces is None:
            bufferize_kernel(fallback)
            vectorize_loops(fallback, target.vector_bytes, target.mask_bits)
        for function in fallback.body.operations:
            with ir.InsertionPoint(module.body):
                clone = function.operation.clone().opview
            if isinstance(clone, func.FuncOp):
                scheduled = Scheduled(clone, workspace_bytes=(workspaces or {}).get(symbol_name(clone), 0))
                found[symbol_name(clone)] = replace(found[symbol_name(clone)], scheduled=scheduled, is_fallback=True)
    return found


def _stand_in(module: ir.Module, functions: Functions, names: Sequence[str]) -> None:
    """Declares the called kernels under another name, and redirects the calls of programs to the declarations."""
    taken = Names(module)
    names_of = {}
    for name in names:
        kernel = functions.kernels[name]
        names_of[name] = taken.free(f"{name}.te")
        with ir.InsertionPoint(kernel), kernel.operation.location:
            declared = func.FuncOp(names_of[name], signature_of(kernel), visibility="private")
        if symbol_names(kernel):
            declared.arg_attrs = [*[ir.DictAttr.get({})] * tensor_count(kernel), *symbol_attributes(symbol_names(kernel))]
        TIR.put(declared, name)

    for program in functions.programs.values():
        for call in walk(program.operation, func.CallOp):
            if call.callee.value in names_of:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(names_of[call.callee.value])


# ---- descriptions ------------------------------------------------------------------------------------------------------------------


def type_for_callers(function: ir.OpView) -> ir.FunctionType:
    """The type of a te function as callers see it, with signed element types."""
    seen = []
    for which in ("input", "output"):
        tensors = zip(tensors_of(function, which), dtypes_of(function, which), strict=True)
        seen.append([TensorType.from_mlir(t).with_dtype(dtype).to_mlir() for t, dtype in tensors])
    return ir.FunctionType.get(*seen)


def _describe(scheduled: Scheduled, schedule: str, source: ir.OpView, cost: Cost) -> None:
    """Records facts about a kernel in the attributes of its function."""
    function = scheduled.function
    ins, outs = specs_of(source, "input"), specs_of(source, "output")
    taken = [TensorSpec(s.name, scheduled.packings[i].shape, s.dtype) if i in scheduled.packings else s for i, s in enumerate(ins)]
    updates = updates_of(source)  # of an argument updated in place only the written elements would count
    moved = sum((minimum(s.num_bytes, cost.read.get(i, s.num_bytes)) for i, s in enumerate(taken) if i not in updates.values()), 0)
    moved += sum(s.num_bytes for i, s in enumerate(outs) if i not in updates) + scheduled.workspace_bytes
    _annotate(function, source, schedule, cost.flops, moved)
    if isinstance(scheduled.workspace_bytes, Dim):
        WORKSPACE.put(function, scheduled.workspace_bytes)
    if scheduled.packings:
        arguments = value_attributes(function)
        for i, packing in scheduled.packings.items():
            arguments[i] = ir.DictAttr.get(PACKING.entry(packing.to_attribute()))
        function.arg_attrs = arguments
    if scheduled.uses_tiles:
        USES_TILES.mark(function)
    if scheduled.turns:
        TURNS.mark(function)


def _describe_tir(function: ir.OpView, standin: ir.OpView) -> None:
    """Records facts about a tir function, from its declaration; its computation is unknown."""
    moved = sum(s.num_bytes for s in (*specs_of(standin, "input"), *specs_of(standin, "output")))
    _annotate(function, standin, "tir", 0, moved)


_MOST_FLOPS = (1 << 63) - 1


def _annotate(function: ir.OpView, source: ir.OpView, schedule: str, flops: Size, moved: Size) -> None:
    TENSORS.put(function, type_for_callers(source))
    SCHEDULE.put(function, schedule)
    # Buffers of tens of terabytes compile; their number of operations may exceed the range of an attribute.
    FLOPS.put(function, min(flops, _MOST_FLOPS) if isinstance(flops, int) else flops)
    BYTES.put(function, moved)
    copy_discardable((OPERATORS, SOURCES, OWN_FLOPS, UPDATES), source, function)
