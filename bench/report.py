"""What the commands share in their output: tables and JSON."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

NUMBER: dict[str, Any] = {"justify": "right", "no_wrap": True}


def make_table(title: str, **columns: Mapping[str, Any]) -> Table:
    """An empty table; `columns` are rich's options by heading."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, options in columns.items():
        table.add_column(name, **options)
    return table


def ratio_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a result; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
