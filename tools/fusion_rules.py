"""The table of fusion rules in docs/fusion.md: `python -m relayc.tools.fusion_rules [--check] FILE` writes it, or checks it."""

import inspect
import sys
from collections.abc import Iterable

from relayc.dialects.relay import Pattern
from relayc.pipelines.graph.fusion.rules import CONSTRAINTS, RULES
from relayc.tools import generated


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


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code (see tools.generated)."""
    return generated.main(argv, "relayc.tools.fusion_rules", "fusion-rules", rule_table)


if __name__ == "__main__":
    sys.exit(main())
