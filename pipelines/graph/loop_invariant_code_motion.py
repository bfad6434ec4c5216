"""LoopInvariantCodeMotion: what a loop computes anew of the same values is computed once, before the loop.

Operators without effects may run though the loop does not; operators that only repeat elements stay, as what uses them can repeat the
elements itself, and so does what names a size that only the loop knows. (Upstream's pass of this name takes loops that implement an
interface in C++, which relay.while cannot.)
"""

from collections.abc import Iterator

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.registration import is_pure
from relayc.dialects.relay.scopes import scope_before, symbols_within
from relayc.dialects.relay.structure import While, Yield
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.graph.blocks import graph_blocks


def _within(operation: ir.Operation) -> Iterator[tuple[ir.Block, list[ir.OpView]]]:
    """The blocks in the regions of an operation, at any depth, and their operations."""
    for region in operation.regions:
        for block in region.blocks:
            operations = list(block.operations)
            yield block, operations
            for op in operations:
                yield from _within(op.operation)


def _block_of(value: ir.Value) -> ir.Block:
    """The block of a value: of the argument, or of the operation that produces it."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def _reads(op: ir.OpView) -> Iterator[ir.Value]:
    """The values from around an operation that it uses, itself or in its regions."""
    yield from op.operation.operands
    inner = list(_within(op.operation))
    own = [block for block, _ in inner]
    yield from (v for _, operations in inner for o in operations for v in o.operation.operands if _block_of(v) not in own)


def _is_invariant(op: ir.OpView, loop: list[ir.Block], known: frozenset[str]) -> bool:
    """Whether an operation gives the same in every iteration of the loop that has these blocks, before which these symbols are known."""
    stays = isinstance(op, Yield) or (isinstance(op, Op) and op.repeats_only)
    if not is_pure(op.operation) or stays or not all(_block_of(v) not in loop for v in _reads(op)):
        return False
    return symbols_within(op).issubset(known)


@function_pass(opt_level=2, name="LoopInvariantCodeMotion")
def loop_invariant_code_motion(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Moves operations that give the same in every iteration out of loops, the inner ones first."""
    loops = [op for block in graph_blocks(func) for op in block.operations if isinstance(op, While)]
    for loop in loops:
        blocks = [block for block, _ in _within(loop.operation)]
        known = scope_before(loop)
        for region in range(len(loop.region_names)):
            for op in list(loop.body(region).operations):
                if _is_invariant(op, blocks, known):
                    op.operation.move_before(loop.operation)
