"""Attention, which is kept whole."""

from math import prod
from typing import Any

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import broadcast_shape, broadcast_to, cast, reshape
from relayc.symbolic import Size


def _in_four(x: Tensor, batch: tuple[Size, ...]) -> Tensor:
    return reshape(broadcast_to(x, (*batch, *x.shape[-2:])), (prod(batch), 1, *x.shape[-2:]))


def _attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    depth = query.shape[-1]
    if scale is None:
        if not isinstance(depth, int):
            raise ModelError(f"query: expected heads of a size known at import, found {query.type}")
        scale = max(depth, 1) ** -0.5
    if mask is not None and mask.dtype not in ("bool", "float32", query.dtype):
        mask = cast(mask, query.dtype)
    batch = broadcast_shape(*(t.shape[:-2] for t in (query, key, value))) if query.rank != 4 else ()
    if query.rank != 4:
        # In four dimensions: the first ones as one.
        query, key, value = (_in_four(t, batch) for t in (query, key, value))
        if mask is not None and mask.rank > 2:
            mask = _in_four(mask, batch)
    else:
        first = broadcast_shape(*(t.shape[:1] for t in (query, key, value)))
        query, key, value = (broadcast_to(t, (*first, *t.shape[1:])) for t in (query, key, value))
    masks = [] if mask is None else [mask]
    # Queries that see nothing get zeros, as torch gives them.
    found = emit("nn.attention", query, key, value, *masks, scale=float(scale), is_causal=is_causal, empty_to_zero=True)
    return reshape(found, (*batch, *found.shape[-2:])) if batch or query.rank != 4 else found


@aten("scaled_dot_product_attention", keep=True)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: Any,
    enable_gqa: bool,
) -> Tensor:
    if dropout_p:
        raise ModelError("expected attention in inference, found one with dropout: call model.eval() before the export")
    return reshape(_attention(query, key, value, attn_mask, is_causal, scale), node().sizes)


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: Any) -> tuple[Any, ...]:
    if node().used(1):
        raise ModelError("expected attention in inference, found one whose sums of exponentials are used")
    return _attention(query, key, value, attn_mask, is_causal, scale), None


@aten("_scaled_dot_product_attention_math")
def math_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: Any) -> tuple[Any, ...]:
    if node().used(1):
        raise ModelError("expected attention whose weights are not used, found a use")
    return _attention(query, key, value, attn_mask, is_causal, scale), None
