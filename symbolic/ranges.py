"""The known ranges of symbols, and the bounds of expressions that follow from them."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from relayc.symbolic.division import quotient
from relayc.symbolic.expressions import Atom, Dim, Extreme, Floor, Monomial, Size, Terms, bound, bounds, symbols_of
from relayc.symbolic.values import evaluate

FAR = (1 << 31) - 1
"""The largest size of a symbol without a known range."""


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a symbol, and the size to choose by."""

    low: int = 0
    high: int = FAR
    hint: int = 128

    @property
    def typical(self) -> int:
        """The hint, within the bounds."""
        return max(self.low, min(self.high, self.hint))


_REMEMBERED = 1 << 16
"""Expressions for which a Ranges caches results."""


class Ranges(Mapping[str, Range]):
    """The ranges of symbols by name; the default range applies to all other symbols. `with ranges:` activates them for this thread."""

    def __init__(self, ranges: Mapping[str, Range] | None = None) -> None:
        self._ranges = dict(ranges or {})
        self._atoms: dict[Atom, tuple[int, int]] = {}
        self._bounds: dict[tuple[Dim, bool], int] = {}
        self._positive: dict[tuple[Size, bool], bool | None] = {}
        self._quotients: dict[tuple[Size, Size], Size] = {}
        self._times: dict[tuple[Atom, Floor], int | None] = {}
        self._shifted: dict[Monomial, list[tuple[Monomial, int, int]]] = {}
        self.memo: dict[object, object] = {}
        """Cache of results under these ranges. Results of a program may refer to it, because both are freed together."""

    def __getitem__(self, name: str) -> Range:
        return self._ranges[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def of(self, name: str) -> Range:
        """The known range of a symbol."""
        return self._ranges.get(name, _DEFAULT)

    def bound(self, dim: Dim, upper: bool) -> int:
        """An inclusive bound of an expression."""
        found = self._bounds.get((dim, upper))
        if found is None:
            self.trim()
            found = self._bounds[dim, upper] = _bound_of(dim, self, upper)
        return found

    def atom_bounds(self, atom: Atom) -> tuple[int, int]:
        """Inclusive bounds of an atom."""
        found = self._atoms.get(atom)
        if found is None:
            found = self._atoms[atom] = _atom_bounds(atom, self)
        return found

    def is_positive(self, size: Size, strict: bool) -> bool | None:
        """Whether a size is above 0, or at least 0 if not `strict`: True for all values of its symbols, False for none, None if neither is
        proved."""
        if isinstance(size, int):
            return size > 0 if strict else size >= 0
        if (size, strict) not in self._positive:
            self.trim()
            # A statement that fails for all samples needs no proof.
            samples = self._samples(size)
            least, most = min(samples), max(samples)
            holds: bool | None = None
            if least + (not strict) > 0 and self.bound(size, False) + (not strict) > 0:
                holds = True
            elif most - strict < 0 and self.bound(size, True) - strict < 0:
                holds = False
            self._positive[size, strict] = holds
        return self._positive[size, strict]

    def quotient(self, num: Size, den: Size) -> Size:
        """floor(num / den) in normal form, of which one is an expression; den > 0."""
        key = num, den
        found = self._quotients.get(key)
        if found is None:
            self.trim()
            found = self._quotients[key] = quotient(num, den)
        return found

    def times(self, atom: Atom, other: Floor) -> int | None:
        """The k for which `atom` is at most k times a coarser division: 4 for (n + 1)//2 and (n + 7)//8. None if there is none."""
        key = atom, other
        if key not in self._times:
            self.trim()
            self._times[key] = _times(atom, other)
        return self._times[key]

    def shifted(self, m: Monomial) -> list[tuple[Monomial, int, int]]:
        """A monomial as a sum of products of what its atoms are above their least values: their atoms, coefficients and largest values."""
        found = self._shifted.get(m)
        if found is None:
            self.trim()
            parts: dict[Monomial, tuple[int, int]] = {(): (1, 1)}
            for atom in m:
                low, high = self.atom_bounds(atom)
                grown = {(*part, atom): (value, most * (high - low)) for part, (value, most) in parts.items()}
                for part, (value, most) in parts.items() if low else ():
                    grown[part] = grown.get(part, (0, most))[0] + value * low, most
                parts = grown
            found = self._shifted[m] = [(part, value, most) for part, (value, most) in parts.items()]
        return found

    def _samples(self, dim: Dim) -> list[int]:
        """Values of an expression: for typical, least and largest symbols."""
        known = {name: self.of(name) for name in symbols_of(dim)}
        found = []
        for pick in (lambda r: r.typical, lambda r: r.low, lambda r: r.high):
            found.append(evaluate(dim, {name: pick(r) for name, r in known.items()}))
        return found

    def trim(self) -> None:
        """Clears the caches if they have become large."""
        kept: tuple[dict[Any, Any], ...] = self._atoms, self._bounds, self._positive, self._quotients, self._times, self._shifted, self.memo
        if sum(map(len, kept)) > _REMEMBERED:
            for found in kept:
                found.clear()

    def __enter__(self) -> "Ranges":
        _HOLDING.set((*_HOLDING.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _HOLDING.set(_HOLDING.get()[:-1])

    @property
    def is_of_program(self) -> bool:
        """Whether the ranges were activated explicitly; the default ones last as long as the process."""
        return self is not _NOTHING_KNOWN

    @staticmethod
    def current() -> "Ranges":
        """The active ranges."""
        return _HOLDING.get()[-1]


_DEFAULT = Range()
_NOTHING_KNOWN = Ranges()
_HOLDING: ContextVar[tuple[Ranges, ...]] = ContextVar("relayc_ranges", default=(_NOTHING_KNOWN,))
Dim.holding = _HOLDING  # type: ignore[assignment] # Ranges are what is known


def _bound_of(dim: Dim, ranges: Ranges, upper: bool) -> int:
    """The best bound of an expression and of relaxed ones. Of several relaxations only that of the best immediate bound is relaxed further:
    to follow all would ask 2^n questions about a sum of n minima and maxima."""
    found = _immediate_bound(dim, ranges, upper)
    left, scale = dim, 1
    # Usually only the sign is needed.
    while (found > 0) if upper else (found < 0):
        choices = []
        for relaxed, divisor in _relaxed(left, upper):
            best = _immediate_bound(relaxed, ranges, upper) if isinstance(relaxed, Dim) else relaxed
            choices.append((best if upper else -best, relaxed, divisor * scale))
        if not choices:
            break
        best, chosen, scale = min(choices, key=lambda choice: choice[0])
        found = min(found, best // scale) if upper else max(found, -(best // scale))
        if not isinstance(chosen, Dim):
            break
        left = chosen
    return found


def _immediate_bound(dim: Dim, ranges: Ranges, upper: bool) -> int:
    found = _polynomial_bounds(dim, ranges)[upper]
    if (found <= 0) if upper else (found >= 0):
        return found
    product = _product_bound(dim, ranges, upper)
    return found if product is None else min(found, product) if upper else max(found, product)


def _polynomial_bounds(dim: Dim, ranges: Ranges) -> tuple[int, int]:
    if all(len(m) < 2 for m in dim.terms):
        low = high = dim.terms.get((), 0)
        for m, c in dim.terms.items():
            if m:
                least, most = ranges.atom_bounds(m[0])
                low += c * (least if c > 0 else most)
                high += c * (most if c > 0 else least)
        return low, high
    # Every atom is its lower bound and something that is not negative: then each monomial grows with each of these.
    shifted: dict[Monomial, tuple[int, int]] = {}
    for m, c in dim.terms.items():
        for part, value, most in ranges.shifted(m):
            before = shifted.get(part)
            shifted[part] = value * c + (before[0] if before else 0), most
    low = sum(c * most if c < 0 or not part else 0 for part, (c, most) in shifted.items())
    high = sum(c * most if c > 0 or not part else 0 for part, (c, most) in shifted.items())
    return low, high


def _product_bound(dim: Dim, ranges: Ranges, upper: bool) -> int | None:
    """A bound of a product: of the factors that all terms have, whose sign is known, and of what these factors leave."""
    if all(len(m) < 2 for m in dim.terms):
        return None
    first, *others = dim.terms
    common = list(first)
    for m in others:
        common = list(_both(common, m))
        if not common:
            return None
    low = high = 1
    for atom in common:
        ends = [end * other for end in (low, high) for other in ranges.atom_bounds(atom)]
        low, high = min(ends), max(ends)
    left: Terms = {_without(m, common): c for m, c in dim.terms.items()}
    if high <= 0:
        low, high, left = -high, -low, {m: -c for m, c in left.items()}
    if low < 0:
        return None
    rest = bound(Dim.make(left), upper)
    return max(rest * low, rest * high) if upper else min(rest * low, rest * high)


def _both(atoms: Iterable[Atom], m: Monomial) -> Iterator[Atom]:
    """Atoms that are factors of a monomial too, each as often as it is there."""
    left = list(m)
    for atom in atoms:
        if atom in left:
            left.remove(atom)
            yield atom


def _without(m: Monomial, factors: Iterable[Atom]) -> Monomial:
    left = list(m)
    for atom in factors:
        left.remove(atom)
    return tuple(left)


def _atom_bounds(atom: Atom, ranges: Ranges) -> tuple[int, int]:
    if isinstance(atom, str):
        known = ranges.of(atom)
        return known.low, known.high
    if isinstance(atom, Extreme):
        ends = [bounds(a) for a in atom.args]
        pick = min if atom.kind == "min" else max
        return pick(low for low, _ in ends), pick(high for _, high in ends)
    (low, high), (least, most) = bounds(atom.num), bounds(atom.den)
    least = max(least, 1)
    most = max(most, least)
    return min(low // least, low // most), max(high // least, high // most)


def _relaxed(dim: Dim, upper: bool) -> Iterator[tuple[Size, int]]:
    """Pairs of an expression and a number: the expression is at least (at most, if not `upper`) `dim` times the number, and lacks one of
    the divisions, minima or maxima of `dim`.

    A division is bounded by its numerator, which may cancel with other terms. The deepest atom is replaced first, so that it does not
    reappear.
    """
    atoms = [(m[0].depth, m, m[0]) for m in dim.terms if len(m) == 1 and not isinstance(m[0], str)]
    for _, m, atom in sorted(atoms, key=lambda entry: -entry[0]):
        c = dim.terms[m]
        if isinstance(atom, Floor) and isinstance(atom.den, int):
            scale = atom.den // math.gcd(atom.den, c)
            factor, rest = c * scale // atom.den, (dim - Dim({m: c})) * scale
            yield rest + (atom.num - (0 if (factor > 0) == upper else atom.den - 1)) * factor, scale
            return
        # max is at least each of its arguments, min at most each: one side only.
        if isinstance(atom, Extreme) and ((atom.kind == "max") == (c > 0)) != upper:
            rest = dim - Dim({m: c})
            yield from ((rest + arg * c, 1) for arg in atom.args)
            return
    coarser = _coarser(dim, upper)
    if coarser is not None:
        yield coarser, 1


def _coarser(dim: Dim, upper: bool) -> Size | None:
    """An expression that is at least `dim` (at most, if not `upper`), in which a product has a coarser division."""
    ranges, divisions = Ranges.current(), dict.fromkeys(a for n in dim.terms for a in n if isinstance(a, Floor))
    for m, c in dim.terms.items():
        if len(m) > 1 and (c > 0) == upper and all(ranges.atom_bounds(a)[0] >= 0 for a in m):
            for atom in m:
                for other in divisions:
                    if (times := ranges.times(atom, other)) is not None:
                        left = list(m)
                        left.remove(atom)
                        return dim + Dim({m: -c}) + Dim({tuple(sorted((*left, other), key=str)): c * times})
    return None


def _times(atom: Atom, other: Floor) -> int | None:
    num, den = (atom, 1) if isinstance(atom, str) else (atom.num, atom.den) if isinstance(atom, Floor) else (None, 0)
    if num is None or not (isinstance(den, int) and isinstance(other.den, int)) or other.den <= den or other.den % den:
        return None
    times = other.den // den
    # floor(x / (k d)) = floor(floor(x / d) / k) is at least (floor(x / d) - (k - 1)) / k.
    return times if other.num // den - (times - 1) == Dim({(atom,): 1}) else None


def guess(x: Size) -> int:
    """A representative number for a size: its value where every symbol has its hint, 1 at least where it can be.

    What is typical for one symbol may be too little for another: then a size of both would have no elements, or fewer.
    """
    if isinstance(x, int):
        return x
    ranges = Ranges.current()
    found = evaluate(x, {name: ranges.of(name).typical for name in symbols_of(x)})
    return found if found > 0 else max(found, min(1, bounds(x)[1]))
