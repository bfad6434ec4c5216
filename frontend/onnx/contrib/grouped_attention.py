"""GroupQueryAttention of ONNX Runtime: a causal step of a decoder with its cache."""

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit, may_equal
from relayc.frontend.onnx.contrib.domain import check_ranks, microsoft
from relayc.frontend.onnx.contrib.heads import Keys, attend, parts, places_from, rotated, total_scores, with_heads, without_heads
from relayc.frontend.onnx.converters import current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions, size, size_tensor
from relayc.frontend.steps import add, broadcast_to, cast, filled, in_parts, reshape, subtract
from relayc.symbolic import Size, maximum

_HIDDEN = -np.inf


@microsoft()
def GroupQueryAttention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    seqlens_k: Tensor,
    total_sequence_length: Tensor,
    cos_cache: Tensor | None = None,
    sin_cache: Tensor | None = None,
    position_ids: Tensor | None = None,
    attention_bias: Tensor | None = None,
    head_sink: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    q_norm_weight: Tensor | None = None,
    k_norm_weight: Tensor | None = None,
    *,
    causal: bool = True,
    do_rotary: bool = False,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: bool = False,
    scale: float = 0.0,
    sliding_window_cache: bool = False,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> tuple[Tensor, ...]:
    """query [B, S, Hq * D] with key and value [B, S, Hk * D], or all in one; caches [B, Hk, P, D].

    Entry b of the batch has seqlens_k[b] + 1 keys with those of this call, which come behind those of the cache that it had; the rest of a
    cache counts for nothing. The caches that are given have room for total_sequence_length keys, or as much as before.
    """
    if (k_quant_type, v_quant_type) != ("NONE", "NONE") or qk_output or sliding_window_cache or current().wants(3):
        raise OnnxError("expected caches of floats that grow, and no output of scores, found quantised or sliding ones, or output_qk")
    check_ranks((3,), query=query, key=key, value=value)
    check_ranks((4,), past_key=past_key, past_value=past_value, attention_bias=attention_bias)
    check_ranks((2,), cos_cache=cos_cache, sin_cache=sin_cache, position_ids=position_ids)
    q, own = _projections(query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None and k_norm_weight is not None:
        q, own.key = (
            emit("nn.rms_norm", x, w, axis=-1, epsilon=qk_norm_epsilon) for x, w in ((q, q_norm_weight), (own.key, k_norm_weight))
        )
    batch, rows = q.shape[:2]
    counted = add(cast(reshape(seqlens_k, (batch, 1)), "int64"), 1)
    # A first call may be of sequences of different lengths, filled up on the right: they begin at 0.
    before = None if past_key is None else _before(counted, rows, total_sequence_length)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise OnnxError("inputs cos_cache and sin_cache: expected both where do_rotary is set, found none")
        places = cast(position_ids, "int64") if position_ids is not None else places_from(before, rows)
        q, own.key = (rotated(x, places, cos_cache, sin_cache, rotary_interleaved) for x in (q, own.key))
    keys = own.cached() if past_key is None or before is None else _joined(past_key, past_value, own, before, total_sequence_length)
    scores = total_scores(_visible(before, counted, rows, keys.count, local_window_size, causal), attention_bias)
    sink = head_sink if head_sink is not None else filled((num_heads,), 0, q.dtype) if smooth_softmax == 1 else None
    attended, scores = (keys, scores) if sink is None else _with_sink(keys, scores, sink, q)
    found = without_heads(attend(q, attended, scores, scale, softcap=softcap))
    return found, keys.key, keys.value


def _projections(query: Tensor, key: Tensor | None, value: Tensor | None, heads: int, groups: int) -> tuple[Tensor, Keys]:
    if key is None or value is None:
        if query.rank != 3 or not may_equal(query.shape[2] % (heads + 2 * groups), 0):
            raise OnnxError(f"input query: expected a multiple of {heads + 2 * groups} heads, found {list(query.shape)}")
        query = in_parts(query, 2, heads + 2 * groups)
        depth = query.shape[2] // (heads + 2 * groups)
        query, key, value = parts(query, [heads * depth, groups * depth, groups * depth])
    q, k, v = (with_heads(x, n, what) for x, n, what in ((query, heads, "query"), (key, groups, "key"), (value, groups, "value")))
    return q, Keys(k, v)


def _before(counted: Tensor, rows: Size, total: Tensor) -> Tensor:
    """int64[B, 1]: the number of valid keys in the cache: 0 in a first call, in which all keys are the call's."""
    is_first = emit("equal", cast(reshape(total, ()), "int64"), size_tensor(rows))
    left = emit("maximum", subtract(counted, size_tensor(rows)), constant(np.int64(0)))
    return emit("where", is_first, constant(np.int64(0)), left)


def _joined(past_key: Tensor, past_value: Tensor | None, own: Keys, before: Tensor, total: Tensor) -> Keys:
    """The caches followed by the keys and values of this call after the valid cached ones, and zeros after these."""
    assert past_value is not None
    batch, room = past_key.shape[0], past_key.shape[2]
    count = maximum(size(total, "total_sequence_length"), room)
    places = broadcast_to(reshape(positions(count), (1, count)), (batch, count))
    # Of the cache and the keys of this call behind it, the place that a key of the result has.
    moved = add(subtract(places, before), size_tensor(room))
    source = emit("where", emit("less", places, before), places, moved)
    source = emit("minimum", source, size_tensor(room + own.count - 1))
    # In a first call those that fill a sequence up are kept too.
    counts = reshape(emit("less", places, add(before, size_tensor(own.count))), (batch, 1, count, 1))
    now = own.cached()
    return Keys(_taken(past_key, now.key, source, counts), _taken(past_value, now.value, source, counts), "BHSD")


def _taken(past: Tensor, new: Tensor, source: Tensor, counts: Tensor) -> Tensor:
    """Rows source [B, T] of the concatenation of [B, H, P, D] and [B, H, S, D], zeros where `counts` is false: [B, H, T, D]."""
    both = emit("concatenate", past, new, axis=2)
    batch, heads, _, depth = both.shape
    count = source.shape[1]
    index = broadcast_to(reshape(source, (batch, 1, count, 1)), (batch, heads, count, depth))
    return emit("where", counts, emit("gather", both, index, axis=2, in_bounds=True), constant(0, past.dtype))


def _visible(before: Tensor | None, counted: Tensor, rows: Size, keys: Size, window: int, causal: bool) -> Tensor:
    """The addend of the scores: 0 where query i attends to key j, float32[B, 1, S, keys]."""
    batch = counted.shape[0]
    at = places_from(before, rows)
    at = reshape(at, (at.shape[0], at.shape[1], 1))
    key = reshape(positions(keys), (1, 1, keys))
    seen = emit("less", key, reshape(counted, (batch, 1, 1)))
    if causal:
        seen = emit("logical_and", seen, emit("less_equal", key, at))
    if window > 0:
        seen = emit("logical_and", seen, emit("greater", key, subtract(at, window)))
    # A row that fills a sequence up sees the first key at least, so that it is no NaN.
    seen = emit("logical_or", seen, emit("equal", key, constant(np.int64(0)))) if window <= 0 else seen
    seen = reshape(seen, (batch if seen.shape[0] != 1 else 1, 1, rows, keys))
    return emit("where", seen, constant(np.float32(0)), constant(np.float32(_HIDDEN)))


def _with_sink(keys: Keys, scores: Tensor | None, sink: Tensor, query: Tensor) -> tuple[Keys, Tensor]:
    """Keys with one more, of value 0 and of a score that a head has whatever the query is: what it takes of the softmax is lost."""
    batch, groups, count, _ = keys.key.shape
    heads, rows = query.shape[2], query.shape[1]
    key, value = (
        emit("concatenate", x, filled((batch, groups, 1, x.shape[3]), 0, x.dtype), axis=2) for x in (keys.cached().key, keys.cached().value)
    )
    known = filled((1, 1, 1, 1), 0, "float32") if scores is None else cast(scores, "float32")
    known = broadcast_to(known, (batch, heads, rows, count))
    own = broadcast_to(reshape(cast(sink, "float32"), (1, heads, 1, 1)), (batch, heads, rows, 1))
    return Keys(key, value, "BHSD"), emit("concatenate", known, own, axis=3)
