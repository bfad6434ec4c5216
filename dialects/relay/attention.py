"""Attention: nn.attention, nn.attention_lse, and nn.attention_grad, the derivatives."""

import math

from relayc.dialects.relay.base import Op, Operand, Pattern, Precision, RelayError, Size, TensorType, Variadic, View, check
from relayc.dialects.relay.conditions import require_divides, require_equal
from relayc.dialects.relay.shapes import broadcast_shapes

AXES = "BHSD"
"""Letters of a layout: batch, head, position in the sequence, element of a head."""


def in_order(type_: TensorType, layout: str, name: str) -> tuple[Size | None, ...]:
    """The sizes (B, H, S, D) of a tensor in `layout`. Raises RelayError if the two do not agree."""
    check(sorted(layout) == sorted(AXES), f"{name}_layout", f"the letters {AXES} in some order", repr(layout))
    check(type_.rank == len(AXES), f"rank of {name}", len(AXES), type_.rank)
    return tuple(type_.shape[layout.index(axis)] for axis in AXES)


class _Attention(Op):
    """The operands and attributes of attention."""

    query: Operand
    key: Operand
    value: Operand
    mask: Variadic
    scale: float
    softcap: float = 0.0
    mask_value: float = -math.inf
    is_causal: bool = False
    causal_offset: Size = 0
    nan_to_zero: bool = False
    empty_to_zero: bool = False
    query_layout: str = AXES
    key_layout: str = AXES
    value_layout: str = AXES
    out_layout: str = AXES
    pattern = Pattern.OPAQUE

    @classmethod
    def context(cls, op: View) -> tuple[TensorType, TensorType]:
        """The types of softmax(scores) x value and of what there is of each query."""
        batch, heads, rows, width = _check_operands(op, op.query_layout, op.key_layout, op.value_layout)
        check(sorted(op.out_layout) == sorted(AXES), "out_layout", f"the letters {AXES} in some order", repr(op.out_layout))
        sizes = dict(zip(AXES, (batch, heads, rows, width), strict=True))
        wide = _accumulator(op.query)
        return TensorType(tuple(sizes[axis] for axis in op.out_layout), op.query.dtype), TensorType((batch, heads, rows), wide)


class Attention(_Attention, name="nn_attention", relay_name="nn.attention"):
    """softmax(scale * query x key^T) x value for each head (ONNX Attention; Relay has no such operator).

    query [B, Hq, Sq, D], key [B, Hk, Sk, D], value [B, Hk, Sk, Dv] -> [B, Hq, Sq, Dv], in the order of axes that the layouts say. Where Hq
    is a multiple of Hk, each head of key and value serves Hq / Hk consecutive heads of query.

    What happens to the scores before the softmax, in this order:
      softcap: where not 0, they become softcap * tanh(scores / softcap);
      mask: none or one tensor that broadcasts to [B, Hq, Sq, Sk]: of the dtype of query or float32 it is added, of bool it puts
        `mask_value` where it is false;
      is_causal: query i sees key j only where j <= i + causal_offset; other scores become -inf.

    The weights of a query that sees no key at all are NaN; with `empty_to_zero` they are zeros, with `nan_to_zero` those of every row with
    NaN are. 16-bit floats are computed in float32.
    """

    precision = Precision.ALWAYS
    factors = 3
    first_result_of = "nn_attention_lse"

    @staticmethod
    def infer(op: View) -> TensorType:
        return _Attention.context(op)[0]


class AttentionLse(_Attention, name="nn_attention_lse", relay_name="nn.attention_lse"):
    """nn.attention, and the logarithm of the sum of the exponentials of the scores of each query, by which nn.attention_grad finds the
    weights again.

    Operands, attributes and the first result are those of nn.attention; lse is float32 [B, Hq, Sq] (float64 where query is), -inf for a
    query that sees no key.
    """

    result_names = ("result", "lse")
    required_results = 2

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        return list(_Attention.context(op))


class AttentionGrad(Op, name="nn_attention_grad", relay_name="nn.attention_grad"):
    """The derivatives of nn.attention with respect to query, key and value (Dao et al., FlashAttention, algorithm 4).

    query [B, Hq, Sq, D], key [B, Hk, Sk, D], value [B, Hk, Sk, Dv] and mask are the operands of the attention, without softcap, where a
    bool mask puts -inf. grad [B, Hq, Sq, Dv] is the derivative with respect to its result. Of each query, [B, Hq, Sq], lse is the second
    result of nn.attention_lse, and delta the sum of the products of grad and the result, minus the derivative with respect to lse if lse
    is used. With the weights w = exp(scores - lse), which are 0 for a query whose lse is -inf:

      d value = w^T x grad
      d scores = w * (grad x value^T - delta)
      d query = scale * d scores x key
      d key = scale * d scores^T x query

    The results have the shapes of query, key and value, in float32 (float64 where query is): 16-bit floats are computed in float32.
    """

    query: Operand
    key: Operand
    value: Operand
    grad: Operand
    lse: Operand
    delta: Operand
    mask: Variadic
    scale: float
    is_causal: bool = False
    causal_offset: Size = 0
    pattern = Pattern.OPAQUE
    result_names = ("d_query", "d_key", "d_value")
    required_results = 3

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        batch, heads, rows, width = _check_operands(op)
        check(op.grad.dtype == op.query.dtype, "grad", f"the dtype of query, {op.query.dtype}", op.grad.dtype)
        wide = _accumulator(op.query)
        for name, shape in (("grad", (batch, heads, rows, width)), ("lse", (batch, heads, rows)), ("delta", (batch, heads, rows))):
            found = getattr(op, name)
            check(found.rank == len(shape), f"rank of {name}", len(shape), found.rank)
            for axis, (expected, size) in enumerate(zip(shape, found.shape, strict=True)):
                require_equal(expected, size, f"dimension {axis} of {name}", expected, size)
            if name != "grad":
                check(found.dtype == wide, name, wide, found.dtype)
        return [t.with_dtype(wide) for t in (op.query, op.key, op.value)]


def _accumulator(query: TensorType) -> str:
    return "float64" if query.dtype == "float64" else "float32"


def _check_operands(
    op: View, query_layout: str = AXES, key_layout: str = AXES, value_layout: str = AXES
) -> tuple[Size | None, Size | None, Size | None, Size | None]:
    """Checks query, key, value and mask; gives batch, heads and rows of query, and the elements of a head of value."""
    check(op.query.is_float, "query", "a float dtype", op.query.dtype)
    for name in ("key", "value"):
        check(getattr(op, name).dtype == op.query.dtype, name, f"the dtype of query, {op.query.dtype}", getattr(op, name).dtype)
    batch, heads, rows, depth = in_order(op.query, query_layout, "query")
    key_batch, groups, keys, key_depth = in_order(op.key, key_layout, "key")
    value_batch, value_groups, value_keys, width = in_order(op.value, value_layout, "value")
    for name, expected, found in (
        ("batch of key", batch, key_batch),
        ("batch of value", batch, value_batch),
        ("elements of a head of key", depth, key_depth),
        ("heads of value", groups, value_groups),
        ("sequence of value", keys, value_keys),
    ):
        require_equal(expected, found, name, expected, found)
    if groups is not None:
        require_divides(groups, heads, "heads of query", f"a multiple of the {groups} of key", heads)
    check(len(op.mask) <= 1, "mask", "at most one", len(op.mask))
    for mask in op.mask:
        dtypes = f"the dtype of query ({op.query.dtype}), float32 or bool"
        check(mask.dtype in (op.query.dtype, "float32", "bool"), "mask", dtypes, mask.dtype)
        _check_mask(mask, (batch, heads, rows, keys))
    return batch, heads, rows, width


def _check_mask(mask: TensorType, scores: tuple[Size | None, ...]) -> None:
    try:
        fits = None in scores or broadcast_shapes(mask.shape, scores) == scores
    except RelayError:
        fits = False
    check(fits, "mask", f"a shape that broadcasts to {list(scores)}", mask)
