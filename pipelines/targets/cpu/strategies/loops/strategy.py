"""The default strategy: one parallel, vectorised loop nest for whatever a kernel computes.

Tensors made of pieces (concatenations, paddings) are written piece by piece, each by a nest of its own (see `nest`). Chains of elementwise
operations, broadcasts, transposes, slices and gathers are evaluated in place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.loops.nest import Nest
from relayc.pipelines.targets.cpu.strategies.loops.plan import LoopParameters, Offset, plan_nest
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, grains, powers_of_two
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, bounds


def schedule_loops(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled:
    """Schedules any kernel: parallel, vectorised loops. Raises NotStructured for a few, which are left to the fallback."""
    parameters = loop_parameters(kernel, target, tuning)
    with kernel_function(kernel) as body:
        for node, buffer in zip(kernel.results, body.outputs, strict=True):
            fill(node, body.evaluator, parameters, buffer)
    return Scheduled(body.function)


def loop_parameters(kernel: Kernel, target: Target, tuning: Tuning) -> LoopParameters:
    """The numbers of the loops of a kernel."""
    names = {"parallel_grain": "grain", "parallel_chunks": "chunks", "unroll": "unroll"}
    values: dict[str, Callable[[LoopParameters], list[int]]] = {
        "grain": lambda p: grains(LoopParameters.parallel_grain, *_Works(kernel, p).found),
        "chunks": lambda p: powers_of_two(target.num_threads, 256) if _Works(kernel, p).may_be_parallel else [],
        "unroll": lambda p: powers_of_two(1, 16),
    }
    return tuning.replace(LoopParameters(vector_bytes=target.vector_bytes, mask_bits=target.mask_bits), names, values=values)


def fill(node: Node, evaluator: Evaluator, parameters: LoopParameters, buffer: ir.Value) -> None:
    """Emits the computation of one node into a flat buffer."""
    _Pieces(evaluator, parameters, buffer).write(node, lambda point: linearize(point, node.shape))


class _Cut(ABC):
    """Cuts a node into pieces with separate loop nests."""

    @abstractmethod
    def _nest(self, node: Node, offset: Offset) -> None:
        """A nest that writes a node, which may have no elements, at `offset(point)`."""

    def write(self, node: Node, offset: Offset) -> None:
        """Writes `node` at `offset(point)`: concatenations and paddings piece by piece."""
        if node.kind == "view" and node.inputs[0].kind != "arg":
            shape, source = node.shape, node.inputs[0]
            probe = [Index.of(Var.below(e)) for e in shape]
            if offset(probe).key == linearize(probe, shape).key:  # the same memory under another shape
                self.write(source, lambda point: linearize(point, source.shape))
                return
        if node.kind == "concat":
            start: Size = 0
            for piece in node.inputs:
                self.write(piece, _shifted(offset, [start if d == node.axis else 0 for d in range(len(node.shape))]))
                start += piece.shape[node.axis]
        elif node.kind == "pad":
            self.write(node.inputs[0], _shifted(offset, node.low))
            self._border(node, offset)
        else:
            self._nest(node, offset)

    def _border(self, node: Node, offset: Offset) -> None:
        """Fills the border of a padding: for each dimension the slabs before and after, within what earlier dimensions left."""
        source = node.inputs[0].shape
        begins: list[Size] = [0] * len(node.shape)
        ends = list(node.shape)
        for d, (low, inner, extent) in enumerate(zip(node.low, source, node.shape, strict=True)):
            for begin, end in ((0, low), (low + inner, extent)):
                if begin != end:
                    starts = [*begins[:d], begin, *begins[d + 1 :]]
                    sizes = tuple(e - b for b, e in zip(starts, [*ends[:d], end, *ends[d + 1 :]], strict=True))
                    self._nest(Node("splat", sizes, node.element, op=node.pad_value), _shifted(offset, starts))
            begins[d], ends[d] = low, low + inner


class _Pieces(_Cut):
    """Writes nodes to places of one buffer."""

    def __init__(self, evaluator: Evaluator, parameters: LoopParameters, buffer: ir.Value) -> None:
        self.evaluator, self.parameters, self.buffer = evaluator, parameters, buffer

    def _nest(self, node: Node, offset: Offset) -> None:
        if node.size != 0:
            Nest(plan_nest(node, self.evaluator.buffers, self.parameters, offset), self.evaluator, self.parameters, self.buffer).emit()


class _Works(_Cut):
    """The work of each nest of a kernel."""

    def __init__(self, kernel: Kernel, parameters: LoopParameters) -> None:
        self.memory, self.parameters = kernel.args, parameters
        self.found: list[Size] = []
        for node in kernel.results:
            self.write(node, partial(linearize, shape=node.shape))

    @property
    def may_be_parallel(self) -> bool:
        return any(bounds(work)[1] >= self.parameters.parallel_grain for work in self.found)

    def _nest(self, node: Node, offset: Offset) -> None:
        if node.size != 0:
            self.found.append(plan_nest(node, self.memory, self.parameters, offset).work)


def _shifted(offset: Offset, starts: Sequence[Size]) -> Offset:
    """An offset of points that are counted from `starts` on."""
    return lambda point: offset([i + s for i, s in zip(point, starts, strict=True)])
