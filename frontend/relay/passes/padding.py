"""Padding and batches of blocks around convolutions, which become attributes of these, for operators that are composed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relayc.dialects.relay.window import padding_pairs
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.functor import post_order
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.op.functions import call
from relayc.frontend.relay.passes.operators import name_of, replaced

_Pairs = Sequence[tuple[int, int]]


def flatten_atrous_conv(mod: RelayModule) -> RelayModule:
    """batch_to_space_nd(conv2d(space_to_batch_nd(x))) of images in NHWC -> a convolution whose dilation is the size of the blocks."""
    if not any(node is e.Op("nn.batch_to_space_nd") for function in mod.functions.values() for node in post_order(function)):
        return mod

    def change(_: e.Call, new: e.Call) -> e.Expr | None:
        conv = _operand(new, ("nn.batch_to_space_nd",), ("nn.conv2d", "qnn.conv2d"))
        blocks = None if conv is None else _operand(conv, (conv.op.name,), ("nn.space_to_batch_nd",))  # type: ignore[attr-defined]
        if conv is None or blocks is None:
            return None
        outer, inner, attrs = _attrs(new), _attrs(blocks), _attrs(conv)
        size = tuple(outer["block_shape"])
        is_image = attrs["data_layout"] == "NHWC" and attrs["out_layout"] in ("", "NHWC")
        if not is_image or len(size) != 2 or tuple(inner["block_shape"]) != size or tuple(attrs["strides"]) != (1, 1):
            return None
        if inner["pad_value"] != _padded_with(conv):
            return None
        own = [(a * size[i], b * size[i]) for i, (a, b) in enumerate(padding_pairs(attrs["padding"], 2))]
        pads = _sum(inner["paddings"], own, [(-a, -b) for a, b in outer["crops"]])
        if min(n for pair in pads for n in pair) < 0:
            return None
        dilation = [n * d for n, d in zip(size, attrs["dilation"], strict=True)]
        return _with_data(conv, blocks.args[0], padding=_flat(pads), dilation=dilation)

    return replaced(mod, change)


def fold_padding_of_quantized(mod: RelayModule) -> RelayModule:
    """qnn.conv2d of a tensor padded with its zero point -> one with more padding."""

    def change(_: e.Call, new: e.Call) -> e.Expr | None:
        pad = _operand(new, ("qnn.conv2d",), ("nn.pad",))
        if pad is None or not isinstance(pad.args[1], e.Constant) or _attrs(pad)["pad_mode"] != "constant":
            return None
        layout, widths = _attrs(new)["data_layout"], np.reshape(_attrs(pad)["pad_width"], (-1, 2)).tolist()
        spatial = [layout.find(axis) for axis in "HW"]
        if len(layout) != len(widths) or any(widths[i] != [0, 0] for i in range(len(widths)) if i not in spatial):
            return None
        if pad.args[1].data.numpy().item() != _padded_with(new):
            return None
        pads = _sum(padding_pairs(_attrs(new)["padding"], 2), [widths[i] for i in spatial])
        return _with_data(new, pad.args[0], padding=_flat(pads))

    return replaced(mod, change)


def _operand(expr: e.Expr, names: tuple[str, ...], of: tuple[str, ...]) -> e.Call | None:
    """The first operand of a call of one of `names`, if it is a call of one of `of`."""
    if name_of(expr) not in names:
        return None
    assert isinstance(expr, e.Call)
    found = expr.args[0]
    return found if isinstance(found, e.Call) and name_of(found) in of else None


def _attrs(found: e.Call) -> Any:
    return found.attrs


def _padded_with(conv: e.Call) -> Any:
    """The padding value of a convolution, for a quantized one the zero point; None if it is unknown."""
    if name_of(conv) != "qnn.conv2d":
        return _attrs(conv)["pad_value"]
    zero = conv.args[2]
    return zero.data.numpy().item() if isinstance(zero, e.Constant) and zero.data.size == 1 else None


def _sum(*pads: Any) -> list[tuple[int, int]]:
    return [(sum(p[0] for p in pairs), sum(p[1] for p in pairs)) for pairs in zip(*pads, strict=True)]


def _flat(pads: _Pairs) -> list[int]:
    return [*(a for a, _ in pads), *(b for _, b in pads)]


def _with_data(conv: e.Call, data: e.Expr, **attrs: Any) -> e.Call:
    """A convolution of other data, with other attributes."""
    return call(str(name_of(conv)), [data, *conv.args[1:]], {**_attrs(conv), **attrs})
