"""The passes between the stages: relay -> te -> tir -> llvm, under their command-line names."""

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.passes import PassContext, Sequential, module_pass, register_pass
from relayc.pipelines.graph.merge_similar_kernels import merge_similar_kernels
from relayc.pipelines.graph.outline_groups import outline_groups
from relayc.pipelines.program.buffers import bufferize_programs
from relayc.pipelines.program.joins import concatenate_in_place
from relayc.pipelines.program.kernels import schedule_kernels, target_of
from relayc.pipelines.program.plan import plan_memory
from relayc.pipelines.program.results import materialize_results
from relayc.pipelines.program.tir import complete
from relayc.pipelines.te.lower import lower_module

te_pipeline = Sequential([outline_groups, merge_similar_kernels, lower_module, materialize_results], name="LowerToTe", stage="te")
"""relay -> te."""

te_to_tir = Sequential([concatenate_in_place, schedule_kernels, bufferize_programs, plan_memory, complete], name="TeToTir", stage="tir")
"""te -> tir; returns a TirModule (pipelines.program.tir)."""

register_pass(te_pipeline)
register_pass(te_to_tir)


@module_pass(opt_level=0, name="TirToLlvm", stage="llvm")
def tir_to_llvm(mod: IRModule, ctx: PassContext) -> IRModule:
    """Loops and vectors become the last stage of the target's backend (pipelines.context.backend): for CPUs the LLVM and OpenMP
    dialects."""
    target = target_of(ctx)
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
