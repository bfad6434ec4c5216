"""AlterOpLayout: images in NCHWc, with the channels in blocks of a vector, or in NHWC (Relay's AlterOpLayout and ConvertLayout).

In both a pixel's channels are neighbours in memory: convolutions store their accumulators as vectors whatever the size of the map, their
reductions over channels read whole cache lines, and depthwise convolutions and poolings have lanes along channels.

The layout is chosen by regions. A region is what must share a layout: the images of operators that follow a layout and hang together
(LayoutRole.FOLLOWS: elementwise operators, poolings, depthwise convolutions, resizings, concatenations). Convolutions over all channels
read one layout and write another, so they stand between regions. A region is in NHWC where the program itself transposes it from or to
NHWC (those transposes vanish), where a channel count is no multiple of the block, where images are of 8-bit integers, or where the target
wants no blocks (Target.blocks_channels), else in blocks; and it stays in NCHW where what it gains is less than the transforms at its
borders cost. Weights stay as they are: schedules pack them. Which element types such images have the target says (Target.image_dtypes).
"""

import math
from dataclasses import dataclass, field

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import LayoutRole, Op, Pattern
from relayc.dialects.relay.conv import Conv2d
from relayc.dialects.relay.layout import NCHW, layout
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.transform import Transpose
from relayc.dialects.relay.types import BYTES, TensorType
from relayc.pipelines.context.passes import PassContext, config_option, function_pass
from relayc.pipelines.context.target import Target
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.symbolic import Size, guess

TO_LAST, FROM_LAST = (0, 2, 3, 1), (0, 3, 1, 2)
"""Axes of the transposes NCHW -> NHWC and back."""
PLAIN, LAST = NCHW, "NHWC"

"""Images whose products run along the channels: all of them are best in one run."""

PAGE = 4096
"""Bytes; planes that are a multiple apart fall in the same few sets of the cache."""

config_option(
    "relay.AlterOpLayout.block", int, 0, "channels in a block; 0 is the lanes of the target's vector, of bf16 where that is asked for"
)
config_option("relay.AlterOpLayout.blocks", bool, True, "whether channels are in blocks at all; else images are in NHWC")


_type = TensorType.of


def _size(value: ir.Value) -> int:
    """Number of elements of a tensor; a representative number if it is symbolic."""
    return guess(_type(value).num_elements)


def _channels(value: ir.Value) -> int:
    """Channels of an image."""
    channels = _type(value).shape[1]
    assert isinstance(channels, int)
    return channels


def _is_pixel(type_: TensorType) -> bool:
    """Whether an image is one pixel, whose elements lie in the same order in every layout."""
    return type_.shape[2:] == (1, 1)


@dataclass(eq=False)
class _Region:
    """Values that share a layout.

    Attributes:
      values: the images.
      gain: what another layout than NCHW saves, in the time that a transform takes for an element.
      loss: elements to be transformed at its borders in another layout than NCHW.
      last: whether the program transposes it from or to NHWC.
      layout: the decision.
    """

    values: list[ir.Value] = field(default_factory=list)
    gain: float = 0
    loss: float = 0
    last: bool = False
    layout: str = PLAIN


class _Regions:
    """The regions of a block of the program and their layouts.

    Args:
      size: channels of a block; blocks: whether they may be in blocks.
    """

    def __init__(self, block: ir.Block, size: int, target: Target, blocks: bool) -> None:
        self.size, self.blocks_channels, self.dtypes = size, blocks and target.blocks_channels, target.image_dtypes
        self.stores_alike = target.is_gpu
        self.region: dict[ir.Value, _Region] = {}
        self.outside: set[ir.Value] = set()
        """Images that a block around this one has: they stay in NCHW, and are read in another layout here."""
        for argument in block.arguments:
            self._enter(argument)
        for op in block.operations:
            for result in op.operation.results:
                self._enter(result)
        for op in block.operations:
            if isinstance(op, Op) and self.spreads(op):
                for image in self.images(op):
                    if image not in self.region:
                        self.region[image] = _Region([image])
                        self.outside.add(image)
                    self._join(op.operation.results[0], image)
        for region in {id(r): r for r in self.region.values()}.values():
            self._decide(region)

    def layout(self, value: ir.Value) -> str:
        return self.region[value].layout if value in self.region else PLAIN

    def _enter(self, value: ir.Value) -> None:
        if isinstance(value.type, ir.RankedTensorType) and self.is_image(_type(value)):
            self.region[value] = _Region([value])

    def _join(self, a: ir.Value, b: ir.Value) -> None:
        kept, gone = self.region[a], self.region[b]
        if kept is not gone:
            kept.values += gone.values
            for value in gone.values:
                self.region[value] = kept

    # ---- which operators work in any layout

    def is_image(self, type_: TensorType) -> bool:
        """Whether a tensor may be in another layout: NCHW of the target's types, of which the channels are a number."""
        return type_.rank == 4 and type_.is_known and isinstance(type_.shape[1], int) and type_.dtype in self.dtypes

    def is_dense(self, op: Op) -> bool:
        """Whether an operator is a convolution over all channels, which can read one layout and write another."""
        if not isinstance(op, Conv2d) or op.groups != 1 or not op.is_plain():
            return False
        return self.is_image(_type(op.data)) and self.is_image(_type(op.result))

    def images(self, op: Op) -> list[ir.Value]:
        """Operands that are in the layout of the result, for an operator that `spreads`; of an elementwise one the others are one value or
        one per channel."""
        if not _is_elementwise(op):
            return op.images()
        shape = _type(op.operation.results[0]).shape
        return [v for v in op.operation.operands if _type(v).shape == shape]

    def spreads(self, op: Op) -> bool:
        """Whether an operator can work in any layout, with its images all in one."""
        results, operands = op.operation.results, op.operation.operands
        if op.layout_role is not LayoutRole.FOLLOWS or len(results) != 1:
            return False
        if not self.is_image(_type(results[0])):
            return False
        if _is_elementwise(op):
            shape = _type(results[0]).shape
            fits = all(self._broadcasts(_type(v), shape) for v in operands)
        else:
            fits = all(self.is_image(_type(v)) for v in op.images())
        return fits and bool(self.images(op)) and op.can_change_layout()

    def _broadcasts(self, type_: TensorType, shape: tuple[Size | None, ...]) -> bool:
        """Whether an operand still broadcasts to `shape` when both are in another layout: one element, whole, or one per channel."""
        if not type_.is_known or type_.rank > 4 or type_.dtype not in self.dtypes:
            return False
        padded = (1,) * (4 - type_.rank) + type_.sizes
        per_channel = padded[1] == shape[1] and padded[0] in (1, shape[0]) and padded[2:] == (1, 1)
        return padded == shape or all(n == 1 for n in padded) or per_channel

    # ---- decisions

    def _decide(self, region: _Region) -> None:
        channels = {_channels(v) for v in region.values}
        if min(channels) < self.size // 2 or all(_is_pixel(_type(v)) for v in region.values):
            return
        for value in region.values:
            self._count_producer(region, value)
            if value not in self.outside:
                self._count_users(region, value)
        if region.gain > region.loss:
            whole = self.blocks_channels and all(c % self.size == 0 for c in channels)
            is_quantised = any(_type(v).dtype in BYTES for v in region.values)
            region.layout = f"NCHW{self.size}c" if whole and not region.last and not is_quantised else LAST

    def _count_producer(self, region: _Region, value: ir.Value) -> None:
        owner = value.owner
        if not isinstance(owner, Op) or value in self.outside:  # an argument of the function
            region.loss += _size(value)
        elif self.spreads(owner):
            region.gain += owner.layout_gain * _size(value)
        elif self.is_dense(owner) and self.stores_alike:  # tiles of results pass through shared memory, and are stored in either layout
            region.gain += _size(value) / 4
        elif self.is_dense(owner):
            region.gain += self._convolution_gain(owner, value, self.is_image(_type(owner.data)) and _channels(owner.data) < self.size // 2)
        elif is_transpose(owner, FROM_LAST):
            region.gain, region.last = region.gain + _size(value), True
        elif not isinstance(owner, Constant) and not _is_pixel(_type(value)):
            region.loss += _size(value)

    def _count_users(self, region: _Region, value: ir.Value) -> None:
        lost = False
        for use in value.uses:
            owner = use.owner.opview if isinstance(use.owner, ir.Operation) else use.owner
            if isinstance(owner, Op) and self.is_dense(owner) and owner.data == value:
                region.gain += self._convolution_gain(owner, value, False)
            elif isinstance(owner, Op) and is_transpose(owner, TO_LAST):
                region.gain, region.last = region.gain + _size(value), True
            elif not isinstance(owner, Op) or not (self.spreads(owner) or pools_all(owner)):
                lost = True
        if lost and not _is_pixel(_type(value)):
            region.loss += _size(value)

    def _convolution_gain(self, op: Op, value: ir.Value, alone: bool) -> float:
        """What a convolution gains from the layout of its data or its result; `alone` where the other side cannot have any.

        Direct in NCHW it takes at least outputs * depth / 16 cycles; in blocks, and more so by Winograd's method, well under two thirds.
        A 1x1 convolution in NCHW has its lanes along the pixels and is about as fast, but where planes lie a page apart it loses its
        place in the cache at every step of the reduction. A cycle is what a transform takes for an element.
        """
        weight, out = _type(op.weight).static_shape, op.operation.results[0]
        depth = math.prod(weight[1:])
        multiplications = _size(out) * depth
        if weight[2:] != (1, 1):
            return multiplications / (48 if alone else 96)
        _, _, height, width = _type(out).sizes
        aliased = height * width * 4 % PAGE == 0 and depth >= 64  # expressions are so only where all their values are
        return multiplications / 32 if aliased else _size(value) / 4


def _is_elementwise(op: Op) -> bool:
    return op.pattern in (Pattern.ELEMWISE, Pattern.BROADCAST)


def is_transpose(op: Op, axes: tuple[int, ...]) -> bool:
    """Whether an operator is the transpose with these axes."""
    return isinstance(op, Transpose) and tuple(a % 4 for a in op.axes or ()) == axes


def pools_all(op: Op) -> bool:
    """Whether an operator joins all pixels of an image, so that its result is the same for every layout."""
    return op.layout_role is LayoutRole.JOINS and op.can_change_layout()


class _Rewriter:
    """Rewrites a block of the program by the decisions on its regions."""

    def __init__(self, block: ir.Block, size: int, target: Target, blocks: bool) -> None:
        self.block, self.regions = block, _Regions(block, size, target, blocks)
        self.made: dict[ir.Value, ir.Value] = {}
        """New values in the layout of their region, by the NCHW values that they stand for."""
        self.known: dict[tuple[ir.Value, str], ir.Value] = {}

    def run(self) -> None:
        dead = []
        for op in list(self.block.operations):
            with ir.InsertionPoint(op.operation), op.operation.location:
                if isinstance(op, Op) and self._rewrite(op):
                    dead.append(op)
                else:
                    self._restore_operands(op)
        for op in reversed(dead):
            op.operation.erase()

    def _rewrite(self, op: Op) -> bool:
        """Rebuilds `op` if its data or its result has another layout; returns whether the old operation is unused."""
        if self.regions.is_dense(op):
            return self._convolution(op)
        if self.regions.spreads(op):
            return self._spread(op)
        if pools_all(op) and self.regions.layout(op.operation.operands[0]) != PLAIN:
            return self._pool_all(op)
        if is_transpose(op, TO_LAST) and self.regions.layout(op.data) == LAST:
            op.result.replace_all_uses_with(self._in(op.data, LAST))
            return True
        if is_transpose(op, FROM_LAST) and self.regions.layout(op.result) == LAST:
            self.known[op.result, LAST] = self._in(op.data, PLAIN)
        return False

    def _convolution(self, op: Op) -> bool:
        data, out = self.regions.layout(op.data), self.regions.layout(op.operation.results[0])
        if data == out == PLAIN:
            return False
        attrs = {**op.attrs(), "data_layout": data, "out_layout": out}
        self.made[op.operation.results[0]] = build("nn.conv2d", self._in(op.data, data), op.weight, **attrs)
        return True

    def _spread(self, op: Op) -> bool:
        result = op.operation.results[0]
        target = self.regions.layout(result)
        if target == PLAIN:
            return False
        if _is_elementwise(op):
            operands = [self._operand(v, target) for v in op.operation.operands]
        else:
            images = op.images()
            operands = [self._in(v, target) if v in images else v for v in op.operation.operands]
        self.made[result] = build(op.relay_name, *operands, **op.in_layout(target))
        return True

    def _pool_all(self, op: Op) -> bool:
        data, *others = op.operation.operands
        target = self.regions.layout(data)
        pooled = build(op.relay_name, self._in(data, target), *others, **op.in_layout(target))
        op.result.replace_all_uses_with(build("reshape", pooled, newshape=_type(op.result).shape))
        return True

    # ---- values in a layout

    def _operand(self, value: ir.Value, target: str) -> ir.Value:
        """An operand of an operator in the layout `target`."""
        type_ = _type(value)
        if type_.num_elements == 1:
            return value
        if type_.rank < 4:
            value = build("reshape", value, newshape=(1,) * (4 - type_.rank) + type_.shape)
        return self._in(value, target)

    def _in(self, value: ir.Value, target: str) -> ir.Value:
        """A value, which the program has in NCHW, in the layout `target`."""
        key = value, target
        if key not in self.known:
            self.known[key] = self._made_in(value, target)
        return self.known[key]

    def _made_in(self, value: ir.Value, target: str) -> ir.Value:
        source, own = self.made.get(value, value), self.regions.layout(value) if value in self.made else PLAIN
        if own == target:
            return source
        if _is_pixel(_type(value)):
            return build("reshape", source, newshape=layout(target).shape(layout(PLAIN).logical(_type(value).sizes)))
        if PLAIN not in (own, target):
            source, own = self._in(value, PLAIN), PLAIN
        return build("layout_transform", source, src_layout=own, dst_layout=target)

    def _restore_operands(self, op: ir.OpView) -> None:
        for i, value in enumerate(list(op.operation.operands)):
            if value in self.made:
                op.operation.operands[i] = self._in(value, PLAIN)
        for region in op.operation.regions:
            for block in region.blocks:
                for inner in block.operations:
                    self._restore_operands(inner)


@function_pass(opt_level=3, name="AlterOpLayout")
def alter_op_layout(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Regions of 2-D convolutions work on channels in blocks, or channels last."""
    target = ctx.get("target") or Target("cpu")
    # In bf16 a block is what a row of a matrix tile takes.
    bits = 16 if ctx.get("relay.ToMixedPrecision.precision") == "bf16" else 32
    size = ctx.get("relay.AlterOpLayout.block") or target.lanes(bits)
    for block in graph_blocks(func):
        _Rewriter(block, size, target, ctx.get("relay.AlterOpLayout.blocks")).run()
