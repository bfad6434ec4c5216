"""Attention: nn.attention."""

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


class Attention(Op, name="nn_attention", relay_name="nn.attention"):
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
    precision = Precision.ALWAYS
    factors = 3

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.query.is_float, "query", "a float dtype", op.query.dtype)
        for name in ("key", "value"):
            check(getattr(op, name).dtype == op.query.dtype, name, f"the dtype of query, {op.query.dtype}", getattr(op, name).dtype)
        batch, heads, rows, depth = in_order(op.query, op.query_layout, "query")
        key_batch, groups, keys, key_depth = in_order(op.key, op.key_layout, "key")
        value_batch, value_groups, value_keys, width = in_order(op.value, op.value_layout, "value")
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
        check(sorted(op.out_layout) == sorted(AXES), "out_layout", f"the letters {AXES} in some order", repr(op.out_layout))
        check(len(op.mask) <= 1, "mask", "at most one", len(op.mask))
        for mask in op.mask:
            dtypes = f"the dtype of query ({op.query.dtype}), float32 or bool"
            check(mask.dtype in (op.query.dtype, "float32", "bool"), "mask", dtypes, mask.dtype)
            _check_mask(mask, (batch, heads, rows, keys))
        sizes = dict(zip(AXES, (batch, heads, rows, width), strict=True))
        return TensorType(tuple(sizes[axis] for axis in op.out_layout), op.query.dtype)


def _check_mask(mask: TensorType, scores: tuple[Size | None, ...]) -> None:
    try:
        fits = None in scores or broadcast_shapes(mask.shape, scores) == scores
    except RelayError:
        fits = False
    check(fits, "mask", f"a shape that broadcasts to {list(scores)}", mask)
