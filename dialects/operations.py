"""Operations under another one, the end of a block, users of a value, and bytes of elements."""

from relayc.dialects.mlir import ir


def walk(root: ir.Operation, kind: type[ir.OpView]) -> list[ir.OpView]:
    """All operations of class `kind` under `root`, in post-order: a list, so that they may be changed while it is read."""
    found = []
    # Names are compared first: to make the view of an operation of a dialect without bindings Python looks for a module of them each time.
    name = kind.OPERATION_NAME

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def last_operation(block: ir.Block) -> ir.OpView:
    """The last operation of a block."""
    operations = block.operations
    return operations[len(operations) - 1]


def users_of(value: ir.Value) -> list[ir.Operation]:
    """The operations that read a value: one for each operand that is the value."""
    return [use.owner.operation for use in value.uses]


def element_bytes(type_: ir.Type) -> int:
    """Bytes an element takes in memory (index is 8)."""
    return 8 if isinstance(type_, ir.IndexType) else -(-type_.width // 8)
