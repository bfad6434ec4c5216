"""Passes on kernels of NVIDIA GPUs, by their command-line names, and the config options of their code."""

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext, config_option, module_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.target import DEFAULT_ARCH, CudaTarget

ARCHITECTURES_OPTION = "cuda.architectures"
config_option(ARCHITECTURES_OPTION, list, [], "architectures besides the target's that a program for cuda is compiled for, such as sm_89")


@module_pass(opt_level=0, name="LowerKernels", stage="llvm")
def lower_kernels(mod: IRModule, ctx: PassContext) -> IRModule:
    """Outlined kernels become functions of the LLVM dialect for the context's target, or for cuda
    (pipelines.targets.cuda.device.lowering)."""
    from relayc.pipelines.targets.cuda.device.lowering import lower_kernels as lower

    target = ctx.get("target")
    if not isinstance(target, CudaTarget):
        target = Target("cuda", arch=DEFAULT_ARCH)
    assert isinstance(target, CudaTarget)
    lower(mod.module, target)
    return mod
