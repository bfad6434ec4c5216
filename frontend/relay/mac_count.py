"""How many multiplications with an addition (MACs) a program has in convolutions and products of matrices."""

from math import prod
from typing import Any

from relayc.dialects.relay.errors import check
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.op.table import RENAMED

_CONVOLUTIONS = frozenset(f"nn.conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose"))
_PRODUCTS = ("nn.dense", "nn.matmul", "nn.batch_matmul")


def get_total_mac_number(expr: e.Expr) -> int:
    """The MACs of an expression with types. Raises RelayError if a size is not known, and ValueError before inference."""
    return sum(_macs(node) for node in post_order(expr) if isinstance(node, e.Call) and isinstance(node.op, e.Op))


def _macs(call: e.Call) -> int:
    assert isinstance(call.op, e.Op)
    name, attrs = RENAMED.get(call.op.name, call.op.name), call.attrs or Attrs()
    if name not in _CONVOLUTIONS and name not in _PRODUCTS:
        return 0
    data, result = _shape(call.args[0]), prod(_shape(call))
    if name in _PRODUCTS:
        return result * data[-2 if attrs.get("transpose_a") else -1]
    layout = attrs["data_layout"]
    channels = prod(size for size, axis in zip(data, (a for a in layout if a.isalpha()), strict=True) if axis in "Cc")
    return result * prod(attrs["kernel_size"] or _shape(call.args[1])[2:]) * channels // attrs["groups"]


def _shape(expr: e.Expr) -> list[int]:
    type_: Any = expr.checked_type
    check(all(isinstance(size, int) for size in type_.shape), "get_total_mac_number", "sizes that are known", type_)
    return [int(size) for size in type_.shape]
