"""Application of primitives by the methods of Schedule."""

from abc import ABC, abstractmethod
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.schedule.references import BlockRV, LoopRV
from relayc.pipelines.tir.tree.layouts import IndexMap


class Methods(ABC):
    """Interface that methods of a schedule use to apply primitives."""

    @abstractmethod
    def _apply(self, primitive: str, **arguments: Any) -> list[str]:
        """Applies a primitive, and records it."""

    @abstractmethod
    def _is_loop(self, name: str) -> bool:
        """Whether a loop has this name."""

    def _loops(self, primitive: str, **arguments: Any) -> list[LoopRV]:
        return [LoopRV(name) for name in self._apply(primitive, **arguments)]

    def _blocks(self, primitive: str, **arguments: Any) -> list[BlockRV]:
        return [BlockRV(name) for name in self._apply(primitive, **arguments)]

    @abstractmethod
    def _affine_map(self, index_map: IndexMap | ir.AffineMap) -> ir.AffineMap:
        """A function of indices as an affine map of the module."""
