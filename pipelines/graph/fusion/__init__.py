"""Fusion groups and the rules by which they grow; the pass is FuseOps in pipelines/graph/fuse_ops.py.

groups.py reads a group from the IR, merge.py changes groups, rules.py has the rules, sweep.py applies them, composites.py groups matches of
a pattern, outside.py registers rules from outside the package.
"""

from relayc.pipelines.graph.fusion.composites import CompositeRule
from relayc.pipelines.graph.fusion.groups import Group, graph_groups
from relayc.pipelines.graph.fusion.outside import fusion_rule, outside_rules, remove_fusion_rule
from relayc.pipelines.graph.fusion.rules import Constraint, Rule
