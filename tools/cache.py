"""`relayc cache`: lists and clears the on-disk cache."""

import argparse
import time

from rich.console import Console

from relayc.runtime.cache import Cache, default_folder
from relayc.tools.tables import NUMBER, make_table, print_parts, scaled


def run(arguments: argparse.Namespace, console: Console) -> None:
    """`relayc cache show` and `relayc cache clear`; both also work where RELAYC_CACHE turns the cache off."""
    cache = Cache.default() or Cache(default_folder())
    if arguments.what == "clear":
        count = cache.clear()
        print_parts(console, f"removed {count} program{'s' * (count != 1)} from {cache.folder}")
        return
    entries = cache.entries()
    table = make_table(f"{cache.folder}", program={}, model={"overflow": "fold"}, **{"last used": {"no_wrap": True}, "bytes": NUMBER})
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        table.add_row(entry.path.stem[:12], entry.source, used, scaled(entry.num_bytes))
    table.add_section()
    table.add_row(f"{len(entries)} in all", "", f"limit {scaled(cache.limit)}", scaled(sum(e.num_bytes for e in entries)))
    console.print(table)
