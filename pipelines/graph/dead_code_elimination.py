"""DeadCodeElimination: removes operations whose results nobody uses, private functions nobody calls and parameters nobody names."""

from relayc.dialects.mlir import ir
from relayc.dialects.operations import walk
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.context.upstream import run_upstream


def erase_dead(func: ir.Operation) -> None:
    """Erases the pure operations of a function without uses, and what only they used (upstream's trivial-dce)."""
    run_upstream(func, "trivial-dce")


def drop_unused_params(mod: IRModule) -> None:
    """Takes entries out of the parameter table that no relay.constant names."""
    used = {constant.key for constant in walk(mod.module.operation, Constant)}
    for key in mod.params.keys() - used:
        del mod.params[key]


@module_pass(opt_level=0, name="DeadCodeElimination")
def dead_code_elimination(mod: IRModule, ctx: PassContext) -> IRModule:
    """Removes operations without uses, private functions without calls and parameters that no constant names."""
    for func in functions(mod):
        erase_dead(func)
    run_upstream(mod.module.operation, "symbol-dce")
    drop_unused_params(mod)
    return mod
