"""Composite rules: each match of a dataflow pattern becomes one group, before other rules are tried."""

from collections.abc import Callable
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.relay.structure import Constant, Fused
from relayc.pipelines.graph.fusion.groups import COMPILER, COMPOSITE, belongs_in_group, is_reshape
from relayc.pipelines.graph.fusion.merge import gather
from relayc.pipelines.graph.pattern import DFPattern, Match, find_matches


@dataclass(frozen=True)
class CompositeRule:
    """Gathers each closed match of a pattern into one group, with the attribute `composite = NAME`.

    Attributes:
      name: by which users disable it.
      pattern: to gather; matched constants stay outside.
      opt_level: lowest PassContext.opt_level at which it is tried.
      compiler: the code generator that the groups are for, as their attribute `compiler`; None for relayc's own.
      check: predicate on matches; None gathers all.
    """

    name: str
    pattern: DFPattern
    opt_level: int = 1
    compiler: str | None = None
    check: Callable[[Match], bool] | None = None

    def gather(self, block: ir.Block) -> None:
        """Gathers the matches in a block. A match with an operation that cannot be in a group (a call, a branch, a group) is skipped."""
        attributes = {COMPOSITE: self.name} | ({} if self.compiler is None else {COMPILER: self.compiler})
        for match in find_matches(self.pattern, block):
            operations = [op for op in match.operations if not isinstance(op, Constant)]
            fit = all((belongs_in_group(op) and not isinstance(op, Fused)) or is_reshape(op) for op in operations)
            if fit and (self.check is None or self.check(match)):
                gather(operations, attributes)


COMPOSITES: list[CompositeRule] = []
"""The composite rules in the order in which they are tried."""
