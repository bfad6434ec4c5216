"""Symbolic sizes: integer expressions over named symbols, equal where their normal forms are.

A `Dim` behaves like the int it stands for as long as nobody asks what it is: arithmetic gives a Dim (an int where it is constant), `==`
says whether two expressions are the same, and an order is answered where the ranges of the symbols prove it and raises `Undecided`
elsewhere, so that no code decides by accident. `proves` asks without raising, and `guess` gives a representative size for choices that
are right either way.

An expression is a polynomial over atoms: symbols, floor divisions, minima and maxima. Its text is Python's (`2*n + 1`, `(n + 7)//8`,
`max(n, past)`), in which `broadcast(n, m)` is the size to which axes of sizes n and m broadcast, and `parse` reads it back. What is known
of the symbols is a `Ranges`; `with ranges:` makes it hold.
"""

from relayc.symbolic.division import ceil_div, divided, exact
from relayc.symbolic.expressions import (
    Atom,
    Dim,
    Extreme,
    Floor,
    Monomial,
    Size,
    Undecided,
    bound,
    bounds,
    factors,
    is_long,
    is_symbolic,
    name_of,
    product,
    proves,
    symbol,
    symbols_of,
)
from relayc.symbolic.extremes import broadcast, maximum, minimum
from relayc.symbolic.parsing import is_name, parse
from relayc.symbolic.ranges import FAR, Range, Ranges, guess
from relayc.symbolic.values import divisor, divisors_of, evaluate, evaluator, substitute

__all__ = [
    "FAR",
    "Atom",
    "Dim",
    "Extreme",
    "Floor",
    "Monomial",
    "Range",
    "Ranges",
    "Size",
    "Undecided",
    "bound",
    "bounds",
    "broadcast",
    "ceil_div",
    "divided",
    "divisor",
    "divisors_of",
    "evaluate",
    "evaluator",
    "exact",
    "factors",
    "guess",
    "is_long",
    "is_name",
    "is_symbolic",
    "maximum",
    "minimum",
    "name_of",
    "parse",
    "product",
    "proves",
    "substitute",
    "symbol",
    "symbols_of",
]
