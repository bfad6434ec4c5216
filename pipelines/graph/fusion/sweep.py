"""A sweep over a block: every group, last first, is tried with the group that uses its result."""

import itertools
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Pattern
from relayc.nearest import nearest
from relayc.pipelines.context.instruments import PassInfo
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.graph.fusion.composites import COMPOSITES, CompositeRule
from relayc.pipelines.graph.fusion.groups import Group, belongs_in_group
from relayc.pipelines.graph.fusion.merge import merge
from relayc.pipelines.graph.fusion.rules import CONSTRAINTS, RULES, Constraint, Rule


@dataclass(frozen=True)
class Enabled:
    """The rules that a PassContext enables for FuseOps.

    Attributes:
      composites: the rules that gather matches of a pattern, in order.
      sweeps: the other rules, by sweep, in order.
      constraints: on every merge.
      max_depth, max_operands: limits of a group's operators and operands.
    """

    composites: tuple[CompositeRule, ...]
    sweeps: tuple[tuple[Rule, ...], ...]
    constraints: tuple[Constraint, ...]
    max_depth: int
    max_operands: int


def enabled_rules(ctx: PassContext) -> Enabled:
    """The rules and constraints that a PassContext does not disable, by `disabled_pass` or by `relay.FuseOps.disabled_rules`.

    Raises ValueError for an unknown name, and for a constraint that cannot be disabled.
    """
    off = set(ctx.get("relay.FuseOps.disabled_rules"))
    named = {flag.partition(".")[2] for flag in ctx.disabled_pass | ctx.required_pass if flag.startswith("fuse-ops.")}
    optional = [constraint for constraint in CONSTRAINTS if not constraint.required]
    known = [*(rule.name for rule in COMPOSITES), *(rule.name for rule in RULES), *(rule.name for rule in optional)]
    unknown = sorted(map(str, (off | named) - set(known)))
    if unknown:
        always = ", ".join(constraint.name for constraint in CONSTRAINTS if constraint.required)
        found = f"{', '.join(unknown)}{nearest(unknown[0], known)}"
        raise ValueError(f"FuseOps: expected rules out of {', '.join(known)} ({always} always hold), found {found}")

    def is_on(rule: Rule | Constraint | CompositeRule) -> bool:
        """Each is to a PassContext a pass named FuseOps.NAME."""
        return rule.name not in off and ctx.enabled(PassInfo(f"FuseOps.{rule.name}", rule.opt_level))

    return Enabled(
        composites=tuple(filter(is_on, COMPOSITES)),
        sweeps=tuple(tuple(together) for _, together in itertools.groupby(filter(is_on, RULES), key=lambda rule: rule.sweep)),
        constraints=tuple(c for c in CONSTRAINTS if c.required or is_on(c)),
        max_depth=ctx.get("relay.FuseOps.max_depth"),
        max_operands=ctx.get("relay.FuseOps.max_operands"),
    )


class Sweep:
    """One sweep over one block; caches views of the groups while it runs.

    Args:
      block: the block.
      rules: the rules to try, in order.
      enabled: constraints and limits.
    """

    def __init__(self, block: ir.Block, rules: tuple[Rule, ...], enabled: Enabled) -> None:
        self.block, self.rules, self.enabled = block, rules, enabled
        self._groups: dict[ir.Value, Group] = {}
        # By result: an operation cannot be a key, because its hash changes with its operands.
        self._asked: dict[tuple[Pattern, Pattern], list[Rule]] = {}

    def run(self) -> None:
        """Tries every group with the group that uses its result, and merges the two if a rule applies."""
        producers = frozenset().union(*(rule.producers for rule in self.rules))
        for op in reversed(list(self.block.operations)):
            if not belongs_in_group(op):
                continue
            producer = Group(op)
            if not producer.computes:
                continue
            self._groups[producer.result] = producer
            if producer.pattern not in producers or not producer.users:
                continue
            consumer = self._consumer(producer.users[0])
            if consumer is not None and self._joins(producer, consumer):
                merged = merge(producer, consumer)
                self._groups[merged.result] = merged

    def _consumer(self, user: ir.OpView) -> Group | None:
        """The group of this block that is, or contains, an operation; None if there is none."""
        operation = user.operation
        if operation.block != self.block:
            operation = operation.parent
            if operation is None or operation.block != self.block:
                return None
        results = operation.results
        return self._groups.get(results[0]) if len(results) else None

    def _joins(self, producer: Group, consumer: Group) -> bool:
        """Whether a rule merges the two and no constraint forbids it."""
        asked = self._rules_for(producer.pattern, consumer.pattern)
        gathered = [group for group in (producer, consumer) if group.is_fused and group.composite is not None] if asked else []
        if gathered:
            asked = [rule for rule in asked if rule.extend and len(gathered) == 1]
        if not asked or not all(constraint.allows(producer, consumer) for constraint in self.enabled.constraints):
            return False
        return self._fits(producer, consumer) and any(rule.allows(producer, consumer) for rule in asked)

    def _rules_for(self, producer: Pattern, consumer: Pattern) -> list[Rule]:
        """The rules for groups of these patterns."""
        if (producer, consumer) not in self._asked:
            found = [rule for rule in self.rules if producer in rule.producers and consumer in rule.consumers]
            self._asked[producer, consumer] = found
        return self._asked[producer, consumer]

    def _fits(self, producer: Group, consumer: Group) -> bool:
        """Whether the merged group is within the limits of operators and operands."""
        if len(producer.members) + len(consumer.members) > self.enabled.max_depth:
            return False
        if producer.max_operands + consumer.max_operands - 1 <= self.enabled.max_operands:
            return True
        return len({*producer.captured, *consumer.captured}) - 1 <= self.enabled.max_operands
