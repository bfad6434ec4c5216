"""Lower bounds of the cost of a te kernel: floating-point operations and bytes, counted from its linalg operations."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured, read_kernel, sources
from relayc.symbolic import Size, minimum

_FREE = ("arith.extf", "arith.truncf", "arith.ext", "arith.trunc", "arith.select", "arith.cmp", "tensor.")


@dataclass(frozen=True)
class Cost:
    """The work of one call of a kernel.

    Attributes:
      flops: arithmetic operations: each operation of a body once per point of its loops, so a multiply-add counts as two. 0 for kernels of
        the fallback.
      read: bytes read of an argument, by its position, if they may be fewer than all: for sliced arguments, or computed indices.
    """

    flops: Size = 0
    read: dict[int, Size] = field(default_factory=dict)


def kernel_cost(source: ir.OpView | Kernel) -> Cost:
    """The work of a te function, or of the kernel that was read from it."""
    try:
        return _cost(source if isinstance(source, Kernel) else read_kernel(source))
    except NotStructured:
        return Cost()


def _cost(kernel: Kernel) -> Cost:
    flops: Size = 0
    seen = set()
    elements: dict[int, Size] = {}
    for node in kernel.nodes():
        if node.kind == "generic" and id(node.structured) not in seen:
            seen.add(id(node.structured))
            flops += prod(node.structured.extents) * sum(not op.name.startswith(_FREE) for op in node.structured.body.operations)
        for source, count in _reads(node):
            if source.kind == "arg":
                elements[source.position] = elements.get(source.position, 0) + count
    least = {i: minimum(count, kernel.args[i].size) for i, count in elements.items()}
    read = {i: count * element_bytes(kernel.args[i].element) for i, count in least.items() if count != kernel.args[i].size}
    return Cost(flops, read)


def _reads(node: Node) -> Iterator[tuple[Node, Size]]:
    """The tensors that a node reads, and the numbers of elements."""
    if node.kind == "slice":
        yield node.inputs[0], node.size
        return
    gathered = list(node.structured.captured.values()) if node.kind == "generic" else []
    for source in sources(node):
        yield source, prod(node.structured.extents) if any(source is g for g in gathered) else source.size
