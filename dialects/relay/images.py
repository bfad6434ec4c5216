"""Images of any number of spatial axes, and operators whose attribute `layout` names the layout of their input and output images."""

from typing import Any

from relayc.dialects.relay.base import Op, check
from relayc.dialects.relay.layout import NCHW, Layout, layout
from relayc.dialects.relay.window import SPATIAL


def image_layout(text: str, n: int) -> Layout:
    """The layout of images with `n` spatial axes. Raises RelayError if a spatial axis is blocked."""
    parsed = layout(text, "NC" + SPATIAL[n])
    check(parsed.blocks.keys() <= {"C"}, "layout", "only the axis C blocked", text)
    return parsed


class ImageOp(Op):
    """Base of the operators with an attribute `layout`."""

    def can_change_layout(self) -> bool:
        return bool(self.layout == NCHW)

    def in_layout(self, target: str) -> dict[str, Any]:
        return {**self.attrs(), "layout": target}
