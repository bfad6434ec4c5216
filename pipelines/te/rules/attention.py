"""Compute rules of attention: the products, the scores between them, the softmax, and the derivatives.

Loops run over batch, heads of the key, heads of the query for each of these, queries and keys.
"""

from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import arith, ir, linalg, math
from relayc.dialects.relay.attention import AXES
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator, contract
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    identity,
    index_constant,
    operand_type,
    parallel,
    reduce,
    reshape,
    result_type,
)
from relayc.symbolic import Size

LOOPS = 6
"""Batch, head of the key, head of the query within its group, query, key, and the element of a head over which a product sums."""
LOWEST = -3.4028234663852886e38
"""Least finite f32: a row that sees no key has no weight at all, and sums to 0."""


def _head(group: int) -> ir.AffineExpr:
    """Head of the query."""
    return dim(1) * group + dim(2)


def _operand_map(layout: str, head: ir.AffineExpr, position: int) -> ir.AffineMap:
    at = {"B": dim(0), "H": head, "S": dim(position), "D": dim(5)}
    return affine_map(LOOPS, [at[axis] for axis in layout])


def _loops(*loops: int) -> ir.AffineMap:
    """The map of a tensor whose dimensions are loops of a product."""
    return affine_map(LOOPS, [dim(i) for i in loops])


@dataclass(frozen=True)
class _Extents:
    """Of the loops of an attention; `dtype` is that of the operands, `wide` that of the sums of their products."""

    batch: Size
    groups: Size
    group: int
    rows: Size
    keys: Size
    dtype: str
    wide: str

    @staticmethod
    def of(op: Op, query_layout: str = AXES, key_layout: str = AXES) -> "_Extents":
        query, key = operand_type(op, 0), operand_type(op, 1)
        batch, heads, rows = (query.sizes[query_layout.index(axis)] for axis in "BHS")
        groups, keys = (key.sizes[key_layout.index(axis)] for axis in "HS")
        group: Any = heads // groups
        return _Extents(batch, groups, group, rows, keys, query.dtype, accumulator(query.dtype))

    @property
    def row_type(self) -> TensorType:
        """Of a number for each query."""
        return TensorType((self.batch, self.groups, self.group, self.rows), self.wide)

    @property
    def scores_type(self) -> TensorType:
        """Of a number for each query and key."""
        return TensorType((*self.row_type.sizes, self.keys), self.wide)


@compute("nn_attention")
def attention(op: Op, query: Value, key: Value, value: Value, *mask: Value) -> Value:
    return _attention(op, query, key, value, mask)[0]


@compute("nn_attention_lse")
def attention_lse(op: Op, query: Value, key: Value, value: Value, *mask: Value) -> tuple[Value, Value]:
    found, largest, total = _attention(op, query, key, value, mask)
    row_type = _Extents.of(op, op.query_layout, op.key_layout).row_type
    lse = parallel(row_type, [largest, total], lambda m, t: arith.addf(m, math.log(t)))
    return found, reshape(lse, result_type(op, 1).sizes)


def _attention(op: Op, query: Value, key: Value, value: Value, mask: tuple[Value, ...]) -> tuple[Value, Value, Value]:
    """The result, and of each row the largest score and the sum of exp(score - largest)."""
    e, width = _Extents.of(op, op.query_layout, op.key_layout), operand_type(op, 2).sizes[op.value_layout.index("D")]
    product = _query_by_key(op, e, op.scale / op.softcap if op.softcap else op.scale, query, key, (op.query_layout, op.key_layout))
    scores = _masked(product, e, mask, operand_type(op, 3).dtype if mask else "", op.mask_value, op.softcap)
    if op.is_causal:
        scores = _causal(scores, e.scores_type, op.causal_offset)

    lowest = LOWEST if e.wide == "float32" else -1.7976931348623157e308
    largest = reduce(scores, [4], e.row_type, lowest, arith.maximumf)
    weights = _weights(scores, largest, e)
    total = reduce(weights, [4], e.row_type, 0, arith.addf)

    places = {"B": [(0, e.batch)], "H": [(1, e.groups), (2, e.group)], "S": [(3, e.rows)], "D": [(5, width)]}
    order = [place for axis in op.out_layout for place in places[axis]]
    out_type = TensorType(tuple(size for _, size in order), e.wide)
    maps = [_loops(0, 1, 2, 3, 4), _operand_map(op.value_layout, dim(1), 4)]
    context = contract(weights, value, maps, _loops(*(i for i, _ in order)), out_type, (e.wide, e.dtype))
    loops = [loop for loop, _ in order]
    total_map = affine_map(5, [dim(loops.index(i)) for i in range(4)])
    found = parallel(
        out_type.with_dtype(e.dtype), [context, total], lambda x, s: _normalized(op, x, s, e.dtype, e.wide), [identity(5), total_map]
    )
    return reshape(found, result_type(op).sizes), largest, total


@compute("nn_attention_grad")
def attention_grad(
    op: Op, query: Value, key: Value, value: Value, grad: Value, lse: Value, delta: Value, *mask: Value
) -> tuple[Value, Value, Value]:
    e = _Extents.of(op)
    of_row = affine_map(4, [dim(0), _head(e.group), dim(3)])
    every = _loops(0, 1, 2, 3, 4)
    scores = _masked(_query_by_key(op, e, op.scale, query, key), e, mask, operand_type(op, 6).dtype if mask else "")
    if op.is_causal:
        scores = _causal(scores, e.scores_type, op.causal_offset)

    def seen(x: Value) -> Value:
        """inf for a query that sees no key, whose weights then are exp(-inf)."""
        is_none = scalar.compare("eq", x, scalar.constant(float("-inf"), e.wide), e.wide)
        return scalar.select(is_none, scalar.constant(float("inf"), e.wide), x)

    weights = _weights(scores, parallel(e.row_type, [lse], seen, [of_row]), e)
    maps = [_operand_map(AXES, _head(e.group), 3), _operand_map(AXES, dim(1), 4)]
    widened = parallel(operand_type(op, 3).with_dtype(e.wide), [grad], lambda x: scalar.convert(x, e.dtype, e.wide))
    of_weights = contract(widened, value, maps, every, e.scores_type, (e.wide, e.dtype))

    def of_score(w: Value, g: Value, mean: Value) -> Value:
        return arith.mulf(w, arith.mulf(arith.subf(g, mean), scalar.constant(op.scale, e.wide)))

    delta_map = affine_map(5, [dim(0), _head(e.group), dim(3)])
    of_scores = parallel(e.scores_type, [weights, of_weights, delta], of_score, [identity(5), identity(5), delta_map])
    types = [result_type(op, i) for i in range(3)]
    of_key_map, dtypes = _loops(0, 1, 4, 5), (e.wide, e.dtype)
    d_value = contract(weights, grad, [every, maps[0]], of_key_map, types[2], dtypes)
    d_key = contract(of_scores, query, [every, maps[0]], of_key_map, types[1], dtypes)
    query_type = TensorType((*e.row_type.sizes, types[0].sizes[3]), e.wide)
    d_query = contract(of_scores, key, [every, maps[1]], _loops(0, 1, 2, 3, 5), query_type, dtypes)
    return reshape(d_query, types[0].sizes), d_key, d_value


def _query_by_key(op: Op, e: _Extents, scale: float, query: Value, key: Value, layouts: tuple[str, str] = (AXES, AXES)) -> Value:
    """The products of queries, scaled, and keys."""
    scaled = parallel(
        operand_type(op).with_dtype(e.wide),
        [query],
        lambda x: arith.mulf(scalar.convert(x, e.dtype, e.wide), scalar.constant(scale, e.wide)),
    )
    maps = [_operand_map(layouts[0], _head(e.group), 3), _operand_map(layouts[1], dim(1), 4)]
    return contract(scaled, key, maps, _loops(0, 1, 2, 3, 4), e.scores_type, (e.wide, e.dtype))


def _weights(scores: Value, of_row: Value, e: _Extents) -> Value:
    """exp(score - that of its row)."""
    row_map = affine_map(5, [dim(i) for i in range(4)])
    return parallel(e.scores_type, [scores, of_row], lambda x, m: math.exp(arith.subf(x, m)), [identity(5), row_map])


def _normalized(op: Op, x: Value, total: Value, dtype: str, wide: str) -> Value:
    quotient = arith.mulf(x, arith.divf(scalar.constant(1.0, wide), total))
    if op.nan_to_zero or op.empty_to_zero:
        zero = scalar.constant(0.0, wide)
        quotient = scalar.select(scalar.compare("gt" if op.nan_to_zero else "ne", total, zero, wide), quotient, zero)
    return scalar.convert(quotient, wide, dtype)


def _masked(
    product: Value, e: _Extents, mask: tuple[Value, ...], mask_dtype: str, mask_value: float = float("-inf"), softcap: float = 0.0
) -> Value:
    """The scores after softcap and mask."""
    if not mask and not softcap:
        return product
    wide = e.wide

    def body(x: Value, *rest: Value) -> Value:
        if softcap:
            x = arith.mulf(math.tanh(x), scalar.constant(softcap, wide))
        for m in rest:
            if mask_dtype == "bool":
                x = scalar.select(scalar.to_flag(m), x, scalar.constant(mask_value, wide))
            else:
                x = arith.addf(x, scalar.convert(m, mask_dtype, wide))
        return x

    at = [dim(0), _head(e.group), dim(3), dim(4)]
    maps = [identity(5)]
    for m in mask:
        shape = list(m.type.shape)
        maps.append(affine_map(5, [0 if n == 1 else at_axis for n, at_axis in zip(shape, at[4 - len(shape) :], strict=True)]))
    return parallel(e.scores_type, [product, *mask], body, maps)


def _causal(scores: Value, type_: TensorType, offset: Size) -> Value:
    """-inf for keys after the last one visible to the query."""

    def body(x: Value) -> Value:
        last = arith.addi(linalg.IndexOp(3).result, index_constant(offset))
        seen = arith.cmpi(arith.CmpIPredicate.sle, linalg.IndexOp(4).result, last)
        return scalar.select(seen, x, scalar.constant(float("-inf"), type_.dtype))

    return parallel(type_, [scores], body)
