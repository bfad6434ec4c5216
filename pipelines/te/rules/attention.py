"""Compute rule of nn.attention: the products, the scores between them, and the softmax.

Loops run over batch, heads of the key, heads of the query for each of these, queries and keys.
"""

from relayc.dialects.mlir import arith, ir, linalg, math
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator, multiply_add
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    fill,
    generic,
    identity,
    index_constant,
    operand_type,
    parallel,
    reduce,
    reshape,
    result_type,
)

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


def _product(a: Value, b: Value, maps: list[ir.AffineMap], out: TensorType, out_map: ir.AffineMap, dtypes: tuple[str, str]) -> Value:
    """Sum of a * b over the loops that `out_map` omits; `dtypes` are the dtypes of a and b."""
    kept = {e.position for e in out_map.results}
    kinds = ["parallel" if i in kept else "reduction" for i in range(LOOPS)]
    body = multiply_add(out.dtype, out.dtype)

    def widened(x: Value, y: Value, acc: Value) -> Value:
        return body(scalar.convert(x, dtypes[0], out.dtype), scalar.convert(y, dtypes[1], out.dtype), acc)

    return generic([a, b], maps, [fill(out, 0)], [out_map], kinds, widened)[0]


@compute("nn_attention")
def attention(op: Op, query: Value, key: Value, value: Value, *mask: Value) -> Value:
    query_type, key_type, value_type = (operand_type(op, i) for i in range(3))
    sizes = dict(zip(op.query_layout, query_type.shape, strict=True))
    groups, keys = (key_type.shape[op.key_layout.index(axis)] for axis in "HS")
    batch, heads, rows, width = sizes["B"], sizes["H"], sizes["S"], value_type.shape[op.value_layout.index("D")]
    group, dtype, wide = heads // groups, query_type.dtype, accumulator(query_type.dtype)
    scores_type = TensorType((batch, groups, group, rows, keys), wide)

    scale = op.scale / op.softcap if op.softcap else op.scale
    scaled = parallel(
        query_type.with_dtype(wide),
        [query],
        lambda x: arith.MulFOp(scalar.convert(x, dtype, wide), scalar.constant(scale, wide)).result,
    )
    maps = [_operand_map(op.query_layout, _head(group), 3), _operand_map(op.key_layout, dim(1), 4)]
    product = _product(scaled, key, maps, scores_type, affine_map(LOOPS, [dim(i) for i in range(5)]), (wide, dtype))
    scores = _masked(op, product, scores_type, group, mask)
    if op.is_causal:
        scores = _causal(scores, scores_type, op.causal_offset)

    row_type = TensorType(scores_type.shape[:4], wide)
    lowest = LOWEST if wide == "float32" else -1.7976931348623157e308
    largest = reduce(scores, [4], row_type, lowest, lambda x, acc: arith.MaximumFOp(x, acc).result)
    row_map = affine_map(5, [dim(i) for i in range(4)])
    weights = parallel(scores_type, [scores, largest], lambda x, m: math.ExpOp(arith.SubFOp(x, m).result).result, [identity(5), row_map])
    total = reduce(weights, [4], row_type, 0, lambda x, acc: arith.AddFOp(x, acc).result)

    places = {"B": [(0, batch)], "H": [(1, groups), (2, group)], "S": [(3, rows)], "D": [(5, width)]}
    order = [place for axis in op.out_layout for place in places[axis]]
    out_type = TensorType(tuple(size for _, size in order), wide)
    maps = [affine_map(LOOPS, [dim(i) for i in range(5)]), _operand_map(op.value_layout, dim(1), 4)]
    context = _product(weights, value, maps, out_type, affine_map(LOOPS, [dim(i) for i, _ in order]), (wide, dtype))
    loops = [loop for loop, _ in order]
    total_map = affine_map(5, [dim(loops.index(i)) for i in range(4)])
    found = parallel(
        out_type.with_dtype(dtype), [context, total], lambda x, s: _normalized(op, x, s, dtype, wide), [identity(5), total_map]
    )
    return reshape(found, result_type(op).sizes)


def _normalized(op: Op, x: Value, total: Value, dtype: str, wide: str) -> Value:
    quotient = arith.MulFOp(x, arith.DivFOp(scalar.constant(1.0, wide), total).result).result
    if op.nan_to_zero or op.empty_to_zero:
        zero = scalar.constant(0.0, wide)
        quotient = scalar.select(scalar.compare("gt" if op.nan_to_zero else "ne", total, zero, wide), quotient, zero)
    return scalar.convert(quotient, wide, dtype)


def _masked(op: Op, product: Value, type_: TensorType, group: int, mask: tuple[Value, ...]) -> Value:
    """The scores after softcap and mask."""
    if not mask and not op.softcap:
        return product
    wide = type_.dtype

    def body(x: Value, *rest: Value) -> Value:
        if op.softcap:
            x = arith.MulFOp(math.TanhOp(x).result, scalar.constant(op.softcap, wide)).result
        for m in rest:
            dtype = operand_type(op, 3).dtype
            if dtype == "bool":
                x = scalar.select(scalar.to_flag(m), x, scalar.constant(op.mask_value, wide))
            else:
                x = arith.AddFOp(x, scalar.convert(m, dtype, wide)).result
        return x

    at = [dim(0), _head(group), dim(3), dim(4)]
    maps = [identity(5)]
    for m in mask:
        shape = list(m.type.shape)
        maps.append(affine_map(5, [0 if n == 1 else e for n, e in zip(shape, at[4 - len(shape) :], strict=True)]))
    return parallel(type_, [product, *mask], body, maps)


def _causal(scores: Value, type_: TensorType, offset: int) -> Value:
    """-inf for keys after the last one visible to the query."""

    def body(x: Value) -> Value:
        last = arith.AddIOp(linalg.IndexOp(3).result, index_constant(offset)).result
        seen = arith.cmpi(arith.CmpIPredicate.sle, linalg.IndexOp(4).result, last)
        return scalar.select(seen, x, scalar.constant(float("-inf"), type_.dtype))

    return parallel(type_, [scores], body)
