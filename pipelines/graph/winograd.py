"""Winograd: 3x3 convolutions of stride 1 in blocked layout as Winograd's F(4x4, 3x3), if this is less work.

The multiplications shrink fourfold, but tiles are transformed before and after, weights grow fourfold, and results round differently
(relative error about 1e-6 instead of 1e-7): too much for bf16, whose products are cheap besides. `disabled_pass=["Winograd"]` turns it off.
The attribute OWN_FLOPS is the number of operations of the convolution by definition, which profiles and benchmarks count.

Batch, height and width may be symbolic. If the benefit depends on them, typical sizes decide as long as the transformed weights fit nearby
caches: on small maps it takes up to twice as long as the convolution, whose time is then short. If they do not fit, each call decides:
`winograd_by_size` creates a branch once the convolution and its epilogue are one group; each side computes it differently.
"""

from dataclasses import dataclass

import numpy as np

from relayc.dialects.discardable import BY_SIZE, OWN_FLOPS
from relayc.dialects.mlir import ir
from relayc.dialects.operation_set import OperationSet
from relayc.dialects.relay.conv import Conv2d
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Fused, If, Yield
from relayc.dialects.relay.types import TensorType
from relayc.dialects.relay.winograd import POINTS, tiles, transform_weights
from relayc.pipelines.context.passes import PassContext, module_pass
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.fuse_ops import fuse_block
from relayc.pipelines.graph.fusion.sweep import Enabled, enabled_rules
from relayc.pipelines.graph.rewrite import Found, Rewriter, Rules
from relayc.symbolic import Size, guess, minimum, proves

LEAST_CHANNELS = 32
"""Channels, in and out, below which the transforms weigh as much as the product."""
LEAST_TILES = 16
"""Tiles below which the transformed weights are read too rarely for what they cost to read."""
LEAST_GAIN = 3, 2
"""Ratio of multiplications, direct to Winograd's, below which it does not pay: maps that fill their last tiles badly."""
GROWTH_SHARE, GROWTH_BYTES = 0.15, 64 << 20
"""How much larger all parameters together may become: a share of what they are, and bytes on top. Convolutions over the largest maps come
first, as they gain the most for each byte."""
FAR_BYTES = 4 << 20
"""Bytes of transformed weights from which on few tiles wait for them: more than a core's share of the caches."""
TAPS = 9


@dataclass(frozen=True)
class _Choice:
    """A convolution that Winograd's algorithm does.

    Attributes:
      tiles: of all maps.
      direct, transformed: multiplications of a map for a pair of channels, by the definition and on tiles.
      weight_bytes: of the transformed weights.
    """

    tiles: Size
    direct: Size
    transformed: Size
    weight_bytes: int

    @property
    def margin(self) -> Size:
        """An expression that is nonnegative at the sizes for which it pays off."""
        gain, per = LEAST_GAIN
        return minimum(self.tiles - LEAST_TILES, self.direct * per - self.transformed * gain)

    @property
    def is_open(self) -> bool:
        """Whether only a call can decide."""
        margin = self.margin
        return self.weight_bytes >= FAR_BYTES and not (proves(lambda: margin >= 0) or proves(lambda: margin < 0))

    @property
    def pays(self) -> bool:
        """Whether it pays off at typical sizes."""
        gain, per = LEAST_GAIN
        return guess(self.tiles) >= LEAST_TILES and guess(self.direct) * per >= guess(self.transformed) * gain

    @property
    def growth(self) -> int:
        """Bytes that parameters grow by."""
        return self.weight_bytes // POINTS * (POINTS if self.is_open else POINTS - TAPS)


def _choice(op: Conv2d) -> _Choice | None:
    """The choice for a convolution that Winograd's algorithm supports; None for any other."""
    if op.data_layout != op.out_layout or op.kernel_layout != "OIHW" or op.groups != 1 or layout(op.data_layout).axes[-1] != "c":
        return None
    data, weight, out = TensorType.of(op.data), TensorType.of(op.weight), TensorType.of(op.operation.results[0])
    plain = weight.shape[2:] == (3, 3) and set(op.strides) == {1} and set(op.dilation) == {1} and data.dtype == out.dtype == "float32"
    if not plain or not (data.is_known and out.is_known) or layout(op.data_layout).block("C") == 1:
        return None
    channels = [t.sizes[1] * t.sizes[-1] for t in (data, out)]
    if not all(isinstance(c, int) and c >= LEAST_CHANNELS for c in channels):
        return None
    height, width = out.sizes[2:4]
    of_map = tiles(height) * tiles(width)
    return _Choice(out.sizes[0] * of_map, height * width * TAPS, of_map * POINTS, guess(weight.num_bytes) // TAPS * POINTS)


def _chosen(mod: IRModule) -> OperationSet:
    """The convolutions to transform, at some sizes or at all: as many as parameters may grow for."""
    room = GROWTH_SHARE * sum(array.nbytes for array in mod.params.values()) + GROWTH_BYTES
    found = []
    for block in graph_blocks(mod.module.operation):
        for op in block.operations:
            if isinstance(op, Conv2d) and (choice := _choice(op)) is not None and (choice.pays or choice.is_open):
                found.append((guess(choice.tiles), choice.growth, op.operation))
    chosen = OperationSet()
    for _, growth, operation in sorted(found, key=lambda f: (-f[0], f[1])):
        if growth <= room:
            room -= growth
            chosen.add(operation)
    return chosen


def _transformed(op: Conv2d, data: ir.Value, mod: IRModule) -> ir.Value:
    """conv2d, of which the weights are a constant -> input transform, grouped 1x1 convolution, output transform."""
    array = mod.value_of(op.weight)
    assert array is not None
    out = TensorType.of(op.operation.results[0])
    points = mod.constant(transform_weights(array), "winograd")
    transformed = build("nn.winograd_input_transform", data, padding=op.padding, layout=op.data_layout)
    product = build("nn.conv2d", transformed, points, groups=POINTS, data_layout=op.data_layout, out_layout=op.data_layout)
    result = build("nn.winograd_output_transform", product, height=out.shape[2], width=out.shape[3], layout=op.data_layout)
    # The operations of all three are attributed to the product.
    own = 2 * out.num_elements * array.shape[1] * array.shape[2] * array.shape[3]
    parts: tuple[tuple[ir.Value, Size], ...] = ((transformed, 0), (product, own), (result, 0))
    for value, flops in parts:
        OWN_FLOPS.put(value.owner, flops)
    return result


@module_pass(opt_level=3, name="Winograd")
def winograd(mod: IRModule, ctx: PassContext) -> IRModule:
    """3x3 convolutions in blocked layout by Winograd's F(4x4, 3x3), unless they are to be computed in bf16."""
    if ctx.get("relay.ToMixedPrecision.precision") == "f32":
        chosen, rules = _chosen(mod), Rules("Winograd")

        @rules.on("nn_conv2d")
        def convolution(op: Conv2d, rw: Rewriter) -> Found:
            # Tested again, because a new operation may have replaced a chosen one.
            choice = _choice(op) if op.operation in chosen else None
            if choice is None or rw.array(op.weight) is None:
                return None
            if not choice.is_open:
                return _transformed(op, op.data, rw.mod)
            BY_SIZE.put(op.operation, choice.margin)
            return None

        rules.apply(mod)
    return mod


@module_pass(opt_level=3, name="WinogradBySize")
def winograd_by_size(mod: IRModule, ctx: PassContext) -> IRModule:
    """Groups of convolutions that are Winograd's at some sizes: a branch for each, with the group as it is on the other side."""
    enabled = enabled_rules(ctx)
    for block in list(graph_blocks(mod.module.operation)):
        conditions: dict[Size, ir.Value] = {}
        for op in list(block.operations):
            if isinstance(op, Fused):
                convolution = next((m for m in op.members() if BY_SIZE.on(m.operation)), None)
                if convolution is not None:
                    margin = BY_SIZE.of(convolution.operation)
                    BY_SIZE.remove(convolution.operation)
                    if margin not in conditions:
                        with ir.InsertionPoint(op.operation), op.operation.location:
                            conditions[margin] = _is_natural(margin, mod)
                    _branch(op, convolution, conditions[margin], mod, enabled)
    return mod


def _is_natural(size: Size, mod: IRModule) -> ir.Value:
    """A group that says whether a size is 0 or more, and its result as a scalar."""
    group = Fused.create(TensorType((1,), "bool").to_mlir())
    with ir.InsertionPoint(group.body()):
        Yield(build("greater_equal", build("sizes", values=(size,)), mod.constant(np.zeros(1, np.int64))))
    return build("reshape", group.operation.results[0], newshape=())


def _branch(group: Fused, convolution: Conv2d, condition: ir.Value, mod: IRModule, enabled: Enabled) -> None:
    """relay.if: the group with Winograd's operators in the place of the convolution, else the group as it is."""

    def transformed() -> ir.Value:
        values: dict[ir.Value, ir.Value] = {}
        for member in group.members():
            with member.operation.location:
                if member == convolution:
                    found = [_transformed(convolution, values.get(convolution.data, convolution.data), mod)]
                else:
                    copy = member.operation.clone()
                    for i, value in enumerate(list(copy.operands)):
                        copy.operands[i] = values.get(value, value)
                    found = list(copy.results)
            values.update(zip(member.operation.results, found, strict=True))
        return values[group.yielded()]

    with ir.InsertionPoint(group.operation), group.operation.location:
        result = If.create(condition, transformed, lambda: group.operation.clone().results[0])
    fuse_block(result.owner.opview.body(0), enabled)
    group.operation.results[0].replace_all_uses_with(result)
    group.operation.erase()
