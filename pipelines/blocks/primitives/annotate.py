"""annotate and unannotate: hints by name on loops and blocks, which lowerings read."""

from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.tir.names import ANNOTATIONS
from relayc.pipelines.blocks.arguments import encode
from relayc.pipelines.blocks.registry import find_block, find_loop, primitive
from relayc.pipelines.blocks.structure import Nest
from relayc.pipelines.blocks.views import ScheduleError, read_annotations


@primitive
def annotate(nest: Nest, key: str, value: Any, loop: str | None = None, block: str | None = None) -> None:
    """Gives a loop or a block a hint, in place of the one of this name that it has."""
    operation = _operation(nest, loop, block)
    try:
        attribute = encode(value)
    except TypeError as error:
        raise ScheduleError(f"value of {key}: {error}") from None
    _set(operation, {**read_annotations(operation), key: attribute})


@primitive
def unannotate(nest: Nest, key: str, loop: str | None = None, block: str | None = None) -> None:
    """Takes a hint from a loop or a block."""
    operation = _operation(nest, loop, block)
    found = read_annotations(operation)
    if key not in found:
        raise ScheduleError(f"expected one of its annotations, {', '.join(found) or 'none'}, found {key!r}")
    _set(operation, {k: v for k, v in found.items() if k != key})


def _operation(nest: Nest, loop: str | None, block: str | None) -> ir.Operation:
    if (loop is None) == (block is None):
        raise ScheduleError(f"expected a loop or a block, found {loop} and {block}")
    return find_loop(nest, loop).operation if loop is not None else find_block(nest, str(block)).operation


def _set(operation: ir.Operation, annotations: dict[str, ir.Attribute]) -> None:
    if annotations:
        operation.attributes[ANNOTATIONS] = ir.DictAttr.get(annotations, operation.context)
    else:
        del operation.attributes[ANNOTATIONS]
