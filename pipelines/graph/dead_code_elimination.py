"""DeadCodeElimination: removes operations whose results nobody uses, private functions nobody calls and parameters nobody names."""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Call
from relayc.pipelines.graph.rewrite import drop_unused_params, graph_blocks
from relayc.pipelines.passes import PassContext, functions, module_pass


def erase_dead(func: ir.Operation) -> None:
    """Erases the pure operations of a function without uses, last first, so that what only they used goes too."""
    for block in list(graph_blocks(func)):
        for op in reversed(list(block.operations)):
            if isinstance(op, Op) and op.pure and not any(True for r in op.operation.results for _ in r.uses):
                op.operation.erase()


def erase_uncalled(mod: IRModule) -> None:
    """Erases private functions that no call reaches from a public one."""
    by_name = {ir.StringAttr(f.attributes["sym_name"]).value: f for f in functions(mod)}
    private = {name for name, f in by_name.items() if "sym_visibility" in f.attributes and "private" in str(f.attributes["sym_visibility"])}
    reached: set[str] = set()
    pending = [name for name in by_name if name not in private]
    while pending:
        name = pending.pop()
        if name in reached or name not in by_name:
            continue
        reached.add(name)
        for block in graph_blocks(by_name[name]):
            pending += [op.callee for op in block.operations if isinstance(op, Call)]
    for name in private - reached:
        by_name[name].erase()


@module_pass(opt_level=0, name="DeadCodeElimination")
def dead_code_elimination(mod: IRModule, ctx: PassContext) -> IRModule:
    """Removes operations without uses, private functions without calls and parameters that no constant names."""
    for func in functions(mod):
        erase_dead(func)
    erase_uncalled(mod)
    drop_unused_params(mod)
    return mod
