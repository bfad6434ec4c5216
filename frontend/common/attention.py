"""The derivatives of attention by its log-sum-exp."""

from typing import Any

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.steps import cast, multiply


def attention_derivatives(
    query: Tensor, key: Tensor, value: Tensor, grad: Tensor, out: Tensor, lse: Tensor, *mask: Tensor, **attributes: Any
) -> list[Tensor]:
    """The derivatives with respect to query, key and value, of the operands and dtypes of nn.attention_grad.

    Args:
      grad, out: [B, H, S, Dv], the derivative with respect to the result of the attention, and the result.
      lse: [B, H, S], the second result of nn.attention_lse.
      attributes: of nn.attention_grad.
    """
    delta = emit("sum", multiply(cast(grad, lse.dtype), cast(out, lse.dtype)), axis=(3,))
    return list(emit("nn.attention_grad", query, key, value, grad, lse, delta, *mask, **attributes))
