"""Recognizes attention in a kernel: the two products, the scores between them and the softmax."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import arith, ir
from relayc.pipelines.emission.index import Index, Var, affine_index, reshape
from relayc.pipelines.te.read.access import split_exactly
from relayc.pipelines.te.read.body import Constant, LoopIndex
from relayc.pipelines.te.read.graph import Kernel, Node, NotStructured, Structured, behind_views, same_order
from relayc.pipelines.te.read.reduction import combiners, multiply_add_casts
from relayc.symbolic import Dim, Size

Point = list[Index]

BATCH, KEY_HEAD, QUERY_HEAD, QUERY, KEY, ELEMENT = range(6)
"""Loops of the products: batch, head of the key, head of the query within the group of a key head, query, key, element of a head."""


@dataclass(frozen=True)
class Scores(ABC):
    """What kernels of attention have in common.

    Attributes:
      product: query x key^T, with these two inputs; its dimensions are the loops BATCH to KEY.
      scores, plain: the product before the softmax, with and without the causal mask.
      causal: with a causal mask, the last key visible to query 0; None if every query sees every key.
    """

    product: Node
    scores: Node
    plain: Node
    causal: Size | None

    @property
    @abstractmethod
    def by_value(self) -> Node:
        """The product whose second input is value, with the loops BATCH to ELEMENT."""

    @property
    def shape(self) -> tuple[Size, ...]:
        """Extents of the loops BATCH to KEY."""
        return self.product.shape

    @property
    def depth(self) -> int:
        """Elements of a head of query and key."""
        return _number(self.product.structured.extents[ELEMENT])

    @property
    def width(self) -> int:
        """Elements of a head of value."""
        return _number(self.by_value.structured.extents[ELEMENT])

    @property
    def row_loop(self) -> int:
        """The loop over the queries that share a key: QUERY, or QUERY_HEAD if each head has only one query."""
        return QUERY_HEAD if self.shape[QUERY] == 1 else QUERY

    @property
    def rows(self) -> Size:
        """Extent of the row loop."""
        return self.shape[self.row_loop]

    @property
    def heads_of_key(self) -> Size:
        """Heads of key and value, of all batches."""
        return self.shape[BATCH] * self.shape[KEY_HEAD]

    @property
    def rows_of_key(self) -> Size:
        """Queries that share a key: of all query heads of a key head."""
        return self.shape[QUERY_HEAD] * self.shape[QUERY]


@dataclass(frozen=True)
class Attention(Scores):
    """A kernel that computes softmax(scores(query x key^T)) x value.

    Attributes:
      result: the kernel's result, an elementwise function of context / total, in the order of the context.
      largest, weights, total: the steps of the softmax: per row, per element, per row.
      context: weights x value, with these two inputs.
      lse: the kernel's second result, an elementwise function of largest and total, in their order; None if there is only one.
    """

    result: Node
    largest: Node
    weights: Node
    total: Node
    context: Node
    lse: Node | None = None

    @property
    def by_value(self) -> Node:
        return self.context

    def context_point(self, row: Sequence[Index], element: Index) -> Point:
        """Indices of the context, given the indices of a row (BATCH to QUERY) and of an element of the head."""
        return self.context.structured.output_indices(self.context.position, [*row, Index(), element])

    def result_point(self, context_point: Sequence[Index]) -> Point:
        """Indices of the result, given the indices of the context. Raises NotStructured if they are not linear."""
        return reshape(context_point, self.context.shape, self.result.shape, split_exactly)


@dataclass(frozen=True)
class AttentionGradient(Scores):
    """A kernel that computes the derivatives of an attention, in the form of the compute rule of nn.attention_grad.

    Attributes:
      of_row: by how much the scores of a row exceed the logarithms of its weights.
      weights: exp(scores - of_row).
      of_weights: grad x value^T, with these two inputs.
      of_scores: an elementwise function of weights and of_weights.
      d_query: of_scores x key, with these two inputs and the loops of the product; its dimensions are all loops but KEY.
      d_key, d_value: of_scores^T x query and weights^T x grad, with these inputs; their dimensions are all loops but those over queries.
    """

    of_row: Node
    weights: Node
    of_weights: Node
    of_scores: Node
    d_query: Node
    d_key: Node
    d_value: Node

    @property
    def by_value(self) -> Node:
        return self.of_weights


def _number(size: Size) -> int:
    """A static size. Raises NotStructured for an expression."""
    if isinstance(size, Dim):
        raise NotStructured(f"attention whose heads have {size} elements")
    return size


def match(kernel: Kernel) -> Attention | None:
    """The attention of a kernel in the form of the compute rule of nn.attention; None for another kernel, or one without queries or
    keys."""
    reductions = [n for n in kernel.nodes() if n.is_reduction]
    if len(kernel.results) not in (1, 2) or len(reductions) != 4:
        return None
    product, largest, context, total = reductions  # inputs before users, and first inputs first
    result = kernel.results[0]
    if 0 in (*result.shape, *product.shape):
        return None
    if not (_is_product(product, ELEMENT) and _is_product(context, KEY) and _is_softmax(largest, total, context.structured.inputs[0])):
        return None
    if not same_order(result, context):
        return None
    lse = kernel.results[1] if len(kernel.results) == 2 else None
    if lse is not None and not _is_of_rows(lse, largest, total):
        return None
    if product.structured.output_dims(product.position) != [BATCH, KEY_HEAD, QUERY_HEAD, QUERY, KEY]:
        return None
    scores = largest.structured.inputs[0]
    weights = context.structured.inputs[0]
    return Attention(product, *_before_causal(scores), result, largest, weights, total, context, lse)


def match_gradient(kernel: Kernel) -> AttentionGradient | None:
    """The derivatives of an attention; None for another kernel, or one without queries or keys."""
    products = [n for n in kernel.nodes() if n.is_reduction]
    results = [behind_views(n) for n in kernel.results]
    if len(products) != 5 or results != products[2:] or not all(len(n.structured.extents) == 6 for n in products):
        return None
    product, of_weights, d_query, d_key, d_value = products
    if 0 in product.shape or any(n.element != product.element for n in products):
        return None
    order = [n.structured.output_dims(n.position) for n in products]
    every = [BATCH, KEY_HEAD, QUERY_HEAD, QUERY, KEY]
    of_key = [BATCH, KEY_HEAD, KEY, ELEMENT]
    if order != [every, every, [*every[:KEY], ELEMENT], of_key, of_key]:
        return None
    if not (_is_product(product, ELEMENT) and _is_product(of_weights, ELEMENT) and _is_product(d_query, KEY)):
        return None
    if any(multiply_add_casts(n.structured) is None for n in (d_key, d_value)) or not _is_same_operand(d_query, product):
        return None
    of_scores, weights = (n.structured.inputs[0] for n in (d_key, d_value))
    if d_query.structured.inputs[0] is not of_scores or not _is_exponential(weights):
        return None
    scores, of_row = weights.structured.inputs
    if of_scores.kind != "generic" or of_scores.structured.inputs[:2] != [weights, of_weights]:
        return None
    return AttentionGradient(product, *_before_causal(scores), of_row, weights, of_weights, of_scores, d_query, d_key, d_value)


def _is_same_operand(a: Node, b: Node) -> bool:
    """Whether two products have the same second operand."""
    return a.structured.inputs[1] is b.structured.inputs[1] and a.structured.maps[1] == b.structured.maps[1]


def _before_causal(scores: Node) -> tuple[Node, Node, Size | None]:
    """The scores, those before a causal mask, and the last key that query 0 sees."""
    causal = _causal(scores.structured) if scores.kind == "generic" else None
    return scores, scores.structured.inputs[0] if causal is not None else scores, causal


def _is_product(node: Node, summed: int) -> bool:
    """Whether a node is a sum of products over one of six loops, whose second factor does not depend on the query loops."""
    structured = node.structured
    if len(structured.extents) != 6 or structured.reduction_dims != [summed] or multiply_add_casts(structured) is None:
        return False
    point = [Index.of(Var(0, e - 1 if isinstance(e, Dim) else max(e - 1, 1))) for e in structured.extents]
    try:
        second = [affine_index(e, point, split_exactly) for e in structured.maps[1].results]
    except NotStructured:
        return False
    return not any(i.coefficient(next(iter(point[loop].terms))) for i in second for loop in (QUERY_HEAD, QUERY))


def _is_exponential(node: Node) -> bool:
    """Whether a node is exp(a - b) of its two inputs."""
    names = ["arith.subf", "math.exp", "linalg.yield"]
    return node.kind == "generic" and [op.operation.name for op in node.structured.block.operations] == names


def _is_softmax(largest: Node, total: Node, weights: Node) -> bool:
    """Whether the weights are exp(scores - largest) with the largest score of each row, and the total is their sum."""
    if not _is_exponential(weights):
        return False
    rows = [n.structured.reduction_dims == [KEY] and n.structured.maps[0] == ir.AffineMap.get_identity(5) for n in (largest, total)]
    combined = combiners(largest.structured) == ["arith.maximumf"] and combiners(total.structured) == ["arith.addf"]
    inputs = weights.structured.inputs
    return all(rows) and combined and total.structured.inputs == [weights] and inputs == [largest.structured.inputs[0], largest]


def _is_of_rows(node: Node, largest: Node, total: Node) -> bool:
    """Whether a node is an elementwise function of the largest score and the total of each row, in their order."""
    node = behind_views(node)
    if node.kind != "generic" or node.structured.captured:
        return False
    maps = {*node.structured.maps, *node.structured.output_maps}
    return set(node.structured.inputs) <= {largest, total} and maps == {ir.AffineMap.get_identity(4)}


def _causal(structured: Structured) -> Size | None:
    """c for a body that keeps its argument where key <= query + c and otherwise gives -inf; None for any other body."""
    body = structured.body
    try:
        condition, kept, masked = body.operands_of(body.yielded[0], "arith.select")
        key, last = body.operands_of(condition, "arith.cmpi")
        query, offset = body.operands_of(last, "arith.addi")
    except NotStructured:
        return None
    compared = body.makes(condition)
    assert compared is not None, "expected the comparison whose operands were read"
    is_last = ir.IntegerAttr(compared.attributes["predicate"]).value == arith.CmpIPredicate.sle
    mask = masked.attribute if isinstance(masked, Constant) else None
    is_masked = kept == 0 and isinstance(mask, ir.FloatAttr) and mask.value == float("-inf")
    if not (is_last and is_masked) or (key, query) != (LoopIndex(KEY), LoopIndex(QUERY)):
        return None
    return offset.const if isinstance(offset, Index) else None
