"""Operators whose attribute `layout` names the layout of their input and output images."""

from typing import Any

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.layout import NCHW


class ImageOp(Op):
    """Base of the operators with an attribute `layout`."""

    def can_change_layout(self) -> bool:
        return bool(self.layout == NCHW)

    def in_layout(self, target: str) -> dict[str, Any]:
        return {**self.attrs(), "layout": target}
