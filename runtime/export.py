"""What is asked of a backend that writes modules as libraries."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relayc.runtime.artifact import Artifact


@dataclass(frozen=True)
class ExportedProgram:
    """A program to be written, what it was made from (see docs/export.md), and the programs that its module imports."""

    artifact: Artifact
    source: Mapping[str, Any]
    imports: "tuple[ExportedProgram, ...]"


@dataclass(frozen=True)
class ExportRequest:
    """What `Module.export_library` is asked for; `beside` is whether the parameters are."""

    path: Path
    beside: bool
    prefix: str
    bundle: bool
