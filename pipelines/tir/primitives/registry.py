"""The registry of primitives of schedules."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest

Primitive = TypeVar("Primitive", bound=Callable[..., Any])

PRIMITIVES: dict[str, Callable[..., Any]] = {}
"""Primitives by name: the name of the method of Schedule, and of the operation in a script."""


def primitive(function: Primitive) -> Primitive:
    """Registers a function as the primitive of its name."""
    PRIMITIVES[function.__name__] = function
    return function


def apply(name: str, nest: Nest, arguments: Mapping[str, Any]) -> list[str]:
    """Applies a primitive; returns the names of what it creates. Raises ScheduleError, which names the primitive and its arguments."""
    try:
        with ir.Location.unknown(nest.head.context):
            return list(PRIMITIVES[name](nest, **arguments) or ())
    except ScheduleError as error:
        raise ScheduleError(f"{application_text(name, arguments)}: {error}") from None


def application_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A primitive and its arguments as Python text, for messages."""
    return f"{name}({', '.join(f'{key}={_text(value)}' for key, value in arguments.items() if value is not None)})"


def _text(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, (list, tuple)) else str(value)


def parameters_of(name: str) -> list[str]:
    """Names of the parameters of a primitive, after the Nest."""
    return list(inspect.signature(PRIMITIVES[name]).parameters)[1:]


def find_loop(nest: Nest, name: str) -> Loop:
    """A loop by its name. Raises ScheduleError."""
    loops = nest.loops()
    if name not in loops:
        raise ScheduleError(f"expected a loop of @{nest.name}, out of {', '.join(loops) or 'none'}, found {name!r}")
    return loops[name]


def find_block(nest: Nest, name: str) -> Block:
    """A block by its name. Raises ScheduleError."""
    blocks = nest.blocks()
    if name not in blocks:
        raise ScheduleError(f"expected a block of @{nest.name}, out of {', '.join(blocks) or 'none'}, found {name!r}")
    return blocks[name]


def find_member(nest: Nest, loop: str | None, block: str | None) -> Loop | Block:
    """A loop or a block by its name; the other name is None. Raises ScheduleError."""
    if (loop is None) == (block is None):
        raise ScheduleError(f"expected a loop or a block, found {loop} and {block}")
    return find_loop(nest, loop) if loop is not None else find_block(nest, str(block))
