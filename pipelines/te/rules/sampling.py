"""Compute rule of sampling at computed positions: image.grid_sample.

Positions are computed in the float type of the grid, 16-bit ones in float32. For a NaN position loads are still in bounds.
"""

from dataclasses import dataclass

from relayc.dialects.mlir import arith, linalg, math
from relayc.dialects.relay.base import Op
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, affine_map, compute, dim, operand_type, parallel, result_type
from relayc.pipelines.te.rules.image import Tap, converted, cubic_weights, weighted_sum
from relayc.pipelines.te.rules.literal import index_of_float
from relayc.pipelines.te.rules.measure import measure, scalar_of
from relayc.pipelines.te.rules.scalar import both
from relayc.symbolic import Size

_CUBIC_ALPHA = -0.75


@dataclass(frozen=True)
class SampledAxis:
    """Converts positions along an axis of data to taps.

    Attributes:
      size: elements of the axis.
      dtype: of positions, float32 or float64.
      method, padding_mode, align_corners, coordinates: the attributes of image.grid_sample.
    """

    size: Size
    dtype: str
    method: str
    padding_mode: str
    align_corners: bool
    coordinates: str

    def _constant(self, value: float) -> Value:
        return scalar.constant(value, self.dtype)

    @property
    def _last(self) -> Value:
        return scalar_of(measure(self.size - 1), self.dtype)

    def _plus(self, x: Value, value: float) -> Value:
        return arith.addf(x, self._constant(value)) if value else x

    def _times(self, x: Value, value: float) -> Value:
        return arith.mulf(x, self._constant(value))

    def taps(self, coordinate: Value) -> list[Tap]:
        """The taps of an element of the grid, a scalar of `dtype`."""
        x = self._position(coordinate)
        if self.method == "nearest_neighbor":
            return [self._tap(math.roundeven(x), None)]
        below = math.floor(x)
        part = arith.subf(x, below)
        if self.method == "bilinear":
            rest = arith.subf(self._constant(1.0), part)
            return [self._tap(below, rest), self._tap(self._plus(below, 1.0), part)]
        weights = cubic_weights(part, _CUBIC_ALPHA, self.dtype)
        return [self._tap(self._plus(below, float(n)), w) for n, w in zip((-1, 0, 1, 2), weights, strict=True)]

    def _position(self, x: Value) -> Value:
        """A coordinate as a position in data."""
        if self.coordinates == "pixel":
            return x
        x = self._plus(x, 1.0)
        if self.align_corners:
            return arith.mulf(self._times(x, 0.5), self._last)
        return self._times(self._plus(arith.mulf(x, scalar_of(measure(self.size), self.dtype)), -1.0), 0.5)

    @property
    def _edges(self) -> tuple[Value, Value]:
        """The edges of data on both sides."""
        if self.align_corners:
            return self._constant(0.0), self._last
        return self._constant(-0.5), self._plus(scalar_of(measure(self.size), self.dtype), -0.5)

    def _clamped(self, x: Value) -> Value:
        """A position clipped to the positions of elements; 0 for NaN, because comparisons with it are false."""
        zero, last = self._constant(0.0), self._last
        x = scalar.select(scalar.compare("gt", x, zero, self.dtype), x, zero)
        return scalar.select(scalar.compare("lt", x, last, self.dtype), x, last)

    def _reflected(self, x: Value) -> Value:
        """A position reflected at both edges until it is between them."""
        low, high = self._edges
        span = arith.subf(high, low)
        distance = math.absf(arith.subf(x, low))
        turns = math.floor(arith.divf(distance, span))
        rest = arith.subf(distance, arith.mulf(turns, span))
        half = self._times(turns, 0.5)
        is_even = scalar.compare("eq", half, math.floor(half), self.dtype)
        return scalar.select(is_even, arith.addf(low, rest), arith.subf(high, rest))

    def _tap(self, position: Value, weight: Value | None) -> Tap:
        """The tap at an integer position; outside data it is clipped, or does not count, by padding_mode."""
        inside = None
        if self.padding_mode == "zeros":
            below, above = self._constant(0.0), self._last
            inside = both(scalar.compare("ge", position, below, self.dtype), scalar.compare("le", position, above, self.dtype))
        elif self.padding_mode == "reflection":
            position = self._reflected(position)
        return Tap(index_of_float(self._clamped(position)), weight, inside)


@compute("image_grid_sample")
def grid_sample(op: Op, data: Value, grid: Value) -> Value:
    source, coordinates, out = operand_type(op), operand_type(op, 1), result_type(op)
    dtype = "float64" if source.dtype == "float64" else accumulator(coordinates.dtype)
    wide = source.dtype if op.method == "nearest_neighbor" else dtype
    axes = [SampledAxis(size, dtype, op.method, op.padding_mode, op.align_corners, op.coordinates) for size in source.sizes[2:]]
    rank = out.rank
    # The coordinate along the last axis comes first.
    maps = [affine_map(rank, [dim(0), i, *map(dim, range(2, rank))]) for i in reversed(range(len(axes)))]

    def body(*given: Value) -> Value:
        taps = [axis.taps(scalar.convert(x, coordinates.dtype, dtype)) for axis, x in zip(axes, given, strict=True)]
        batch, channel = (linalg.IndexOp(i).result for i in (0, 1))
        return converted(weighted_sum(data, source.dtype, (dtype, wide), taps, [batch, channel]), wide, out.dtype)

    return parallel(out, [grid] * len(axes), body, maps)
