"""Types of operands that programs leave out, as the operator and its other operands say them: weights, biases, parameters of norms."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relayc.dialects.relay.layout import layout
from relayc.frontend.relay.ast import types as t

Known = Sequence["t.TensorType | None"]
"""The types of the operands, None for an unknown type."""
_Rule = Callable[[t.TensorType, Mapping[str, Any], int], "Sequence[Sequence[Any]] | None"]
"""(type of the first operand, attributes, number of operands) -> the shapes of the others; None if they are not determined."""


def _size(layout: str, shape: Sequence[Any], axis: str) -> Any:
    return shape[layout.index(axis)]


def _conv(data: t.TensorType, attrs: Mapping[str, Any], count: int) -> Sequence[Sequence[Any]] | None:
    """The shape of the filters, in the order of their layout."""
    if attrs["channels"] is None or attrs["kernel_size"] is None:
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


def _deformable_conv(data: t.TensorType, attrs: Mapping[str, Any], count: int) -> Sequence[Sequence[Any]] | None:
    """The shape of the offsets, two for each element of a window, and that of the filters."""
    weight, order = _conv(data, attrs, count), attrs["data_layout"]
    if weight is None:
        return None
    pads = (*attrs["padding"],) * (4 // len(attrs["padding"]))
    kernel, out = attrs["kernel_size"], {}
    for i, axis in enumerate("HW"):
        span = attrs["dilation"][i] * (kernel[i] - 1) + 1
        out[axis] = (_size(order, data.shape, axis) + pads[i] + pads[i + 2] - span) // attrs["strides"][i] + 1
    out |= {"N": _size(order, data.shape, "N"), "C": 2 * kernel[0] * kernel[1] * attrs["deformable_groups"]}
    return [[out[axis] for axis in order], *weight]


def _dense(data: t.TensorType, attrs: Mapping[str, Any], count: int) -> Sequence[Sequence[Any]] | None:
    return None if attrs["units"] is None else [[attrs["units"], data.shape[-1]]]


def _matmul(data: t.TensorType, attrs: Mapping[str, Any], count: int) -> Sequence[Sequence[Any]] | None:
    if attrs["units"] is None:
        return None
    shape = [data.shape[-2 if attrs["transpose_a"] else -1], attrs["units"]]
    return [shape[::-1] if attrs["transpose_b"] else shape]


def _along_axis(data: t.TensorType, attrs: Mapping[str, Any], count: int) -> Sequence[Sequence[Any]] | None:
    """All other operands have a value for each element of an axis of the first."""
    return [[data.shape[attrs["axis"]]]] * (count - 1)


_RULES: dict[str, _Rule] = {
    **{f"nn.conv{n}d{kind}": _conv for n in (1, 2, 3) for kind in ("", "_transpose")},
    "nn.deformable_conv2d": _deformable_conv,
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    **dict.fromkeys(("nn.bias_add", "nn.prelu", "nn.batch_norm", "nn.layer_norm", "nn.instance_norm", "nn.group_norm"), _along_axis),
}


def operand_types(name: str, known: Known, attrs: Mapping[str, Any]) -> list[t.TensorType] | None:
    """The types of the operands after the first; None if the operator does not determine them."""
    rule, data = _RULES.get(name), known[0]
    shapes = None if rule is None or data is None else rule(data, attrs, len(known))
    return None if shapes is None or data is None else [t.TensorType(shape, data.dtype) for shape in shapes]
