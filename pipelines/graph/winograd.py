"""Winograd: 3x3 convolutions of stride 1 in blocked layout as Winograd's F(4x4, 3x3), where that is less work.

The multiplications shrink fourfold, but tiles are transformed before and after, weights grow fourfold, and results round differently
(relative error about 1e-6 instead of 1e-7): too much for bf16, whose products are cheap besides. `disabled_pass=["Winograd"]` turns it off.
The attribute OWN_FLOPS says how many operations the convolution is by its definition, which is what profiles and benchmarks count.

Batch, height and width may be symbolic. Whether it pays is decided by typical sizes then: over small maps it takes up to twice as long as
the convolution itself, of which there is little.
"""

from relayc.dialects.mlir import ir
from relayc.dialects.operation_set import OperationSet
from relayc.dialects.relay.attributes import size_attribute
from relayc.dialects.relay.conv import Conv2d
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.types import TensorType
from relayc.dialects.relay.winograd import OWN_FLOPS, POINTS, tiles, transform_weights
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.pipelines.passes import PassContext, module_pass
from relayc.symbolic import Size, guess

LEAST_CHANNELS = 32
"""Channels, in and out, below which the transforms weigh as much as the product."""
LEAST_TILES = 16
"""Tiles below which the transformed weights are read too rarely for what they cost to read."""
LEAST_GAIN = 1.5
"""Ratio of multiplications, direct to Winograd's, below which it does not pay: maps that fill their last tiles badly."""
GROWTH_SHARE, GROWTH_BYTES = 0.15, 64 << 20
"""How much larger all parameters together may become: a share of what they are, and bytes on top. Convolutions over the largest maps come
first, as they gain the most for each byte."""


def _tiles(op: Conv2d) -> int:
    """Tiles of a convolution that Winograd's algorithm does, and pays for; 0 for any other."""
    if op.data_layout != op.out_layout or op.kernel_layout != "OIHW" or op.groups != 1 or layout(op.data_layout).axes[-1] != "c":
        return 0
    data, weight, out = TensorType.of(op.data), TensorType.of(op.weight), TensorType.of(op.operation.results[0])
    plain = weight.shape[2:] == (3, 3) and set(op.strides) == {1} and set(op.dilation) == {1} and data.dtype == out.dtype == "float32"
    if not plain or not (data.is_known and out.is_known) or layout(op.data_layout).block("C") == 1:
        return 0
    channels = [t.sizes[1] * t.sizes[-1] for t in (data, out)]
    if not all(isinstance(c, int) and c >= LEAST_CHANNELS for c in channels):
        return 0
    height, width = (guess(size) for size in out.sizes[2:4])
    count = guess(tiles(height) * tiles(width))
    gain = height * width * 9 / (count * POINTS) if count else 0
    count *= guess(out.sizes[0])
    return count if count >= LEAST_TILES and gain >= LEAST_GAIN else 0


def _chosen(mod: IRModule) -> OperationSet:
    """The convolutions to transform: as many as parameters may grow for."""
    room = GROWTH_SHARE * sum(array.nbytes for array in mod.params.values()) + GROWTH_BYTES
    found = []
    for block in graph_blocks(mod.module.operation):
        for op in block.operations:
            if isinstance(op, Conv2d) and (count := _tiles(op)):
                taps = 9
                found.append((count, guess(TensorType.of(op.weight).num_bytes) * (POINTS - taps) // taps, op.operation))
    chosen = OperationSet()
    for _, growth, operation in sorted(found, key=lambda f: (-f[0], f[1])):
        if growth <= room:
            room -= growth
            chosen.add(operation)
    return chosen


def _transformed(op: Conv2d, rw: Rewriter) -> Found:
    """conv2d -> input transform, grouped 1x1 convolution, output transform."""
    array = rw.array(op.weight)
    if array is None:
        return None
    out = TensorType.of(op.operation.results[0])
    points = rw.mod.constant(transform_weights(array), "winograd")
    transformed = build("nn.winograd_input_transform", op.data, padding=op.padding, layout=op.data_layout)
    product = build("nn.conv2d", transformed, points, groups=POINTS, data_layout=op.data_layout, out_layout=op.data_layout)
    result = build("nn.winograd_output_transform", product, height=out.shape[2], width=out.shape[3], layout=op.data_layout)
    # What the three together stand for is booked to the product.
    own = 2 * out.num_elements * array.shape[1] * array.shape[2] * array.shape[3]
    parts: tuple[tuple[ir.Value, Size], ...] = ((transformed, 0), (product, own), (result, 0))
    for value, flops in parts:
        value.owner.attributes[OWN_FLOPS] = size_attribute(flops)
    return result


@module_pass(opt_level=3, name="Winograd")
def winograd(mod: IRModule, ctx: PassContext) -> IRModule:
    """3x3 convolutions in blocked layout by Winograd's F(4x4, 3x3), unless they are to be computed in bf16."""
    if ctx.get("relay.ToMixedPrecision.precision") == "f32":
        chosen, rules = _chosen(mod), Rules("Winograd")

        @rules.on("nn_conv2d")
        def convolution(op: Conv2d, rw: Rewriter) -> Found:
            return _transformed(op, rw) if op.operation in chosen else None

        rules.apply(mod)
    return mod
