"""Shared buffers of a launch that share memory, because their live ranges do not overlap."""

from collections.abc import Mapping, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.tir.gpu.launch import shared_type
from relayc.pipelines.tir.lower.tree import Node, uses_in
from relayc.pipelines.tir.memory import Tensor, plan
from relayc.symbolic import Size

LEAST_BYTES = 4 << 10
"""Minimum size of a buffer that shares memory: reuse needs a barrier, which costs more than a smaller saving is worth."""


class Arena:
    """Shared memory that several buffers of a launch use. A buffer used in a loop is live during the whole loop.

    Args:
      nodes: of the launch.
      sizes: bytes of each shared buffer.
      begin: alignment of each buffer, in bytes.

    Attributes:
      tensors: placement of the buffers; empty if each has its own memory.
      size: in bytes.
    """

    def __init__(self, nodes: Sequence[Node], sizes: Mapping[ir.Value, Size], begin: int = 1) -> None:
        whole = {b: -(-s // begin) * begin for b, s in sizes.items() if isinstance(s, int) and s >= LEAST_BYTES}
        large = {b: Tensor(s, *_span(nodes, b)) for b, s in whole.items()}
        self.size = int(plan(list(large.values())))
        self.tensors = large if self.size < sum(int(t.size) for t in large.values()) else {}
        if not self.tensors:
            self.size = 0

    def overlap(self, a: ir.Value, b: ir.Value) -> bool:
        """Whether the memory of two buffers overlaps."""
        if a not in self.tensors or b not in self.tensors:
            return bool(a == b)
        one, other = self.tensors[a], self.tensors[b]
        return int(one.offset) < int(other.offset) + int(other.size) and int(other.offset) < int(one.offset) + int(one.size)

    def view(self, memory: ir.Value, buffer: ir.Value, count: int, element: ir.Type) -> ir.Value:
        """A view of a buffer in the arena, at the ambient insertion point."""
        return emit.create("memref.view", [shared_type(count, element)], [memory, emit.index_constant(self.tensors[buffer].offset)])


def _span(nodes: Sequence[Node], buffer: ir.Value) -> tuple[int, int]:
    """The positions of the first and the last node that use a buffer."""
    found = [number for number, node in enumerate(nodes) if any(a.buffer == buffer for use in uses_in([node]) for a in use.accesses)]
    return found[0], found[-1]
