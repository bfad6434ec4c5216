"""Quotients and remainders of indices of blocks."""

import itertools

from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.tree.indices import Divided, divide


def test_what_is_less_than_a_part_of_the_divisor_is_not_divided() -> None:
    """(16 i + j + 4) // 32 is i // 2: only i is left in the quotient."""
    i, j = Var(0, 9, name="i"), Var(0, 11, name="j")
    quotient, rest = divide(Index.of(i) * 16 + j + 4, 32)
    (half,), (odd, same) = quotient.terms, sorted(rest.terms, key=lambda v: v is j)
    assert isinstance(half, Divided) and half.index.key == Index.of(i).key and half.divisor == 2 and same is j
    assert isinstance(odd, Divided) and rest.terms[odd] == 16 and rest.const == 4
    for a, b in itertools.product(range(10), range(12)):
        assert divmod(16 * a + b + 4, 32) == (a // 2, a % 2 * 16 + b + 4)


def test_what_may_reach_beyond_a_part_is_divided_as_a_whole() -> None:
    i, j = Var(0, 9, name="i"), Var(0, 16, name="j")
    quotient, _ = divide(Index.of(i) * 16 + j, 32)
    (whole,) = quotient.terms
    assert isinstance(whole, Divided) and whole.divisor == 32
