"""A sweep over a block: every group, last first, is offered to the group that uses its result."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.graph.fusion.groups import Group, belongs_in_group
from relayc.pipelines.graph.fusion.merge import merge
from relayc.pipelines.graph.fusion.rules import CONSTRAINTS, RULES, Constraint, Rule
from relayc.pipelines.passes import PassContext


@dataclass(frozen=True)
class Enabled:
    """What a PassContext lets FuseOps do.

    Attributes:
      sweeps: the rules of each sweep, in order.
      constraints: what every merge has to meet.
      max_depth, max_operands: limits of a group's operators and operands.
    """

    sweeps: tuple[tuple[Rule, ...], ...]
    constraints: tuple[Constraint, ...]
    max_depth: int
    max_operands: int


def enabled_rules(ctx: PassContext) -> Enabled:
    """The rules and constraints that a PassContext does not turn off, by `disabled_pass` or by `relay.FuseOps.disabled_rules`.

    Raises ValueError for a name that no rule has, and for a constraint that cannot be turned off.
    """
    off = set(ctx.get("relay.FuseOps.disabled_rules"))
    named = {flag.partition(".")[2] for flag in ctx.disabled_pass | ctx.required_pass if flag.startswith("fuse-ops.")}
    known = {rule.name for rule in RULES} | {constraint.name for constraint in CONSTRAINTS if not constraint.required}
    unknown = sorted((off | named) - known)
    if unknown:
        always = ", ".join(constraint.name for constraint in CONSTRAINTS if constraint.required)
        expected = f"expected rules out of {', '.join(sorted(known))}; {always} cannot be turned off"
        raise ValueError(f"FuseOps: {expected}; found {', '.join(unknown)}")
    rules = [rule for rule in RULES if rule.name not in off and ctx.enabled(rule.info)]
    constraints = tuple(c for c in CONSTRAINTS if c.required or (c.name not in off and ctx.enabled(c.info)))
    sweeps = tuple(tuple(together) for _, together in itertools.groupby(rules, key=lambda rule: rule.sweep))
    return Enabled(sweeps, constraints, ctx.get("relay.FuseOps.max_depth"), ctx.get("relay.FuseOps.max_operands"))


def sweep(block: ir.Block, rules: Sequence[Rule], enabled: Enabled) -> None:
    """Offers every group of a block to the group that uses its result, and merges the two where a rule says so."""
    producers = frozenset().union(*(rule.producers for rule in rules))
    groups: dict[ir.Value, Group] = {}
    """What this sweep has read, by result (operations do not do as keys: their hash changes with what they use). A group that has changed is
    read anew."""
    for op in reversed(list(block.operations)):
        if not belongs_in_group(op):
            continue
        producer = Group(op)
        groups[producer.result] = producer
        if producer.pattern not in producers or not producer.users:
            continue
        consumer = _outer(producer.users[0], block, groups)
        if consumer is not None and _joins(producer, consumer, rules, enabled):
            merged = merge(producer, consumer)
            groups[merged.result] = merged


def _outer(user: ir.OpView, block: ir.Block, groups: dict[ir.Value, Group]) -> Group | None:
    """The group of this block that an operation is or is in; None where it is in none."""
    operation = user.operation
    if operation.block != block:
        operation = operation.parent
        if operation is None or operation.block != block:
            return None
    results = operation.results
    return groups.get(results[0]) if len(results) else None


def _joins(producer: Group, consumer: Group, rules: Sequence[Rule], enabled: Enabled) -> bool:
    """Whether a rule merges the two and nothing keeps them apart."""
    asked = [rule for rule in rules if producer.pattern in rule.producers and consumer.pattern in rule.consumers]
    gathered = [group for group in (producer, consumer) if group.composite is not None]
    if gathered:
        asked = [rule for rule in asked if rule.extend and len(gathered) == 1]
    if not asked or not all(constraint.allows(producer, consumer) for constraint in enabled.constraints):
        return False
    return _fits(producer, consumer, enabled) and any(rule.allows(producer, consumer) for rule in asked)


def _fits(producer: Group, consumer: Group, enabled: Enabled) -> bool:
    """Whether the merged group keeps the limits of operators and operands."""
    if len(producer.members) + len(consumer.members) > enabled.max_depth:
        return False
    if producer.max_operands + consumer.max_operands - 1 <= enabled.max_operands:
        return True
    return len({*producer.captured, *consumer.captured}) - 1 <= enabled.max_operands
