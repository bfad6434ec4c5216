"""Attention."""

from math import inf, isfinite

from onnx import TensorProto

from relayc.frontend.converter import Tensor, assume, emit, may_equal
from relayc.frontend.onnx.converters import converter, current
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import in_parts, reshape, transpose
from relayc.symbolic import Size


def _heads(x: Tensor, count: int | None, what: str) -> tuple[Tensor, str]:
    """An input in four dimensions and their layout: [B, H, S, D], or [B, S, H * D] with the number of heads H."""
    if x.rank == 4:
        return x, "BHSD"
    if x.rank != 3 or not count or not may_equal(x.shape[2] % count, 0):
        raise OnnxError(f"input {what}: expected 4 dimensions, or 3 whose last is a multiple of the number of heads, found {list(x.shape)}")
    x = in_parts(x, 2, count)
    return reshape(x, (*x.shape[:2], count, x.shape[2] // count)), "BSHD"


def with_past(x: Tensor, layout: str, past: Tensor) -> Tensor:
    """The keys or values of the past, then these: [B, H, S, D]."""
    return emit("concatenate", past, x if layout == "BHSD" else transpose(x, (0, 2, 1, 3)), axis=2)


def fitting(mask: Tensor, query: Tensor, layout: str, keys: Size) -> Tensor:
    """A mask that broadcasts to [B, H, S, keys]; the program checks this unless it is proved."""
    scores = [query.shape[layout.index(axis)] for axis in "BHS"] + [keys]
    return assume(mask, [d if d == 1 or not may_equal(d, s) else s for d, s in zip(mask.shape, scores[4 - mask.rank :], strict=True)])


@converter(since=23)
def Attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
    *,
    is_causal: bool = False,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    if not 0 <= softcap < inf or not isfinite(scale or 0.0):
        raise OnnxError(f"expected a finite softcap of 0 or more and a finite scale, found {softcap} and {scale}")
    if current().wants(3) or nonpad_kv_seqlen is not None or softmax_precision == TensorProto.DOUBLE:
        return NotImplemented
    if left_window_size >= 0:
        return NotImplemented
    if len({q.dtype, k.dtype, v.dtype}) > 1 or (past_key is None) != (past_value is None):
        return NotImplemented
    (query, query_layout), (key, key_layout), (value, value_layout) = (
        _heads(x, count, what) for x, count, what in ((q, q_num_heads, "Q"), (k, kv_num_heads, "K"), (v, kv_num_heads, "V"))
    )
    past: Size = 0
    if past_key is not None and past_value is not None:
        if past_key.rank != 4 or past_value.rank != 4:
            raise OnnxError(f"inputs past_key and past_value: expected 4 dimensions, found {past_key.type} and {past_value.type}")
        past = past_key.shape[2]
        key, value = with_past(key, key_layout, past_key), with_past(value, value_layout, past_value)
        key_layout = value_layout = "BHSD"
    keys = key.shape[key_layout.index("S")]
    if attn_mask is not None and (attn_mask.rank == 0 or not may_equal(attn_mask.shape[-1], keys)):
        return NotImplemented
    if attn_mask is not None:
        attn_mask = fitting(attn_mask, query, query_layout, keys)
    depth = query.shape[3]
    if not isinstance(depth, int):
        return NotImplemented
    found = emit(
        "nn.attention",
        query,
        key,
        value,
        *([attn_mask] if attn_mask is not None else []),
        scale=max(depth, 1) ** -0.5 if scale is None else scale,
        softcap=softcap,
        is_causal=is_causal or right_window_size >= 0,
        causal_offset=past + (0 if is_causal else max(0, right_window_size)),
        empty_to_zero=attn_mask is not None,
        query_layout=query_layout,
        key_layout=key_layout,
        value_layout=value_layout,
        out_layout=query_layout,
    )
    if q.rank == 3:
        found = reshape(found, (*found.shape[:2], found.shape[2] * found.shape[3]))
    if not (current().wants(1) or current().wants(2)):
        return found
    present = [x if layout == "BHSD" else transpose(x, (0, 2, 1, 3)) for x, layout in ((key, key_layout), (value, value_layout))]
    return found, *present
