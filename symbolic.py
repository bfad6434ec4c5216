"""Symbolic sizes: integer expressions over named symbols, equal where their normal forms are.

A `Dim` behaves like the int it stands for as long as nobody asks what it is: arithmetic gives a Dim (an int where it is constant), `==`
says whether two expressions are the same, and an order is answered where the ranges of the symbols prove it and raises `Undecided`
elsewhere, so that no code decides by accident. `proves` asks without raising, and `guess` gives a representative size for choices that
are right either way.

An expression is a polynomial over atoms: symbols, floor divisions, minima and maxima. Its text is Python's (`2*n + 1`, `(n + 7)//8`,
`max(n, past)`) and `parse` reads it back. What is known of the symbols is a `Ranges`; `with ranges:` makes it hold.
"""

import ast
import contextvars
import keyword
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, overload

__all__ = [
    "FAR",
    "Dim",
    "Range",
    "Ranges",
    "Size",
    "Undecided",
    "bounds",
    "ceil_div",
    "divided",
    "evaluate",
    "evaluator",
    "exact",
    "guess",
    "is_name",
    "is_symbolic",
    "maximum",
    "minimum",
    "name_of",
    "parse",
    "proves",
    "substitute",
    "symbol",
    "symbols_of",
]

FAR = (1 << 31) - 1
"""The largest size of a symbol of which nothing else is known."""


class Undecided(Exception):
    """A question about a size that has one answer for some sizes and another one for others: its words and sizes."""

    def __str__(self) -> str:
        # Most are raised for an answer that is no, and never read.
        return " ".join(map(str, self.args))


class Floor:
    """floor(num / den) of a positive den."""

    __slots__ = ("_hash", "_text", "den", "num")

    def __init__(self, num: "Size", den: "Size") -> None:
        self.num = num
        self.den = den
        self._hash = hash((num, den))
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Floor) and self._hash == other._hash and self.num == other.num and self.den == other.den)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = f"{_factor(self.num)}//{_factor(self.den)}"
        return self._text

    def __repr__(self) -> str:
        return f"Floor(num={self.num}, den={self.den})"


class Extreme:
    """The smallest ("min") or largest ("max") of several sizes."""

    __slots__ = ("_hash", "_text", "args", "kind")

    def __init__(self, kind: str, args: tuple["Size", ...]) -> None:
        self.kind = kind
        self.args = args
        self._hash = hash((kind, args))
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Extreme) and self._hash == other._hash and self.kind == other.kind and self.args == other.args
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = f"{self.kind}({', '.join(map(str, self.args))})"
        return self._text

    def __repr__(self) -> str:
        return f"Extreme(kind={self.kind!r}, args={self.args})"


Atom: TypeAlias = str | Floor | Extreme
Monomial: TypeAlias = tuple[Atom, ...]
"""Factors, sorted by their text, with repetition."""
Terms: TypeAlias = dict[Monomial, int]


class Dim:
    """The sum of coefficients times products of atoms; never constant (`Dim.make` gives an int then)."""

    __slots__ = ("_hash", "_symbols", "_text", "terms")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._hash: int | None = None
        self._symbols: frozenset[str] | None = None
        self._text: str | None = None

    @staticmethod
    def make(terms: Terms) -> "Size":
        """The size of some terms, in which coefficients may be 0."""
        if 0 in terms.values():
            terms = {m: c for m, c in terms.items() if c}
        if not terms:
            return 0
        if len(terms) == 1 and () in terms:
            return terms[()]
        return Dim(terms)

    # ---- arithmetic

    def __add__(self, other: "Size") -> "Size":
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        terms = dict(self.terms)
        if isinstance(other, int):
            if other == 0 and () not in terms:
                return self
            constant = terms.pop((), 0) + other
            if constant:
                terms[()] = constant
            return Dim(terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) + c
        return Dim.make(terms)

    __radd__ = __add__

    def __neg__(self) -> "Dim":
        return Dim({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: "Size") -> "Size":
        if not isinstance(other, Dim):
            return self + -other if isinstance(other, int) else NotImplemented
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) - c
        return Dim.make(terms)

    def __rsub__(self, other: int) -> "Size":
        return -self + other

    def __mul__(self, other: "Size") -> "Size":
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        if isinstance(other, int):
            if other == 1:
                return self
            return Dim({m: c * other for m, c in self.terms.items()}) if other else 0
        terms: Terms = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                key = tuple(sorted(m + n, key=str)) if m and n else m or n
                terms[key] = terms.get(key, 0) + c * d
        return Dim.make(terms)

    __rmul__ = __mul__

    def __floordiv__(self, den: "Size") -> "Size":
        return _floordiv(self, den) if isinstance(den, (int, Dim)) else NotImplemented

    def __rfloordiv__(self, num: int) -> "Size":
        return _floordiv(num, self)

    def __mod__(self, den: "Size") -> "Size":
        return self - den * _floordiv(self, den) if isinstance(den, (int, Dim)) else NotImplemented

    def __rmod__(self, num: int) -> "Size":
        return num - self * _floordiv(num, self)

    def __divmod__(self, den: "Size") -> "tuple[Size, Size]":
        quotient = _floordiv(self, den)
        return quotient, self - den * quotient

    # ---- equality by expression, order where it is proved

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise Undecided("whether", self, "is 0")

    def _order(self, other: "Size", strict: bool, less: bool) -> bool:
        holds = Ranges.current().is_positive(other - self if less else self - other, strict)
        if holds is not None:
            return holds
        raise Undecided("whether", self, ("<" if less else ">") + ("" if strict else "="), other)

    def __lt__(self, other: "Size") -> bool:
        return self._order(other, True, True)

    def __le__(self, other: "Size") -> bool:
        return self._order(other, False, True)

    def __gt__(self, other: "Size") -> bool:
        return self._order(other, True, False)

    def __ge__(self, other: "Size") -> bool:
        return self._order(other, False, False)

    def __int__(self) -> int:
        raise Undecided("the value of", self)

    __index__ = __int__

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(self.terms)
        return self._text

    __repr__ = __str__


Size: TypeAlias = int | Dim


def symbol(name: str) -> Dim:
    """The size that a name stands for."""
    return Dim({(name,): 1})


def _terms(x: Size) -> Terms:
    return x.terms if isinstance(x, Dim) else {(): x} if x else {}


def name_of(x: object) -> str | None:
    """The name of the symbol that a size is; None for any other size."""
    if isinstance(x, Dim) and len(x.terms) == 1:
        ((m, c),) = x.terms.items()
        if c == 1 and len(m) == 1 and isinstance(m[0], str):
            return m[0]
    return None


def is_symbolic(x: object) -> bool:
    """Whether a size is an expression, and no number."""
    return isinstance(x, Dim)


# ---- text ------------------------------------------------------------------------------------------------------------------------------


def _text(terms: Terms) -> str:
    text = ""
    for m, c in sorted(terms.items(), key=lambda t: (-len(t[0]), t[1] < 0, [str(a) for a in t[0]])):
        # A sign in front binds more than a division.
        alone = len(m) == 1 and (c == 1 or (c == -1 and text != ""))
        factors = [f"({a})" if isinstance(a, Floor) and not alone else str(a) for a in m]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += sign + "*".join(factors)
    return text


def _factor(x: Size) -> str:
    """The text of a size where it is an operand of a division."""
    simple = isinstance(x, int) or (
        len(x.terms) == 1 and all(isinstance(m[0], (str, Extreme)) and len(m) == 1 and c == 1 for m, c in x.terms.items())
    )
    return str(x) if simple else f"({x})"


_OPERATORS: dict[type, Callable[[Size, Size], Size]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def is_name(text: str) -> bool:
    """Whether a text can name a symbol: an identifier of Python that means nothing else in an expression."""
    return text.isidentifier() and not keyword.iskeyword(text) and text not in ("min", "max")


def parse(text: str) -> Size:
    """The size that a text says. Raises ValueError for a text that is no expression of sizes."""
    memo, key = Ranges.current().memo, ("parse", text)
    if key not in memo:
        memo[key] = symbol(text) if is_name(text) else _parse(text)
    return memo[key]  # type: ignore[return-value] # what was put there


def _parse(text: str) -> Size:
    try:
        return _parsed(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        raise ValueError(f"expected a size such as 'n', '2*n + 1', 'n//2' or 'max(n, m)', found {text!r}") from None


def _parsed(node: ast.expr) -> Size:
    if isinstance(node, ast.Name) and is_name(node.id):
        return symbol(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_parsed(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_parsed(node.left), _parsed(node.right))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("min", "max")
        and node.args
        and not node.keywords
    ):
        return _extreme(node.func.id, [_parsed(a) for a in node.args])
    raise ValueError


# ---- what is known of symbols -------------------------------------------------------------------------------------------------------


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
"""Expressions of which a Ranges remembers what it found out."""


class Ranges(Mapping[str, Range]):
    """The ranges of symbols by name; of any other symbol the default one holds. `with ranges:` makes them hold for this thread."""

    def __init__(self, ranges: Mapping[str, Range] | None = None) -> None:
        self._ranges = dict(ranges or {})
        self._atoms: dict[Atom, tuple[int, int]] = {}
        self._bounds: dict[tuple[Dim, bool], int] = {}
        self._positive: dict[tuple[Size, bool], bool | None] = {}
        self.memo: dict[object, object] = {}
        """For what is found out under these ranges. Those of a program may refer to it, as they end with it."""

    def __getitem__(self, name: str) -> Range:
        return self._ranges[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def of(self, name: str) -> Range:
        """What is known of a symbol."""
        return self._ranges.get(name, _DEFAULT)

    def bounds(self, dim: Dim) -> tuple[int, int]:
        """Inclusive bounds of an expression."""
        return self.bound(dim, False), self.bound(dim, True)

    def bound(self, dim: Dim, upper: bool) -> int:
        """One of the inclusive bounds of an expression."""
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
        """Whether a size is above 0, or at least 0 where it is not `strict`: for all values of its symbols, for none (False), or neither
        is proved (None)."""
        if isinstance(size, int):
            return size > 0 if strict else size >= 0
        if (size, strict) not in self._positive:
            self.trim()
            # What holds for no sample needs no proof.
            samples = self._samples(size)
            least, most = min(samples, default=1), max(samples, default=-1)
            holds: bool | None = None
            if least + (not strict) > 0 and self.bound(size, False) + (not strict) > 0:
                holds = True
            elif most - strict < 0 and self.bound(size, True) - strict < 0:
                holds = False
            self._positive[size, strict] = holds
        return self._positive[size, strict]

    def _samples(self, dim: Dim) -> list[int]:
        """Values of an expression: for typical, least and largest symbols."""
        known = {name: self.of(name) for name in symbols_of(dim)}
        found = []
        for pick in (lambda r: r.typical, lambda r: r.low, lambda r: r.high):
            with suppress(ZeroDivisionError):
                found.append(evaluate(dim, {name: pick(r) for name, r in known.items()}))
        return found

    def trim(self) -> None:
        """Forgets what was found out, where that has become much."""
        if len(self._atoms) + len(self._bounds) + len(self._positive) + len(self.memo) > _REMEMBERED:
            self._atoms.clear()
            self._bounds.clear()
            self._positive.clear()
            self.memo.clear()

    def __enter__(self) -> "Ranges":
        _HOLDING.set((*_HOLDING.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _HOLDING.set(_HOLDING.get()[:-1])

    @property
    def is_of_program(self) -> bool:
        """Whether someone made them hold; the others last as long as the process."""
        return self is not _NOTHING_KNOWN

    @staticmethod
    def current() -> "Ranges":
        """Those that hold."""
        return _HOLDING.get()[-1]


_DEFAULT = Range()
_NOTHING_KNOWN = Ranges()
_HOLDING: contextvars.ContextVar[tuple[Ranges, ...]] = contextvars.ContextVar("relayc_ranges", default=(_NOTHING_KNOWN,))


def bounds(x: Size) -> tuple[int, int]:
    """Inclusive bounds of a size, from the ranges of its symbols."""
    return (x, x) if isinstance(x, int) else Ranges.current().bounds(x)


def proves(question: Callable[[], object]) -> bool:
    """Whether a comparison holds for all sizes: `proves(lambda: a < b)`."""
    try:
        return bool(question())
    except Undecided:
        return False


def _bound(x: Size, upper: bool) -> int:
    """The upper or the lower bound of a size."""
    return x if isinstance(x, int) else Ranges.current().bound(x, upper)


def _bound_of(dim: Dim, ranges: Ranges, upper: bool) -> int:
    # One bound at a time: what bounds it asks for one bound of an expression of one division less, not for two of two.
    found = _polynomial_bounds(dim, ranges)[upper]
    if (found <= 0) if upper else (found >= 0):
        return found  # what is asked for is the sign, as a rule
    for least, most, scale in _relaxed(dim):
        found = min(found, _bound(most, True) // scale) if upper else max(found, -(-_bound(least, False) // scale))
    return found


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
    ends = {atom: ranges.atom_bounds(atom) for m in dim.terms for atom in m}
    shifted: Terms = {}
    for m, c in dim.terms.items():
        parts: Terms = {(): c}
        for atom in m:
            low = ends[atom][0]
            grown = {(*part, atom): value for part, value in parts.items()}
            for part, value in parts.items() if low else ():
                grown[part] = grown.get(part, 0) + value * low
            parts = grown
        for part, value in parts.items():
            shifted[part] = shifted.get(part, 0) + value
    return _sum_of_monomials(shifted, {atom: high - low for atom, (low, high) in ends.items()})


def _sum_of_monomials(terms: Terms, spans: Mapping[Atom, int]) -> tuple[int, int]:
    """Bounds of a polynomial of atoms that are 0 or more, and at most what `spans` says."""
    low = high = 0
    for m, c in terms.items():
        most = 1
        for atom in m:
            most *= spans[atom]
        low += min(0, c) * most if m else c
        high += max(0, c) * most if m else c
    return low, high


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


def _relaxed(dim: Dim) -> Iterator[tuple[Size, Size, int]]:
    """Expressions that are at most, and at least, `dim` times a number: without one of its divisions, minima or maxima.

    A division is within what is divided, which may cancel with other terms.
    """
    for m, c in dim.terms.items():
        if len(m) == 1 and isinstance(m[0], Floor) and isinstance(m[0].den, int):
            scale = m[0].den // math.gcd(m[0].den, c)
            factor, rest = c * scale // m[0].den, (dim - Dim({m: c})) * scale
            ends = (rest + m[0].num * factor, rest + (m[0].num - (m[0].den - 1)) * factor)
            yield (*ends, scale) if factor < 0 else (*ends[::-1], scale)
            return
        if len(m) == 1 and isinstance(m[0], Extreme):
            # max is at least each of its arguments, min at most each: one side only.
            rest = dim - Dim({m: c})
            for arg in m[0].args:
                one = rest + arg * c
                yield (one, FAR_SIZE, 1) if (m[0].kind == "max") == (c > 0) else (-FAR_SIZE, one, 1)
            return
    yield _coarser(dim, False), _coarser(dim, True), 1


def _coarser(dim: Dim, upper: bool) -> Size:
    """An expression that is at least `dim` (at most, where not `upper`), of which a product has a coarser division; else no bound."""
    ranges, divisions = Ranges.current(), dict.fromkeys(a for n in dim.terms for a in n if isinstance(a, Floor))
    for m, c in dim.terms.items():
        if len(m) > 1 and (c > 0) == upper and all(ranges.atom_bounds(a)[0] >= 0 for a in m):
            for atom in m:
                for other in divisions:
                    if (times := _times(atom, other)) is not None:
                        left = list(m)
                        left.remove(atom)
                        return dim + Dim({m: -c}) + Dim({tuple(sorted((*left, other), key=str)): c * times})
    return FAR_SIZE if upper else -FAR_SIZE


def _times(atom: Atom, other: Floor) -> int | None:
    """The k for which `atom` is at most k times a coarser division: 4 of (n + 1)//2 and (n + 7)//8. None where there is none."""
    num, den = (atom, 1) if isinstance(atom, str) else (atom.num, atom.den) if isinstance(atom, Floor) else (None, 0)
    if num is None or not (isinstance(den, int) and isinstance(other.den, int)) or other.den <= den or other.den % den:
        return None
    times = other.den // den
    # floor(x / (k d)) = floor(floor(x / d) / k) is at least (floor(x / d) - (k - 1)) / k.
    return times if _floordiv(other.num, den) - (times - 1) == Dim({(atom,): 1}) else None


FAR_SIZE = 1 << 200
"""Beyond all sizes: no bound."""


def guess(x: Size) -> int:
    """A representative number for a size: its value where every symbol has its hint, 1 at least where it can be.

    What is typical for one symbol may be too little for another: then a size of both would have no elements, or fewer.
    """
    if isinstance(x, int):
        return x
    ranges = Ranges.current()
    found = evaluate(x, {name: ranges.of(name).typical for name in symbols_of(x)})
    return found if found >= 1 else max(found, min(1, bounds(x)[1]))


# ---- division, minima and maxima ------------------------------------------------------------------------------------------------------


def _floordiv(num: Size, den: Size) -> Size:
    """floor(num / den) in normal form; den > 0."""
    if isinstance(num, int) and isinstance(den, int):
        return num // den
    memo, key = Ranges.current().memo, ("floordiv", num, den)
    if key not in memo:
        memo[key] = _by_number(num, den) if isinstance(num, Dim) and isinstance(den, int) else _by_expression(num, den)
    return memo[key]  # type: ignore[return-value] # what was put there


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
    for m, c in _terms(num).items():
        quotient = exact(Dim.make({m: c}), den)
        if quotient is None:
            rest[m] = c
        else:
            whole = whole + quotient
    if whole != 0:
        return whole + _floordiv(Dim.make(rest), den)
    return Dim({(Floor(num, den),): 1})


def _nearest(c: int, den: int) -> int:
    """c / den rounded, halves toward zero."""
    return (abs(c) + (den - 1) // 2) // den * (1 if c > 0 else -1)


def _by_number(num: Dim, den: int) -> Size:
    if den == 1:
        return num
    if den <= 0:
        raise ZeroDivisionError(f"{num} divided by {den}")
    # Whole multiples come out; what stays has coefficients nearest to zero, and that of its first term is positive.
    nearest = {m: _nearest(c, den) if m else c // den for m, c in num.terms.items()}
    whole = Dim.make(nearest)
    rest = Dim.make({m: c - nearest[m] * den for m, c in num.terms.items()})
    if isinstance(rest, int):
        return whole + rest // den
    # floor((g x + k) / (g d)) = floor((x + floor(k / g)) / d)
    common = math.gcd(den, *(c for m, c in rest.terms.items() if m))
    if common > 1:
        return whole + _floordiv(Dim.make({m: c // common for m, c in rest.terms.items()}), den // common)
    if max(((len(m), str(m)), c) for m, c in rest.terms.items())[1] < 0:
        # floor(-x / den) = -ceil(x / den)
        return whole - _floordiv(den - 1 - rest, den)
    # floor((floor(a / b) + k) / c) = floor((a + k b) / (b c))
    atoms = [(m, c) for m, c in rest.terms.items() if m]
    inner = atoms[0][0][0]
    if len(atoms) == 1 and atoms[0][1] == 1 and len(atoms[0][0]) == 1 and isinstance(inner, Floor) and isinstance(inner.den, int):
        return whole + _floordiv(inner.num + rest.terms.get((), 0) * inner.den, inner.den * den)
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
    """num / den where it is a polynomial, else None: division of leading terms. A den that is an expression counts as not 0."""
    if isinstance(den, int):
        terms = _terms(num)
        return Dim.make({m: c // den for m, c in terms.items()}) if den and all(c % den == 0 for c in terms.values()) else None
    lead, factor = max(den.terms.items(), key=_leading)
    quotient: Size = 0
    for _ in range(16):
        if num == 0:
            return quotient
        m, c = max(_terms(num).items(), key=_leading)
        left = list(m)
        for atom in lead:
            if atom not in left:
                return None
            left.remove(atom)
        if c % factor:
            return None
        term = Dim.make({tuple(left): c // factor})
        quotient = quotient + term
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
        m, c = max(_terms(num).items(), key=_leading)
        part = exact(Dim.make({m: 1}), Dim({lead: 1}))
        if part is None or c // factor == 0:
            rest, num = rest + Dim.make({m: c}), num - Dim.make({m: c})
        else:
            left = Dim.make({m: c % factor})
            quotient, rest, num = quotient + part * (c // factor), rest + left, num - left - part * (c // factor) * den
    return quotient, rest + num


def _leading(term: tuple[Monomial, int]) -> tuple[int, str]:
    return len(term[0]), str(term[0])


def minimum(*sizes: Size) -> Size:
    """The smallest of some sizes."""
    return _extreme("min", sizes)


def maximum(*sizes: Size) -> Size:
    """The largest of some sizes."""
    return _extreme("max", sizes)


def _extreme(kind: str, sizes: Iterable[Size]) -> Size:
    """Without arguments of which it is proved that another one is as small (large)."""
    kept: list[Size] = []
    for size in _flattened(kind, sizes):
        if any(_no_better(kind, k, size) for k in kept):
            continue
        kept = [k for k in kept if not _no_better(kind, size, k)] + [size]
    if len(kept) == 1:
        return kept[0]
    return Dim({(Extreme(kind, tuple(sorted(kept, key=str))),): 1})


def _flattened(kind: str, sizes: Iterable[Size]) -> Iterator[Size]:
    for size in sizes:
        if isinstance(size, Dim) and len(size.terms) == 1:
            (m, c), *_ = size.terms.items()
            if c == 1 and len(m) == 1 and isinstance(m[0], Extreme) and m[0].kind == kind:
                yield from m[0].args
                continue
        yield size


def _no_better(kind: str, a: Size, b: Size) -> bool:
    """Whether `b` adds nothing to `a`."""
    return a == b or proves(lambda: a <= b if kind == "min" else a >= b)


# ---- values ----------------------------------------------------------------------------------------------------------------------------


def symbols_of(x: Size) -> frozenset[str]:
    """Names of the symbols in a size."""
    if isinstance(x, int):
        return frozenset()
    if x._symbols is None:
        x._symbols = _symbols_in(x)
    return x._symbols


def _symbols_in(x: Dim) -> frozenset[str]:
    found: set[str] = set()
    for m in x.terms:
        for atom in m:
            found |= (
                {atom}
                if isinstance(atom, str)
                else symbols_of(atom.num) | symbols_of(atom.den)
                if isinstance(atom, Floor)
                else set().union(*map(symbols_of, atom.args))
            )
    return frozenset(found)


def substitute(x: Size, values: Mapping[str, Size]) -> Size:
    """A size in which symbols stand for others; those without a value stay."""
    if isinstance(x, int):
        return x
    total: Size = 0
    for m, c in x.terms.items():
        product: Size = c
        for atom in m:
            if isinstance(atom, str):
                product = product * values.get(atom, symbol(atom))
            elif isinstance(atom, Floor):
                product = product * (substitute(atom.num, values) // substitute(atom.den, values))
            else:
                product = product * _extreme(atom.kind, [substitute(a, values) for a in atom.args])
        total = total + product
    return total


def evaluate(x: Size, values: Mapping[str, int]) -> int:
    """The number that a size is where its symbols have the given values. Raises ZeroDivisionError for a division by 0."""
    if isinstance(x, int):
        return x
    total = 0
    for m, c in x.terms.items():
        for atom in m:
            if isinstance(atom, str):
                c *= values[atom]
            elif isinstance(atom, Floor):
                c *= evaluate(atom.num, values) // evaluate(atom.den, values)
            else:
                c *= (min if atom.kind == "min" else max)(evaluate(a, values) for a in atom.args)
        total += c
    return total


def evaluator(sizes: Iterable[Size], names: Iterable[str]) -> Callable[..., tuple[int, ...]]:
    """A function of the values of symbols, in the order of `names`, that gives the numbers that some sizes are.

    It is Python's own code for the expressions: some tens of nanoseconds for each.
    """
    code = f"lambda {', '.join(names)}: ({''.join(f'{size}, ' for size in sizes)})"
    return eval(code, {"__builtins__": {}, "min": min, "max": max})
