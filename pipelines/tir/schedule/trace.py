"""The trace of a schedule, step by step: transform dialect text that can be stored, compared, and applied to another module."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.tir.tree.arguments import Knob

SEQUENCE = "schedule"
"""Name of the sequence of a script."""


@dataclass(frozen=True)
class AppliedPrimitive:
    """A primitive that was applied.

    Attributes:
      primitive: its name; function: of the module, by name.
      arguments: by name, as given, with numbers that knobs chose as Chosen.
      results: names of the loops and blocks that it created.
    """

    primitive: str
    function: str
    arguments: Mapping[str, Any]
    results: tuple[str, ...] = ()


@dataclass
class Trace:
    """The steps of a schedule, and its knobs, each before its first use."""

    steps: list[AppliedPrimitive | Knob] = field(default_factory=list)

    @property
    def knobs(self) -> dict[str, Knob]:
        """The knobs by name."""
        return {s.name: s for s in self.steps if isinstance(s, Knob)}

    def __str__(self) -> str:
        """The script: a module with a named sequence of the transform dialect."""
        from relayc.pipelines.tir.schedule import transform_script as script  # registers the operations

        with script.prepared(make_context()), ir.Location.unknown():
            return str(script.write(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment] # it grows
