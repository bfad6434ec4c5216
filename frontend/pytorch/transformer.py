"""Torch's fast paths of transformers in inference: multi-head attention, and a layer of an encoder, as one operator each."""

from math import prod
from typing import Any

from relayc.frontend.common.activations import gelu
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.attention import scaled_attention
from relayc.frontend.pytorch.linear import dense
from relayc.frontend.pytorch.norm import layer_norm
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import add, cast, reshape, strided_slice, transpose

_OF_SCORES, _OF_KEYS, _OF_ALL = range(3)
"""What the axes of a mask are (mask_type): queries and keys; batch and keys; all axes of the scores."""


def _visible(mask: Tensor | None, mask_type: int | None) -> Tensor | None:
    """The mask of an attention: true for keys that a query sees. The masks of the fast paths are true for the others."""
    if mask is None:
        return None
    if mask_type not in (_OF_SCORES, _OF_KEYS, _OF_ALL):
        raise ModelError(f"expected a mask of queries and keys (0), of batch and keys (1), or of the scores (2), found {mask_type}")
    shapes = {_OF_SCORES: mask.shape, _OF_KEYS: (mask.shape[0], 1, 1, mask.shape[-1]), _OF_ALL: mask.shape}
    return emit("logical_not", cast(reshape(mask, shapes[mask_type]), "bool"))


def _third(x: Tensor, part: int, axis: int) -> Tensor:
    """A third of a tensor along an axis: of query, key or value."""
    width = x.shape[axis] // 3
    return strided_slice(x, [part * width], [(part + 1) * width], [1], [axis])


@aten("_native_multi_head_attention")
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None,
    mask_type: int | None,
) -> tuple[Any, ...]:
    """Query, key and value [batch, length, embedding]."""
    if node().used(1):
        raise ModelError("expected multi-head attention whose weights are not used, found a use: need_weights=False gives none")
    width = proj_weight.shape[0]
    if query is key and key is value:
        whole = dense(query, qkv_weight, qkv_bias)
        parts = [_third(whole, i, 2) for i in range(3)]
    else:
        parts = [dense(x, _third(qkv_weight, i, 0), _third(qkv_bias, i, 0)) for i, x in enumerate((query, key, value))]
    q, k, v = (transpose(reshape(x, (*x.shape[:2], num_head, width // num_head)), (0, 2, 1, 3)) for x in parts)
    found = transpose(scaled_attention(q, k, v, _visible(mask, mask_type), False, None), (0, 2, 1, 3))
    return dense(reshape(found, (*found.shape[:2], prod(found.shape[2:]))), proj_weight, proj_bias), None


@aten("_transformer_encoder_layer_fwd")
def encoder_layer(
    src: Tensor,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None,
    mask_type: int | None,
) -> Tensor:
    """src [batch, length, embedding]."""

    def attended(x: Tensor) -> Tensor:
        return multi_head_attention(x, x, x, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)[0]

    def fed_forward(x: Tensor) -> Tensor:
        inner = dense(x, ffn_weight_1, ffn_bias_1)
        return dense(gelu(inner) if use_gelu else emit("nn.relu", inner), ffn_weight_2, ffn_bias_2)

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return layer_norm(x, (x.shape[-1],), weight, bias, eps)

    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    if norm_first:
        x = add(src, attended(norm(src, *first)))
        return add(x, fed_forward(norm(x, *second)))
    x = norm(add(src, attended(src)), *first)
    return norm(add(x, fed_forward(x)), *second)
