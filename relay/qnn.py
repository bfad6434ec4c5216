"""`relayc.relay.qnn`: operators on quantized tensors (`qnn.op.conv2d`, and `qnn.conv2d` as well), and the passes for them."""

from typing import Any

from relayc.frontend.relay.op import op as _all
from relayc.relay import qnn_transform as transform

__all__ = ["op", "transform"]

op = _all.qnn


def __getattr__(name: str) -> Any:
    return getattr(op, name)
