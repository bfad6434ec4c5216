"""annotate and unannotate: named annotations of loops and blocks, which lowerings read."""

from typing import Any

from relayc.pipelines.tir.primitives.registry import find_member, primitive
from relayc.pipelines.tir.tree.arguments import encode
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def annotate(nest: Nest, key: str, value: Any, loop: str | None = None, block: str | None = None) -> None:
    """Sets an annotation of a loop or a block; an existing one of the same name is replaced."""
    found = find_member(nest, loop, block)
    try:
        attribute = encode(value)
    except TypeError as error:
        raise ScheduleError(f"value of {key}: {error}") from None
    found.annotations = {**found.annotations, key: attribute}
    nest.changed()


@primitive
def unannotate(nest: Nest, key: str, loop: str | None = None, block: str | None = None) -> None:
    """Removes an annotation from a loop or a block."""
    found = find_member(nest, loop, block)
    known = found.annotations
    if key not in known:
        raise ScheduleError(f"expected one of its annotations, {', '.join(known) or 'none'}, found {key!r}")
    found.annotations = {k: v for k, v in known.items() if k != key}
    nest.changed()
