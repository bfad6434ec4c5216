"""The request to a backend that writes modules as libraries."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relayc.runtime.artifact import Artifact


@dataclass(frozen=True)
class ExportedProgram:
    """A program to write, its source (see docs/export.md), and the programs that its module imports."""

    artifact: Artifact
    source: Mapping[str, Any]
    imports: "tuple[ExportedProgram, ...]"


@dataclass(frozen=True)
class ExportRequest:
    """The arguments of `Module.export_library`; `beside`: whether the parameters are in a separate file.

    Raises:
      ValueError: a path that ends in neither .so nor .o, a prefix that is not a C identifier, separate parameters for an object.
      OSError: the folder does not exist.
    """

    path: Path
    beside: bool
    prefix: str
    bundle: bool

    def __post_init__(self) -> None:
        if self.path.suffix not in (".so", ".o"):
            raise ValueError(f"export_library: expected a path that ends in .so or .o, found {self.path}")
        if self.path.suffix == ".o" and self.beside:
            raise ValueError("export_library: params: expected 'embedded' for an object, found 'beside'")
        if self.prefix and not (self.prefix.isascii() and self.prefix.isidentifier()):
            raise ValueError(f"export_library: prefix: expected an identifier of C, found {self.prefix!r}")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"export_library: expected a folder that is there, found {self.path.parent}")
