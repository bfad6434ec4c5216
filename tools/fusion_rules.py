"""The table of fusion rules in docs/fusion.md (see relayc.tools.generated)."""

import inspect
from collections.abc import Iterable

from relayc.dialects.relay import Pattern
from relayc.pipelines.graph.fusion.rules import CONSTRAINTS, RULES


def _patterns(patterns: Iterable[Pattern]) -> str:
    return ", ".join(pattern.name for pattern in sorted(patterns))


def _text(function: object) -> str:
    return " ".join((inspect.getdoc(function) or "").split())


def rule_table() -> str:
    """Two tables as Markdown: a line for each rule of the package, in order, and one for each constraint."""
    lines = ["| rule | sweep | from level | producer | consumer | what it merges |", "|---|---|---|---|---|---|"]
    for rule in RULES:
        if not rule.outside:
            row = (f"`{rule.name}`", rule.sweep, str(rule.opt_level), _patterns(rule.producers), _patterns(rule.consumers))
            lines.append(f"| {' | '.join(row)} | {_text(rule.allows)} |")
    lines += ["", "| constraint | can be turned off | what it keeps apart |", "|---|---|---|"]
    for constraint in CONSTRAINTS:
        lines.append(f"| `{constraint.name}` | {'no' if constraint.required else 'yes'} | {_text(constraint.allows)} |")
    return "\n".join(lines) + "\n"
