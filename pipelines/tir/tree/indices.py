"""Index arithmetic of blocks: converts values of type index to an `Index` of loop variables and iterators, and back.

`Index` is linear. A quotient or remainder that is not linear becomes a variable (`Divided`), which equals every other variable of the same
index and divisor; substitution rebuilds it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import gcd
from typing import Any

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import FAR, Index, Nonlinear, Var, affine_index, of_terms, weighted
from relayc.pipelines.emission.sizes import size_value
from relayc.symbolic import Dim, Size, bounds, exact, maximum, minimum, proves

QUOTIENT, REMAINDER = "quotient", "remainder"


class Divided(Nonlinear):
    """The quotient or remainder of the floor division of an index by a positive size, where it is not linear."""

    def __init__(self, kind: str, index: Index, divisor: Size) -> None:
        low, high = index.bounds()
        ends = (low // divisor, high // divisor) if kind == QUOTIENT else (0, divisor - 1)
        super().__init__(*ends, (kind, index.key, divisor))
        self.kind, self.index, self.divisor = kind, index, divisor

    def __str__(self) -> str:
        return f"({self.index}) {'//' if self.kind == QUOTIENT else '%'} {self.divisor}"


class Extremal(Nonlinear):
    """The minimum or maximum of two indices whose order is not known."""

    def __init__(self, kind: str, a: Index, b: Index) -> None:
        (low, high), (other_low, other_high) = a.bounds(), b.bounds()
        pick = minimum if kind == "min" else maximum
        super().__init__(pick(low, other_low), pick(high, other_high), (kind, frozenset((a.key, b.key))))
        self.kind, self.a, self.b = kind, a, b

    def __str__(self) -> str:
        return f"{self.kind}({self.a}, {self.b})"


def divide(index: Index, divisor: Size) -> tuple[Index, Index]:
    """Quotient and remainder of the floor division by a positive size."""
    if index.is_constant:
        quotient = index.const // divisor
        return Index(quotient), Index(index.const - quotient * divisor)
    found = index.split(divisor) or _divided_by_parts(index, divisor)
    if found is not None:
        return found
    whole = {v: times for v, c in index.terms.items() if (times := exact(c, divisor)) is not None}
    if whole and len(whole) < len(index.terms):
        rest = Index(index.const, {v: c for v, c in index.terms.items() if v not in whole})
        parts, left = divide(rest, divisor)
        return Index(0, whole) + parts, left
    return Index.of(Divided(QUOTIENT, index, divisor)), Index.of(Divided(REMAINDER, index, divisor))


def _divided_by_parts(index: Index, divisor: Size) -> tuple[Index, Index] | None:
    """`divide` for an index that is a multiple of g plus a rest in [0, g), where g divides the divisor: (16 i + j) // 32 is i // 2."""
    if not isinstance(divisor, int) or not isinstance(index.const, int):
        return None
    for part in sorted({gcd(c, divisor) for c in index.terms.values() if isinstance(c, int)} - {1, divisor}):
        whole = {v: c // part for v, c in index.terms.items() if isinstance(c, int) and c % part == 0}
        rest = Index(index.const % part, {v: c for v, c in index.terms.items() if v not in whole})
        if rest.is_within(0, part - 1):
            quotient, left = divide(Index(index.const // part, whole), divisor // part)
            return quotient, left * part + rest
    return None


def folded(index: Index) -> Index:
    """Replaces divisor * quotient + remainder of the same division by its dividend."""
    for var, factor in index.terms.items():
        if isinstance(var, Divided) and var.kind == REMAINDER:
            quotient, whole = Divided(QUOTIENT, var.index, var.divisor), factor * var.divisor
            if quotient in index.terms and index.terms[quotient] == whole:
                return folded(index - Index(0, {var: factor, quotient: whole}) + var.index * factor)
    return index


def together(index: Index) -> Index:
    """A folded index with divisions of a quotient as one division: c (i // c % d) + i % c is i % (c d), and i // c // d is i // (c d)."""
    index = folded(index)
    for var, factor in index.terms.items():
        if not isinstance(var, Divided):
            continue
        if var.kind == QUOTIENT:
            inner = next(iter(var.index.terms), None)
            if isinstance(inner, Divided) and inner.kind == QUOTIENT and equal(var.index, Index.of(inner)):
                found, _ = divide(inner.index, inner.divisor * var.divisor)
                return together(index - Index(0, {var: factor}) + found * factor)
            continue
        quotient = Index.of(Divided(QUOTIENT, var.index, var.divisor))
        for other, times in index.terms.items():
            if not isinstance(other, Divided) or other.kind != REMAINDER or times != factor * var.divisor:
                continue
            if equal(other.index, quotient):
                _, found = divide(var.index, var.divisor * other.divisor)
                return together(index - Index(0, {var: factor, other: times}) + found * factor)
    return index


def smallest(a: Index, b: Index) -> Index:
    """The smaller of two indices."""
    if a.is_constant and b.is_constant:
        return Index(minimum(a.const, b.const))
    low, high = (a - b).bounds()
    return a if proves(lambda: high <= 0) else b if proves(lambda: low >= 0) else Index.of(Extremal("min", a, b))


def largest(a: Index, b: Index) -> Index:
    """The larger of two indices."""
    if a.is_constant and b.is_constant:
        return Index(maximum(a.const, b.const))
    low, high = (a - b).bounds()
    return a if proves(lambda: low >= 0) else b if proves(lambda: high <= 0) else Index.of(Extremal("max", a, b))


def substitute(index: Index, point: Mapping[Var, Index]) -> Index:
    """Replaces the variables of an index that `point` contains; returns the same object if nothing changes."""
    if not index.terms:
        return index
    if len(index.terms) == 1 and index.terms.get(var := next(iter(index.terms))) == 1 and index.const == 0:
        return _replaced(var, point) or index
    found = [_replaced(var, point) for var in index.terms]
    if not any(found):
        return index
    return weighted([new or var for new, var in zip(found, index.terms, strict=True)], index.terms.values(), index.const)


def _replaced(var: Var, point: Mapping[Var, Index]) -> Index | None:
    """The replacement of a variable; None if it stays."""
    found = point.get(var)
    if found is None and isinstance(var, Divided):
        made = divide(substitute(var.index, point), var.divisor)
        return made[0] if var.kind == QUOTIENT else made[1]
    if found is None and isinstance(var, Extremal):
        pick = smallest if var.kind == "min" else largest
        return pick(substitute(var.a, point), substitute(var.b, point))
    return found


def variables(index: Index) -> set[Var]:
    """The loop variables and iterators of an index, including variables inside quotients and remainders."""
    found: set[Var] = set()
    for var in index.terms:
        if isinstance(var, Divided):
            found |= variables(var.index)
        elif isinstance(var, Extremal):
            found |= variables(var.a) | variables(var.b)
        else:
            found.add(var)
    return found


def equal(a: Index, b: Index) -> bool:
    """Whether two indices are the same expression."""
    return a.key == b.key


class Reader:
    """Converts values of type index to indices.

    Args:
      known: the indices of values that are not computed from others: loop variables and iterators.
      sizes: values that are sizes: the symbols of the function.
    """

    def __init__(self, known: Mapping[ir.Value, Index], sizes: Mapping[ir.Value, Size]) -> None:
        self._found: dict[ir.Value, Index] = {value: Index(size) for value, size in sizes.items()} | dict(known)

    def read(self, value: ir.Value) -> Index:
        """The index that a value computes. A value loaded from memory, or computed in another way, is a new variable."""
        if value not in self._found:
            self._found[value] = self._computed(value)
        return self._found[value]

    def define(self, value: ir.Value, index: Index) -> None:
        """Sets the index of a value that is not computed from others."""
        self._found[value] = index

    def size(self, value: ir.Value) -> Size:
        """The size that a value computes. Raises ValueError if it depends on more than symbols."""
        index = self.read(value)
        if index.terms:
            raise ValueError(f"expected a size, a number or an expression over symbols, found {index}")
        return index.const

    def _computed(self, value: ir.Value) -> Index:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return opaque(value)
        op = owner.operation
        if op.name == "arith.constant":
            return Index(ir.IntegerAttr(op.attributes["value"]).value)
        if op.name == "affine.apply":
            amap = ir.AffineMapAttr(op.attributes["map"]).value
            operands = [self.read(v) for v in op.operands]
            return canonical(affine_index(amap.results[0], operands[: amap.n_dims], divide, operands[amap.n_dims :]))
        made = computed(op.name, list(map(self.read, op.operands))) if op.name in _RULES else None
        return opaque(value) if made is None else made


def opaque(value: ir.Value) -> Index:
    """A value of type index about which nothing is known."""
    return Index.of(Var(-FAR, FAR, value, name="computed"))


def _product(a: Index, b: Index) -> Index | None:
    if a.is_constant:
        return b * a.const
    return a * b.const if b.is_constant else None


def _positive(index: Index) -> bool:
    # A symbol may be 0, but a division by an extent is inside loops of that extent, which then do not run.
    return index.is_constant and index.const != 0 and bounds(index.const)[0] >= 0


def _floor(a: Index, b: Index) -> Index | None:
    return divide(a, b.const)[0] if _positive(b) else None


def _modulo(a: Index, b: Index) -> Index | None:
    return divide(a, b.const)[1] if _positive(b) else None


def _ceiling(a: Index, b: Index) -> Index | None:
    return divide(a + (b.const - 1), b.const)[0] if _positive(b) else None


def _of_natural(rule: Callable[[Index, Index], Index | None]) -> Callable[[Index, Index], Index | None]:
    """Restricts a rule of floor division to nonnegative dividends, where a truncating or unsigned operation agrees with it."""

    def checked(a: Index, b: Index) -> Index | None:
        low, _ = a.bounds()
        return rule(a, b) if proves(lambda: low >= 0) else None

    return checked


_RULES: dict[str, Callable[[Index, Index], Index | None]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": _product,
    "arith.floordivsi": _floor,
    "arith.ceildivsi": _ceiling,
    "arith.divui": _of_natural(_floor),
    "arith.divsi": _of_natural(_floor),
    "arith.remui": _of_natural(_modulo),
    "arith.remsi": _of_natural(_modulo),
    "arith.minsi": smallest,
    "arith.maxsi": largest,
}


def computed(name: str, operands: Sequence[Any]) -> Index | None:
    """The index that an operation computes from indices; None if an operand is not an index, or there is no rule for the operation."""
    rule = _RULES.get(name)
    return rule(*operands) if rule is not None and all(isinstance(i, Index) for i in operands) else None


def write(index: Index) -> ir.Value:
    """A value of type index at the ambient insertion point; every variable of the index must have its value."""
    return Writer()(index)


def canonical(index: Index) -> Index:
    """The canonical form of an index, independent of how it was computed: equal indices are written and read the same.

    Quotient and remainder of one division are combined where possible. Terms are ordered by increasing factor, terms of the same factor by
    decreasing variable name; the text lists them from the last one on.
    """
    terms = index.terms
    if not terms:
        return index
    if any(isinstance(var, (Divided, Extremal)) for var in terms):
        made = {_canonical(var): factor for var, factor in terms.items()}
        same = all(a is b for a, b in zip(made, terms, strict=True))
        index = folded(index if same else of_terms(index.const, made))
        terms = index.terms
    if len(terms) < 2:
        return index
    found = list(terms.items())
    ordered = sorted(found, key=_rank, reverse=True)
    return index if all(a is b for a, b in zip(found, ordered, strict=True)) else of_terms(index.const, dict(ordered))


def _canonical(var: Var) -> Var:
    if isinstance(var, Divided):
        found = canonical(var.index)
        return var if found is var.index else Divided(var.kind, found, var.divisor)
    if isinstance(var, Extremal):
        return Extremal(var.kind, *sorted((canonical(var.a), canonical(var.b)), key=_order))
    return var


def _rank(term: tuple[Var, Size]) -> tuple:
    """Sort key of a term."""
    var, factor = term
    size = (0, 0, str(factor)) if isinstance(factor, Dim) else (1, -abs(factor), "")
    return size, _name(var)


def _name(var: Var) -> tuple:
    if isinstance(var, Divided):
        return 1, var.kind, _order(var.index), str(var.divisor)
    if isinstance(var, Extremal):
        return 2, var.kind, _order(var.a), _order(var.b)
    return 0, *_parts(var.name)


def _order(index: Index) -> tuple:
    """Sort key of an index in canonical form."""
    return tuple(map(_rank, index.terms.items())), str(index.const)


@lru_cache(maxsize=4096)
def _parts(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key of a name: numbers in it compare by value."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name))


class Writer:
    """Writes indices at one insertion point, each once."""

    def __init__(self) -> None:
        self._written: dict[tuple, ir.Value] = {}

    def __call__(self, index: Index) -> ir.Value:
        """See `write`."""
        found = self._written.get(index.key)
        if found is None:
            terms = reversed(canonical(index).terms.items())
            known = {v if v.value is not None else Var(v.low, v.high, self._variable(v)): c for v, c in terms}
            found = self._written[index.key] = emit.materialize(of_terms(index.const, known))
        return found

    def _variable(self, var: Var) -> ir.Value:
        if isinstance(var, Divided):
            return self._divided(var)
        if isinstance(var, Extremal):
            return emit.arith(f"{var.kind}si", self(var.a), self(var.b))
        return var.value

    def _divided(self, var: Divided) -> ir.Value:
        operand = self(var.index)
        low, _ = var.index.bounds()
        if isinstance(var.divisor, Dim):
            natural = proves(lambda: low >= 0)
            if var.kind == REMAINDER and not natural:
                quotient = emit.arith("floordivsi", operand, size_value(var.divisor))
                return emit.arith("subi", operand, emit.arith("muli", quotient, size_value(var.divisor)))
            name = ("divui" if natural else "floordivsi") if var.kind == QUOTIENT else "remui"
            return emit.arith(name, operand, size_value(var.divisor))
        d0 = ir.AffineExpr.get_dim(0)
        expr = ir.AffineExpr.get_floor_div(d0, var.divisor) if var.kind == QUOTIENT else ir.AffineExpr.get_mod(d0, var.divisor)
        amap = ir.AffineMapAttr.get(ir.AffineMap.get(1, 0, [expr]))
        return emit.create("affine.apply", [ir.IndexType.get()], [operand], {"map": amap})
