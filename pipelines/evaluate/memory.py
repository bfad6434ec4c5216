"""Which tensors of the te stage may be written in place, as nothing reads what they were any more."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation, users_of

_READERS = ("tensor.extract", "tensor.insert", "tensor.dim", "arith.", "linalg.")
"""Operations whose results do not share memory with their operands."""
_MAKERS = ("tensor.insert", "tensor.empty", "scf.for", "linalg.")
"""Operations whose results are new memory."""


def _ancestor(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The operation of a block that an operation is, or is in."""
    while op.block != block:
        if op.parent is None or op.parent.operation.name == "func.func":
            return None
        op = op.parent.operation
    return op


def is_over(value: ir.Value, last: ir.Operation) -> bool:
    """Whether a tensor is memory allocated by the loop or operation that produced it, and has no use after an operation that uses it."""
    owner = value.owner
    is_argument = isinstance(owner, ir.Block)
    name = owner.owner.operation.name if is_argument else owner.operation.name
    own = name == "scf.for" if is_argument else name.startswith(_MAKERS)
    return own and _comes_last(owner if is_argument else owner.operation.block, last, users_of(value))


def _comes_last(block: ir.Block, last: ir.Operation, users: Sequence[ir.Operation]) -> bool:
    """Whether an operation is the last one in a block that uses a value, once, and no other has given it away."""
    top = _ancestor(last, block)
    order = {op.operation: i for i, op in enumerate(block.operations)}
    inside = []
    for user in users:
        other = _ancestor(user, block)
        if other == top:
            inside.append(user)
        elif order[other] > order[top] or not user.name.startswith(_READERS):
            return False
    if top == last:
        return len(inside) == 1
    if top is None or top.name != "scf.if":
        return False
    regions = [region.blocks[0] for region in top.regions if len(region.blocks)]
    taken = next(inner for inner in regions if _ancestor(last, inner) is not None)
    return _comes_last(taken, last, [user for user in inside if _ancestor(user, taken) is not None])


def is_fresh(value: ir.Value, loop: ir.Block) -> bool:
    """Whether a value yielded by a loop is new memory without other references."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner == loop
    op = owner.operation
    if op.name == "scf.if":
        number = ir.OpResult(value).result_number
        ends = [last_operation(region.blocks[0]) for region in op.regions]
        return all(is_fresh(end.operands[number], loop) for end in ends)
    return op.name.startswith(_MAKERS) and _ancestor(op, loop) is not None
