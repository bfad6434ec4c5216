"""The table of supported operators in README.md: `python -m relayc.tools.operators [--check] README.md` writes it, or checks it."""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

from relayc.dialects.relay import OPS
from relayc.frontend.onnx import FAMILIES, supported_operators
from relayc.frontend.onnx.core import CONVERTERS

BEGIN, END = "<!-- operators: begin -->\n", "<!-- operators: end -->\n"
"""Lines around the table; what stands between them is generated."""


def _family(module: str) -> str:
    return module.rpartition(".")[2]


def onnx_by_family() -> dict[str, list[str]]:
    """Names of the ONNX operators that are mapped, by the family module of their converters.

    Those that go through the function bodies of their schemas depend on the version of the onnx package, and are left out.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for row in supported_operators():
        if row.through == "mapping":
            name = f"{row.domain}.{row.name}" if row.domain else row.name
            found[_family(CONVERTERS[row.domain, row.name][0].function.__module__)].append(name)
    return found


def relay_by_family() -> dict[str, list[str]]:
    """Relay's names of the operators by family module."""
    found: dict[str, list[str]] = defaultdict(list)
    for op in OPS.values():
        found[_family(op.__module__)].append(op.relay_name)
    return found


def operator_table() -> str:
    """The table as Markdown, a line per family."""
    onnx, relay = onnx_by_family(), relay_by_family()
    num_onnx, num_relay = sum(map(len, onnx.values())), sum(map(len, relay.values()))
    lines = [f"| family | {num_onnx} ONNX operators | {num_relay} Relay operators |", "|---|---|---|"]
    families = dict.fromkeys([*(_family(module.__name__) for module in FAMILIES), *relay])
    for family in families:
        lines.append(f"| {family} | {', '.join(onnx[family])} | {', '.join(relay[family])} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, table: str) -> str:
    """`text` with the table between the marks. Raises ValueError where they are not there."""
    pattern = re.compile(f"(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"expected the lines {BEGIN.strip()} and {END.strip()}, found none")
    return pattern.sub(lambda _: table, text)


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code: 1 where the file has no place for the table, or with --check another table."""
    parser = argparse.ArgumentParser(prog="relayc.tools.operators", description="Write the table of supported operators.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the table is not the one that would be written")
    arguments = parser.parse_args(argv)
    text = arguments.file.read_text()
    try:
        wanted = with_table(text, operator_table())
    except ValueError as error:
        print(f"error: {arguments.file}: {error}", file=sys.stderr)
        return 1
    if not arguments.check:
        arguments.file.write_text(wanted)
    elif text != wanted:
        command = f"python -m relayc.tools.operators {arguments.file}"
        print(f"error: {arguments.file}: the table of operators is stale; write it anew with {command}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
