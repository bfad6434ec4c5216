"""External code generators, as used by lowering: functions that return the name of the packed function of a partition."""

from collections.abc import Callable

from relayc.frontend.relay.ast.expr import Function

GENERATORS: dict[str, Callable[[Function], str]] = {}
"""By the attribute Compiler of partitions: creates the packed function of a partition, and returns its registered name."""


def packed_name(function: Function) -> str | None:
    """The name of the packed function of a partition; None if it has no generator."""
    make = GENERATORS.get(str(function.attrs.get("Compiler", "")))
    return None if make is None else make(function)
