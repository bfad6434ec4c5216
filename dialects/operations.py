"""Operations under another one and around it, the end of a block, users of a value, and bytes of elements."""

import re
from collections.abc import Callable

from relayc.dialects.mlir import ir


def find_operations(
    root: ir.Operation, wanted: Callable[[ir.Operation], object], order: ir.WalkOrder = ir.WalkOrder.POST_ORDER
) -> list[ir.Operation]:
    """The operations under `root`, and `root`, for which `wanted` holds: a list, so that they may be changed while it is read."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, order)
    return found


def has_operation(root: ir.Operation, wanted: Callable[[ir.Operation], object]) -> bool:
    """Whether `wanted` holds for `root` or an operation under it."""
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = bool(wanted(op))
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def innermost_around(op: ir.Operation, wanted: Callable[[ir.Operation], object]) -> ir.Operation | None:
    """The innermost operation around `op` for which `wanted` holds; None if there is none."""
    outer = op.parent
    while outer is not None and not wanted(outer):
        outer = outer.parent
    return outer


def keyword_of(op: ir.Operation, attribute: str) -> str:
    """The keyword that an attribute is: `bfly` of `#nvvm<shfl_kind bfly>`, `bf16` of `#nvvm.wgmma_type<bf16>`."""
    return re.findall(r"\w+", str(op.attributes[attribute]))[-1]


def called_names(root: ir.Operation) -> list[str]:
    """Names of the functions that the operations under `root` call by `func.call`, each once."""
    calls = find_operations(root, lambda op: op.name == "func.call")
    return list(dict.fromkeys(ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in calls))


def walk(root: ir.Operation, kind: type[ir.OpView]) -> list[ir.OpView]:
    """All operations of class `kind` under `root`, in post-order: a list, so that they may be changed while it is read."""
    # Names are compared first: to make the view of an operation of a dialect without bindings Python looks for a module of them each time.
    name = kind.OPERATION_NAME
    return [op.opview for op in find_operations(root, lambda op: op.name == name)]


def outermost(operation: ir.Operation) -> ir.Operation:
    """The operation around an operation that has no parent, a module in most cases."""
    while operation.parent is not None:
        operation = operation.parent.operation
    return operation


def last_operation(block: ir.Block) -> ir.OpView:
    """The last operation of a block."""
    operations = block.operations
    return operations[len(operations) - 1]


def producer_of(value: ir.Value) -> ir.Operation | None:
    """The operation that computes a value; None for an argument of a block."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def constant_of(value: ir.Value) -> int | None:
    """The number that an index or integer constant is; None for any other value."""
    op = producer_of(value)
    return ir.IntegerAttr(op.attributes["value"]).value if op is not None and op.name == "arith.constant" else None


def users_of(value: ir.Value) -> list[ir.Operation]:
    """The operations that read a value: one for each operand that is the value."""
    return [use.owner.operation for use in value.uses]


def has_only_values(name: str) -> bool:
    """Whether operations of a name have no regions and no buffers as results. Most operations of a kernel are of this kind."""
    return name.startswith(("arith.", "math.", "vector.")) and name != "arith.select"


def element_bytes(type_: ir.Type) -> int:
    """Bytes an element takes in memory (index is 8)."""
    return 8 if isinstance(type_, ir.IndexType) else -(-type_.width // 8)
