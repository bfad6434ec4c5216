"""Passes on blocks and loops, under their command-line names: for the lit tests of primitives."""

from relayc.dialects.functions import calls_others
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir.names import FORM
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.tir.schedule.transform_script import run_sequence
from relayc.pipelines.tir.tree.create import create_nest

_WITH_SEQUENCE = "transform.with_named_sequence"


@module_pass(opt_level=0, name="TeToBlocks", stage="te")
def te_to_blocks(mod: IRModule, ctx: PassContext) -> IRModule:
    """Converts kernels of linalg operations to blocks and loops (pipelines.tir.tree.create); removes programs that call them."""
    for function in functions(mod):
        if FORM in function.attributes:
            continue
        if not calls_others(function):
            nest = create_nest(function, mod.module)
            nest.function.operation.move_before(function)
        function.erase()
    return mod


@module_pass(opt_level=0, name="ApplySchedule", stage="te")
def apply_schedule(mod: IRModule, ctx: PassContext) -> IRModule:
    """Runs the script of the module, a transform.named_sequence, on its functions of blocks and loops, and removes the script."""
    run_sequence(mod.module, mod.module)
    for op in list(mod.module.body.operations):
        if op.operation.name == "transform.named_sequence":
            op.operation.erase()
    attributes = mod.module.operation.attributes
    if _WITH_SEQUENCE in attributes:
        del attributes[_WITH_SEQUENCE]
    return mod
