"""Reductions across the threads of a block: by shuffles within a warp, by shared memory across warps."""

from collections.abc import Callable, Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.gpu.launch import WARP, barrier, shared_type, shuffle
from relayc.pipelines.tir.tree.members import Loop
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator

Combine = Callable[[ir.Value, ir.Value], ir.Value]
_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")


class ThreadGroup:
    """The threads of a block, during the emission of the body of a launch.

    Args:
      axes: the axes that have several threads.
      numbers: the number of the thread along each axis.
    """

    def __init__(self, axes: dict[str, Loop], numbers: dict[str, Var], evaluator: Evaluator) -> None:
        self.extents = {axis: int(axes[axis].extent) for axis in _AXES if axis in axes}
        self.numbers, self.evaluator = numbers, evaluator
        self.launch = ir.InsertionPoint.current.block
        self._scratch: dict[ir.Type, ir.Value] = {}

    def linear(self) -> ir.Value:
        """The linear number of the thread in its block."""
        return self._linear(list(self.extents))

    def number(self, axis: str) -> ir.Value:
        """The number of the thread along an axis."""
        return self.numbers[axis].value

    def reduced(self, value: ir.Value, axes: Sequence[str], combine: Combine) -> ir.Value:
        """Combines the values of threads along axes: each thread gets the result. All threads of the block must execute this."""
        together = [axis for axis in self.extents if axis in axes]
        size = prod(self.extents[axis] for axis in together)
        if size == 1:
            return value
        is_leading = together == list(self.extents)[: len(together)]
        if is_leading and size <= WARP and size & (size - 1) == 0:
            return self._in_warp(value, size, combine)
        if is_leading and size % WARP == 0:
            return self._in_warps(value, size, combine)
        return self._in_memory(value, together, size, combine)

    def _in_warp(self, value: ir.Value, size: int, combine: Combine) -> ir.Value:
        distance = size // 2
        while distance:
            value = combine(value, _shuffled(value, distance))
            distance //= 2
        return value

    def _in_warps(self, value: ir.Value, size: int, combine: Combine) -> ir.Value:
        """Reduces within each warp; then each thread combines the results of the warps."""
        value = self._in_warp(value, WARP, combine)
        memory = self._memory(value.type)
        linear = self.linear()
        warp, lane = (self._divided(linear, WARP, name) for name in ("divui", "remui"))
        first = emit.compare("eq", lane, emit.index_constant(0))
        barrier()
        nest.when(first, self.evaluator, lambda: emit.create("memref.store", [], [value, memory, warp]))
        barrier()
        group = emit.arith("muli", self._divided(linear, size, "divui"), emit.index_constant(size // WARP))
        return self._all(memory, group, size // WARP, value.type, combine)

    def _all(self, memory: ir.Value, start: ir.Value, count: int, type_: ir.Type, combine: Combine) -> ir.Value:
        """Combines contiguous elements pairwise."""
        found = []
        for i in range(count):
            at = emit.arith("addi", start, emit.index_constant(i)) if i else start
            found.append(emit.create("memref.load", [type_], [memory, at]))
        return vectors.pairwise(found, combine)

    def _in_memory(self, value: ir.Value, axes: Sequence[str], size: int, combine: Combine) -> ir.Value:
        """Tree reduction in shared memory: half of the threads combine two parts each, then a quarter, and so on."""
        memory = self._memory(value.type)
        others = [axis for axis in self.extents if axis not in axes]
        own = self._linear(axes)
        start = emit.arith("muli", self._linear(others), emit.index_constant(size))
        at = emit.arith("addi", start, own)
        barrier()
        emit.create("memref.store", [], [value, memory, at])
        barrier()
        half = 1 << ((size - 1).bit_length() - 1)
        while half:
            limit = emit.index_constant(min(half, size - half))

            def pair(half: int = half) -> None:
                a = emit.create("memref.load", [value.type], [memory, at])
                b = emit.create("memref.load", [value.type], [memory, emit.arith("addi", at, emit.index_constant(half))])
                emit.create("memref.store", [], [combine(a, b), memory, at])

            nest.when(emit.compare("ult", own, limit), self.evaluator, pair)
            barrier()
            half //= 2
        return emit.create("memref.load", [value.type], [memory, start])

    def _linear(self, axes: Sequence[str]) -> ir.Value:
        """The linear number of the thread along several axes, the first of which varies fastest."""
        total, stride = Index(), 1
        for axis in axes:
            total += Index.of(self.numbers[axis]) * stride
            stride *= self.extents[axis]
        return emit.materialize(total)

    def _divided(self, value: ir.Value, divisor: int, name: str) -> ir.Value:
        return emit.arith(name, value, emit.index_constant(divisor))

    def _memory(self, element: ir.Type) -> ir.Value:
        """A shared buffer with one element for each thread of the block."""
        if element not in self._scratch:
            self._scratch[element] = add_shared(self.launch, prod(self.extents.values()), element)
        return self._scratch[element]


def add_shared(body: ir.Block, count: int, element: ir.Type) -> ir.Value:
    """Adds a shared buffer to a launch."""
    launch = body.owner.operation
    made = body.add_argument(shared_type(count, element), launch.location)
    known = ir.IntegerAttr(launch.attributes["workgroup_attributions"]).value
    launch.attributes["workgroup_attributions"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), known + 1)
    return made


def _shuffled(value: ir.Value, distance: int) -> ir.Value:
    """The value of the thread whose lane number differs in one bit (shuffle xor)."""
    type_ = value.type
    i32 = ir.IntegerType.get_signless(32)
    bits = type_.width
    whole = ir.IntegerType.get_signless(bits)
    if isinstance(type_, ir.FloatType) and bits != 32:
        return emit.create("arith.bitcast", [type_], [_shuffled(emit.create("arith.bitcast", [whole], [value]), distance)])
    if bits == 32:
        return shuffle("xor", value, distance)
    if bits != 64:
        return emit.create("arith.trunci", [type_], [shuffle("xor", emit.create("arith.extui", [i32], [value]), distance)])
    half = emit.number(32, whole)
    low, high = emit.create("arith.trunci", [i32], [value]), emit.create("arith.trunci", [i32], [emit.arith("shrui", value, half)])
    low, high = (emit.create("arith.extui", [whole], [shuffle("xor", part, distance)]) for part in (low, high))
    return emit.arith("ori", low, emit.arith("shli", high, half))
