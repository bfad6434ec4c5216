"""The operations of a function of blocks and loops as a tree."""

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.dialects.tir.block import block_name, extents_of, iterators_of
from relayc.pipelines.tir.tree.function import Function
from relayc.pipelines.tir.tree.members import Block, Loop, Member, ScheduleError
from relayc.pipelines.tir.tree.operations import STATEMENTS, operations_in, size_of, walk


def read_members(function: Function) -> list[Member]:
    """The members directly in a function, with all that is in them."""
    top: list[Member] = []
    stack: list[tuple[ir.Operation, tuple[Loop, ...], list[Member], Block | None]] = [(function.head.operation, (), top, None)]

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name not in STATEMENTS or (name == "scf.for" and names.LOOP not in op.attributes):
            return ir.WalkResult.ADVANCE
        parent = op.parent
        while len(stack) > 1 and stack[-1][0] != parent:
            stack.pop()
        outer, around, beside, scope = stack[-1]
        if scope is not None and scope.operation == outer and scope.init is not None and op.block == scope.init:
            beside = scope.starts
        if name == "memref.alloc":
            beside.append(op)
        elif name == "tir.block":
            block = Block(op, function, block_name(op), iterators_of(op), extents_of(op))
            block.around, block.scope = around, scope
            beside.append(block)
            stack.append((op, (), block.inside, block))
        else:
            loop = Loop(ir.StringAttr(op.attributes[names.LOOP]).value, size_of(op.operands[1], function.sizes), op.location, op)
            loop.around, loop.scope = around, scope
            beside.append(loop)
            stack.append((op, (*around, loop), loop.inside, scope))
        return ir.WalkResult.ADVANCE

    function.head.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return top


STORES = "stores, or loops and blocks in it (that store)"
"""Describes the allowed contents of a block, for a message."""


def stores_beside_loops(region: ir.Block) -> bool:
    """Whether a region has both stores and loops or blocks."""
    found = {op.name for op in operations_in(region)}
    return "memref.store" in found and not found.isdisjoint(("scf.for", "tir.block"))


def check_stores(function: ir.Operation) -> None:
    """Raises ScheduleError if a function of blocks and loops stores outside a block, or a block has stores beside loops or blocks.

    The iteration points of such stores are unknown.
    """
    for op in walk(function.regions[0].blocks[0]):
        if op.name != "memref.store":
            continue
        around = op.parent.operation
        while around.name == "scf.if":
            around = around.parent.operation
        if around.name != "tir.block":
            raise ScheduleError(f"expected stores in blocks (tir.block), found one in {around.name}")
        if stores_beside_loops(op.block):
            raise ScheduleError(f"block {block_name(around)}: expected {STORES}, found both")
