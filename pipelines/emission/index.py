"""Index expressions: integer linear combinations of loop variables, with ranges; the lane of a vector is one of the variables.

Coefficients and bounds may be symbolic sizes (relayc.symbolic). Schedules evaluate tensors at an `Index` per dimension. Its form determines
the memory access: a lane coefficient of 0 is one element for all lanes, 1 a contiguous vector, any other a strided one. Ranges let
division, remainder and bounds checks fold.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from relayc.dialects.mlir import ir
from relayc.symbolic import Dim, Size, bounds, ceil_div, divided, divisor, exact, proves

FAR = 1 << 62
"""A bound beyond all indices."""


@dataclass(eq=False)
class Var:
    """A loop variable, or any other index value.

    Attributes:
      value: its SSA value of type index (a vector of index for `is_vector`); None for the lane and during analysis.
      low, high: inclusive bounds.
      step: every value is a multiple of it.
    """

    low: Size
    high: Size
    value: Any = None
    step: Size = 1
    is_vector: bool = False
    name: str = "i"

    @classmethod
    def below(cls, extent: Size, value: Any = None, step: Size = 1, name: str = "i") -> "Var":
        """A variable of the numbers from 0 on, of which there are `extent`."""
        return cls(0, extent - 1, value, step, name=name)

    @property
    def extent(self) -> Size:
        """Iterations of a loop variable that starts at 0."""
        return self.high + 1

    def __str__(self) -> str:
        return self.name


class Nonlinear(Var):
    """A value that is no linear combination of variables. It equals the others of its class with the same `identity`.

    Args:
      identity: the operation and its operands.
    """

    def __init__(self, low: Size, high: Size, identity: tuple, name: str = "i") -> None:
        super().__init__(low, high, name=name)
        self.identity = identity
        self._hash = hash(identity)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.identity == other.identity

    def __hash__(self) -> int:
        return self._hash


class Index:
    """const + sum(coefficient * variable)."""

    __slots__ = ("_key", "const", "terms")

    def __init__(self, const: Size = 0, terms: Mapping[Var, Size] | None = None) -> None:
        self._key: tuple | None = None
        self.const = const
        self.terms: dict[Var, Size] = _without_zeros(terms) if terms else _NO_TERMS

    @staticmethod
    def of(x: "Index | Var | Size") -> "Index":
        if isinstance(x, Index):
            return x
        return of_terms(0, {x: 1}) if isinstance(x, Var) else Index(x)

    def __add__(self, other: "Index | Var | Size") -> "Index":
        if isinstance(other, Index):
            if not other.terms:
                return of_terms(self.const + other.const, self.terms)
            if not self.terms:
                return of_terms(self.const + other.const, other.terms)
            return of_terms(self.const + other.const, _summed(dict(self.terms), other.terms))
        if isinstance(other, Var):
            return of_terms(self.const, _summed(dict(self.terms), {other: 1}))
        return of_terms(self.const + other, self.terms)

    def __sub__(self, other: "Index | Var | Size") -> "Index":
        if isinstance(other, Index):
            return of_terms(self.const - other.const, _summed(dict(self.terms), other.terms, -1) if other.terms else self.terms)
        return self + (Index.of(other) * -1 if isinstance(other, Var) else -other)

    def __mul__(self, factor: Size) -> "Index":
        if not self.terms:
            return Index(self.const * factor)
        if not isinstance(factor, Dim):
            if factor == 1:
                return self
            if factor == 0:
                return Index()
        return of_terms(self.const * factor, {v: c * factor for v, c in self.terms.items()})

    @property
    def key(self) -> tuple:
        """Equal for equal expressions; it keeps the variables alive, so that no later variable gets the identity of an earlier one."""
        if self._key is None:
            self._key = (self.const, frozenset(self.terms.items()))
        return self._key

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def coefficient(self, var: Var | None) -> Size:
        return 0 if var is None else self.terms.get(var, 0)

    def without(self, var: Var) -> "Index":
        """The index with a variable set to 0."""
        if var not in self.terms:
            return self
        return of_terms(self.const, {v: c for v, c in self.terms.items() if v != var})

    def bounds(self) -> tuple[Size, Size]:
        """Inclusive bounds of its value."""
        low = high = self.const
        for v, c in self.terms.items():
            if isinstance(c, int):
                if c > 0:
                    low, high = low + c * v.low, high + c * v.high
                else:
                    low, high = low + c * v.high, high + c * v.low
                continue
            ends = (c * v.low, c * v.high)
            least, most = bounds(c)
            if least < 0:
                if most > 0:  # unknown sign
                    return -FAR, FAR
                ends = ends[::-1]
            low, high = low + ends[0], high + ends[1]
        return low, high

    @property
    def divisor(self) -> int:
        """A number that divides its value for all values of its variables; 0 if it is always 0."""
        return gcd(divisor(self.const), *(divisor(c) * divisor(v.step) for v, c in self.terms.items()))

    def is_within(self, low: Size, high: Size) -> bool:
        """Whether it is proved that low <= its value <= high."""
        least, most = self.bounds()
        return proves(lambda: low <= least and most <= high)

    def at(self, point: "Mapping[Var, Index]") -> "Index":
        """Substitutes the variables by `point`; variables without an index there are 0."""
        const = self.const
        terms: dict[Var, Size] = {}
        for v, c in self.terms.items():
            if v in point:
                found = point[v]
                const += found.const * c
                _summed(terms, found.terms, c)
        return of_terms(const, terms)

    def split(self, divisor: Size) -> "tuple[Index, Index] | None":
        """(quotient, remainder) of floor division by a positive `divisor` if both are linear, otherwise None."""
        whole_const, const = divided(self.const, divisor) if isinstance(divisor, Dim) else (0, self.const)
        wholes: dict[Var, Size] = {}
        others: dict[Var, Size] = {}
        for v, c in self.terms.items():
            whole = exact(c, divisor)
            if whole is not None:
                wholes[v] = whole
            else:
                others[v] = c
        quotient, rest = of_terms(whole_const, wholes), of_terms(const, others)
        low, high = rest.bounds()
        if isinstance(divisor, int) and isinstance(low, int) and isinstance(high, int):
            if low // divisor == high // divisor:
                shift = low // divisor
                return quotient + shift, rest - shift * divisor
        elif proves(lambda: low >= 0 and high < divisor):
            return quotient, rest
        return None

    def has_vector(self) -> bool:
        """Whether a variable other than the lane holds a vector, so that the value varies irregularly by lane."""
        return any(v.is_vector for v in self.terms)

    def __repr__(self) -> str:
        return " + ".join([f"{c}*{v}" for v, c in self.terms.items()] + [str(self.const)])


_NO_TERMS: dict[Var, Size] = {}


def _without_zeros(terms: Mapping[Var, Size]) -> dict[Var, Size]:
    # Comparing an expression is a call: most terms have a number, and zeros are rare.
    return {v: c for v, c in terms.items() if isinstance(c, Dim) or c}


def of_terms(const: Size, terms: dict[Var, Size]) -> Index:
    """An index of nonzero terms, of which it takes ownership."""
    made = Index.__new__(Index)
    made._key, made.const, made.terms = None, const, terms
    return made


def _summed(terms: dict[Var, Size], others: Mapping[Var, Size], factor: Size = 1) -> dict[Var, Size]:
    """Adds a nonzero multiple of terms to others in place; terms that become 0 are removed."""
    for v, c in others.items():
        if factor != 1:
            c = c * factor
        known = terms.get(v)
        if known is None:
            terms[v] = c
        elif (total := known + c) == 0:
            del terms[v]
        else:
            terms[v] = total
    return terms


def even_parts(extent: int, most: int) -> list[int]:
    """Splits `extent` into the fewest parts of at most `most`, whose sizes differ by at most one, larger ones first."""
    return [size for size, count in even_runs(extent, most) for _ in range(count)]


def even_runs(extent: int, most: int) -> list[tuple[int, int]]:
    """The parts of `even_parts` as (size, number of parts)."""
    count = ceil_div(extent, most)
    base, larger = divmod(extent, count) if count else (0, 0)
    return [(size, n) for size, n in ((base + 1, larger), (base, count - larger)) if n]


def linearize(indices: Iterable[Index], shape: Iterable[Size]) -> Index:
    """Row-major offset of an element."""
    const: Size = 0
    terms: dict[Var, Size] = {}
    for index, extent in zip(indices, shape, strict=True):
        const = const * extent + index.const
        terms = _summed({v: c * extent for v, c in terms.items()}, index.terms)
    return Index(const, terms)


def weighted(indices: Iterable[Index | Var], weights: Iterable[Size], const: Size = 0) -> Index:
    """The sum of indices times weights, and a number."""
    terms: dict[Var, Size] = {}
    for index, weight in zip(indices, weights, strict=True):
        if isinstance(index, Var):
            _summed(terms, {index: weight})
            continue
        const += index.const * weight
        if index.terms and (isinstance(weight, Dim) or weight):
            _summed(terms, index.terms, weight)
    return of_terms(const, terms)


def strides_of(shape: Sequence[Size]) -> list[Size]:
    """Row-major strides, in elements."""
    strides: list[Size] = []
    step: Size = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


def reshape(
    indices: Sequence[Index], shape: Sequence[Size], target: Sequence[Size], split: Callable[[Index, Size], tuple[Index, Index]]
) -> list[Index]:
    """Indices of an element of a tensor of `shape` after a row-major reshape to `target`.

    Common leading and trailing dimensions keep their indices; `split` computes quotient and remainder for the dimensions between.
    """
    shape, target = list(shape), list(target)
    limit, front, back = min(len(shape), len(target)), 0, 0
    while front < limit and shape[front] == target[front]:
        front += 1
    while back < limit - front and shape[-1 - back] == target[-1 - back]:
        back += 1
    end, target_end = len(shape) - back, len(target) - back
    offset = linearize(indices[front:end], shape[front:end])
    middle = []
    extents = target[front:target_end]
    for extent, stride in zip(extents, strides_of(extents), strict=True):
        quotient, offset = split(offset, stride) if stride != 1 else (offset, Index())
        middle.append(Index() if extent == 1 else quotient)
    return [*indices[:front], *middle, *indices[end:]]


def affine_index(
    e: ir.AffineExpr, point: Sequence[Index], split: Callable[[Index, Size], tuple[Index, Index]], symbols: Sequence[Index] = ()
) -> Index:
    """The value of an affine expression at a point; `split` computes quotient and remainder."""
    if isinstance(e, ir.AffineDimExpr):
        return point[e.position]
    if isinstance(e, ir.AffineSymbolExpr):
        return symbols[e.position]
    if isinstance(e, ir.AffineConstantExpr):
        return Index(e.value)
    left, right = (affine_index(part, point, split, symbols) for part in (e.lhs, e.rhs))
    if isinstance(e, ir.AffineAddExpr):
        return left + right
    if isinstance(e, ir.AffineMulExpr):
        return left * right.const if right.is_constant else right * left.const
    if isinstance(e, ir.AffineCeilDivExpr):
        left += right.const - 1
    return split(left, right.const)[isinstance(e, ir.AffineModExpr)]


def affine_value(e: ir.AffineExpr, dims: Sequence[Any] | Mapping[int, Any]) -> Any:
    """The value of an affine expression of dimensions, for numbers or arrays by their positions."""
    if isinstance(e, ir.AffineDimExpr):
        return dims[e.position]
    if isinstance(e, ir.AffineConstantExpr):
        return e.value
    left, right = (affine_value(part, dims) for part in (e.lhs, e.rhs))
    if isinstance(e, ir.AffineAddExpr):
        return left + right
    if isinstance(e, ir.AffineMulExpr):
        return left * right
    if isinstance(e, ir.AffineFloorDivExpr):
        return left // right
    return -(-left // right) if isinstance(e, ir.AffineCeilDivExpr) else left % right
