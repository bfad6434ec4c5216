"""What the commands share in their output: JSON."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a result; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def save(arguments: argparse.Namespace, machine: Mapping[str, Any], **results: Any) -> None:
    """Writes the results of a command to the file of --json, if given, with its arguments and the machine."""
    if arguments.json is None:
        return
    given = {name: value for name, value in vars(arguments).items() if name not in ("action", "default_engines", "json", "plot")}
    write_json(arguments.json, {"command": given.pop("command"), "arguments": given, "machine": machine, **results})
