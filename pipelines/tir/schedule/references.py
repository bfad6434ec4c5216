"""References to blocks and loops in schedules: names, the arguments and results of primitives."""

from dataclasses import dataclass
from typing import TypeAlias

from relayc.pipelines.tir.tree.arguments import Chosen


@dataclass(frozen=True)
class BlockRV:
    """A block of a schedule, by name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class LoopRV:
    """A loop of a schedule, by name."""

    name: str

    def __str__(self) -> str:
        return self.name


BlockLike: TypeAlias = BlockRV | str
LoopLike: TypeAlias = LoopRV | str
Factor: TypeAlias = int | Chosen | None
