"""The computations of a function before its loops."""

from collections.abc import Hashable

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.tree.operations import COMPUTATIONS, operations_in


def order_computations(function: ir.OpView | ir.Operation) -> None:
    """Sorts the computations before the loops by their first use and removes duplicates and unused ones, so that the function does not
    depend on the order in which it was edited."""
    entry = function.regions[0].blocks[0]
    computed = [op for op in operations_in(entry) if op.name.startswith(COMPUTATIONS)]
    left = {op.results[0] for op in computed}
    inside, kept = frozenset(left), dict[Hashable, ir.Value]()

    def use(op: ir.Operation) -> None:
        for value in op.operands:
            if value not in left:
                continue
            left.remove(value)
            source = value.owner.operation
            use(source)
            key = source.name, tuple(source.operands), tuple(source.attributes.items()), value.type
            if key in kept:
                value.replace_all_uses_with(kept[key])
            else:
                kept[key] = value

    def visit(op: ir.Operation) -> ir.WalkResult:
        if len(op.results) != 1 or op.results[0] not in inside:
            use(op)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    used = set(kept.values())
    for op in reversed(computed):
        if op.results[0] not in used:
            op.erase()
    place = next(op for op in operations_in(entry) if not op.name.startswith(COMPUTATIONS))
    for value in kept.values():
        value.owner.operation.move_before(place)
