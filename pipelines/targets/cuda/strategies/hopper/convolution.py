"""Convolutions as products by warp groups: images with channels last, and constant weights.

A turn is a tap of the window and a line of channels. The turn copies the pixels of the images that the tap reads for neighbouring results,
in the mode "im2col" of tensor maps, which writes zeros for pixels outside the image, and the weights of the tap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.hopper.operands import MatrixOperand, TileOperand, is_for_maps
from relayc.pipelines.targets.cuda.strategies.product.operands import Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem, divided
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory, added
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.te.read.graph import memory_of
from relayc.pipelines.tir.gpu import bulk_copies as bulk
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.gpu.tensor_maps import TensorMap, Window
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div

_CORNERS, _STEPS, _OFFSETS = range(-128, 128), range(1, 9), range(256)
"""What corners, steps and offsets of windows with two spatial dimensions may be (CUDA driver API, cuTensorMapEncodeIm2col; PTX ISA)."""


@dataclass(frozen=True)
class Axis:
    """A spatial dimension.

    Attributes:
      size: of the images; results: of the result; taps: of the window.
      stride, dilation: in pixels; lower: the pixel that the first tap reads for the first result.
    """

    size: int
    results: int
    taps: int
    stride: int
    dilation: int
    lower: int

    @property
    def upper(self) -> int:
        """The pixel that the first tap reads for the last result, counted from the last pixel."""
        return self.lower + (self.results - 1) * self.stride - (self.size - 1)

    @property
    def is_for_maps(self) -> bool:
        reach = (self.taps - 1) * self.dilation
        return self.lower in _CORNERS and self.upper in _CORNERS and self.stride in _STEPS and reach in _OFFSETS


@dataclass(frozen=True)
class Convolution:
    """A convolution as a product: rows are results, image by image and row by row; the depth is taps, row by row, and channels."""

    images: Size
    y: Axis
    x: Axis
    channels: int

    @property
    def taps(self) -> int:
        return self.y.taps * self.x.taps

    def turns(self, line: int) -> int:
        """Stages of the whole depth, of lines of so many channels."""
        return self.taps * self.lines(line)

    def lines(self, line: int) -> int:
        """Lines of the channels of a tap."""
        return ceil_div(self.channels, line)


def convolution_of(problem: Problem, ways: Sequence[Way]) -> Convolution | None:
    """The convolution that a product computes; None for any other product, and for convolutions that tensor maps cannot express."""
    images, weights = ways
    operand, line = images.operand, bulk.LINE_BYTES // images.element_bytes
    shape = operand.node.shape
    if images.packing is not None or images.copied != CHUNK_BYTES or not images.along_depth:
        return None
    if memory_of(operand.node) is None or len(shape) != 4 or problem.batch:
        return None
    height, width, channels = shape[1:]
    if not (isinstance(height, int) and isinstance(width, int) and isinstance(channels, int)):
        return None
    # Whole chunks: lines of memory begin at such. Lines of shared memory that are mostly empty are no gain.
    if channels * images.element_bytes % CHUNK_BYTES != 0 or 2 * channels < ceil_div(channels, line) * line:
        return None
    allowed = {(index.key, extent) for index, extent in zip(operand.indices[1:3], (height, width), strict=True)}
    if any((index.key, extent) not in allowed for index, extent in operand.checks):
        return None
    rows, depth = (_loops(loops) for loops in (images.loops, problem.reduction))
    image, y, x, channel = map(_Position.of, operand.indices)
    # Loops of several steps, from the outermost to the innermost.
    if rows != [*image.terms, *y.along(rows), *x.along(rows)] or depth != [*y.along(depth), *x.along(depth), *channel.terms]:
        return None
    if image != _Position.of(Index.of(rows[0]) if image.terms else Index()) or channel != _Position.of(Index.of(depth[-1])):
        return None
    if shape[0] != (rows[0].extent if image.terms else 1) or channels != depth[-1].extent:
        return None
    axes = _axis(y, height, rows, depth), _axis(x, width, rows, depth)
    if axes[0] is None or axes[1] is None:
        return None
    found = Convolution(shape[0], axes[0], axes[1], channels)
    # Weights of several taps are packed, so that their channels are side by side.
    return found if weights.packing is not None or (found.taps == 1 and is_for_maps(problem, weights)) else None


def _loops(loops: Sequence[MergedLoop]) -> list[Var]:
    """The loops, of more than one iteration, from which loops were merged."""
    return [v for loop in loops for v in loop.members if v.extent != 1]


@dataclass(frozen=True)
class _Position:
    """An index: its constant, and the loops of more than one iteration with their factors."""

    const: Size
    terms: Mapping[Var, Size]

    @staticmethod
    def of(index: Index) -> "_Position":
        return _Position(index.const, {v: c for v, c in index.terms.items() if v.extent != 1})

    def along(self, loops: Sequence[Var]) -> list[Var]:
        """Those of some loops that the index moves along."""
        return [v for v in loops if v in self.terms]


def _axis(position: _Position, size: int, rows: Sequence[Var], depth: Sequence[Var]) -> Axis | None:
    """A spatial dimension, from the index of its pixels, which depends on a loop of rows and on a loop of taps, if these loops exist."""
    numbers = []
    for loops in (position.along(rows), position.along(depth)):
        if len(loops) > 1:
            return None
        numbers += [(v.extent, position.terms[v]) for v in loops] or [(1, 1)]
    (results, stride), (taps, dilation) = numbers
    if not all(isinstance(n, int) for n in (results, stride, taps, dilation, position.const)):
        return None
    axis = Axis(size, *map(int, (results, taps, stride, dilation, position.const)))
    return axis if axis.is_for_maps else None


@dataclass(frozen=True)
class PixelOperand(TileOperand):
    """The images. Their map has the dimensions channel, x, y and image."""

    convolution: Convolution

    @property
    def turns(self) -> Size:
        return self.convolution.turns(self.depth)

    def tensor_map(self, evaluator: Evaluator) -> ir.Value:
        c, node = self.convolution, self.way.operand.node
        sizes = (c.channels, c.x.size, c.y.size, c.images)
        strides = (c.channels, c.channels * c.x.size, c.channels * c.x.size * c.y.size)
        numbers = [emit.index_constant(n) for n in (0, *sizes, *strides)]
        window = Window((c.x.lower, c.y.lower), (c.x.upper, c.y.upper), (c.x.stride, c.y.stride))
        box = (self.depth, self.lines)
        return TensorMap(self.way.element, evaluator.memory(node), numbers[0], numbers[1:5], numbers[5:], box, window=window).emit()

    def place(self, line: Index, batch: Index) -> list[ir.Value]:
        c = self.convolution
        image, within = divided(line, c.y.results * c.x.results)
        y, x = divided(within, c.x.results)
        return [bulk.as_coordinate(x * c.x.stride + c.x.lower), bulk.as_coordinate(y * c.y.stride + c.y.lower), bulk.as_coordinate(image)]

    def bring(
        self, ring: SharedMemory, stage: ir.Value, tensor_map: ir.Value, place: Sequence[ir.Value], turn: Index, barrier: ir.Value
    ) -> None:
        c = self.convolution
        tap, line = divided(turn, c.lines(self.depth))
        y, x = divided(tap, c.x.taps)
        i16 = ir.IntegerType.get_signless(16)
        steps = (x * c.x.dilation, y * c.y.dilation)
        offsets = [emit.create("arith.index_cast", [i16], [emit.materialize(step)]) for step in steps]
        bulk.copy_pixels(
            ring.pointer(added(stage, self.start)), tensor_map, [bulk.as_coordinate(line * self.depth), *place], offsets, barrier
        )


@dataclass(frozen=True)
class WeightOperand(TileOperand):
    """The weights. Their map has the dimensions channel, tap and filter."""

    convolution: Convolution

    @property
    def turns(self) -> Size:
        return self.convolution.turns(self.depth)

    def tensor_map(self, evaluator: Evaluator) -> ir.Value:
        c, way = self.convolution, self.way
        numbers = [emit.index_constant(n) for n in (0, c.channels, c.taps, way.extent, c.channels, way.pitch)]
        buffer = evaluator.memory(way.operand.node)
        return TensorMap(way.element, buffer, numbers[0], numbers[1:4], numbers[4:], (self.depth, 1, self.lines)).emit()

    def place(self, line: Index, batch: Index) -> list[ir.Value]:
        return [bulk.as_coordinate(line)]

    def bring(
        self, ring: SharedMemory, stage: ir.Value, tensor_map: ir.Value, place: Sequence[ir.Value], turn: Index, barrier: ir.Value
    ) -> None:
        tap, line = divided(turn, self.convolution.lines(self.depth))
        at = [bulk.as_coordinate(line * self.depth), bulk.as_coordinate(tap), *place]
        bulk.copy_box(ring.pointer(added(stage, self.start)), tensor_map, at, barrier)


def operands_of(problem: Problem, convolution: Convolution, ways: Sequence[Way], lines: tuple[int, int]) -> tuple[TileOperand, TileOperand]:
    """The operands in a stage, one after the other, for tiles of the given rows and columns."""
    (a, b), second = ways, lines[0] * bulk.LINE_BYTES
    images = PixelOperand(problem, a, lines[0], 0, convolution)
    if b.packing is None:
        return images, MatrixOperand(problem, b, lines[1], second)
    return images, WeightOperand(problem, b, lines[1], second, convolution)
