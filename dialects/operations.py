"""Operations of a kind under another one, and the bytes of their elements."""

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


def element_bytes(type_: ir.Type) -> int:
    """Bytes an element takes in memory (index is 8)."""
    return 8 if isinstance(type_, ir.IndexType) else -(-type_.width // 8)
