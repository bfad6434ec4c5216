"""The table of levels in docs/targets.md (see relayc.tools.generated)."""

from relayc.pipelines.targets.cpu.features import LEVELS
from relayc.tools.tables import bytes_text


def level_table() -> str:
    """The named CPUs as Markdown: instructions and caches."""
    lines = ["| level | instructions | first-level cache | second | third |", "|---|---|---|---|---|"]
    for name, level in LEVELS.items():
        caches = " | ".join(map(bytes_text, (level.l1_bytes, level.l2_bytes, level.l3_bytes)))
        lines.append(f"| `{name}` | {level.doc} | {caches} |")
    return "\n".join(lines) + "\n"
