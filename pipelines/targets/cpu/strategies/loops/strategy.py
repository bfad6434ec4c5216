"""The default strategy: one parallel, vectorised loop nest for whatever a kernel computes.

Tensors made of pieces (concatenations, paddings) are written piece by piece, each by a nest of its own (see `nest`). Chains of elementwise
operations, broadcasts, transposes, slices and gathers are evaluated in place.
"""

from collections.abc import Callable, Iterator, Sequence
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

    def works(p: LoopParameters) -> list[Size]:
        """The work of each nest."""
        pieces = [found for node in kernel.results for found in _pieces(node, partial(linearize, shape=node.shape))]
        return [plan_nest(piece, kernel.args, p, offset).work for piece, offset in pieces]

    def chunks(p: LoopParameters) -> list[int]:
        may_be_parallel = any(bounds(work)[1] >= p.parallel_grain for work in works(p))
        return powers_of_two(target.num_threads, 256) if may_be_parallel else []

    values: dict[str, Callable[[LoopParameters], list[int]]] = {
        "grain": lambda p: grains(LoopParameters.parallel_grain, *works(p)),
        "chunks": chunks,
        "unroll": lambda p: powers_of_two(1, 16),
    }
    return tuning.replace(LoopParameters(vector_bytes=target.vector_bytes, mask_bits=target.mask_bits), names, values=values)


def fill(node: Node, evaluator: Evaluator, parameters: LoopParameters, buffer: ir.Value) -> None:
    """Emits the computation of one node into a flat buffer."""
    for piece, offset in _pieces(node, partial(linearize, shape=node.shape)):
        Nest(plan_nest(piece, evaluator.buffers, parameters, offset), evaluator, parameters, buffer).emit()


def _pieces(node: Node, offset: Offset) -> Iterator[tuple[Node, Offset]]:
    """The pieces of `node`, written at `offset(point)`, that have separate loop nests, with their own offsets: concatenations and paddings
    piece by piece. Pieces without elements are left out."""
    if node.kind == "view" and node.inputs[0].kind != "arg":
        source, probe = node.inputs[0], [Index.of(Var.below(e)) for e in node.shape]
        if offset(probe).key == linearize(probe, node.shape).key:  # the same memory under another shape
            yield from _pieces(source, partial(linearize, shape=source.shape))
            return
    if node.kind == "concat":
        start: Size = 0
        for piece in node.inputs:
            yield from _pieces(piece, _shifted(offset, [start if d == node.axis else 0 for d in range(len(node.shape))]))
            start += piece.shape[node.axis]
    elif node.kind == "pad":
        yield from _pieces(node.inputs[0], _shifted(offset, node.low))
        yield from _border(node, offset)
    elif node.size != 0:
        yield node, offset


def _border(node: Node, offset: Offset) -> Iterator[tuple[Node, Offset]]:
    """The border of a padding: for each dimension the slabs before and after, within what earlier dimensions left."""
    source = node.inputs[0].shape
    begins: list[Size] = [0] * len(node.shape)
    ends = list(node.shape)
    for d, (low, inner, extent) in enumerate(zip(node.low, source, node.shape, strict=True)):
        for begin, end in ((0, low), (low + inner, extent)):
            if begin != end:
                starts = [*begins[:d], begin, *begins[d + 1 :]]
                sizes = tuple(e - b for b, e in zip(starts, [*ends[:d], end, *ends[d + 1 :]], strict=True))
                yield from _pieces(Node("splat", sizes, node.element, op=node.pad_value), _shifted(offset, starts))
        begins[d], ends[d] = low, low + inner


def _shifted(offset: Offset, starts: Sequence[Size]) -> Offset:
    """An offset of points that are counted from `starts` on."""
    return lambda point: offset([i + s for i, s in zip(point, starts, strict=True)])
