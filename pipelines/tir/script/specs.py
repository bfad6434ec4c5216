"""Values of calls to some names of T: instructions for the surrounding statement, which may assign names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from relayc.pipelines.emission.index import Index
from relayc.symbolic import Size


@dataclass(frozen=True)
class Loops:
    """Nested loops, outermost first: first value and extent of each; their kind.

    Attributes:
      name: of the loop, if it differs from the variable's.
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
    """An iterator of a block: its kind, its extent, and its value over the enclosing loops."""

    kind: str
    extent: Size
    point: Index


@dataclass(frozen=True)
class Symbol:
    """A size that follows from the shapes of arguments.

    Attributes:
      name: if it differs from the variable's.
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
    """The description of an argument (T.match_buffer)."""

    argument: object
    shape: tuple[Size, ...]
    dtype: str


Function = TypeVar("Function", bound=Callable[..., Any])

GUARDED, REGIONS = "guarded", "regions"
ARGUMENTS: dict[Any, str] = {}
"""Functions whose arguments are evaluated in another way. GUARDED: those after the first are unused depending on the first, so that their
loads may be out of bounds then. REGIONS: they are regions of buffers, of which no element is loaded."""


def takes(kind: str) -> Callable[[Function], Function]:
    """Registers a function in ARGUMENTS."""

    def register(function: Function) -> Function:
        ARGUMENTS[function] = kind
        return function

    return register
