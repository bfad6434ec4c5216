"""The table of levels in docs/targets.md: `python -m relayc.tools.levels [--check] FILE` writes it, or checks it."""

import sys

from relayc.pipelines.targets.cpu.features import LEVELS
from relayc.tools import generated
from relayc.tools.tables import bytes_text


def level_table() -> str:
    """The named CPUs as Markdown: instructions and caches."""
    lines = ["| level | instructions | first-level cache | second | third |", "|---|---|---|---|---|"]
    for name, level in LEVELS.items():
        caches = " | ".join(map(bytes_text, (level.l1_bytes, level.l2_bytes, level.l3_bytes)))
        lines.append(f"| `{name}` | {level.doc} | {caches} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code (see tools.generated)."""
    return generated.main(argv, "relayc.tools.levels", "levels", level_table)


if __name__ == "__main__":
    sys.exit(main())
