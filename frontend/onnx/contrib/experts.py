"""Mixture of experts."""

from math import prod

import numpy as np

from relayc.frontend.common.activations import gelu, swish
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.contrib.domain import check_ranks, microsoft
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions
from relayc.frontend.steps import add, cast, last_part, multiply, neighbours, reshape


@microsoft()
def MoE(
    x: Tensor,
    router_probs: Tensor,
    fc1: Tensor,
    fc1_bias: Tensor | None,
    fc2: Tensor,
    fc2_bias: Tensor | None = None,
    fc3: Tensor | None = None,
    fc3_bias: Tensor | None = None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    k: int = 1,
    normalize_routing_weights: bool = False,
    swiglu_fusion: int = 0,
    swiglu_limit: float | None = None,
    swiglu_limit_after_activation: bool = False,
    use_sparse_mixer: bool = False,
) -> Tensor:
    """x [tokens, hidden] or [batch, tokens, hidden]: the results of the k experts of each token by its router, weighted by softmax.

    The weights of an expert are fc1 [inner, hidden] (twice as many rows where swiglu is fused into it), fc3 likewise, fc2 [hidden, inner].
    Every expert computes every token: right for any router, and as fast as that for few experts or many tokens.
    """
    for name, given in (("use_sparse_mixer", use_sparse_mixer), ("swiglu_limit_after_activation", swiglu_limit_after_activation)):
        if given:
            raise OnnxError(f"attribute {name}: expected 0, found 1")
    check_ranks((2, 3), input=x)
    check_ranks((3,), fc1_experts_weights=fc1, fc2_experts_weights=fc2, fc3_experts_weights=fc3)
    check_ranks((2,), router_probs=router_probs, fc1_experts_bias=fc1_bias, fc2_experts_bias=fc2_bias, fc3_experts_bias=fc3_bias)
    hidden, experts = x.shape[-1], fc1.shape[0]
    rows = reshape(x, (prod(x.shape[:-1]), hidden))
    count = rows.shape[0]
    weights = _routing(reshape(router_probs, (count, experts)), k, normalize_routing_weights)
    every = reshape(rows, (1, count, hidden))
    inner = _of_experts(every, fc1, fc1_bias)
    if activation_type == "swiglu":
        inner = _swiglu(
            inner,
            swiglu_fusion,
            None if fc3 is None else _of_experts(every, fc3, fc3_bias),
            activation_alpha,
            activation_beta,
            swiglu_limit,
        )
    else:
        inner = _activated(inner, activation_type)
        if fc3 is not None:
            inner = multiply(inner, _of_experts(every, fc3, fc3_bias))
    found = _of_experts(inner, fc2, fc2_bias)
    weighted = multiply(found, reshape(emit("transpose", cast(weights, found.dtype), axes=(1, 0)), (experts, count, 1)))
    return reshape(emit("sum", weighted, axis=(0,)), x.shape)


def _routing(logits: Tensor, k: int, normalised: bool) -> Tensor:
    """float32[tokens, experts]: the weight of each expert for each token, 0 of those that are not among its k."""
    experts = logits.shape[1]
    if not isinstance(experts, int) or not 1 <= k <= experts:
        raise OnnxError(f"attribute k: expected 1 to {experts}, the number of experts, found {k}")
    chances = emit("nn.softmax", cast(logits, "float32"), axis=1)
    values, chosen = emit("topk", chances, k=k, axis=1, ret_type="both", is_ascend=False, dtype="int64")
    if normalised:
        values = emit("divide", values, emit("sum", values, axis=(1,), keepdims=True))
    is_chosen = emit("equal", reshape(chosen, (*chosen.shape, 1)), reshape(positions(experts), (1, 1, experts)))
    share = emit("where", is_chosen, reshape(values, (*values.shape, 1)), constant(np.float32(0)))
    return emit("sum", share, axis=(1,))


def _of_experts(x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    """x [1 or experts, tokens, in] by the weights [experts, out, in] of each: [experts, tokens, out]."""
    found = emit("nn.batch_matmul", x, weights, transpose_a=False, transpose_b=True)
    return found if bias is None else add(found, reshape(bias, (bias.shape[0], 1, bias.shape[1])))


def _activated(x: Tensor, name: str) -> Tensor:
    if name == "identity":
        return x
    if name == "relu":
        return emit("nn.relu", x)
    if name == "gelu":
        return gelu(x, approximate="tanh")
    if name == "silu":
        return swish(x)
    raise OnnxError(f"attribute activation_type: expected relu, gelu, silu, swiglu or identity, found {name!r}")


def _swiglu(x: Tensor, fusion: int, linear: Tensor | None, alpha: float, beta: float, limit: float | None) -> Tensor:
    """gate * sigmoid(alpha * gate) * (linear + beta): they alternate in x (fusion 1), are its halves (2), or x and `linear` (0)."""
    width = x.shape[-1]
    if linear is not None:
        gate = x
    elif fusion == 1:
        gate, linear = neighbours(x)
    elif fusion == 2:
        gate, linear = last_part(x, 0, width // 2), last_part(x, width // 2, width)
    else:
        raise OnnxError("attribute swiglu_fusion: expected 1 or 2 where there is no fc3, found 0")
    if limit is not None:
        gate = emit("clip", gate, a_min=-float("inf"), a_max=limit)
        linear = emit("clip", linear, a_min=-limit, a_max=limit)
    return multiply(multiply(gate, emit("sigmoid", multiply(gate, alpha))), add(linear, beta))
