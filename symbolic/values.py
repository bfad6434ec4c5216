"""Sizes where their symbols have values."""

from collections.abc import Callable, Iterable, Mapping
from math import gcd, prod

from relayc.symbolic.expressions import Atom, Extreme, Floor, Size, name_of, symbol
from relayc.symbolic.extremes import extreme


def substitute(x: Size, values: Mapping[str, Size]) -> Size:
    """A size in which symbols stand for others; those without a value stay. What it becomes follows from the ranges that hold."""
    if isinstance(x, int):
        return x
    name = name_of(x)
    if name is not None:
        return values.get(name, x)
    total: Size = 0
    for m, c in x.terms.items():
        product: Size = c
        for atom in m:
            if isinstance(atom, str):
                product = product * values.get(atom, symbol(atom))
            elif isinstance(atom, Floor):
                product = product * (substitute(atom.num, values) // substitute(atom.den, values))
            else:
                product = product * extreme(atom.kind, [substitute(a, values) for a in atom.args])
        total = total + product
    return total


def divisor(x: Size) -> int:
    """A number that divides a size at all values of its symbols, as far as its terms say: 8 of 8*max(n, 2) + 16; 0 of 0."""
    return abs(x) if isinstance(x, int) else gcd(*(c * prod(map(_divisor, m)) for m, c in x.terms.items()))


def _divisor(atom: Atom) -> int:
    return gcd(*map(divisor, atom.args)) if isinstance(atom, Extreme) else 1


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
