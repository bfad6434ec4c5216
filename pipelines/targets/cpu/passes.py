"""Passes of the backend cpu, under their command-line names."""

from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext, module_pass


@module_pass(opt_level=0, name="EmulateInstructions", stage="llvm")
def emulate_instructions(mod: IRModule, ctx: PassContext) -> IRModule:
    """AMX tiles and AVX512-BF16 dot products become ordinary loops and vectors (pipelines.targets.cpu.emulate_x86)."""
    from relayc.pipelines.targets.cpu.emulate_x86 import emulate_x86

    emulate_x86(mod.module)
    return mod
