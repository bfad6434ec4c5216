"""Symbolic sizes: integer expressions over named symbols, which are equal if their normal forms are equal.

A `Dim` behaves like the int that it represents: arithmetic returns a Dim (an int if it is constant), `==` compares expressions, and order
comparisons are answered if the ranges of the symbols prove the answer and raise `Undecided` otherwise, so that no code decides by accident.
`proves` never raises, and `guess` returns a representative size for choices that are correct in any case.

An expression is a polynomial over atoms: symbols, floor divisions, minima and maxima. Its text is Python's (`2*n + 1`, `(n + 7)//8`,
`max(n, past)`), with `broadcast(n, m)` for the size to which axes of sizes n and m broadcast; `parse` reads it. The known ranges of symbols
are a `Ranges`; `with ranges:` activates it.
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
