"""Expressions over symbols: arithmetic, text, and queries."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from typing import ClassVar, Protocol, TypeAlias


class Undecided(Exception):
    """A question about a size whose answer depends on the values of symbols; has the question and the sizes."""

    def __str__(self) -> str:
        # Most are raised for an answer that is no, and never read.
        return " ".join(map(str, self.args))


class Floor:
    """floor(num / max(den, 1)).

    A model whose sizes divide by `den` has no meaning where `den` is 0. The quotient has a value all the same, because a function computes
    the sizes of all its branches before it chooses a branch. `depth` is the number of divisions, minima and maxima inside each other,
    `factors` the number of factors in the text.
    """

    __slots__ = ("_hash", "_text", "den", "depth", "factors", "num")

    def __init__(self, num: "Size", den: "Size") -> None:
        self.num = num
        self.den = den
        self.depth = 1 + max(depth(num), depth(den))
        self.factors = factors(num) + factors(den)
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
        # Terms are ordered by this text, so it must not contain the address of the object.
        return f"Floor(num={self.num}, den={self.den})"


class Extreme:
    """The smallest ("min") or largest ("max") of several sizes; `depth` and `factors` as of Floor."""

    __slots__ = ("_hash", "_text", "args", "depth", "factors", "kind")

    def __init__(self, kind: str, args: tuple["Size", ...]) -> None:
        self.kind = kind
        self.args = args
        self.depth = 1 + max(map(depth, args))
        self.factors = sum(map(factors, args))
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


class Knowledge(Protocol):
    """The known facts about symbols (`ranges.Ranges`), used to compare and normalise expressions."""

    memo: dict[object, object]

    def bound(self, dim: "Dim", upper: bool) -> int:
        """An inclusive bound of an expression."""

    def is_positive(self, size: "Size", strict: bool) -> bool | None:
        """Whether a size is above 0, or at least 0 if not `strict`; None if neither the statement nor its negation is proved."""

    def quotient(self, num: "Size", den: "Size") -> "Size":
        """floor(num / den) in normal form; den > 0."""


class Dim:
    """The sum of coefficients times products of atoms; never constant (`Dim.make` gives an int then)."""

    __slots__ = ("_hash", "_symbols", "_text", "terms")
    holding: ClassVar[ContextVar[tuple[Knowledge, ...]]]
    """The known facts about symbols; the last entry is in use (set by `ranges`)."""

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
            if other == 0:
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
        return known().quotient(self, den) if isinstance(den, (int, Dim)) else NotImplemented

    def __rfloordiv__(self, num: int) -> "Size":
        return known().quotient(num, self)

    def __mod__(self, den: "Size") -> "Size":
        return self - den * known().quotient(self, den) if isinstance(den, (int, Dim)) else NotImplemented

    def __rmod__(self, num: int) -> "Size":
        return num - self * known().quotient(num, self)

    def __divmod__(self, den: "Size") -> "tuple[Size, Size]":
        quotient = known().quotient(self, den)
        return quotient, self - den * quotient

    # ---- equality by expression, order where it is proved

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self.terms == other.terms)

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
        holds = known().is_positive(other - self if less else self - other, strict)
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


def known() -> Knowledge:
    """The known facts about symbols in this thread."""
    return Dim.holding.get()[-1]


@lru_cache(maxsize=1024)
def symbol(name: str) -> Dim:
    """The size represented by a name."""
    return Dim({(name,): 1})


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes: 1 if there are none."""
    # Numbers first: each product with an expression is a new one.
    number = 1
    found: Size | None = None
    for size in sizes:
        if isinstance(size, int):
            number *= size
        else:
            found = size if found is None else found * size
    return number if found is None else found * number


def terms_of(x: Size) -> Terms:
    """The terms of a size: none for 0."""
    return x.terms if isinstance(x, Dim) else {(): x} if x else {}


def name_of(x: object) -> str | None:
    """The name of the symbol that a size is; None for any other size."""
    if isinstance(x, Dim) and len(x.terms) == 1:
        ((m, c),) = x.terms.items()
        if c == 1 and len(m) == 1 and isinstance(m[0], str):
            return m[0]
    return None


def depth(x: Size) -> int:
    """How many divisions, minima and maxima are inside of each other in a size."""
    return 0 if isinstance(x, int) else max((atom.depth for m in x.terms for atom in m if not isinstance(atom, str)), default=0)


def factors(x: Size) -> int:
    """How many factors the text of a size has, those inside of divisions, minima and maxima too."""
    return 1 if isinstance(x, int) else sum(1 if isinstance(atom, str) else atom.factors for m in x.terms for atom in m)


MOST_DEPTH, MOST_FACTORS = 16, 1024
"""The depth of expressions, and the factors in their text, up to which they are worth to go on with."""


def is_long(x: Size) -> bool:
    """Whether a size is an expression so long or deep that its creator should name it or avoid it: queries take time in proportion to its
    length, and recurse to its depth."""
    return isinstance(x, Dim) and (depth(x) > MOST_DEPTH or factors(x) > MOST_FACTORS)


def is_symbolic(x: object) -> bool:
    """Whether a size is an expression, and no number."""
    return isinstance(x, Dim)


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


def bounds(x: Size) -> tuple[int, int]:
    """Inclusive bounds of a size, from the ranges of its symbols."""
    return (x, x) if isinstance(x, int) else (known().bound(x, False), known().bound(x, True))


def proves(question: Callable[[], object]) -> bool:
    """Whether a comparison holds for all sizes: `proves(lambda: a < b)`."""
    try:
        return bool(question())
    except Undecided:
        return False


def bound(x: Size, upper: bool) -> int:
    """The upper or the lower bound of a size."""
    return x if isinstance(x, int) else known().bound(x, upper)


# ---- text ------------------------------------------------------------------------------------------------------------------------------


def _text(terms: Terms) -> str:
    text = ""
    for m, c in sorted(terms.items(), key=lambda t: (-len(t[0]), t[1] < 0, [str(a) for a in t[0]])):
        # A sign in front binds more than a division.
        alone = len(m) == 1 and (c == 1 or (c == -1 and text != ""))
        factors = [f"({a})" if isinstance(a, Floor) and not alone else str(a) for a in _with_broadcasts(m)]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += sign + "*".join(factors)
    return text


def _with_broadcasts(m: Monomial) -> list[Atom]:
    """The factors of a product, with `broadcast(a, b)` for max(a, b)*min(1, a)*min(1, b) (see extremes.broadcast)."""
    left: list[Atom] = list(m)
    for atom in m:
        if isinstance(atom, Extreme) and atom.kind == "max":
            caps = [Extreme("min", (1, size)) for size in atom.args]
            if all(cap in left for cap in caps):
                left[left.index(atom)] = f"broadcast({', '.join(map(str, atom.args))})"
                for cap in caps:
                    left.remove(cap)
    return left


def _factor(x: Size) -> str:
    """The text of a size as an operand of a division."""
    simple = isinstance(x, int) or (
        len(x.terms) == 1 and all(isinstance(m[0], (str, Extreme)) and len(m) == 1 and c == 1 for m, c in x.terms.items())
    )
    return str(x) if simple else f"({x})"
