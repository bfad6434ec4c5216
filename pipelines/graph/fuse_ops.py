"""FuseOps: gathers operators into `relay.fused` groups, each of which becomes one kernel.

After it a function holds only constants, groups, views (`relay.reshape`, which moves no data) and its return. Groups are rewritten in the
IR: a producer is merged into the group that uses its result where a rule of graph/fusion/rules.py, or one from outside
(`relayc.fusion_rule`), says so. Groups that are there already take part as they are.
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.fusion.groups import graph_groups
from relayc.pipelines.graph.fusion.merge import wrap
from relayc.pipelines.graph.fusion.sweep import Enabled, Sweep, enabled_rules
from relayc.pipelines.graph.fusion.widenings import repeat_widenings


@function_pass(opt_level=0, name="FuseOps")
def fuse_ops(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Gathers operators into relay.fused groups; below opt_level 1 every operator is a group of its own."""
    enabled = enabled_rules(ctx)
    for block in list(graph_blocks(func)):
        fuse_block(block, enabled)


def fuse_block(block: ir.Block, enabled: Enabled) -> None:
    """Gathers the operators of a block."""
    if enabled.sweeps:
        repeat_widenings(block)
    for composite in enabled.composites:
        composite.gather(block)
    for rules in enabled.sweeps:
        Sweep(block, rules, enabled).run()
    for group in graph_groups(block):
        if not group.is_fused:
            wrap(group.op)
