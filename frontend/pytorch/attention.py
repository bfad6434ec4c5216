"""Attention, which is kept whole."""

from math import inf, prod
from typing import Any

from relayc.frontend.common.products import matmul
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.operands import where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import positions
from relayc.frontend.steps import broadcast_shape, broadcast_to, cast, like, multiply, reshape, transpose
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


def _attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    scale = _scale(query, scale)
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
    found = emit("nn.attention", query, key, value, *masks, scale=scale, is_causal=is_causal, empty_to_zero=True)
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


def _scores(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """What softmax makes weights of, in float32 or the operands' wider type."""
    if query.rank != 4 or query.shape[:2] != key.shape[:2]:
        raise ModelError(f"expected as many heads of keys as of queries in training, found {query.type} and {key.type}")
    found = multiply(matmul(query, transpose(key, (0, 1, 3, 2))), _scale(query, scale))
    rows, columns = found.shape[-2:]
    if is_causal:
        later = emit("greater", reshape(positions(columns), (1, columns)), reshape(positions(rows), (rows, 1)))
        found = where(broadcast_to(later, found.shape), like(-inf, found), found)
    if mask is None:
        return found
    if mask.dtype == "bool":
        return where(broadcast_to(mask, found.shape), found, like(-inf, found))
    return emit("add", found, cast(mask, found.dtype))


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == "float64" else cast(x, "float32")


@aten("_scaled_dot_product_flash_attention_for_cpu", keep=True)
def flash_attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: Any) -> tuple[Any, ...]:
    found = _attention(query, key, value, attn_mask, is_causal, scale)
    if not node().used(1):
        return found, None
    # By the logarithm of the sum of the exponentials of a query's scores its weights are found again when derivatives are computed.
    scores = _scores(_wide(query), _wide(key), attn_mask, is_causal, scale)
    largest = emit("max", scores, axis=(3,), keepdims=True)
    total = emit("sum", emit("exp", emit("subtract", scores, largest)), axis=(3,), keepdims=True)
    return found, reshape(emit("add", largest, emit("log", total)), found.shape[:3])


@aten("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Tensor | None,
    scale: Any,
) -> tuple[Tensor, ...]:
    """Of the weights w = exp(scores - logsumexp): the derivative of the scores is w * (that of w - its mean by w)."""
    if dropout_p:
        raise ModelError("expected attention without dropout, found one with it")
    g, q, k, v, y = map(_wide, (grad_out, query, key, value, out))
    scores = _scores(q, k, attn_mask, is_causal, scale)
    weights = emit("exp", emit("subtract", scores, reshape(_wide(logsumexp), (*logsumexp.shape, 1))))
    turned = (0, 1, 3, 2)
    of_weights = matmul(g, transpose(v, turned))
    mean = emit("sum", emit("multiply", g, y), axis=(3,), keepdims=True)
    of_scores = multiply(emit("multiply", weights, emit("subtract", of_weights, mean)), _scale(query, scale))
    found = matmul(of_scores, k), matmul(transpose(of_scores, turned), q), matmul(transpose(weights, turned), g)
    return tuple(cast(t, dtype) for t, dtype in zip(found, node().dtype, strict=True))


@aten("_scaled_dot_product_attention_math")
def math_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: Any) -> tuple[Any, ...]:
    if node().used(1):
        raise ModelError("expected attention whose weights are not used, found a use")
    return _attention(query, key, value, attn_mask, is_causal, scale), None
