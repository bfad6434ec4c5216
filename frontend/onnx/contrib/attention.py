"""Attention, MultiHeadAttention and RotaryEmbedding of ONNX Runtime, and its quantised Attention."""

from collections.abc import Sequence

from relayc.frontend.common.products import matmul
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.onnx.contrib.domain import check_ranks, microsoft
from relayc.frontend.onnx.contrib.heads import (
    MASKED,
    Keys,
    attend,
    mask_scores,
    parts,
    places_from,
    rotated,
    swapped,
    total_scores,
    with_heads,
    without_heads,
)
from relayc.frontend.onnx.contrib.quantize import integer_product
from relayc.frontend.onnx.converters import current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import add, cast, last_part, reshape, row
from relayc.symbolic import Size


@microsoft()
def Attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask_index: Tensor | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    *,
    num_heads: int,
    do_rotary: bool = False,
    mask_filter_value: float = MASKED,
    past_present_share_buffer: bool = False,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: bool = False,
) -> tuple[Tensor, ...]:
    """Self-attention with the product of its input projections: weights [hidden, Q + K + V]; past and present are [2, B, H, S, D]."""
    _refuse(do_rotary=do_rotary, past_present_share_buffer=past_present_share_buffer, past_sequence_length=past_sequence_length is not None)
    check_ranks((3,), input=x)
    check_ranks((2,), weights=weights)
    check_ranks((1,), bias=bias)
    product = matmul(x, weights)
    if bias is not None:
        product = emit("nn.bias_add", product, bias, axis=2)
    return _self_attention(product, num_heads, qkv_hidden_sizes, mask_index, past, attention_bias, mask_filter_value, scale, unidirectional)


@microsoft()
def QAttention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor,
    x_scale: Tensor,
    weight_scale: Tensor,
    mask_index: Tensor | None = None,
    x_zero_point: Tensor | None = None,
    weight_zero_point: Tensor | None = None,
    past: Tensor | None = None,
    *,
    num_heads: int,
    do_rotary: bool = False,
    mask_filter_value: float = MASKED,
    past_present_share_buffer: bool = False,
    scale: float = 0.0,
    unidirectional: bool = False,
) -> tuple[Tensor, ...]:
    """Attention whose input projections are a product of integers."""
    _refuse(do_rotary=do_rotary, past_present_share_buffer=past_present_share_buffer)
    check_ranks((3,), input=x)
    check_ranks((2,), weight=weights)
    check_ranks((1,), bias=bias)
    product = integer_product(x, x_scale, x_zero_point, weights, weight_scale, weight_zero_point)
    product = emit("nn.bias_add", product, bias, axis=2)
    return _self_attention(product, num_heads, None, mask_index, past, None, mask_filter_value, scale, unidirectional)


def _refuse(**options: bool) -> None:
    """Raises OnnxError for an option that is set."""
    for name, is_set in options.items():
        if is_set:
            raise OnnxError(f"{name}: expected none or 0, found one")


def _self_attention(
    product: Tensor,
    heads: int,
    widths: Sequence[int] | None,
    mask: Tensor | None,
    past: Tensor | None,
    attention_bias: Tensor | None,
    filter_value: float,
    scale: float,
    unidirectional: bool,
) -> tuple[Tensor, ...]:
    """Attention of the projections [B, S, Q + K + V]; its result, and what is the past of the next call."""
    batch, rows, width = product.shape
    columns: list[Size] = list(widths) if widths else [width // 3] * 3
    if len(columns) != 3 or sum(columns) != width:
        raise OnnxError(f"attribute qkv_hidden_sizes: expected three numbers with the sum {width}, found {columns}")
    query, key, value = (with_heads(part, heads, "weights") for part in parts(product, columns))
    keys = Keys(key, value)
    if past is not None:
        if past.rank != 5 or past.shape[0] != 2:
            raise OnnxError(f"input past: expected [2, batch, heads, sequence, elements of a head], found {list(past.shape)}")
        keys = keys.after(row(past, 0), row(past, 1))
    scores = total_scores(mask_scores(mask, batch, rows, keys.count, filter_value), attention_bias)
    found = without_heads(attend(query, keys, scores, scale, keys.count - rows if unidirectional else None))
    if not current().wants(1):
        return (found,)
    cached = keys.cached()
    return found, emit("stack", cached.key, cached.value, axis=0)


@microsoft()
def MultiHeadAttention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    cache_indirection: Tensor | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = MASKED,
    scale: float = 0.0,
    unidirectional: bool = False,
) -> tuple[Tensor, ...]:
    """query [B, S, H * D] with keys and values [B, L, H * D] or [B, H, L, D], keys with values [B, L, H, 2, D] or all three in one
    [B, S, H, 3, D]; the bias is that of the input projections."""
    _refuse(past_sequence_length=past_sequence_length is not None, cache_indirection=cache_indirection is not None)
    if current().wants(3):
        raise OnnxError("output qk: expected it not to be used, found a use")
    check_ranks((3, 5), query=query)
    check_ranks((3, 4, 5), key=key)
    check_ranks((3, 4), value=value)
    check_ranks((4,), past_key=past_key, past_value=past_value, attention_bias=attention_bias)
    check_ranks((1,), bias=bias)
    q, keys = _queries_and_keys(query, key, value, num_heads, bias)
    keys = keys.after(past_key, past_value)
    batch, rows = q.shape[:2]
    scores = total_scores(mask_scores(key_padding_mask, batch, rows, keys.count, mask_filter_value), attention_bias)
    found = without_heads(attend(q, keys, scores, scale, keys.count - rows if unidirectional else None))
    if not (current().wants(1) or current().wants(2)):
        return (found,)
    cached = keys.cached()
    return found, cached.key, cached.value


def _queries_and_keys(query: Tensor, key: Tensor | None, value: Tensor | None, heads: int, bias: Tensor | None) -> tuple[Tensor, Keys]:
    if query.rank == 5:
        q, k, v = (row(query, i, 3) for i in range(3))
    elif key is not None and key.rank == 5:
        q, k, v = with_heads(query, heads, "query"), row(key, 0, 3), row(key, 1, 3)
    elif key is None or value is None:
        raise OnnxError("inputs key and value: expected both, or a packed query [B, S, H, 3, D] or key [B, S, H, 2, D], found neither")
    elif key.rank == 4:
        q = _biased(with_heads(query, heads, "query"), bias, 0, heads)
        return q, Keys(key, value, "BHSD")
    else:
        q, k, v = (with_heads(x, heads, what) for x, what in ((query, "query"), (key, "key"), (value, "value")))
    width = q.shape[2] * q.shape[3]
    return _biased(q, bias, 0, heads), Keys(_biased(k, bias, width, heads), _biased(v, bias, 2 * width, heads))  # type: ignore[arg-type] # sizes


def _biased(x: Tensor, bias: Tensor | None, begin: int, heads: int) -> Tensor:
    """x [B, S, H, D] plus its part of a bias of several projections."""
    if bias is None:
        return x
    own = last_part(bias, begin, begin + heads * x.shape[3])
    return add(x, reshape(own, (heads, x.shape[3])))


@microsoft()
def RotaryEmbedding(
    x: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: bool = False,
    is_packed_batching: bool | None = None,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """x [B, S, H * D] or [B, H, S, D]; position_ids [1], the first position, or [B, S]."""
    check_ranks((3, 4), input=x)
    check_ranks((1, 2), position_ids=position_ids)
    check_ranks((2,), cos_cache=cos_cache, sin_cache=sin_cache)
    if x.rank == 4:
        heads = swapped(x)
    else:
        depth = 2 * cos_cache.shape[1] if not rotary_embedding_dim else None
        count = num_heads or (x.shape[-1] // depth if depth is not None else 0)
        heads = with_heads(x, count if isinstance(count, int) else 0, "input")
    rows = heads.shape[1]
    if position_ids.rank == 1 and position_ids.shape == (1,):
        places = places_from(cast(reshape(position_ids, (1, 1)), "int64"), rows)
    else:
        places = assume(cast(position_ids, "int64"), heads.shape[:2])
    found = rotated(heads, places, cos_cache, sin_cache, interleaved)
    return swapped(found) if x.rank == 4 else without_heads(found)
