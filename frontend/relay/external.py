"""Code generators of others, as lowering knows them: what gives the name of the packed function of a partition."""

from collections.abc import Callable

from relayc.frontend.relay.ast.expr import Function

GENERATORS: dict[str, Callable[[Function], str]] = {}
"""By the attribute Compiler of partitions: makes the packed function of one, and gives the name under which it is registered."""


def packed_name(function: Function) -> str | None:
    """The name of the packed function of a partition; None where no generator is for it."""
    make = GENERATORS.get(str(function.attrs.get("Compiler", "")))
    return None if make is None else make(function)
