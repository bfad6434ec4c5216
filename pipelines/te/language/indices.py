"""Static analysis of indices: linear forms over loops, and bounds.

The form is an `Index` over the loops, each counted from 0, and over atoms: quotients, remainders and minima, which are not linear in the
loops. Affine maps of linalg express sums with integer coefficients, and quotients and remainders by numbers; a symbolic offset is kept
beside them (see `Affine`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import FAR, Index, Nonlinear, Var
from relayc.pipelines.te.language.expressions import Cast, Compare, Const, Expr, IterVar, Operation, Select, SizeExpr, children_first
from relayc.symbolic import Dim, Size, bounds, maximum, minimum, proves

Interval: TypeAlias = tuple[Size | None, Size | None]
"""Inclusive bounds; None where unknown."""


class Atom(Nonlinear):
    """An index that is not linear in the loops: an operation on linear ones. Atoms are equal if operation and operands are."""

    def __init__(self, operation: str, *operands: Index) -> None:
        self.operation, self.operands = operation, operands
        super().__init__(-FAR, FAR, (operation, *(x.key for x in operands)), operation)

    def interval(self) -> Interval:
        """Bounds of its value, given the present ranges of symbols."""
        if self.operation == "select":
            first, second = (interval(x) for x in self.operands[-2:])
            return _extreme(minimum, first[0], second[0]), _extreme(maximum, first[1], second[1])
        if len(self.operands) != 2:
            return None, None
        left, right = (interval(x) for x in self.operands)
        if self.operation in ("minimum", "maximum"):
            return _extremes(self.operation, left, right)
        divisor = size_in(self.operands[1])
        if divisor is None or not _is_at_least(self.operands[1], 1):
            return None, None
        if self.operation == "floor_divide":
            return tuple(None if end is None else end // divisor for end in left)  # type: ignore[return-value] # of two ends
        if self.operation == "floor_mod":
            low, high = left
            if low is None or high is None or not is_at_least(low, 0):
                return 0, divisor - 1
            return left if is_at_least(divisor - 1, high) else (0, minimum(divisor - 1, high))
        return None, None


def size_in(x: Index) -> Size | None:
    """The size that an index is; None if it depends on a loop."""
    return x.const if x.is_constant else None


def linear(x: Expr) -> Index | None:
    """The form of an index; None if it depends on elements of a tensor."""
    if not x.is_index:
        return None
    for y in children_first(x, lambda y: y.operands, lambda y: "_linear" in y.__dict__):
        y.__dict__["_linear"] = _form(y)  # cached: an expression is never changed
    return x.__dict__["_linear"]


def _form(x: Expr) -> Index:
    """The form of an index, or a key of a condition on indices, whose operands have theirs."""
    if isinstance(x, IterVar):
        return Index(x.low, {x.position: 1})
    if isinstance(x, Const):
        return Index(int(x.value))
    if isinstance(x, SizeExpr):
        return Index(x.size)
    operands = [operand.__dict__["_linear"] for operand in x.operands]
    if isinstance(x, Cast):
        return operands[0]
    if isinstance(x, Select):
        return Index.of(Atom("select", *operands))
    assert isinstance(x, Operation)  # other expressions are not indices
    left, right = operands[0], operands[-1]
    if x.name == "add":
        return left + right
    if x.name == "subtract":
        return left - right
    if x.name == "multiply":
        for a, b in ((left, right), (right, left)):
            if b.is_constant:
                return a * b.const
    name = x.name
    if name.startswith("trunc") and _is_at_least(left, 0) and _is_at_least(right, 1):
        name = {"truncdiv": "floor_divide", "truncmod": "floor_mod"}[name]
    return Index.of(Atom(name, left, right))


def interval(x: Index) -> Interval:
    """Bounds of an index over all iterations of its loops."""
    low: Size | None = x.const
    high: Size | None = x.const
    for v, c in x.terms.items():
        ends: Interval = v.interval() if isinstance(v, Atom) else (v.low, v.high)
        least, most = bounds(c) if isinstance(c, Dim) else (c, c)
        if least < 0:
            ends = ends[::-1] if most <= 0 else (None, None)
        low = None if low is None or ends[0] is None else low + ends[0] * c
        high = None if high is None or ends[1] is None else high + ends[1] * c
    return low, high


def _extremes(name: str, a: Interval, b: Interval) -> Interval:
    """The bounds of the minimum or maximum of two indices: one end follows from the bounds of either."""
    if name == "minimum":
        return _extreme(minimum, a[0], b[0]), _either(minimum, a[1], b[1])
    return _either(maximum, a[0], b[0]), _extreme(maximum, a[1], b[1])


def _extreme(choose: object, a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else choose(a, b)  # type: ignore[operator] # minimum or maximum


def _either(choose: object, a: Size | None, b: Size | None) -> Size | None:
    return (a if b is None else b) if a is None or b is None else choose(a, b)  # type: ignore[operator] # minimum or maximum


def _is_at_least(x: Index, least: int) -> bool:
    low, _ = interval(x)
    return low is not None and is_at_least(low, least)


def is_at_least(size: Size, least: Size) -> bool:
    """Whether it is proved that size >= least."""
    return proves(lambda: size >= least)


def is_within(ends: Interval, size: Size) -> bool:
    """Whether it is proved that an index of these bounds is within a non-empty dimension of `size`."""
    low, high = ends
    if low is None or high is None:
        return False
    return (is_at_least(low, 0) or is_at_least(low, size - 1)) and (is_at_least(size - 1, high) or is_at_least(0, high))


def out_of_bounds(x: Index, size: Size) -> bool:
    """Whether it is proved that an index is out of bounds in some iteration."""
    if not all(not isinstance(v, Atom) and is_at_least(v.extent, 1) for v in x.terms):
        return False
    low, high = interval(x)
    return (low is not None and is_at_least(-1, low)) or (high is not None and is_at_least(high, size))


@dataclass(frozen=True)
class Affine:
    """An index as `expr`, an affine expression of the loops, plus `offset`."""

    expr: ir.AffineExpr
    offset: Size


def affine(x: Index, loops: Mapping[Var, int]) -> Affine | None:
    """An index as an affine expression; None if it has no such form. Needs an ambient context.

    Args:
      loops: the position of each loop.
    """
    total: ir.AffineExpr = ir.AffineExpr.get_constant(0)
    for v, c in sorted(x.terms.items(), key=lambda term: loops.get(term[0], -1)):
        found = _affine_atom(v, loops) if isinstance(v, Atom) else ir.AffineExpr.get_dim(loops[v])
        if found is None or isinstance(c, Dim):
            return None
        total = total + found * c
    return Affine(total, x.const)


def is_loop(x: ir.AffineExpr, rank: int) -> bool:
    """Whether an affine expression, folded by MLIR, is one of `rank` loops."""
    (folded,) = ir.AffineMap.get(rank, 0, [x]).results
    return isinstance(folded, ir.AffineDimExpr)


def _affine_atom(atom: Atom, loops: Mapping[Var, int]) -> ir.AffineExpr | None:
    if atom.operation not in ("floor_divide", "floor_mod"):
        return None
    divisor, found = size_in(atom.operands[1]), affine(atom.operands[0], loops)
    if found is None or not isinstance(divisor, int) or divisor <= 0 or isinstance(found.offset, Dim):
        return None
    combine = ir.AffineExpr.get_floor_div if atom.operation == "floor_divide" else ir.AffineExpr.get_mod
    return combine(found.expr + found.offset, divisor)


# ---- conditions


def conjuncts(x: Expr) -> list[Expr]:
    """The conditions whose conjunction is a condition."""
    if isinstance(x, Operation) and x.name == "and":
        return [c for operand in x.operands for c in conjuncts(operand)]
    return [x]


def constraints(x: Expr) -> list[Index] | None:
    """The indices that must all be at least 0 for a comparison of indices to hold; None for another condition."""
    if not isinstance(x, Compare) or x.name == "ne":
        return None
    left, right = map(linear, x.operands)
    if left is None or right is None:
        return None
    below, above = right - left, left - right
    return {"lt": [below - 1], "le": [below], "gt": [above - 1], "ge": [above], "eq": [below, above]}[x.name]


def always_holds(x: Expr) -> bool:
    """Whether a comparison of indices is proved for all iterations."""
    found = constraints(x)
    return found is not None and all(_is_at_least(c, 0) for c in found)
