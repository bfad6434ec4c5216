"""Attention, which is kept whole."""

from math import inf, prod
from typing import Any

from relayc.frontend.common.attention import attention_derivatives
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.operands import where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import broadcast_shape, broadcast_to, cast, filled, like, reshape, strided_slice
from relayc.symbolic import Size


def _in_four(x: Tensor, batch: tuple[Size, ...]) -> Tensor:
    return reshape(broadcast_to(x, (*batch, *x.shape[-2:])), (prod(batch), 1, *x.shape[-2:]))


def _scale(query: Tensor, scale: float | None) -> float:
    depth = query.shape[-1]
    if scale is not None:
        return float(scale)
    if not isinstance(depth, int):
        raise ModelError(f"query: expected heads of a size known at import, found {query.type}")
    return float(max(depth, 1) ** -0.5)


def _mask_of(query: Tensor, mask: Tensor | None) -> list[Tensor]:
    """A mask as an operand."""
    if mask is None:
        return []
    return [mask if mask.dtype in ("bool", "float32", query.dtype) else cast(mask, query.dtype)]


def scaled_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """softmax(query key^T scale + mask) value, with torch's broadcasts; a mask of bool is true for keys that are seen."""
    batch = broadcast_shape(*(t.shape[:-2] for t in (query, key, value))) if query.rank != 4 else ()
    scale = _scale(query, scale)
    if query.rank != 4:
        # In four dimensions: the first ones as one.
        query, key, value = (_in_four(t, batch) for t in (query, key, value))
        if mask is not None and mask.shape[:-2]:
            mask = _in_four(mask, batch)
    else:
        first = broadcast_shape(*(t.shape[:1] for t in (query, key, value)))
        query, key, value = (broadcast_to(t, (*first, *t.shape[1:])) for t in (query, key, value))
    # Queries that see nothing get zeros, as torch gives them.
    found = emit("nn.attention", query, key, value, *_mask_of(query, mask), scale=scale, is_causal=is_causal, empty_to_zero=True)
    return reshape(found, (*batch, *found.shape[-2:])) if batch or query.rank != 4 else found


@aten("scaled_dot_product_attention")
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
    return reshape(scaled_attention(query, key, value, attn_mask, is_causal, scale), node().sizes)


def _attention_lse(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    """Attention of four dimensions, and the log-sum-exp of each query: 0 for one that sees nothing, as torch gives it."""
    attributes = {"scale": _scale(query, scale), "is_causal": is_causal, "empty_to_zero": True}
    found, lse = emit("nn.attention_lse", query, key, value, *_mask_of(query, mask), **attributes)
    if mask is not None:
        lse = where(emit("equal", lse, like(-inf, lse)), like(0, lse), lse)
    return found, lse


@aten("_scaled_dot_product_flash_attention_for_cpu_backward", grad_out="grad", logsumexp="lse", attn_mask="mask", dropout_p="dropout")
def flash_attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
) -> tuple[Tensor, ...]:
    """Those of query, key and value."""
    if dropout:
        raise ModelError("expected attention without dropout, found one with it")
    operands = (query, key, value, grad, out, lse, *_mask_of(query, mask))
    found = attention_derivatives(*operands, scale=_scale(query, scale), is_causal=is_causal)
    return tuple(cast(t, x.dtype) for t, x in zip(found, (query, key, value), strict=True))


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: Any) -> tuple[Any, ...]:
    if node().used(1):
        return _attention_lse(query, key, value, attn_mask, is_causal, scale)
    return scaled_attention(query, key, value, attn_mask, is_causal, scale), None


@aten("_scaled_dot_product_efficient_attention")
def efficient_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None, dropout_p: float, is_causal: bool, scale: Any
) -> tuple[Any, ...]:
    """Its log-sum-exp has zeros up to a multiple of 32 queries, or no elements; the state of random numbers that it gives is not used."""
    if dropout_p:
        raise ModelError("expected attention without dropout, found one with it")
    shapes, dtypes = node().shape, node().dtype
    states = [filled(shape, 0, dtype) for shape, dtype in zip(shapes[2:], dtypes[2:], strict=True)]
    if not node().used(1) or shapes[1][2] == 0:
        found = scaled_attention(query, key, value, attn_bias, is_causal, scale)
        return found, filled(shapes[1], 0, dtypes[1]), *states
    found, lse = _attention_lse(query, key, value, attn_bias, is_causal, scale)
    width = (*[0] * 5, shapes[1][2] - lse.shape[2])
    return found, emit("nn.pad", lse, filled((), 0, lse.dtype), pad_width=width, pad_mode="constant"), *states


@aten("_scaled_dot_product_efficient_attention_backward")
def efficient_attention_backward(
    grad_out_: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    grad_input_mask: tuple[bool, ...],
    is_causal: bool,
    scale: Any,
) -> tuple[Tensor | None, ...]:
    if grad_input_mask[3]:
        raise ModelError("expected attention whose bias has no derivative, found one whose bias has")
    lse = strided_slice(logsumexp, [0], [query.shape[2]], [1], [2])
    return *flash_attention_backward(grad_out_, query, key, value, out, lse, attn_bias, dropout_p, is_causal, scale), None
