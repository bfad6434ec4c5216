"""Attention of ONNX Runtime: what its operators have in common. Sequences are [B, S, H, D] inside, caches [B, H, S, D]."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, emit, may_equal
from relayc.frontend.onnx.attention import fitting, with_past
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions
from relayc.frontend.steps import add, cast, in_parts, last_part, multiply, neighbours, reshape, strided_slice, subtract, transpose
from relayc.symbolic import Size

MASKED = -10000.0
"""Default addend to the score of a masked key."""


def parts(x: Tensor, widths: Sequence[Size]) -> list[Tensor]:
    """x cut along its last axis."""
    return [last_part(x, begin, end) for begin, end in pairwise(accumulate(widths, initial=0))]


def with_heads(x: Tensor, heads: int, what: str) -> Tensor:
    """[B, S, H * D] as [B, S, H, D]. Raises OnnxError."""
    if x.rank != 3 or heads < 1 or not may_equal(x.shape[2] % heads, 0):
        raise OnnxError(f"input {what}: expected [batch, sequence, a multiple of {heads} heads], found {list(x.shape)}")
    x = in_parts(x, 2, heads)
    return reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))


def without_heads(x: Tensor) -> Tensor:
    """[B, S, H, D] as [B, S, H * D]."""
    return reshape(x, (*x.shape[:2], x.shape[2] * x.shape[3]))


def swapped(x: Tensor) -> Tensor:
    """[B, S, H, D] as [B, H, S, D], and back."""
    return transpose(x, (0, 2, 1, 3))


@dataclass
class Keys:
    """Keys and values, both in the order of axes `layout`."""

    key: Tensor
    value: Tensor
    layout: str = "BSHD"

    @property
    def count(self) -> Size:
        """How many there are."""
        return self.key.shape[self.layout.index("S")]

    def after(self, key: Tensor | None, value: Tensor | None) -> "Keys":
        """The keys and values appended to a cache [B, H, S, D], if there is one."""
        if key is None or value is None:
            return self
        return Keys(with_past(self.key, self.layout, key), with_past(self.value, self.layout, value), "BHSD")

    def cached(self) -> "Keys":
        """These in the order of a cache."""
        return self if self.layout == "BHSD" else Keys(swapped(self.key), swapped(self.value), "BHSD")


def attend(
    query: Tensor,
    keys: Keys,
    scores: Tensor | None,
    scale: float | None,
    causal_offset: Size | None = None,
    softcap: float = 0.0,
) -> Tensor:
    """Attention of query [B, S, H, D]: [B, S, H, Dv].

    Args:
      scores: what is added to the scores, of a shape that broadcasts to [B, H, S, keys].
      scale: of the scores; 1 / sqrt(D) where it is None or 0.
      causal_offset: query i sees keys up to i + causal_offset; None: all.
    """
    depth = query.shape[3]
    if not isinstance(depth, int) or depth == 0:
        raise OnnxError(f"input query: expected heads of a known size above 0, found {list(query.shape)}")
    found: Tensor = emit(
        "nn.attention",
        query,
        keys.key,
        keys.value,
        *([] if scores is None else [fitting(scores, query, "BSHD", keys.count)]),
        scale=scale or depth**-0.5,
        softcap=softcap,
        is_causal=causal_offset is not None,
        causal_offset=causal_offset or 0,
        query_layout="BSHD",
        key_layout=keys.layout,
        value_layout=keys.layout,
        out_layout="BSHD",
    )
    return found


def mask_scores(mask: Tensor | None, batch: Size, rows: Size, keys: Size, filter_value: float) -> Tensor | None:
    """What a mask adds to the scores: 0 for a key that counts, `filter_value` for another, as float32[B or 1, 1, S or 1, keys].

    A mask of integers or bools is one of these: [B], how many keys count; [2 * B], of each the end, then the begin of those that count;
    [3 * B + 2], the same numbers as [B], then more that say nothing new; [B, keys], [B, S, keys] or [B, 1, M, M] with M at least keys, 0
    for a key that does not count.

    Raises OnnxError for another shape.
    """
    if mask is None:
        return None
    counts = emit("not_equal", cast(mask, "int32"), constant(np.int32(0))) if mask.rank > 1 else _in_range(mask, batch, keys)
    if mask.rank <= 2:
        counts = reshape(assume(counts, (counts.shape[0], keys)), (counts.shape[0], 1, 1, keys))
    elif mask.rank == 3:
        counts = reshape(assume(counts, (counts.shape[0], counts.shape[1], keys)), (counts.shape[0], 1, counts.shape[1], keys))
    elif mask.rank == 4:
        counts = strided_slice(counts, (keys - rows, 0), (keys, keys), (1, 1), (2, 3))
    else:
        raise OnnxError(f"input mask: expected 1 to 4 dimensions, found {list(mask.shape)}")
    return emit("where", counts, constant(np.float32(0)), constant(np.float32(filter_value)))


def _in_range(mask: Tensor, batch: Size, keys: Size) -> Tensor:
    """bool[B, keys]: whether a key is one of those that a mask of numbers counts."""
    places = reshape(positions(keys, "int32"), (1, keys))
    numbers = cast(mask, "int32")
    if numbers.shape[0] not in (batch, 2 * batch, 3 * batch + 2):
        expected = f"one number for each of {batch} entries, two, or three and two more"
        raise OnnxError(f"input mask: expected {expected}, found {list(mask.shape)}")
    ends = reshape(strided_slice(numbers, (0,), (batch,), (1,), (0,)), (batch, 1))
    within: Tensor = emit("less", places, ends)
    if numbers.shape[0] != 2 * batch:
        return within
    begins = reshape(strided_slice(numbers, (batch,), (2 * batch,), (1,), (0,)), (batch, 1))
    return emit("logical_and", within, emit("greater_equal", places, begins))


def total_scores(*given: Tensor | None) -> Tensor | None:
    """The sum of the addends of scores; None if there are none."""
    found: Tensor | None = None
    for one in given:
        if one is not None:
            found = one if found is None else add(cast(found, "float32"), cast(one, "float32"))
    return found


# ---- rotary embedding ---------------------------------------------------------------------------------------------------------------


def rotated(x: Tensor, places: Tensor, cosines: Tensor, sines: Tensor, interleaved: bool) -> Tensor:
    """x [B, S, H, D] turned by the angles of its positions.

    Args:
      places: int64[B or 1, S], rows of the tables.
      cosines, sines: [positions, R / 2]; the first R elements of a head are turned, pairs of which are neighbours where `interleaved`, else
        an element of the first and one of the second half.
    """
    half = cosines.shape[1]
    if not isinstance(half, int) or 2 * half > x.shape[3]:
        raise OnnxError(f"input cos_cache: expected at most {x.shape[3] // 2} columns for {list(x.shape)}, found {list(cosines.shape)}")
    cosine, sine = (_rows(table, places, x.dtype) for table in (cosines, sines))
    turned, rest = last_part(x, 0, 2 * half), last_part(x, 2 * half, x.shape[3])
    if interleaved:
        first, second = neighbours(turned)
    else:
        first, second = last_part(turned, 0, half), last_part(turned, half, 2 * half)
    left = subtract(multiply(first, cosine), multiply(second, sine))
    right = add(multiply(first, sine), multiply(second, cosine))
    if interleaved:
        columns = [reshape(t, (*x.shape[:3], half, 1)) for t in (left, right)]
        found = reshape(emit("concatenate", *columns, axis=4), turned.shape)
    else:
        found = emit("concatenate", left, right, axis=3)
    return found if rest.shape[3] == 0 else emit("concatenate", found, rest, axis=3)


def _rows(table: Tensor, places: Tensor, dtype: str) -> Tensor:
    """The rows of a table at places [B or 1, S], for all heads: [B or 1, S, 1, columns]."""
    rows = emit("take", table, places, axis=0, mode="clip")
    return cast(reshape(rows, (*places.shape, 1, table.shape[1])), dtype)


def places_from(first: Tensor | None, rows: Size) -> Tensor:
    """int64[B or 1, S]: positions that begin at `first` [B, 1], or at 0."""
    counted = reshape(positions(rows), (1, rows))
    return counted if first is None else add(first, counted)
