"""Passes on kernels of GPUs, under their command-line names."""

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext, config_option, module_pass

CHECK_RACES = "gpu.check_races"

config_option(
    CHECK_RACES,
    bool,
    False,
    "emulated kernels raise an error where two threads of a block use the same shared memory, one of them writing, with no barrier between",
)


@module_pass(opt_level=0, name="OutlineLaunches", stage="llvm")
def outline_launches(mod: IRModule, ctx: PassContext) -> IRModule:
    """Launches become kernels in a gpu.module, with what they need of the host as arguments (pipelines.targets.gpu.outline)."""
    from relayc.pipelines.targets.gpu.outline import outline_launches as outline

    outline(mod.module)
    return mod


@module_pass(opt_level=0, name="EmulateKernels", stage="llvm")
def emulate_kernels(mod: IRModule, ctx: PassContext) -> IRModule:
    """Outlined kernels become functions that run the whole grid on the CPU (pipelines.targets.gpu.emulate)."""
    from relayc.pipelines.targets.gpu.emulate import emulate_kernels as emulate

    emulate(mod.module, ctx.get(CHECK_RACES))
    return mod
