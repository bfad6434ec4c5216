"""The passes between the stages: relay -> te -> tir -> llvm, under their command-line names."""

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.passes import PassContext, Sequential, config_option, module_pass, register_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph.merge_similar_kernels import merge_similar_kernels
from relayc.pipelines.graph.outline_groups import outline_groups
from relayc.pipelines.program import MAX_RECURSION_DEPTH

config_option("target", Target, None, "the Target that te-to-tir and tir-to-llvm lower for; None is this machine's CPU")
config_option(
    "relay.max_recursion_depth",
    int,
    MAX_RECURSION_DEPTH,
    "how many calls of a recursive program may nest; its memory is planned for them all",
)


def _target(ctx: PassContext) -> Target:
    return ctx.get("target") or Target("cpu")


@module_pass(opt_level=0, name="RelayToTe", stage="te")
def relay_to_te(mod: IRModule, ctx: PassContext) -> IRModule:
    """Functions of fusion groups become kernels of linalg operations, the others programs that call them (pipelines.te.lower)."""
    from relayc.pipelines.te.lower import lower_module

    return lower_module(mod)


@module_pass(opt_level=0, name="MaterializeResults", stage="te")
def materialize_results(mod: IRModule, ctx: PassContext) -> IRModule:
    """Copies results that are not a program's own memory, such as inputs and parameters (pipelines.program.results)."""
    from relayc.pipelines.program.results import materialize_results as materialize

    return materialize(mod)


@module_pass(opt_level=0, name="ConcatenateInPlace", stage="te")
def concatenate_in_place(mod: IRModule, ctx: PassContext) -> IRModule:
    """Removes kernels of concatenations whose operands can be written directly to their place (pipelines.program.joins)."""
    from relayc.pipelines.program.joins import concatenate_in_place as concatenate

    return concatenate(mod)


@module_pass(opt_level=0, name="ScheduleKernels", stage="tir")
def schedule_kernels(mod: IRModule, ctx: PassContext) -> IRModule:
    """Kernels become loops over buffers by their schedules (pipelines.program.kernels)."""
    from relayc.pipelines.program.kernels import schedule_kernels as schedule

    return schedule(mod, _target(ctx), ctx.config)


@module_pass(opt_level=0, name="BufferizePrograms", stage="tir")
def bufferize_programs(mod: IRModule, ctx: PassContext) -> IRModule:
    """Tensors of programs become buffers, reshapes and concatenations views (pipelines.program.buffers)."""
    from relayc.pipelines.program.buffers import bufferize_programs as bufferize

    return bufferize(mod)


@module_pass(opt_level=0, name="PlanMemory", stage="tir")
def plan_memory(mod: IRModule, ctx: PassContext) -> IRModule:
    """Buffers and parameters become parts of an arena and a blob, at offsets (pipelines.program.plan)."""
    from relayc.pipelines.program.plan import plan_memory as plan

    depth = ctx.get("relay.max_recursion_depth")
    if depth < 1:
        raise ValueError(f"relay.max_recursion_depth: expected at least 1, found {depth}")
    return plan(mod, depth)


@module_pass(opt_level=0, name="EmitCalls", stage="tir")
def emit_calls(mod: IRModule, ctx: PassContext) -> IRModule:
    """Branches and loops of programs become blocks, and calls that can fail are checked (pipelines.program.calls)."""
    from relayc.pipelines.program.tir import complete

    return complete(mod)


te_pipeline = Sequential([outline_groups, merge_similar_kernels, relay_to_te, materialize_results], name="LowerToTe", stage="te")
"""relay -> te."""

te_to_tir = Sequential([concatenate_in_place, schedule_kernels, bufferize_programs, plan_memory, emit_calls], name="TeToTir", stage="tir")
"""te -> tir; returns a TirModule (pipelines.program.tir)."""

register_pass(te_pipeline)
register_pass(te_to_tir)


@module_pass(opt_level=0, name="TirToLlvm", stage="llvm")
def tir_to_llvm(mod: IRModule, ctx: PassContext) -> IRModule:
    """Loops and vectors become the last stage of the target's backend (pipelines.context.backend): for CPUs the LLVM and OpenMP
    dialects."""
    target = _target(ctx)
    find_backend(target.kind).lower(mod.module, target)
    return mod


@module_pass(opt_level=0, name="BufferizeKernels", stage="tir")
def bufferize_kernels(mod: IRModule, ctx: PassContext) -> IRModule:
    """te functions become loops over buffers as they stand: the fallback schedule alone (pipelines.tir.fallback.bufferize)."""
    from relayc.pipelines.tir.fallback.bufferize import bufferize_kernel

    bufferize_kernel(mod.module)
    return mod


@module_pass(opt_level=0, name="GuardDivisions", stage="llvm")
def guard_divisions(mod: IRModule, ctx: PassContext) -> IRModule:
    """Integer divisions that may trap divide by 1 instead (pipelines.llvm.divisions)."""
    from relayc.pipelines.llvm.divisions import guard_divisions as guard

    guard(mod.module)
    return mod


@module_pass(opt_level=0, name="ExpandMath", stage="llvm")
def expand_math(mod: IRModule, ctx: PassContext) -> IRModule:
    """Mathematical functions become arithmetic (pipelines.llvm.expand_math)."""
    from relayc.pipelines.llvm.expand_math import expand_math as expand

    expand(mod.module)
    return mod
