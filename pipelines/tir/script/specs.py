"""What some names of T give where they are called: what the statement around the call is to do, with the names that it assigns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from relayc.pipelines.emission.index import Index
from relayc.symbolic import Size


@dataclass(frozen=True)
class Loops:
    """Nested loops, the outermost first: first value and extent of each; how they run.

    Attributes:
      name: of the loop, where it is not that of the variable.
    """

    ranges: tuple[tuple[Size, Size], ...]
    kind: str
    annotations: Mapping[str, Any]
    name: str | None = None


@dataclass(frozen=True)
class BlockSpec:
    """A block."""

    name: str


class Init:
    """The init of a block."""


@dataclass(frozen=True)
class Axis:
    """An iterator of a block: its kind, its extent, and the value that the loops around give it."""

    kind: str
    extent: Size
    point: Index


@dataclass(frozen=True)
class Symbol:
    """A size that callers do not say: it follows from the shapes of arguments.

    Attributes:
      name: where it is not that of the variable.
    """

    name: str | None


@dataclass(frozen=True)
class Allocation:
    """A buffer of the function."""

    shape: tuple[Size, ...]
    dtype: str
    scope: str
    name: str | None


@dataclass(frozen=True)
class MatchedBuffer:
    """What an argument is (T.match_buffer)."""

    argument: object
    shape: tuple[Size, ...]
    dtype: str


Function = TypeVar("Function", bound=Callable[..., Any])

GUARDING: dict[Any, int] = {}
"""Functions whose arguments from a position on are not used where the first one says so: what they read may be out of bounds there."""


def guarding(position: int) -> Callable[[Function], Function]:
    """Registers a function of GUARDING."""

    def register(function: Function) -> Function:
        GUARDING[function] = position
        return function

    return register


OF_REGIONS: set[Any] = set()
"""Functions whose arguments are regions of buffers: no element is read."""


def of_regions(function: Function) -> Function:
    """Registers a function of OF_REGIONS."""
    OF_REGIONS.add(function)
    return function
