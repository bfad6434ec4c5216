"""Quotients of expressions in normal form."""

import math
from typing import overload

from relayc.symbolic.expressions import Dim, Extreme, Floor, Monomial, Size, Terms, bounds, factors, proves, terms_of


def quotient(num: Size, den: Size) -> Size:
    """floor(num / den) in normal form, of which one is an expression; den > 0. `num // den` remembers it."""
    return _by_number(num, den) if isinstance(num, Dim) and isinstance(den, int) else _by_expression(num, den)


def _by_expression(num: Size, den: Size) -> Size:
    assert isinstance(den, Dim)
    found = exact(num, den)
    if found is not None:
        return found
    if proves(lambda: num >= 0 and num < den):
        return 0
    # Whole multiples come out: floor((a * den + rest) / den) = a + floor(rest / den).
    whole: Size = 0
    rest: Terms = {}
    for m, c in terms_of(num).items():
        multiple = exact(Dim.make({m: c}), den)
        if multiple is None:
            rest[m] = c
        else:
            whole = whole + multiple
    if whole != 0:
        return whole + Dim.make(rest) // den
    return Dim({(Floor(num, _without_one(num, den)),): 1})


def _without_one(num: Size, den: Dim) -> Size:
    """x of a divisor max(x, 1), as a quotient by x is the same where neither of the two folds; any other divisor as it is."""
    ((m, c), *others) = den.terms.items()
    if others or c != 1 or len(m) != 1 or not isinstance(m[0], Extreme) or m[0].kind != "max" or 1 not in m[0].args:
        return den
    left = [a for a in m[0].args if a != 1]
    inner = left[0] if len(left) == 1 else Dim({(Extreme("max", tuple(left)),): 1})
    return inner if num // inner == Dim({(Floor(num, inner),): 1}) else den


_MOST_TWICE = 16
"""Factors of a term up to which it may be written twice."""


def _nearest(m: Monomial, c: int, den: int) -> int:
    """c / den rounded, halves toward zero; of a term m with many factors only where it is whole. 3 x // 2 is x + x // 2: a chain of such
    sizes, each the x of the next, would have 2^n factors."""
    if c % den and factors(Dim({m: c})) > _MOST_TWICE:
        return 0
    return (abs(c) + (den - 1) // 2) // den * (1 if c > 0 else -1)


def _by_number(num: Dim, den: int) -> Size:
    if den == 1:
        return num
    if den <= 0:
        raise ZeroDivisionError(f"{num} divided by {den}")
    # Whole multiples are moved out of the division; the remainder has coefficients nearest to zero, and its first coefficient is positive.
    nearest = {m: _nearest(m, c, den) if m else c // den for m, c in num.terms.items()}
    whole = Dim.make(nearest)
    rest = Dim.make({m: c - nearest[m] * den for m, c in num.terms.items()})
    if isinstance(rest, int):
        return whole + rest // den
    # floor((g x + k) / (g d)) = floor((x + floor(k / g)) / d)
    common = math.gcd(den, *(c for m, c in rest.terms.items() if m))
    if common > 1:
        return whole + Dim.make({m: c // common for m, c in rest.terms.items()}) // (den // common)
    if max(((len(m), str(m)), c) for m, c in rest.terms.items())[1] < 0:
        # floor(-x / den) = -ceil(x / den)
        return whole - (den - 1 - rest) // den
    # floor((floor(a / b) + k) / c) = floor((a + k b) / (b c))
    atoms = [(m, c) for m, c in rest.terms.items() if m]
    inner = atoms[0][0][0]
    if len(atoms) == 1 and atoms[0][1] == 1 and len(atoms[0][0]) == 1 and isinstance(inner, Floor) and isinstance(inner.den, int):
        return whole + (inner.num + rest.terms.get((), 0) * inner.den) // (inner.den * den)
    low, high = bounds(rest)
    if low // den == high // den:
        return whole + low // den
    return whole + Dim({(Floor(rest, den),): 1})


@overload
def ceil_div(num: int, den: int) -> int: ...
@overload
def ceil_div(num: Size, den: Size) -> Size: ...
def ceil_div(num: Size, den: Size) -> Size:
    """The quotient rounded up; den > 0."""
    return -(-num // den)


def exact(num: Size, den: Size) -> Size | None:
    """num / den if it is a polynomial, otherwise None: division of leading terms. A symbolic den is assumed to be nonzero."""
    if isinstance(den, int):
        if isinstance(num, int):
            return num // den if den and num % den == 0 else None
        terms = terms_of(num)
        return Dim.make({m: c // den for m, c in terms.items()}) if den and all(c % den == 0 for c in terms.values()) else None
    lead, factor = max(den.terms.items(), key=_leading)
    found: Size = 0
    for _ in range(16):
        if num == 0:
            return found
        m, c = max(terms_of(num).items(), key=_leading)
        left = list(m)
        for atom in lead:
            if atom not in left:
                return None
            left.remove(atom)
        if c % factor:
            return None
        term = Dim.make({tuple(left): c // factor})
        found = found + term
        num = num - term * den
    return None


def divided(num: Size, den: Dim) -> tuple[Size, Size]:
    """Polynomials (quotient, rest) with num = quotient * den + rest, what is whole in the quotient: (3*n + 2, 2*n) gives (1, n + 2)."""
    lead, factor = max(den.terms.items(), key=_leading)
    quotient: Size = 0
    rest: Size = 0
    for _ in range(16):
        if num == 0:
            break
        m, c = max(terms_of(num).items(), key=_leading)
        part = exact(Dim.make({m: 1}), Dim({lead: 1}))
        if part is None:
            rest, num = rest + Dim.make({m: c}), num - Dim.make({m: c})
        else:
            left = Dim.make({m: c % factor})
            quotient, rest, num = quotient + part * (c // factor), rest + left, num - left - part * (c // factor) * den
    return quotient, rest + num


def _leading(term: tuple[Monomial, int]) -> tuple[int, str]:
    return len(term[0]), str(term[0])
