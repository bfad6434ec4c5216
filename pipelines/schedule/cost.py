"""Floating-point operations of a te kernel, counted from its linalg operations."""

from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.schedule.graph import NotStructured, read_kernel

_FREE = ("arith.extf", "arith.truncf", "arith.ext", "arith.trunc", "arith.constant", "arith.select", "arith.cmp", "linalg.", "tensor.")


def kernel_flops(function: ir.OpView) -> int:
    """Arithmetic operations of one call: each operation of a body once per point of its loops, so a multiply-add counts as two.

    Kernels of the fallback count as 0.
    """
    try:
        nodes = read_kernel(function).nodes()
    except NotStructured:
        return 0
    total, seen = 0, set()
    for node in nodes:
        if node.kind == "generic" and id(node.structured) not in seen:
            seen.add(id(node.structured))
            body = [op.operation.name for op in node.structured.block.operations]
            total += prod(node.structured.extents) * sum(not name.startswith(_FREE) for name in body)
    return total
