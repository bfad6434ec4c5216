"""ConvTransposeToConv: transposed convolutions as plain ones, for which there are fast schedules.

Along an axis with stride s, element y of the uncropped result takes the kernel taps k = t * s + r with r = y mod s, from the data element
y // s - t. So the s phases r are plain convolutions of stride 1 with ceil(K / s) taps each, computed as one convolution with s times the
channels in each axis (kernels padded with zeros to a multiple of s, taps reversed) whose channels are then interleaved (pixel shuffle) and
cropped. A kernel shorter than s has taps in K phases only, and zeros take the place of the other phases. FoldConstant computes the weights
of the phases where the weights are constant. The program computes them where the weights are not: this costs less than it gains if there
are strides.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.conditions import message_of
from relayc.dialects.relay.conv import ConvGeometry
from relayc.dialects.relay.names import build
from relayc.dialects.relay.scopes import conditions_of
from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.pipelines.graph.reshapes import reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("ConvTransposeToConv")

CONV_TRANSPOSES = ("nn_conv1d_transpose", "nn_conv2d_transpose", "nn_conv3d_transpose")
"""The names of the transposed convolutions in the IR."""


def _padded(x: ir.Value, widths: Sequence[int], rw: Rewriter) -> ir.Value:
    """The value with zeros after its elements, as many along each axis as `widths` says."""
    if not any(widths):
        return x
    zero = rw.mod.constant(np.zeros((), DTYPES[TensorType.of(x).dtype]))
    return build("nn.pad", x, zero, pad_width=tuple(n for width in widths for n in (0, width)))


def phase_weights(weight: ir.Value, groups: int, taps: list[int], phases: list[int], rw: Rewriter) -> ir.Value:
    """Weights [I, O / groups, K...] of a transposed convolution as those [O * prod(phases), I / groups, taps...] of the plain one.

    Its channels are ordered (group, output channel, phase of each axis).
    """
    channels, per_group, *kernel = (int(n) for n in TensorType.of(weight).sizes)
    rank = len(kernel)
    weight = _padded(weight, [0, 0, *(t * p - k for t, p, k in zip(taps, phases, kernel, strict=True))], rw)
    split = [n for t, p in zip(taps, phases, strict=True) for n in (t, p)]
    weight = reshape_to(weight, (groups, channels // groups, per_group, *split))
    tap_axes, phase_axes = tuple(3 + 2 * i for i in range(rank)), tuple(4 + 2 * i for i in range(rank))
    for axis, count in zip(tap_axes, taps, strict=True):
        weight = build("reverse", weight, axis=axis) if count > 1 else weight
    weight = build("transpose", weight, axes=(0, 2, *phase_axes, 1, *tap_axes))
    return reshape_to(weight, (groups * per_group * math.prod(phases), channels // groups, *taps))


def _convolution(op: Op, weights: ir.Value, **attrs: Any) -> ir.Value:
    return build(f"nn.conv{TensorType.of(weights).rank - 2}d", op.data, weights, **attrs)


def as_convolution(
    op: Op,
    weights: Callable[[list[int], list[int]], ir.Value],
    rw: Rewriter,
    bias: Callable[[list[int]], ir.Value | None] = lambda _: None,
    convolution: Callable[..., ir.Value] = _convolution,
) -> Found:
    """conv_transpose -> conv, pixel shuffle, crop; None for what has no plain form.

    Args:
      weights: of the plain convolution, for numbers of taps and of phases in each axis (see `phase_weights`).
      bias: a number for each channel of the plain convolution, for numbers of phases, or None.
      convolution: builds the plain convolution of `op`, its weights and attributes.
    """
    weight, data, out = TensorType.of(op.weight), TensorType.of(op.data), TensorType.of(op.operation.results[0])
    rank, strides = data.rank - 2, tuple(op.strides)
    plain = op.data_layout[:2] == "NC" and op.kernel_layout[:2] == "IO" and op.out_layout in ("", op.data_layout)
    if not plain or any(d != 1 for d in op.dilation) or not (data.is_known and out.is_known and weight.is_static):
        return None
    kernel = [int(n) for n in weight.sizes[2:]]
    taps = [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    phases = [min(k, s) for k, s in zip(kernel, strides, strict=True)]  # the phases that have taps
    before = [low for low, _ in ConvGeometry.of(op, rank).pads]
    sizes = [n + t - 1 for n, t in zip(data.sizes[2:], taps, strict=True)]
    missing = [low + n - size * s for low, n, size, s in zip(before, out.sizes[2:], sizes, strides, strict=True)]
    if not all(isinstance(m, int) for m in missing):
        return None
    added = bias(phases)
    if added is not None and (phases != list(strides) or max(missing) > 0):
        return None  # zeros that take the place of phases and of elements have no bias
    for condition in conditions_of(op):  # the plain convolution requires less
        build("check_sizes", found=condition.size, expected=0, predicate="ge", message=message_of(condition.size, condition.text))
    padding = [t - 1 for t in taps]
    made = weights(taps, phases)
    wide = convolution(op, made, padding=(*padding, *padding), groups=op.groups)
    if added is not None:
        wide = build("add", wide, added)
    batch, channels = data.sizes[0], int(TensorType.of(made).sizes[0]) // math.prod(phases)
    split = build("reshape", wide, newshape=(batch, channels, *phases, *sizes))
    order = [n for i in range(rank) for n in (2 + rank + i, 2 + i)]
    shuffled = build("transpose", split, axes=(0, 1, *order))
    shuffled = _padded(shuffled, [0, 0, *(n for s, p in zip(strides, phases, strict=True) for n in (0, s - p))], rw)
    shuffled = reshape_to(shuffled, (batch, channels, *[n * s for n, s in zip(sizes, strides, strict=True)]))
    # output_padding may ask for more than the phases give: these elements are zero
    shuffled = _padded(shuffled, [0, 0, *(max(m, 0) for m in missing)], rw)
    if TensorType.of(shuffled).shape == out.shape:
        return shuffled
    axes = tuple(range(2, 2 + rank))
    end = tuple(low + n for low, n in zip(before, out.sizes[2:], strict=True))
    return build("strided_slice", shuffled, begin=tuple(before), end=end, strides=(1,) * rank, axes=axes)


@RULES.on(*CONV_TRANSPOSES)
def transposed_convolution(op: Op, rw: Rewriter) -> Found:
    """conv_transpose -> conv, pixel shuffle, crop, where this is faster."""
    if TensorType.of(op.operation.results[0]).dtype != TensorType.of(op.data).dtype:
        return None
    if max(op.strides) == 1 and rw.array(op.weight) is None:
        return None  # the schedules of convolutions compute transposed convolutions of stride 1 too, without a copy of the weights
    return as_convolution(op, lambda taps, phases: phase_weights(op.weight, op.groups, taps, phases, rw), rw)


conv_transpose_to_conv = RULES.as_pass(
    2, "Transposed convolutions become plain ones and a pixel shuffle: those with strides, and those with constant weights."
)
