"""add_unit_loop: adds a loop of one iteration around a loop or a block."""

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
from relayc.pipelines.tir.tree.operations import point_computations
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.tree.views import ScheduleError, body_point


@primitive
def add_unit_loop(nest: Nest, loop: str | None = None, block: str | None = None) -> list[str]:
    """Adds a loop of extent 1, named u, around a loop or a block."""
    if (loop is None) == (block is None):
        raise ScheduleError(f"expected a loop or a block, found {loop} and {block}")
    operation = find_loop(nest, loop).operation if loop is not None else find_block(nest, str(block)).operation
    with nest.editing(bodies=()):
        with ir.InsertionPoint(operation), operation.location:
            made = nest.make_loops([("u", 1)])[0]
        end = body_point(made).ref_operation
        for op in (*point_computations(operation), operation):
            op.move_before(end)
    return [made.name]
