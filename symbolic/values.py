"""Sizes for given values of their symbols."""

from collections.abc import Callable, Iterable, Mapping
from math import gcd, prod

from relayc.symbolic.expressions import Atom, Dim, Extreme, Floor, Size, name_of, symbol
from relayc.symbolic.extremes import extreme


def substitute(x: Size, values: Mapping[str, Size]) -> Size:
    """Replaces symbols in a size; symbols without a value are kept. The result is normalised under the active ranges."""
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
                den = substitute(atom.den, values)
                product = product * (substitute(atom.num, values) // (max(den, 1) if isinstance(den, int) else den))
            else:
                product = product * extreme(atom.kind, [substitute(a, values) for a in atom.args])
        total = total + product
    return total


def divisor(x: Size) -> int:
    """A number that divides a size at all values of its symbols, as far as its terms say: 8 of 8*max(n, 2) + 16; 0 of 0."""
    return abs(x) if isinstance(x, int) else gcd(*(c * prod(map(_divisor, m)) for m, c in x.terms.items()))


def _divisor(atom: Atom) -> int:
    return gcd(*map(divisor, atom.args)) if isinstance(atom, Extreme) else 1


def divisors_of(x: Size) -> frozenset[Dim]:
    """The divisors in a size, including nested ones."""
    found: set[Dim] = set()
    for atom in () if isinstance(x, int) else (a for m in x.terms for a in m if not isinstance(a, str)):
        parts = (atom.num, atom.den) if isinstance(atom, Floor) else atom.args
        found.update(*map(divisors_of, parts))
        if isinstance(atom, Floor) and isinstance(atom.den, Dim):
            found.add(atom.den)
    return frozenset(found)


def evaluate(x: Size, values: Mapping[str, int], known: dict[Atom, int] | None = None) -> int:
    """The value of a size for given values of its symbols.

    Args:
      known: values of atoms for these symbols; computed values are added, because sizes share most of their atoms.
    """
    if isinstance(x, int):
        return x
    known = {} if known is None else known
    total = 0
    for m, c in x.terms.items():
        for atom in m:
            if isinstance(atom, str):
                c *= values[atom]
                continue
            number = known.get(atom)
            if number is None:
                if isinstance(atom, Floor):
                    number = evaluate(atom.num, values, known) // max(evaluate(atom.den, values, known), 1)
                else:
                    number = (min if atom.kind == "min" else max)(evaluate(a, values, known) for a in atom.args)
                known[atom] = number
            c *= number
        total += c
    return total


def evaluator(sizes: Iterable[Size], names: Iterable[str]) -> Callable[..., tuple[int, ...]]:
    """A function of the values of symbols, in the order of `names`, that gives the numbers that some sizes are.

    It is Python's own code for the expressions: some tens of nanoseconds for each.
    """
    code = f"lambda {', '.join(names)}: ({''.join(f'{_code(size)}, ' for size in sizes)})"
    return eval(code, {"__builtins__": {}, "min": min, "max": max})


def _code(x: Size) -> str:
    """The Python expression of a size."""
    if isinstance(x, int):
        return str(x)
    return " + ".join("*".join([*([] if c == 1 and m else [str(c)]), *map(_atom_code, m)]) for m, c in x.terms.items())


def _atom_code(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    if isinstance(atom, Extreme):
        return f"{atom.kind}({', '.join(map(_code, atom.args))})"
    den = str(atom.den) if isinstance(atom.den, int) else f"max({_code(atom.den)}, 1)"
    return f"(({_code(atom.num)})//{den})"
