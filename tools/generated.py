"""Tables in Markdown files that come from the code: `python -m relayc.tools.generated [--check] FILE ...` writes those for which a file has
marks, or checks them.
"""

import argparse
import importlib
import re
import sys
from pathlib import Path

TABLES = {
    "operators": "relayc.tools.operators:operator_table",
    "strategies": "relayc.pipelines.tir.strategy.table:strategy_table",
    "fusion-rules": "relayc.tools.fusion_rules:rule_table",
    "levels": "relayc.tools.levels:level_table",
    "how-it-works": "relayc.tools.how_it_works:page",
    "primitives": "relayc.tools.primitives:primitive_table",
    "steps": "relayc.bench.schedule_page:page",
}
"""The functions that give them, by the name in the marks."""


def marks(name: str) -> tuple[str, str]:
    """The lines around a table."""
    return f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"


def with_table(text: str, name: str, table: str) -> str:
    """`text` with the table between its marks. Raises ValueError if they are missing."""
    begin, end = marks(name)
    pattern = re.compile(f"(?<={re.escape(begin)}).*(?={re.escape(end)})", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"expected the lines {begin.strip()} and {end.strip()}, found none")
    return pattern.sub(lambda _: table, text)


def tables_of(text: str) -> list[str]:
    """The names of the tables of TABLES for which a text has marks. Raises ValueError if it has none."""
    found = [name for name in TABLES if marks(name)[0] in text]
    if not found:
        raise ValueError(
            f"expected the lines {' and '.join(mark.strip() for mark in marks('NAME'))} of one of {', '.join(TABLES)}, found none"
        )
    return found


def main(argv: list[str] | None = None) -> int:
    """Writes or checks the tables of files; the exit code is 1 where one has no place for a table, or with --check another one."""
    parser = argparse.ArgumentParser(prog="relayc.tools.generated", description="Write the tables of pages that come from the code.")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a table is not the one that would be written")
    arguments = parser.parse_args(argv)
    code = 0
    for file in arguments.files:
        text = wanted = file.read_text()
        try:
            for name in tables_of(text):
                module, _, function = TABLES[name].partition(":")
                wanted = with_table(wanted, name, getattr(importlib.import_module(module), function)())
        except ValueError as error:
            print(f"error: {file}: {error}", file=sys.stderr)
            code = 1
            continue
        if not arguments.check:
            file.write_text(wanted)
        elif text != wanted:
            print(f"error: {file}: a table is stale; write it anew with python -m relayc.tools.generated {file}", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
