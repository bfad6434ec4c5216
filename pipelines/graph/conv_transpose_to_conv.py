"""ConvTransposeToConv: transposed convolutions as plain ones, for which there are fast schedules.

Along an axis with stride s, element y of the uncropped result takes the kernel taps k = t * s + r with r = y mod s, from the data element
y // s - t. So the s phases r are plain convolutions of stride 1 with ceil(K / s) taps each, computed as one convolution with s times the
channels in each axis (kernels padded with zeros to a multiple of s, taps reversed) whose channels are then interleaved (pixel shuffle) and
cropped. Weights are folded, so it is done for constant weights only.
"""

import math

import numpy as np

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.graph.reshapes import reshape_to
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules

RULES = Rules("ConvTransposeToConv")


def phase_weights(weight: np.ndarray, groups: int, strides: tuple[int, ...]) -> np.ndarray:
    """Weights [I, O / groups, K...] of a transposed convolution as those [O * prod(strides), I / groups, taps...] of the plain one.

    Its channels are ordered (group, output channel, phase of each axis).
    """
    channels, per_group, *kernel = weight.shape
    taps = [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    padding = [(0, t * s - k) for t, s, k in zip(taps, strides, kernel, strict=True)]
    weight = np.pad(weight, [(0, 0), (0, 0), *padding])
    split = [n for t, s in zip(taps, strides, strict=True) for n in (t, s)]
    weight = weight.reshape(groups, channels // groups, per_group, *split)
    rank = len(kernel)
    tap_axes, phase_axes = tuple(3 + 2 * i for i in range(rank)), tuple(4 + 2 * i for i in range(rank))
    weight = np.flip(weight, tap_axes).transpose(0, 2, *phase_axes, 1, *tap_axes)
    return np.ascontiguousarray(weight).reshape(groups * per_group * int(np.prod(strides)), channels // groups, *taps)


@RULES.on("nn_conv1d_transpose", "nn_conv2d_transpose", "nn_conv3d_transpose")
def transposed_convolution(op: Op, rw: Rewriter) -> Found:
    """conv_transpose -> conv, pixel shuffle, crop."""
    weight, data, out = rw.array(op.weight), TensorType.of(op.data), TensorType.of(op.operation.results[0])
    rank = op.spatial_rank
    plain = op.data_layout[:2] == "NC" and op.kernel_layout[:2] == "IO" and op.out_layout in ("", op.data_layout)
    if weight is None or not plain or any(d != 1 for d in op.dilation) or out.dtype != data.dtype or not (data.is_known and out.is_known):
        return None
    strides = tuple(op.strides)
    kernel = weight.shape[2:]
    taps = [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    before = [low for low, _ in op.geometry().pads]
    sizes = [n + t - 1 for n, t in zip(data.sizes[2:], taps, strict=True)]
    missing = [low + n - size * s for low, n, size, s in zip(before, out.sizes[2:], sizes, strides, strict=True)]
    if not all(isinstance(m, int) for m in missing):
        return None
    phases_of = phase_weights(weight, op.groups, strides)
    phases = rw.mod.constant(phases_of, "phases")
    padding = [t - 1 for t in taps]
    wide = build(f"nn.conv{rank}d", op.data, phases, padding=(*padding, *padding), groups=op.groups)
    batch, channels = data.sizes[0], phases_of.shape[0] // math.prod(strides)
    split = build("reshape", wide, newshape=(batch, channels, *strides, *sizes))
    order = [n for i in range(rank) for n in (2 + rank + i, 2 + i)]
    shuffled = build("transpose", split, axes=(0, 1, *order)) if max(strides) > 1 else split
    shuffled = reshape_to(shuffled, (batch, channels, *[n * s for n, s in zip(sizes, strides, strict=True)]))
    if any(m > 0 for m in missing):  # output_padding may ask for more than the phases give: these elements are zero
        pad_width = (0, 0, 0, 0, *[n for m in missing for n in (0, max(m, 0))])
        shuffled = build("nn.pad", shuffled, rw.mod.constant(np.zeros((), weight.dtype)), pad_width=pad_width)
    if TensorType.of(shuffled).shape == out.shape:
        return shuffled
    axes = tuple(range(2, 2 + rank))
    end = tuple(low + n for low, n in zip(before, out.sizes[2:], strict=True))
    return build("strided_slice", shuffled, begin=tuple(before), end=end, strides=(1,) * rank, axes=axes)


@module_pass(opt_level=2, name="ConvTransposeToConv")
def conv_transpose_to_conv(mod: IRModule, ctx: PassContext) -> IRModule:
    """Transposed convolutions with constant weights become plain ones and a pixel shuffle."""
    RULES.apply(mod)
    return mod
