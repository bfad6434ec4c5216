"""Random expressions over symbols, and what is said of them: their normal forms, bounds, proofs, quotients and divisors."""

import random
from collections.abc import Callable, Iterator

from relayc.symbolic import (
    Dim,
    Range,
    Ranges,
    Size,
    Undecided,
    bounds,
    broadcast,
    ceil_div,
    divided,
    divisor,
    divisors_of,
    exact,
    factors,
    guess,
    is_long,
    maximum,
    minimum,
    parse,
    substitute,
    symbol,
)

NAMES = ("a", "b", "c")
RANGES = (
    {},
    {"a": Range(1), "b": Range(1), "c": Range(1)},
    {"a": Range(1, 8, 3), "b": Range(0, 1), "c": Range(5, 5)},
    {"a": Range(0, 100), "b": Range(2, 40, 7), "c": Range(0, 1 << 20)},
)
NUMBERS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 12, 16, 64)


def _size(r: random.Random, depth: int) -> Size:
    if depth == 0 or r.random() < 0.15:
        return symbol(r.choice(NAMES)) if r.random() < 0.65 else r.choice(NUMBERS)
    a, b = _size(r, depth - 1), _size(r, depth - 1)
    divisor = r.choice((r.choice(NUMBERS[1:]), symbol(r.choice(NAMES)), maximum(b, 1)))
    ways: tuple[Callable[[], Size], ...] = (
        lambda: a + b,
        lambda: a - b,
        lambda: a * b,
        lambda: r.choice(NUMBERS) * a + r.choice(NUMBERS),
        lambda: minimum(a, b),
        lambda: maximum(a, b),
        lambda: a // divisor,
        lambda: a % divisor,
        lambda: ceil_div(a, divisor),
        lambda: broadcast(a, b),
    )
    return r.choice(ways)()


def answers(seed: int, count: int = 40) -> Iterator[str]:
    """What is said of expressions of a seed, one line for each."""
    r = random.Random(seed)
    with Ranges(RANGES[seed % len(RANGES)]):
        for _ in range(count):
            a, b = _size(r, r.randint(1, 4)), _size(r, r.randint(1, 3))
            yield f"{a} | {b}: " + " ".join(_answer(ask) for ask in _questions(a, b))


def _questions(a: Size, b: Size) -> Iterator[Callable[[], object]]:
    yield from (lambda: bounds(a), lambda: guess(a), lambda: divisor(a), lambda: factors(a), lambda: is_long(a))
    yield from (lambda: a < b, lambda: a <= b, lambda: a > b, lambda: a >= b, lambda: a == b, lambda: a - b, lambda: bool(a))
    yield from (lambda: sorted(map(str, divisors_of(a))), lambda: exact(a * b, a), lambda: exact(a, b))
    yield from (
        lambda: a // b,
        lambda: a % b,
        lambda: (a * b + 3) // b,
        lambda: b // (a - 2),
        lambda: minimum(a, b, 4),
        lambda: maximum(a, b, 1),
    )
    yield from (lambda: divided(a, b) if isinstance(b, Dim) else None, lambda: substitute(a, {"a": b, "b": 3}), lambda: parse(str(a)) == a)


def _answer(ask: Callable[[], object]) -> str:
    try:
        found = ask()
    except (Undecided, ZeroDivisionError, ValueError) as error:
        return type(error).__name__
    return "(" + ", ".join(map(str, found)) + ")" if isinstance(found, tuple) else str(found)
