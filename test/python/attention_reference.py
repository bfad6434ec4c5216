"""nn.attention in numpy, and programs of several of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from support import program

from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule, build


@dataclass(frozen=True)
class Case:
    """Shapes (B, Hq, Hk, Sq, Sk, D, Dv), the shape of a mask and its dtype, attributes, and the order of axes of every tensor."""

    shape: tuple[int, int, int, int, int, int, int]
    mask: tuple[int, ...] | None = None
    mask_dtype: str = ""
    layout: str = "BHSD"
    dtype: str = "float32"
    attributes: dict[str, Any] = field(default_factory=dict)

    def arrays(self) -> list[np.ndarray]:
        """Query, key, value and mask in the layout; scores are of the size of those of trained networks."""
        batch, heads, groups, rows, keys, depth, width = self.shape
        rng = np.random.default_rng([*self.shape])
        shapes = [(batch, heads, rows, depth), (batch, groups, keys, depth), (batch, groups, keys, width)]
        found = [rng.standard_normal(s).astype(np.float32) for s in shapes]
        found[0] *= 2
        dtype = np.dtype(np.float32)
        if self.dtype != "float32":
            from relayc.dialects.relay.types import numpy_dtype

            dtype = numpy_dtype(self.dtype)
        found = [np.ascontiguousarray(a.transpose(["BHSD".index(axis) for axis in self.layout])).astype(dtype) for a in found]
        if self.mask is not None:
            found.append(rng.random(self.mask) > 0.4 if self.mask_dtype == "bool" else rng.standard_normal(self.mask).astype(dtype))
        return found

    def build(self, *values: ir.Value) -> ir.Value:
        layouts = {f"{name}_layout": self.layout for name in ("query", "key", "value", "out")}
        return build("nn.attention", *values, **{"scale": self.shape[5] ** -0.5, **layouts, **self.attributes})

    def expected(self) -> np.ndarray:
        order = [self.layout.index(axis) for axis in "BHSD"]
        query, key, value, *mask = (a.astype(np.float64) if a.dtype != bool else a for a in self.arrays())
        found = attention(*(a.transpose(order) for a in (query, key, value)), *mask, **{"scale": self.shape[5] ** -0.5, **self.attributes})
        return found.transpose(["BHSD".index(axis) for axis in self.layout])


def attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    scale: float,
    softcap: float = 0.0,
    mask_value: float = -np.inf,
    is_causal: bool = False,
    causal_offset: int = 0,
    nan_to_zero: bool = False,
) -> np.ndarray:
    """nn.attention of tensors [B, H, S, D]."""
    group = query.shape[1] // key.shape[1]
    scores = _scores(query, key, mask, scale, softcap, mask_value, is_causal, causal_offset)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
    if nan_to_zero:
        weights = np.where(np.isnan(weights), 0, weights)
    return weights @ np.repeat(value, group, 1)


def _scores(
    query: np.ndarray,
    key: np.ndarray,
    mask: np.ndarray | None,
    scale: float,
    softcap: float = 0.0,
    mask_value: float = -np.inf,
    is_causal: bool = False,
    causal_offset: int = 0,
) -> np.ndarray:
    scores = scale * query @ np.repeat(key, query.shape[1] // key.shape[1], 1).swapaxes(-1, -2)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if mask is not None:
        scores = np.where(mask, scores, mask_value) if mask.dtype == bool else scores + mask
    if is_causal:
        last = np.arange(scores.shape[2])[:, None] + causal_offset
        scores = np.where(np.arange(scores.shape[3]) <= last, scores, -np.inf)
    return scores


def derivatives(case: Case, grad: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of the attention of a case in the layout BHSD: log-sum-exp, result, and the derivatives of query, key and value, in float64.

    Queries that see no key have a result of zeros.
    """
    query, key, value, *mask = (a.astype(np.float64) if a.dtype != bool else a for a in case.arrays())
    scale, group = case.shape[5] ** -0.5, query.shape[1] // key.shape[1]
    scores = _scores(query, key, mask[0] if mask else None, scale, **{k: v for k, v in case.attributes.items() if k != "empty_to_zero"})
    largest = scores.max(-1, keepdims=True, initial=np.finfo(np.float64).min)
    with np.errstate(divide="ignore"):
        lse = np.log(np.exp(scores - largest).sum(-1)) + largest[..., 0]
    weights = np.exp(scores - np.where(lse == -np.inf, np.inf, lse)[..., None])
    keys, values = np.repeat(key, group, 1), np.repeat(value, group, 1)
    result = weights @ values
    of_scores = scale * weights * (grad @ values.swapaxes(-1, -2) - (grad * result).sum(-1, keepdims=True))

    def of_groups(x: np.ndarray) -> np.ndarray:
        return x.reshape(x.shape[0], key.shape[1], group, *x.shape[2:]).sum(2)

    d_key, d_value = of_groups(of_scores.swapaxes(-1, -2) @ query), of_groups(weights.swapaxes(-1, -2) @ grad)
    return lse, result, of_scores @ keys, d_key, d_value


def attentions(cases: Sequence[Case]) -> tuple[IRModule, list[np.ndarray]]:
    """A program that gives the attention of each case, and its inputs."""
    arrays = [case.arrays() for case in cases]

    def body(*values: ir.Value) -> list[ir.Value]:
        rest = iter(values)
        return [case.build(*(next(rest) for _ in own)) for case, own in zip(cases, arrays, strict=True)]

    flat = [a for own in arrays for a in own]
    return program(body, flat), flat


def growing_cache(heads: int, groups: int, dtype: str) -> IRModule:
    """Attention of m queries, which come last of n keys: query i sees the keys up to n - m + i.

    Heads have 16 elements; `dtype` is MLIR's.
    """
    query, key = f'tensor<1x{heads}x?x16x{dtype}, ["m"]>', f'tensor<1x{groups}x?x16x{dtype}, ["n"]>'
    attributes = 'scale = 0.25 : f64, is_causal = true, causal_offset = "n - m", empty_to_zero = true'
    return IRModule.parse(f"""module {{
  func.func @main(%q: {query}, %k: {key}, %v: {key}) -> {query} {{
    %0 = "relay.nn_attention"(%q, %k, %v) {{{attributes}}} : ({query}, {key}, {key}) -> {query}
    return %0 : {query}
  }}
}}""")
