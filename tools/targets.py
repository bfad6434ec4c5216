"""`relayc targets`: what programs can be compiled for, here and for other machines."""

import argparse
from typing import Any

from rich.console import Console

from relayc.pipelines.context.backend import target_kinds
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cpu.features import LEVELS, level_features
from relayc.tools.tables import NUMBER, bytes_text, make_table, print_parts


def targets(arguments: argparse.Namespace, console: Console) -> None:
    """Prints the kinds of targets, what this machine is, and the CPUs that have a name."""
    console.print(f"kinds: {', '.join(target_kinds())}")
    here = Target("cpu")
    print_parts(console, f"this machine: {here}")
    columns: dict[str, Any] = {"-mcpu": {}, "instructions": {}, "level 1": NUMBER, "level 2": NUMBER, "level 3": NUMBER, "runs here": {}}
    table = make_table("CPUs, and their data caches", **columns)
    for name, level in LEVELS.items():
        caches = map(bytes_text, (level.l1_bytes, level.l2_bytes, level.l3_bytes))
        table.add_row(name, level.doc, *caches, "yes" if all(map(here.has, level_features(name))) else "no")
    console.print(table)
    console.print("attributes of targets, GPUs, emulation: docs/targets.md")
