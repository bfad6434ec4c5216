"""Quotients of long expressions."""

import pytest

from relayc.symbolic import Size, evaluate, symbol
from relayc.symbolic.expressions import factors


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
