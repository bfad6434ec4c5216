"""Rows: building blocks of softmax and the normalizations. A row holds the elements along some axes, with the other axes fixed.

For 16-bit floats rows are accumulated in float32, and results derived from the sums are computed in float32.
"""

import math as pymath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, affine_map, dim, fill, identity, parallel, reduction
from relayc.pipelines.te.rules.literal import number
from relayc.symbolic import Size


@dataclass(frozen=True)
class Rows:
    """The rows of tensors of type `type` (a float type) along `axes`."""

    type: TensorType
    axes: tuple[int, ...]

    @property
    def wide(self) -> str:
        """The dtype in which rows are computed."""
        return accumulator(self.type.dtype)

    @property
    def length(self) -> Size:
        """Elements of a row."""
        return prod(self.type.sizes[axis] for axis in self.axes)

    @property
    def kept(self) -> list[int]:
        """The axes that are not reduced."""
        return [i for i in range(self.type.rank) if i not in self.axes]

    @property
    def row_type(self) -> TensorType:
        """Type of a tensor with one element for each row."""
        return TensorType(tuple(self.type.shape[i] for i in self.kept), self.wide)

    @property
    def row_map(self) -> ir.AffineMap:
        """Map of a tensor with one element for each row in loops over all elements."""
        return affine_map(self.type.rank, [dim(i) for i in self.kept])

    def widen(self, value: Value, dtype: str | None = None) -> Value:
        """Converts a scalar of `dtype` (by default the tensors') to the dtype in which rows are computed."""
        return scalar.convert(value, dtype or self.type.dtype, self.wide)

    def constant(self, value: float) -> Value:
        """A constant in the dtype in which rows are computed."""
        return scalar.constant(value, self.wide)

    def mean(self, total: Value) -> Value:
        """A scalar divided by the number of elements of a row."""
        if isinstance(self.length, int):
            # An empty row has no mean.
            factor = self.constant(1 / self.length if self.length else pymath.nan)
        else:
            factor = arith.divf(self.constant(1), number(self.length, self.wide))
        return arith.mulf(total, factor)

    def reduce(
        self,
        data: Value,
        of_rows: Sequence[Value],
        init: float,
        combine: Callable[..., Value],
        element: Callable[..., Value] = lambda x: x,
        dtype: str | None = None,
    ) -> Value:
        """combine(element(x, *row values), ...) over each row of `data`, whose elements are of `dtype` (by default the tensors')."""

        def body(x: Value, *rest: Value) -> Value:
            *values, acc = rest
            return combine(element(self.widen(x, dtype), *values), acc)

        maps = [identity(self.type.rank)] + [self.row_map] * len(of_rows)
        return reduction([data, *of_rows], maps, fill(self.row_type, init), self.row_map, body)

    def sum(
        self, data: Value, of_rows: Sequence[Value] = (), element: Callable[..., Value] = lambda x: x, dtype: str | None = None
    ) -> Value:
        return self.reduce(data, of_rows, 0.0, arith.addf, element, dtype)

    def each_row(self, of_rows: Sequence[Value], body: Callable[..., Value]) -> Value:
        """body(row values) for each row."""
        return parallel(self.row_type, of_rows, body)

    def each(
        self,
        data: Value,
        of_rows: Sequence[Value],
        body: Callable[..., Value],
        vectors: Sequence[tuple[Value, Sequence[ir.AffineExpr]]] = (),
        out: str | None = None,
    ) -> Value:
        """body(x, *row values, *vector elements) for each element; a vector is read at its expressions of the loops.

        The result is of dtype `out`, by default the tensors'; `body` receives and returns wide values.
        """
        dtype = out or self.type.dtype

        def wide_body(x: Value, *rest: Value) -> Value:
            count = len(of_rows)
            wide = [self.widen(x), *rest[:count], *(self.widen(v) for v in rest[count:])]
            return scalar.convert(body(*wide), self.wide, dtype)

        maps = [identity(self.type.rank)] + [self.row_map] * len(of_rows) + [affine_map(self.type.rank, list(e)) for _, e in vectors]
        return parallel(self.type.with_dtype(dtype), [data, *of_rows, *(v for v, _ in vectors)], wide_body, maps)
