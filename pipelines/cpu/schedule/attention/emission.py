"""What all strategies of attention share: the function, the parallel loop over heads, buffers of a thread, operands and results."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod

from relayc.dialects.mlir import func, ir
from relayc.pipelines.cpu.schedule.attention.exponential import exp_below_zero
from relayc.pipelines.kernel.attention import KEY, Attention
from relayc.pipelines.kernel.graph import Kernel, Node
from relayc.pipelines.kernel.index import Index, Var, linearize
from relayc.pipelines.kernel.reduction import multiply_add_casts
from relayc.pipelines.schedule.strategy import Scheduled, begin_function, flat
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value

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
    """

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
        function, arguments = begin_function(self.kernel, {})
        count = len(self.kernel.args)
        work = prod(self.a.shape) * (self.depth + self.width)
        with ir.InsertionPoint(function.entry_block):
            self.evaluator = Evaluator({node: flat(b) for node, b in zip(self.kernel.args, arguments[:count], strict=True)})
            self.output = flat(arguments[count])
            loops = [Var(0, self.a.shape[i] - 1, name="p") for i in self.outer]
            block = Var(0, self.blocks - 1, name="block")
            variables = loops + [block] * (self.blocks > 1)

            def inside() -> None:
                sizes = {name: (n, self.wide) if isinstance(n, int) else n for name, n in self._buffers().items()}
                self.buffers = {name: emit.local_buffer(*size) for name, size in sizes.items()}
                row = [Index()] * KEY
                for i, variable in zip(self.outer, loops, strict=True):
                    row[i] = Index.of(variable)
                with self.evaluator.scope():
                    self._task(row, Index.of(block) if self.blocks > 1 else Index())

            if variables and work >= tuning.number("grain", PARALLEL_GRAIN):
                emit.parallel_loop([v.high + 1 for v in variables], variables, inside)
            else:
                self._nest(variables, inside)
            func.ReturnOp([])
        return Scheduled(function)

    def _nest(self, variables: Sequence[Var], body: Callable[[], None]) -> None:
        if not variables:
            body()
            return
        with emit.for_loop(0, variables[0].high + 1, 1, variables[0]), self.evaluator.scope():
            self._nest(variables[1:], body)

    def _load(self, name: str, offset: Index) -> Value:
        """Element(s) of a buffer of the thread."""
        return self.evaluator.load_from(self.buffers[name], self.buffers[name].type.element_type, offset)

    def _store(self, name: str, offset: Index, value: Value) -> None:
        self.evaluator.store(value, self.buffers[name], offset)

    def _result(self, row: Sequence[Index], element: Index, context: Value, total: Value) -> Value:
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

    def _operand(self, node: Node, position: int, point: Sequence[Index]) -> Value:
        """An operand of a product at a point of its loops, as the product takes it."""
        structured = node.structured
        value = self.evaluator.at(structured.inputs[position], self.evaluator.apply(structured.maps[position], point))
        for name, type_ in self.casts[node is self.a.context] if position else []:
            value = emit.create(name, [emit.vector_of(value.type.shape[0], type_) if emit.is_vector(value) else type_], [value])
        return value

    def _initial(self, node: Node) -> Value:
        """What a reduction starts with."""
        return emit.broadcast(self.evaluator.at(node.structured.inits[0], []), self.evaluator.width)

    def _weight(self, score: Value, largest: Value) -> Value:
        return exp_below_zero(emit.create("arith.subf", [score.type], [score, largest]))

    def _along(self, extent: int, lanes: int, body: Callable[[Index, int], None]) -> None:
        """`body(start, lanes)` over an extent: vectors, the last of which starts early rather than ending late; elements where it is
        shorter than a vector."""
        lanes = lanes if extent >= lanes else 1
        step = Var(0, (extent - 1) // lanes * lanes, step=lanes, name="v")
        with emit.for_loop(0, extent, lanes, step), self.evaluator.scope():
            body(emit.at_most(Index.of(step), extent - lanes), lanes)


def arith(name: str, a: Value, b: Value) -> Value:
    return emit.create(f"arith.{name}", [a.type], [a, b])


_PREDICATES = {"ogt": ("arith.cmpf", 2), "sgt": ("arith.cmpi", 4)}


def compare(predicate: str, a: Value, b: Value) -> Value:
    """a > b of floats, ordered (ogt), or of signed integers (sgt)."""
    name, code = _PREDICATES[predicate]
    flag: ir.Type = ir.IntegerType.get_signless(1)
    type_ = emit.vector_of(a.type.shape[0], flag) if emit.is_vector(a) else flag
    return emit.create(name, [type_], [a, b], {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), code)})


def larger(score: Value, largest: Value) -> Value:
    """The larger of two scores; the second where the first is NaN, whose weight then becomes NaN too."""
    return emit.create("arith.select", [score.type], [compare("ogt", score, largest), score, largest])
