"""The passes between the stages: relay -> te -> tir -> llvm, under their command-line names."""

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.backend import find_backend
from relayc.pipelines.passes import PassContext, config_option, module_pass
from relayc.pipelines.program import MAX_RECURSION_DEPTH
from relayc.pipelines.target import Target

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
    """Fusion groups become functions of linalg operations (pipelines.te.lower)."""
    from relayc.pipelines.te.lower import lower_module

    return lower_module(mod)


@module_pass(opt_level=0, name="MaterializeResults", stage="te")
def materialize_results(mod: IRModule, ctx: PassContext) -> IRModule:
    """Copies where a program gives what is not memory of its own, such as inputs and parameters (pipelines.program.results)."""
    from relayc.pipelines.program.results import materialize_results as materialize

    return materialize(mod)


@module_pass(opt_level=0, name="TeToTir", stage="tir")
def te_to_tir(mod: IRModule, ctx: PassContext) -> IRModule:
    """Kernels become loops by their schedules, memory is planned (pipelines.program.lower)."""
    from relayc.pipelines.program.lower import lower_to_tir

    return lower_to_tir(mod, _target(ctx), ctx.config)


@module_pass(opt_level=0, name="TirToLlvm", stage="llvm")
def tir_to_llvm(mod: IRModule, ctx: PassContext) -> IRModule:
    """Loops and vectors become the last stage of the target's backend (pipelines.backend): for CPUs the LLVM and OpenMP dialects."""
    target = _target(ctx)
    find_backend(target.kind).lower(mod.module, target)
    return mod


@module_pass(opt_level=0, name="BufferizeKernels", stage="tir")
def bufferize_kernels(mod: IRModule, ctx: PassContext) -> IRModule:
    """te functions become loops over buffers as they stand: the fallback schedule alone (pipelines.codegen.bufferize)."""
    from relayc.pipelines.codegen.bufferize import bufferize_kernel

    bufferize_kernel(mod.module)
    return mod


@module_pass(opt_level=0, name="ExpandMath", stage="llvm")
def expand_math(mod: IRModule, ctx: PassContext) -> IRModule:
    """Mathematical functions become arithmetic (pipelines.codegen.expand_math)."""
    from relayc.pipelines.codegen.expand_math import expand_math as expand

    expand(mod.module)
    return mod
