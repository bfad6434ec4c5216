"""The blocks of a program of the relay stage in which passes look for operators."""

from collections.abc import Iterator

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.structure import Fused


def graph_blocks(operation: ir.Operation) -> Iterator[ir.Block]:
    """The blocks below an operation that contain graphs, inner ones first: its own blocks and branches, but not fusion groups."""
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                if not isinstance(op, Op) or (op.region_names and not isinstance(op, Fused)):
                    yield from graph_blocks(op.operation)
            yield block


def fused_blocks(operation: ir.Operation) -> Iterator[ir.Block]:
    """The bodies of the fusion groups below an operation."""
    for block in graph_blocks(operation):
        yield from (op.body() for op in block.operations if isinstance(op, Fused))
