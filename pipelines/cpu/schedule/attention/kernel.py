"""Attention recognised in a kernel: the two products, the scores between them and the softmax; and what its schedules share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import func, ir
from relayc.pipelines.cpu.schedule.attention.exponential import exp_below_zero
from relayc.pipelines.cpu.schedule.reduction import combiners
from relayc.pipelines.kernel.contraction import multiply_add_casts, same_order, split_exactly
from relayc.pipelines.kernel.graph import Kernel, Node, NotStructured, Structured
from relayc.pipelines.kernel.index import Index, Var, affine_index, linearize, reshape
from relayc.pipelines.schedule.strategy import Scheduled, begin_function, flat
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value
Point = list[Index]

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which a kernel stays on one thread (about 2 us of work)."""

BATCH, HEAD, GROUP, QUERY, KEY, ELEMENT = range(6)
"""Loops of the products: batch, head of the key, head of the query within its group, query, key, element of a head."""


@dataclass(frozen=True)
class Attention:
    """A kernel that is softmax(scores(query x key^T)) x value.

    Attributes:
      result: what the kernel gives, made element by element of the context divided by the total, in its order.
      product: query x key^T, whose inputs are these two; its dimensions are the loops BATCH to KEY.
      scores, plain: what becomes of the product before the softmax, with the causal mask and without.
      causal: where there is a causal mask, the last key that query 0 sees; None where every query sees every key.
      largest, weights, total: the steps of the softmax: per row, per element, per row.
      context: weights x value, whose inputs are these two.
    """

    result: Node
    product: Node
    scores: Node
    plain: Node
    causal: int | None
    largest: Node
    weights: Node
    total: Node
    context: Node

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the loops BATCH to KEY."""
        return self.product.shape

    @property
    def depth(self) -> int:
        """Elements of a head of query and key."""
        return self.product.structured.extents[ELEMENT]

    @property
    def width(self) -> int:
        """Elements of a head of value."""
        return self.context.structured.extents[ELEMENT]

    @property
    def row_loop(self) -> int:
        """The loop over the queries that share a key: QUERY, or GROUP where each head has one query only."""
        return GROUP if self.shape[QUERY] == 1 else QUERY

    @property
    def rows(self) -> int:
        """Extent of the row loop."""
        return self.shape[self.row_loop]

    def context_point(self, row: Sequence[Index], element: Index) -> Point:
        """Indices of the context for those of a row (BATCH to QUERY) and an element of the head."""
        loops = [*row, Index(), element]
        return [Index() if d is None else loops[d] for d in self.context.structured.output_dims(self.context.position)]

    def result_point(self, context_point: Sequence[Index]) -> Point:
        """Indices of the result for those of the context. Raises NotStructured where they are not linear."""
        return reshape(context_point, self.context.shape, self.result.shape, split_exactly)


def match(kernel: Kernel) -> Attention | None:
    """The attention of a kernel in the form in which the compute rule of nn.attention writes it; None where it is none."""
    reductions = [n for n in kernel.nodes() if n.is_reduction]
    if len(kernel.results) != 1 or len(reductions) != 4 or 0 in kernel.results[0].shape:
        return None
    product, largest, context, total = reductions  # inputs before users, and first inputs first
    result = kernel.results[0]
    if not (_is_product(product, ELEMENT) and _is_product(context, KEY) and _is_softmax(largest, total, context.structured.inputs[0])):
        return None
    if result is context or not same_order(result, context):
        return None
    if product.structured.output_dims(product.position) != [BATCH, HEAD, GROUP, QUERY, KEY]:
        return None
    scores = largest.structured.inputs[0]
    causal = _causal(scores.structured) if scores.kind == "generic" else None
    plain = scores.structured.inputs[0] if causal is not None else scores
    return Attention(result, product, scores, plain, causal, largest, context.structured.inputs[0], total, context)


def has_few_rows(attention: Attention, target: Target) -> bool:
    """Whether so few queries share a key that lanes along them do not pay: at most half a vector."""
    return attention.rows <= target.lanes(attention.product.element.width) // 2


def _is_product(node: Node, summed: int) -> bool:
    """Whether a node is a sum of products over one of six loops, of which the second factor does not depend on those of the query."""
    structured = node.structured
    if len(structured.extents) != 6 or structured.reduction_dims != [summed] or multiply_add_casts(structured) is None:
        return False
    point = [Index.of(Var(0, max(e - 1, 1))) for e in structured.extents]
    try:
        second = [affine_index(e, point, split_exactly) for e in structured.maps[1].results]
    except NotStructured:
        return False
    return not any(i.coefficient(next(iter(point[loop].terms))) for i in second for loop in (GROUP, QUERY))


def _is_softmax(largest: Node, total: Node, weights: Node) -> bool:
    """Whether the weights are exp(scores - largest) with the largest score of each row, and the total is their sum."""
    if weights.kind != "generic" or [op.operation.name for op in weights.structured.block.operations] != [
        "arith.subf",
        "math.exp",
        "linalg.yield",
    ]:
        return False
    rows = [n.structured.reduction_dims == [KEY] and n.structured.maps[0] == ir.AffineMap.get_identity(5) for n in (largest, total)]
    combined = combiners(largest.structured) == ["arith.maximumf"] and combiners(total.structured) == ["arith.addf"]
    inputs = weights.structured.inputs
    return all(rows) and combined and total.structured.inputs == [weights] and inputs == [largest.structured.inputs[0], largest]


def _causal(structured: Structured) -> int | None:
    """c of a body that keeps its argument where key <= query + c and else gives -inf; None for any other body."""
    operations = {op.operation.results[0]: op.operation for op in structured.block.operations if op.operation.results}
    yielded = structured.block.operations[len(structured.block.operations) - 1].operands[0]

    def operands(value: ir.Value, name: str) -> list[ir.Value] | None:
        found = operations.get(value)
        return list(found.operands) if found is not None and found.name == name else None

    def constant(value: ir.Value) -> float | int | None:
        found = operations.get(value)
        return found.attributes["value"].value if found is not None and found.name == "arith.constant" else None

    def loop(value: ir.Value) -> int | None:
        found = operations.get(value)
        return ir.IntegerAttr(found.attributes["dim"]).value if found is not None and found.name == "linalg.index" else None

    chosen = operands(yielded, "arith.select")
    if chosen is None or chosen[1] != structured.block.arguments[0] or constant(chosen[2]) != float("-inf"):
        return None
    compared = operands(chosen[0], "arith.cmpi")
    if compared is None or ir.IntegerAttr(operations[chosen[0]].attributes["predicate"]).value != _SIGNED_LESS_EQUAL:
        return None
    last = operands(compared[1], "arith.addi")
    if loop(compared[0]) != KEY or last is None or loop(last[0]) != QUERY:
        return None
    return constant(last[1])  # type: ignore[return-value]


_SIGNED_LESS_EQUAL = 3


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
