"""Tables in Markdown files that are written from the code, between two marks: written anew, or checked to be fresh."""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path


def marks(name: str) -> tuple[str, str]:
    """The lines around a table."""
    return f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"


def with_table(text: str, name: str, table: str) -> str:
    """`text` with the table between its marks. Raises ValueError where they are not there."""
    begin, end = marks(name)
    pattern = re.compile(f"(?<={re.escape(begin)}).*(?={re.escape(end)})", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"expected the lines {begin.strip()} and {end.strip()}, found none")
    return pattern.sub(lambda _: table, text)


def main(argv: list[str] | None, program: str, name: str, table: Callable[[], str]) -> int:
    """The command that writes or checks a table; its exit code is 1 where the file has no place for it, or with --check another one."""
    parser = argparse.ArgumentParser(prog=program, description=f"Write the table of {name}.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the table is not the one that would be written")
    arguments = parser.parse_args(argv)
    text = arguments.file.read_text()
    try:
        wanted = with_table(text, name, table())
    except ValueError as error:
        print(f"error: {arguments.file}: {error}", file=sys.stderr)
        return 1
    if not arguments.check:
        arguments.file.write_text(wanted)
    elif text != wanted:
        command = f"python -m {program} {arguments.file}"
        print(f"error: {arguments.file}: the table of {name} is stale; write it anew with {command}", file=sys.stderr)
        return 1
    return 0
