"""Types of operands that programs leave out, as the operator and its other operands say them: weights, biases, parameters of norms."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relayc.dialects.relay.layout import layout
from relayc.frontend.relay.ast import types as t

Known = Sequence["t.TensorType | None"]
"""The types of the operands, None for an unknown type."""
_Rule = Callable[[Known, Mapping[str, Any]], "Sequence[Sequence[Any]] | None"]


def _size(layout: str, shape: Sequence[Any], axis: str) -> Any:
    return shape[layout.index(axis)]


def _conv(known: Known, attrs: Mapping[str, Any]) -> Sequence[Sequence[Any]] | None:
    """The shape of the filters, in the order of their layout."""
    data = known[0]
    if data is None or attrs["channels"] is None or attrs["kernel_size"] is None:
        return None
    target = layout(attrs["kernel_layout"])
    kernel = target.letters
    groups, inputs = attrs["groups"], layout(attrs["data_layout"]).logical(data.shape)["C"]  # type: ignore[arg-type] # Any is a size, too
    # The filters of a transposed convolution have the input channels first, and its results' channels by group.
    is_transposed = "O" in kernel.partition("I")[2]
    sizes = dict(zip([axis for axis in kernel if axis not in "IO"], attrs["kernel_size"], strict=True))
    by_group = inputs if isinstance(inputs, t.Any) or groups == 1 else inputs // groups
    channels = attrs["channels"]
    sizes |= {"I": inputs, "O": channels // groups} if is_transposed and "output_padding" in attrs else {"I": by_group, "O": channels}
    return [target.shape(sizes)]


def _deformable_conv(known: Known, attrs: Mapping[str, Any]) -> Sequence[Sequence[Any]] | None:
    """The shape of the offsets, two for each element of a window, and that of the filters."""
    weight, data, order = _conv(known, attrs), known[0], attrs["data_layout"]
    if weight is None or data is None:
        return None
    pads = (*attrs["padding"],) * (4 // len(attrs["padding"]))
    kernel, out = attrs["kernel_size"], {}
    for i, axis in enumerate("HW"):
        span = attrs["dilation"][i] * (kernel[i] - 1) + 1
        out[axis] = (_size(order, data.shape, axis) + pads[i] + pads[i + 2] - span) // attrs["strides"][i] + 1
    out |= {"N": _size(order, data.shape, "N"), "C": 2 * kernel[0] * kernel[1] * attrs["deformable_groups"]}
    return [[out[axis] for axis in order], *weight]


def _dense(known: Known, attrs: Mapping[str, Any]) -> Sequence[Sequence[Any]] | None:
    data = known[0]
    return None if data is None or attrs["units"] is None else [[attrs["units"], data.shape[-1]]]


def _matmul(known: Known, attrs: Mapping[str, Any]) -> Sequence[Sequence[Any]] | None:
    data = known[0]
    if data is None or attrs["units"] is None:
        return None
    shape = [data.shape[-2 if attrs["transpose_a"] else -1], attrs["units"]]
    return [shape[::-1] if attrs["transpose_b"] else shape]


def _along_axis(known: Known, attrs: Mapping[str, Any]) -> Sequence[Sequence[Any]] | None:
    """All other operands have a value for each element of an axis of the first."""
    data = known[0]
    return None if data is None else [[data.shape[attrs["axis"]]]] * (len(known) - 1)


_RULES: dict[str, _Rule] = {
    **{f"nn.conv{n}d{kind}": _conv for n in (1, 2, 3) for kind in ("", "_transpose")},
    "nn.deformable_conv2d": _deformable_conv,
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    **dict.fromkeys(("nn.bias_add", "nn.prelu", "nn.batch_norm", "nn.layer_norm", "nn.instance_norm", "nn.group_norm"), _along_axis),
}


def operand_types(name: str, known: Known, attrs: Mapping[str, Any]) -> list[t.TensorType] | None:
    """The types of the operands after the first; None if the operator does not determine them."""
    rule = _RULES.get(name)
    shapes = None if rule is None else rule(known, attrs)
    return None if shapes is None or known[0] is None else [t.TensorType(shape, known[0].dtype) for shape in shapes]
