"""What all strategies of attention share: the function, the parallel loop over heads, buffers of a thread, operands and results."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.attention.exponential import exp_below_zero
from relayc.pipelines.kernel.attention import KEY, Attention
from relayc.pipelines.kernel.graph import Kernel, Node
from relayc.pipelines.kernel.index import Index, Var, linearize
from relayc.pipelines.kernel.reduction import multiply_add_casts
from relayc.pipelines.schedule.strategy import Scheduled, kernel_body
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit, nest
from relayc.pipelines.tir.buffers import local_buffer
from relayc.pipelines.tir.evaluator import Evaluator

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which a kernel stays on one thread (about 2 us of work)."""


def has_few_rows(attention: Attention, target: Target) -> bool:
    """Whether so few queries share a key that lanes along them do not pay: at most half a vector."""
    return attention.rows <= target.lanes(attention.product.element.width) // 2


class Emission(ABC):
    """Emits an attention kernel: loops over heads, in parallel, with `_task` inside. Buffers of a thread are flat.

    Attributes:
      kernel, a: the kernel, and its attention.
      wide: element type of the scores.
      keys, depth, width: keys, elements of a head of query and key, elements of a head of value.
      outer: loops outside the row loop that have several iterations.
      casts: conversions of an element of key, and of value, that come before its product.
      uses_tiles: whether the products are on AMX tiles.
      buffers: of a thread, by name.
    """

    uses_tiles = False
    evaluator: Evaluator
    output: ir.Value
    buffers: dict[str, ir.Value]

    def __init__(self, kernel: Kernel, attention: Attention) -> None:
        self.kernel, self.a = kernel, attention
        self.wide = attention.product.element
        self.keys, self.depth, self.width = attention.shape[KEY], attention.depth, attention.width
        self.outer = [i for i in range(KEY) if i != attention.row_loop and attention.shape[i] > 1]
        casts = [multiply_add_casts(n.structured) for n in (attention.product, attention.context)]
        self.casts = [c[1] if c is not None else [] for c in casts]

    @property
    @abstractmethod
    def blocks(self) -> int:
        """Tasks that the rows of a head make."""

    @abstractmethod
    def _buffers(self) -> Mapping[str, int | tuple[int, ir.Type]]:
        """Names of the buffers of a thread and their sizes in elements of type `wide`, or of the type given."""

    @abstractmethod
    def _task(self, row: list[Index], block: Index) -> None:
        """Some of the rows of a head; `row` has the indices BATCH to QUERY, 0 for the row loop."""

    def emit(self, tuning: Tuning) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        work = prod(self.a.shape) * (self.depth + self.width)
        blocks = self.blocks
        with kernel_body(self.kernel) as body:
            self.evaluator, self.output = body.evaluator, body.outputs[0]
            loops = [Var(0, self.a.shape[i] - 1, name="p") for i in self.outer]
            block = Var(0, blocks - 1, name="block")
            variables = [*loops, block] if blocks > 1 else loops

            def task() -> None:
                sizes = {name: (n, self.wide) if isinstance(n, int) else n for name, n in self._buffers().items()}
                self.buffers = {name: local_buffer(*size) for name, size in sizes.items()}
                row = [Index()] * KEY
                for i, variable in zip(self.outer, loops, strict=True):
                    row[i] = Index.of(variable)
                with self.evaluator.scope():
                    self._task(row, Index.of(block) if blocks > 1 else Index())

            is_parallel = bool(variables) and work >= tuning.number("grain", PARALLEL_GRAIN)
            nest.tasks(variables, self.evaluator, is_parallel, task)
        return Scheduled(body.function, uses_tiles=self.uses_tiles)

    def _load(self, name: str, offset: Index) -> ir.Value:
        """Element(s) of a buffer of the thread."""
        return self.evaluator.load_from(self.buffers[name], self.buffers[name].type.element_type, offset)

    def _store(self, name: str, offset: Index, value: ir.Value) -> None:
        self.evaluator.store(value, self.buffers[name], offset)

    def _result(self, row: Sequence[Index], element: Index, context: ir.Value, total: ir.Value) -> ir.Value:
        """What the kernel gives for an element of the context and the total of its row."""
        row = [Index() if extent == 1 else index for index, extent in zip(row, self.a.shape, strict=False)]
        point = self.a.context_point(row, element)
        self.evaluator.remember(self.a.total, row, total)
        self.evaluator.remember(self.a.context, point, context)
        return self.evaluator.at(self.a.result, self.a.result_point(point))

    def _place(self, row: Sequence[Index], element: Index) -> Index:
        """Where the result for an element of the context goes."""
        return linearize(self.a.context_point(row, element), self.a.context.shape)

    def _is_read_in_place(self, node: Node) -> bool:
        """Whether the second operand of a product is loaded as it is, from memory."""
        source = node.structured.inputs[1]
        while source.kind in ("view", "slice"):
            source = source.inputs[0]
        return source.kind == "arg" and not self.casts[node is self.a.context]

    def _operand(self, node: Node, position: int, point: Sequence[Index]) -> ir.Value:
        """An operand of a product at a point of its loops, as the product takes it."""
        structured = node.structured
        value = self.evaluator.at(structured.inputs[position], self.evaluator.apply(structured.maps[position], point))
        return emit.convert(value, self.casts[node is self.a.context] if position else [])

    def _initial(self, node: Node) -> ir.Value:
        """What a reduction starts with."""
        return emit.broadcast(self.evaluator.at(node.structured.inits[0], []), self.evaluator.width)

    def _weight(self, score: ir.Value, largest: ir.Value) -> ir.Value:
        return exp_below_zero(emit.arith("subf", score, largest))

    def _along(self, extent: int, lanes: int, body: Callable[[Index, int], None]) -> None:
        """`body(start, lanes)` over an extent: vectors, the last of which starts early rather than ending late; elements where it is
        shorter than a vector."""
        lanes = lanes if extent >= lanes else 1
        step = Var(0, (extent - 1) // lanes * lanes, step=lanes, name="v")
        with emit.for_loop(0, extent, lanes, step), self.evaluator.scope():
            body(emit.at_most(Index.of(step), extent - lanes), lanes)


def larger(score: ir.Value, largest: ir.Value) -> ir.Value:
    """The larger of two scores; the second where the first is NaN, whose weight then becomes NaN too."""
    return emit.select(emit.compare("ogt", score, largest), score, largest)
