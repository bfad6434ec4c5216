"""Layouts of buffers: affine maps from the indices of an element to those at which it lies."""

import inspect
from collections.abc import Callable, Sequence
from math import lcm, prod
from typing import Any, TypeAlias

import numpy as np

from relayc.dialects.mlir import ir
from relayc.pipelines.blocks.indices import divide, folded
from relayc.pipelines.blocks.views import ScheduleError
from relayc.pipelines.kernel.index import Index, Var, affine_index
from relayc.symbolic import Size, bounds, proves

IndexMap: TypeAlias = Callable[..., Sequence[Any]]
"""Gives the indices of an element by those it has: `lambda i, j: [i // 16, j, i % 16]`."""

MOST_POINTS = 1 << 20
"""Of those at which a map is tried."""


class Axis:
    """An index as the argument of an IndexMap: +, -, *, // and % with numbers, + and - with others."""

    def __init__(self, expr: ir.AffineExpr) -> None:
        self.expr = expr

    def __add__(self, other: "Axis | int") -> "Axis":
        return Axis(ir.AffineExpr.get_add(self.expr, expression(other)))

    __radd__ = __add__

    def __sub__(self, other: "Axis | int") -> "Axis":
        return self + (other * -1)

    def __mul__(self, other: int) -> "Axis":
        return Axis(ir.AffineExpr.get_mul(self.expr, expression(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> "Axis":
        return Axis(ir.AffineExpr.get_floor_div(self.expr, expression(other)))

    def __mod__(self, other: int) -> "Axis":
        return Axis(ir.AffineExpr.get_mod(self.expr, expression(other)))


def expression(value: "Axis | int") -> ir.AffineExpr:
    """What an IndexMap gave for one index, as an expression. Raises ScheduleError."""
    if isinstance(value, Axis):
        return value.expr
    if isinstance(value, int):
        return ir.AffineExpr.get_constant(value)
    raise ScheduleError(f"index_map: expected indices by +, -, *, // and % of those given and integers, found {value!r}")


def affine_map(index_map: IndexMap | ir.AffineMap) -> ir.AffineMap:
    """An index map as an affine map, in the ambient context. Raises ScheduleError."""
    if isinstance(index_map, ir.AffineMap):
        return index_map
    return map_of(len(inspect.signature(index_map).parameters), index_map)


def map_of(count: int, index_map: IndexMap) -> ir.AffineMap:
    """The same of a function of so many indices, whatever its signature."""
    made = index_map(*(Axis(ir.AffineExpr.get_dim(i)) for i in range(count)))
    if not isinstance(made, (list, tuple)):
        raise ScheduleError(f"index_map: expected a list of indices, found {made!r}")
    return ir.AffineMap.get(count, 0, [expression(e) for e in made])


def mapped(amap: ir.AffineMap, indices: Sequence[Index]) -> list[Index]:
    """The indices at which an element lies."""
    return [folded(affine_index(e, indices, divide)) for e in amap.results]


def composed(second: ir.AffineMap, first: ir.AffineMap) -> ir.AffineMap:
    """The layout that is one after another."""
    return ir.AffineMap.get(first.n_dims, 0, [e.compose(first) for e in second.results])


def shape_in(amap: ir.AffineMap, shape: Sequence[Size]) -> list[Size]:
    """The shape of a buffer in a layout, which has room for more elements where a dimension is not divided.

    Raises ScheduleError where the map is of another rank, gives negative indices or the same ones to two elements.
    """
    if amap.n_dims != len(shape) or amap.n_symbols:
        raise ScheduleError(f"index_map: expected one of {len(shape)} indices, found {amap}")
    found: list[Size] = []
    for index in mapped(amap, [Index.of(Var(0, d - 1)) for d in shape]):
        low, high = index.bounds()
        if not proves(lambda low=low: low >= 0):  # type: ignore[misc] # it is the value of now
            raise ScheduleError(f"index_map: expected indices of 0 or more, found {amap}")
        found.append(high + 1)
    _check_distinct(amap, shape)
    return found


def _check_distinct(amap: ir.AffineMap, shape: Sequence[Size]) -> None:
    """Whether each dimension can be told from what a map gives; else tries the map at the points of a box, in which it repeats itself or
    which is the whole shape."""
    if _told_by_digits(amap) | _told_by_sums(amap, shape) == set(range(len(shape))):
        return
    numbers = [n for e in amap.results for n in _numbers(e) if n > 0]
    period = 2 * max(lcm(*numbers), 2) + 1
    extents = [min(d, period) if isinstance(d, int) else period for d in shape]
    while prod(extents) > MOST_POINTS:
        extents[extents.index(max(extents))] //= 2
    points = np.indices(extents, dtype=np.int64).reshape(len(extents), -1)
    found = np.stack([np.broadcast_to(_evaluated(e, points), points.shape[1:]) for e in amap.results]) if len(amap.results) else points[:0]
    if np.unique(found, axis=1).shape[1] != points.shape[1]:
        raise ScheduleError(f"index_map: expected another place for each element, found the same one for several of them by {amap}")


def _told_by_digits(amap: ir.AffineMap) -> set[int]:
    """The dimensions of which a map gives all digits: d, or d % 16 and d // 16, or d % 4, d // 4 % 8 and d // 32."""
    digits = {digit for e in amap.results if (digit := _digit(e)) is not None}
    found = set()
    for dim in range(amap.n_dims):
        after: dict[int, int | None] = {step: end for d, step, end in digits if d == dim}
        step: int | None = 1
        while step is not None and step in after:
            step = after.pop(step)
        if step is None:
            found.add(dim)
    return found


def _digit(e: ir.AffineExpr) -> tuple[int, int, int | None] | None:
    """(dimension, step, end) of the part of a dimension that counts its steps, up to where another digit begins; None for others."""
    if isinstance(e, ir.AffineDimExpr):
        return e.position, 1, None
    if isinstance(e, (ir.AffineFloorDivExpr, ir.AffineModExpr)) and isinstance(e.rhs, ir.AffineConstantExpr):
        inner = _digit(e.lhs)
        if inner is not None and inner[2] is None:
            dim, step, number = inner[0], inner[1], e.rhs.value
            return (dim, step * number, None) if isinstance(e, ir.AffineFloorDivExpr) else (dim, step, step * number)
    return None


def _told_by_sums(amap: ir.AffineMap, shape: Sequence[Size]) -> set[int]:
    """The dimensions that are digits of what a map gives: i and j of i * 16 + j, where j is less than 16."""
    places = [Var(0, d - 1) for d in shape]
    found: set[int] = set()
    for index in mapped(amap, [Index.of(v) for v in places]):
        if not set(index.terms) <= set(places):
            continue
        room: Size = 1
        for var, factor in sorted(index.terms.items(), key=lambda term: bounds(term[1])[0]):
            if not proves(lambda factor=factor, room=room: factor >= room):  # type: ignore[misc] # they are the values of now
                break
            room = factor * var.extent
        else:
            found |= {places.index(v) for v in index.terms}
    return found


def _numbers(e: ir.AffineExpr) -> list[int]:
    if isinstance(e, ir.AffineConstantExpr):
        return [abs(e.value)]
    return [] if isinstance(e, (ir.AffineDimExpr, ir.AffineSymbolExpr)) else [*_numbers(e.lhs), *_numbers(e.rhs)]


def _evaluated(e: ir.AffineExpr, points: np.ndarray) -> Any:
    if isinstance(e, ir.AffineDimExpr):
        return points[e.position]
    if isinstance(e, ir.AffineConstantExpr):
        return e.value
    left, right = _evaluated(e.lhs, points), _evaluated(e.rhs, points)
    if isinstance(e, ir.AffineAddExpr):
        return left + right
    if isinstance(e, ir.AffineMulExpr):
        return left * right
    if isinstance(e, ir.AffineFloorDivExpr):
        return left // right
    return -(-left // right) if isinstance(e, ir.AffineCeilDivExpr) else left % right
