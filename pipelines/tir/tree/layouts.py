"""Layouts of buffers: affine maps from the indices of an element to its indices in memory."""

import inspect
from collections.abc import Callable, Sequence
from math import lcm, prod
from typing import Any, TypeAlias

import numpy as np

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var, affine_index, affine_value
from relayc.pipelines.tir.tree.indices import divide, folded
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.symbolic import Size, proves

IndexMap: TypeAlias = Callable[..., Sequence[Any]]
"""Maps the logical indices of an element to its indices in memory: `lambda i, j: [i // 16, j, i % 16]`."""

MOST_POINTS = 1 << 20
"""Upper limit of the number of points at which a map is checked."""


class Axis:
    """An index passed to an IndexMap: supports +, -, *, // and % with integers, and + and - with other indices."""

    def __init__(self, expr: ir.AffineExpr) -> None:
        self.expr = expr

    def __add__(self, other: "Axis | int") -> "Axis":
        return Axis(ir.AffineExpr.get_add(self.expr, expression(other)))

    __radd__ = __add__

    def __sub__(self, other: "Axis | int") -> "Axis":
        return self + (other * -1)

    def __rsub__(self, other: int) -> "Axis":
        return self * -1 + other

    def __mul__(self, other: int) -> "Axis":
        return Axis(ir.AffineExpr.get_mul(self.expr, expression(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> "Axis":
        return Axis(ir.AffineExpr.get_floor_div(self.expr, expression(other)))

    def __mod__(self, other: int) -> "Axis":
        return Axis(ir.AffineExpr.get_mod(self.expr, expression(other)))


def expression(value: "Axis | int") -> ir.AffineExpr:
    """One result of an IndexMap as an affine expression. Raises ScheduleError."""
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
    """Converts an index function of `count` arguments, whatever its signature, to an affine map. Raises ScheduleError."""
    made = index_map(*(Axis(ir.AffineExpr.get_dim(i)) for i in range(count)))
    if not isinstance(made, (list, tuple)):
        raise ScheduleError(f"index_map: expected a list of indices, found {made!r}")
    return ir.AffineMap.get(count, 0, [expression(e) for e in made])


def mapped(amap: ir.AffineMap, indices: Sequence[Index]) -> list[Index]:
    """Applies a layout to the indices of an element."""
    return [folded(affine_index(e, indices, divide)) for e in amap.results]


def composed(second: ir.AffineMap, first: ir.AffineMap) -> ir.AffineMap:
    """The layout that applies `first` and then `second`."""
    return ir.AffineMap.get(first.n_dims, 0, [e.compose(first) for e in second.results])


def shape_in(amap: ir.AffineMap, shape: Sequence[Size]) -> list[Size]:
    """The shape of a buffer in a layout. It has room for more elements where the map does not divide a dimension evenly.

    Raises ScheduleError if the rank of the map differs, or the map gives negative indices or maps two elements to the same indices.
    """
    if amap.n_dims != len(shape) or amap.n_symbols:
        raise ScheduleError(f"index_map: expected one of {len(shape)} indices, found {amap}")
    found: list[Size] = []
    for index in mapped(amap, [Index.of(Var.below(d)) for d in shape]):
        low, high = index.bounds()
        if not proves(lambda low=low: low >= 0):  # type: ignore[misc] # it is the value of now
            raise ScheduleError(f"index_map: expected indices of 0 or more, found {amap}")
        found.append(high + 1)
    _check_distinct(amap, shape)
    return found


def _check_distinct(amap: ir.AffineMap, shape: Sequence[Size]) -> None:
    """Checks that the map is injective. Results that share dimensions are evaluated together over a box: the shape, or a full period of the
    map."""
    for dims, results in _independent(amap):
        most = 2 * lcm(*map(_period, results)) + 3
        extents = [min(d, most) if isinstance(d, int) else most for d in (shape[i] for i in dims)]
        while prod(extents) > MOST_POINTS:
            extents[extents.index(max(extents))] //= 2
        points = dict(zip(dims, np.indices(extents, dtype=np.int64).reshape(len(extents), -1), strict=True))
        count = prod(extents)
        places = np.zeros(count, np.int64)
        for e in results:
            found = np.broadcast_to(affine_value(e, points), (count,))
            places = places * (int(found.max()) + 1) + found
        places.sort()
        if (places[1:] == places[:-1]).any():
            raise ScheduleError(f"index_map: expected another place for each element, found the same one for several of them by {amap}")


def _independent(amap: ir.AffineMap) -> list[tuple[list[int], list[ir.AffineExpr]]]:
    """Groups the dimensions of a map so that no result uses dimensions of two groups; each group comes with its results."""
    groups: list[tuple[list[int], list[ir.AffineExpr]]] = [([i], []) for i in range(amap.n_dims)]
    for e in amap.results:
        own = [g for g in groups if _dims(e) & set(g[0])]
        if not own:
            continue  # a constant
        joined = (sorted(i for dims, _ in own for i in dims), [*(r for _, results in own for r in results), e])
        groups = [*(g for g in groups if g not in own), joined]
    return groups


def _dims(e: ir.AffineExpr) -> set[int]:
    if isinstance(e, ir.AffineDimExpr):
        return {e.position}
    return _dims(e.lhs) | _dims(e.rhs) if isinstance(e, ir.AffineBinaryExpr) else set()


def _period(e: ir.AffineExpr) -> int:
    """A number of steps along a dimension after which an expression grows by the same amount from anywhere."""
    if not isinstance(e, ir.AffineBinaryExpr):
        return 1
    if isinstance(e, (ir.AffineAddExpr, ir.AffineMulExpr)):
        return lcm(_period(e.lhs), _period(e.rhs))
    return _period(e.lhs) * e.rhs.value
