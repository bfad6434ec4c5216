"""Quotients of long expressions, and of polynomials."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relayc.symbolic import Dim, Size, evaluate, evaluator, exact, parse, substitute, symbol
from relayc.symbolic.division import divided
from relayc.symbolic.expressions import factors, product


def chain(size: Size, times: int, factor: int, divisor: int) -> Size:
    """The size of an axis that is repeated, and taken in steps, so many times."""
    for _ in range(times):
        size = (factor * size - 3) // divisor + 1
    return size


@pytest.mark.parametrize(("factor", "divisor"), [(3, 2), (-3, 2), (7, 3), (5, 4), (4, 2)])
def test_the_text_of_a_chain_grows_in_proportion_to_its_length(factor: int, divisor: int) -> None:
    """3 x // 2 as x + x // 2 would double it at each step."""
    short, long = (chain(symbol("n"), times, factor, divisor) for times in (10, 40))
    assert factors(long) < 8 * factors(short)
    for n in (1, 2, 7, 1000):
        assert evaluate(long, {"n": n}) == chain(n, 40, factor, divisor)
    # Short ones are written so that whole multiples are seen.
    assert (3 * symbol("n")) // 2 == symbol("n") + symbol("n") // 2


def test_a_term_of_many_factors_is_not_written_twice() -> None:
    for count in (16, 17):
        term = product(symbol(f"a{i}") for i in range(count))
        assert ((3 * term) // 2 == term + term // 2) == (count == 16)


POLYNOMIALS = st.lists(st.tuples(st.integers(-6, 6), st.lists(st.sampled_from(["a", "b"]), max_size=3)), min_size=1, max_size=4)


def polynomial(terms: list[tuple[int, list[str]]]) -> Size:
    """The sum of the terms, a factor and symbols each."""
    return sum((factor * product(map(symbol, names)) for factor, names in terms), 0)


@settings(max_examples=150, deadline=None)
@given(POLYNOMIALS, POLYNOMIALS)
def test_what_is_whole_in_a_quotient(first: list, second: list) -> None:
    num, den = polynomial(first), polynomial(second)
    if not isinstance(den, Dim):
        return
    whole, rest = divided(num, den)
    assert whole * den + rest == num
    assert exact(num * den, den) == num
    if rest == 0:
        assert exact(num, den) == whole


def test_quotients_of_polynomials() -> None:
    n, m = symbol("n"), symbol("m")
    assert divided(3 * n + 2, 2 * n) == (1, n + 2)
    assert divided(n * m + n + 1, m + 1) == (n, 1)
    assert divided(m, n) == (0, m)
    assert exact(n * n - m * m, n + m) == n - m
    assert exact(3 * n, 2 * n) is exact(n, m) is exact(n * m, n + m) is None
    assert divided(2 * n * n + n, 2 * n + 1) == (n, 0)
    assert divided(n * n + 5, n - 1) == (n + 1, 6)
    assert divided(5 * n + 3, 3 * n) == (1, 2 * n + 3) and divided(-n, 3 * n) == (-1, 2 * n)
    assert exact(6 * n + 4, 2) == 3 * n + 2 and exact(6 * n + 3, 2) is exact(n, 0) is None


def test_quotients_of_as_many_terms_as_are_worth_to_look_for() -> None:
    n = symbol("n")
    for count in (15, 16):
        total = sum((symbol(f"a{i}") for i in range(count)), 0)
        assert exact(total * n, n) == (total if count == 15 else None)
        whole, rest = divided(total * n + n, n)
        assert whole * n + rest == total * n + n and rest == (0 if count == 15 else n)


QUOTIENTS = {
    "7//n": lambda n, m: 7 // max(n, 1),
    "7//(n - 3)": lambda n, m: 7 // max(n - 3, 1),
    "m*((m + 4)//(n*n)) - 2": lambda n, m: m * ((m + 4) // max(n * n, 1)) - 2,
    "min(m, 5)//max(n, 1)": lambda n, m: min(m, 5) // max(n, 1),
    "n*m//max(n, 1)": lambda n, m: n * m // max(n, 1),
    "m//(16384//n//16*16)": lambda n, m: m // max(16384 // max(n, 1) // 16 * 16, 1),
    "(1 - m)//n + 1": lambda n, m: (1 - m) // max(n, 1) + 1,
}


@pytest.mark.parametrize("text", QUOTIENTS)
def test_a_quotient_by_a_size_below_1_is_the_quotient_by_1(text: str) -> None:
    size = parse(text)
    for n in (0, 1, 2, 5, 1024, 1025, 4000):
        for m in (0, 1, 9):
            expected = QUOTIENTS[text](n, m)
            assert evaluate(size, {"n": n, "m": m}) == evaluator([size], ["n", "m"])(n, m)[0] == expected
            assert substitute(size, {"n": n, "m": m}) == expected
            assert evaluate(substitute(size, {"m": m}), {"n": n}) == expected


def test_a_divisor_of_1_at_least_is_written_without_saying_so_where_the_quotient_is_the_same() -> None:
    assert parse("m//max(n, 1)") == parse("m//n") and parse("m//max(n, k, 1)") == parse("m//max(n, k)")
    assert parse("n*m//max(n, 1)") != parse("m") == parse("n*m//n")
